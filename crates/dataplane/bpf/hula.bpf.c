/*
 * HULA as tc programs: probes tell every switch which next hop leads over the least busy path to each rack; flowlets follow.
 *
 * hula_switch     ingress of every interface: takes in probes and passes on what is news; sends packets to other racks on by the best
 *                 hop, as a router would (hop limit, addresses of the link). All else goes to the kernel.
 * hula_departure  egress of every interface to a switch: the estimator, U <- D + U max(0, 1 - dt / tau)
 *
 * The law is that of crates/sim/src/balance (hula, estimator, flowlets; best_hops with one rank), number for number.
 *
 * A program cannot make packets: the first probe of a round is sent by a process at the ToR.
 *
 * Source: Katta et al., "HULA: scalable load balancing using programmable data planes", SOSR 2016.
 */
#include "hula_probes.h"

WL_INLINE int record(const struct hula_config *c, struct hula_tor *tor, uint32_t which, uint32_t port, uint8_t utilisation,
		     uint64_t now, uint8_t *best)
{
	uint32_t needed;
	int passes, better;

	(void)which;
	bpf_spin_lock(&tor->lock);
	needed = tor->port == port ? 0 : c->hysteresis;
	better = utilisation + needed < tor->utilisation;
	if (!tor->port || since(tor->received_ns, now) > c->failure_ns || better ||
	    (tor->port == port && c->flags & HULA_REFRESH)) {
		tor->port = port;
		tor->utilisation = utilisation;
		tor->received_ns = now;
	}
	passes = is_passed_on(c, tor, now);
	*best = tor->utilisation;
	bpf_spin_unlock(&tor->lock);
	return passes;
}

/* The port by which a packet leaves for a ToR. */
WL_INLINE uint32_t choose(const struct hula_config *c, const struct hula_tor *tor, uint32_t hash, uint64_t now)
{
	uint64_t candidates = tor->allowed;
	uint32_t place = (uint32_t)((uint64_t)salted(hash, c->salt) * c->slots >> 32), before, port;
	struct hula_flowlet *slot;

	if (!(candidates & (candidates - 1)))
		return unprobed(c, candidates, 0, now);
	slot = bpf_map_lookup_elem(&hula_flowlets, &place);
	if (!slot)
		return unprobed(c, candidates, 0, now);
	before = slot->port;
	if (before && since(slot->last_ns, now) <= c->gap_ns) {
		slot->last_ns = now;
		if (has(candidates, before - 1) && (!(c->flags & HULA_RELEASE) || is_alive(c, before - 1, now)))
			return before - 1;
	}
	port = tor->port;
	if (port && since(tor->received_ns, now) <= c->failure_ns && has(candidates, port - 1)) {
		port -= 1;
	} else {
		port = unprobed(c, candidates, salted(hash, ~c->salt), now);
		count(HULA_COUNT_UNPROBED);
	}
	slot->port = port + 1;
	slot->last_ns = now;
	count(HULA_COUNT_FLOWLETS);
	if (before && before != port + 1)
		count(HULA_COUNT_MOVED);
	return port;
}

WL_INLINE int forward(struct __sk_buff *skb, const struct hula_config *c)
{
	struct wl_transport transport;
	struct hula_port *port;
	struct hula_tor *tor;
	struct wl_ip ip;
	uint32_t number, longest = 0;

	if (skb->pkt_type != PACKET_HOST || !wl_parse(skb, &ip))
		return WL_NEXT;
	number = rack_of(&ip);
	if (!number || number == c->own)
		return WL_NEXT;
	number -= 1;
	tor = bpf_map_lookup_elem(&hula_tors, &number);
	if (!tor || !tor->allowed)
		return WL_NEXT;
	if (ip.hop_limit <= 1) {
		count(HULA_COUNT_LEFT);
		return WL_NEXT;
	}
	wl_transport(skb, &ip, &transport);
	number = choose(c, tor, wl_flow_hash(&ip, transport.ports), wl_now(skb, c->replay));
	port = bpf_map_lookup_elem(&hula_ports, &number);
	if (!port || bpf_check_mtu(skb, port->interface, &longest, 0, 0)) {
		count(HULA_COUNT_LEFT);
		return WL_NEXT;
	}
	write_hop_limit(skb, &ip);
	bpf_skb_store_bytes(skb, 0, port->addresses, sizeof(port->addresses), 0);
	count(HULA_COUNT_DATA);
	return bpf_redirect(port->interface, 0);
}

SEC("tc")
int hula_switch(struct __sk_buff *skb)
{
	const struct hula_config *c = config();
	uint32_t port = port_at(skb->ifindex);

	if (!c || !port)
		return WL_NEXT;
	if (skb->protocol == bpf_htons(HULA_ETHERTYPE))
		return take_in(skb, c, port - 1);
	return forward(skb, c);
}

char weftline_license[] SEC("license") = "Dual MIT/GPL";
