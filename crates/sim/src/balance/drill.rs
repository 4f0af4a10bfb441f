//! DRILL: every packet takes the shortest of a few queues of its switch: d drawn at random, and the m shortest of the last time.
//!
//! DRILL(2, 1) is the authors' choice: the memory keeps what was found to be good, the draws find better, and no switch
//! looks at all its ports. Packets of a flow may overtake each other.
//!
//! Source: Ghorbani et al., "DRILL: micro load balancing for low-latency data center networks", SIGCOMM 2017, §3.
//! Differs from the source: one forwarding engine a switch, which sees a packet in its queue at once; the length of a queue
//! counts what is left of the packet on its way out; paths of unlike capacity are not decomposed into components.
//! Parameters: d = 2, m = 1.

use super::{BalancerParameters, LoadBalancer, Place, Ports, Reorders};
use crate::doc::SchemeDoc;
use crate::engine::random::RandomStream;
use crate::packet::Packet;
use crate::parameters::Parameters;

#[derive(Debug, Clone, PartialEq)]
pub struct DrillParameters {
    /// Queues drawn for every packet (d), and those remembered (m).
    pub samples: u32,
    pub memory: u32,
}

impl BalancerParameters for DrillParameters {
    const DOC: SchemeDoc = SchemeDoc {
        name: "drill",
        title: "every packet takes the shortest of a few queues, some drawn at random and some remembered",
        source: "Ghorbani et al., \"DRILL: micro load balancing for low-latency data center networks\", \
                 SIGCOMM 2017, §3",
        validation: "The shorter of two queues is always chosen, remembered queues are compared again, and draws \
                     find a short queue with the expected probability (balance/drill.rs).",
        ..SchemeDoc::NONE
    };
    type State = Box<Drill>;

    fn read(p: &mut Parameters) -> DrillParameters {
        let help = "queues drawn at random for every packet (published: d = 2)";
        let samples = p.integer("samples", 2, (1, 64), help) as u32;
        let help = "queues remembered as the shortest (published: m = 1)";
        DrillParameters { samples, memory: p.integer("memory", 1, (0, 64), help) as u32 }
    }
    fn start(&self, at: &Place) -> Box<Drill> {
        Box::new(Drill::new(self.clone(), at.seed, at.name))
    }
    fn order(&self) -> Reorders {
        Reorders::Packets
    }
}

pub struct Drill {
    config: DrillParameters,
    random: RandomStream,
    /// What was shortest, by set of candidates: those on the way up, and after failures a few more.
    memories: Vec<Memory>,
    /// Queues that are looked at: (backlog, order in which they were drawn, place among the candidates).
    looked_at: Vec<(u64, u32, u32)>,
}

struct Memory {
    /// First, last and number of the candidates.
    candidates: (u32, u32, usize),
    /// Places among them.
    shortest: Vec<u32>,
}

impl Drill {
    pub fn new(config: DrillParameters, seed: u64, switch: &str) -> Drill {
        let random = RandomStream::new(seed, &format!("switch.{switch}.drill"));
        Drill { config, random, memories: Vec::new(), looked_at: Vec::new() }
    }

    fn look(&mut self, place: u32, candidates: &[u32], ports: &impl Ports) {
        if self.looked_at.iter().all(|seen| seen.2 != place) {
            let backlog = ports.backlog(candidates[place as usize]);
            self.looked_at.push((backlog, self.looked_at.len() as u32, place));
        }
    }
}

impl LoadBalancer for Drill {
    #[inline(never)]
    fn choose(&mut self, _packet: &Packet, candidates: &[u32], ports: &impl Ports) -> usize {
        let (count, samples) = (candidates.len(), self.config.samples as usize);
        let key = (candidates[0], candidates[count - 1], count);
        let known = self.memories.iter().position(|memory| memory.candidates == key);
        let memory = known.unwrap_or_else(|| {
            self.memories.push(Memory { candidates: key, shortest: Vec::new() });
            self.memories.len() - 1
        });
        self.looked_at.clear();
        // Draws without repetition; where all are to be drawn they are taken in turn, from a random one on.
        while self.looked_at.len() < samples.min(count) {
            let drawn = self.random.below(count as u64) as usize;
            let in_turn = if samples >= count { count } else { 1 };
            (0..in_turn).for_each(|step| self.look(((drawn + step) % count) as u32, candidates, ports));
        }
        let shortest = std::mem::take(&mut self.memories[memory].shortest);
        shortest.iter().for_each(|&place| self.look(place, candidates, ports));
        // Among equals the one that was drawn first.
        self.looked_at.sort_unstable();
        let mut shortest = shortest;
        shortest.clear();
        shortest.extend(self.looked_at.iter().take(self.config.memory as usize).map(|seen| seen.2));
        self.memories[memory].shortest = shortest;
        self.looked_at[0].2 as usize
    }
}

#[cfg(test)]
mod tests;
