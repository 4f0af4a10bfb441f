//! Whether the codes of PINT's queries, and INT's field for queues, reach the values that the scenario's network may
//! have.

use super::Scenario;
use crate::config::Until;
use crate::telemetry::TelemetryConfig;
use crate::telemetry::pint::{LOAD_UNITS, PintConfig};
use crate::transport::{TransportConfig, largest_packet};
use crate::units::{Bytes, Rate, Time};
use pint::query::{Aggregation, Blocks, Query, Value};

/// Ports have this load wherever flows meet: one that is full and has a base RTT's worth of bytes queued.
const COMMON_LOAD: f64 = 2.0;

/// A controller to which the largest code is no more than its target: its senders would never lower a rate.
pub fn refusal(pint: &PintConfig, transports: &[TransportConfig]) -> Option<(&'static str, String)> {
    let largest = pint.load.as_ref()?.largest();
    let (controller, eta) = steered(transports).find(|(_, eta)| largest <= *eta)?;
    Some((
        key_of(pint),
        format!(
            "the codes of the load end at {}, and controller \"{controller}\" lowers rates only above eta = {eta}: without a code above \
             it there is no congestion control; {}",
            share(largest),
            remedy(pint),
        ),
    ))
}

/// The controllers that steer on the load, each with its target.
fn steered(transports: &[TransportConfig]) -> impl Iterator<Item = (&str, f64)> {
    let controllers = transports.iter().filter_map(|transport| transport.facts().controller);
    controllers.filter_map(|controller| Some((controller.name(), controller.needs().load?)))
}

fn key_of(pint: &PintConfig) -> &'static str {
    if pint.plan.is_some() { "queries" } else { "bits" }
}

fn remedy(pint: &PintConfig) -> &'static str {
    match pint.plan {
        Some(_) => "give its query more bits or a larger base",
        None => "set more bits or a larger base (published: bits = 8, base = 1.05)",
    }
}

