/*
 * INT 2.1 as tc programs, mode MD: every hop puts its values into the packet, the true depth of its port's queue among them.
 *
 * int_arrival  ingress of every interface: notes the time
 * int_switch   egress. A packet from a host gets INT (source); one with INT gets this hop's values (transit); on its way to a host it
 *              loses INT again, which goes to the ring buffer with the last hop's values (sink)
 *
 * INT stands behind IP in a UDP header of its own (next-protocol type 2), so that nothing of the transport changes, its checksum
 * neither. What a host sends to INT's port is wrapped like any other packet. No INT: fragments, IP options and extension headers,
 * packets that are not segmented yet (switch GSO, TSO and GRO off), and where source and sink are one switch.
 *
 * Source: P4.org, "In-band Network Telemetry (INT) Dataplane Specification", version 2.1. Kernel: 6.2 (the true queue).
 */
#include "weftline_tc.h"
#include "weftline_port.h"
#include "int_tc.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct int_config);
} int_config SEC(".maps");

WL_PORTS(int_ports);

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, INT_COUNTS);
	__type(key, uint32_t);
	__type(value, uint64_t);
} int_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} int_reports SEC(".maps");

/* UDP header, shim, MD header; as they lie in the packet. */
struct int_header {
	uint16_t source_port;
	uint16_t port;
	uint16_t udp_length;
	uint16_t udp_checksum;
	/* Type (4 bits), next-protocol type (2). */
	uint8_t kind;
	/* Words after the shim. */
	uint8_t length;
	uint8_t reserved;
	uint8_t protocol;
	/* Version (4 bits), D, E, M. */
	uint8_t flags;
	uint8_t reserved2;
	/* The low five bits. */
	uint8_t hop_words;
	uint8_t remaining;
	uint16_t bitmap;
	uint16_t domain;
	uint16_t domain_bitmap;
	uint16_t domain_flags;
};

_Static_assert(sizeof(struct int_header) == INT_HEADER, "as it lies in the packet");

#define INT_E 4
#define INT_M 2

/* The values of this hop, in network order. */
struct int_hop {
	/* What is asked for. */
	uint16_t bitmap;
	uint16_t domain;
	uint16_t domain_bitmap;
	uint16_t words_asked;
	/* Interfaces: those of the switch and those of Linux. */
	uint32_t interfaces;
	uint32_t from;
	uint32_t to;
	uint32_t node;
	uint32_t own_domain;
	uint32_t latency;
	uint32_t queue;
	uint32_t load;
	uint32_t rate;
	uint32_t reserved;
	uint64_t arrival;
	uint64_t now;
	uint64_t bytes;
	uint64_t sent;
	/* Room for a value of two words at the end. */
	uint32_t words[INT_HOP_WORDS + 1];
};

/* What is too large for the stack. Programs of one processor do not interrupt each other here. */
struct int_work {
	struct int_hop hop;
	struct int_report report;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, uint32_t);
	__type(value, struct int_work);
} int_scratch SEC(".maps");

WL_INLINE void count(uint32_t kind)
{
	uint64_t *counter = bpf_map_lookup_elem(&int_counts, &kind);

	if (counter)
		*counter += 1;
}

WL_INLINE const struct int_config *config(void)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(&int_config, &zero);
}

