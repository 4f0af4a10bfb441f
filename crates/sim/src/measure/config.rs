//! What a scenario asks to be measured, resolved.

use crate::topology::{PortSet, Topology};
use crate::units::{Bytes, Time};
use std::collections::HashMap;

/// What is recorded in addition to the flows. What is not requested costs nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MeasureConfig {
    pub ideal: IdealFct,
    /// Histogram of the bytes queued at these ports, sampled this often.
    pub queue_histogram: Option<Sampled<PortSet>>,
    pub queue_series: Option<Sampled<PortSet>>,
    pub utilisation: Option<Sampled<PortSet>>,
    /// Payload bytes delivered, by group: in order, or as they arrive with transports of messages.
    pub group_goodput: Option<Time>,
    /// The same for chosen flows.
    pub flow_goodput: Option<Sampled<Vec<u32>>>,
    /// cwnd, rate, U, alpha of chosen flows.
    pub controllers: Option<Sampled<Vec<u32>>>,
    /// ECN marks, drops and pauses per port over time.
    pub port_events: Option<Sampled<PortSet>>,
    /// What the queue disciplines of these ports dropped and why, and what Cebinae decided.
    pub disciplines: Option<Sampled<PortSet>>,
    /// Every PFC pause and resume as a row.
    pub pauses: bool,
    /// Packets that overtake each other before they reach their receiver are counted.
    pub reordering: bool,
    /// So are the paths that the packets of every flow took.
    pub paths: bool,
    /// What each subflow of a multipath flow carried, as rows when the flow ends.
    pub subflows: bool,
    /// Packets of some links are written down.
    pub capture: Option<CaptureConfig>,
}

impl MeasureConfig {
    /// A warning for each list of flows with numbers that a run of this many flows does not have.
    pub fn without_flow(&self, flows: u64) -> Vec<String> {
        let lists = [("goodput", &self.flow_goodput), ("controllers", &self.controllers)];
        let lists = lists.iter().filter_map(|(key, sampled)| Some((key, &sampled.as_ref()?.what)));
        let warning = |(key, listed): (&&str, &Vec<u32>)| {
            let beyond: Vec<u32> = listed.iter().copied().filter(|flow| u64::from(*flow) >= flows).collect();
            let which = match beyond[..] {
                [] => return None,
                [one] => format!("there is no flow {one}"),
                [first, ..] => {
                    format!("there is no flow {first}, nor {} others of the list", beyond.len() - 1)
                }
            };
            let known = match flows {
                0 => "the run has no flows".to_string(),
                1 => "the only one is flow 0".to_string(),
                _ => format!("the run has flows 0 to {}", flows - 1),
            };
            Some(format!("measure.{key}.flows: {which}, {known}: a series of it is zero or missing"))
        };
        lists.filter_map(warning).collect()
    }
}

/// Which packets are written down, and how much of them.
#[derive(Debug, Clone, PartialEq)]
pub struct CaptureConfig {
    /// The ports that they leave by, in order.
    pub ports: PortSet,
    /// Maximum size of the file.
    pub max_bytes: Bytes,
    /// Bytes that are kept of each; none: its headers.
    pub kept: Option<Bytes>,
}

/// Of a file in the format of pcapng: the block of a section with the name of the application, and that of an interface without
/// the name of its link. Blocks and options have whole words.
const SECTION_BYTES: u64 = 12 + 16 + (4 + CREATOR.len().next_multiple_of(4) as u64) + 4;
const INTERFACE_BYTES: u64 = 12 + 8 + 4 + (4 + 8) + (4 + 4) + 4;
const CREATOR: &str = concat!("weftline ", env!("CARGO_PKG_VERSION"));

impl CaptureConfig {
    /// Name and rate in bit/s of each captured link.
    pub fn links(&self, topology: &Topology) -> Vec<(String, u64)> {
        let ports = topology.ports();
        let link = |&(node, local): &(u32, u32)| {
            let (link, _) = ports[node as usize][local as usize];
            (topology.direction_name(link, node), topology.links[link as usize].rate.0)
        };
        let mut links: Vec<(String, u64)> = self.ports.iter().map(link).collect();
        let mut named: HashMap<String, u32> = HashMap::new();
        links.iter().for_each(|(name, _)| *named.entry(name.clone()).or_default() += 1);
        for ((name, _), &(node, local)) in links.iter_mut().zip(&self.ports) {
            // Of several between the same two nodes.
            if named.get(name).is_some_and(|&count| count > 1) {
                *name = format!("{name} ({})", topology.port_name(node, local));
            }
        }
        links
    }

    /// Bytes of the file before its first packet.
    pub fn head_bytes(links: &[(String, u64)]) -> Bytes {
        let name = |(name, _): &(String, u64)| (name.len() as u64).next_multiple_of(4);
        Bytes(SECTION_BYTES + links.iter().map(|link| INTERFACE_BYTES + name(link)).sum::<u64>())
    }
}

/// Which time a flow is compared with: `ideal_fct_ns`, and through it the slowdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IdealFct {
    /// What the flow takes alone at line rate, to the picosecond: every packet with its headers and telemetry
    /// over every hop, and the last acknowledgement back.
    #[default]
    Alone,
    /// The HPCC authors': base RTT (payload only, one direction) plus all bytes with 48 B headers at the
    /// bottleneck.
    Hpcc,
    /// The same without the way back: until the last byte has come to the receiver.
    Delivery,
    /// The pHost authors' OPT.
    Phost,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Sampled<T> {
    pub what: T,
    pub every: Time,
}
