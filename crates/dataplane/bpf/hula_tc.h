/*
 * The maps of hula.bpf.c, for whoever fills and reads them. Plain C: fit for user space too.
 *
 * All times are nanoseconds of CLOCK_MONOTONIC; 0 is never. A port is known by its number plus 1; 0 is none. So what a switch has
 * learnt (struct hula_port, hula_tor, hula_flowlet) starts as zeros.
 */
#ifndef WEFTLINE_HULA_TC_H
#define WEFTLINE_HULA_TC_H

#include <stdint.h>

/* Ports of a switch, the bits of a mask; switches with hosts (ToRs); interfaces by their number in Linux; slots of flowlets. */
#define HULA_PORTS 64
#define HULA_TORS 4096
#define HULA_INTERFACES 1024
#define HULA_SLOTS 65536
#define HULA_HOSTS 65536
#define HULA_ETHERTYPE 0x88b5

/* A spin lock of the kernel's: 0. */
#ifdef __bpf__
#define HULA_LOCK struct bpf_spin_lock
#else
#define HULA_LOCK uint32_t
#endif

enum hula_flags {
	/* Flowlets leave a port that has failed at once. */
	HULA_RELEASE = 1,
	/* A probe of the best hop replaces its value, whether better or worse. */
	HULA_REFRESH = 2,
	/* A probe that changes nothing is passed on once per interval. */
	HULA_SUPPRESS = 4,
};

/* Map hula_config, one entry. */
struct hula_config {
	/* The switch's number as a ToR plus 1; 0: it has no hosts. */
	uint32_t own;
	uint32_t tors;
	/* Of the flowlet table, 1 to HULA_SLOTS. */
	uint32_t slots;
	uint32_t flags;
	/* Estimator: 0, or bits to shift by plus 1, with time in ticks of 1.024 ns. */
	uint32_t shift;
	/* Not 0: time comes in the first two words of the packet's control block. For replays and tests. */
	uint32_t replay;
	/* Another hop takes the place of the best one if it is better by more than this. */
	uint32_t hysteresis;
	uint32_t reserved;
	uint64_t salt;
	/* Time constant, and 2^64 over it in picoseconds. */
	uint64_t tau_ns;
	uint64_t reciprocal;
	uint64_t gap_ns;
	uint64_t failure_ns;
	/* What is no news is passed on after this time. */
	uint64_t due_ns;
	/* Ports to switches of a higher tier and of a lower one. */
	uint64_t up;
	uint64_t down;
};

/* Map hula_interfaces: a port, by number of the interface. Map hula_hosts: a ToR plus 1, by struct hula_prefix. */
struct hula_prefix {
	/* Bits that count; those of an IPv4 address come after 96 of ::ffff:0:0. */
	uint32_t bits;
	uint8_t address[16];
};

/* Map hula_ports, by number of the port. */
struct hula_port {
	HULA_LOCK lock;
	uint32_t interface;
	/* Bytes that a full link sends in the time constant. */
	uint64_t whole;
	/* The estimator: bytes in units of 1/256, and when the last packet left. */
	uint64_t used;
	uint64_t last_ns;
	/* When the last probe came. */
	uint64_t probed_ns;
	/* The neighbour's address and the port's own. */
	uint8_t addresses[12];
	uint32_t reserved;
};

/* Map hula_tors, by number of the ToR. */
struct hula_tor {
	HULA_LOCK lock;
	/* The best hop, its utilisation in 1/256, when its last probe came. */
	uint32_t port;
	uint64_t received_ns;
	/* What was passed on last. */
	uint64_t passed_ns;
	uint32_t passed_port;
	uint8_t utilisation;
	uint8_t passed_utilisation;
	uint16_t reserved;
	/* Ports on shortest paths to it, and ports to neighbours for whom this switch is on one. */
	uint64_t allowed;
	uint64_t takers;
};

/* Map hula_flowlets, by slot. */
struct hula_flowlet {
	uint64_t last_ns;
	uint32_t port;
	uint32_t reserved;
};

/* A probe after its Ethernet header. */
struct hula_probe {
	uint8_t option;
	uint8_t length;
	uint8_t kind;
	uint8_t first;
	/* In network byte order. */
	uint32_t tor;
	uint8_t utilisation;
	uint8_t rest[3];
};

/* Map hula_counts, by CPU. */
enum hula_count_kind {
	/* Probes received; of these, not believed: of this switch itself, from a port off the shortest paths, from a host, of no ToR. */
	HULA_COUNT_PROBES = 0,
	HULA_COUNT_REFUSED = 1,
	/* Copies passed on; copies for which the interface had no use. */
	HULA_COUNT_PASSED = 2,
	HULA_COUNT_LOST = 3,
	/* Packets sent to the next switch, and their flowlets; of these, on another port than the one before. */
	HULA_COUNT_DATA = 4,
	HULA_COUNT_FLOWLETS = 5,
	HULA_COUNT_MOVED = 6,
	/* Flowlets for which a hash chose, since no hop is known. */
	HULA_COUNT_UNPROBED = 7,
	/* Packets left to the kernel: hop limit used up, too long for the next link. */
	HULA_COUNT_LEFT = 8,
	HULA_COUNTS = 9,
	/* Further ones are of programs that have more to count. */
	HULA_ROOM_FOR_COUNTS = 16,
};

#endif
