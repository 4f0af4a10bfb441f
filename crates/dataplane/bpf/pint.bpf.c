/*
 * PINT as tc programs: digests in the id of unfragmented IPv4 packets or in the flow label of IPv6.
 *
 * pint_source   ingress of an interface to hosts: clears the carrier, so that no digest that a host forged enters, and notes the time
 * pint_arrival  ingress of any other interface: notes the time, for the plans that ask for a hop's latency
 * pint_switch   egress: one hop of the encoder; where the interface leads to hosts, the digest goes to the ring buffer and the carrier
 *               gets what it could have had without us (id 0, a label that is a hash of the flow)
 *
 * The hop is what is missing of the hop limit that the packet began with, the smallest of 64, 128 and 255 that is not below it. After
 * segmentation: switch GSO, TSO and GRO off, or one digest stands for a whole super-packet.
 *
 * Source: Ben Basat et al., "PINT", SIGCOMM 2020. Kernel: 6.2 (the true queue is read through bpf_cast_to_kern_ctx).
 */
#include "weftline_port.h"
#include "pint_tc.h"

/* Both carriers have this many bits for a digest, so a set has no more fields. */
#define CARRIER_BITS 16

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct pint_config);
} pint_config SEC(".maps");

WL_PORTS(pint_ports);

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PINT_COUNTS);
	__type(key, uint32_t);
	__type(value, uint64_t);
} pint_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} pint_records SEC(".maps");

WL_INLINE void count(uint32_t kind)
{
	uint64_t *counter = bpf_map_lookup_elem(&pint_counts, &kind);

	if (counter)
		*counter += 1;
}

WL_INLINE const struct pint_config *config(void)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(&pint_config, &zero);
}

WL_INLINE uint32_t initial_hop_limit(uint32_t hop_limit)
{
	return hop_limit <= 64 ? 64 : hop_limit <= 128 ? 128 : 255;
}

/* The carrier that a packet has for a digest; 0 if none. */
WL_INLINE uint32_t carrier_of(const struct pint_config *c, const struct wl_ip *ip)
{
	uint32_t carrier = ip->version == 4 ? PINT_CARRIER_IPV4_ID : PINT_CARRIER_FLOW_LABEL;

	if (!ip->version || ip->fragment || !ip->dont_fragment)
		return 0;
	return c->carriers & carrier;
}

/* The label of a flow that has no digest: never 0. */
WL_INLINE uint32_t stable_label(const struct wl_ip *ip, uint32_t ports)
{
	uint32_t label = wl_flow_hash(ip, ports) >> 12;

	return label ? label : 1;
}

WL_INLINE void write_id(struct __sk_buff *skb, const struct wl_ip *ip, uint16_t id)
{
	uint16_t wire = bpf_htons(id), checksum = wl_checksum_after(ip->checksum, bpf_htons(ip->id), wire);

	bpf_skb_store_bytes(skb, WL_ETHERNET + 4, &wire, 2, 0);
	bpf_skb_store_bytes(skb, WL_ETHERNET + 10, &checksum, 2, 0);
}

WL_INLINE void write_label(struct __sk_buff *skb, const struct wl_ip *ip, uint32_t label)
{
	uint32_t wire = bpf_htonl(6u << 28 | (uint32_t)ip->traffic_class << 20 | label);

	bpf_skb_store_bytes(skb, WL_ETHERNET, &wire, 4, BPF_F_RECOMPUTE_CSUM);
}

WL_INLINE void write_carrier(struct __sk_buff *skb, const struct wl_ip *ip, uint32_t carrier, uint32_t value)
{
	if (carrier == PINT_CARRIER_IPV4_ID)
		write_id(skb, ip, (uint16_t)value);
	else
		write_label(skb, ip, value);
}

SEC("tc")
int pint_arrival(struct __sk_buff *skb)
{
	const struct pint_config *c = config();

	if (c && wl_port_of(&pint_ports, skb->ifindex))
		wl_note_arrival(skb, c->replay);
	return WL_NEXT;
}

SEC("tc")
int pint_source(struct __sk_buff *skb)
{
	const struct pint_config *c = config();
	struct wl_ip ip;
	uint32_t carrier;

	if (!c || !wl_port_of(&pint_ports, skb->ifindex))
		return WL_NEXT;
	wl_note_arrival(skb, c->replay);
	wl_parse(skb, &ip);
	carrier = carrier_of(c, &ip);
	if (!carrier) {
		count(PINT_COUNT_UNSTAMPED);
		return WL_NEXT;
	}
	if (ip.hop_limit != initial_hop_limit(ip.hop_limit))
		count(PINT_COUNT_HOP_LIMIT);
	write_carrier(skb, &ip, carrier, 0);
	count(PINT_COUNT_SOURCE);
	return WL_NEXT;
}

/* A digest on its way through the fields of its set. */
struct pint_walk {
	uint64_t digest;
	uint64_t packet;
	uint64_t value;
	uint32_t hop;
	int looped;
};

/* One field. A function of its own: the verifier then looks at it once, not once for each field. */
WL_APART int pint_walk_field(const struct pint_field *field, const struct pint_task *task, struct pint_walk *walk)
{
	int looped = 0;

	if (!field || !task || !walk)
		return 0;
	walk->digest = pint_field_step(field, task, walk->digest, walk->packet, walk->hop, walk->value, &looped);
	walk->looped |= looped;
	return 0;
}

