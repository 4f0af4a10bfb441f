//! The completion time of a flow alone on the network, to which slowdowns relate.
//!
//! *Alone* is a lower bound: no flow takes less, whichever of its shortest paths its packets take. It refers
//! to the network as configured, before failures. For a flow that keeps to one path it is the exact time
//! without competing traffic on the fastest of its paths ([`alone`]); for a flow whose packets take several
//! paths at a time it is a bound ([`spread`]). The bound also holds for a flow whose routes change during its
//! lifetime; failures that change the routes of other flows change nothing. If a flow is routed over a path
//! with more hops, which may be faster, its time is the minimum over paths of that length, if that is
//! smaller.
//!
//! *Delivery* is the same without the return path. The other definitions are those of authors with whom
//! weftline is compared. They omit parts, have their authors' names, and are not bounds ([`papers`]).

mod alone;
mod job;
mod papers;
mod paths;
mod spread;

use crate::config::{Config, Forwarding, IdealFct};
use crate::net::map::Map;
use crate::transport::{Framing, NicPolicy, TransportConfig};
use crate::units::Time;
use crate::workload::FlowSpec;
use paths::{Links, Pair, ShortestPaths};
use spread::{Hop, Load};
use std::sync::Arc;

/// Ideal completion times of a run's flows, by the definition that the scenario names.
pub struct Ideals {
    definition: IdealFct,
    /// By the index that flows carry.
    transports: Vec<Sending>,
    overtakes_tails: bool,
    links: Links,
    /// The paths of the network as configured.
    paths: ShortestPaths,
    /// The routes that were used in the run; the first are those of the network as configured.
    routes: Vec<Arc<Map>>,
    /// Start time of each period, and the index of its routes.
    periods: Vec<(Time, usize)>,
}

/// How a transport sends a flow.
#[derive(Clone, Copy)]
struct Sending {
    framing: Framing,
    /// All packets take one path while routes do not change.
    one_path: bool,
    /// All packets leave their host through one of its ports, whatever paths they take from there on.
    one_port: bool,
    /// The last packet leaves its host after the others.
    in_order: bool,
}

impl Sending {
    /// The hops of a flow's paths, the first one with the rate of the port through which its packets leave.
    fn leaving(&self, mut hops: Vec<Hop>) -> Vec<Hop> {
        if let (true, Some(first)) = (self.one_port, hops.first_mut()) {
            first.total = first.best.rate.0;
        }
        hops
    }
}

impl Ideals {
    /// `map`: the network before failures.
    pub fn new(config: &Config, map: &Arc<Map>) -> Ideals {
        let keeps = config.switch.balancer.keeps_flows_on_paths();
        let all_nics = config.host.nic_policy == NicPolicy::All;
        let sending = |transport: &TransportConfig| Sending {
            framing: transport.framing(&config.telemetry),
            one_path: keeps && !transport.facts().spreads_flows && !all_nics,
            one_port: !all_nics && transport.facts().subflows.is_none(),
            in_order: transport.facts().subflows.is_none(),
        };
        Ideals {
            definition: config.measure.ideal,
            transports: config.transports.iter().map(sending).collect(),
            overtakes_tails: matches!(config.switch.forwarding, Forwarding::IdealCutThrough { .. }),
            links: Links::new(config, map),
            paths: ShortestPaths::new(map.clone()),
            routes: vec![map.clone()],
            periods: vec![(Time::ZERO, 0)],
        }
    }

    /// Records that routes changed at `now` to those of `map`, which has index `number` among all routes of
    /// the run.
    pub fn reroute(&mut self, now: Time, map: &Arc<Map>, number: usize) {
        if number == self.routes.len() {
            self.routes.push(map.clone());
        }
        self.periods.push((now, number));
    }

