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
 * Window and threshold are kept in the programs' own state and are set in one of them (cong_control), from what the kernel counts
 * since the connection began. So it does not matter what the kernel takes for a threshold, nor whether every program is run: a kernel
 * may skip programs, and a trampoline then returns what happened to lie on the stack as the threshold.
 *
 * Source: Bensley, Thaler, Balasubramanian, Eggert, Judd, RFC 8257, sections 3.2 (echo), 3.3 (alpha), 3.4 (cut), 3.5 (losses),
 * 4.2 (g = 1/16, alpha begins at 1); RFC 5681, section 3.1 (growth, timeout); RFC 6675, section 5 (window during recovery).
 * Differs from the source: shares are of packets and not of bytes, as the kernel counts what was delivered with an echo; a loss halves
 * the window and not what is in flight.
 *
 * Whoever registers this object writes an id in place of the six zeros of `wl_000000_` wherever they stand, so that two may be
 * registered at a time, and the parameters after the mark of `dctcp_settings`.
 */
#include <stdint.h>

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>

#include "dctcp.h"

/* Parts of the kernel's types, found by their names at load time. */
struct sock {
} __attribute__((preserve_access_index));

struct inet_connection_sock {
	uint8_t icsk_ca_state : 5;
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
	uint32_t max_packets_out;
	uint32_t high_seq;
	uint32_t snd_una;
	uint32_t snd_nxt;
	uint32_t rcv_nxt;
	uint32_t delivered;
	uint32_t delivered_ce;
	uint8_t ecn_flags;
} __attribute__((preserve_access_index));

enum tcp_ca_event { CA_EVENT_ECN_NO_CE = 4, CA_EVENT_ECN_IS_CE = 5 };

