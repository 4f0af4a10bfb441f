//! MP-HULA: HULA with the k best hops, for the subflows of multipath transports.
//!
//! Probes and tables are those of [`super::hula`], with k ranks; [`super::steering`] tells subflows apart and parts them.
//!
//! Source: Benet et al., "MP-HULA: multipath transport aware load balancing using programmable data planes", NetCompute 2018.
//! Differs from the source, and parameters: see [`super::hula`], [`super::steering`] and [`super::subflows`].

use super::counted::{FLOWLETS, HEADERS, PROBES};
use super::hula::{Hula, HulaParameters, no_tiers, rack_bytes};
pub use super::steering::word;
use super::steering::{self, Steering};
use super::subflows::RankForm;
use super::{BalancerFacts, BalancerParameters, NetworkView, Place, Reorders, Tag};
use crate::doc::SchemeDoc;
use crate::packet::Packet;
use crate::parameters::Parameters;
use crate::units::{Bytes, Time};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MpHulaParameters {
    pub hula: HulaParameters,
    /// Next hops kept for each ToR.
    pub ranks: u8,
    pub subflows: SubflowParameters,
}

/// How the subflows of a connection are told apart and parted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubflowParameters {
    pub rank: RankForm,
    /// A connection's first subflow takes a rank by its hash, not the best.
    pub hashed_start: bool,
    /// Subflows of a connection pass over ports that others of them use.
    pub disjoint: bool,
    /// Bytes of connection and subflow in packets between ToRs.
    pub mark: u16,
    /// Subflows that a ToR remembers, and how long a silent one.
    pub known: u32,
    pub idle: Time,
}

impl Default for SubflowParameters {
    fn default() -> SubflowParameters {
        SubflowParameters {
            rank: RankForm::Digits,
            hashed_start: false,
            disjoint: true,
            mark: 9,
            known: 1 << 16,
            idle: Time::from_ms(60_000),
        }
    }
}

impl BalancerParameters for MpHulaParameters {
    const DOC: SchemeDoc = SchemeDoc {
        name: "mp-hula",
        title: "HULA with the k best hops, for the subflows of multipath transports",
        source: "Benet et al., \"MP-HULA: multipath transport aware load balancing using programmable data planes\", NetCompute \
                 2018",
        validation: "Probes, ranks and failures by hand (tests/balancing.rs); subflows of multipath TCP on two tiers of two, and on four paths compared with a trial on Linux (tests/mptcp.rs).",
        counters: &[&FLOWLETS, &PROBES, &HEADERS],
        ..SchemeDoc::NONE
    };
    type State = Box<Hula>;

    fn read(p: &mut Parameters) -> MpHulaParameters {
        let help = "mp-hula: next hops kept for each ToR, best first (the talk shows 2 and 3)";
        let ranks = p.integer("ranks", 2, (1, 16), help) as u8;
        let subflows = SubflowParameters::read(p);
        MpHulaParameters { hula: HulaParameters::read(p), ranks, subflows }
    }

    fn start(&self, at: &Place) -> Box<Hula> {
        let steers = self.ranks > 1 && at.subflows;
        let steering = steers.then(|| {
            let tier = u32::from(at.tier.saturating_sub(1));
            let (lasts, k) = (self.hula.failure_time.0, u32::from(self.ranks));
            Box::new(Steering::new(&self.subflows, k, tier, at.tor.is_some(), lasts))
        });
        Box::new(Hula::new(self.hula, self.ranks, steering, at))
    }

    fn order(&self) -> Reorders {
        self.hula.order()
    }
    /// A mark has four bits for the subflow.
    fn facts(&self) -> BalancerFacts {
        let distinguishable_subflows = (self.ranks > 1).then_some(16);
        BalancerFacts { distinguishable_subflows, rack_bytes: rack_bytes(self.ranks), ..self.hula.facts() }
    }

    fn problems(&self, network: &NetworkView) -> Vec<(&'static str, String)> {
        let max = network.max_hops();
        let too_many = (u32::from(self.ranks) > max.max(2)).then(|| {
            let message = format!(
                "no switch has more than {max} next hops for a destination, found {}: set ranks = {max}",
                self.ranks
            );
            ("ranks", message)
        });
        no_tiers(Self::DOC.name, network).into_iter().chain(too_many).collect()
    }

    /// The mark: subflow; connection (8 bytes, of which the simulator keeps the first 59 bits).
    fn tag(&self, word: u64, between_switches: bool) -> Option<Tag> {
        let mark = steering::mark(word).filter(|_| between_switches)?;
        Some(Tag { kind: 1, first: mark.subflow, rest: mark.connection.to_be_bytes() })
    }
    fn probe_tag(&self, probe: &Packet) -> Option<Tag> {
        self.hula.probe_tag(probe)
    }
}

/// How ranks are given.
const RANKS: &[(&str, &str)] = &[
    (
        "digits",
        "at tier t above the hosts, subflow s has digit t of s in base k: subflows diverge at every tier (ours)",
    ),
    ("round-robin", "subflow s has rank s mod k at every tier (the talk's example)"),
];

impl SubflowParameters {
    fn read(p: &mut Parameters) -> SubflowParameters {
        let default = SubflowParameters::default();
        let help = "mp-hula: which of the ranked hops a subflow takes";
        let rank = match p.choice("rank", "digits", RANKS, help) {
            "round-robin" => RankForm::RoundRobin,
            _ => RankForm::Digits,
        };
        let help = "mp-hula: the first subflow of a connection takes a rank by the connection's hash, not the best hop (ours)";
        let hashed_start = p.flag("hashed_start", default.hashed_start, help);
        let help = "mp-hula: subflows pass over ports that others of their connection use at the switch (the talk: \
                    different subflows go to different next hops; the table is ours); off: ranks alone, with which \
                    two subflows may share a port when ranks change";
        let disjoint = p.flag("disjoint", default.disjoint, help);
        let help = "mp-hula: bytes that are added to a subflow's packets between ToRs: 64 bits of connection, 4 of \
                    subflow, padded";
        let mark = p.bytes("mark", Bytes(u64::from(default.mark)), help);
        if mark.0 > 200 {
            p.complain("mark", format!("{mark} is not a valid mark: expected at most 200B"));
        }
        let help = "mp-hula: maximum number of subflows that a ToR remembers; the one that has been idle longest is removed first (ours)";
        let known = p.integer("known", i64::from(default.known), (1, 1 << 24), help) as u32;
        let help = "mp-hula: a ToR removes a subflow that has been idle for longer than this (ours)";
        let idle = p.time("idle", default.idle, help);
        if idle == Time::ZERO {
            p.complain(
                "idle",
                "with 0s a subflow would be removed between two packets: expected more than 0".to_string(),
            );
        }
        SubflowParameters { rank, hashed_start, disjoint, mark: mark.0.min(200) as u16, known, idle }
    }
}
