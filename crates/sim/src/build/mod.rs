//! From a [`Config`] to a network that is ready to run.

mod execution;
mod fabric;
mod split;
mod work;

pub use execution::Execution;
pub use fabric::{Surroundings, each_switch};

use crate::balance::{Events, LoadBalancer};
use crate::capture::Capture;
use crate::compat::Rules;
use crate::config::{Change, Config, Failure, Forwarding};
use crate::engine::random::RandomStream;
use crate::external::caught;
use crate::ideal::Ideals;
use crate::measure::recorder::Recorder;
use crate::net::NodeIndex;
use crate::net::agenda::{Action, AgendaKind};
use crate::net::buffer::{BufferedPort, SharedBuffer};
use crate::net::ecn::{EcnMarker, MarkedAt};
use crate::net::host::{Edge, Host, HostConfig, Kick, TelemetryShim};
use crate::net::loss::Losses;
use crate::net::map::{Map, Side};
use crate::net::memory::Memory;
use crate::net::outbox::Outbox;
use crate::net::partition::{Partition, PartitionPlan};
use crate::net::port::{Line, Port, PortPlan};
use crate::net::switch::{Switch, SwitchTelemetry};
use crate::queue::PortPlace;
use crate::run::balance::Windows;
use crate::run::changes::Changes;
use crate::run::flows::Flows;
use crate::run::graphs::Graphs;
use crate::run::places::Places;
use crate::run::probes::Probes;
use crate::run::region::Region;
use crate::run::starts::{Precedence, Starts};
use crate::run::{Plan, RunError, Simulation};
use crate::telemetry::TelemetryConfig;
use crate::telemetry::int::{IntLayout, path_id};
use crate::telemetry::pint::PintSwitch;
use crate::topology::Routes;
use crate::topology::{LinkId, MAX_NODES, MAX_PORTS, NodeId, NodeKind, Topology};
use crate::transport::binding::NicPolicy;
use crate::transport::{HostPlan, RunContext, Settings, TransportConfig, TransportState, firsts};
use crate::units::{Rate, Time};
use crate::workload::merge::{Dependents, Jobs};
use fabric::Fabrics;
use split::Split;
use std::sync::Arc;

impl Simulation {
    /// Builds the network, cut into regions as the execution asks and the network allows.
    pub fn new(config: Config, execution: Execution) -> Result<Simulation, RunError> {
        caught(|| {
            Simulation::build(
                config,
                |config, map| execution::plan(config, &map.routes, execution),
                execution.windows,
            )
        })?
    }

    /// Builds the hosts of a network, whose switches are outside the simulator and carry packets of up to `mtu` bytes: the first
    /// region, with the switches as the second one.
    ///
    /// Errors: what hosts cannot do with such switches.
    pub fn of_hosts(config: Config, mtu: u64) -> Result<Simulation, RunError> {
        let longest = config.largest_packet();
        let why = if config.rules.insertion_order {
            let like = config.rules.like;
            format!(
                "compat.like = \"{like}\": with switches outside the simulator there is no order of the whole network"
            )
        } else if matches!(config.telemetry, TelemetryConfig::Pint(_)) {
            "telemetry.kind = \"pint\": hosts read INT of switches outside the simulator, and no digests: leave it out, and \
             schemes that need it"
                .to_string()
        } else if config.traffic.sources.iter().any(|source| source.graph().is_some()) {
            "job graphs: hosts with switches outside the simulator run flows alone".to_string()
        } else if longest > mtu {
            format!(
                "transport: packets have up to {longest} bytes, and the links carry {mtu}: set a shorter mtu or mss"
            )
        } else {
            let plan = Plan { threads: 1, regions: 2, lookahead: Time::MAX, why_fewer: None };
            let cut = |config: &Config, _: &Map| (plan, Split::hosts_apart(&config.topology));
            return caught(|| Simulation::build(config, cut, Some(false)))?;
        };
        Err(RunError::Impossible(why))
    }

