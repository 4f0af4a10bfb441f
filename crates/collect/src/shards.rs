//! Flows over threads: one thread parses, and each flow's findings go to the thread that its hash names.
//!
//! A flow lives in one shard, so the findings are those of one thread, whatever the number of shards.
//! Findings travel in batches through bounded channels. A capture waits for room in them. What arrives from a
//! network cannot wait: without room, findings gather to a whole batch, and a whole batch is shed, and counted.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use pint::recorded::Recorded;

use crate::checkpoint::SavedFlow;
use crate::flows::{FlowCounts, Point};
use crate::intake::Sink;
use crate::ip::{FlowKey, Ip};
use crate::key::Key;
use crate::packet::Digest;
use crate::pint::{Decoder, UselessDigest, recorded};
use crate::tables::Tables;

/// How findings travel.
#[derive(Debug, Clone, Copy)]
struct Travel {
    /// Lanes to each shard. Flows of one lane go together: what a shard keeps of a few flows stays in the cache of its
    /// core while it takes in a batch of theirs.
    lanes: usize,
    /// Findings in a batch.
    batch: usize,
    /// Batches that wait for a shard at most.
    queue: usize,
}

/// A capture waits, so the queue is short.
const OF_CAPTURES: Travel = Travel { lanes: 32, batch: 1_024, queue: 4 };
/// What arrives from a network cannot wait, so the queue is for a moment's delay.
const OF_NETWORKS: Travel = Travel { lanes: 1, batch: 256, queue: 128 };

/// A path in a batch.
struct Seen {
    key: Key,
    hash: u64,
    time_ns: u64,
    /// Where its nodes end in the batch.
    end: u32,
}

#[derive(Default)]
struct Batch {
    paths: Vec<Seen>,
    nodes: Vec<u64>,
    digests: Vec<Recorded>,
}

/// What is done on the thread of a shard.
type Task = Box<dyn FnOnce(&mut Tables) + Send>;

enum Message {
    Batch(Batch),
    Task(Task),
}

/// Hands findings to shards.
pub struct Router {
    seed: u64,
    travel: Travel,
    /// Of each lane; those of one shard stand side by side.
    batches: Vec<Batch>,
    senders: Vec<SyncSender<Message>>,
    waits: bool,
    shed: u64,
    /// Version of the plan, and whether shards may divide its flows.
    pint: Option<(u32, bool)>,
}

/// Reaches shards from other threads.
#[derive(Clone)]
pub struct Handle {
    senders: Vec<SyncSender<Message>>,
}

/// Starts the threads. `limit_bytes` is that of all shards; `waits`: whether the router waits for them.
/// Error: a thread cannot be started, or switches cannot run the plan.
pub fn start(
    shards: usize,
    limit_bytes: usize,
    seed: u64,
    waits: bool,
    decoder: Option<&Decoder>,
    saved: &[SavedFlow],
    counts: FlowCounts,
) -> Result<(Router, Vec<JoinHandle<Tables>>), String> {
    let shards = shards.max(1);
    let travel = if waits { OF_CAPTURES } else { OF_NETWORKS };
    let (mut senders, mut threads) = (Vec::new(), Vec::new());
    for number in 0..shards {
        let (sender, receiver) = sync_channel(travel.queue);
        let mut tables = Tables::new(limit_bytes / shards, seed, decoder)?;
        if number == 0 {
            tables.flows.restore_counts(counts);
        }
        for flow in saved.iter().filter(|flow| shard_of(flow.hash(seed), shards) == number) {
            flow.restore_to(&mut tables.flows);
        }
        let name = format!("shard {number}");
        let thread = thread::Builder::new().name(name).spawn(move || run(tables, &receiver));
        threads.push(thread.map_err(|error| format!("a thread cannot be started: {error}"))?);
        senders.push(sender);
    }
    let batches = (0..shards * travel.lanes).map(|_| Batch::default()).collect();
    let pint = decoder.map(|decoder| (decoder.plan.version(), decoder.divides()));
    Ok((Router { seed, travel, batches, senders, waits, shed: 0, pint }, threads))
}

/// By the upper bits of a hash: the table of a shard takes the lower ones.
fn shard_of(hash: u64, shards: usize) -> usize {
    (((hash >> 32) * shards as u64) >> 32) as usize
}

fn run(mut tables: Tables, receiver: &Receiver<Message>) -> Tables {
    while let Ok(message) = receiver.recv() {
        match message {
            Message::Batch(batch) => {
                let mut start = 0;
                for seen in &batch.paths {
                    let nodes = &batch.nodes[start..seen.end as usize];
                    tables.flows.observe_key(seen.key, seen.hash, seen.time_ns, nodes);
                    start = seen.end as usize;
                }
                batch.digests.iter().for_each(|row| tables.take_digest(row));
            }
            Message::Task(task) => task(&mut tables),
        }
    }
    tables
}

impl Router {
    pub fn handle(&self) -> Handle {
        Handle { senders: self.senders.clone() }
    }

    /// Hands on what was gathered. What finds no room stays until the next call.
    pub fn flush(&mut self) {
        (0..self.batches.len()).for_each(|lane| self.send(lane, self.waits));
    }

    /// Hands on everything that was gathered; waits for room.
    pub fn flush_all(&mut self) {
        (0..self.batches.len()).for_each(|lane| self.send(lane, true));
    }

    /// Findings that were shed since the last call.
    pub fn take_shed(&mut self) -> u64 {
        std::mem::take(&mut self.shed)
    }

