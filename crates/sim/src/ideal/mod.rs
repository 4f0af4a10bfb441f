//! The time a flow takes alone: what slowdowns are measured against.
//!
//! *Alone* is a lower bound: no flow takes less, whichever of its shortest paths its packets take. It is that of the network as
//! configured, before anything fails. A flow that keeps to one path has the exact time of one that nothing throttles on the fastest
//! of its paths ([`alone`]); one whose packets may take several at a time has a bound ([`spread`]). A flow whose routes change while it
//! is under way is one of these; one that is led over a path of more hops, which may be a faster one, has what no path of more hops
//! can do better, if that is less.
//!
//! *Delivery* is the same without the way back. The other definitions are those of authors that weftline is compared with; they leave
//! parts out, are named as theirs, and are no bounds ([`papers`]).

mod alone;
mod papers;
mod spread;
mod ways;

use crate::config::{Config, Forwarding, IdealFct};
use crate::net::map::Map;
use crate::transport::{Framing, TransportConfig};
use crate::units::Time;
use crate::workload::FlowSpec;
use spread::{Hop, Load};
use std::sync::Arc;
use ways::{Links, Pair, Ways};

/// Ideal completion times of a run's flows, by the definition that its scenario names.
pub struct Ideals {
    definition: IdealFct,
    /// By the index that flows carry.
    transports: Vec<Sending>,
    overtakes_tails: bool,
    links: Links,
    /// The paths of the network as configured.
    ways: Ways,
    /// The routes that the run has had, first those of the network as configured.
    routes: Vec<Arc<Map>>,
    /// From when on which of them held.
    periods: Vec<(Time, usize)>,
}

/// How a transport sends a flow.
#[derive(Clone, Copy)]
struct Sending {
    framing: Framing,
    /// All packets take one path while routes stay.
    one_path: bool,
    /// The last packet leaves its host behind the others.
    in_order: bool,
}

impl Ideals {
    /// `map` is that of the network before anything fails.
    pub fn new(config: &Config, map: &Arc<Map>) -> Ideals {
        let keeps = config.switch.balancer.keeps_flows_on_paths();
        let sending = |transport: &TransportConfig| Sending {
            framing: transport.framing(&config.telemetry),
            one_path: keeps && !transport.facts().spreads_flows,
            in_order: transport.facts().subflows.is_none(),
        };
        Ideals {
            definition: config.measure.ideal,
            transports: config.transports.iter().map(sending).collect(),
            overtakes_tails: matches!(config.switch.forwarding, Forwarding::IdealCutThrough { .. }),
            links: Links::new(config, map),
            ways: Ways::new(map.clone()),
            routes: vec![map.clone()],
            periods: vec![(Time::ZERO, 0)],
        }
    }

    /// Routes changed at `now`: those of `map`, which are number `number` of all that the run has had.
    pub fn reroute(&mut self, now: Time, map: &Arc<Map>, number: usize) {
        if number == self.routes.len() {
            self.routes.push(map.clone());
        }
        self.periods.push((now, number));
    }

    /// Of a flow that was under way from `start` to `end`; zero where the network as configured has no path for it.
    pub fn of(&mut self, spec: &FlowSpec, start: Time, end: Time) -> Time {
        if matches!(self.definition, IdealFct::Hpcc | IdealFct::Phost) {
            return self.as_published(spec);
        }
        let sending = self.transports[usize::from(spec.transport)];
        let met = self.met(start, end);
        let stays = Sending { one_path: sending.one_path && met.len() == 1, ..sending };
        let Some((configured, hops)) = self.configured(spec, &sending, &stays) else { return Time::ZERO };
        let led = |&number: &usize| papers::first_path(&self.routes[number], spec).len();
        match met.iter().map(led).any(|length| length > hops) {
            true => configured.min(self.detour(spec, &stays, hops + 1)),
            false => configured,
        }
    }

