/*
 * The maps of ecn.bpf.c, for whoever fills and reads them. Plain C: fit for user space too.
 */
#ifndef WEFTLINE_ECN_TC_H
#define WEFTLINE_ECN_TC_H

#include <stdint.h>

/* Map ecn_ports, by number of the interface. */
struct ecn_port {
	/* Not 0: the program works on this interface. */
	uint32_t on;
	/* Not 0: queue and coin come with the packet, for tests. */
	uint32_t replay;
	/* Bytes that wait: no mark up to the first, a mark beyond the second. Below 2^31. */
	uint32_t kmin;
	uint32_t kmax;
	/* Chance of a mark at the second, from 0 at the first on, in units of 2^-32. */
	uint64_t pmax;
};

#define ECN_LONGEST 0x7fffffffu

/* Map ecn_counts, by CPU. */
enum ecn_count_kind {
	/* Packets of IP that were given to a port; those that it marked; those that it would have marked if their senders knew ECN. */
	ECN_COUNT_PASSED = 0,
	ECN_COUNT_MARKED = 1,
	ECN_COUNT_NOT_CAPABLE = 2,
	ECN_COUNTS = 3,
};

#endif