struct tcp_congestion_ops {
	uint32_t (*ssthresh)(struct sock *);
	void (*cwnd_event)(struct sock *, enum tcp_ca_event);
	void (*cong_control)(struct sock *);
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
/* The kernel's states: the window was cut, lost packets are sent again, all did so after a timeout. */
#define CUT 2
#define RECOVERY 3
#define LOSS 4
/* TCP_INFINITE_SSTHRESH: there was no cut yet. */
#define NO_THRESHOLD 0x7fffffff

/* Of a connection, in the words that the kernel keeps for its congestion control. */
struct dctcp_state {
	uint32_t begun;
	uint32_t alpha;
	/* Packets that may be in flight, and the window up to which it grows by every packet acknowledged. */
	uint32_t window;
	uint32_t threshold;
	/* Both before the losses that the kernel repairs. */
	uint32_t window_before;
	uint32_t threshold_before;
	/* The window was cut, and does not grow until what comes before this byte is acknowledged. */
	uint32_t is_cut;
	uint32_t cut_end;
	/* The kernel repairs losses (its state, else 0), and until which byte. */
	uint32_t repairs;
	uint32_t repair_end;
	/* The kernel asked for a threshold since the last acknowledgement. */
	uint32_t asked;
	/* Of the acknowledgement before: what was acknowledged, and the kernel's counts. */
	uint32_t acknowledged;
	uint32_t seen;
	uint32_t seen_marked;
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

/* Returns the state of a connection. Whichever program is the first to run begins it. */
static __always_inline struct dctcp_state *state_of(struct sock *sk)
{
	const struct tcp_sock *tcp = (struct tcp_sock *)sk;
	struct dctcp_state *state = (struct dctcp_state *)tcp->inet_conn.icsk_ca_priv;

	if (state->begun)
		return state;
	state->begun = 1;
	state->alpha = dctcp_settings.first_alpha;
	state->window = tcp->snd_cwnd;
	state->threshold = NO_THRESHOLD;
	state->acknowledged = tcp->snd_una;
	state->seen = tcp->delivered;
	state->seen_marked = tcp->delivered_ce;
	state->expected = tcp->rcv_nxt;
	begin_window(tcp, state);
	return state;
}

SEC("struct_ops/dctcp_init")
int dctcp_init(uint64_t *call)
{
	state_of(SOCKET(call));
	return 0;
}

/* At the end of a window of data: alpha from what was delivered in it. */
static __always_inline void weigh(const struct tcp_sock *tcp, struct dctcp_state *state)
{
	struct dctcp_window window = {.before = state->alpha};
	uint64_t gain = dctcp_settings.gain, alpha;

	if ((int32_t)(tcp->snd_una - state->window_end) <= 0)
		return;
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
}

static __always_inline uint32_t at_least_smallest(uint32_t window)
{
	return window > SMALLEST_WINDOW ? window : SMALLEST_WINDOW;
}

/* Returns the window after a mark. */
static __always_inline uint32_t after_mark(const struct dctcp_state *state)
{
	return at_least_smallest(state->window - (uint32_t)((uint64_t)state->window * state->alpha / (2 * DCTCP_ONE)));
}

/* Returns the window after a loss (RFC 5681, equation 4). */
static __always_inline uint32_t after_loss(const struct dctcp_state *state)
{
	return at_least_smallest(state->window / 2);
}

/*
 * Takes over what the kernel did to the window: it lowers it after a timeout and where the sender was idle. It never raises it: what is
 * more than the programs have set is not the result of dctcp_undo, because that was not run. Then it is set again, and counted.
 */
static __always_inline void take_over(const struct tcp_sock *tcp, struct dctcp_state *state, uint32_t phase)
{
	uint32_t window = tcp->snd_cwnd, used = state->window - state->window / 4, key = 0;
	struct dctcp_window *place;

	if (window > state->window) {
		window = state->window;
		place = bpf_map_lookup_elem(&wl_000000_alpha, &key);
		if (place)
			place->marked++;
	}
	if (phase < RECOVERY) {
		state->repairs = 0;
		/* RFC 2861, section 3. */
		if (window < state->window && state->threshold < used)
			state->threshold = used;
	} else if (phase > state->repairs || state->repair_end != tcp->high_seq) {
		state->repairs = phase;
		state->repair_end = tcp->high_seq;
		state->window_before = state->window;
		state->threshold_before = state->threshold;
		/* A loss in a window of data that was cut already is not answered twice. */
		if (phase == LOSS || !state->is_cut)
			state->threshold = after_loss(state);
		if (window > state->threshold)
			window = state->threshold;
	}
	state->window = window;
}

/* A mark, once per window of data. A threshold that is asked for without one: a probe has repaired a loss (RFC 8985, section 7.4.2). */
static __always_inline void cut(const struct tcp_sock *tcp, struct dctcp_state *state, uint32_t phase, uint32_t marked)
{
	if (state->is_cut && (int32_t)(tcp->snd_una - state->cut_end) >= 0)
		state->is_cut = 0;
	if (state->is_cut || phase >= RECOVERY || !(marked || state->asked))
		return;
	state->threshold = marked || phase == CUT ? after_mark(state) : after_loss(state);
	state->window = state->threshold;
	state->is_cut = 1;
	state->cut_end = tcp->snd_nxt;
}

/* Slow start, then a packet for each window that was acknowledged (RFC 5681, section 3.1), where the window is what limits the sender. */
static __always_inline void grow(struct tcp_sock *tcp, struct dctcp_state *state, uint32_t acked)
{
	uint32_t window = state->window, most = tcp->max_packets_out, count;

	if (window < state->threshold) {
		if (window < 2 * most)
			state->window = window + acked < state->threshold ? window + acked : state->threshold;
		return;
	}
	if (most < window)
		return;
	count = tcp->snd_cwnd_cnt + acked;
	if (count >= window) {
		count -= window;
		state->window = window + 1;
	}
	tcp->snd_cwnd_cnt = count;
}

/* Every acknowledgement, after the kernel has counted what it says and marked what is lost. */
SEC("struct_ops/dctcp_acknowledged")
int dctcp_acknowledged(uint64_t *call)
{
	struct sock *sk = SOCKET(call);
	struct tcp_sock *tcp = (struct tcp_sock *)sk;
	struct dctcp_state *state = state_of(sk);
	uint32_t phase = BPF_CORE_READ_BITFIELD(&tcp->inet_conn, icsk_ca_state);
	uint32_t acked = tcp->delivered - state->seen;

	weigh(tcp, state);
	take_over(tcp, state, phase);
	cut(tcp, state, phase, tcp->delivered_ce != state->seen_marked);
	if (tcp->snd_una != state->acknowledged && !state->is_cut && phase != RECOVERY)
		grow(tcp, state, acked);
	state->asked = 0;
	state->acknowledged = tcp->snd_una;
	state->seen = tcp->delivered;
	state->seen_marked = tcp->delivered_ce;
	tcp->snd_cwnd = state->window;
	tcp->snd_ssthresh = state->threshold;
	return 0;
}

/* The kernel asks once per window of data with an echo, and where a loss shows. What it takes for the threshold is shown, no more. */
SEC("struct_ops/dctcp_cut")
int dctcp_cut(uint64_t *call)
{
	struct dctcp_state *state = state_of(SOCKET(call));

	state->asked = 1;
	return (int)(dctcp_settings.returned ? dctcp_settings.returned : after_mark(state));
}

/* Nothing was lost after all. After a timeout, the window is still as before. */
SEC("struct_ops/dctcp_undo")
int dctcp_undo(uint64_t *call)
{
	struct dctcp_state *state = state_of(SOCKET(call));

	if (state->repairs) {
		state->threshold = state->threshold_before;
		if (state->window < state->window_before)
			state->window = state->window_before;
	}
	return (int)state->window;
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
	.cong_control = (void *)dctcp_acknowledged,
	.ssthresh = (void *)dctcp_cut,
	.undo_cwnd = (void *)dctcp_undo,
	.cwnd_event = (void *)dctcp_received,
	.flags = NEEDS_ECN,
	.name = "wl_000000_dctcp",
};

char weftline_license[] SEC("license") = "Dual MIT/GPL";
