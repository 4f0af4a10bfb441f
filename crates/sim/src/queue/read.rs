//! How a scenario names a queue discipline, and the keys of each.

use super::cebinae;
use crate::parameters::Parameters;
use crate::queue::config::{
    AfqConfig, CodelConfig, DisciplineConfig, DropRule, Dualpi2Config, FqCodelConfig, Limit, ManagedConfig,
    QueueConfig, RedConfig,
};
use crate::units::{Bytes, Time};

/// Names that a scenario may use, with what they are.
pub const KINDS: &[(&str, &str)] = &[
    ("afq", "queues as rounds in which every flow may send as much; bytes of flows in a sketch (NSDI 2018)"),
    ("cebinae", "two rounds of FIFO; a full link taxes its largest flows and leaves the rest to the others"),
    ("codel", "first come, first served; drops or marks what has waited too long for too long (RFC 8289)"),
    ("drr", "a queue for every flow, by turns of equal bytes; a full port drops from the longest"),
    ("dualpi2", "a low-latency and a classic queue with coupled marks (RFC 9332)"),
    (
        "fifo",
        "first come, first served: within each of eight classes, served in turn, or of all where it has a limit of its own",
    ),
    (
        "fq-codel",
        "flows hashed into queues, by turns of equal bytes, new ones first, each under CoDel (RFC 8290)",
    ),
    (
        "pfabric",
        "the flow with the least left first; a full port drops the packet whose flow has the most left",
    ),
    ("priority", "eight classes, the lower number first; first come, first served within a class"),
    ("red", "first come, first served; drops or marks by the average queue, random and early"),
];

/// Where a discipline was published.
pub fn source(kind: &str) -> &'static str {
    match kind {
        "afq" => {
            "Sharma, Liu, Atreya, Krishnamurthy, \"Approximating Fair Queueing on Reconfigurable Switches\", NSDI 2018"
        }
        "cebinae" => {
            "Yu, Sonchack, Liu, \"Cebinae: Scalable In-network Fairness Augmentation\", SIGCOMM 2022, and its authors' ns-3.35 code"
        }
        "codel" => "RFC 8289 (2018)",
        "drr" => "Shreedhar, Varghese, \"Efficient Fair Queueing using Deficit Round Robin\", SIGCOMM 1995",
        "dualpi2" => "RFC 9332 (2023), Appendix A",
        "fq-codel" => "RFC 8290 (2018)",
        "pfabric" => "Alizadeh et al., \"pFabric\", SIGCOMM 2013",
        "red" => "Floyd, Jacobson, \"Random Early Detection Gateways for Congestion Avoidance\", ToN 1993",
        _ => "",
    }
}

/// Which packet a full queue drops.
pub const DROPS: &[(&str, &str)] = &[
    ("lowest", "the youngest packet of the least urgent class that waits, the new one among them"),
    ("tail", "the new one"),
];

/// Reads the settings of the discipline named `kind`; none where [`KINDS`] has no such name. `limit` is what a port holds
/// where nothing is said, if it has a limit of its own.
pub fn read(kind: &str, limit: Option<Bytes>, p: &mut Parameters) -> Option<QueueConfig> {
    match kind {
        "afq" => Some(managed(p, 1000, |p| DisciplineConfig::Afq(afq(p)))),
        "cebinae" => Some(managed(p, 1000, |p| DisciplineConfig::Cebinae(cebinae::read(p)))),
        "codel" => Some(managed(p, 1000, |p| DisciplineConfig::Codel(codel(p, false, "exact")))),
        "drr" => Some(managed(p, 1000, |p| DisciplineConfig::Drr { quantum: quantum(p) })),
        "dualpi2" => Some(managed(p, 10_000, |p| DisciplineConfig::Dualpi2(dualpi2(p)))),
        "red" => Some(managed(p, 1000, |p| DisciplineConfig::Red(red(p)))),
        "fq-codel" => Some(managed(p, 10_240, |p| DisciplineConfig::FqCodel(fq_codel(p)))),
        "fifo" => Some(fifo(p)),
        "pfabric" => Some(QueueConfig::Pfabric { limit: pfabric_limit(limit, p) }),
        "priority" => {
            let help = "bytes that may wait at a port, beside the limits of the shared buffer; 0B: no limit of its own";
            let limit = p.bytes("limit", limit.unwrap_or(Bytes(0)), help);
            let help = "which packet a port that has reached its limit drops";
            let drop = match p.choice("drop", "lowest", DROPS, help) {
                "tail" => DropRule::Tail,
                _ => DropRule::Lowest,
            };
            Some(QueueConfig::Priority { limit: (limit.0 > 0).then_some(limit), drop })
        }
        _ => None,
    }
}

