/*
 * What the programs know of an interface: entries of their maps `..._ports`, by number of the interface. Plain C: fit for user space too.
 */
#ifndef WEFTLINE_PORT_TC_H
#define WEFTLINE_PORT_TC_H

#include <stdint.h>

#include "weftline_pint.h"

/* Entries of such a map. */
#define WL_INTERFACES 1024

enum wl_port_flags {
	/* The programs work on this interface. */
	WL_PORT_ON = 1,
	/* It leads to hosts: telemetry begins and ends here. */
	WL_PORT_HOST = 2,
	/* It keeps its load: `load` is filled in. */
	WL_PORT_LOAD = 4,
};

struct wl_port {
	/* A spin lock of the kernel's: 0. */
	uint32_t lock;
	uint32_t flags;
	/* Its number in what packets carry. */
	uint32_t number;
	/* Nanoseconds that a byte of the queue takes, in units of 2^-16: how long a packet will wait. 0: latencies are without that. */
	uint32_t wait;
	uint64_t bits_per_second;
	/* Bytes that left, of all packets. */
	uint64_t bytes;
	/* Key of the coins of the load. */
	uint64_t key;
	struct pint_port load;
};

#endif