    /// The routes that held between `start` and `end`, each once.
    fn met(&self, start: Time, end: Time) -> Vec<usize> {
        if self.periods.len() == 1 {
            return Vec::from([0]);
        }
        let first = self.periods.partition_point(|&(since, _)| since <= start).saturating_sub(1);
        let behind = self.periods.partition_point(|&(since, _)| since <= end).max(first + 1);
        let mut met: Vec<usize> = self.periods[first..behind].iter().map(|&(_, number)| number).collect();
        met.sort_unstable();
        met.dedup();
        met
    }

    /// By the definition of a paper, along the first path.
    fn as_published(&self, spec: &FlowSpec) -> Time {
        let path = papers::first_path(&self.routes[0], spec);
        match self.definition {
            _ if path.is_empty() => Time::ZERO,
            IdealFct::Phost => papers::phost(&path, spec.size),
            _ => papers::hpcc(&path, &self.transports[usize::from(spec.transport)].framing, spec.size),
        }
    }

    /// On the network as configured, and how many hops its paths have; none where there is no path. `stays` is how the flow is
    /// sent if routes changed meanwhile: over any of its paths, if there are several.
    fn configured(&mut self, spec: &FlowSpec, sending: &Sending, stays: &Sending) -> Option<(Time, usize)> {
        let (links, framing) = (&self.links, &sending.framing);
        let [there, back] = self.ways.pairs(links, spec.src, spec.dst)?;
        let acknowledged = self.definition == IdealFct::Alone;
        let delivery = |path| alone::delivery(there.path(links, path), framing, spec.size);
        let one_way = (there.count(), back.count()) == (Some(1), Some(1));
        let one_link = || there.hops(&back, links).iter().all(Hop::is_one_link);
        if one_way && sending.one_path && (stays.one_path || one_link()) {
            let train = delivery(0);
            let end = || alone::acknowledged(train, back.path(links, 0), framing);
            return Some((if acknowledged { end() } else { train.last.tail }, there.length()));
        }
        let delivered = match there.count().filter(|_| stays.one_path) {
            Some(paths) => (0..paths).map(|path| delivery(path).last.tail).min().unwrap_or(Time::ZERO),
            None => {
                let load = Load::new(spec.size, framing, sending.in_order, self.overtakes_tails);
                let together = spread::delivery(&there.hops(&back, links), &load);
                load.sizes().map(|bytes| lone(&there, &back, links, bytes)).fold(together, Time::max)
            }
        };
        let last = || lone(&back, &there, links, framing.ack);
        let time = if acknowledged { delivered.saturating_add(last()) } else { delivered };
        Some((time, there.length()))
    }

    /// Minimum time of a flow over any path of `length` hops.
    fn detour(&self, spec: &FlowSpec, sending: &Sending, length: usize) -> Time {
        let hops = |src, dst| self.links.detour(&self.routes[0], src, dst, length, sending.one_path);
        let (there, back) = (hops(spec.src, spec.dst), hops(spec.dst, spec.src));
        let delivered = if sending.one_path {
            let path = there.iter().map(|hop| &hop.best);
            alone::delivery(path, &sending.framing, spec.size).last.tail
        } else {
            let in_order = sending.in_order;
            let load = Load::new(spec.size, &sending.framing, in_order, self.overtakes_tails);
            spread::delivery(&there, &load)
        };
        let last = || alone::lone(back.iter().map(|hop| &hop.best), sending.framing.ack);
        match self.definition {
            IdealFct::Alone => delivered.saturating_add(last()),
            _ => delivered,
        }
    }
}

/// How long one packet takes on the fastest of the paths of `there`.
fn lone(there: &Pair, back: &Pair, links: &Links, bytes: u64) -> Time {
    match there.count() {
        Some(paths) => (0..paths).map(|path| alone::lone(there.path(links, path), bytes)).min(),
        None => {
            let hops = there.hops(back, links);
            Some(alone::lone(hops.iter().map(|hop| &hop.best), bytes))
        }
    }
    .unwrap_or(Time::ZERO)
}
