/*
 * PINT's encoders in C99: what a switch or NIC does to a packet's digest, bit for bit as the Rust crate does it.
 *
 * Integers only, nothing allocated, every loop bounded, no division; fit for eBPF. The plan is filled in by whoever loads it (a map
 * in eBPF). The functions' results are checked against vectors/functions.json and vectors/paths.json.
 *
 * Source: Ben Basat et al., "PINT", SIGCOMM 2020.
 */
#ifndef WEFTLINE_PINT_H
#define WEFTLINE_PINT_H

#include <stdint.h>

#include "weftline_pint_tables.h"

/* How functions are declared: eBPF forces them inline. */
#ifndef PINT_INLINE
#define PINT_INLINE static inline
#endif

#define PINT_GOLDEN 0x9e3779b97f4a7c15ull
#define PINT_MAX_QUERIES 16
#define PINT_MAX_SETS 32
#define PINT_MAX_FIELDS 256
#define PINT_MAX_LAYERS 6
#define PINT_MAX_HOPS 255

/* Hashes (hash.rs). */

PINT_INLINE uint64_t pint_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

PINT_INLINE uint64_t pint_fold(uint64_t x)
{
	return (x ^ (x >> 32)) * 0x94d049bb133111ebull;
}

PINT_INLINE uint64_t pint_key(uint64_t seed, uint64_t purpose)
{
	return pint_mix(seed + purpose * PINT_GOLDEN);
}

PINT_INLINE uint64_t pint_word(uint64_t key, uint64_t packet)
{
	return (pint_mix(packet) ^ key) * 0xbf58476d1ce4e5b9ull;
}

/* q, in units of 2^-16. */
PINT_INLINE uint32_t pint_share(uint64_t word)
{
	return (uint32_t)(word >> 48);
}