/// Bytes that pFabric's publication lets wait at a port of 10 Gb/s.
pub const PFABRIC_LIMIT: Bytes = Bytes(36 << 10);

fn pfabric_limit(limit: Option<Bytes>, p: &mut Parameters) -> Bytes {
    let help = "bytes that may wait at a port (published: 36KiB at 10 Gb/s, two bandwidth-delay products; with \
                transport.kind = \"pfabric\" scaled like its window)";
    let limit = p.bytes("limit", limit.unwrap_or(PFABRIC_LIMIT), help);
    if limit == Bytes(0) || limit.0 > u64::from(u32::MAX) {
        let message = format!("{limit} is no limit: expected more than 0B and less than 4GiB");
        p.complain("limit", message);
        return PFABRIC_LIMIT;
    }
    limit
}

fn fifo(p: &mut Parameters) -> QueueConfig {
    let limit = limit(p, Limit { packets: 0, bytes: Bytes(0) });
    let (nic_packets, link_header) = behind(p);
    if limit == Limit::NONE {
        if nic_packets > 0 || link_header > 0 {
            let message =
                "a fifo of the shared buffer has no NIC queue and no link header: set packets or limit";
            p.complain("nic_packets", message.to_string());
        }
        return QueueConfig::Fifo;
    }
    QueueConfig::Managed(ManagedConfig {
        discipline: DisciplineConfig::Fifo,
        limit,
        nic_packets,
        link_header,
    })
}

/// A discipline that owns its port's buffer, of so many packets where nothing is said.
fn managed(
    p: &mut Parameters,
    packets: u32,
    discipline: impl FnOnce(&mut Parameters) -> DisciplineConfig,
) -> QueueConfig {
    let limit = limit(p, Limit { packets, bytes: Bytes(0) });
    let (nic_packets, link_header) = behind(p);
    let discipline = discipline(p);
    QueueConfig::Managed(ManagedConfig { discipline, limit, nic_packets, link_header })
}

/// `packets` and `limit`: what a port may hold.
fn limit(p: &mut Parameters, default: Limit) -> Limit {
    let help = "packets that may wait at a port, in a buffer of its own instead of the shared one; 0: no limit in packets";
    let packets = p.integer("packets", i64::from(default.packets), (0, 100_000_000), help) as u32;
    let help = "bytes that may wait at a port, beside the limits of the shared buffer where it uses that; 0B: no limit";
    let bytes = p.bytes("limit", default.bytes, help);
    Limit {
        packets: if packets == 0 { u32::MAX } else { packets },
        bytes: if bytes.0 == 0 { Limit::NONE.bytes } else { bytes },
    }
}

/// `nic_packets` and `link_header`: what is behind the discipline.
fn behind(p: &mut Parameters) -> (u32, u16) {
    let help = "packets that the NIC takes from the discipline before it can send them";
    let nic = p.integer("nic_packets", 0, (0, 100_000), help) as u32;
    let help = "bytes of every packet on the wire that the discipline does not count";
    let header = p.bytes("link_header", Bytes(0), help);
    if header.0 > 64 {
        p.complain("link_header", format!("{header} is no link header: expected at most 64B"));
    }
    (nic, header.0.min(64) as u16)
}