    /// Builds the network, cut as `cut` says.
    fn build(
        config: Config,
        cut: impl FnOnce(&Config, &Map) -> (Plan, Split),
        windows: Option<bool>,
    ) -> Result<Simulation, RunError> {
        check_limits(&config.topology)?;
        let map = Arc::new(map(&config));
        let (mut plan, split) = cut(&config, &map);
        // What ranks send to each other outside the network crosses regions too.
        for graph in config.traffic.sources.iter().filter_map(|source| source.graph()) {
            plan.lookahead = plan.lookahead.min(graph.shortest_delay().unwrap_or(Time::MAX));
        }
        let settings = Arc::new(settings(&config, &map.routes));
        let places = places(&config.topology, &split, &map);
        let precedence = Arc::new(Precedence {
            dependents: Dependents::of_run(&config.traffic),
            jobs: Jobs::new(&config.traffic),
            host_index: (0..places.host_node.len() as u32).map(|host| places.of_host(host).1).collect(),
        });
        let builder = Builder {
            config: &config,
            places: &places,
            map: &map,
            split: &split,
            windows,
            horizon: longest_base_rtt(&config, &map.routes),
            fabrics: Fabrics::of(&config, &map),
            nic_rate: config.topology.nic_rate(),
            memory: Memory::new(&config.telemetry, settings.int_layout, map.sides.len()),
        };
        let regions = (0..split.parts)
            .map(|number| {
                let (net, switches, hosts) = builder.region(number as u16);
                Box::new(Region {
                    net,
                    switches,
                    hosts,
                    map: map.clone(),
                    settings: settings.clone(),
                    starts: Starts::new(precedence.clone(), hosts_of(&places, number)),
                    graphs: Graphs::default(),
                    ended: Vec::new(),
                    inboxes: (0..split.parts).map(|_| Outbox::default()).collect(),
                    limit: Time::ZERO,
                    arrived: true,
                    broken: None,
                    observer: None,
                })
            })
            .collect();
        Ok(Simulation {
            regions,
            capture: Capture::of(&config, &settings),
            flows: Flows::new(&config.traffic),
            ideals: Ideals::new(&config, &map),
            probes: Probes::new(&config.measure, config.until, &places),
            places,
            map,
            settings,
            changes: Changes::new(config.topology, &config.failures),
            now: Time::ZERO,
            samples: Vec::new(),
            given_up: Vec::new(),
            windows: Windows::default(),
            memo: config.memo.then(Box::default),
            plan,
        })
    }

    /// In what units its INT counts; none without INT.
    pub fn int_layout(&self) -> Option<IntLayout> {
        (self.settings.int_hops > 0).then_some(self.settings.int_layout)
    }

    /// How the run is executed.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
}

/// Whether each host is in a region.
fn hosts_of(places: &Places, region: usize) -> Arc<Vec<bool>> {
    let hosts = 0..places.host_node.len() as u32;
    Arc::new(hosts.map(|host| places.of_host(host).0 == region).collect())
}

fn check_limits(topology: &Topology) -> Result<(), RunError> {
    if topology.nodes.len() > MAX_NODES {
        let message = format!("{} nodes: expected at most {MAX_NODES}", topology.nodes.len());
        return Err(RunError::Impossible(message));
    }
    let lists = topology.ports();
    if let Some(node) = lists.iter().position(|ports| ports.len() > MAX_PORTS) {
        let (name, ports) = (&topology.nodes[node].name, lists[node].len());
        let message = format!("{name} has {ports} ports: expected at most {MAX_PORTS}");
        return Err(RunError::Impossible(message));
    }
    Ok(())
}

/// What transports may know about the run.
fn run<'a>(config: &'a Config, routes: &'a Routes) -> RunContext<'a> {
    let Config { rules, topology, switch, telemetry, transports, traffic, .. } = config;
    let (nic_policy, traffic) = (config.host.nic_policy, Some(traffic));
    let longest = None;
    RunContext { rules, topology, routes, longest, switch, telemetry, transports, nic_policy, traffic }
}

