/*
 * The maps that mphula.bpf.c has besides those of hula_tc.h, for whoever fills and reads them. Plain C: fit for user space too.
 *
 * The entry of hula_tors has the first of the ranked hops. All starts as zeros but the configuration.
 */
#ifndef WEFTLINE_MPHULA_TC_H
#define WEFTLINE_MPHULA_TC_H

#include "hula_tc.h"

/* Next hops kept for each ToR; subflows of a connection; connections whose ports a switch remembers; what a ToR remembers. */
#define MPHULA_RANKS 16
#define MPHULA_NUMBERS 16
#define MPHULA_USED 1024
#define MPHULA_SUBFLOWS 16384
/* Bytes of the ring buffer. */
#define MPHULA_RING (1 << 20)

/* The mark: an option of the IPv4 header, of 12 bytes, copied to fragments. */
#define MPHULA_OPTION 158
#define MPHULA_KIND 1

enum mphula_flags {
	/* Subflows are told apart. */
	MPHULA_STEERS = 1,
	/* They pass over ports that others of their connection use. */
	MPHULA_DISJOINT = 2,
	/* A connection's first subflow takes a rank by its hash. */
	MPHULA_HASHED = 4,
};

/* Map mphula_config, one entry. */
struct mphula_config {
	uint32_t ranks;
	uint32_t flags;
	/* Subflow s has rank s / divisor mod ranks. */
	uint32_t divisor;
	/* Steps above the ToRs. */
	uint32_t tier;
	/* By how much, in 1/256, a hop must be better to pass the one above. */
	uint32_t hysteresis;
	uint32_t reserved;
};

/* A ranked hop: its port plus 1, its utilisation in 1/256, when its last probe came. */
struct mphula_hop {
	uint64_t received_ns;
	uint32_t port;
	uint32_t utilisation;
};

/* Map mphula_hops, by number of the ToR, under the lock of its entry in hula_tors. The first `used` are known, best first. */
struct mphula_hops {
	struct mphula_hop hops[MPHULA_RANKS];
	uint32_t used;
	uint32_t reserved;
};

/* Map mphula_used, by hash of the connection: the ports that its subflows use, plus 1, and since when. */
struct mphula_used {
	HULA_LOCK lock;
	uint32_t reserved;
	uint64_t connection;
	uint64_t last_ns[MPHULA_NUMBERS];
	uint8_t ports[MPHULA_NUMBERS];
};

/* Of a subflow's packets to another rack, in the byte order of the machine: an IPv4 address is ::ffff:a.b.c.d. */
struct mphula_ends {
	uint64_t source[2];
	uint64_t destination[2];
	/* Source port (upper half) and destination port. */
	uint32_t ports;
	uint32_t reserved;
};

/* Map mphula_subflows, by struct mphula_ends. A connection is the token of its initiator (upper half) and that of the other end. */
struct mphula_subflow {
	uint64_t connection;
	uint32_t number;
	uint32_t reserved;
};

/* Map mphula_tokens: a connection, by either token. Map mphula_connections, by connection: */
struct mphula_connection {
	/* Subflows that are known, and the number of the next one. */
	uint32_t subflows;
	uint32_t next;
};

/* A record of the ring buffer mphula_keys: a packet had both keys of a connection. What learns from it fills the three maps above. */
struct mphula_keys {
	/* As the ToR's own host sends. */
	struct mphula_ends ends;
	/* The initiator's first. */
	uint64_t keys[2];
	/* Of MPTCP. */
	uint32_t version;
	uint32_t reserved;
};

/* Map hula_counts, after HULA's own. */
enum mphula_count_kind {
	/* Packets that got a mark, and from which it was taken. */
	MPHULA_COUNT_MARKED = 9,
	MPHULA_COUNT_CLEARED = 10,
	/* Subflows that joined a known connection; packets that join one that is not known. */
	MPHULA_COUNT_JOINED = 11,
	MPHULA_COUNT_STRANGERS = 12,
	/* Packets with both keys, and those for which the ring buffer had no room. */
	MPHULA_COUNT_KEYS = 13,
	MPHULA_COUNT_MISSED = 14,
	/* Packets with a mark of a host's own, which are dropped. */
	MPHULA_COUNT_FORGED = 15,
};

#endif
