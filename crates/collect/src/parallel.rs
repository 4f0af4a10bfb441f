//! A collector of captures with a thread for each shard: the caller reads and parses, shards keep flows and
//! decode digests. The findings are those of one shard, whatever their number, if no limit of memory
//! is reached; limits hold for each shard with its part of the memory.

use std::thread::JoinHandle;

use serde_json::Value;

use crate::capture::Packet;
use crate::collector::HOP_SHARE;
use crate::flows::FlowCounts;
use crate::intake::Intake;
use crate::packet::Markers;
use crate::pint::Decoder;
use crate::shards::{self, Router};
use crate::tables::Tables;
use crate::written;

/// Takes the packets of captures.
pub struct ParallelCollector {
    intake: Intake,
    router: Router,
    threads: Vec<JoinHandle<Tables>>,
}

impl ParallelCollector {
    /// Starts the shards. Error: a thread cannot be started, or switches cannot run the plan.
    pub fn start(
        markers: Markers,
        limit_bytes: usize,
        shards: usize,
        decoder: Option<&Decoder>,
    ) -> Result<ParallelCollector, String> {
        let hops = limit_bytes / HOP_SHARE;
        let counts = FlowCounts::default();
        let (router, threads) = shards::start(shards, limit_bytes - hops, 0, true, decoder, &[], counts)?;
        Ok(ParallelCollector { intake: Intake::new(markers, hops), router, threads })
    }

    /// Tells of which point of observation the captures are whose packets follow.
    pub fn set_point(&mut self, point: u16) {
        self.intake.set_point(point);
    }

    /// Takes a packet of a capture.
    pub fn take(&mut self, packet: &Packet) {
        self.intake.take(packet, &mut self.router);
    }

    /// All findings: summary, paths, hops, events, sources, and those of PINT.
    pub fn finish(mut self) -> Result<Value, String> {
        self.router.flush();
        // The threads end with the last sender to them.
        drop(self.router);
        let (mut tables, mut decodings) = (Vec::new(), Vec::new());
        for thread in self.threads {
            let shard = thread.join().map_err(|_| {
                "a shard ended early: this is a defect of weftline, please report it".to_owned()
            })?;
            tables.push(shard.flows);
            decodings.extend(shard.pint);
        }
        Ok(written::found(&self.intake, &tables, decodings))
    }
}
