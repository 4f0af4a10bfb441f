/*
 * The maps of pint.bpf.c, for whoever fills and reads them. Plain C: fit for user space too.
 */
#ifndef WEFTLINE_PINT_TC_H
#define WEFTLINE_PINT_TC_H

#include <stdint.h>

#include "port_tc.h"
#include "weftline_pint.h"

/* What a query is about: the order of `Value` in crates/pint/src/query.rs. */
enum pint_value_kind {
	PINT_SWITCH_ID = 0,
	PINT_INGRESS_PORT = 1,
	PINT_EGRESS_PORT = 2,
	PINT_TIMESTAMP = 3,
	PINT_HOP_LATENCY = 4,
	PINT_QUEUE_BYTES = 5,
	PINT_UTILISATION = 6,
	PINT_PORT_BYTES = 7,
};

enum pint_carrier { PINT_CARRIER_IPV4_ID = 1, PINT_CARRIER_FLOW_LABEL = 2 };

/* Map pint_config, one entry. */
struct pint_config {
	uint32_t switch_id;
	/* The carriers that are written. */
	uint32_t carriers;
	/* The upper bits of a flow label: the low four bits of the plan's version, or 15 where these are 0. */
	uint32_t plan_nibble;
	/* Time and queue come in the packet's control block: words 0 and 1, and 2. For replays and tests. */
	uint32_t replay;
	/* What each query is about. */
	uint8_t values[PINT_MAX_QUERIES];
	struct pint_plan plan;
};

/* Map pint_ports: struct wl_port (port_tc.h). */

/* Map pint_counts, by CPU. */
enum pint_count_kind {
	/* The source cleared a carrier. */
	PINT_COUNT_SOURCE = 0,
	/* It found a packet that can carry no digest: a fragment, no DF, no IP, a carrier that is off. */
	PINT_COUNT_UNSTAMPED = 1,
	/* A packet from a host with a hop limit that no host begins with: its hops cannot be counted. */
	PINT_COUNT_HOP_LIMIT = 2,
	/* The switch changed or kept a digest; left one of another plan; saw a label without a digest. */
	PINT_COUNT_SWITCH = 3,
	PINT_COUNT_OTHER_PLAN = 4,
	PINT_COUNT_NO_DIGEST = 5,
	/* The sink reported a packet; had no room to. */
	PINT_COUNT_SINK = 6,
	PINT_COUNT_LOST = 7,
	/* A hop found a packet in a loop. */
	PINT_COUNT_LOOP = 8,
	PINT_COUNTS = 9,
};

/* Ring buffer pint_records. */
struct pint_record {
	uint64_t time_ns;
	uint64_t packet;
	/* In the byte order of the host; IPv4 as ::ffff:a.b.c.d. */
	uint64_t source[2];
	uint64_t destination[2];
	uint16_t source_port;
	uint16_t destination_port;
	uint16_t digest;
	uint8_t protocol;
	/* As the packet left, after the last switch. */
	uint8_t hop_limit;
	uint8_t hops;
	uint8_t carrier;
	uint8_t looped;
	uint8_t reserved[5];
};

#endif
