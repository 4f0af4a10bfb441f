/*
 * What dctcp.bpf.c is given and what it writes down. Plain C: fit for user space too.
 */
#ifndef WEFTLINE_DCTCP_H
#define WEFTLINE_DCTCP_H

#include <stdint.h>

/* One, in the units of alpha and of its gain. */
#define DCTCP_ONE (1u << 20)
/* By which the settings are found in the object. */
#define DCTCP_MARK 0x7463642d74666577ull

struct dctcp_settings {
	uint64_t mark;
	/* The weight g of a new share, and alpha before the first window of data, in units of 2^-20. */
	uint32_t gain;
	uint32_t first_alpha;
	/* For tests, unless 0: what dctcp_cut returns, as if the kernel had skipped it. */
	uint32_t returned;
};

/* Windows of data that are written down, those of all connections together: the first ones of each core. */
#define DCTCP_WINDOWS 8192

/* Map wl_ID_alpha, each core its own: entry 0 has the number of windows in `delivered` and that of windows set again in `marked`; each later one is of one window. */
struct dctcp_window {
	/* Packets that were delivered, and how many of them with an echo. */
	uint32_t delivered;
	uint32_t marked;
	/* Alpha before and after. */
	uint32_t before;
	uint32_t after;
};

#endif
