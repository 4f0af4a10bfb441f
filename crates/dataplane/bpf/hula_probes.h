/*
 * What switches of HULA's kind share, whatever they keep of a probe: maps, estimator, probes in and out, ports that are alive.
 *
 * The law is that of crates/sim/src/balance (hula, estimator, flowlets), number for number. Here a packet leaves when it is given to
 * the port's queue, there when the link begins to send it.
 *
 * A program that includes this says what a probe changes (record), and has a program hula_departure too: egress of every interface to a
 * switch, the estimator, U <- D + U max(0, 1 - dt / tau).
 *
 * Source: Katta et al., "HULA: scalable load balancing using programmable data planes", SOSR 2016. Kernel: with
 * bpf_check_mtu (5.12); tried on 6.18.
 */
#ifndef WEFTLINE_HULA_PROBES_H
#define WEFTLINE_HULA_PROBES_H

#include "weftline_tc.h"
#include "hula_tc.h"

#define HULA_KIND 4
#define FRACTION_BITS 8
#define PACKET_HOST 0
/* Linux puts it into the first band of pfifo_fast and prio. */
#define PRIORITY_CONTROL 7

#define HULA_MAP(name, kind, entries, key_type, value_type) \
	struct {                                            \
		__uint(type, kind);                         \
		__uint(max_entries, entries);               \
		__type(key, key_type);                      \
		__type(value, value_type);                  \
	} name SEC(".maps")

HULA_MAP(hula_config, BPF_MAP_TYPE_ARRAY, 1, uint32_t, struct hula_config);
HULA_MAP(hula_interfaces, BPF_MAP_TYPE_ARRAY, HULA_INTERFACES, uint32_t, uint32_t);
HULA_MAP(hula_ports, BPF_MAP_TYPE_ARRAY, HULA_PORTS, uint32_t, struct hula_port);
HULA_MAP(hula_tors, BPF_MAP_TYPE_ARRAY, HULA_TORS, uint32_t, struct hula_tor);
HULA_MAP(hula_flowlets, BPF_MAP_TYPE_ARRAY, HULA_SLOTS, uint32_t, struct hula_flowlet);
HULA_MAP(hula_counts, BPF_MAP_TYPE_PERCPU_ARRAY, HULA_ROOM_FOR_COUNTS, uint32_t, uint64_t);

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, HULA_HOSTS);
	__type(key, struct hula_prefix);
	__type(value, uint32_t);
} hula_hosts SEC(".maps");

WL_INLINE void count(uint32_t kind)
{
	uint64_t *counter = bpf_map_lookup_elem(&hula_counts, &kind);

	if (counter)
		*counter += 1;
}

WL_INLINE const struct hula_config *config(void)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(&hula_config, &zero);
}

/* The port of an interface plus 1; 0: not of this switch. */
WL_INLINE uint32_t port_at(uint32_t interface)
{
	uint32_t *port = bpf_map_lookup_elem(&hula_interfaces, &interface);

	return port && *port <= HULA_PORTS ? *port : 0;
}

WL_INLINE int has(uint64_t mask, uint32_t port)
{
	return mask >> (port & (HULA_PORTS - 1)) & 1;
}

/* Processors read the clock before they take a lock, so a later reader may have the earlier time. */
WL_INLINE uint64_t since(uint64_t then, uint64_t now)
{
	return now > then ? now - then : 0;
}

/* What is left of U at a time. */
WL_INLINE uint64_t left_of(const struct hula_config *c, const struct hula_port *port, uint64_t now)
{
	uint64_t used = port->used, then = port->last_ns, passed;
	uint32_t shift = (c->shift - 1) & 63;

	if (!c->shift) {
		passed = since(then, now);
		if (passed >= c->tau_ns)
			return 0;
		/* The share of tau that has passed, in 1/2^64. */
		return used - wl_multiply_high(used, 1000 * passed * c->reciprocal);
	}
	passed = since((then * 125) >> 7, (now * 125) >> 7);
	if (passed >> shift)
		return 0;
	if (!shift)
		return used;
	return used - (wl_multiply_high(used, passed) << (64 - shift) | used * passed >> shift);
}

