/*
 * ECN as a tc program: a packet that finds a long queue at its port is marked "congestion experienced".
 *
 * ecn_mark  egress of every interface whose port marks
 *
 * The queue is what waits in the interface's root discipline before the packet. Up to kmin nothing is marked, beyond kmax every packet
 * whose sender knows ECN; between them with a chance that grows from 0 to pmax. kmin = kmax is the step of DCTCP.
 *
 * Source: the switch of Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 3. Kernel: 6.2 (the
 * true queue).
 */
#include "weftline_tc.h"
#include "ecn_tc.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1024);
	__type(key, uint32_t);
	__type(value, struct ecn_port);
} ecn_ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ECN_COUNTS);
	__type(key, uint32_t);
	__type(value, uint64_t);
} ecn_counts SEC(".maps");

#define ECN_BITS 3

WL_INLINE void count(uint32_t kind)
{
	uint64_t *counter = bpf_map_lookup_elem(&ecn_counts, &kind);

	if (counter)
		*counter += 1;
}

WL_INLINE int marks(const struct ecn_port *port, uint64_t queue, uint32_t coin)
{
	if (queue <= port->kmin)
		return 0;
	if (queue > port->kmax)
		return 1;
	/* Above kmin and not above kmax: they differ. */
	return coin < port->pmax * (queue - port->kmin) / (port->kmax - port->kmin);
}

/* The header's first two bytes are version and length, and class of traffic; in IPv6 the class lies four bits further. */
WL_INLINE void mark(struct __sk_buff *skb, const struct wl_ip *ip)
{
	uint8_t bytes[2];
	uint16_t before, after, checksum;

	if (bpf_skb_load_bytes(skb, WL_ETHERNET, bytes, 2))
		return;
	before = bpf_htons((uint16_t)(bytes[0] << 8 | bytes[1]));
	bytes[1] |= ip->version == 4 ? ECN_BITS : ECN_BITS << 4;
	after = bpf_htons((uint16_t)(bytes[0] << 8 | bytes[1]));
	bpf_skb_store_bytes(skb, WL_ETHERNET, bytes, 2, 0);
	if (ip->version == 4) {
		checksum = wl_checksum_after(ip->checksum, before, after);
		bpf_skb_store_bytes(skb, WL_ETHERNET + 10, &checksum, 2, 0);
	}
}

SEC("tc")
int ecn_mark(struct __sk_buff *skb)
{
	uint32_t interface = skb->ifindex, coin;
	const struct ecn_port *port = bpf_map_lookup_elem(&ecn_ports, &interface);
	uint64_t queue;
	struct wl_ip ip;

	if (!port || !port->on)
		return WL_NEXT;
	queue = wl_queue(skb, port->replay);
	coin = port->replay ? WL_FIELD(skb->cb[0]) : bpf_get_prandom_u32();
	wl_parse(skb, &ip);
	if (!ip.version)
		return WL_NEXT;
	count(ECN_COUNT_PASSED);
	if (!marks(port, queue, coin) || (ip.traffic_class & ECN_BITS) == ECN_BITS)
		return WL_NEXT;
	if (!(ip.traffic_class & ECN_BITS)) {
		count(ECN_COUNT_NOT_CAPABLE);
		return WL_NEXT;
	}
	mark(skb, &ip);
	count(ECN_COUNT_MARKED);
	return WL_NEXT;
}

char weftline_license[] SEC("license") = "Dual MIT/GPL";