/* The value of a query; *present becomes 0 if the switch does not have it. */
WL_INLINE uint64_t value_of(const struct pint_config *c, const struct wl_locked_port *here, const struct wl_seen *seen,
			    uint32_t query, int *present)
{
	const struct wl_locked_port *port;
	uint64_t latency;

	switch (c->values[query & (PINT_MAX_QUERIES - 1)]) {
	case PINT_SWITCH_ID:
		return c->switch_id;
	case PINT_INGRESS_PORT:
		port = wl_port_of(&pint_ports, seen->ingress);
		if (port)
			return port->number;
		break;
	case PINT_EGRESS_PORT:
		return seen->number;
	case PINT_TIMESTAMP:
		return seen->now;
	case PINT_HOP_LATENCY:
		latency = wl_latency(here, seen);
		if (latency)
			return latency;
		break;
	case PINT_QUEUE_BYTES:
		return seen->queue;
	case PINT_UTILISATION:
		if (seen->load)
			return seen->load;
		break;
	case PINT_PORT_BYTES:
		return seen->bytes;
	}
	*present = 0;
	return 0;
}

/* The digest after this hop. */
WL_INLINE uint64_t encode(const struct pint_config *c, const struct wl_locked_port *here, const struct wl_seen *seen,
			  struct pint_walk *walk)
{
	const struct pint_plan *plan = &c->plan;
	uint32_t set = pint_set(plan, walk->packet), n, first, end;

	walk->hop = pint_hop_number(walk->hop);
	if (walk->hop == 1)
		walk->digest = 0;
	if (set >= PINT_MAX_SETS)
		return walk->digest;
	first = plan->first[set];
	end = plan->end[set];
	for (n = 0; n < CARRIER_BITS && first + n < end; n++) {
		uint32_t place = (first + n) & (PINT_MAX_FIELDS - 1), query;
		const struct pint_field *field;
		int present = 1;

		WL_OPAQUE(place);
		field = &plan->fields[place];
		query = field->query & (PINT_MAX_QUERIES - 1);
		walk->value = value_of(c, here, seen, query, &present);
		if (present)
			pint_walk_field(field, &plan->tasks[query], walk);
	}
	return walk->digest;
}

WL_INLINE void report(const struct wl_ip *ip, const struct wl_transport *t, const struct pint_walk *walk, uint64_t now,
		      uint32_t carrier)
{
	struct pint_record record = {
		.time_ns = now,
		.packet = walk->packet,
		.source = {ip->source[0], ip->source[1]},
		.destination = {ip->destination[0], ip->destination[1]},
		.source_port = (uint16_t)(t->ports >> 16),
		.destination_port = (uint16_t)t->ports,
		.digest = (uint16_t)walk->digest,
		.protocol = ip->protocol,
		.hop_limit = ip->hop_limit,
		.hops = (uint8_t)walk->hop,
		.carrier = (uint8_t)carrier,
		.looped = (uint8_t)walk->looped,
	};

	count(bpf_ringbuf_output(&pint_records, &record, sizeof(record), 0) ? PINT_COUNT_LOST : PINT_COUNT_SINK);
}

SEC("tc")
int pint_switch(struct __sk_buff *skb)
{
	const struct pint_config *c = config();
	struct wl_locked_port *port;
	struct wl_transport transport;
	struct pint_walk walk = {};
	struct wl_seen seen = {};
	struct wl_ip ip;
	uint32_t carrier;

	port = wl_port_of(&pint_ports, skb->ifindex);
	if (!c || !port)
		return WL_NEXT;
	seen.now = wl_now(skb, c->replay);
	seen.queue = wl_queue(skb, c->replay);
	seen.number = port->number;
	seen.ingress = skb->ingress_ifindex;
	wl_parse(skb, &ip);
	carrier = carrier_of(c, &ip);
	walk.hop = initial_hop_limit(ip.hop_limit) - ip.hop_limit;
	if (!carrier || !walk.hop) {
		wl_pass_port(port, &seen, skb->len, 0);
		count(PINT_COUNT_UNSTAMPED);
		return WL_NEXT;
	}
	walk.digest = carrier == PINT_CARRIER_IPV4_ID ? ip.id : ip.label & 0xffff;
	if (carrier == PINT_CARRIER_FLOW_LABEL && walk.hop > 1 && (ip.label == 0 || ip.label >> 16 != c->plan_nibble)) {
		wl_pass_port(port, &seen, skb->len, 0);
		count(ip.label ? PINT_COUNT_OTHER_PLAN : PINT_COUNT_NO_DIGEST);
		return WL_NEXT;
	}
	wl_pass_port(port, &seen, skb->len, 1);
	seen.arrival = wl_arrival(skb, c->replay, seen.now);
	wl_transport(skb, &ip, &transport);
	walk.packet = wl_packet_id(&ip, &transport);
	encode(c, port, &seen, &walk);
	count(PINT_COUNT_SWITCH);
	if (walk.looped)
		count(PINT_COUNT_LOOP);
	if (port->flags & WL_PORT_HOST) {
		report(&ip, &transport, &walk, seen.now, carrier);
		write_carrier(skb, &ip, carrier, carrier == PINT_CARRIER_IPV4_ID ? 0 : stable_label(&ip, transport.ports));
	} else {
		uint32_t upper = carrier == PINT_CARRIER_IPV4_ID ? 0 : c->plan_nibble << 16;

		write_carrier(skb, &ip, carrier, upper | (uint16_t)walk.digest);
	}
	return WL_NEXT;
}

char weftline_license[] SEC("license") = "Dual MIT/GPL";
