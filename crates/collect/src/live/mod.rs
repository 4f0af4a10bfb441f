//! A collector that runs: inputs from the network, findings while it runs and at its end.
//!
//! Threads: one reads and parses, each shard keeps its flows, one closes intervals and writes files, and each
//! exporter has its own with a queue of two snapshots, so that a dead exporter costs neither input nor the
//! others anything.

pub mod admission;
pub mod anomaly;
pub mod config;
mod files;
mod http;
pub mod otlp;
pub mod prometheus;
pub mod reader;
pub mod ring;
pub mod snapshot;
mod ticker;
pub mod udp;

use std::collections::{BTreeMap, VecDeque};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use serde_json::{Value, json};

use crate::checkpoint::{Manifest, check_place};
use crate::collector::HOP_SHARE;
use crate::flows::FlowTable;
use crate::intake::Intake;
use crate::pint::{self, Decoder, Decoding};
use crate::shards::{self, Handle};
use crate::tables::Tables;
use crate::written;
use admission::Admission;
use config::{Config, Network};
use otlp::Target;
use reader::{Input, InputCounts, Reader, Task, now_ns};
use ring::RingInput;
use snapshot::{ExporterCounts, Snapshot};
use udp::UdpInput;

/// Events that are kept for queries and for the findings.
const MAX_EVENTS: usize = 10_000;
const EXPORT_QUEUE: usize = 2;

/// What the threads share.
#[derive(Default)]
pub struct Shared {
    latest: Mutex<Arc<Snapshot>>,
    /// With their numbers.
    events: Mutex<VecDeque<(u64, Value)>>,
    exporters: Mutex<BTreeMap<&'static str, ExporterCounts>>,
    /// What could not be written to files, the last time.
    problem: Mutex<Option<String>>,
    next_event: AtomicU64,
    /// Of these numbers, those of other collectors that wrote to the same folder.
    events_of_others: AtomicU64,
    stop: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a thread left when it panicked is still a whole value.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Events of this collector.
    fn events(&self) -> u64 {
        self.next_event.load(Ordering::Acquire) - self.events_of_others.load(Ordering::Acquire)
    }

