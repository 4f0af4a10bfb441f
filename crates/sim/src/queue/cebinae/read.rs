//! Cebinae's parameters and their keys.

use super::WHOLE;
use crate::parameters::Parameters;
use crate::queue::five_tuple::ns3_senders;
use crate::queue::managed::Limit;
use crate::units::{Bytes, Rate, Time};

/// How Cebinae's filter multiplies a rate by a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Products {
    /// As it is, rounded down to a byte.
    Exact,
    /// By tables of logarithms: both rounded down to powers of two.
    Tables,
    /// In floating point and seconds, cut to a byte.
    Double,
}

/// Shares are parts of 10^9; see [`super`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CebinaeConfig {
    /// Length of a round; none: so that a full buffer drains in one.
    pub round: Option<Time>,
    /// Granularity of time within a round.
    pub virtual_round: Time,
    /// What the control plane has for its work before every rotation.
    pub deadline: Time,
    /// Rounds between recomputations.
    pub period: u32,
    pub tax: u64,
    pub enforced: Enforced,
    pub port_slack: u64,
    pub flow_slack: u64,
    /// Both rounds share the buffer; else each has half of it.
    pub shared: bool,
    pub cache: CacheKind,
    pub cache_stages: u32,
    pub cache_slots: u32,
    /// Bytes of every packet that the flow cache does not count.
    pub cache_header: u32,
    /// Flows are told apart by their hosts only.
    pub by_hosts: bool,
    /// Flows are hashed as in ns-3, of a dumbbell with so many senders; 0: as they are here.
    pub ns3_senders: u32,
    /// The filter lets everything into the head while the port is not saturated.
    pub only_saturated: bool,
    /// What is not judged waits in a queue of its own.
    pub default_queue: bool,
    /// A packet is judged with itself counted.
    pub counts_itself: bool,
    pub products: Products,
    /// Flows are judged by the mean of two windows.
    pub smooth: bool,
    /// Windows for which a port counts as saturated after it was.
    pub hold: u32,
}

impl CebinaeConfig {
    /// The length of a round in nanoseconds at a port of this rate and limit: where nothing is said the next power of two
    /// in which a full buffer of full packets drains, but at least twice what control takes.
    pub fn round_at(&self, rate: Rate, limit: Limit) -> u64 {
        let drain = rate.transmission_time(limit.full().0);
        let control = 2 * (self.deadline.ns() + self.virtual_round.ns());
        // What drains counts up to half a minute, whatever the buffer.
        let min = drain.ns().min(1 << 35).max(control);
        self.round.map_or(min.next_power_of_two(), Time::ns)
    }
}

/// What happens to packets of top flows in excess of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enforced {
    /// They wait for the next round.
    Delay,
    /// They are dropped.
    Drops,
    /// They are dropped, but pass in a round in which top flows have no rate yet.
    DropsFromNextRound,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheKind {
    /// A flow that finds its slots taken is not counted.
    FirstCome,
    /// It takes over the slot of the last stage.
    Overwrite,
    Exact,
}

const BUFFERS: &[(&str, &str)] =
    &[("pool", "both rounds share the buffer"), ("split", "each round has half of the buffer")];

const ENFORCED: &[(&str, &str)] = &[
    (
        "delay",
        "the largest flows' packets in excess of a round wait for the next one; those in excess of both are dropped",
    ),
    (
        "drop",
        "they are dropped at once (the talk's alternative; it allows a tax of 0); the rate of a flow that becomes one of the \
         largest begins with the next round, and until then it is dropped whole",
    ),
    ("drop-from-next-round", "the same, but such a flow is not judged until its rate begins"),
];

const CACHES: &[(&str, &str)] = &[
    ("first-come", "a flow that finds all of its slots occupied is not counted in this window"),
    ("overwrite", "a flow that finds all of its slots occupied takes over the slot of the last stage"),
    ("exact", "every flow is counted"),
];

const FLOWS: &[(&str, &str)] =
    &[("flow", "every flow separately"), ("hosts", "by source and destination only")];

const FILTERS: &[(&str, &str)] = &[
    ("always", "always (the authors' ns-3 code)"),
    ("saturated", "only while the port is saturated (the Tofino prototype)"),
];

const JUDGED: &[(&str, &str)] = &[
    ("before", "by the bytes that the packet's group has sent before it (the authors' ns-3 code)"),
    ("after", "by the same bytes plus those of the packet (the Tofino prototype)"),
];

const PRODUCTS: &[(&str, &str)] = &[
    ("exact", "exactly, rounded down to a byte"),
    (
        "double",
        "in floating point and seconds, truncated to a byte, as are the shares that slacks leave (the authors' ns-3 code)",
    ),
    ("tables", "by tables of logarithms: both rounded down to powers of two (the Tofino prototype)"),
];

