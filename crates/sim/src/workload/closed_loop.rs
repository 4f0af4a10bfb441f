//! Closed loop: clients send requests to servers, and send again when the response has arrived.
//!
//! Every client keeps `concurrency` requests outstanding. A request goes to a random server; when it has
//! arrived, the server computes for `service_time` and sends a response drawn from `sizes`; when that has
//! arrived, the client waits for the think time and sends again, `requests` times in each of its slots. All
//! flows form chains of dependencies, so that a slower network gets fewer requests per second, as in reality.

use super::WorkloadParameters;
use super::load::{Sizes, participants};
use super::sizes::{self, SizeDistribution};
use super::spec::{MAX_DEPENDENT_FLOWS, Window, WorkloadContext, WorkloadError};
use super::{FlowSource, FlowSpec};
use crate::doc::SchemeDoc;
use crate::engine::random::RandomStream;
use crate::parameters::Parameters;
use crate::topology::HostId;
use crate::units::{Bytes, Time};

const THINKING: &[(&str, &str)] =
    &[("fixed", "always `think_time`"), ("exponential", "random, with mean `think_time`")];

/// Keys of a closed loop.
#[derive(Debug, Clone, PartialEq)]
pub struct ClosedLoopSpec {
    pub sizes: Sizes,
    pub request_size: Bytes,
    pub clients: String,
    pub servers: String,
    pub concurrency: u64,
    pub requests: u64,
    pub think_time: Time,
    pub thinking: &'static str,
    pub service_time: Time,
}

impl WorkloadParameters for ClosedLoopSpec {
    const DOC: SchemeDoc = SchemeDoc {
        name: "closed-loop",
        title: "clients that send requests to servers, and send again when the response has arrived",
        source: "An ordinary pattern of such studies; the rules are weftline's",
        validation: "Requests and responses follow each other, and the concurrency is kept \
                     (tests/laws/jobs.rs).",
        ..SchemeDoc::NONE
    };
    const ENDS_ITSELF: bool = true;
    const FLOWS_WAIT: bool = true;

    fn read(p: &mut Parameters) -> ClosedLoopSpec {
        let servers_help = "Servers; each request goes to a random one other than the client itself.";
        let spec = ClosedLoopSpec {
            sizes: Sizes::read_table(p, "google-rpc"),
            request_size: p.bytes("request_size", Bytes(100), "Size of a request."),
            clients: p.text("clients", Some("all"), "Clients, such as \"0-15,20\".").unwrap_or_default(),
            servers: p.text("servers", Some("all"), servers_help).unwrap_or_default(),
            concurrency: p.integer(
                "concurrency",
                1,
                (1, 1_000_000),
                "Number of requests that a client keeps outstanding.",
            ) as u64,
            requests: p.integer(
                "requests",
                100,
                (1, 1_000_000_000),
                "Number of requests in each slot of a \
                                                                      client.",
            ) as u64,
            think_time: p.time("think_time", Time::ZERO, "Time from a response to the next request."),
            thinking: p.choice("thinking", "fixed", THINKING, "Distribution of the think time."),
            service_time: p.time(
                "service_time",
                Time::ZERO,
                "Time from the arrival of a request to its \
                                                              response.",
            ),
        };
        if spec.request_size.0 == 0 {
            p.complain("request_size", "a flow needs at least one byte".into());
        }
        if spec.request_size.0 > sizes::MAX_BYTES {
            p.complain("request_size", format!("{} is above the limit of 1 TB", spec.request_size));
        }
        spec
    }

