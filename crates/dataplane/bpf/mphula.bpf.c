/*
 * MP-HULA as tc programs: HULA with the k best hops, for the subflows of multipath TCP.
 *
 * mphula_switch   ingress of every interface: takes in probes and passes on what is news; at the first ToR marks packets of known
 *                 subflows with connection and subflow, sends packets to other racks on by the hop of their rank, at the last ToR
 *                 takes the mark out. All else goes to the kernel.
 * hula_departure  egress of every interface to a switch: the estimator, as in HULA
 *
 * The law is that of crates/sim/src/balance (hula, best_hops, steering, subflows, connections), number for number. A process at the ToR
 * hashes keys: a packet with both keys of a connection goes to the ring buffer, and what the process writes into the maps counts from the
 * next packet on. Subflows that join are then found by their token here, with their first packet.
 *
 * Marks are options of IPv4; packets of IPv6 have none and take the best hop. Where a table is full, the kernel removes what was
 * not used for long.
 *
 * Source: Benet et al., "MP-HULA: multipath transport aware load balancing using programmable data planes", NetCompute 2018; RFC 8684
 * (and 6824) §3.1, §3.2.
 */
#include "hula_probes.h"
#include "mphula_tc.h"

#define TCP_HEADER 20
#define TCP_SYN 2
#define TCP_RST 4
#define MPTCP 30
#define CAPABLE 0
#define JOIN 1
/* Bytes of both keys in MP_CAPABLE, and of MP_JOIN in a first packet. */
#define WITH_KEYS 20
#define JOIN_FIRST 12
#define MARK_BYTES 12
#define IPV4_HEADER 20
/* The simulator's word has that many bits of a connection less: 59. */
#define CUT_BITS 5

HULA_MAP(mphula_config, BPF_MAP_TYPE_ARRAY, 1, uint32_t, struct mphula_config);
HULA_MAP(mphula_hops, BPF_MAP_TYPE_ARRAY, HULA_TORS, uint32_t, struct mphula_hops);
HULA_MAP(mphula_used, BPF_MAP_TYPE_ARRAY, MPHULA_USED, uint32_t, struct mphula_used);
HULA_MAP(mphula_subflows, BPF_MAP_TYPE_LRU_HASH, MPHULA_SUBFLOWS, struct mphula_ends, struct mphula_subflow);
HULA_MAP(mphula_tokens, BPF_MAP_TYPE_LRU_HASH, 2 * MPHULA_SUBFLOWS, uint32_t, uint64_t);
HULA_MAP(mphula_connections, BPF_MAP_TYPE_LRU_HASH, MPHULA_SUBFLOWS, uint64_t, struct mphula_connection);

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, MPHULA_RING);
} mphula_keys SEC(".maps");

WL_INLINE const struct mphula_config *own_config(void)
{
	uint32_t zero = 0;

	return bpf_map_lookup_elem(&mphula_config, &zero);
}

WL_INLINE struct mphula_hop *hop_at(struct mphula_hops *table, uint32_t rank)
{
	WL_OPAQUE(rank);
	return &table->hops[rank & (MPHULA_RANKS - 1)];
}

/* The table takes in what a probe says; the ToR's lock is held. */
WL_INLINE void rank(struct mphula_hops *table, const struct hula_config *c, const struct mphula_config *m, uint32_t port,
		    uint32_t utilisation, uint64_t now)
{
	uint32_t used = 0, known = MPHULA_RANKS, k = m->ranks, n, at;

	/* Hops that were not heard of for too long are forgotten. */
	for (n = 0; n < MPHULA_RANKS; n++) {
		if (n >= table->used)
			break;
		if (since(table->hops[n].received_ns, now) > c->failure_ns)
			continue;
		*hop_at(table, used) = table->hops[n];
		used++;
	}
	WL_OPAQUE(used);
	if (used > MPHULA_RANKS)
		used = MPHULA_RANKS;
	for (n = 0; n < MPHULA_RANKS; n++) {
		if (n < used && table->hops[n].port == port)
			known = n;
	}
	at = MPHULA_RANKS;
	if (known < MPHULA_RANKS) {
		if (c->flags & HULA_REFRESH || utilisation < hop_at(table, known)->utilisation)
			at = known;
	} else if (used < k) {
		at = used;
		used++;
	} else if (utilisation + m->hysteresis < hop_at(table, k - 1)->utilisation) {
		at = k - 1;
	}
	if (at < MPHULA_RANKS) {
		struct mphula_hop *hop = hop_at(table, at);

		hop->port = port;
		hop->utilisation = utilisation;
		hop->received_ns = now;
	}
	WL_OPAQUE(used);
	table->used = used;
	/* A hop passes the one above if it is better by more than the hysteresis. */
	for (n = 1; n < MPHULA_RANKS; n++) {
		if (n >= used)
			break;
		for (at = n; at > 0; at--) {
			struct mphula_hop *above = hop_at(table, at - 1), *hop = hop_at(table, at), kept;

			if (hop->utilisation + m->hysteresis >= above->utilisation)
				break;
			kept = *above;
			*above = *hop;
			*hop = kept;
		}
	}
}

