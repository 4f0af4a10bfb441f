//! What a process serves: the directions of links between pairs of interfaces, without ports or as a scenario
//! configures them.

use std::net::Ipv4Addr;
use std::path::Path;

use serde_json::Value;
use weftline_sim::config::{Config, TelemetryConfig};
use weftline_sim::engine::random::RandomStream;
use weftline_sim::net::ecn::{EcnMarker, MarkedAt};
use weftline_sim::net::port::Line;
use weftline_sim::queue::PortPlace;
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::telemetry::int::IntLayout;
use weftline_sim::topology::NodeKind;
use weftline_sim::units::Time;

use crate::carrier::Int;
use crate::frame::Names;
use crate::port::{EnginePort, Markers};
use crate::transmitter::Transmitter;

/// All that one process serves.
pub struct Plan {
    pub directions: Vec<Direction>,
    pub names: Names,
    /// How often the queues are looked at; none: never.
    pub sample_every: Option<Time>,
}

/// Frames that come in by one interface go out by another.
pub struct Direction {
    pub from: String,
    pub to: String,
    /// What the simulator calls the port that sends in this direction.
    pub entity: String,
    pub delay: Time,
    /// None: the link alone, where a kernel has the port.
    pub port: Option<EnginePort>,
    /// The time of frames on a link whose port is a kernel's; none: they come at its rate.
    pub transmitter: Option<Transmitter>,
}

impl Plan {
    /// Reads a task: `directions` of `from`, `to` and `entity`, each with `delay_ns` (and, where a kernel has
    /// the port, `rate_bps` and `burst_bytes` of it), or with `node` (number) and `local` (port of the node)
    /// of the task's `scenario` (TOML, with files relative to `base`); `hosts` (address to number),
    /// `own_hosts` (true: they are the engine's), `sample_every_ns`.
    ///
    /// Errors: what of it cannot be served, for people.
    pub fn read(task: &str) -> Result<Plan, String> {
        let task: Value = serde_json::from_str(task).map_err(|error| format!("the task: {error}"))?;
        let config = if task["scenario"].is_null() { None } else { Some(configured(&task)?) };
        let mut directions = Vec::new();
        for one in task["directions"].as_array().into_iter().flatten() {
            let (delay, port) = match (one["delay_ns"].as_u64(), &config) {
                (Some(ns), _) => (Time::from_ns(ns), None),
                (None, Some(config)) => started(config, number(one, "node")?, number(one, "local")?)?,
                (None, None) => return Err("the task: delay_ns is missing".to_string()),
            };
            let (from, to, entity) = (text(one, "from")?, text(one, "to")?, text(one, "entity")?);
            let transmitter = Transmitter::read(one);
            directions.push(Direction { from, to, entity, delay, port, transmitter });
        }
        let address = |(name, number): (&String, &Value)| {
            let address: Ipv4Addr = name.parse().ok()?;
            Some((u32::from(address), u32::try_from(number.as_u64()?).ok()?))
        };
        let hosts = task["hosts"].as_object().into_iter().flatten().filter_map(address);
        let sample_every = task["sample_every_ns"].as_u64().filter(|&ns| ns > 0).map(Time::from_ns);
        let probe = config.as_ref().and_then(|config| config.switch.balancer.facts().probe_packet);
        let mut names = Names::new(hosts).with_probes(probe);
        if task["own_hosts"] == Value::Bool(true) {
            let telemetry = config.as_ref().map_or(&TelemetryConfig::None, |config| &config.telemetry);
            names = names.of_engine(Int::of(telemetry, Some(IntLayout::FINE)));
        }
        Ok(Plan { directions, names, sample_every })
    }
}

pub(crate) fn text(value: &Value, key: &str) -> Result<String, String> {
    value[key].as_str().map(str::to_string).ok_or_else(|| format!("the task: {key} is missing"))
}

pub(crate) fn number(value: &Value, key: &str) -> Result<usize, String> {
    let found = value[key].as_u64().and_then(|number| usize::try_from(number).ok());
    found.ok_or_else(|| format!("the task: {key} is missing"))
}

/// The scenario of a task, if its ports can be served.
fn configured(task: &Value) -> Result<Config, String> {
    let (scenario, base) = (text(task, "scenario")?, text(task, "base")?);
    let scenario = Scenario::load(&scenario, "scenario", Path::new(&base), &[], None, Hooks::default());
    let config = scenario.and_then(|scenario| scenario.config()).map_err(|error| error.to_string())?;
    check(&config)?;
    Ok(config)
}

/// What of a scenario's ports cannot stand between real interfaces.
fn check(config: &Config) -> Result<(), String> {
    for queue in config.switch.queues() {
        let (name, facts) = (queue.name(), queue.facts());
        if !facts.owns_buffer {
            return Err(format!(
                "switch.queue.kind = \"{name}\": ports between real interfaces share no buffer: give each a limit of its \
                 own, such as queue = {{ kind = \"fifo\", limit = \"300KB\" }}"
            ));
        }
        if facts.trims.is_some() {
            return Err(format!(
                "switch.queue.kind = \"{name}\": frames between real interfaces are not trimmed: take a queue that \
                 drops, such as queue = {{ kind = \"fifo\", limit = \"300KB\" }}"
            ));
        }
    }
    Ok(())
}

/// The delay of a link, and the port before it if a switch has it.
fn started(config: &Config, node: usize, local: usize) -> Result<(Time, Option<EnginePort>), String> {
    let ports = config.topology.ports();
    let known = config.topology.nodes.get(node).filter(|_| local < ports[node].len());
    let spec = known.ok_or_else(|| format!("the task: node {node} has no port {local}"))?;
    let (link, _) = ports[node][local];
    let link = &config.topology.links[link as usize];
    if spec.kind == NodeKind::Host {
        return Ok((link.delay, None));
    }
    let settings = &config.switch;
    let queue = settings.queue_at(node as u32, local as u32);
    let place = PortPlace {
        seed: config.seed,
        node: &spec.name,
        local: local as u16,
        rate: link.rate,
        asks_later: false,
        departs: false,
        under_way: Time::ZERO,
        fixed_minimum: false,
    };
    let thresholds = if queue.facts().marks { &[] } else { &settings.ecn[..] };
    let marker = |at| EcnMarker::for_rate(thresholds, link.rate, at);
    let stream = format!("switch.{}.{local}.ecn", spec.name);
    let markers = Markers {
        departing: marker(MarkedAt::Departure),
        arriving: marker(MarkedAt::Arrival),
        random: RandomStream::new(config.seed, &stream),
    };
    let line = Line::new(link.rate, link.delay, 0);
    let port = EnginePort::new(queue.start(&place), line, markers);
    let writes = matches!(config.telemetry, TelemetryConfig::Int { .. });
    Ok((link.delay, Some(if writes { port.with_int(node as u32) } else { port })))
}