const ARITHMETIC: &[(&str, &str)] = &[
    ("exact", "roots of the count, in picoseconds"),
    ("fixed-point", "ticks of 1024 ns and 16 bits of the inverse root, as Linux and ns-3"),
];

fn codel(p: &mut Parameters, ecn: bool, arithmetic: &'static str) -> CodelConfig {
    let help = "packets may wait so long (RFC 8289: 5ms; in a datacenter some tens of microseconds)";
    let target = p.time("target", Time::from_ms(5), help);
    let help = "time above the target before the first drop, and from then to the next (RFC 8289: 100ms, a large round trip)";
    let interval = p.time("interval", Time::from_ms(100), help);
    if target == Time::ZERO || interval <= target || interval > Time::from_ms(1_000_000) {
        let message = format!("{interval} must be above the target, which is {target}, and at most 1000s");
        p.complain("interval", message);
    }
    let help = "nothing is dropped that leaves fewer bytes behind (RFC 8289: the largest packet)";
    let least = p.bytes("least", Bytes(1500), help).0.min(u64::from(u32::MAX)) as u32;
    let help = "how times are computed (codel: exact; fq-codel: fixed-point)";
    let fixed_point = p.choice("arithmetic", arithmetic, ARITHMETIC, help) == "fixed-point";
    let help = "mark packets whose senders react to it instead of dropping them (fq-codel, red and dualpi2: true; codel: \
                false)";
    CodelConfig { target, interval, least, fixed_point, ecn: p.flag("ecn", ecn, help) }
}

const RETIREMENTS: &[(&str, &str)] =
    &[("behind", "if there are old ones (RFC 8290, Linux)"), ("always", "always (ns-3.35)")];

fn fq_codel(p: &mut Parameters) -> FqCodelConfig {
    let codel = codel(p, true, "fixed-point");
    let help = "queues that flows are hashed into; 0: one for every flow, without collisions";
    let queues = p.integer("queues", 1024, (0, 1 << 20), help) as u32;
    let quantum = quantum(p);
    let batch = p.integer("batch", 64, (1, 1 << 20), "most packets that a full port drops at once") as u32;
    let salt = p.integer("salt", 0, (0, i64::MAX), "of the hash of flows into queues") as u64;
    let ns3_senders = ns3_senders(p);
    let help = "when a new queue that is empty passes through the old ones";
    let always_old = p.choice("retire", "behind", RETIREMENTS, help) == "always";
    FqCodelConfig { codel, queues, quantum, batch, salt, ns3_senders, always_old }
}

/// `ns3_senders`: how flows are hashed.
pub fn ns3_senders(p: &mut Parameters) -> u32 {
    let help = "flows are hashed as in the runs of Cebinae's authors, of a dumbbell with so many senders: by Murmur3 over the \
                five-tuple as ns-3 does, one flow between two hosts; 0: by a hash of our own";
    p.integer("ns3_senders", 0, (0, 1 << 24), help) as u32
}

fn quantum(p: &mut Parameters) -> u32 {
    let quantum = p.bytes("quantum", Bytes(1500), "bytes that a flow may send in its turn (a full packet)");
    if quantum.0 == 0 || quantum.0 > 1 << 30 {
        p.complain("quantum", format!("{quantum} is not between 1B and 1GiB"));
    }
    quantum.0.clamp(1, 1 << 30) as u32
}