WL_INLINE int record(const struct hula_config *c, struct hula_tor *tor, uint32_t which, uint32_t port, uint8_t utilisation,
		     uint64_t now, uint8_t *best)
{
	struct mphula_hops *table = bpf_map_lookup_elem(&mphula_hops, &which);
	const struct mphula_config *m = own_config();
	int passes;

	if (!table || !m)
		return 0;
	bpf_spin_lock(&tor->lock);
	rank(table, c, m, port, utilisation, now);
	tor->port = table->hops[0].port;
	tor->utilisation = table->hops[0].utilisation;
	tor->received_ns = table->hops[0].received_ns;
	passes = is_passed_on(c, tor, now);
	*best = tor->utilisation;
	bpf_spin_unlock(&tor->lock);
	return passes;
}

/* a <= b as 1 or 0, for numbers less than 2^63 apart. Without a branch: the verifier would follow each way through a loop of them. */
WL_INLINE uint64_t at_most(uint64_t a, uint64_t b)
{
	uint64_t apart = b - a;

	WL_OPAQUE(apart);
	return apart >> 63 ^ 1;
}

/* Where the ports of a connection are. */
WL_INLINE struct mphula_used *used_by(uint64_t connection)
{
	uint32_t place = wl_mix(connection) & (MPHULA_USED - 1);

	return bpf_map_lookup_elem(&mphula_used, &place);
}

/* The ports that other subflows of the connection use. */
WL_APART uint64_t taken(const struct mphula_subflow *mark, uint64_t lasts, uint64_t now)
{
	struct mphula_used *used;
	uint64_t ports = 0;
	uint32_t n;

	if (!mark)
		return 0;
	used = used_by(mark->connection);
	if (!used)
		return 0;
	bpf_spin_lock(&used->lock);
	for (n = 0; n < MPHULA_NUMBERS; n++) {
		uint64_t port = used->ports[n];
		uint64_t uses = at_most(1, port) & at_most(now, used->last_ns[n] + lasts);

		ports |= uses << ((port - 1) & (HULA_PORTS - 1)) & (n == mark->number ? 0 : ~0ull);
	}
	if (used->connection != mark->connection)
		ports = 0;
	bpf_spin_unlock(&used->lock);
	return ports;
}

/* A packet of a subflow leaves by a port. */
WL_APART int uses(const struct mphula_subflow *mark, uint32_t port, uint64_t now)
{
	struct mphula_used *used;
	uint32_t number, n;

	if (!mark)
		return 0;
	used = used_by(mark->connection);
	if (!used)
		return 0;
	number = mark->number & (MPHULA_NUMBERS - 1);
	bpf_spin_lock(&used->lock);
	if (used->connection != mark->connection) {
		used->connection = mark->connection;
		for (n = 0; n < MPHULA_NUMBERS; n++) {
			used->ports[n] = 0;
			used->last_ns[n] = 0;
		}
	}
	used->ports[number] = (uint8_t)(port + 1);
	used->last_ns[number] = now;
	bpf_spin_unlock(&used->lock);
	return 0;
}

WL_APART int is_unheard(uint32_t number)
{
	struct hula_port *port = bpf_map_lookup_elem(&hula_ports, &number);

	return port && !port->probed_ns;
}