/* Writes the words; 0 if the header asks for more than it has room for. A function of its own for the verifier's sake. */
WL_APART int int_fill(struct int_hop *hop)
{
	uint32_t bit, n = 0, asked;

	if (!hop)
		return 0;
	asked = hop->words_asked;
	for (bit = 0; bit < 16; bit++) {
		uint64_t value = ~0ull;
		uint32_t two = bit >= 4 && bit <= 6;

		/* The complement stands last: all ones, as the sum over INT's UDP packet is not used. */
		if (bit == 15 || !((hop->bitmap >> (15 - bit)) & 1))
			continue;
		if (n + 1 + two > asked || n + two > INT_HOP_WORDS - 1)
			return 0;
		switch (bit) {
		case 0: value = hop->node; break;
		case 1: value = hop->interfaces; break;
		case 2: value = hop->latency; break;
		case 3: value = hop->queue; break;
		case 4: value = hop->arrival ? hop->arrival : ~0ull; break;
		case 5: value = hop->now; break;
		case 6: value = (uint64_t)hop->from << 32 | hop->to; break;
		case 7: value = hop->load; break;
		}
		if (two) {
			hop->words[n & 31] = bpf_htonl((uint32_t)(value >> 32));
			n++;
		}
		hop->words[n & 31] = bpf_htonl((uint32_t)value);
		n++;
	}
	if (n + (hop->bitmap & 1) > asked)
		return 0;
	asked -= hop->bitmap & 1;
	if (hop->domain && hop->domain == hop->own_domain) {
		if ((hop->domain_bitmap & INT_DOMAIN_BYTES) && n + 2 <= asked) {
			hop->words[n & 31] = bpf_htonl((uint32_t)(hop->bytes >> 32));
			hop->words[(n + 1) & 31] = bpf_htonl((uint32_t)hop->bytes);
			n += 2;
		}
		if ((hop->domain_bitmap & INT_DOMAIN_RATE) && n + 1 <= asked) {
			hop->words[n & 31] = bpf_htonl(hop->rate);
			n++;
		}
		if ((hop->domain_bitmap & INT_DOMAIN_SENT) && n + 2 <= asked) {
			hop->words[n & 31] = bpf_htonl((uint32_t)(hop->sent >> 32));
			hop->words[(n + 1) & 31] = bpf_htonl((uint32_t)hop->sent);
			n += 2;
		}
	}
	for (bit = 0; bit <= INT_HOP_WORDS; bit++) {
		if (bit >= n)
			hop->words[bit] = ~0u;
	}
	return 1;
}

WL_INLINE uint32_t capped(uint64_t value, uint32_t most)
{
	return value < most ? (uint32_t)value : most;
}

/* All that a hop could be asked for. */
WL_INLINE void observe(struct int_hop *hop, const struct int_config *c, const struct wl_locked_port *port,
		       const struct wl_locked_port *from, const struct wl_seen *seen, uint32_t interface)
{
	uint64_t latency = wl_latency(port, seen);

	hop->node = c->node;
	hop->own_domain = c->domain;
	hop->interfaces = (from ? from->number & 0xffff : 0xffff) << 16 | (port->number & 0xffff);
	hop->from = seen->ingress;
	hop->to = interface;
	hop->latency = latency ? capped(latency, ~0u - 1) : ~0u;
	hop->queue = capped(seen->queue, 0xffffff);
	hop->load = seen->load ? capped(seen->load, ~0u - 1) : ~0u;
	hop->rate = capped(port->bits_per_second / 1000, ~0u - 1);
	hop->arrival = seen->arrival;
	hop->now = seen->now;
	hop->bytes = seen->bytes;
	hop->sent = seen->sent;
}

WL_INLINE void ask(struct int_hop *hop, uint16_t bitmap, uint16_t domain, uint16_t domain_bitmap, uint8_t words)
{
	hop->bitmap = bitmap;
	hop->domain = domain;
	hop->domain_bitmap = domain_bitmap;
	hop->words_asked = words;
}

/* IP's length field and protocol after INT came or went; in IPv4 the checksum too. */
WL_INLINE void write_ip(struct __sk_buff *skb, const struct wl_ip *ip, uint16_t length, uint8_t protocol)
{
	uint16_t wire = bpf_htons(length), checksum;

	if (ip->version == 6) {
		bpf_skb_store_bytes(skb, WL_ETHERNET + 4, &wire, 2, 0);
		bpf_skb_store_bytes(skb, WL_ETHERNET + 6, &protocol, 1, 0);
		return;
	}
	checksum = wl_checksum_after(ip->checksum, bpf_htons(ip->length), wire);
	checksum = wl_checksum_after(checksum, bpf_htons((uint16_t)(ip->hop_limit << 8 | ip->protocol)),
				     bpf_htons((uint16_t)(ip->hop_limit << 8 | protocol)));
	bpf_skb_store_bytes(skb, WL_ETHERNET + 2, &wire, 2, 0);
	bpf_skb_store_bytes(skb, WL_ETHERNET + 9, &protocol, 1, 0);
	bpf_skb_store_bytes(skb, WL_ETHERNET + 10, &checksum, 2, 0);
}