/* H, in units of 2^-32. */
PINT_INLINE uint32_t pint_layer_place(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

/* g, in units of 2^-32; hops count from 1. */
PINT_INLINE uint32_t pint_hop(uint64_t word, uint32_t hop)
{
	return (uint32_t)(pint_fold(word + hop * PINT_GOLDEN) >> 32);
}

PINT_INLINE uint64_t pint_bits(uint64_t word, uint32_t n)
{
	return pint_mix(word + ((1ull << 32) + n) * PINT_GOLDEN);
}

/* h: 1 to 64 bits of a value. */
PINT_INLINE uint64_t pint_value(uint64_t word, uint64_t value, uint32_t bits)
{
	return pint_fold(word ^ (((value ^ (value >> 32)) + 1) * 0xd1342543de82ef95ull)) >> (64 - bits);
}

/* r, in units of 2^-32. */
PINT_INLINE uint32_t pint_coin(uint64_t word, uint32_t hop)
{
	return (uint32_t)(pint_fold(word + ((1ull << 33) + hop) * PINT_GOLDEN) >> 32);
}

PINT_INLINE uint32_t pint_fragment(uint64_t word, uint32_t count)
{
	return (uint32_t)(((pint_mix(word + (1ull << 34) * PINT_GOLDEN) >> 32) * count) >> 32);
}

/* Codes (code.rs). */

enum pint_selection_kind { PINT_THRESHOLD = 0, PINT_WORDS = 1 };

struct pint_selection {
	uint32_t kind;
	/* Of PINT_WORDS: at most 16. */
	uint32_t bits;
	/* The threshold in units of 2^-32, or the numerator. */
	uint64_t number;
};

struct pint_code {
	/* Packets with H below this are of the Baseline layer. */
	uint64_t baseline;
	uint32_t count;
	struct pint_selection layers[PINT_MAX_LAYERS];
};

/* Whether a hop (from 1) acts in an XOR layer. */
PINT_INLINE int pint_acts(const struct pint_selection *selection, uint64_t word, uint32_t hop)
{
	uint64_t folded = 0, random;
	uint32_t n;

	if (selection->kind == PINT_THRESHOLD)
		return pint_hop(word, hop) < selection->number;
	if (selection->number >> selection->bits)
		return 1;
	for (n = 0; n < 16; n++) {
		if (n >= selection->bits)
			break;
		random = pint_bits(word, 16 * ((hop - 1) >> 6) + n);
		folded = (selection->number >> n) & 1 ? folded | random : folded & random;
	}
	return (folded >> ((hop - 1) & 63)) & 1;
}

/* Whether a hop (1 to 255) overwrites in reservoir sampling. */
PINT_INLINE int pint_reservoir_acts(uint64_t word, uint32_t hop)
{
	return pint_hop(word, hop) < PINT_RESERVOIR[hop & 255];
}

/* The XOR layer of a packet, or -1 for Baseline. */
PINT_INLINE int pint_layer(const struct pint_code *code, uint64_t word)
{
	uint64_t place = pint_layer_place(word), width, end = 0;
	int layer = 0;
	uint32_t n;

	if (place < code->baseline || code->count == 0)
		return -1;
	width = (1ull << 32) - code->baseline;
	place = (place - code->baseline) * code->count;
	for (n = 1; n < PINT_MAX_LAYERS; n++) {
		end += width;
		if (n < code->count && place >= end)
			layer = (int)n;
	}
	return layer;
}

/* Arithmetic (fixed.rs). */

/* Without branches: eBPF's verifier follows each, and what indexes a table it follows one by one. */
PINT_INLINE uint32_t pint_highest_bit(uint64_t v)
{
	v |= v >> 1 | 1;
	v |= v >> 2;
	v |= v >> 4;
	v |= v >> 8;
	v |= v >> 16;
	v |= v >> 32;
	/* All bits up to the highest one are ones: their number. */
	v -= (v >> 1) & 0x5555555555555555ull;
	v = (v & 0x3333333333333333ull) + ((v >> 2) & 0x3333333333333333ull);
	v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0full;
	return (uint32_t)((v * 0x0101010101010101ull) >> 56) - 1;
}

PINT_INLINE uint64_t pint_log2(uint64_t v)
{
	uint64_t exponent, fraction, t, end, slope, bend;
	uint32_t interval;

	if (v == 0)
		v = 1;
	exponent = pint_highest_bit(v);
	fraction = ((v << (63 - exponent)) << 1) >> 32;
	interval = (uint32_t)(fraction >> 24) & 255;
	t = fraction & 0xffffff;
	end = PINT_LOG_ENDS[interval];
	bend = PINT_LOG_BENDS[interval];
	slope = ((PINT_LOG_ENDS[interval + 1] - end) << 8) + bend - ((bend * t) >> 24);
	return (exponent << 32) + end + ((slope * t) >> 32);
}

PINT_INLINE uint64_t pint_exp2(uint32_t x)
{
	uint32_t interval = x >> 24;
	uint64_t t = x & 0xffffff, end = PINT_POWER_ENDS[interval], bend = PINT_POWER_BENDS[interval];
	uint64_t slope = ((PINT_POWER_ENDS[interval + 1] - end) << 8) - bend + ((bend * t) >> 24);

	return (1ull << 32) + end + ((slope * t) >> 32);
}

PINT_INLINE uint64_t pint_multiply_high(uint64_t a, uint64_t b)
{
	uint64_t al = a & 0xffffffff, ah = a >> 32, bl = b & 0xffffffff, bh = b >> 32;
	uint64_t middle = ah * bl + ((al * bl) >> 32);
	uint64_t low = al * bh + (middle & 0xffffffff);

	return ah * bh + (middle >> 32) + (low >> 32);
}

/* Values (value.rs). */

enum pint_scale { PINT_EXACT = 0, PINT_ADDITIVE = 1, PINT_MULTIPLICATIVE = 2 };
enum pint_rounding { PINT_NEAREST = 0, PINT_VALUE = 1, PINT_LOGARITHM = 2 };

struct pint_approximation {
	uint32_t scale;
	uint32_t rounding;
	uint32_t bits;
	/* Additive: width and floor(2^64 / width). Multiplicative: rate, step (log2 B, 2^-32), span (B - 1, 2^-28). */
	uint64_t width;
	uint64_t inverse;
	uint64_t rate;
	uint64_t step;
	uint64_t span;
};

PINT_INLINE uint64_t pint_limit(uint32_t bits)
{
	return ~0ull >> (64 - bits);
}

/* 2^x - 1 in units of 2^-28, for x up to 4 in units of 2^-32. */
PINT_INLINE uint64_t pint_above_one(uint64_t x)
{
	return ((pint_exp2((uint32_t)x) << (x >> 32)) - (1ull << 32)) >> 4;
}

PINT_INLINE uint64_t pint_position(uint64_t rate, uint64_t log)
{
	return (((log >> 32) * rate) << 12) + (((log & 0xffffffff) * rate) >> 20);
}

PINT_INLINE uint64_t pint_round(uint64_t step, uint64_t span, uint64_t position, uint32_t rounding, uint32_t coin)
{
	uint64_t code = position >> 32, fraction = position & 0xffffffff;

	if (rounding == PINT_NEAREST)
		return code + (fraction >> 31);
	if (rounding == PINT_LOGARITHM)
		return code + (coin < fraction);
	return code + (coin * span < pint_above_one(((fraction >> 4) * step) >> 28) << 32);
}

PINT_INLINE uint64_t pint_encode_value(const struct pint_approximation *a, uint64_t v, uint32_t coin)
{
	uint64_t code = v, rest, limit = pint_limit(a->bits);

	if (a->scale == PINT_ADDITIVE) {
		code = pint_multiply_high(v, a->inverse);
		rest = v - code * a->width;
		if (rest >= a->width) {
			code += 1;
			rest -= a->width;
		}
		if (a->rounding == PINT_NEAREST)
			code += rest >= a->width - rest;
		else
			code += pint_multiply_high((uint64_t)coin << 32, a->width) < rest;
	} else if (a->scale == PINT_MULTIPLICATIVE) {
		code = pint_round(a->step, a->span, pint_position(a->rate, pint_log2(v)), a->rounding, coin);
	}
	return code < limit ? code : limit;
}

/* Randomised counting (counting.rs). */

struct pint_counter {
	uint64_t rate;
	uint64_t step;
	uint64_t span;
	uint32_t bits;
};

PINT_INLINE uint64_t pint_count(const struct pint_counter *c, uint64_t code, uint64_t v, uint32_t coin)
{
	uint64_t limit = pint_limit(c->bits), x, exponent, mantissa, sum, next;

	if (code > limit)
		code = limit;
	if (v == 0)
		return code;
	x = code * c->step;
	mantissa = pint_exp2((uint32_t)x);
	exponent = x >> 32;
	if (exponent < 4)
		sum = (mantissa + (1ull << (3 - exponent))) >> (4 - exponent);
	else
		sum = exponent <= 34 ? mantissa << (exponent - 4) : ~0ull;
	x = (v < 0xffffffff ? v : 0xffffffff) * c->span;
	sum = sum + x < sum ? ~0ull : sum + x;
	next = pint_round(c->step, c->span, pint_position(c->rate, pint_log2(sum) - (28ull << 32)), PINT_VALUE, coin);
	if (next > limit)
		return limit;
	return next < code ? code : next;
}

/* Loops (loops.rs). */

struct pint_loops {
	uint32_t tolerance;
	uint32_t hash_bits;
};

PINT_INLINE uint64_t pint_loop_step(const struct pint_loops *l, uint64_t field, uint64_t word, uint32_t hop, uint64_t value,
				      int *looped)
{
	uint64_t mine = pint_value(word, value, l->hash_bits), hash = field & pint_limit(l->hash_bits);
	uint64_t count = l->hash_bits < 64 ? field >> l->hash_bits : 0;

	if (hop > 1 && hash == mine) {
		if (count >= l->tolerance) {
			*looped = 1;
			return field;
		}
		return field + (1ull << l->hash_bits);
	}
	return count == 0 && pint_reservoir_acts(word, hop) ? mine : field;
}

/* The encoder (encoder.rs). */

enum pint_task_kind {
	PINT_PATH = 0,
	PINT_SAMPLE = 1,
	PINT_MAXIMUM = 2,
	PINT_MINIMUM = 3,
	PINT_SUM = 4,
	PINT_PRODUCT = 5,
	PINT_COUNT = 6,
	PINT_LOOP = 7
};

struct pint_task {
	uint32_t kind;
	/* Path: pieces of the value, or 0 for hashes. */
	uint32_t fragments;
	/* Count: values above it count. */
	uint64_t threshold;
	struct pint_code code;
	struct pint_approximation values;
	struct pint_counter counter;
	struct pint_loops loops;
};

struct pint_field {
	uint64_t key;
	uint8_t query;
	uint8_t offset;
	uint8_t bits;
};

struct pint_plan {
	uint64_t selector;
	uint32_t queries;
	uint32_t sets;
	/* Cumulative shares in units of 2^-16, and each set's first field and the one after its last. */
	uint32_t until[PINT_MAX_SETS];
	uint16_t first[PINT_MAX_SETS];
	uint16_t end[PINT_MAX_SETS];
	struct pint_task tasks[PINT_MAX_QUERIES];
	struct pint_field fields[PINT_MAX_FIELDS];
};

PINT_INLINE uint64_t pint_block(uint32_t fragments, uint32_t bits, uint64_t word, uint64_t value)
{
	uint32_t shift;

	if (fragments == 0)
		return pint_value(word, value, bits);
	shift = pint_fragment(word, fragments) * bits;
	return shift < 64 ? (value >> shift) & pint_limit(bits) : 0;
}

PINT_INLINE uint64_t pint_step(const struct pint_task *task, uint32_t bits, uint64_t now, uint64_t word, uint32_t hop,
				 uint64_t value, int *looped)
{
	uint64_t block, code, limit = pint_limit(bits);
	int layer;

	switch (task->kind) {
	case PINT_PATH:
		block = pint_block(task->fragments, bits, word, value);
		layer = pint_layer(&task->code, word);
		if (layer < 0)
			return pint_reservoir_acts(word, hop) ? block : now;
		return pint_acts(&task->code.layers[layer], word, hop) ? now ^ block : now;
	case PINT_SAMPLE:
		return pint_reservoir_acts(word, hop) ? pint_encode_value(&task->values, value, pint_coin(word, hop)) : now;
	case PINT_MAXIMUM:
		code = pint_encode_value(&task->values, value, pint_coin(word, hop));
		return code > now ? code : now;
	case PINT_MINIMUM:
		code = pint_encode_value(&task->values, value, pint_coin(word, hop));
		return hop == 1 || code < now ? code : now;
	case PINT_SUM:
		return pint_count(&task->counter, now, value, pint_coin(word, hop));
	case PINT_PRODUCT:
		code = pint_encode_value(&task->values, value, pint_coin(word, hop));
		return code > limit - now ? limit : now + code;
	case PINT_COUNT:
		return value > task->threshold && now < limit ? now + 1 : now;
	case PINT_LOOP:
		return pint_loop_step(&task->loops, now, word, hop, value, looped);
	default:
		return now;
	}
}

/* A hop as the encoders count it: from 1, the last one stands for all beyond it. */
PINT_INLINE uint32_t pint_hop_number(uint32_t hop)
{
	return hop < 1 ? 1 : hop > PINT_MAX_HOPS ? PINT_MAX_HOPS : hop;
}

/* The set that a packet belongs to; PINT_MAX_SETS if it carries nothing. */
PINT_INLINE uint32_t pint_set(const struct pint_plan *plan, uint64_t packet)
{
	uint32_t place = pint_share(pint_word(plan->selector, packet)), set;

	for (set = 0; set < PINT_MAX_SETS; set++) {
		if (set >= plan->sets)
			return PINT_MAX_SETS;
		if (place < plan->until[set])
			return set;
	}
	return PINT_MAX_SETS;
}

/* The digest after one field of it has seen its query's value. */
PINT_INLINE uint64_t pint_field_step(const struct pint_field *field, const struct pint_task *task, uint64_t digest, uint64_t packet,
				       uint32_t hop, uint64_t value, int *looped)
{
	uint64_t mask = pint_limit(field->bits), now = (digest >> field->offset) & mask;

	now = pint_step(task, field->bits, now, pint_word(field->key, packet), hop, value, looped);
	return (digest & ~(mask << field->offset)) | ((now & mask) << field->offset);
}

/*
 * The digest after a hop (from 1, which starts from 0). `values` has one number a query; bit n of `present` says that the switch has
 * the n-th one, without which a query is left as it is. `looped` becomes 1 if a loop is found.
 */
PINT_INLINE uint64_t pint_encode_present(const struct pint_plan *plan, uint64_t digest, uint64_t packet, uint32_t hop,
					   const uint64_t *values, uint32_t present, int *looped)
{
	uint32_t set = pint_set(plan, packet), n;

	hop = pint_hop_number(hop);
	if (hop == 1)
		digest = 0;
	if (set >= PINT_MAX_SETS)
		return digest;
	for (n = plan->first[set]; n < PINT_MAX_FIELDS && n < plan->end[set]; n++) {
		const struct pint_field *field = &plan->fields[n];
		uint32_t query = field->query & (PINT_MAX_QUERIES - 1);

		if ((present >> query) & 1)
			digest = pint_field_step(field, &plan->tasks[query], digest, packet, hop, values[query], looped);
	}
	return digest;
}

/* The same where the switch has all values. */
PINT_INLINE uint64_t pint_encode(const struct pint_plan *plan, uint64_t digest, uint64_t packet, uint32_t hop,
				   const uint64_t *values, int *looped)
{
	return pint_encode_present(plan, digest, packet, hop, values, ~0u, looped);
}

/* The load of a port by tables of logarithms (fixed.rs, utilisation.rs): what a switch keeps for HPCC-PINT. */

#define PINT_LOAD_BITS 20

enum pint_law { PINT_LAW_CODE = 0, PINT_LAW_PAPER = 1 };

struct pint_tables {
	/* Bits after the highest one that index the tables, 1 to 16, and fractional bits of their entries, 1 to 32. */
	uint32_t table_bits;
	uint32_t entry_bits;
	/* Fractional bits of the load that its logarithm sees, at most 20; low bits of the queue that are dropped, at most 31. */
	uint32_t load_bits;
	uint32_t queue_shift;
	/* Dropped bits are rounded by coins, or cut off. */
	uint32_t random;
};

struct pint_port {
	struct pint_tables tables;
	uint32_t law;
	uint64_t horizon_ns;
	/* In units of 2^-32. */
	int64_t log_horizon;
	int64_t log_per_byte;
	/* Registers: the load in units of 2^-20, and time and bytes of the packet before. */
	uint64_t load;
	uint64_t last_ns;
	uint32_t last_bytes;
};

PINT_INLINE int64_t pint_table_entry(const struct pint_tables *t, uint64_t v)
{
	uint32_t spare = 32 - t->entry_bits;

	return (int64_t)((pint_log2(v) >> spare) << spare);
}

/* Bits of v below those that the tables see. */
PINT_INLINE uint32_t pint_table_dropped(const struct pint_tables *t, uint64_t v)
{
	uint32_t bits = v ? pint_highest_bit(v) + 1 : 0;

	return bits > t->table_bits + 1 ? bits - t->table_bits - 1 : 0;
}

PINT_INLINE int64_t pint_table_log2(const struct pint_tables *t, uint64_t v)
{
	uint32_t dropped = pint_table_dropped(t, v);

	return pint_table_entry(t, (v >> dropped) << dropped);
}

/* The same with the dropped bits rounded by a coin (in units of 2^-32): v on average. */
PINT_INLINE int64_t pint_table_log2_rounded(const struct pint_tables *t, uint64_t v, uint32_t coin)
{
	uint32_t dropped = pint_table_dropped(t, v), shift = dropped ? 64 - dropped : 63;
	uint64_t rest = v & ((1ull << dropped) - 1), rounded = v >> dropped;

	rounded += ((uint64_t)coin << 32) >> shift < rest;
	/* Up from all ones is the next power of two; beyond 2^64 the largest number stands for it. */
	if (dropped && rounded >> (64 - dropped))
		return pint_table_entry(t, ~0ull);
	return pint_table_entry(t, rounded << dropped);
}

/* 2^x rounded down, of a sum of logarithms in units of 2^-32; the largest number from 2^64 on. */
PINT_INLINE uint64_t pint_table_exp2(const struct pint_tables *t, int64_t x)
{
	int64_t half = 1ll << (32 - t->table_bits - 1);
	uint32_t exponent, fraction;

	if (x > INT64_MAX - half || x + half < 0)
		return 0;
	x += half;
	if (x >> 32 >= 64)
		return ~0ull;
	exponent = (uint32_t)(x >> 32);
	fraction = (uint32_t)x & ~(2 * (uint32_t)half - 1);
	if (exponent >= 32)
		return pint_exp2(fraction) << (exponent - 32);
	return pint_exp2(fraction) >> (32 - exponent);
}

PINT_INLINE int64_t pint_port_log(const struct pint_port *p, uint64_t v, uint64_t word, uint32_t coin)
{
	return p->tables.random ? pint_table_log2_rounded(&p->tables, v, pint_coin(word, coin)) : pint_table_log2(&p->tables, v);
}

PINT_INLINE uint64_t pint_saturating_add(uint64_t a, uint64_t b)
{
	return a > ~0ull - b ? ~0ull : a + b;
}

/* The rate of a port, which may change; horizon_ns and tables are there. */
PINT_INLINE void pint_port_set_rate(struct pint_port *p, uint64_t bits_per_second)
{
	p->log_horizon = (int64_t)pint_log2(p->horizon_ns);
	p->log_per_byte = (int64_t)pint_log2(8000000000ull) + ((int64_t)PINT_LOAD_BITS << 32)
		- (int64_t)pint_log2(bits_per_second) - p->log_horizon;
}

/* A data packet leaves with queue_bytes behind it; the load after it in units of 2^-20. The word gives the coins. */
PINT_INLINE uint64_t pint_port_update(struct pint_port *p, uint64_t now_ns, uint64_t queue_bytes, uint32_t packet_bytes, uint64_t word)
{
	uint32_t dropped = PINT_LOAD_BITS - p->tables.load_bits;
	uint64_t gap = now_ns > p->last_ns ? now_ns - p->last_ns : 0, left, sum = 0;
	uint64_t load = pint_saturating_add(p->load, (1ull << dropped) >> 1) >> dropped, queue = queue_bytes >> p->tables.queue_shift;
	uint64_t bytes = p->law == PINT_LAW_CODE ? p->last_bytes : packet_bytes;

	if (gap > p->horizon_ns)
		gap = p->horizon_ns;
	left = p->horizon_ns - gap;
	if (load && left)
		sum = pint_table_exp2(&p->tables, pint_port_log(p, load, word, 1) + ((int64_t)dropped << 32)
			+ pint_port_log(p, left, word, 2) - p->log_horizon);
	if (queue && gap)
		sum = pint_saturating_add(sum, pint_table_exp2(&p->tables, pint_port_log(p, queue, word, 3)
			+ ((int64_t)p->tables.queue_shift << 32) + pint_port_log(p, gap, word, 4) + p->log_per_byte - p->log_horizon));
	if (bytes)
		sum = pint_saturating_add(sum, pint_table_exp2(&p->tables, pint_port_log(p, bytes, word, 5) + p->log_per_byte));
	p->load = sum;
	p->last_ns = now_ns;
	p->last_bytes = packet_bytes;
	return sum;
}

/* Any other packet leaves (acknowledgement, pause). */
PINT_INLINE void pint_port_pass(struct pint_port *p, uint64_t now_ns, uint64_t queue_bytes, uint32_t packet_bytes, uint64_t word)
{
	if (p->law == PINT_LAW_PAPER) {
		pint_port_update(p, now_ns, queue_bytes, packet_bytes, word);
	} else {
		p->last_ns = now_ns;
		p->last_bytes = packet_bytes;
	}
}

/* The number that is encoded for a load: 512 U rounded up, at least 1. */
PINT_INLINE uint64_t pint_scaled_load(uint64_t load)
{
	uint64_t up = (load >> (PINT_LOAD_BITS - 9)) + ((load & ((1u << (PINT_LOAD_BITS - 9)) - 1)) != 0);

	return up ? up : 1;
}

#endif
