//! From a [`Config`] to a network that is ready to run.

use super::changes::Changes;
use super::flows::Flows;
use super::probes::Probes;
use super::{NodeIndex, RunError, Simulation};
use crate::balance::{Balancer, Place};
use crate::config::{Compat, Config, Forwarding, QueueConfig, TelemetryConfig, TransportConfig};
use crate::engine::random::{RandomStream, mix64};
use crate::measure::recorder::Recorder;
use crate::net::buffer::{BufferedPort, SharedBuffer};
use crate::net::ecn::EcnMarker;
use crate::net::host::Host;
use crate::net::partition::Partition;
use crate::net::port::{LinkEnd, Port};
use crate::net::switch::Switch;
use crate::queue::Queue;
use crate::settings::{RdmaSettings, Settings};
use crate::telemetry::int::IntLayout;
use crate::topology::max_base_rtt;
use crate::topology::{NextHopOrder, Routes};
use crate::topology::{NodeKind, Topology};
use crate::transport::TransportState;
use crate::transport::rdma::Rdma;
use crate::units::{Rate, Time};

/// Limits of the packed event keys.
const MOST_NODES: usize = 1 << 24;
const MOST_PORTS: usize = u16::MAX as usize;

impl Simulation {
    /// Builds the network and announces the first flows.
    pub fn new(config: Config) -> Result<Simulation, RunError> {
        let topology = &config.topology;
        if topology.nodes.len() >= MOST_NODES {
            let message = format!("{} nodes: at most {MOST_NODES} fit", topology.nodes.len());
            return Err(RunError::Impossible(message));
        }
        let lists = topology.ports();
        if let Some(node) = lists.iter().position(|ports| ports.len() > MOST_PORTS) {
            let (name, ports) = (&topology.nodes[node].name, lists[node].len());
            let message = format!("{name} has {ports} ports: at most {MOST_PORTS} fit");
            return Err(RunError::Impossible(message));
        }
        let routes = Routes::compute(topology, &|_| true, next_hop_order(config.compat));
        let settings = settings(&config, &routes);
        let (ports, first_port) = ports(&config);
        let (nodes, switches, hosts) = nodes(&config, &ports, &first_port);
        let recorder = Recorder::new(
            config.traffic.groups.len(),
            config.measure.flow_goodput.as_ref().map_or(Vec::new(), |m| m.what.clone()),
            config.measure.pauses,
        );
        let net = Partition::new(
            ports,
            nodes.len(),
            config.compat,
            config.telemetry,
            settings.int_layout,
            recorder,
        );
        let flows = Flows::new(&config.traffic);
        let changes = Changes::new(topology, &config.failures, &first_port);
        let probes = Probes::new(&config.measure, config.until, &first_port);
        let mut simulation = Simulation {
            net,
            nodes,
            switches,
            hosts,
            routes,
            settings,
            flows,
            changes,
            probes,
            ended: Vec::new(),
        };
        simulation.changes.topology = config.topology;
        simulation.changes.schedule(&mut simulation.net);
        simulation.probes.schedule(&mut simulation.net);
        simulation.expect_announcement();
        Ok(simulation)
    }
}

fn next_hop_order(compat: Compat) -> NextHopOrder {
    match compat {
        Compat::None => NextHopOrder::ByPort,
        Compat::HpccNs3 => NextHopOrder::DescendingNodeId,
    }
}

/// The largest base RTT of all host pairs, and the largest bandwidth-delay product in bytes.
pub fn base_rtt_of(topology: &Topology, routes: &Routes, mtu: u32, compat: Compat) -> (Time, u64) {
    max_base_rtt(topology, routes, u64::from(mtu), compat == Compat::HpccNs3)
}

fn settings(config: &Config, routes: &Routes) -> Settings {
    let mut rdma = Vec::new();
    for TransportConfig::Rdma(transport) in &config.transports {
        let (rtt, bdp) = base_rtt_of(&config.topology, routes, transport.mtu, config.compat);
        let mut transport = transport.clone();
        transport.controller.set_eager_timers(config.compat == Compat::HpccNs3);
        rdma.push(RdmaSettings::new(&transport, config.telemetry, config.compat, rtt, bdp));
    }
    let (int_hops, path_ids) = match config.telemetry {
        TelemetryConfig::None => (0, false),
        TelemetryConfig::Int { max_hops, path_id, .. } => (max_hops as usize, path_id),
    };
    let dependencies =
        config.traffic.sources.iter().any(|s| !s.dependencies().is_empty() || !s.jobs().is_empty());
    Settings {
        compat: config.compat,
        rdma,
        int_layout: IntLayout::for_nic(nic_rate(&config.topology)),
        int_hops,
        path_ids,
        ideal: config.measure.ideal,
        // Outside the compat mode there are timeouts, and balancers that reorder.
        duplicates: config.compat == Compat::None
            || !config.switch.pfc.enabled
            || !config.failures.events.is_empty(),
        dependencies,
    }
}

