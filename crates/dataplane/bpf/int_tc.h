/*
 * The maps of int.bpf.c, for whoever fills and reads them. Plain C: fit for user space too.
 */
#ifndef WEFTLINE_INT_TC_H
#define WEFTLINE_INT_TC_H

#include <stdint.h>

#include "port_tc.h"

/* Domain of INT whose hops may tell what HPCC needs beyond the standard's values. */
#define INT_DOMAIN 0x5746
/*
 * Its instructions: bytes of the packets that were given to the port (two words); its rate in kb/s; bytes that the port's queueing
 * discipline has transmitted (two words).
 */
#define INT_DOMAIN_BYTES 0x8000
#define INT_DOMAIN_RATE 0x4000
#define INT_DOMAIN_SENT 0x2000

/* Words of a hop, at most; bytes of a UDP header, INT's shim and its MD header; bytes of them and the longest stack. */
#define INT_HOP_WORDS 31
#define INT_HEADER 24
#define INT_PART (INT_HEADER + 4 * 252)

/* Map int_config, one entry. What a source asks for; node, port and domain count for all. */
struct int_config {
	uint32_t node;
	/* UDP port that says that INT follows. */
	uint16_t port;
	/* Values that hops are to give, and those of the domain (0: none). */
	uint16_t bitmap;
	uint16_t domain;
	uint16_t domain_bitmap;
	/* Words of these values. */
	uint8_t hop_words;
	uint8_t max_hops;
	uint16_t reserved;
	uint32_t replay;
	uint32_t reserved2;
	/* Packets that are chosen, by their id: in units of 2^-32, 2^32 is all. */
	uint64_t sample;
};

/* Map int_ports: struct wl_port (port_tc.h). Map int_counts, by CPU. */
enum int_count_kind {
	/* The source put INT in; only its header, for want of room; nothing, for want of room. */
	INT_COUNT_SOURCE = 0,
	INT_COUNT_SOURCE_M = 1,
	INT_COUNT_SOURCE_MTU = 2,
	/* It passed over a packet: not chosen; no IP, a fragment, IP options, not segmented yet. */
	INT_COUNT_NOT_CHOSEN = 3,
	INT_COUNT_UNFIT = 4,
	/* A hop wrote; found no hops remaining; had no room. */
	INT_COUNT_TRANSIT = 5,
	INT_COUNT_TRANSIT_E = 6,
	INT_COUNT_TRANSIT_M = 7,
	INT_COUNT_MALFORMED = 8,
	/* The sink took INT off; had no room to report it. */
	INT_COUNT_SINK = 9,
	INT_COUNT_LOST = 10,
	INT_COUNTS = 11,
};

/* Ring buffer int_reports: as long as `part` says. */
struct int_report {
	uint64_t time_ns;
	/* In the byte order of the host; IPv4 as ::ffff:a.b.c.d. */
	uint64_t source[2];
	uint64_t destination[2];
	uint32_t part_bytes;
	/* What the sink itself has to say, as words in network order. */
	uint32_t hop_words;
	uint32_t hop[INT_HOP_WORDS + 1];
	/* UDP header, shim, MD header and stack as they came. */
	uint8_t part[INT_PART];
};

#endif
