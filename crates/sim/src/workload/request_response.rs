//! Requests and responses over persistent connections: clients send requests at random times, independently
//! of earlier responses.
//!
//! Each client generates requests as a Poisson process, with a rate at which the responses make up the load.
//! Each request goes to a random server on one of `connections` connections to it, chosen at random, and
//! waits there for the response to the previous request on that connection; when it has arrived, the server
//! sends a response drawn from `sizes`.
//!
//! Requests and responses use one connection of the transport per direction, if the transport has persistent
//! connections; with `persistent = false` each opens its own. A flow's time is measured from the time at
//! which it is given to its sender, including the time that it waits there.
//!
//! Source: the generator with which CONGA, CLOVE, HULA and MP-HULA were evaluated (clients in one half of the
//! network, servers in the other, a few persistent connections per pair; from memory, unverified).
//! Differs from the source: each direction of a connection is opened by its first flow.

use super::WorkloadParameters;
use super::load::{Load, LoadTerms, Sizes, mean_gap, participants};
use super::sizes::{self, SizeDistribution};
use super::spec::{MAX_DEPENDENT_FLOWS, Window, WorkloadContext, WorkloadError};
use super::{AskedLoad, Ends, FlowSource, FlowSpec};
use crate::doc::SchemeDoc;
use crate::engine::random::RandomStream;
use crate::parameters::Parameters;
use crate::topology::HostId;
use crate::units::{Bytes, Time};
use rustc_hash::FxHashSet;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

/// Keys of requests and responses.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestResponseSpec {
    pub sizes: Sizes,
    pub load: Load,
    pub request_size: Bytes,
    pub clients: String,
    pub servers: String,
    pub connections: u64,
    pub persistent: bool,
}

impl WorkloadParameters for RequestResponseSpec {
    const DOC: SchemeDoc = SchemeDoc {
        name: "request-response",
        title: "requests at random times over persistent connections, and their responses, with a given \
                load",
        source: "The generator with which CONGA, HULA and MP-HULA were evaluated (from memory, unverified)",
        validation: "The load of the responses; a request waits for the previous response \
                     (workload/request_response.rs).",
        ..SchemeDoc::NONE
    };
    const FLOWS_WAIT: bool = true;

    fn read(p: &mut Parameters) -> RequestResponseSpec {
        let clients = p.text("clients", Some("auto"), "Clients; auto: the first half of all hosts.");
        let servers = p.text("servers", Some("auto"), "Servers; auto: the second half.");
        let load_help = "Load of the responses, as a share of the servers' link rate (or of `capacity`).";
        let connections_help = "Number of connections between a client and a server; on each, a request waits for the previous \
             response.";
        let persistent_help = "With TCP, multipath TCP and RDMA a connection stays open, with its windows \
                               and rates, from one response to the next; false: each request and each \
                               response opens a new one.";
        let spec = RequestResponseSpec {
            sizes: Sizes::read_table(p, "websearch"),
            load: Load::read(p, 0.5, load_help),
            request_size: p.bytes("request_size", Bytes(100), "Size of a request."),
            clients: clients.unwrap_or_default(),
            servers: servers.unwrap_or_default(),
            connections: p.integer("connections", 3, (1, 10_000), connections_help) as u64,
            persistent: p.flag("persistent", true, persistent_help),
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
        if !window.bounded {
            return Err(WorkloadError::new("duration", "give a duration such as \"2ms\""));
        }
        let half = cx.hosts / 2;
        let clients = half_or(&self.clients, "clients", 0..half, cx)?;
        let servers = half_or(&self.servers, "servers", half..cx.hosts, cx)?;
        if let Some(client) = clients.iter().find(|client| servers.contains(client)) {
            return Err(WorkloadError::new("servers", format!("host {client} is a client, too")));
        }
        let sizes = self.sizes.resolve(cx)?;
        let bytes = self.load.bytes_per_flow(&sizes, cx);
        let rate = self.load.whole_rate(&servers, cx);
        let span = (window.end - window.start).0 as f64;
        let expected = 2.0 * span / mean_gap(bytes, rate);
        if expected > MAX_DEPENDENT_FLOWS as f64 {
            let message = format!(
                "about {expected:.0} flows that wait for each other exceed the limit of \
                 {MAX_DEPENDENT_FLOWS}"
            );
            return Err(WorkloadError::new("duration", message));
        }
        let client = |&host: &HostId| Client {
            host,
            gaps: cx.stream(&format!("host{host}.gaps")),
            choice: cx.stream(&format!("host{host}.servers")),
            sizes: cx.stream(&format!("host{host}.sizes")),
        };
        let mut source = RequestResponse {
            mean_gap: mean_gap(bytes, rate / clients.len() as f64),
            clients: clients.iter().map(client).collect(),
            terms: self.load.terms(servers.len(), "servers").without("requests"),
            is_server: Arc::new(servers.iter().copied().collect()),
            servers,
            connections: self.connections,
            persistent: self.persistent,
            sizes,
            request_size: self.request_size.0,
            next: BinaryHeap::new(),
            used: BTreeMap::new(),
            flow: cx.flow(),
            response: None,
            order: 0,
            end: window.end,
        };
        (0..source.clients.len() as u32).for_each(|client| source.schedule(client, window.start));
        Ok(Box::new(source))
    }
}

/// The hosts that a key names; by default those of `half`.
fn half_or(
    hosts: &str,
    key: &'static str,
    half: std::ops::Range<u32>,
    cx: &WorkloadContext,
) -> Result<Vec<HostId>, WorkloadError> {
    if hosts == "auto" && !half.is_empty() { Ok(half.collect()) } else { participants(hosts, key, 1, cx) }
}

#[derive(Debug, Clone)]
struct Client {
    host: HostId,
    gaps: RandomStream,
    choice: RandomStream,
    sizes: RandomStream,
}

/// Order of the flows: requests by time, each followed by its response.
#[derive(Clone)]
struct RequestResponse {
    clients: Vec<Client>,
    servers: Vec<HostId>,
    is_server: Arc<FxHashSet<HostId>>,
    connections: u64,
    persistent: bool,
    sizes: SizeDistribution,
    terms: LoadTerms,
    request_size: u64,
    /// Of a client, in picoseconds.
    mean_gap: f64,
    next: BinaryHeap<Reverse<(Time, u32)>>,
    /// By (client, server, connection): the orders of the first request and of the last response.
    used: BTreeMap<(u32, HostId, u64), (u32, Option<u32>)>,
    flow: FlowSpec,
    /// Response to the last request.
    response: Option<FlowSpec>,
    order: u32,
    end: Time,
}

impl RequestResponse {
    /// Schedules the client's next request one gap after `now`, if that is before the end.
    fn schedule(&mut self, client: u32, now: Time) {
        let gap = self.clients[client as usize].gaps.exponential(self.mean_gap) as u64;
        let at = now.saturating_add(Time(gap));
        if at < self.end {
            self.next.push(Reverse((at, client)));
        }
    }

