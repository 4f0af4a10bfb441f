/*
 * What all tc programs of weftline share: the types of Linux that they read, the packet's headers, its id and hash, the time.
 *
 * The id of a packet is that of `weftline collect` (crates/collect/src/pint.rs): a hash of what no router changes. The hash of a
 * flow is the same fold over addresses, protocol and ports.
 *
 * Headers are read by helper, not through packet pointers: a packet may be in pieces.
 */
#ifndef WEFTLINE_TC_H
#define WEFTLINE_TC_H

#include <stdint.h>

#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>

#ifndef BPF_SKB_TSTAMP_DELIVERY_MONO
#define BPF_SKB_TSTAMP_DELIVERY_MONO 1
#endif

#define WL_INLINE static __attribute__((always_inline)) inline
/* A function that the verifier looks at once, whoever calls it. */
#define WL_APART __attribute__((noinline))

#define WL_ETHERNET 14
#define WL_IPV4 0x0800
#define WL_IPV6 0x86dd
#define WL_TCP 6
#define WL_ROUTING 43
#define WL_SEGMENTS 4
#define WL_UDP 17

/* The next program goes on with the packet. */
#define WL_NEXT TC_ACT_UNSPEC

/* Parts of the kernel's types, found by their names at load time. */
struct Qdisc___wl {
	struct {
		uint32_t backlog;
	} qstats;
	/* A counter of 64 bits, as machines of 64 bits have it. */
	struct {
		struct {
			struct {
				struct {
					struct {
						int64_t counter;
					} a;
				} a;
			} v;
		} bytes;
	} bstats;
} __attribute__((preserve_access_index));

struct net_device___wl {
	struct Qdisc___wl *qdisc;
} __attribute__((preserve_access_index));

struct sk_buff___wl {
	struct net_device___wl *dev;
} __attribute__((preserve_access_index));

extern void *bpf_cast_to_kern_ctx(void *) __ksym;

/* splitmix64's finaliser: the mix of weftline_pint.h, which programs without PINT do not include. */
WL_INLINE uint64_t wl_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

/* (a b) >> 64. */
WL_INLINE uint64_t wl_multiply_high(uint64_t a, uint64_t b)
{
	uint64_t al = a & 0xffffffff, ah = a >> 32, bl = b & 0xffffffff, bh = b >> 32;
	uint64_t middle = ah * bl + ((al * bl) >> 32);
	uint64_t low = al * bh + (middle & 0xffffffff);

	return ah * bh + (middle >> 32) + (low >> 32);
}

/*
 * Bytes that wait in the interface's root queueing discipline. A discipline without a lock (pfifo_fast as root) and the root of a device
 * of several queues (mq) do not count there: 0.
 */
WL_INLINE uint64_t wl_backlog(struct __sk_buff *skb)
{
	struct sk_buff___wl *kernel = bpf_cast_to_kern_ctx(skb);

	return kernel->dev->qdisc->qstats.backlog;
}

/* Bytes that have left the interface's root queueing discipline. One without a lock, and mq, do not count there: 0. */
WL_INLINE uint64_t wl_transmitted(struct __sk_buff *skb)
{
	struct sk_buff___wl *kernel = bpf_cast_to_kern_ctx(skb);

	return (uint64_t)kernel->dev->qdisc->bstats.bytes.v.a.a.counter;
}

/* A field of the context, read where it is written: the verifier refuses addresses that the compiler computed. */
#define WL_FIELD(field) (*(volatile __typeof__(field) *)&(field))

/* The compiler keeps what the verifier has to see: a number that was just bounded. */
#define WL_OPAQUE(number) __asm__ volatile("" : "+r"(number))

/* In a replay, time (two words), queue and bytes sent (two words) come with the packet. */
WL_INLINE uint64_t wl_now(struct __sk_buff *skb, uint32_t replay)
{
	if (replay)
		return (uint64_t)WL_FIELD(skb->cb[1]) << 32 | WL_FIELD(skb->cb[0]);
	return bpf_ktime_get_ns();
}

WL_INLINE uint64_t wl_queue(struct __sk_buff *skb, uint32_t replay)
{
	if (replay)
		return WL_FIELD(skb->cb[2]);
	return wl_backlog(skb);
}

WL_INLINE uint64_t wl_sent(struct __sk_buff *skb, uint32_t replay)
{
	if (replay)
		return (uint64_t)WL_FIELD(skb->cb[4]) << 32 | WL_FIELD(skb->cb[3]);
	return wl_transmitted(skb);
}