fn red(p: &mut Parameters) -> RedConfig {
    let least = p.bytes("min_queue", Bytes(50_000), "nothing is dropped below this average queue");
    let most = p.bytes(
        "max_queue",
        Bytes(150_000),
        "from this average queue on drops grow fast (Floyd: three times min_queue)",
    );
    if least >= most || most.0 > 1 << 50 {
        p.complain("min_queue", format!("{least} must be below max_queue, which is {most}"));
    }
    let weight =
        p.number("weight", 0.002, (1e-9, 1.0), "of a new sample in the average queue (Floyd: 0.002)");
    let help = "of a drop at max_queue (Floyd: 0.1 with gentle)";
    let probability = p.number("probability", 0.1, (0.0, 1.0), help);
    let help = "above max_queue probabilities go on to 1 at twice of it, instead of dropping everything";
    let gentle = p.flag("gentle", true, help);
    let mean_packet = p.bytes("mean_packet", Bytes(1500), "in which idle time is counted");
    if mean_packet.0 == 0 || mean_packet.0 > 1 << 20 {
        p.complain("mean_packet", format!("{mean_packet} is no packet"));
    }
    let ecn = p.flag("ecn", true, "mark packets whose senders react to it instead of dropping them");
    let mean_packet = Bytes(mean_packet.0.clamp(1, 1 << 20));
    RedConfig { least, most, weight, probability, gentle, mean_packet, ecn }
}

fn dualpi2(p: &mut Parameters) -> Dualpi2Config {
    let help = "time that classic packets shall wait (RFC 9332: 15ms; codel: packets may wait so long)";
    let target = p.time("target", Time::from_ms(15), help);
    let update =
        p.time("update", Time::from_ms(15), "between two updates of the probability (RFC 9332: 15ms)");
    if update < Time::from_ns(100) {
        p.complain("update", format!("{update} is too short: expected at least 100ns"));
    }
    let alpha =
        p.number("alpha", 0.15, (0.0, 1e9), "gain on the difference to the target, in 1/s (RFC 9332: 0.15)");
    let beta =
        p.number("beta", 3.0, (0.0, 1e9), "gain on the change since the last update, in 1/s (RFC 9332: 3)");
    let help = "low-latency marks are this times the root of classic drops (RFC 9332: 2)";
    let coupling = p.number("coupling", 2.0, (0.01, 100.0), help);
    let help = "low-latency packets are marked that have waited so long (RFC 9332: 800us)";
    let ramp_from = p.time("ramp_from", Time::from_us(800), help);
    let help = "and all of them that have waited so much longer (RFC 9332: 400us)";
    let ramp = p.time("ramp", Time::from_us(400), help);
    if ramp == Time::ZERO {
        p.complain("ramp", "must be more than zero".to_string());
    }
    let help = "low-latency packets are served as if they had come so much earlier";
    let shift = p.time("shift", Time::from_ms(30), help);
    let help = "traffic class of low-latency packets; 0: all that may be marked";
    let l4s_class = p.integer("l4s_class", 0, (0, 7), help) as u8;
    let ecn = p.flag("ecn", true, "mark classic packets whose senders react to it instead of dropping them");
    let (update, ramp) = (update.max(Time::from_ns(100)), ramp.max(Time(1)));
    Dualpi2Config { target, update, alpha, beta, coupling, ramp_from, ramp, shift, l4s_class, ecn }
}

fn afq(p: &mut Parameters) -> AfqConfig {
    let rounds = p.integer("rounds", 32, (1, 1 << 16), "queues, each a round (NSDI 2018: 32)") as u32;
    let round_bytes = p.bytes("round_bytes", Bytes(6000), "bytes that a flow may send in a round");
    if round_bytes.0 == 0 || round_bytes.0 > 1 << 30 {
        p.complain("round_bytes", format!("{round_bytes} is not between 1B and 1GiB"));
    }
    let sketch_rows = p.integer("sketch_rows", 2, (1, 16), "rows of the count-min sketch") as u32;
    let sketch_slots = p.integer("sketch_slots", 16_384, (1, 1 << 22), "counters in a row of it") as u32;
    let round_bytes = round_bytes.0.clamp(1, 1 << 30) as u32;
    AfqConfig { rounds, round_bytes, sketch_rows, sketch_slots }
}
