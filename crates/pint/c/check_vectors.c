/*
 * Checks weftline_pint.h against the test vectors. Lines come on standard input, numbers in hexadecimal:
 *
 *   NAME ARGUMENT... RESULT                        a function
 *   plan SELECTOR                                  a new plan
 *   task KIND FRAGMENTS THRESHOLD BASELINE COUNT (KIND BITS NUMBER) x 6 SCALE ROUNDING BITS WIDTH RATE TOLERANCE
 *   set UNTIL
 *   field QUERY OFFSET BITS KEY                    of the last set
 *   digest PACKET HOP LOOPED DIGEST VALUE...          the digest goes on from the hop before
 *
 * Prints every difference; exit status 0 if there is none.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weftline_pint.h"

#define MAX_ARGUMENTS 40

static struct pint_plan plan;
static uint64_t digest;

static struct pint_approximation multiplicative(uint64_t rate, uint64_t bits, uint64_t rounding)
{
	struct pint_approximation a = {PINT_MULTIPLICATIVE, (uint32_t)rounding, (uint32_t)bits, 0, 0, rate, 0, 0};

	a.step = ((1ull << 52) + rate / 2) / rate;
	a.span = pint_above_one(a.step);
	return a;
}

static struct pint_approximation additive(uint64_t width, uint64_t bits, uint64_t rounding)
{
	struct pint_approximation a = {PINT_ADDITIVE, (uint32_t)rounding, (uint32_t)bits, width, 0, 0, 0, 0};

	/* floor(2^64 / width) without 128 bits. */
	a.inverse = ~0ull / width + (~0ull % width == width - 1);
	return a;
}

static struct pint_counter counter(uint64_t rate, uint64_t bits)
{
	struct pint_approximation a = multiplicative(rate, bits, PINT_VALUE);
	struct pint_counter c = {a.rate, a.step, a.span, a.bits};

	return c;
}

static struct pint_loops loops(uint64_t bits, uint64_t tolerance)
{
	struct pint_loops l = {(uint32_t)tolerance, (uint32_t)bits};

	while (tolerance) {
		l.hash_bits--;
		tolerance >>= 1;
	}
	return l;
}

static struct pint_tables tables(const uint64_t *a)
{
	struct pint_tables t = {(uint32_t)a[0], (uint32_t)a[1], (uint32_t)a[2], (uint32_t)a[3], (uint32_t)a[4]};

	return t;
}

/* Tables, law, rate and horizon; registers; then the packet. */
static uint64_t load(const uint64_t *a)
{
	struct pint_port p = {tables(a), (uint32_t)a[5], a[7], 0, 0, a[8], a[9], (uint32_t)a[10]};

	pint_port_set_rate(&p, a[6]);
	if (a[11])
		pint_port_pass(&p, a[12], a[13], (uint32_t)a[14], a[15]);
	else
		pint_port_update(&p, a[12], a[13], (uint32_t)a[14], a[15]);
	return p.load;
}

static int function(const char *name, const uint64_t *a, uint64_t *result)
{
	if (!strcmp(name, "mix")) {
		*result = pint_mix(a[0]);
	} else if (!strcmp(name, "key")) {
		*result = pint_key(a[0], a[1]);
	} else if (!strcmp(name, "word")) {
		*result = pint_word(a[0], a[1]);
	} else if (!strcmp(name, "share")) {
		*result = pint_share(a[0]);
	} else if (!strcmp(name, "hop")) {
		*result = pint_hop(a[0], (uint32_t)a[1]);
	} else if (!strcmp(name, "bits")) {
		*result = pint_bits(a[0], (uint32_t)a[1]);
	} else if (!strcmp(name, "coin")) {
		*result = pint_coin(a[0], (uint32_t)a[1]);
	} else if (!strcmp(name, "value")) {
		*result = pint_value(a[0], a[1], (uint32_t)a[2]);
	} else if (!strcmp(name, "fragment")) {
		*result = pint_fragment(a[0], (uint32_t)a[1]);
	} else if (!strcmp(name, "layer")) {
		struct pint_code code = {a[1], (uint32_t)a[2], {{0, 0, 0}}};
		*result = (uint64_t)(pint_layer(&code, a[0]) + 1);
	} else if (!strcmp(name, "acts")) {
		struct pint_selection selection = {(uint32_t)a[1], (uint32_t)a[2], a[3]};
		*result = (uint64_t)pint_acts(&selection, a[0], (uint32_t)a[4]);
	} else if (!strcmp(name, "reservoir_acts")) {
		*result = (uint64_t)pint_reservoir_acts(a[0], (uint32_t)a[1]);
	} else if (!strcmp(name, "log2")) {
		*result = pint_log2(a[0]);
	} else if (!strcmp(name, "exp2")) {
		*result = pint_exp2((uint32_t)a[0]);
	} else if (!strcmp(name, "multiply_high")) {
		*result = pint_multiply_high(a[0], a[1]);
	} else if (!strcmp(name, "additive")) {
		struct pint_approximation values = additive(a[0], a[1], a[2]);
		*result = pint_encode_value(&values, a[3], (uint32_t)a[4]);
	} else if (!strcmp(name, "multiplicative")) {
		struct pint_approximation values = multiplicative(a[0], a[1], a[2]);
		*result = pint_encode_value(&values, a[3], (uint32_t)a[4]);
	} else if (!strcmp(name, "counter")) {
		struct pint_counter c = counter(a[0], a[1]);
		*result = pint_count(&c, a[2], a[3], (uint32_t)a[4]);
	} else if (!strcmp(name, "loop")) {
		struct pint_loops l = loops(a[0], a[1]);
		int looped = 0;
		*result = 2 * pint_loop_step(&l, a[2], a[3], (uint32_t)a[4], a[5], &looped);
		*result += (uint64_t)looped;
	} else if (!strcmp(name, "table_log2")) {
		struct pint_tables t = {(uint32_t)a[0], (uint32_t)a[1], 0, 0, 0};
		*result = (uint64_t)pint_table_log2(&t, a[2]);
	} else if (!strcmp(name, "table_log2_rounded")) {
		struct pint_tables t = {(uint32_t)a[0], (uint32_t)a[1], 0, 0, 1};
		*result = (uint64_t)pint_table_log2_rounded(&t, a[2], (uint32_t)a[3]);
	} else if (!strcmp(name, "table_exp2")) {
		struct pint_tables t = {(uint32_t)a[0], 32, 0, 0, 0};
		*result = pint_table_exp2(&t, (int64_t)a[1]);
	} else if (!strcmp(name, "load")) {
		*result = load(a);
	} else if (!strcmp(name, "scaled_load")) {
		*result = pint_scaled_load(a[0]);
	} else {
		return 0;
	}
	return 1;
}