    fn stops(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn latest(&self) -> Arc<Snapshot> {
        Arc::clone(&lock(&self.latest))
    }

    /// Numbers an event and keeps it.
    fn add_event(&self, mut event: Value) -> Value {
        let number = self.next_event.fetch_add(1, Ordering::AcqRel) + 1;
        event["event"] = number.into();
        let mut events = lock(&self.events);
        if events.len() >= MAX_EVENTS {
            events.pop_front();
        }
        events.push_back((number, event.clone()));
        event
    }

    fn events_since(&self, since: u64) -> Vec<Value> {
        lock(&self.events)
            .iter()
            .filter(|(number, _)| *number > since)
            .map(|(_, event)| event.clone())
            .collect()
    }

    fn health(&self) -> Value {
        let latest = self.latest();
        let inputs: Vec<Value> = latest.inputs.iter().map(InputCounts::to_json).collect();
        json!({
            "status": "running", "interval": latest.interval, "time_ns": latest.time_ns, "inputs": inputs,
            "flows": latest.flows, "memory_bytes": latest.memory_bytes,
            "adds_up": latest.counts.adds_up(), "problem": self.problem(&latest.inputs),
        })
    }

    /// What is wrong now: with files, else with an input.
    fn problem(&self, inputs: &[InputCounts]) -> Option<String> {
        let absent = |input: &&InputCounts| input.absent;
        let of_input = |input: &InputCounts| {
            format!(
                "interface: {}: there is none of this name any more; it is read again once it is back",
                input.name
            )
        };
        lock(&self.problem).clone().or_else(|| inputs.iter().find(absent).map(of_input))
    }

    fn exported(&self, name: &'static str, change: impl FnOnce(&mut ExporterCounts)) {
        change(lock(&self.exporters).entry(name).or_default());
    }
}

/// A running collector.
pub struct Live {
    shared: Arc<Shared>,
    handle: Handle,
    /// Closed to stop the reader.
    tasks: Option<Sender<Task>>,
    reader: JoinHandle<Reader>,
    ticker: JoinHandle<()>,
    http: Option<SocketAddr>,
    inputs: Vec<String>,
    /// Packets that were taken before the checkpoint from which it continued.
    packets_before: u64,
}

impl Live {
    /// Opens all inputs and outputs and begins. Error: what is wrong, with the option it belongs to.
    pub fn start(config: Config, decoder: Option<&Decoder>) -> Result<Live, String> {
        config.checkpoint.as_deref().map_or(Ok(()), check_place)?;
        let inputs = open_inputs(&config)?;
        if !(0.1..=3_600.0).contains(&config.interval_s) {
            return Err(format!("interval_s: expected 0.1 to 3600, found {}", config.interval_s));
        }
        if config.checkpoint.is_some() && config.interval_s > 10.0 {
            return Err(format!(
                "interval_s: at most 10 with a checkpoint, which is written at the end of each interval; found {}",
                config.interval_s
            ));
        }
        if !(1..=64).contains(&config.shards) {
            return Err(format!("shards: expected 1 to 64, found {}", config.shards));
        }
        let listener = config.prometheus.as_deref().map(bind_http).transpose()?;
        let target = config.otlp.as_deref().map(Target::parse).transpose()?;
        let networks = config.allow.iter().map(|text| Network::parse(text)).collect::<Result<_, _>>()?;
        // Who sends flows cannot know which of them collide.
        let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), now_ns());
        let hop_bytes = config.memory_bytes / HOP_SHARE;
        let no_thread = |error: std::io::Error| format!("a thread cannot be started: {error}");
        let saved = config.checkpoint.as_deref().map(Manifest::read).transpose()?.flatten();
        let (manifest, flows) = saved.unzip();
        let (router, _) = shards::start(
            config.shards,
            config.memory_bytes - hop_bytes,
            seed,
            false,
            decoder,
            flows.as_deref().unwrap_or_default(),
            manifest.as_ref().map(|manifest| manifest.counts).unwrap_or_default(),
        )?;
        drop(flows);
        let handle = router.handle();
        let mut intake = Intake::new(config.markers(), hop_bytes);
        if let Some(manifest) = &manifest {
            intake.restore(manifest.intake.clone());
        }
        let packets_before = intake.counts().packets;
        let reader = Reader::new(intake, Admission::new(networks), router, inputs);
        let names = reader.counts.iter().map(|input| input.name.clone()).collect();
        let shared = Arc::new(Shared::default());
        let ticker = ticker::Ticker::new(&config, Arc::clone(&shared), handle.clone(), manifest.as_ref())?;
        let (tasks, receiver) = channel();
        let reader = thread::Builder::new()
            .name("reader".into())
            .spawn(move || reader.run(&receiver))
            .map_err(no_thread)?;
        let http = listener.as_ref().and_then(|listener| listener.local_addr().ok());
        if let Some(listener) = listener {
            let (shared, handle) = (Arc::clone(&shared), handle.clone());
            let serve = move || http::serve(listener, shared, handle);
            thread::Builder::new().name("http".into()).spawn(serve).map_err(no_thread)?;
        }
        let exporter = target.map(|target| start_otlp(target, &shared)).transpose().map_err(no_thread)?;
        let asks = tasks.clone();
        let ticker = thread::Builder::new()
            .name("intervals".into())
            .spawn(move || ticker.run(&asks, exporter.as_ref()))
            .map_err(no_thread)?;
        Ok(Live { shared, handle, tasks: Some(tasks), reader, ticker, http, inputs: names, packets_before })
    }

    /// Where HTTP listens, if it does.
    pub fn http(&self) -> Option<SocketAddr> {
        self.http
    }

    /// The inputs by name: `udp:ADDRESS:PORT` or an interface.
    pub fn inputs(&self) -> &[String] {
        &self.inputs
    }

    /// The state now: packets, flows, losses, memory.
    pub fn status(&self) -> Value {
        let Some(tasks) = &self.tasks else { return Value::Null };
        let Some((counts, inputs)) = ask(tasks, |reader| (reader.intake.counts(), reader.counts.clone()))
        else {
            return Value::Null;
        };
        let flows = self.handle.ask(|shard| (shard.flows.len(), shard.bytes(), shard.flows.counts()));
        let counts = flows.iter().fold(counts, |counts, (.., of_flows)| counts.with(of_flows));
        let exporters = lock(&self.shared.exporters);
        json!({
            "packets": counts.packets,
            "with_telemetry": counts.with_telemetry,
            "malformed": counts.malformed_packets + counts.unreadable,
            "kernel_dropped": inputs.iter().map(|input| input.dropped).sum::<u64>(),
            "shed": counts.shed,
            "refused": counts.flows_refused,
            "flows": flows.iter().map(|(flows, ..)| flows).sum::<usize>(),
            "memory_bytes": flows.iter().map(|(_, bytes, _)| bytes).sum::<usize>(),
            "events": self.shared.events(),
            "exports_failed": exporters.values().map(|exporter| exporter.failed).sum::<u64>(),
            "problem": self.shared.problem(&inputs),
        })
    }

    /// Stops the inputs, takes what the kernel still holds, and returns all findings: summary, paths, hops,
    /// events, sources.
    pub fn finish(mut self) -> Result<Value, String> {
        let ended =
            |what: &str| format!("{what} ended early: this is a defect of weftline, please report it");
        if let Some(tasks) = &self.tasks {
            ask(tasks, Reader::close);
        }
        // The last interval holds all that was taken.
        self.shared.stop.store(true, Ordering::Release);
        self.ticker.thread().unpark();
        self.ticker.join().map_err(|_| ended("the thread of intervals"))?;
        self.tasks = None;
        let reader = self.reader.join().map_err(|_| ended("the reader"))?;
        let Reader { intake, admission, router, counts: inputs, .. } = reader;
        // The threads of the shards end with the last sender to them.
        let empty = || Tables { flows: FlowTable::new(0, 0), pint: None };
        let shards = self.handle.ask(move |shard| std::mem::replace(shard, empty()));
        drop((router, self.handle));
        if let Some(address) = self.http {
            // Wakes the thread that accepts, which then sees that it is to stop.
            drop(TcpStream::connect(address));
        }
        let (tables, mut decodings): (Vec<_>, Vec<_>) =
            shards.into_iter().map(|shard| (shard.flows, shard.pint)).unzip();
        for (_, event) in decodings.iter_mut().flatten().flat_map(Decoding::take_events) {
            self.shared.add_event(event);
        }
        for table in &tables {
            for change in table.changes() {
                self.shared.add_event(written::event_row(table, change));
            }
        }
        let mut summary = written::summary(&intake, &tables);
        summary["inputs"] = inputs.iter().map(InputCounts::to_json).collect();
        let source = |(address, source): (Option<std::net::IpAddr>, admission::Source)| {
            json!({
                "source": address, "datagrams": source.datagrams, "malformed": source.malformed,
                "muted": source.muted,
            })
        };
        summary["exporters"] = admission.counts().map(source).collect();
        summary["not_allowed"] = admission.not_allowed.into();
        summary["captures"] = json!([]);
        summary["problem"] = json!(self.shared.problem(&inputs));
        let exports = lock(&self.shared.exporters).clone();
        let export = |(name, counts): (&'static str, ExporterCounts)| json!({"name": name, "sent": counts.sent, "failed": counts.failed, "skipped": counts.skipped});
        summary["exports"] = exports.into_iter().map(export).collect();
        summary["events"] = self.shared.events().into();
        summary["packets_before"] = self.packets_before.into();
        let decodings: Vec<Decoding> = decodings.into_iter().flatten().collect();
        pint::add_to(&mut summary, &decodings, intake.digests());
        Ok(json!({
            "pint": pint::rows(&decodings),
            "summary": summary,
            "paths": written::path_rows(&tables),
            "hops": written::hop_rows(intake.hops()),
            "events": self.shared.events_since(0),
            "sources": written::source_rows(intake.sources()),
        }))
    }
}