WL_INLINE int fits(struct __sk_buff *skb, const struct wl_ip *ip, uint32_t more)
{
	uint32_t mtu = 0;

	return ip->length + more <= 0xffff && bpf_check_mtu(skb, 0, &mtu, (int32_t)more, 0) == 0;
}

/* Puts header and words in front of what follows the first `kept` bytes after IP. */
WL_INLINE int insert(struct __sk_buff *skb, const struct wl_ip *ip, const struct int_header *header, const struct int_hop *hop,
		     uint32_t more, uint32_t words)
{
	if (bpf_skb_adjust_room(skb, (int32_t)more, BPF_ADJ_ROOM_NET, 0))
		return 0;
	bpf_skb_store_bytes(skb, ip->payload, header, INT_HEADER, 0);
	if (words >= 1 && words <= INT_HOP_WORDS)
		bpf_skb_store_bytes(skb, ip->payload + INT_HEADER, hop->words, 4 * words, 0);
	return 1;
}

WL_INLINE void source(struct __sk_buff *skb, const struct int_config *c, const struct wl_ip *ip, struct int_hop *hop)
{
	uint32_t words = c->hop_words & 31, header_length = ip->version == 4 ? 20 : 0, more;
	struct wl_transport transport;
	struct int_header h = {};

	wl_transport(skb, ip, &transport);
	if (wl_packet_id(ip, &transport) >> 32 >= c->sample) {
		count(INT_COUNT_NOT_CHOSEN);
		return;
	}
	ask(hop, c->bitmap, c->domain, c->domain_bitmap, (uint8_t)words);
	if (!words || !c->max_hops || !int_fill(hop)) {
		count(INT_COUNT_UNFIT);
		return;
	}
	h.flags = 2 << 4;
	h.remaining = c->max_hops - 1;
	if (!fits(skb, ip, INT_HEADER + 4 * words)) {
		if (!fits(skb, ip, INT_HEADER)) {
			count(INT_COUNT_SOURCE_MTU);
			return;
		}
		h.flags |= INT_M;
		h.remaining = c->max_hops;
		words = 0;
	}
	more = INT_HEADER + 4 * words;
	h.source_port = bpf_htons((uint16_t)(0xc000 | wl_flow_hash(ip, transport.ports) >> 18));
	h.port = bpf_htons(c->port);
	h.udp_length = bpf_htons((uint16_t)(ip->length - header_length + more));
	h.kind = 1 << 4 | 2 << 2;
	h.length = (uint8_t)(3 + words);
	h.protocol = ip->protocol;
	h.hop_words = c->hop_words & 31;
	h.bitmap = bpf_htons(c->bitmap);
	h.domain = bpf_htons(c->domain);
	h.domain_bitmap = bpf_htons(c->domain_bitmap);
	if (!insert(skb, ip, &h, hop, more, words)) {
		count(INT_COUNT_SOURCE_MTU);
		return;
	}
	write_ip(skb, ip, (uint16_t)(ip->length + more), WL_UDP);
	count(words ? INT_COUNT_SOURCE : INT_COUNT_SOURCE_M);
}

WL_INLINE void transit(struct __sk_buff *skb, const struct wl_ip *ip, struct int_header *h, const struct int_hop *hop)
{
	uint32_t words = h->hop_words & 31;

	if (!h->remaining) {
		h->flags |= INT_E;
		bpf_skb_store_bytes(skb, ip->payload, h, INT_HEADER, 0);
		count(INT_COUNT_TRANSIT_E);
		return;
	}
	if (h->length + words <= 255 && fits(skb, ip, 4 * words)) {
		struct int_header longer = *h;

		longer.length += words;
		longer.remaining -= 1;
		longer.udp_length = bpf_htons((uint16_t)(bpf_ntohs(h->udp_length) + 4 * words));
		if (insert(skb, ip, &longer, hop, 4 * words, words)) {
			write_ip(skb, ip, (uint16_t)(ip->length + 4 * words), WL_UDP);
			count(INT_COUNT_TRANSIT);
			return;
		}
	}
	h->flags |= INT_M;
	bpf_skb_store_bytes(skb, ip->payload, h, INT_HEADER, 0);
	count(INT_COUNT_TRANSIT_M);
}