static int task(const uint64_t *a)
{
	struct pint_task *t = &plan.tasks[plan.queries];
	uint32_t n;

	if (plan.queries >= PINT_MAX_QUERIES || a[4] > PINT_MAX_LAYERS)
		return 0;
	memset(t, 0, sizeof *t);
	t->kind = (uint32_t)a[0];
	t->fragments = (uint32_t)a[1];
	t->threshold = a[2];
	t->code.baseline = a[3];
	t->code.count = (uint32_t)a[4];
	for (n = 0; n < PINT_MAX_LAYERS; n++) {
		t->code.layers[n].kind = (uint32_t)a[5 + 3 * n];
		t->code.layers[n].bits = (uint32_t)a[6 + 3 * n];
		t->code.layers[n].number = a[7 + 3 * n];
	}
	a += 23;
	if (a[0] == PINT_MULTIPLICATIVE)
		t->values = multiplicative(a[4], a[2], a[1]);
	else if (a[0] == PINT_ADDITIVE)
		t->values = additive(a[3], a[2], a[1]);
	else
		t->values.bits = (uint32_t)a[2];
	if (t->kind == PINT_SUM)
		t->counter = counter(a[4], a[2]);
	if (t->kind == PINT_LOOP)
		t->loops = loops(a[2], a[5]);
	plan.queries++;
	return 1;
}

/* 1 if the line was understood and its result, if it has one, is right. */
static int line(const char *name, const uint64_t *a, int count)
{
	uint64_t result = 0;
	int looped = 0;

	if (!strcmp(name, "plan")) {
		memset(&plan, 0, sizeof plan);
		plan.selector = a[0];
		return 1;
	}
	if (!strcmp(name, "task"))
		return count == 29 && task(a);
	if (!strcmp(name, "set")) {
		if (plan.sets >= PINT_MAX_SETS)
			return 0;
		plan.first[plan.sets] = plan.sets ? plan.end[plan.sets - 1] : 0;
		plan.end[plan.sets] = plan.first[plan.sets];
		plan.until[plan.sets++] = (uint32_t)a[0];
		return 1;
	}
	if (!strcmp(name, "field")) {
		struct pint_field *field;
		if (!plan.sets || plan.end[plan.sets - 1] >= PINT_MAX_FIELDS)
			return 0;
		field = &plan.fields[plan.end[plan.sets - 1]++];
		field->query = (uint8_t)a[0];
		field->offset = (uint8_t)a[1];
		field->bits = (uint8_t)a[2];
		field->key = a[3];
		return 1;
	}
	if (!strcmp(name, "digest")) {
		digest = pint_encode(&plan, digest, a[0], (uint32_t)a[1], a + 4, &looped);
		if (digest == a[3] && (uint64_t)looped == a[2])
			return 1;
		printf("is %#" PRIx64 ", looped %d: ", digest, looped);
		return 0;
	}
	if (count < 1 || !function(name, a, &result)) {
		printf("no such function: ");
		return 0;
	}
	if (result != a[count - 1])
		printf("is %#" PRIx64 ": ", result);
	return result == a[count - 1];
}

int main(void)
{
	static char text[2048], copy[2048];
	uint64_t arguments[MAX_ARGUMENTS];
	long lines = 0, wrong = 0;

	while (fgets(text, sizeof text, stdin)) {
		char *word;
		int count = 0;
		char *name;

		strcpy(copy, text);
		name = strtok(text, " \n");
		memset(arguments, 0, sizeof arguments);
		while (name && count < MAX_ARGUMENTS && (word = strtok(NULL, " \n")))
			arguments[count++] = strtoull(word, NULL, 16);
		lines++;
		if (!name || !line(name, arguments, count)) {
			wrong++;
			printf("line %ld: %s", lines, copy);
		}
	}
	printf("%ld lines, %ld wrong\n", lines, wrong);
	return wrong || !lines;
}