/* A port that no probe came by yet and that is not taken, from a place by hash on, plus 1; 0: there is none. */
WL_APART uint32_t unheard(uint64_t candidates, uint64_t not_taken, uint32_t hash)
{
	uint64_t open = 0, later;
	uint32_t number, ports = __builtin_popcountll(candidates);

	if (!ports)
		return 0;
	for (number = 0; number < HULA_PORTS; number++)
		open |= (uint64_t)(is_unheard(number) & 1) << number;
	open &= candidates & not_taken;
	if (!open)
		return 0;
	later = open & (~0ull << (nth(candidates, hash % ports) & (HULA_PORTS - 1)));
	return nth(later ? later : open, 0) + 1;
}

/*
 * The hop to a ToR for a new flowlet, its port plus 1; 0: none is alive. With a mark: the one of the subflow's rank, or the next in turn whose port is
 * not taken.
 */
WL_APART uint32_t ranked(uint32_t which, const struct mphula_subflow *mark, uint64_t not_free, uint64_t now)
{
	struct mphula_hops *table = bpf_map_lookup_elem(&mphula_hops, &which);
	struct hula_tor *tor = bpf_map_lookup_elem(&hula_tors, &which);
	const struct mphula_config *m = own_config();
	const struct hula_config *c = config();
	uint64_t hops = 0, open = 0, later, start = 0;
	uint8_t ports[MPHULA_RANKS] = {};
	uint32_t live = 0, at = 0, n;

	if (!table || !tor || !m || !c)
		return 0;
	bpf_spin_lock(&tor->lock);
	for (n = 0; n < MPHULA_RANKS; n++) {
		struct mphula_hop *hop = &table->hops[n];
		uint64_t place = (hop->port - 1) & (HULA_PORTS - 1);
		uint64_t lives = at_most(n + 1, table->used) & at_most(now, hop->received_ns + c->failure_ns) &
				 tor->allowed >> place;

		ports[n] = (uint8_t)hop->port;
		hops |= lives << n;
		open |= (lives & ~(not_free >> place)) << n;
		live += lives;
	}
	bpf_spin_unlock(&tor->lock);
	if (!live)
		return 0;
	if (mark) {
		if (m->flags & MPHULA_HASHED)
			start = wl_mix(mark->connection ^ m->tier) >> 32;
		at = (mark->number / m->divisor % m->ranks + start) % live;
	}
	at = nth(hops, at);
	later = open & (~0ull << (at & (MPHULA_RANKS - 1)));
	if (open)
		at = nth(later ? later : open, 0);
	WL_OPAQUE(at);
	return ports[at & (MPHULA_RANKS - 1)];
}