pub fn read(p: &mut Parameters) -> CebinaeConfig {
    let help = "length of a round, in which a full buffer must drain; auto: the next power of two in nanoseconds in \
                which it does (the rule of all published rows)";
    let round = p.time_or_auto("round", help);
    let help = "granularity of time within a round (published runs: 1ns)";
    let virtual_round = p.time("virtual_round", Time::from_ns(1), help);
    let help = "time that the control plane has for its work before every rotation (published runs: 100us)";
    let deadline = p.time("deadline", Time::from_us(100), help);
    check_times(p, round, virtual_round, deadline);
    let period = p.integer("period", 1, (1, 1_000_000), "rounds between recomputations (published runs: 1)");
    let help = "what happens to packets of the largest flows in excess of a round; auto: delay";
    let enforced = match p.choice_or_auto("enforce", ENFORCED, help) {
        Some("drop") => Enforced::Drops,
        Some("drop-from-next-round") => Enforced::DropsFromNextRound,
        _ => Enforced::Delay,
    };
    let help = "share by which a full link reduces the rate of its largest flows (published runs: 0.01)";
    let tax = share_from(u64::from(enforced == Enforced::Delay), p, "tax", help);
    let help =
        "a link counts as full if it sends more than (1 - this share) of its rate (published runs: 0.01)";
    let port_slack = share(p, "port_slack", help);
    let help =
        "flows within this share of the largest flow are limited together with it (published runs: 0.01)";
    let flow_slack = share(p, "flow_slack", help);
    let shared = p.choice("buffer", "pool", BUFFERS, "how the two rounds use the port's buffer") == "pool";
    let cache = match p.choice("cache", "first-come", CACHES, "how flows are counted") {
        "overwrite" => CacheKind::Overwrite,
        "exact" => CacheKind::Exact,
        _ => CacheKind::FirstCome,
    };
    let help = "stages of the flow cache, each with its own hash (published: 2)";
    let cache_stages = p.integer("cache_stages", 2, (1, 16), help) as u32;
    let help = "slots of a stage of the flow cache (published: 2048)";
    let cache_slots = p.integer("cache_slots", 2048, (1, 1 << 24), help) as u32;
    let help = "bytes of every packet that the flow cache does not count though the port does (the authors' ns-3 code: \
                the IP header, 20B)";
    let cache_header = p.bytes("cache_header", Bytes(0), help);
    if cache_header.0 > 1000 {
        p.complain("cache_header", format!("{cache_header} is not a valid header: expected at most 1000B"));
    }
    let by_hosts =
        p.choice("cache_key", "flow", FLOWS, "which packets the flow cache counts as one flow") == "hosts";
    let ns3_senders = ns3_senders(p);
    let only_saturated =
        p.choice("filter", "always", FILTERS, "when the filter checks packets") == "saturated";
    let help = "packets that the filter does not check wait in a separate queue, which is served after the two rounds (the \
         Tofino prototype)";
    let default_queue = p.flag("default_queue", false, help);
    let counts_itself =
        p.choice("filter_counts", "before", JUDGED, "how the filter assigns a packet to a round") == "after";
    let help = "how a rate is multiplied by a time";
    let products = match p.choice("products", "exact", PRODUCTS, help) {
        "tables" => Products::Tables,
        "double" => Products::Double,
        _ => Products::Exact,
    };
    let help = "classify flows by the mean of their last two windows (the Tofino prototype)";
    let smooth = p.flag("smooth", false, help);
    let help = "number of windows for which a port still counts as saturated after it was (the Tofino prototype: \
                5)";
    let hold = p.integer("hold", 0, (0, 1_000_000), help) as u32;
    CebinaeConfig {
        round,
        virtual_round,
        deadline,
        period: period as u32,
        tax,
        enforced,
        port_slack,
        flow_slack,
        shared,
        cache,
        cache_stages,
        cache_slots,
        cache_header: cache_header.0.min(1000) as u32,
        by_hosts,
        ns3_senders,
        only_saturated,
        default_queue,
        counts_itself,
        products,
        smooth,
        hold,
    }
}

/// A round must be longer than what control takes of it, with the virtual round that it is waited for.
fn check_times(p: &mut Parameters, round: Option<Time>, virtual_round: Time, deadline: Time) {
    const LONGEST: Time = Time::from_us(1_000_000_000);
    for (key, time) in [("virtual_round", virtual_round), ("deadline", deadline)] {
        if time < Time::from_ns(1) || time > LONGEST {
            p.complain(key, format!("{time} is not between 1ns and 1000s"));
            return;
        }
    }
    let Some(round) = round else { return };
    if round > LONGEST || round.ns() <= deadline.ns().saturating_add(virtual_round.ns()) {
        let message = format!(
            "{round} is shorter than control needs, {deadline} (deadline) and {virtual_round} (virtual_round), or longer \
             than 1000s: set a longer round, or a shorter deadline"
        );
        p.complain("round", message);
    }
}

/// A share in (0, 1], in parts of 10^9.
fn share(p: &mut Parameters, key: &'static str, help: &'static str) -> u64 {
    share_from(1, p, key, help)
}

/// The same with a minimum.
fn share_from(min: u64, p: &mut Parameters, key: &'static str, help: &'static str) -> u64 {
    let value = p.number(key, 0.01, (0.0, 1.0), help);
    let parts = (value * WHOLE as f64).round() as u64;
    if parts < min {
        let message = format!(
            "{value} is not in (0, 1]: a share of 0 can never be reached or changes nothing (for a published run \
             with 0, set 0.000000001)"
        );
        p.complain(key, message);
    }
    parts.clamp(min, WHOLE)
}
