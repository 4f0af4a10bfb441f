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
use super::ecmp::Ecmp;
use super::flowlets::{FlowletParameters, FlowletTable};
use super::{
    AGAINST_A_FAILED_LINK, BalancerFacts, BalancerParameters, LoadBalancer, Place, Ports, Reorders, salted,
};
use crate::counters::CounterSet;
use crate::doc::SchemeDoc;
use crate::engine::random::{RandomStream, hash_salt};
use crate::packet::{Packet, PacketKind};
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
        let hash = at.only_data.then(|| Ecmp::new(hash_salt(at.seed), at.node));
        Box::new(LetFlow { hash, ..LetFlow::new(self.flowlets, at.seed, at.name, at.node) })
    }
    fn order(&self) -> Reorders {
        Reorders::AfterPauses(self.flowlets.gap)
    }
    fn facts(&self) -> BalancerFacts {
        BalancerFacts { goes_by_flow: true, ..BalancerFacts::default() }
    }
}

pub struct LetFlow {
    flowlets: FlowletTable,
    random: RandomStream,
    salt: u64,
    /// What is not data goes by this, if it is not balanced.
    hash: Option<Ecmp>,
}

impl LetFlow {
    pub fn new(flowlets: FlowletParameters, seed: u64, switch: &str, node: u32) -> LetFlow {
        LetFlow {
            flowlets: flowlets.table(),
            random: RandomStream::new(seed, &format!("switch.{switch}.letflow")),
            salt: hash_salt(seed) ^ (u64::from(node) + 1),
            hash: None,
        }
    }
}

impl LoadBalancer for LetFlow {
    #[inline(never)]
    fn choose(&mut self, packet: &Packet, candidates: &[u32], ports: &impl Ports) -> usize {
        if let Some(hash) = self.hash.as_mut().filter(|_| packet.kind != PacketKind::Data) {
            return hash.way(packet.hash, candidates.len());
        }
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
mod tests;
