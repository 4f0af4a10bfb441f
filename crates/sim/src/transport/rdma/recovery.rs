//! Which packets a queue pair sends again after a loss.

use super::irn::IrnConfig;
use crate::parameters::{Names, Parameters};
use crate::units::Time;

/// One NACK per missing packet in this time (published).
const NACK_INTERVAL: Time = Time::from_us(500);

pub const RECOVERIES: Names = &[
    ("go-back-n", "after a gap, all packets from the missing one on are sent again"),
    ("selective-repeat", "out-of-order packets are kept and only missing ones are sent again"),
    (
        "irn",
        "selective repeat with a cap on the bytes outstanding and two timeouts, PFC off by default (IRN, SIGCOMM 2018)",
    ),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    GoBackN,
    /// Out-of-order placement, selective acknowledgement and retransmission: a packet counts as lost when one
    /// sent this many packets later has arrived.
    SelectiveRepeat {
        reordering: u32,
    },
    /// The same with the rest of IRN.
    Irn(IrnConfig),
}

impl Recovery {
    /// After how many later packets a missing one is lost, if only missing ones are sent again.
    pub fn selective(&self) -> Option<u32> {
        match self {
            Recovery::GoBackN => None,
            Recovery::SelectiveRepeat { reordering } => Some(*reordering),
            Recovery::Irn(irn) => Some(irn.reordering),
        }
    }

    pub fn irn(&self) -> Option<&IrnConfig> {
        if let Recovery::Irn(irn) = self { Some(irn) } else { None }
    }
}

/// Reads which packets are sent again, and the minimum time between two NACKs for the same one.
pub fn read(p: &mut Parameters) -> (Recovery, Time) {
    let help = "which packets are sent again after a loss (published: go-back-n)";
    let chosen = p.choice("recovery", "go-back-n", RECOVERIES, help);
    let help = "with selective-repeat and irn: a packet counts as lost when a packet sent this number of packets later has \
                arrived (3, like TCP's duplicate acknowledgements; irn: 1, as published)";
    let default = if chosen == "irn" { 1 } else { 3 };
    let reordering = p.integer("reordering", default, (1, 1 << 20), help) as u32;
    let recovery = match chosen {
        "selective-repeat" => Recovery::SelectiveRepeat { reordering },
        "irn" => Recovery::Irn(IrnConfig { reordering, bdp_cap: None, rto_low: None }),
        _ => {
            p.without_effect("reordering", || {
                "has no effect with recovery = \"go-back-n\": set recovery = \"selective-repeat\"".to_string()
            });
            Recovery::GoBackN
        }
    };
    let help = "minimum time between two NACKs for the same missing packet (published: 500 us)";
    let nack_interval = p.time("nack_interval", NACK_INTERVAL, help);
    // No error, since a sweep may go over `recovery`.
    if recovery.selective().is_some() && nack_interval != NACK_INTERVAL && p.is_own("nack_interval") {
        p.warn(format!(
            "transport.nack_interval has no effect with recovery = \"{chosen}\", whose receivers send no NACKs: set recovery = \"go-back-n\""
        ));
    }
    (recovery, nack_interval)
}