    /// Returns the next flow, and the flow before it for which it waits.
    fn step(&mut self) -> Option<(FlowSpec, Option<u32>)> {
        if let Some(response) = self.response.take() {
            self.order += 1;
            return Some((response, Some(self.order - 2)));
        }
        let Reverse((start, place)) = self.next.pop()?;
        self.schedule(place, start);
        let client = &mut self.clients[place as usize];
        let server = self.servers[client.choice.below(self.servers.len() as u64) as usize];
        let connection = client.choice.below(self.connections);
        let used = self.used.entry((place, server, connection)).or_insert((self.order, None));
        let (first, before) = (used.0, used.1.replace(self.order + 1));
        let connection = |opener: u32| self.persistent.then_some(opener);
        let size = self.sizes.sample(&mut client.sizes);
        let response = FlowSpec {
            src: server,
            dst: client.host,
            size,
            start,
            waits_for: 1,
            connection: connection(first + 1),
            ..self.flow
        };
        let request = FlowSpec {
            src: client.host,
            dst: server,
            size: self.request_size,
            start,
            waits_for: u16::from(before.is_some()),
            connection: connection(first),
            ..self.flow
        };
        self.response = Some(response);
        self.order += 1;
        Some((request, before))
    }
}

impl FlowSource for RequestResponse {
    fn next(&mut self) -> Option<FlowSpec> {
        self.step().map(|(flow, _)| flow)
    }

    fn clone_box(&self) -> Box<dyn FlowSource> {
        Box::new(self.clone())
    }

    /// Requests count, too.
    fn asked(&self) -> Option<AskedLoad> {
        let arrivals = self.clients.len() as f64 * 1e12 / self.mean_gap;
        Some(AskedLoad::of(arrivals, self.request_size as f64, 1.0, &self.sizes, self.terms))
    }

    /// Of responses.
    fn mean_size(&self, flow: &FlowSpec) -> Option<f64> {
        self.sizes.mean_of_drawn().filter(|_| self.is_server.contains(&flow.src))
    }

    fn ends(&self) -> Ends {
        let clients = self.clients.iter().map(|client| client.host).collect();
        Ends { senders: clients, receivers: self.servers.clone(), drawn: [false; 2] }
    }

    fn dependencies(&self) -> Vec<(u32, u32)> {
        let mut source = self.clone();
        let mut all = Vec::new();
        while let Some((_, before)) = source.step() {
            all.extend(before.map(|before| (before, source.order - 1)));
        }
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
mod tests;
