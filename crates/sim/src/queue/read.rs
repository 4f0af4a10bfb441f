//! How a scenario names a queue discipline, and the keys of each.

use crate::config::{DisciplineConfig, DropRule, Limit, ManagedConfig, QueueConfig};
use crate::parameters::Parameters;
use crate::units::Bytes;

/// Names that a scenario may use, with what they are.
pub const KINDS: &[(&str, &str)] = &[
    (
        "fifo",
        "first come, first served: within each of eight classes, served in turn, or of all where it has a limit of its own",
    ),
    (
        "pfabric",
        "the flow with the least left first; a full port drops the packet whose flow has the most left",
    ),
    ("priority", "eight classes, the lower number first; first come, first served within a class"),
];

/// Which packet a full queue drops.
pub const DROPS: &[(&str, &str)] = &[
    ("lowest", "the youngest packet of the least urgent class that waits, the new one among them"),
    ("tail", "the new one"),
];

/// Reads the settings of the discipline named `kind`; none where [`KINDS`] has no such name. `limit` is what a port holds
/// where nothing is said, if it has a limit of its own.
pub fn read(kind: &str, limit: Option<Bytes>, p: &mut Parameters) -> Option<QueueConfig> {
    match kind {
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