fn settings(config: &Config, routes: &Routes) -> Settings {
    let place = |transport: &TransportConfig| {
        firsts(&config.transports).position(|first| first.name() == transport.name())
    };
    let run = run(config, routes);
    let (int_hops, path_ids, pint) = match &config.telemetry {
        TelemetryConfig::None => (0, false, None),
        TelemetryConfig::Int { max_hops, path_id, .. } => (*max_hops as usize, *path_id, None),
        TelemetryConfig::Pint(pint) => (0, false, Some(pint.clone())),
    };
    let dependencies = config
        .traffic
        .sources
        .iter()
        .any(|s| s.graph().is_some() || !s.dependencies().is_empty() || !s.jobs().is_empty());
    Settings {
        rules: config.rules,
        transport_of: config.transports.iter().map(|t| place(t).unwrap_or(0) as u8).collect(),
        transports: config.transports.iter().map(|transport| transport.settled(&run)).collect(),
        keeps_connections: config.transports.iter().map(|t| t.facts().keeps_connections).collect(),
        nic_policy: config.host.nic_policy,
        packet_time: config.host.packet_time,
        unlike_nics: unlike_nics(config),
        int_layout: run.int_layout(config.slower),
        int_hops,
        path_ids,
        pint,
        seed: config.seed,
        dependencies,
        subflows: config.measure.subflows,
    }
}

/// [`Settings::unlike_nics`].
fn unlike_nics(config: &Config) -> bool {
    let topology = &config.topology;
    let ports = topology.ports();
    let rate = |link: LinkId| topology.links[link as usize].rate;
    let unlike = |host: NodeId| ports[host as usize].windows(2).any(|two| rate(two[0].0) != rate(two[1].0));
    let change = |failure: &Failure| matches!(failure.change, Change::LinkRate(..));
    config.host.nic_policy == NicPolicy::All
        && (config.failures.events.iter().any(change) || topology.hosts().into_iter().any(unlike))
}

/// The longest base RTT that any transport reckons with.
fn longest_base_rtt(config: &Config, routes: &Routes) -> Time {
    let run = run(config, routes);
    let all = config.transports.iter().map(|t| t.with_telemetry(&config.telemetry).base_rtt(&run));
    all.max().unwrap_or(Time::ZERO)
}

/// Routes and links.
fn map(config: &Config) -> Map {
    let topology = &config.topology;
    let lists = topology.ports();
    let mut first_port = Vec::with_capacity(lists.len() + 1);
    let mut total = 0u32;
    for list in lists.iter() {
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
    let forwarding = config.switch.forwarding;
    let mut sides = Vec::with_capacity(total as usize);
    for (node, list) in lists.iter().enumerate() {
        for &(link, neighbour) in list {
            let spec = &topology.links[link as usize];
            let side = usize::from(spec.a != node as u32);
            let is_switch = topology.nodes[neighbour as usize].kind == NodeKind::Switch;
            let cuts_through = if is_switch { cut_through_header(config) } else { 0 };
            sides.push(Side {
                node: node as u32,
                peer: ends[link as usize][1 - side],
                peer_node: neighbour,
                line: Line::new(spec.rate, spec.delay, cuts_through).between(forwarding).under(&config.rules),
            });
        }
    }
    let routes = Routes::compute(topology, &|_| true, config.rules.next_hops);
    Map { routes, intact: None, version: 0, first_port, sides }
}

/// Bytes after which a switch forwards; 0: all.
fn cut_through_header(config: &Config) -> u16 {
    config.switch.forwarding.header().map_or(0, |header| header.min(u32::from(u16::MAX)) as u16)
}

/// Numbers hosts, switches and ports within their regions, in the order of the nodes.
fn places(topology: &Topology, split: &Split, map: &Map) -> Places {
    let (mut hosts, mut switches) = (vec![0u32; split.parts], vec![0u32; split.parts]);
    let mut ports = vec![0u32; split.parts];
    let (mut nodes, mut host_node, mut first_port) = (Vec::new(), Vec::new(), Vec::new());
    for (node, spec) in topology.nodes.iter().enumerate() {
        let region = split.part[node];
        let of_region = usize::from(region);
        let count = if spec.kind == NodeKind::Host { &mut hosts } else { &mut switches };
        let index = count[of_region];
        count[of_region] += 1;
        nodes.push(match spec.kind {
            NodeKind::Host => (region, NodeIndex::Host(index)),
            NodeKind::Switch => (region, NodeIndex::Switch(index)),
        });
        if spec.kind == NodeKind::Host {
            host_node.push(node as u32);
        }
        first_port.push(ports[of_region]);
        ports[of_region] += map.first_port[node + 1] - map.first_port[node];
    }
    Places { nodes, hosts_in: hosts, host_node, first_port }
}

/// Builds the regions.
struct Builder<'a> {
    config: &'a Config,
    places: &'a Places,
    map: &'a Map,
    split: &'a Split,
    /// Work by windows; none: where it is faster.
    windows: Option<bool>,
    /// Over which switches average their ports' loads: the longest base RTT.
    horizon: Time,
    fabrics: Fabrics,
    nic_rate: Rate,
    memory: Memory,
}