/// Does something on the thread of the reader and returns its result; None if the reader has ended.
fn ask<T: Send + 'static>(
    tasks: &Sender<Task>,
    task: impl FnOnce(&mut Reader) -> T + Send + 'static,
) -> Option<T> {
    let (answer, answers) = sync_channel(1);
    tasks.send(Box::new(move |reader| drop(answer.send(task(reader))))).ok()?;
    answers.recv().ok()
}

fn open_inputs(config: &Config) -> Result<Vec<Input>, String> {
    let mut inputs = Vec::new();
    for text in &config.listen {
        let addresses = config::listen_addresses(text)?;
        let both = addresses.len() > 1;
        for address in addresses {
            if !address.ip().is_loopback() && config.allow.is_empty() {
                return Err(format!(
                    "listen: {text} can be reached by other machines: name those that may send, \
                     such as --allow 10.0.0.0/8"
                ));
            }
            match UdpInput::bind(address) {
                Ok(input) => inputs.push(Input::Udp(input)),
                // A machine without IPv6.
                Err(error)
                    if both && address.is_ipv6() && error.raw_os_error() == Some(libc::EADDRNOTAVAIL) => {}
                Err(error) => return Err(format!("listen: {text}: {address}: {error}")),
            }
        }
    }
    for (number, name) in config.interface.iter().enumerate() {
        if config.interface[number + 1..].contains(name) {
            return Err(format!("interface: {name}: is named twice, so that its packets would count twice"));
        }
        let input = RingInput::open(name).map_err(|error| match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                format!("interface: {name}: reading an interface needs CAP_NET_RAW (run as root, or setcap)")
            }
            _ => format!("interface: {name}: {error}"),
        })?;
        inputs.push(Input::Ring(input));
    }
    if inputs.is_empty() {
        return Err("expected at least one input: listen or interface".into());
    }
    Ok(inputs)
}

fn bind_http(text: &str) -> Result<TcpListener, String> {
    let address = config::http_address(text)?;
    TcpListener::bind(address).map_err(|error| format!("prometheus: {address}: {error}"))
}

/// Starts the thread that posts snapshots; returns its queue.
fn start_otlp(target: Target, shared: &Arc<Shared>) -> std::io::Result<SyncSender<Arc<Snapshot>>> {
    let (queue, snapshots) = sync_channel::<Arc<Snapshot>>(EXPORT_QUEUE);
    let shared = Arc::clone(shared);
    thread::Builder::new().name("otlp".into()).spawn(move || {
        for snapshot in snapshots {
            let sent = target.send(&snapshot);
            shared.exported("otlp", |counts| match sent {
                Ok(()) => counts.sent += 1,
                Err(_) => counts.failed += 1,
            });
        }
    })?;
    Ok(queue)
}