/* The port by which a packet leaves for a ToR. */
WL_INLINE uint32_t choose(const struct hula_config *c, const struct mphula_config *m, struct hula_tor *tor, uint32_t which,
			  uint32_t hash, const struct mphula_subflow *mark, uint64_t now)
{
	uint64_t candidates = tor->allowed, not_free = 0;
	uint32_t place = (uint32_t)((uint64_t)salted(hash, c->salt) * c->slots >> 32), before, port, fresh;
	struct hula_flowlet *slot;
	int parts = mark && m->flags & MPHULA_DISJOINT;

	if (!(candidates & (candidates - 1)))
		return unprobed(c, candidates, 0, now);
	slot = bpf_map_lookup_elem(&hula_flowlets, &place);
	if (!slot)
		return unprobed(c, candidates, 0, now);
	before = slot->port;
	if (before && since(slot->last_ns, now) <= c->gap_ns) {
		slot->last_ns = now;
		if (has(candidates, before - 1) && (!(c->flags & HULA_RELEASE) || is_alive(c, before - 1, now))) {
			if (parts)
				uses(mark, before - 1, now);
			return before - 1;
		}
	}
	if (parts)
		not_free = taken(mark, c->failure_ns, now);
	port = ranked(which, mark, not_free, now);
	/* A sender without gaps would stay on a port that another of its subflows uses. */
	if (parts && (!port || has(not_free, port - 1))) {
		fresh = unheard(candidates, ~not_free, salted(hash, ~c->salt));
		if (fresh)
			port = fresh;
	}
	if (port) {
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
	if (parts)
		uses(mark, port, now);
	return port;
}

/* The first MPTCP option of a TCP header: where it is; 0: none, or what is there is cut off. */
WL_INLINE uint32_t option_of(struct __sk_buff *skb, uint32_t at, uint32_t end, uint8_t *start)
{
	uint32_t n;

	for (n = 0; n < 40; n++) {
		if (at + 2 > end || bpf_skb_load_bytes(skb, at, start, 2) || !start[0])
			return 0;
		if (start[0] == 1) {
			at += 1;
			continue;
		}
		if (start[1] < 2 || at + start[1] > end)
			return 0;
		if (start[0] == MPTCP)
			return start[1] > 2 && !bpf_skb_load_bytes(skb, at, start, 3) ? at : 0;
		at += start[1];
	}
	return 0;
}

/* A subflow has ended; with its last one, the connection. */
WL_INLINE void forget(const struct mphula_ends *ends, uint64_t connection)
{
	struct mphula_connection *live;
	uint32_t tokens[2] = {(uint32_t)(connection >> 32), (uint32_t)connection}, n;
	uint64_t *named;

	bpf_map_delete_elem(&mphula_subflows, ends);
	live = bpf_map_lookup_elem(&mphula_connections, &connection);
	if (!live)
		return;
	live->subflows -= 1;
	if (live->subflows)
		return;
	bpf_map_delete_elem(&mphula_connections, &connection);
	for (n = 0; n < 2; n++) {
		named = bpf_map_lookup_elem(&mphula_tokens, &tokens[n]);
		if (named && *named == connection)
			bpf_map_delete_elem(&mphula_tokens, &tokens[n]);
	}
}

/* A subflow joins the connection that its first packet names by a token. */
WL_INLINE int join(const struct mphula_ends *ends, uint32_t token, struct mphula_subflow *mark)
{
	uint64_t *connection = bpf_map_lookup_elem(&mphula_tokens, &token);
	struct mphula_connection *live = connection ? bpf_map_lookup_elem(&mphula_connections, connection) : 0;

	if (!live) {
		count(MPHULA_COUNT_STRANGERS);
		return 0;
	}
	mark->connection = *connection;
	mark->number = live->next & (MPHULA_NUMBERS - 1);
	live->next = (live->next + 1) & (MPHULA_NUMBERS - 1);
	live->subflows += 1;
	bpf_map_update_elem(&mphula_subflows, ends, mark, BPF_ANY);
	count(MPHULA_COUNT_JOINED);
	return 1;
}

/* Whose subflow a packet is, of these ends as the ToR's own host sends; learns from the packet. Returns whether it is known. */
WL_APART int identify(struct __sk_buff *skb, const struct wl_ip *ip, const struct mphula_ends *ends, struct mphula_subflow *mark)
{
	uint8_t header[TCP_HEADER], start[4] = {};
	uint32_t at, end, token;
	struct mphula_subflow *known;
	int begins;

	if (!ip || !ends || !mark)
		return 0;
	if (ip->version != 4 || ip->protocol != WL_TCP || ip->fragment || ip->end - ip->payload < TCP_HEADER)
		return 0;
	if (bpf_skb_load_bytes(skb, ip->payload, header, sizeof(header)))
		return 0;
	known = bpf_map_lookup_elem(&mphula_subflows, ends);
	begins = (header[13] & (TCP_SYN | 16)) == TCP_SYN;
	if (known) {
		*mark = *known;
		if (header[13] & TCP_RST)
			forget(ends, mark->connection);
		else if (begins)
			goto options;
		return 1;
	}
	if (header[13] & TCP_RST)
		return 0;
options:
	end = ip->payload + 4 * (header[12] >> 4);
	at = option_of(skb, ip->payload + TCP_HEADER, end < ip->end ? end : ip->end, start);
	if (!at)
		return 0;
	if (start[2] >> 4 == JOIN && start[1] == JOIN_FIRST) {
		/* The same first packet again is the same subflow. */
		if (known)
			return 1;
		if (bpf_skb_load_bytes(skb, at + 4, &token, sizeof(token)))
			return 0;
		return join(ends, bpf_ntohl(token), mark);
	}
	if (start[2] >> 4 == CAPABLE && (start[1] == WITH_KEYS || start[1] == WITH_KEYS + 2 || start[1] == WITH_KEYS + 4)) {
		struct mphula_keys news = {.ends = *ends, .version = start[2] & 15};

		if (bpf_skb_load_bytes(skb, at + 4, news.keys, sizeof(news.keys)))
			return 0;
		news.keys[0] = bpf_be64_to_cpu(news.keys[0]);
		news.keys[1] = bpf_be64_to_cpu(news.keys[1]);
		count(MPHULA_COUNT_KEYS);
		if (bpf_ringbuf_output(&mphula_keys, &news, sizeof(news), 0))
			count(MPHULA_COUNT_MISSED);
	}
	return 0;
}

/* A mark as it lies in the packet. */
struct mphula_mark {
	uint8_t option;
	uint8_t length;
	uint8_t kind;
	uint8_t number;
	/* In network byte order. */
	uint32_t connection[2];
};

/* The mark of a packet, the first option of its header. */
WL_INLINE int read_mark(struct __sk_buff *skb, const struct wl_ip *ip, struct mphula_mark *mark)
{
	if (ip->version != 4 || ip->payload < WL_ETHERNET + IPV4_HEADER + MARK_BYTES)
		return 0;
	if (bpf_skb_load_bytes(skb, WL_ETHERNET + IPV4_HEADER, mark, sizeof(*mark)))
		return 0;
	return mark->option == MPHULA_OPTION && mark->length == MARK_BYTES && mark->kind == MPHULA_KIND;
}

/* The header after an option of 12 bytes came (or went), and its checksum. */
WL_INLINE void resize(struct __sk_buff *skb, struct wl_ip *ip, const struct mphula_mark *mark, int comes)
{
	uint32_t words = (ip->payload - WL_ETHERNET) / 4, n;
	uint16_t old = bpf_htons((0x40 | words) << 8 | ip->traffic_class), new, length;
	uint16_t option[MARK_BYTES / 2], sum;
	uint8_t first;

	words += comes ? MARK_BYTES / 4 : -(MARK_BYTES / 4);
	new = bpf_htons((0x40 | words) << 8 | ip->traffic_class);
	/* A packet without a length, before segmentation offload, keeps none. */
	length = ip->length ? ip->length + (comes ? MARK_BYTES : -MARK_BYTES) : 0;
	sum = wl_checksum_after(ip->checksum, old, new);
	sum = wl_checksum_after(sum, bpf_htons(ip->length), bpf_htons(length));
	__builtin_memcpy(option, mark, sizeof(option));
	for (n = 0; n < MARK_BYTES / 2; n++)
		sum = comes ? wl_checksum_after(sum, 0, option[n]) : wl_checksum_after(sum, option[n], 0);
	ip->checksum = sum;
	ip->length = length;
	ip->payload = WL_ETHERNET + 4 * words;
	first = 0x40 | words;
	length = bpf_htons(length);
	bpf_skb_store_bytes(skb, WL_ETHERNET, &first, 1, 0);
	bpf_skb_store_bytes(skb, WL_ETHERNET + 2, &length, 2, 0);
	bpf_skb_store_bytes(skb, WL_ETHERNET + 10, &sum, 2, 0);
}

/* There is room for a mark. */
WL_INLINE int fits(const struct wl_ip *ip)
{
	return ip->payload <= WL_ETHERNET + 60 - MARK_BYTES && ip->length <= 0xffff - MARK_BYTES;
}

WL_INLINE int write_mark(struct __sk_buff *skb, struct wl_ip *ip, const struct mphula_subflow *subflow)
{
	struct mphula_mark mark = {MPHULA_OPTION, MARK_BYTES, MPHULA_KIND, (uint8_t)subflow->number, {}};

	mark.connection[0] = bpf_htonl(subflow->connection >> 32);
	mark.connection[1] = bpf_htonl((uint32_t)subflow->connection);
	if (bpf_skb_adjust_room(skb, MARK_BYTES, BPF_ADJ_ROOM_NET, 0))
		return 0;
	bpf_skb_store_bytes(skb, WL_ETHERNET + IPV4_HEADER, &mark, sizeof(mark), 0);
	resize(skb, ip, &mark, 1);
	count(MPHULA_COUNT_MARKED);
	return 1;
}

/* A packet for a host of this ToR, from above. */
WL_INLINE int arrive(struct __sk_buff *skb, struct wl_ip *ip, const struct mphula_mark *mark, int marked)
{
	struct mphula_subflow subflow = {};
	struct mphula_ends back = {};
	struct wl_transport transport;

	wl_transport(skb, ip, &transport);
	__builtin_memcpy(back.source, ip->destination, sizeof(back.source));
	__builtin_memcpy(back.destination, ip->source, sizeof(back.destination));
	back.ports = transport.ports << 16 | transport.ports >> 16;
	identify(skb, ip, &back, &subflow);
	if (!marked)
		return WL_NEXT;
	if (bpf_skb_adjust_room(skb, -MARK_BYTES, BPF_ADJ_ROOM_NET, 0))
		return TC_ACT_SHOT;
	resize(skb, ip, mark, 0);
	count(MPHULA_COUNT_CLEARED);
	return WL_NEXT;
}

WL_INLINE int forward(struct __sk_buff *skb, const struct hula_config *c, const struct mphula_config *m, uint32_t from)
{
	int from_host = !has(c->up | c->down, from), marked, known = 0, grows = 0;
	struct mphula_subflow subflow = {};
	struct wl_transport transport;
	struct mphula_mark mark = {};
	uint32_t which, number, longest = 0;
	struct hula_port *port;
	struct hula_tor *tor;
	struct wl_ip ip;

	if (skb->pkt_type != PACKET_HOST || !wl_parse(skb, &ip))
		return WL_NEXT;
	marked = read_mark(skb, &ip, &mark);
	if (marked && from_host) {
		count(MPHULA_COUNT_FORGED);
		return TC_ACT_SHOT;
	}
	which = rack_of(&ip);
	if (!which)
		return WL_NEXT;
	if (which == c->own)
		return from_host || !(m->flags & MPHULA_STEERS) ? WL_NEXT : arrive(skb, &ip, &mark, marked);
	which -= 1;
	tor = bpf_map_lookup_elem(&hula_tors, &which);
	if (!tor || !tor->allowed)
		return WL_NEXT;
	if (ip.hop_limit <= 1) {
		count(HULA_COUNT_LEFT);
		return WL_NEXT;
	}
	wl_transport(skb, &ip, &transport);
	if (m->flags & MPHULA_STEERS && from_host && c->own) {
		struct mphula_ends ends = {.ports = transport.ports};

		__builtin_memcpy(ends.source, ip.source, sizeof(ends.source));
		__builtin_memcpy(ends.destination, ip.destination, sizeof(ends.destination));
		known = identify(skb, &ip, &ends, &subflow) && fits(&ip);
		grows = known;
	} else if (m->flags & MPHULA_STEERS && marked) {
		known = 1;
		subflow.number = mark.number & (MPHULA_NUMBERS - 1);
		subflow.connection = (uint64_t)bpf_ntohl(mark.connection[0]) << 32 | bpf_ntohl(mark.connection[1]);
	}
	{
		struct mphula_subflow steered = subflow;

		steered.connection &= ~0ull << CUT_BITS;
		number = choose(c, m, tor, which, wl_flow_hash(&ip, transport.ports), known ? &steered : 0,
				wl_now(skb, c->replay));
	}
	port = bpf_map_lookup_elem(&hula_ports, &number);
	if (!port || bpf_check_mtu(skb, port->interface, &longest, grows ? MARK_BYTES : 0, 0)) {
		count(HULA_COUNT_LEFT);
		return WL_NEXT;
	}
	if (grows && !write_mark(skb, &ip, &subflow))
		return TC_ACT_SHOT;
	write_hop_limit(skb, &ip);
	bpf_skb_store_bytes(skb, 0, port->addresses, sizeof(port->addresses), 0);
	count(HULA_COUNT_DATA);
	return bpf_redirect(port->interface, 0);
}

SEC("tc")
int mphula_switch(struct __sk_buff *skb)
{
	const struct hula_config *c = config();
	const struct mphula_config *m = own_config();
	uint32_t port = port_at(skb->ifindex);

	if (!c || !m || !port)
		return WL_NEXT;
	if (skb->protocol == bpf_htons(HULA_ETHERTYPE))
		return take_in(skb, c, port - 1);
	return forward(skb, c, m, port - 1);
}

char weftline_license[] SEC("license") = "Dual MIT/GPL";