impl Builder<'_> {
    fn region(&self, number: u16) -> (Partition, Vec<Switch>, Vec<Host>) {
        let (mut ports, mut switches, mut hosts) = (Vec::new(), Vec::new(), Vec::new());
        for (node, &(region, index)) in self.places.nodes.iter().enumerate() {
            if region != number {
                continue;
            }
            let node = node as u32;
            let first_port = ports.len() as u32;
            ports.extend(self.ports(node, number, index));
            let own = &ports[first_port as usize..];
            match index {
                NodeIndex::Switch(_) => switches.push(self.switch(node, first_port, own)),
                NodeIndex::Host(index) => hosts.push(Host {
                    id: self.map.routes.host_at(node).unwrap_or(0),
                    index,
                    node,
                    first_port,
                    ports: own.len() as u16,
                    kick: self.kick(own.len()),
                    rows: self.map.rows_of_host(node),
                    transports: self.transports(self.map.routes.host_at(node).unwrap_or(0), own.len()),
                    turn: 0,
                    edge: self.edge(self.map.routes.host_at(node).unwrap_or(0)),
                }),
            }
        }
        let measure = &self.config.measure;
        let recorder = Recorder::new(
            self.config.traffic.groups.len(),
            measure.flow_goodput.as_ref().map_or(Vec::new(), |m| m.what.clone()),
            measure.pauses,
        );
        let losses = self.config.failures.loss.map(|loss| Losses::new(loss, self.config.seed, ports.len()));
        let net = Partition::new(PartitionPlan {
            number,
            partitions: self.split.parts,
            ports,
            always_departs: self.config.rules.departure_events,
            passes_queues: self.config.host.queue.is_some() && hosts.iter().all(|host| host.edge.is_none()),
            passes_alone: self.passes_alone(&hosts),
            agenda: self.agenda(number),
            hosts: hosts.len() as u32,
            nodes: hosts.len() + switches.len(),
            memory: &self.memory,
            recorder,
            numberings: self.config.transports.iter().map(TransportConfig::numbering).collect(),
            links_fail: !self.config.failures.events.is_empty(),
            losses,
        });
        let mut net = net;
        self.tap(&mut net);
        for (number, switch) in switches.iter().enumerate() {
            if let Some(at) = switch.first_timer() {
                let timer = Action::SwitchTimer { switch: number as u32, token: 0 };
                net.schedule(net.hosts + number as u32, at, timer);
            }
        }
        (net, switches, hosts)
    }

    /// Links whose packets are written down get their taps.
    fn tap(&self, net: &mut Partition) {
        let Some(capture) = &self.config.measure.capture else { return };
        for (link, &(node, local)) in capture.ports.iter().enumerate() {
            let (region, port) = self.places.of_port(node, local);
            if region == usize::from(net.number) {
                net.tap(port, link as u16);
            }
        }
    }

    /// What stands between the transports of a host and its links.
    fn edge(&self, host: u32) -> Option<Box<Edge>> {
        let Config { switch, transports, telemetry, seed, .. } = self.config;
        let shim = TelemetryShim::new(transports, telemetry, *seed);
        Edge::new(switch.balancer.at_host(*seed, host), shim, &self.config.host, &self.config.measure)
    }

    /// The transports of a host with this number of ports.
    fn transports(&self, host: u32, ports: usize) -> Vec<TransportState> {
        let (topology, routes) = (&self.config.topology, &self.map.routes);
        let plan = HostPlan { host, ports, seed: self.config.seed, topology, routes };
        firsts(&self.config.transports).map(|transport| transport.start(&plan)).collect()
    }

    /// What a switch writes into packets.
    fn telemetry(&self, node: u32, own: &[Port]) -> SwitchTelemetry {
        match &self.config.telemetry {
            TelemetryConfig::Pint(pint) => {
                let rates = own.iter().map(|port| port.line.rate);
                SwitchTelemetry::Pint(Box::new(PintSwitch::new(
                    pint,
                    node,
                    rates,
                    self.horizon,
                    self.config.seed,
                )))
            }
            _ => SwitchTelemetry::Int,
        }
    }

    /// A node's number among all of its region: hosts come first.
    fn slot(&self, region: u16, index: NodeIndex) -> u32 {
        match index {
            NodeIndex::Host(host) => host,
            NodeIndex::Switch(switch) => self.places.hosts_in[usize::from(region)] + switch,
        }
    }

    /// How the region orders its work.
    fn agenda(&self, number: u16) -> AgendaKind {
        if self.config.rules.insertion_order {
            let delays = self.config.topology.links.iter().map(|link| link.delay);
            let longest = delays.max().unwrap_or(Time::ZERO);
            let Rules { whole_ns_wake_ups: whole_ns, arrivals_by_wire: by_wire, .. } = self.config.rules;
            return AgendaKind::Insertion { longest, whole_ns, by_wire };
        }
        let inside = |node: u32| self.split.part[node as usize] == number;
        let links = self.config.topology.links.iter().filter(|link| inside(link.a) && inside(link.b));
        let shortest = links.map(|link| link.delay).min().unwrap_or(Time::MAX);
        execution::agenda(&self.config.topology, shortest, self.windows)
    }

    /// A packet that comes alone to a port of one of these hosts may leave at once, as if it had been queued.
    fn passes_alone(&self, hosts: &[Host]) -> bool {
        let room = self.config.nic_queue().facts().capacity;
        let largest = self.config.largest_packet();
        room.is_none_or(|room| room.0 >= largest)
            && !self.config.rules.departure_events
            && hosts.iter().all(|host| host.ports == 1 && host.kick == Kick::Port && host.edge.is_none())
    }

    /// What a host with a number of ports looks at.
    fn kick(&self, ports: usize) -> Kick {
        match &self.config.host {
            HostConfig { queue: Some(_), .. } => Kick::Queue,
            HostConfig { nic_policy: NicPolicy::All, .. } if ports > 1 => Kick::AnyPort,
            _ => Kick::Port,
        }
    }

    /// The ports of a node.
    fn ports(&self, node: u32, partition: u16, owner: NodeIndex) -> Vec<Port> {
        let nic = self.config.nic_queue();
        let all = self.map.first_port[node as usize]..self.map.first_port[node as usize + 1];
        let mut inward: Vec<(Time, u32)> = match self.config.rules.insertion_order {
            false => Vec::new(),
            true => all.clone().map(|port| (self.map.sides[port as usize].line.delay, port)).collect(),
        };
        inward.sort_unstable();
        let under_way =
            |to: u32| inward.iter().find(|&&(_, port)| port != to).map_or(Time::ZERO, |&(delay, _)| delay);
        let port = |(local, number): (usize, u32)| {
            let side = self.map.sides[number as usize];
            let peer_local = side.peer - self.map.first_port[side.peer_node as usize];
            let (peer_partition, peer) = self.places.of_port(side.peer_node, peer_local);
            let plan = PortPlan {
                slot: self.slot(partition, owner),
                peer_slot: self.slot(peer_partition as u16, self.places.nodes[side.peer_node as usize].1),
                node,
                local: local as u16,
                peer,
                peer_local: peer_local as u16,
                peer_partition: peer_partition as u16,
                line: side.line,
            };
            let queue = match owner {
                NodeIndex::Switch(_) => self.config.switch.queue_at(node, local as u32),
                NodeIndex::Host(_) => &nic,
            };
            let name = &self.config.topology.nodes[node as usize].name;
            let place = PortPlace {
                seed: self.config.seed,
                node: name,
                local: local as u16,
                rate: side.line.rate,
                asks_later: self.config.rules.nic_asks_later,
                departs: self.config.rules.departure_events,
                under_way: under_way(number),
                fixed_minimum: self.config.rules.early_drops_keep_1500,
            };
            Port::new(&plan, queue.start(&place))
        };
        all.enumerate().map(port).collect()
    }

    /// A switch with these ports, of which the first has this number.
    fn switch(&self, node: u32, first_port: u32, own: &[Port]) -> Switch {
        let config = self.config;
        let spec = &config.topology.nodes[node as usize];
        let name = &spec.name;
        let buffered: Vec<BufferedPort> =
            own.iter().map(|port| BufferedPort { rate: port.line.rate, delay: port.line.delay }).collect();
        let packet = config.largest_packet();
        let settings = &config.switch;
        let (tor, neighbours) = fabric::around(config, &self.fabrics, self.map, node);
        let place = fabric::place(config, node, &self.fabrics, (tor, &neighbours));
        let waits_for_tails = matches!(settings.forwarding, Forwarding::CutThrough { .. });
        let balancer = settings.balancer.start(&place);
        let events = balancer.events();
        let watched = events.has(Events::DEPARTURES.and(Events::FABRIC_DEPARTURES));
        let looks_closer =
            waits_for_tails || events.has(Events::FORWARDS.and(Events::HOLDS)) || config.measure.paths;
        let lets_pass = !watched;
        let markers = |at: MarkedAt| {
            let marker = |port: &Port| {
                let marks_itself = settings.queue_at(node, u32::from(port.local)).facts().marks;
                EcnMarker::for_rate(if marks_itself { &[] } else { &settings.ecn }, port.line.rate, at)
            };
            own.iter().map(marker).collect::<Vec<_>>()
        };
        let at_departure = markers(MarkedAt::Departure);
        Switch {
            node,
            row: self.map.routes.row(node),
            first_port,
            telemetry: self.telemetry(node, own),
            cuts_through: cut_through_header(config),
            waits_for_tails,
            traces: config.measure.paths,
            looks_closer,
            is_plain: lets_pass
                && !looks_closer
                && !config.rules.departure_events
                && !events.has(Events::ARRIVALS),
            path_id: path_id(node),
            buffer: SharedBuffer::new(
                settings.buffer,
                &buffered,
                &settings.pfc,
                settings.lossy_alpha,
                self.nic_rate,
                packet,
            ),
            // With PFC it is not the port's queue that is too long, but what came in by one port.
            exchanges: !settings.pfc.enabled && !config.rules.refused_are_dropped,
            watched,
            unwatched_ports: fabric::unwatched_ports(events, &neighbours),
            lets_pass,
            events,
            balancer,
            held: Default::default(),
            first_marked: if at_departure.iter().any(EcnMarker::ever_marks) { 1 } else { u8::MAX },
            markers: at_departure,
            arrival_markers: if settings.ecn.iter().any(|threshold| threshold.at == MarkedAt::Arrival) {
                markers(MarkedAt::Arrival)
            } else {
                Vec::new()
            },
            random: RandomStream::new(config.seed, &format!("switch.{name}.ecn")),
        }
    }
}