/// A load in three digits.
fn share(load: f64) -> String {
    let digits = (2 - load.abs().max(1e-9).log10().floor() as i32).clamp(0, 9);
    let text = format!("{load:.*}", digits as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// A warning for every query, or field, whose largest code stands for less than the network may have.
pub fn warnings(scenario: &Scenario) -> Vec<String> {
    let config = match &scenario.telemetry {
        TelemetryConfig::Pint(config) => config,
        TelemetryConfig::Int { all, .. } => return short_queues(scenario, *all).into_iter().collect(),
        TelemetryConfig::None => return Vec::new(),
    };
    let mut warnings: Vec<String> = short_load(scenario, config).into_iter().collect();
    let Some(plan) = &config.plan else { return warnings };
    let Some(network) = Extremes::of(scenario) else { return warnings };
    let queries = plan.queries();
    warnings.extend(queries.queries.iter().enumerate().filter_map(|(number, query)| {
        if let Aggregation::Path(path) = &query.aggregation {
            let Blocks::Fragments { value_bits } = path.blocks else { return None };
            let end = (u64::MAX >> (64 - value_bits.clamp(1, 64))) as f64;
            return network.beyond(scenario, query, end, 1);
        }
        query.aggregation.approximation()?;
        network.beyond(scenario, query, plan.largest(number)?, queries.hops.expected)
    }));
    warnings
}

/// The built-in query, if its codes end below a common load.
fn short_load(scenario: &Scenario, config: &PintConfig) -> Option<String> {
    let largest = config.load.as_ref().filter(|_| config.plan.is_none())?.largest();
    let strictest = steered(&scenario.transports).max_by(|a, b| a.1.total_cmp(&b.1));
    let consequence = match strictest {
        Some((controller, eta)) => {
            let cut = (1.0 - eta / largest) * 100.0;
            format!("senders of \"{controller}\" lower their rate by at most {cut:.0} % per round trip")
        }
        None => format!("larger loads are decoded as {}", share(largest)),
    };
    (largest < COMMON_LOAD).then(|| {
        format!(
            "telemetry.{}: the codes of the load end at {}, but where flows meet, ports have a load of {COMMON_LOAD} and more: \
             {consequence}; {}",
            key_of(config),
            share(largest),
            remedy(config),
        )
    })
}

/// INT's field for queues, where longer ones are written as short ones and a buffer holds more.
fn short_queues(scenario: &Scenario, all: bool) -> Option<String> {
    let used = scenario.transports_used();
    let mut controllers = used.iter().filter_map(|(_, transport)| transport.facts().controller);
    if !all && !controllers.any(|controller| controller.needs().int) {
        return None;
    }
    let layout = scenario.run().int_layout(scenario.slower());
    let reach = Bytes(layout.longest_queue());
    let network = Extremes::of(scenario).filter(|network| layout.wraps_queue && network.buffer > reach)?;
    Some(format!(
        "telemetry: INT's 17 bits for the queue end at {reach}, but at port {}, whose buffer is {}, more may wait: longer queues are \
         written as the remainder of dividing them by {}",
        network.port,
        network.buffer,
        Bytes(reach.0 + u64::from(layout.queue_unit))
    ))
}

/// The largest values that switches may report.
struct Extremes {
    /// The port with the largest buffer.
    port: String,
    buffer: Bytes,
    /// The port that drains its buffer most slowly, its buffer, and how long that takes.
    slowest: (String, Bytes, Time),
    /// The rate of the fastest port.
    fastest: Rate,
    /// The largest number of a switch.
    switch: u32,
    /// The largest number of a port of a switch.
    local: usize,
}

impl Extremes {
    /// None: a network without a port of a switch.
    fn of(scenario: &Scenario) -> Option<Extremes> {
        let (switch, topology) = (&scenario.switch, &scenario.network.topology);
        let ports = topology.ports();
        // One queue alone takes what its multiple of the free buffer comes to.
        let shared = match switch.pfc.enabled {
            true => switch.buffer,
            false => Bytes((switch.buffer.0 as f64 * switch.lossy_alpha / (1.0 + switch.lossy_alpha)) as u64),
        };
        let all: Vec<_> = topology
            .switches()
            .into_iter()
            .flat_map(|node| {
                let places = ports[node as usize].iter().zip(0..);
                places.map(move |(&(link, _), local)| (node, local, topology.links[link as usize].rate))
            })
            .collect();
        let packet = largest_packet(&scenario.transports, &scenario.telemetry);
        let buffer = |node, local| switch.queue_at(node, local).facts().room(packet).unwrap_or(shared);
        let delay = |&(node, local, rate): &(u32, u32, Rate)| rate.transmission_time(buffer(node, local).0);
        let &(node, local, _) = all.iter().max_by_key(|&&(node, local, _)| buffer(node, local))?;
        let slowest = all.iter().max_by_key(|port| delay(port))?;
        Some(Extremes {
            port: topology.port_name(node, local),
            buffer: buffer(node, local),
            slowest: (topology.port_name(slowest.0, slowest.1), buffer(slowest.0, slowest.1), delay(slowest)),
            fastest: all.iter().map(|&(_, _, rate)| rate).max()?,
            switch: topology.switches().into_iter().max()?,
            local: topology.switches().into_iter().map(|node| ports[node as usize].len()).max()? - 1,
        })
    }

    /// A warning if the values of a query, combined over `hops`, may exceed its codes, which end at `end`.
    fn beyond(&self, scenario: &Scenario, query: &Query, end: f64, hops: u32) -> Option<String> {
        let until = match scenario.until {
            Until::At(time) => Some(time),
            Until::FlowsDone { .. } => None,
        };
        let (largest, why) = match query.value {
            Value::HopLatency => {
                let (port, buffer, delay) = &self.slowest;
                let why = format!("at port {port}, whose buffer is {buffer}, a packet may wait {delay}");
                (delay.as_ns(), why)
            }
            Value::QueueBytes => (
                self.buffer.0 as f64,
                format!("at port {}, whose buffer is {}, {} may wait", self.port, self.buffer, self.buffer),
            ),
            Value::Utilisation => (
                COMMON_LOAD * LOAD_UNITS,
                format!("where flows meet, ports have a load of {COMMON_LOAD} and more"),
            ),
            Value::Timestamp => {
                let until = until?;
                (until.as_ns(), format!("the run ends at {until}"))
            }
            Value::PortBytes => {
                let until = until?;
                let bytes = Bytes((self.fastest.0 as f64 / 8e12 * until.0 as f64) as u64);
                (bytes.0 as f64, format!("a port of {} may send {bytes} until {until}", self.fastest))
            }
            Value::SwitchId => (f64::from(self.switch), format!("a switch has the id {}", self.switch)),
            Value::IngressPort | Value::EgressPort => {
                (self.local as f64, format!("a switch has a port {}", self.local))
            }
        };
        let (whole, over) = match query.aggregation {
            Aggregation::Sum(_) => (largest * f64::from(hops), format!(" at each of {hops} hops")),
            Aggregation::Product(_) => (largest.powi(hops as i32), format!(" at each of {hops} hops")),
            _ => (largest, String::new()),
        };
        if whole <= end {
            return None;
        }
        let reach = match (&query.aggregation, query.value) {
            (Aggregation::Product(_), _) => format!("a product of {end:.3e}"),
            (_, Value::HopLatency | Value::Timestamp) => Time::from_ns(end as u64).to_string(),
            (_, Value::QueueBytes | Value::PortBytes) => Bytes(end as u64).to_string(),
            (_, Value::Utilisation) => format!("a load of {}", share(end / LOAD_UNITS)),
            (_, Value::SwitchId | Value::IngressPort | Value::EgressPort) => format!("{end}"),
        };
        let (decoded, remedy) = match (&query.aggregation, query.value.is_name()) {
            (Aggregation::Path(_), _) => {
                ("larger ids lose their upper bits".to_string(), "larger value-bits")
            }
            (_, true) => (format!("larger ones are decoded as {reach}"), "more bits"),
            _ => (format!("larger values are decoded as {reach}"), "more bits or a larger epsilon"),
        };
        Some(format!(
            "telemetry.queries: the codes of query \"{}\" end at {reach}, but {why}{over}: {decoded}; give the query {remedy}",
            query.name
        ))
    }
}