    fn source(&self, cx: &WorkloadContext, window: Window) -> Result<Box<dyn FlowSource>, WorkloadError> {
        let clients = participants(&self.clients, "clients", 1, cx)?;
        let servers = participants(&self.servers, "servers", 1, cx)?;
        if let Some(client) = clients.iter().find(|&&client| servers.iter().all(|&s| s == client)) {
            let message = format!("host {client} has no server except itself");
            return Err(WorkloadError::new("servers", message));
        }
        let slots = clients.len() as u64 * self.concurrency;
        let flows = u128::from(slots) * u128::from(self.requests) * 2;
        if flows > u128::from(MAX_DEPENDENT_FLOWS) {
            let message = format!(
                "{flows} flows that wait for each other exceed the limit of {MAX_DEPENDENT_FLOWS}: use \
                 fewer requests, clients or slots"
            );
            return Err(WorkloadError::new("requests", message));
        }
        let client = |&host: &HostId| Client {
            host,
            choice: cx.stream(&format!("host{host}.servers")),
            sizes: cx.stream(&format!("host{host}.sizes")),
            thinking: cx.stream(&format!("host{host}.thinking")),
        };
        Ok(Box::new(ClosedLoop {
            clients: clients.iter().map(client).collect(),
            servers,
            sizes: self.sizes.resolve(cx)?,
            request_size: self.request_size.0,
            think_time: self.think_time,
            exponential: self.thinking == "exponential",
            service_time: self.service_time,
            slots: slots as u32,
            flows: flows as u32,
            flow: FlowSpec { start: window.start, ..cx.flow() },
            order: 0,
            answer: 0,
        }))
    }
}

#[derive(Debug, Clone)]
struct Client {
    host: HostId,
    choice: RandomStream,
    sizes: RandomStream,
    thinking: RandomStream,
}

/// Order of the flows: round by round; in a round slot by slot; a request, then its response.
#[derive(Clone)]
struct ClosedLoop {
    clients: Vec<Client>,
    servers: Vec<HostId>,
    sizes: SizeDistribution,
    request_size: u64,
    think_time: Time,
    exponential: bool,
    service_time: Time,
    slots: u32,
    flows: u32,
    flow: FlowSpec,
    order: u32,
    /// Server of the last request, which responds next.
    answer: HostId,
}

impl ClosedLoop {
    fn request(&mut self) -> FlowSpec {
        let slot = self.order / 2 % self.slots;
        let first = self.order / 2 < self.slots;
        let place = slot as usize % self.clients.len();
        let client = &mut self.clients[place];
        self.answer = loop {
            let server = self.servers[client.choice.below(self.servers.len() as u64) as usize];
            if server != client.host {
                break server;
            }
        };
        let compute = match (first, self.exponential) {
            (true, _) => Time::ZERO,
            (false, false) => self.think_time,
            // The cast truncates to a whole picosecond and saturates.
            (false, true) => Time(client.thinking.exponential(self.think_time.0 as f64) as u64),
        };
        let (src, dst, size) = (client.host, self.answer, self.request_size);
        FlowSpec { src, dst, size, compute, waits_for: u16::from(!first), ..self.flow }
    }

    fn response(&mut self) -> FlowSpec {
        let slot = self.order / 2 % self.slots;
        let place = slot as usize % self.clients.len();
        let client = &mut self.clients[place];
        let (src, dst) = (self.answer, client.host);
        let size = self.sizes.sample(&mut client.sizes);
        FlowSpec { src, dst, size, compute: self.service_time, waits_for: 1, ..self.flow }
    }
}

impl FlowSource for ClosedLoop {
    fn next(&mut self) -> Option<FlowSpec> {
        if self.order == self.flows {
            return None;
        }
        let flow = if self.order % 2 == 0 { self.request() } else { self.response() };
        self.order += 1;
        Some(flow)
    }

    fn clone_box(&self) -> Box<dyn FlowSource> {
        Box::new(self.clone())
    }

    fn dependencies(&self) -> Vec<(u32, u32)> {
        let next_request = |order: u32| order - 1 + 2 * self.slots;
        let later = |order: u32| if order % 2 == 0 { order + 1 } else { next_request(order) };
        (0..self.flows).map(|order| (order, later(order))).filter(|pair| pair.1 < self.flows).collect()
    }
}

#[cfg(test)]
mod tests;