/* Where the headers of an IP packet are, and what counts of them. */
struct wl_ip {
	/* 4 or 6; 0: not IP, malformed, or under a VLAN tag. */
	uint8_t version;
	uint8_t protocol;
	uint8_t hop_limit;
	uint8_t traffic_class;
	/* Any part of a fragmented packet. */
	uint8_t fragment;
	uint8_t dont_fragment;
	/* Its length as the header states it: of the packet in IPv4, of what follows the header in IPv6; 0: it states none. */
	uint16_t length;
	/* IPv4; the checksum as it lies in memory. */
	uint16_t id;
	uint16_t checksum;
	/* IPv6. */
	uint32_t label;
	/* Of the transport header, from the start of the frame, and one after the packet's last byte. */
	uint32_t payload;
	uint32_t end;
	/* In the byte order of the host: an IPv4 address is ::ffff:a.b.c.d. */
	uint64_t source[2];
	uint64_t destination[2];
	/* The destination, or the last one while a segment routing header still has segments: no router changes it. */
	uint64_t final[2];
};

struct wl_ipv4_header {
	uint8_t version_length;
	uint8_t traffic_class;
	uint16_t length;
	uint16_t id;
	uint16_t fragment;
	uint8_t hop_limit;
	uint8_t protocol;
	uint16_t checksum;
	uint32_t source;
	uint32_t destination;
};

struct wl_ipv6_header {
	uint32_t first;
	uint16_t length;
	uint8_t next;
	uint8_t hop_limit;
	uint64_t source[2];
	uint64_t destination[2];
} __attribute__((packed, aligned(8)));

/* As the collector's parser reads them, case for case. */
WL_INLINE int wl_parse_ipv4(struct __sk_buff *skb, struct wl_ip *ip)
{
	struct wl_ipv4_header h;
	uint32_t header, total, place, length = skb->len;

	if (bpf_skb_load_bytes(skb, WL_ETHERNET, &h, sizeof(h)))
		return 0;
	header = 4 * (h.version_length & 15);
	/* 0 before segmentation offload: all that there is. */
	total = h.length ? bpf_ntohs(h.length) : length - WL_ETHERNET;
	if (h.version_length >> 4 != 4 || header < 20 || total < header)
		return 0;
	ip->payload = WL_ETHERNET + header;
	ip->end = WL_ETHERNET + total < length ? WL_ETHERNET + total : length;
	if (ip->payload > ip->end)
		return 0;
	place = bpf_ntohs(h.fragment);
	ip->version = 4;
	ip->protocol = h.protocol;
	ip->hop_limit = h.hop_limit;
	ip->traffic_class = h.traffic_class;
	ip->fragment = (place & 0x3fff) != 0;
	ip->dont_fragment = (place & 0x4000) != 0;
	ip->length = bpf_ntohs(h.length);
	ip->id = bpf_ntohs(h.id);
	ip->checksum = h.checksum;
	ip->source[0] = ip->destination[0] = 0;
	ip->source[1] = 0xffff00000000ull | bpf_ntohl(h.source);
	ip->destination[1] = 0xffff00000000ull | bpf_ntohl(h.destination);
	ip->final[0] = 0;
	ip->final[1] = ip->destination[1];
	return 1;
}

WL_INLINE int wl_parse_ipv6(struct __sk_buff *skb, struct wl_ip *ip)
{
	struct wl_ipv6_header h;
	uint32_t first, length = skb->len, total;
	int n;

	if (bpf_skb_load_bytes(skb, WL_ETHERNET, &h, sizeof(h)))
		return 0;
	first = bpf_ntohl(h.first);
	if (first >> 28 != 6)
		return 0;
	total = bpf_ntohs(h.length);
	ip->payload = WL_ETHERNET + 40;
	ip->end = total && ip->payload + total < length ? ip->payload + total : length;
	ip->version = 6;
	ip->protocol = h.next;
	ip->hop_limit = h.hop_limit;
	ip->traffic_class = (uint8_t)(first >> 20);
	ip->fragment = 0;
	ip->dont_fragment = 1;
	ip->length = (uint16_t)total;
	ip->label = first & 0xfffff;
	ip->source[0] = bpf_be64_to_cpu(h.source[0]);
	ip->source[1] = bpf_be64_to_cpu(h.source[1]);
	ip->destination[0] = bpf_be64_to_cpu(h.destination[0]);
	ip->destination[1] = bpf_be64_to_cpu(h.destination[1]);
	ip->final[0] = ip->destination[0];
	ip->final[1] = ip->destination[1];
	for (n = 0; n < 8; n++) {
		uint8_t extension[4] = {};
		uint32_t bytes, place, have = ip->end - ip->payload;

		if (ip->protocol != 0 && ip->protocol != WL_ROUTING && ip->protocol != 44 && ip->protocol != 51 && ip->protocol != 60)
			return 1;
		if (have < 8 || bpf_skb_load_bytes(skb, ip->payload, extension, 4))
			return 0;
		bytes = ip->protocol == 44 ? 8 : ip->protocol == 51 ? 4 * extension[1] + 8 : 8 * extension[1] + 8;
		if (bytes > have)
			return 0;
		if (ip->protocol == 44) {
			place = extension[2] << 8 | extension[3];
			ip->fragment = (place & 0xfff9) != 0;
			ip->dont_fragment = !ip->fragment;
		}
		/* RFC 8754, section 2: the type, the segments that are left, and the list from the last segment on. */
		if (ip->protocol == WL_ROUTING && extension[2] == WL_SEGMENTS && extension[3] && bytes >= 24) {
			uint64_t last[2];

			if (bpf_skb_load_bytes(skb, ip->payload + 8, last, sizeof(last)))
				return 0;
			ip->final[0] = bpf_be64_to_cpu(last[0]);
			ip->final[1] = bpf_be64_to_cpu(last[1]);
		}
		ip->protocol = extension[0];
		ip->payload += bytes;
		if (ip->fragment)
			return 1;
	}
	return 0;
}