SEC("tc")
int hula_departure(struct __sk_buff *skb)
{
	const struct hula_config *c = config();
	uint32_t number = port_at(skb->ifindex) - 1, bytes = skb->len;
	struct hula_port *port = bpf_map_lookup_elem(&hula_ports, &number);
	uint64_t now;

	if (!c || !port || !has(c->up | c->down, number))
		return WL_NEXT;
	now = wl_now(skb, c->replay);
	bpf_spin_lock(&port->lock);
	port->used = left_of(c, port, now) + ((uint64_t)bytes << FRACTION_BITS);
	if (now > port->last_ns)
		port->last_ns = now;
	bpf_spin_unlock(&port->lock);
	return WL_NEXT;
}

/* Of the port's link, in 1/256. */
WL_INLINE uint8_t utilisation_of(const struct hula_config *c, struct hula_port *port, uint64_t now)
{
	uint64_t left, share;

	bpf_spin_lock(&port->lock);
	left = left_of(c, port, now);
	bpf_spin_unlock(&port->lock);
	share = left / (port->whole ? port->whole : 1);
	return share < 255 ? share : 255;
}

/* What a switch without hosts passes on: what changed, else once per interval. The ToR's lock is held. */
WL_INLINE int is_passed_on(const struct hula_config *c, struct hula_tor *tor, uint64_t now)
{
	int passes;

	if (c->own)
		return 0;
	passes = !(c->flags & HULA_SUPPRESS) || !tor->passed_ns || tor->passed_port != tor->port ||
		 tor->passed_utilisation != tor->utilisation || since(tor->passed_ns, now) >= c->due_ns;
	if (passes) {
		tor->passed_ns = now;
		tor->passed_port = tor->port;
		tor->passed_utilisation = tor->utilisation;
	}
	return passes;
}

/*
 * The program's own: the path to a ToR (of number `which`) through a port has this utilisation. Returns whether the best hop's, left in
 * *best, is to be passed on.
 */
WL_INLINE int record(const struct hula_config *c, struct hula_tor *tor, uint32_t which, uint32_t port, uint8_t utilisation,
		     uint64_t now, uint8_t *best);

/* Sends the probe by these ports. */
WL_INLINE void pass_on(struct __sk_buff *skb, uint64_t by, uint8_t utilisation)
{
	uint32_t number;

	skb->priority = PRIORITY_CONTROL;
	bpf_skb_store_bytes(skb, WL_ETHERNET + offsetof(struct hula_probe, utilisation), &utilisation, 1, 0);
	for (number = 0; number < HULA_PORTS; number++) {
		struct hula_port *port;

		if (!has(by, number))
			continue;
		port = bpf_map_lookup_elem(&hula_ports, &number);
		if (!port)
			continue;
		bpf_skb_store_bytes(skb, 0, port->addresses, sizeof(port->addresses), 0);
		count(bpf_clone_redirect(skb, port->interface, 0) ? HULA_COUNT_LOST : HULA_COUNT_PASSED);
	}
}

WL_INLINE int take_in(struct __sk_buff *skb, const struct hula_config *c, uint32_t number)
{
	struct hula_port *port = bpf_map_lookup_elem(&hula_ports, &number);
	struct hula_tor *tor = 0;
	struct hula_probe probe;
	uint64_t now = wl_now(skb, c->replay), by;
	uint32_t which;
	uint8_t link;

	if (!port || bpf_skb_load_bytes(skb, WL_ETHERNET, &probe, sizeof(probe)))
		return WL_NEXT;
	if (probe.option || probe.length != sizeof(probe) || probe.kind != HULA_KIND)
		return WL_NEXT;
	count(HULA_COUNT_PROBES);
	which = bpf_ntohl(probe.tor);
	if (which < c->tors && has(c->up | c->down, number))
		tor = bpf_map_lookup_elem(&hula_tors, &which);
	if (tor)
		port->probed_ns = now;
	if (!tor || which + 1 == c->own || !has(tor->allowed, number)) {
		count(HULA_COUNT_REFUSED);
		return TC_ACT_SHOT;
	}
	link = utilisation_of(c, port, now);
	if (link < probe.utilisation)
		link = probe.utilisation;
	if (record(c, tor, which, number + 1, link, now, &probe.utilisation)) {
		/* Never up what came from above, never back. */
		by = has(c->up, number) ? c->down : c->up | c->down;
		pass_on(skb, by & tor->takers & ~(1ull << (number & (HULA_PORTS - 1))), probe.utilisation);
	}
	return TC_ACT_SHOT;
}