/// The slowest rate at which a host hangs on the network: what the authors call the NIC's.
fn nic_rate(topology: &Topology) -> Rate {
    let is_host = |node: u32| topology.nodes[node as usize].kind == NodeKind::Host;
    let rates = topology.links.iter().filter(|l| is_host(l.a) || is_host(l.b)).map(|l| l.rate);
    rates.min().unwrap_or(Rate(1))
}

/// All ports, those of a node together, and where each node's begin.
fn ports(config: &Config) -> (Vec<Port>, Vec<u32>) {
    let topology = &config.topology;
    let lists = topology.ports();
    let mut first_port = Vec::with_capacity(lists.len() + 1);
    let mut total = 0u32;
    for list in &lists {
        first_port.push(total);
        total += list.len() as u32;
    }
    first_port.push(total);
    // Where each end of each link lies: a's first, then b's; a link from a node to itself does not exist.
    let mut ends = vec![[0u32; 2]; topology.links.len()];
    for (node, list) in lists.iter().enumerate() {
        for (local, &(link, _)) in list.iter().enumerate() {
            let side = usize::from(topology.links[link as usize].a != node as u32);
            ends[link as usize][side] = first_port[node] + local as u32;
        }
    }
    let header = match config.switch.forwarding {
        Forwarding::StoreAndForward => 0,
        Forwarding::CutThrough { header } => header.min(u32::from(u16::MAX)) as u16,
    };
    let mut ports = Vec::with_capacity(total as usize);
    for (node, list) in lists.iter().enumerate() {
        for (local, &(link, neighbour)) in list.iter().enumerate() {
            let spec = &topology.links[link as usize];
            let side = usize::from(spec.a != node as u32);
            let peer = ends[link as usize][1 - side];
            let is_switch = topology.nodes[neighbour as usize].kind == NodeKind::Switch;
            let end = LinkEnd {
                node: node as u32,
                local: local as u16,
                peer,
                peer_node: neighbour,
                peer_local: (peer - first_port[neighbour as usize]) as u16,
                peer_cuts_through: if is_switch { header } else { 0 },
                rate: spec.rate,
                delay: spec.delay,
            };
            let own_switch = topology.nodes[node].kind == NodeKind::Switch;
            let queue = if own_switch { config.switch.queue } else { QueueConfig::Fifo };
            ports.push(Port::new(&end, Queue::new(queue)));
        }
    }
    (ports, first_port)
}

fn nodes(config: &Config, ports: &[Port], first_port: &[u32]) -> (Vec<NodeIndex>, Vec<Switch>, Vec<Host>) {
    let (mut index, mut switches, mut hosts) = (Vec::new(), Vec::new(), Vec::new());
    for (node, spec) in config.topology.nodes.iter().enumerate() {
        let own = &ports[first_port[node] as usize..first_port[node + 1] as usize];
        match spec.kind {
            NodeKind::Host => {
                index.push(NodeIndex::Host(hosts.len() as u32));
                hosts.push(Host {
                    id: hosts.len() as u32,
                    node: node as u32,
                    first_port: first_port[node],
                    ports: own.len() as u16,
                    transports: vec![TransportState::Rdma(Rdma::new(own.len(), 0))],
                });
            }
            NodeKind::Switch => {
                index.push(NodeIndex::Switch(switches.len() as u32));
                switches.push(switch(config, node as u32, first_port[node], own));
            }
        }
    }
    (index, switches, hosts)
}

fn switch(config: &Config, node: u32, first_port: u32, own: &[Port]) -> Switch {
    let spec = &config.topology.nodes[node as usize];
    let name = &spec.name;
    let buffered: Vec<BufferedPort> =
        own.iter().map(|port| BufferedPort { rate: port.rate, delay: port.delay }).collect();
    let packet = Settings::largest_packet(&config.transports, config.telemetry);
    let settings = &config.switch;
    let nic = nic_rate(&config.topology);
    Switch {
        node,
        first_port,
        cuts_through: matches!(settings.forwarding, Forwarding::CutThrough { .. }),
        path_id: (mix64(u64::from(node)) % 0xfff + 1) as u16,
        buffer: SharedBuffer::new(
            settings.buffer,
            &buffered,
            &settings.pfc,
            settings.lossy_alpha,
            nic,
            packet,
        ),
        balancer: Balancer::new(
            settings.balancer,
            config.compat,
            config.seed,
            Place { node, name, tier: spec.tier },
        ),
        markers: own.iter().map(|port| EcnMarker::for_rate(&settings.ecn, port.rate)).collect(),
        random: RandomStream::new(config.seed, &format!("switch.{name}.ecn")),
    }
}
