/*
 * DCTCP as a congestion control of the kernel's TCP (struct_ops), for kernels that were built without one.
 *
 *   M     = packets delivered with an echoed mark / packets delivered, per window of data
 *   alpha = (1 - g) alpha + g M
 *   cwnd  = cwnd (1 - alpha / 2)   with a mark, once per window of data; growth and losses as Reno
 *
 * Receivers echo every change of marks at once (RFC 8257, section 3.2).
 *
 * The law is that of crates/sim/src/congestion/window/dctcp.rs, with alpha in units of 2^-20.
 *
 * Source: Bensley, Thaler, Balasubramanian, Eggert, Judd, RFC 8257, sections 3.2 (echo), 3.3 (alpha), 3.4 (cut), 3.5 (losses),
 * 4.2 (g = 1/16, alpha begins at 1).
 * Differs from the source: shares are of packets and not of bytes, as the kernel counts what was delivered with an echo.
 *
 * Whoever registers this object writes an id in place of the six zeros of `wl_000000_` wherever they stand, so that two may be
 * registered at a time, and the parameters after the mark of `dctcp_settings`.
 */
#include <stdint.h>

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "dctcp.h"

/* Parts of the kernel's types, found by their names at load time. */
struct sock {
} __attribute__((preserve_access_index));

struct inet_connection_sock {
	struct {
		uint8_t pending;
	} icsk_ack;
	uint64_t icsk_ca_priv[13];
} __attribute__((preserve_access_index));

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	uint32_t snd_cwnd;
	uint32_t snd_cwnd_cnt;
	uint32_t snd_ssthresh;
	uint32_t prior_cwnd;
	uint32_t max_packets_out;
	uint32_t snd_una;
	uint32_t snd_nxt;
	uint32_t rcv_nxt;
	uint32_t delivered;
	uint32_t delivered_ce;
	uint32_t lost_out;
	uint8_t ecn_flags;
} __attribute__((preserve_access_index));

enum tcp_ca_event { CA_EVENT_ECN_NO_CE = 4, CA_EVENT_ECN_IS_CE = 5 };

struct tcp_congestion_ops {
	uint32_t (*ssthresh)(struct sock *);
	void (*cong_avoid)(struct sock *, uint32_t, uint32_t);
	void (*cwnd_event)(struct sock *, enum tcp_ca_event);
	void (*in_ack_event)(struct sock *, uint32_t);
	uint32_t (*undo_cwnd)(struct sock *);
	void (*init)(struct sock *);
	uint32_t flags;
	char name[16];
};

/* TCP_CONG_NEEDS_ECN: connections ask for ECN and hear of every mark. */
#define NEEDS_ECN 2
/* TCP_ECN_DEMAND_CWR: acknowledgements carry the echo. */
#define ECHO 4
/* ICSK_ACK_TIMER: an acknowledgement is being delayed. */
#define DELAYED 2
#define SMALLEST_WINDOW 2
/* TCP_INFINITE_SSTHRESH: there was no cut yet. */
#define NO_THRESHOLD 0x7fffffff

/* Of a connection, in the words that the kernel keeps for its congestion control. */
struct dctcp_state {
	uint32_t alpha;
	/* The window of data ends when what comes before this byte is acknowledged. */
	uint32_t window_end;
	/* Of what the kernel counts since the connection began, as the window of data began. */
	uint32_t delivered;
	uint32_t marked;
	/* As receiver: the last packet was marked, and what was expected next before it. */
	uint32_t was_marked;
	uint32_t expected;
};

_Static_assert(sizeof(struct dctcp_state) <= sizeof(((struct inet_connection_sock *)0)->icsk_ca_priv), "it fits");

const volatile struct dctcp_settings dctcp_settings = {
	.mark = DCTCP_MARK,
	.gain = DCTCP_ONE / 16,
	.first_alpha = DCTCP_ONE,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DCTCP_WINDOWS + 1);
	__type(key, uint32_t);
	__type(value, struct dctcp_window);
} wl_000000_alpha SEC(".maps");

/* The kernel's call: a word for each argument, the first of them the socket. */
#define SOCKET(call) ((struct sock *)(call)[0])

static __always_inline struct dctcp_state *state_of(struct sock *sk)
{
	return (struct dctcp_state *)((struct tcp_sock *)sk)->inet_conn.icsk_ca_priv;
}

/* Writes a window of data down; the entry before the first counts them. */
static __always_inline void note(const struct dctcp_window *window)
{
	uint32_t key = 0;
	struct dctcp_window *place = bpf_map_lookup_elem(&wl_000000_alpha, &key);

	if (!place)
		return;
	key = ++place->delivered;
	if (key <= DCTCP_WINDOWS)
		bpf_map_update_elem(&wl_000000_alpha, &key, window, BPF_ANY);
}

static __always_inline void begin_window(const struct tcp_sock *tcp, struct dctcp_state *state)
{
	state->window_end = tcp->snd_nxt;
	state->delivered = tcp->delivered;
	state->marked = tcp->delivered_ce;
}

SEC("struct_ops/dctcp_init")
int dctcp_init(uint64_t *call)
{
	struct sock *sk = SOCKET(call);
	const struct tcp_sock *tcp = (struct tcp_sock *)sk;
	struct dctcp_state *state = state_of(sk);

	state->alpha = dctcp_settings.first_alpha;
	state->was_marked = 0;
	state->expected = tcp->rcv_nxt;
	begin_window(tcp, state);
	return 0;
}