WL_INLINE void sink(struct __sk_buff *skb, const struct wl_ip *ip, const struct int_header *h, const struct int_hop *hop,
		    struct int_report *report)
{
	uint32_t part = 12 + 4 * (uint32_t)h->length, n;

	WL_OPAQUE(part);
	if (part < INT_HEADER || part > INT_PART)
		return;
	report->time_ns = hop->now;
	report->source[0] = ip->source[0];
	report->source[1] = ip->source[1];
	report->destination[0] = ip->destination[0];
	report->destination[1] = ip->destination[1];
	report->part_bytes = part;
	report->hop_words = h->hop_words & 31;
	for (n = 0; n <= INT_HOP_WORDS; n++)
		report->hop[n] = hop->words[n];
	if (bpf_skb_load_bytes(skb, ip->payload, report->part, part))
		return;
	if (bpf_skb_adjust_room(skb, -(int32_t)part, BPF_ADJ_ROOM_NET, 0)) {
		count(INT_COUNT_MALFORMED);
		return;
	}
	write_ip(skb, ip, (uint16_t)(ip->length - part), h->protocol);
	count(bpf_ringbuf_output(&int_reports, report, sizeof(*report) - INT_PART + part, 0) ? INT_COUNT_LOST : INT_COUNT_SINK);
}

SEC("tc")
int int_arrival(struct __sk_buff *skb)
{
	const struct int_config *c = config();

	if (c && wl_port_of(&int_ports, skb->ifindex))
		wl_note_arrival(skb, c->replay);
	return WL_NEXT;
}

SEC("tc")
int int_switch(struct __sk_buff *skb)
{
	const struct int_config *c = config();
	struct wl_locked_port *port = wl_port_of(&int_ports, skb->ifindex), *from;
	struct wl_seen seen = {};
	uint32_t zero = 0;
	struct int_work *work = bpf_map_lookup_elem(&int_scratch, &zero);
	struct int_hop *hop;
	struct int_header h;
	struct wl_ip ip;
	int from_host, simple;

	if (!c || !port || !work)
		return WL_NEXT;
	seen.now = wl_now(skb, c->replay);
	seen.queue = wl_queue(skb, c->replay);
	seen.sent = wl_sent(skb, c->replay);
	seen.number = port->number;
	seen.ingress = skb->ingress_ifindex;
	wl_pass_port(port, &seen, skb->len, 1);
	seen.arrival = wl_arrival(skb, c->replay, seen.now);
	from = wl_port_of(&int_ports, seen.ingress);
	from_host = from && (from->flags & WL_PORT_HOST);
	if (from_host && (port->flags & WL_PORT_HOST))
		return WL_NEXT;
	wl_parse(skb, &ip);
	simple = ip.version && !ip.fragment && ip.length && !skb->gso_size && ip.payload == (ip.version == 4 ? 34u : 54u);
	if (!simple) {
		if (from_host)
			count(INT_COUNT_UNFIT);
		return WL_NEXT;
	}
	hop = &work->hop;
	observe(hop, c, port, from, &seen, skb->ifindex);
	if (from_host) {
		source(skb, c, &ip, hop);
		return WL_NEXT;
	}
	if (ip.protocol != WL_UDP || ip.end - ip.payload < 8 || bpf_skb_load_bytes(skb, ip.payload, &h, 8) || h.port != bpf_htons(c->port))
		return WL_NEXT;
	if (ip.end - ip.payload < INT_HEADER || bpf_skb_load_bytes(skb, ip.payload, &h, INT_HEADER))
		goto malformed;
	ask(hop, bpf_ntohs(h.bitmap), bpf_ntohs(h.domain), bpf_ntohs(h.domain_bitmap), h.hop_words & 31);
	if (h.kind >> 2 != (1 << 2 | 2) || h.flags >> 4 != 2 || h.length < 3 || ip.end - ip.payload < 12 + 4 * (uint32_t)h.length)
		goto malformed;
	if (!int_fill(hop))
		goto malformed;
	if (port->flags & WL_PORT_HOST)
		sink(skb, &ip, &h, hop, &work->report);
	else if (h.hop_words & 31)
		transit(skb, &ip, &h, hop);
	return WL_NEXT;
malformed:
	count(INT_COUNT_MALFORMED);
	return WL_NEXT;
}

char weftline_license[] SEC("license") = "Dual MIT/GPL";
