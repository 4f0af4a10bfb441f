//! What all messages of a job bring to the links, and how much longer links between switches take for it than those of hosts.

use super::fabric::Fabric;
use super::inner::{Between as Pairs, Inner};
use super::replay::Wire;
use crate::topology::{HostId, PathTimes};
use crate::workload::graph::JobGraph;
use crate::workload::graph::operations::Class;
use rustc_hash::FxHashMap;

/// Messages that are looked at; if there are more, these stand for the others.
const LOOKED_AT: u64 = 400_000;

/// Of the messages between two hosts.
#[derive(Default)]
struct Between {
    packets: f64,
    bits: f64,
}

#[derive(Default)]
pub struct Loads {
    /// Data packets, times the number of links that they cross.
    pub crossings: f64,
    /// By class, how many times longer the busiest links between switches take than the busiest link of a host, at least 1.
    squeezes: FxHashMap<Class, f64>,
    /// On the wire, by shared link, and between two switches.
    bits: FxHashMap<u32, f64>,
    between: Pairs,
}

impl Loads {
    pub fn of(graph: &JobGraph, (fabric, inner): (&Fabric, &Inner), times: &PathTimes, wire: &Wire) -> Loads {
        let mut loads = Loads::default();
        let mut class = None;
        let mut pairs: FxHashMap<(HostId, HostId), Between> = FxHashMap::default();
        graph.each_sent(LOOKED_AT, |of, sent| {
            if let Some(before) = class.filter(|&before| before != of) {
                loads.add(before, std::mem::take(&mut pairs), (fabric, inner), times);
            }
            class = Some(of);
            let [src, dst] = [sent.from, sent.to].map(|rank| graph.hosts[rank as usize]);
            let packets = sent.bytes.div_ceil(wire.mtu);
            let bytes = sent.bytes + packets * (wire.packet() - wire.mtu);
            let between = pairs.entry((src, dst)).or_default();
            between.packets += packets as f64 * sent.messages;
            between.bits += bytes as f64 * 8.0 * sent.messages;
        });
        if let Some(class) = class {
            loads.add(class, pairs, (fabric, inner), times);
        }
        loads
    }

    fn add(
        &mut self,
        class: Class,
        pairs: FxHashMap<(HostId, HostId), Between>,
        (fabric, inner): (&Fabric, &Inner),
        times: &PathTimes,
    ) {
        let paths = times.pairs(pairs.keys().copied());
        let mut loads: FxHashMap<u32, f64> = FxHashMap::default();
        let mut between = Pairs::default();
        for (((src, dst), Between { packets, bits }), path) in pairs.into_iter().zip(paths) {
            let Some(path) = path else { continue };
            self.crossings += packets * f64::from(path.hops);
            for place in fabric.places(src, dst, &path) {
                *loads.entry(place).or_default() += bits;
            }
            if let Some(ends) = inner.ends(src, dst) {
                *between.entry(ends).or_default() += bits;
            }
        }
        let longest = |of_hosts: bool| {
            let of_kind = loads.iter().filter(|(place, _)| fabric.is_of_host(**place) == of_hosts);
            of_kind.map(|(&place, bits)| bits / fabric.rate(place)).fold(0.0, f64::max)
        };
        let (hosts, switches) = (longest(true), longest(false).max(inner.seconds(&between)));
        let squeeze = if hosts > 0.0 { (switches / hosts).max(1.0) } else { 1.0 };
        self.squeezes.insert(class, squeeze);
        for (place, bits) in loads {
            *self.bits.entry(place).or_default() += bits;
        }
        for (ends, bits) in between {
            *self.between.entry(ends).or_default() += bits;
        }
    }

    pub fn squeeze(&self, class: Class) -> f64 {
        self.squeezes.get(&class).copied().unwrap_or(1.0)
    }

    /// The seconds for which some link is busy with the messages of all jobs.
    pub fn busiest<'l>(all: impl Iterator<Item = &'l Loads>, fabric: &Fabric, inner: &Inner) -> f64 {
        let (mut bits, mut between): (FxHashMap<u32, f64>, Pairs) = Default::default();
        for loads in all {
            loads.bits.iter().for_each(|(&place, more)| *bits.entry(place).or_default() += more);
            loads.between.iter().for_each(|(&ends, more)| *between.entry(ends).or_default() += more);
        }
        let seconds = bits.into_iter().map(|(place, bits)| bits / fabric.rate(place));
        seconds.fold(inner.seconds(&between), f64::max)
    }
}