/* The window after a cut of a window. */
static __always_inline uint32_t after_cut(const struct tcp_sock *tcp, const struct dctcp_state *state, uint32_t window)
{
	if (tcp->lost_out)
		window /= 2;
	else
		window -= (uint32_t)(((uint64_t)window * state->alpha) / (2 * DCTCP_ONE));
	return window > SMALLEST_WINDOW ? window : SMALLEST_WINDOW;
}

/*
 * A threshold is never above the window that was cut. Under Linux 6.18 it is in some runs, for a cut or two within milliseconds, of one
 * connection or several: not what dctcp_cut returned, but an address of the kernel. Sets it and the window again, and counts it.
 */
static __always_inline void mend_threshold(struct tcp_sock *tcp, const struct dctcp_state *state)
{
	uint32_t before = tcp->prior_cwnd, threshold = tcp->snd_ssthresh, key = 0;
	struct dctcp_window *place;

	if (!before || threshold <= before || threshold == NO_THRESHOLD)
		return;
	place = bpf_map_lookup_elem(&wl_000000_alpha, &key);
	if (place)
		place->marked++;
	tcp->snd_ssthresh = after_cut(tcp, state, before);
	if (tcp->snd_cwnd > before)
		tcp->snd_cwnd = before;
}

SEC("struct_ops/dctcp_acknowledged")
int dctcp_acknowledged(uint64_t *call)
{
	struct sock *sk = SOCKET(call);
	struct tcp_sock *tcp = (struct tcp_sock *)sk;
	struct dctcp_state *state = state_of(sk);
	struct dctcp_window window = {.before = state->alpha};
	uint64_t gain = dctcp_settings.gain, alpha;

	mend_threshold(tcp, state);
	if ((int32_t)(tcp->snd_una - state->window_end) <= 0)
		return 0;
	window.delivered = tcp->delivered - state->delivered;
	window.marked = tcp->delivered_ce - state->marked;
	alpha = (DCTCP_ONE - gain) * state->alpha;
	if (window.delivered)
		alpha += gain * ((uint64_t)window.marked * DCTCP_ONE / window.delivered);
	alpha = (alpha + DCTCP_ONE / 2) / DCTCP_ONE;
	state->alpha = alpha > DCTCP_ONE ? DCTCP_ONE : (uint32_t)alpha;
	window.after = state->alpha;
	note(&window);
	begin_window(tcp, state);
	return 0;
}

/* The kernel asks once per window of data with an echo, and where a loss shows: then some packets count as lost already. */
SEC("struct_ops/dctcp_cut")
int dctcp_cut(uint64_t *call)
{
	struct sock *sk = SOCKET(call);
	const struct tcp_sock *tcp = (struct tcp_sock *)sk;

	return (int)after_cut(tcp, state_of(sk), tcp->snd_cwnd);
}

/* Slow start, then a packet for each window that was acknowledged (RFC 5681, section 3.1), where the window is what limits the sender. */
SEC("struct_ops/dctcp_grow")
int dctcp_grow(uint64_t *call)
{
	struct tcp_sock *tcp = (struct tcp_sock *)SOCKET(call);
	uint32_t window = tcp->snd_cwnd, acked = (uint32_t)call[2], count;

	if (window < tcp->snd_ssthresh) {
		if (window < 2 * tcp->max_packets_out)
			tcp->snd_cwnd = window + acked < tcp->snd_ssthresh ? window + acked : tcp->snd_ssthresh;
		return 0;
	}
	if (tcp->max_packets_out < window)
		return 0;
	count = tcp->snd_cwnd_cnt + acked;
	if (count >= window) {
		count -= window;
		tcp->snd_cwnd = window + 1;
	}
	tcp->snd_cwnd_cnt = count;
	return 0;
}

SEC("struct_ops/dctcp_undo")
int dctcp_undo(uint64_t *call)
{
	const struct tcp_sock *tcp = (struct tcp_sock *)SOCKET(call);
	uint32_t before = tcp->prior_cwnd, window = tcp->snd_cwnd;

	return (int)(before > window ? before : window);
}

/* A packet came with a mark, or without: what is acknowledged together had the same. */
SEC("struct_ops/dctcp_received")
int dctcp_received(uint64_t *call)
{
	struct sock *sk = SOCKET(call);
	uint32_t event = (uint32_t)call[1];
	struct tcp_sock *tcp = (struct tcp_sock *)sk;
	struct dctcp_state *state = state_of(sk);
	uint32_t marked = event == CA_EVENT_ECN_IS_CE;

	if (!marked && event != CA_EVENT_ECN_NO_CE)
		return 0;
	if (marked != state->was_marked) {
		if (tcp->inet_conn.icsk_ack.pending & DELAYED)
			bpf_tcp_send_ack(tcp, state->expected);
		state->was_marked = marked;
	}
	state->expected = tcp->rcv_nxt;
	if (marked)
		tcp->ecn_flags |= ECHO;
	else
		tcp->ecn_flags &= ~ECHO;
	return 0;
}

SEC(".struct_ops")
struct tcp_congestion_ops wl_000000_dctcp = {
	.init = (void *)dctcp_init,
	.in_ack_event = (void *)dctcp_acknowledged,
	.ssthresh = (void *)dctcp_cut,
	.cong_avoid = (void *)dctcp_grow,
	.undo_cwnd = (void *)dctcp_undo,
	.cwnd_event = (void *)dctcp_received,
	.flags = NEEDS_ECN,
	.name = "wl_000000_dctcp",
};

char weftline_license[] SEC("license") = "Dual MIT/GPL";
