/*
 * The ports of a switch, for programs: a map of struct wl_port, and what a packet that leaves changes in it.
 */
#ifndef WEFTLINE_PORT_H
#define WEFTLINE_PORT_H

#define PINT_INLINE WL_INLINE

#include "weftline_tc.h"
#include "port_tc.h"

/* As struct wl_port, with the lock as the kernel knows it. */
struct wl_locked_port {
	struct bpf_spin_lock lock;
	uint32_t flags;
	uint32_t number;
	uint32_t wait;
	uint64_t bits_per_second;
	uint64_t bytes;
	uint64_t key;
	struct pint_port load;
};

_Static_assert(sizeof(struct wl_locked_port) == sizeof(struct wl_port), "one layout");

#define WL_PORTS(name)                               \
	struct {                                     \
		__uint(type, BPF_MAP_TYPE_ARRAY);    \
		__uint(max_entries, WL_INTERFACES);  \
		__type(key, uint32_t);               \
		__type(value, struct wl_locked_port); \
	} name SEC(".maps")

WL_INLINE struct wl_locked_port *wl_port_of(void *ports, uint32_t interface)
{
	struct wl_locked_port *port = bpf_map_lookup_elem(ports, &interface);

	return port && (port->flags & WL_PORT_ON) ? port : 0;
}

/* What the switch sees of a packet that leaves. */
struct wl_seen {
	uint64_t now;
	uint64_t queue;
	/* Of the port, this packet included; 512 U rounded up, 0 where the port keeps no load. */
	uint64_t bytes;
	uint64_t load;
	/* What the port's queueing discipline has transmitted, where a program asks for it. */
	uint64_t sent;
	/* When it came; 0 where that was not noted. */
	uint64_t arrival;
	uint32_t number;
	uint32_t ingress;
};

/* The port's bytes and load after this packet; data: as the load's law calls it. */
WL_INLINE void wl_pass_port(struct wl_locked_port *port, struct wl_seen *seen, uint32_t length, int data)
{
	uint64_t word = pint_word(port->key, seen->now);

	bpf_spin_lock(&port->lock);
	port->bytes += length;
	seen->bytes = port->bytes;
	if (port->flags & WL_PORT_LOAD) {
		if (data)
			pint_port_update(&port->load, seen->now, seen->queue, length, word);
		else
			pint_port_pass(&port->load, seen->now, seen->queue, length, word);
		seen->load = pint_scaled_load(port->load.load);
	}
	bpf_spin_unlock(&port->lock);
}

/* Writes down when a packet came, where it stays with it while it is forwarded. In a replay the packet brings it. */
WL_INLINE void wl_note_arrival(struct __sk_buff *skb, uint32_t replay)
{
	if (!replay)
		bpf_skb_set_tstamp(skb, bpf_ktime_get_ns(), BPF_SKB_TSTAMP_DELIVERY_MONO);
}

WL_INLINE uint64_t wl_arrival(struct __sk_buff *skb, uint32_t replay, uint64_t now)
{
	uint64_t arrival = skb->tstamp;

	if (arrival >= now || (!replay && skb->tstamp_type != BPF_SKB_TSTAMP_DELIVERY_MONO))
		return 0;
	return arrival;
}

/* How long the packet has been here, and how long it will wait behind the queue; 0: not known. */
WL_INLINE uint64_t wl_latency(const struct wl_locked_port *port, const struct wl_seen *seen)
{
	return seen->arrival ? seen->now - seen->arrival + ((seen->queue * port->wait) >> 16) : 0;
}

#endif
