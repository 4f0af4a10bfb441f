//! Paths by the packet's own label: whoever sends it chooses its path, one digit of the label a tier.
//!
//! A host that counts up from packet to packet sprays evenly over all paths of a tree (pHost); a label that is the hash of
//! a flow keeps the flow on one path.
//!
//! Source: the spray counters of the pHost authors' simulator (Gao et al., "pHost", CoNEXT 2015); for the digits, those of
//! [`super::destination`].

use super::{BalancerFacts, BalancerParameters, LoadBalancer, Place, Ports, Reorders, Shares};
use crate::doc::SchemeDoc;
use crate::packet::Packet;
use crate::parameters::Parameters;

#[derive(Debug, Clone, PartialEq)]
pub struct LabelParameters;

impl BalancerParameters for LabelParameters {
    const DOC: SchemeDoc = SchemeDoc {
        name: "label",
        title: "the packet's label modulo the number of paths, one digit per tier: the sender chooses the path \
                (pHost counts up; with other transports the label is the flow's hash)",
        source: "The spray counters of the pHost authors' simulator (Gao et al., \"pHost\", CoNEXT 2015)",
        validation: "Labels that count up take every path in turn (balance/label.rs); with pHost equal to its \
                     authors' simulator on unit cases.",
        ..SchemeDoc::NONE
    };
    type State = Label;

    fn read(_p: &mut Parameters) -> LabelParameters {
        LabelParameters
    }
    fn start(&self, at: &Place) -> Label {
        Label { ways_below: at.ways_below }
    }
    fn order(&self) -> Reorders {
        Reorders::Never
    }
    fn facts(&self) -> BalancerFacts {
        BalancerFacts { follows_labels: true, shares: Some(Shares::Equal), ..BalancerFacts::default() }
    }
}

pub struct Label {
    /// What the digits of the switches below make up.
    ways_below: u32,
}

impl LoadBalancer for Label {
    #[inline]
    fn choose(&mut self, packet: &Packet, candidates: &[u32], _ports: &impl Ports) -> usize {
        let paths = candidates.len() as u32;
        let digits = if self.ways_below == 1 { packet.hash } else { packet.hash / self.ways_below };
        // Most have a power of two; a division takes the time of a dozen other instructions.
        (if paths.is_power_of_two() { digits & (paths - 1) } else { digits % paths }) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::super::situation::Still;
    use super::*;

    #[test]
    fn labels_that_count_up_take_every_path_in_turn() {
        let labelled = |hash| Packet { hash, ..Packet::default() };
        let (mut tor, mut agg) = (Label { ways_below: 1 }, Label { ways_below: 4 });
        let mut met = [[0; 3]; 4];
        for hash in 100..112 {
            let packet = labelled(hash);
            met[tor.choose(&packet, &[0, 1, 2, 3], &Still::default())]
                [agg.choose(&packet, &[0, 1, 2], &Still::default())] += 1;
        }
        assert_eq!(met, [[1; 3]; 4]);
    }
}
