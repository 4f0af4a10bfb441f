//! LetFlow: every flowlet takes a random one of the shortest paths.
//!
//! Nothing is measured: a congested path delays the acknowledgements of the flows on it, which then pause more often and
//! leave it, while flowlets on good paths last. So the sizes of flowlets balance the load.
//!
//! Source: Vanini et al., "Let it flow: resilient asymmetric load balancing with flowlet switching", NSDI 2017.
//! Differs from the source: a flowlet ends after the gap to the picosecond, where hardware marks slots once a gap and so
//! ends flowlets after one to two of them.
//! Parameters: gap 500 us (the authors' testbed; recalled, to be checked before it is quoted), 65 536 slots.

use super::counted::FLOWLETS;
use super::flowlets::{FlowletParameters, FlowletTable};
use super::{AGAINST_A_FAILED_LINK, BalancerParameters, LoadBalancer, Place, Ports, Reorders, salted};
use crate::counters::CounterSet;
use crate::doc::SchemeDoc;
use crate::engine::random::{RandomStream, hash_salt};
use crate::packet::Packet;
use crate::parameters::Parameters;
use crate::units::Time;

#[derive(Debug, Clone, PartialEq)]
pub struct LetFlowParameters {
    pub flowlets: FlowletParameters,
}

impl BalancerParameters for LetFlowParameters {
    const DOC: SchemeDoc = SchemeDoc {
        name: "letflow",
        title: "every flowlet takes a random one of the shortest paths",
        source: "Vanini et al., \"Let it flow: resilient asymmetric load balancing with flowlet switching\", \
                 NSDI 2017",
        validation: AGAINST_A_FAILED_LINK,
        counters: &[&FLOWLETS],
        ..SchemeDoc::NONE
    };
    type State = Box<LetFlow>;

    fn read(p: &mut Parameters) -> LetFlowParameters {
        LetFlowParameters { flowlets: FlowletParameters::read(p, Time::from_us(500), 1 << 16) }
    }
    fn start(&self, at: &Place) -> Box<LetFlow> {
        Box::new(LetFlow::new(self.flowlets, at.seed, at.name, at.node))
    }
    fn order(&self) -> Reorders {
        Reorders::AfterPauses(self.flowlets.gap)
    }
    fn goes_by_flow(&self) -> bool {
        true
    }
}

pub struct LetFlow {
    flowlets: FlowletTable,
    random: RandomStream,
    salt: u64,
}

impl LetFlow {
    pub fn new(flowlets: FlowletParameters, seed: u64, switch: &str, node: u32) -> LetFlow {
        LetFlow {
            flowlets: flowlets.table(),
            random: RandomStream::new(seed, &format!("switch.{switch}.letflow")),
            salt: hash_salt(seed) ^ (u64::from(node) + 1),
        }
    }
}

impl LoadBalancer for LetFlow {
    #[inline(never)]
    fn choose(&mut self, packet: &Packet, candidates: &[u32], ports: &impl Ports) -> usize {
        let now = ports.now().0;
        let flowlet = self.flowlets.find(salted(packet.hash, self.salt), now);
        let goes_on = flowlet.port.and_then(|port| candidates.iter().position(|&c| c == port));
        goes_on.unwrap_or_else(|| {
            let at = self.random.below(candidates.len() as u64) as usize;
            self.flowlets.put(flowlet, candidates[at], now);
            at
        })
    }

    fn count(&mut self, _now: Time, counters: &mut CounterSet) {
        self.flowlets.count(counters);
    }
}

#[cfg(test)]
mod tests {
    use super::super::situation::Still;
    use super::*;

    fn letflow(gap_us: u64) -> LetFlow {
        LetFlow::new(FlowletParameters { gap: Time::from_us(gap_us), slots: 1 << 16 }, 1, "s", 0)
    }

    #[test]
    fn packets_closer_than_the_gap_never_part_and_others_toss_a_coin() {
        let (mut balancer, mut ports) = (letflow(100), Still::default());
        let packet = Packet { hash: 77, ..Packet::default() };
        let first = balancer.choose(&packet, &[4, 9], &ports);
        for packets in 1..1000 {
            ports.now = Time::from_us(100 * packets);
            assert_eq!(balancer.choose(&packet, &[4, 9], &ports), first);
        }
        // Over the gap each packet is a flowlet: half of them on each of two links (10 000 of them: sigma is 50), and
        // half of the time the link changes.
        let (mut second, mut changes, mut last) = (0, 0, first);
        for packets in 1..=10_000 {
            ports.now = Time::from_us(200_000 + 101 * packets);
            let at = balancer.choose(&packet, &[4, 9], &ports);
            second += at;
            changes += usize::from(at != last);
            last = at;
        }
        assert!(second.abs_diff(5000) < 200 && changes.abs_diff(5000) < 200, "{second}, {changes}");
    }

    #[test]
    fn a_flowlet_whose_port_is_no_way_any_more_goes_elsewhere_at_once() {
        let (mut balancer, ports) = (letflow(100), Still::default());
        let packet = Packet { hash: 1, ..Packet::default() };
        let port = [2, 3][balancer.choose(&packet, &[2, 3], &ports)];
        let left: Vec<u32> = [2, 3, 5].into_iter().filter(|&p| p != port).collect();
        let moved = left[balancer.choose(&packet, &left, &ports)];
        assert_ne!(moved, port);
        assert_eq!([2, 3, 5][balancer.choose(&packet, &[2, 3, 5], &ports)], moved, "and stays there");
    }
}