/* The ToR of a packet's receiver plus 1; 0: none that is known. */
WL_INLINE uint32_t rack_of(const struct wl_ip *ip)
{
	struct hula_prefix prefix = {.bits = 128};
	uint64_t half = bpf_cpu_to_be64(ip->destination[0]);
	uint32_t *which;

	__builtin_memcpy(prefix.address, &half, 8);
	half = bpf_cpu_to_be64(ip->destination[1]);
	__builtin_memcpy(prefix.address + 8, &half, 8);
	which = bpf_map_lookup_elem(&hula_hosts, &prefix);
	return which ? *which : 0;
}

/* A flow's hash, mixed again at each switch. */
WL_INLINE uint32_t salted(uint32_t hash, uint64_t salt)
{
	return (uint32_t)(wl_mix(hash ^ salt * 0x9e3779b97f4a7c15ull) >> 32);
}

/*
 * A probe came by the port within the time of failure, which for the first one begins at time 0: with a replay, where no port has
 * failed before the first round of probes. The clock of a machine has left time 0 behind.
 */
WL_APART int is_alive(const struct hula_config *c, uint32_t number, uint64_t now)
{
	struct hula_port *port = bpf_map_lookup_elem(&hula_ports, &number);

	return c && port && since(port->probed_ns, now) <= c->failure_ns;
}

/* The port in this place of a mask, counted from the lowest. */
WL_APART uint32_t nth(uint64_t mask, uint32_t place)
{
	uint32_t number;

	for (number = 0; number < HULA_PORTS; number++) {
		uint32_t here = has(mask, number);

		if (here && !place)
			return number;
		place -= here;
	}
	return 0;
}

/* Where nothing is known: a hash chooses among the ports that are alive, or among all. */
WL_APART uint32_t unprobed(const struct hula_config *c, uint64_t candidates, uint64_t hash, uint64_t now)
{
	uint64_t alive = 0, among;
	uint32_t number, ports = 0;

	if (!c)
		return 0;
	/* Without branches: the verifier would follow each way through them. */
	for (number = 0; number < HULA_PORTS; number++)
		alive |= (uint64_t)(is_alive(c, number, now) & 1) << number;
	alive &= candidates;
	among = alive ? alive : candidates;
	for (number = 0; number < HULA_PORTS; number++)
		ports += has(among, number);
	return nth(among, (uint32_t)((hash & 0xffffffff) * ports >> 32));
}

/* The hop limit after this hop, and the checksum that goes with it. */
WL_INLINE void write_hop_limit(struct __sk_buff *skb, const struct wl_ip *ip)
{
	uint8_t hop_limit = ip->hop_limit - 1;

	if (ip->version == 4) {
		struct {
			uint8_t hop_limit, protocol;
			uint16_t checksum;
		} word = {hop_limit, ip->protocol, 0};
		uint16_t old = bpf_htons(ip->hop_limit << 8 | ip->protocol);

		word.checksum = wl_checksum_after(ip->checksum, old, bpf_htons(hop_limit << 8 | ip->protocol));
		bpf_skb_store_bytes(skb, WL_ETHERNET + 8, &word, sizeof(word), 0);
	} else {
		bpf_skb_store_bytes(skb, WL_ETHERNET + 7, &hop_limit, 1, BPF_F_RECOMPUTE_CSUM);
	}
}

#endif