    /// Returns the ideal time of a flow that lasted from `start` to `end`; zero if the network as configured
    /// has no path for it.
    pub fn of(&mut self, spec: &FlowSpec, start: Time, end: Time) -> Time {
        if matches!(self.definition, IdealFct::Hpcc | IdealFct::Phost) {
            return self.as_published(spec);
        }
        let sending = self.transports[usize::from(spec.transport)];
        let acknowledged = self.definition == IdealFct::Alone;
        if self.periods.len() == 1 {
            let configured = self.configured(spec, &sending, &sending, acknowledged);
            return configured.map_or(Time::ZERO, |(time, _)| time);
        }
        let met = self.met(start, end);
        let stays = Sending { one_path: sending.one_path && self.keep_paths(spec, &met), ..sending };
        let configured = self.configured(spec, &sending, &stays, acknowledged);
        let Some((configured, hops)) = configured else { return Time::ZERO };
        let led = |&number: &usize| papers::first_path(&self.routes[number], spec).len();
        match met.iter().map(led).any(|length| length > hops) {
            true => configured.min(self.detour(spec, &stays, hops + 1)),
            false => configured,
        }
    }

    /// Returns the routes that were valid between `start` and `end`, each once.
    fn met(&self, start: Time, end: Time) -> Vec<usize> {
        let first = self.periods.partition_point(|&(since, _)| since <= start).saturating_sub(1);
        let after = self.periods.partition_point(|&(since, _)| since <= end).max(first + 1);
        let mut met: Vec<usize> = self.periods[first..after].iter().map(|&(_, number)| number).collect();
        met.sort_unstable();
        met.dedup();
        met
    }

    /// Whether these routes lead the packets of a flow, and those that return, over the same paths: changes
    /// elsewhere in the network move no flow.
    fn keep_paths(&self, spec: &FlowSpec, met: &[usize]) -> bool {
        let Some((&first, others)) = met.split_first() else { return true };
        others.iter().all(|&other| {
            let [first, other] = [first, other].map(|number| &*self.routes[number]);
            let alike = |from, to| paths::are_alike(first, other, from, to);
            alike(spec.src, spec.dst) && alike(spec.dst, spec.src)
        })
    }

    /// The ideal time by the definition of a paper, along the first path.
    fn as_published(&self, spec: &FlowSpec) -> Time {
        let path = papers::first_path(&self.routes[0], spec);
        match self.definition {
            _ if path.is_empty() => Time::ZERO,
            IdealFct::Phost => papers::phost(&path, spec.size),
            _ => papers::hpcc(&path, &self.transports[usize::from(spec.transport)].framing, spec.size),
        }
    }

    /// Returns the time on the network as configured and the number of hops of its paths; none if there is no
    /// path. `stays`: whether its routes did not change, so that the flow kept to its path; otherwise it may
    /// have used any of its paths. `acknowledged`: the time ends with the last acknowledgement.
    fn configured(
        &mut self,
        spec: &FlowSpec,
        sending: &Sending,
        stays: &Sending,
        acknowledged: bool,
    ) -> Option<(Time, usize)> {
        let (links, framing) = (&self.links, &sending.framing);
        let [there, back] = self.paths.pairs(links, spec.src, spec.dst)?;
        let delivery = |path| alone::delivery(there.path(links, path), framing, spec.size);
        let one_way = (there.count(), back.count()) == (Some(1), Some(1));
        let one_link = || there.hops(&back, links).iter().all(Hop::is_one_link);
        if one_way && sending.one_path && (stays.one_path || one_link()) {
            let train = delivery(0);
            let end = || alone::acknowledged(train, back.path(links, 0), framing);
            return Some((if acknowledged { end() } else { train.end() }, there.length()));
        }
        let delivered = match there.count().filter(|_| stays.one_path) {
            Some(paths) => (0..paths).map(|path| delivery(path).end()).min().unwrap_or(Time::ZERO),
            None => {
                let load = Load::new(spec.size, framing, sending.in_order, self.overtakes_tails);
                let together = spread::delivery(&sending.leaving(there.hops(&back, links)), &load);
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
            alone::delivery(path, &sending.framing, spec.size).end()
        } else {
            let in_order = sending.in_order;
            let load = Load::new(spec.size, &sending.framing, in_order, self.overtakes_tails);
            spread::delivery(&sending.leaving(there), &load)
        };
        let last = || alone::lone(back.iter().map(|hop| &hop.best), sending.framing.ack);
        match self.definition {
            IdealFct::Alone => delivered.saturating_add(last()),
            _ => delivered,
        }
    }
}

/// Latency of one packet on the fastest of the paths of `there`.
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