WL_APART int wl_parse(struct __sk_buff *skb, struct wl_ip *ip)
{
	int done = 0;

	if (!ip)
		return 0;
	__builtin_memset(ip, 0, sizeof(*ip));
	if (skb->protocol == bpf_htons(WL_IPV4) && !skb->vlan_present)
		done = wl_parse_ipv4(skb, ip);
	else if (skb->protocol == bpf_htons(WL_IPV6) && !skb->vlan_present)
		done = wl_parse_ipv6(skb, ip);
	if (!done)
		ip->version = 0;
	return done;
}

WL_INLINE uint64_t wl_fold_ends(const struct wl_ip *ip, const uint64_t destination[2])
{
	uint64_t id = wl_mix(ip->source[0]);

	id = wl_mix(id ^ ip->source[1]);
	id = wl_mix(id ^ destination[0]);
	id = wl_mix(id ^ destination[1]);
	return wl_mix(id ^ ip->protocol);
}

/* The first bytes of a transport header, as far as the packet's id and the flow's hash need them; what is not there is 0. */
struct wl_transport {
	/* The first eight bytes, if all are there. */
	uint64_t first;
	/* TCP: acknowledgement (upper half) and checksum. */
	uint64_t tcp;
	/* UDP without a checksum: the first 16 bytes of payload. */
	uint64_t udp[2];
	uint8_t no_checksum;
	/* Source port (upper half) and destination port of TCP or UDP. */
	uint32_t ports;
};

WL_APART int wl_transport(struct __sk_buff *skb, const struct wl_ip *ip, struct wl_transport *t)
{
	uint8_t bytes[24] = {};
	uint32_t have, n;

	if (!ip || !t)
		return 0;
	have = ip->end - ip->payload;
	__builtin_memset(t, 0, sizeof(*t));
	if (have >= 24) {
		if (bpf_skb_load_bytes(skb, ip->payload, bytes, 24))
			return 0;
	} else {
		for (n = 0; n < 24; n++) {
			if (n >= have || bpf_skb_load_bytes(skb, ip->payload + n, bytes + n, 1))
				break;
		}
		have = n;
	}
#define WL_BE16(at) ((uint64_t)bytes[at] << 8 | bytes[(at) + 1])
#define WL_BE32(at) (WL_BE16(at) << 16 | WL_BE16((at) + 2))
#define WL_BE64(at) (WL_BE32(at) << 32 | WL_BE32((at) + 4))
	if (have >= 8)
		t->first = WL_BE64(0);
	if (ip->protocol == WL_TCP) {
		/* A field that is cut off is 0 as a whole. */
		t->tcp = (have >= 12 ? WL_BE32(8) << 32 : 0) | (have >= 18 ? WL_BE16(16) : 0);
	} else if (ip->protocol == WL_UDP) {
		t->no_checksum = have < 8 || WL_BE16(6) == 0;
		if (have >= 8) {
			t->udp[0] = WL_BE64(8);
			t->udp[1] = WL_BE64(16);
		}
	}
	if (have >= 4 && !ip->fragment && (ip->protocol == WL_TCP || ip->protocol == WL_UDP))
		t->ports = (uint32_t)WL_BE32(0);
	return 1;
}

WL_INLINE uint64_t wl_packet_id(const struct wl_ip *ip, const struct wl_transport *t)
{
	uint64_t id = wl_mix(wl_fold_ends(ip, ip->final) ^ t->first);

	if (ip->protocol == WL_TCP)
		return wl_mix(id ^ t->tcp);
	if (ip->protocol == WL_UDP && t->no_checksum)
		return wl_mix(wl_mix(id ^ t->udp[0]) ^ t->udp[1]);
	return id;
}

/* Of the five-tuple: the same for all packets of a flow, fragments apart. */
WL_INLINE uint32_t wl_flow_hash(const struct wl_ip *ip, uint32_t ports)
{
	return (uint32_t)(wl_mix(wl_fold_ends(ip, ip->destination) ^ ports) >> 32);
}

/* The checksum of an IPv4 header (as it stands in memory) after one of its 16-bit words changed (RFC 1624, equation 3). */
WL_INLINE uint16_t wl_checksum_after(uint16_t checksum, uint16_t old, uint16_t new)
{
	uint32_t sum = (uint16_t)~checksum;

	sum += (uint16_t)~old;
	sum += new;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

#endif