    /// The lane of all flows between two addresses.
    fn lane_of_ends(&self, ip: &Ip) -> usize {
        let ends = FlowKey { source_port: 0, destination_port: 0, protocol: 0, vni: None, ..ip.own_flow() };
        shard_of(Key::new(&ends, Point::Node(0)).hash(self.seed), self.batches.len())
    }

    fn send(&mut self, lane: usize, waits: bool) {
        let batch = std::mem::take(&mut self.batches[lane]);
        if batch.paths.is_empty() && batch.digests.is_empty() {
            return;
        }
        let sender = &self.senders[lane / self.travel.lanes];
        if waits {
            // The receiver exists until its thread ends, which ends after this sender.
            let _ = sender.send(Message::Batch(batch));
        } else if let Err(TrySendError::Full(Message::Batch(batch))) = sender.try_send(Message::Batch(batch))
        {
            let (paths, digests) = (batch.paths.len(), batch.digests.len());
            if paths.max(digests) < self.travel.batch {
                self.batches[lane] = batch;
            } else {
                self.shed += (paths + digests) as u64;
            }
        }
    }
}

impl Sink for Router {
    fn path(&mut self, flow: &FlowKey, point: Point, time_ns: u64, nodes: &[u64]) {
        let key = Key::new(flow, point);
        let hash = key.hash(self.seed);
        let lane = shard_of(hash, self.batches.len());
        let batch = &mut self.batches[lane];
        if batch.paths.is_empty() {
            batch.paths.reserve_exact(self.travel.batch);
            batch.nodes.reserve_exact(self.travel.batch * nodes.len());
        }
        batch.nodes.extend(nodes);
        batch.paths.push(Seen { key, hash, time_ns, end: batch.nodes.len() as u32 });
        if batch.paths.len() >= self.travel.batch {
            self.send(lane, self.waits);
        }
    }

    fn digest(&mut self, ip: &Ip, digest: &Digest, point: Point, time_ns: u64) -> Result<(), UselessDigest> {
        let Some((version, divides)) = self.pint else { return Ok(()) };
        let row = recorded(ip, digest, version, point, time_ns)?;
        let lane = if divides && self.batches.len() > 1 { self.lane_of_ends(ip) } else { 0 };
        let batch = &mut self.batches[lane];
        if batch.digests.is_empty() {
            batch.digests.reserve_exact(self.travel.batch);
        }
        batch.digests.push(row);
        if batch.digests.len() >= self.travel.batch {
            self.send(lane, self.waits);
        }
        Ok(())
    }
}

impl Handle {
    /// Does the same on every shard, after what was handed to it before; returns the results in the order of
    /// the shards. A shard that has ended gives none.
    pub fn ask<T: Send + 'static>(&self, task: impl Fn(&mut Tables) -> T + Clone + Send + 'static) -> Vec<T> {
        let answers = self.begin(move |_, tables| task(tables));
        answers.into_iter().filter_map(|answer| answer.recv().ok()).collect()
    }

    /// The same without waiting; the task also gets the number of the shard.
    pub fn begin<T: Send + 'static>(
        &self,
        task: impl Fn(usize, &mut Tables) -> T + Clone + Send + 'static,
    ) -> Vec<Receiver<T>> {
        let one = |(number, sender): (usize, &SyncSender<Message>)| {
            let (answer, answers) = sync_channel(1);
            let task = task.clone();
            // The request was given up: the answer is dropped.
            let run: Task = Box::new(move |tables| drop(answer.send(task(number, tables))));
            sender.send(Message::Task(run)).ok().map(|()| answers)
        };
        self.senders.iter().enumerate().filter_map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shard that stands still for a moment costs nothing while its queue and a batch have room, also where each
    /// finding came alone; what does not fit is counted.
    #[test]
    fn a_slow_shard_sheds_whole_batches_only() {
        let (mut router, threads) = start(1, 1 << 20, 1, false, None, &[], FlowCounts::default()).unwrap();
        let handle = router.handle();
        let observe = |router: &mut Router, count: usize| {
            for n in 0..count {
                let [source, destination] = [1, 2].map(|host| std::net::Ipv4Addr::new(10, 0, 0, host).into());
                let source_port = n as u16 % 7;
                let flow = FlowKey {
                    source,
                    destination,
                    source_port,
                    destination_port: 9,
                    protocol: 17,
                    vni: None,
                    namespace: None,
                };
                router.path(&flow, Point::Node(3), n as u64, &[1, 2, 3]);
                router.flush();
            }
        };
        let (gate, gates) = sync_channel::<()>(0);
        let gates = std::sync::Arc::new(std::sync::Mutex::new(gates));
        let (stands, standing) = sync_channel(1);
        let waits = handle.begin(move |_, _| {
            stands.send(()).unwrap();
            gates.lock().unwrap().recv().unwrap();
        });
        standing.recv().unwrap();
        let room = OF_NETWORKS.queue + OF_NETWORKS.batch - 1;
        observe(&mut router, room);
        assert_eq!(router.take_shed(), 0);
        observe(&mut router, 1);
        assert_eq!(router.take_shed(), OF_NETWORKS.batch as u64);
        observe(&mut router, 10);
        assert_eq!(router.take_shed(), 0);
        gate.send(()).unwrap();
        router.flush_all();
        let found = handle.ask(|tables| tables.flows.each().map(|(.., state)| state.packets).sum::<u64>());
        assert_eq!(found, [(OF_NETWORKS.queue + 10) as u64]);
        drop((waits, router, handle));
        threads.into_iter().for_each(|thread| drop(thread.join().unwrap()));
    }
}
