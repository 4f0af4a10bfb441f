//! A switch port fed with one-packet flows at random times is an M/D/1 queue: mean wait rho S / (2 (1 - rho)).
//!
//! Every flow's wait is its completion time less its ideal one. It is held against the recursion of Lindley (1952) to
//! the picosecond, and its mean against the formula of Pollaczek and Khinchine.

use crate::common::*;
use weftline_sim::engine::random::RandomStream;
use weftline_sim::measure::{FlowRecord, Sample, Sink};
use weftline_sim::topology::TopologyParameters;
use weftline_sim::topology::star::Star;
use weftline_sim::units::{Rate, Time};
use weftline_sim::workload::{FlowSource, FlowSpec, Traffic};

const SENDERS: u32 = 64;
/// 1048 B at 10 Gb/s.
const SERVICE: Time = Time(838_400);

/// One-packet flows of random senders to the host after them, with exponential gaps.
#[derive(Clone)]
struct PoissonPackets {
    random: RandomStream,
    mean_gap: f64,
    clock: f64,
    left: u32,
}

impl FlowSource for PoissonPackets {
    fn next(&mut self) -> Option<FlowSpec> {
        self.left = self.left.checked_sub(1)?;
        self.clock += self.random.exponential(self.mean_gap);
        let src = self.random.below(u64::from(SENDERS)) as u32;
        Some(flow(src, SENDERS, 1000, Time(self.clock as u64)))
    }
    fn clone_box(&self) -> Box<dyn FlowSource> {
        Box::new(self.clone())
    }
}

/// (start, wait) of every flow.
#[derive(Default)]
struct Waits(Vec<(u32, Time, Time)>);

impl Sink for Waits {
    fn flows(&mut self, batch: &[FlowRecord]) -> std::io::Result<()> {
        self.0.extend(batch.iter().map(|f| (f.flow, f.start, f.finish.expect("an end") - f.start - f.ideal)));
        Ok(())
    }
    fn samples(&mut self, _batch: &[Sample]) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs the queue at this load; the flows come back by id.
fn waits(load: f64, flows: u32) -> Vec<(u32, Time, Time)> {
    // Senders are so fast that they add no wait worth mentioning: 64 of them at a thousand times the rate.
    let fast = link(Rate::from_gbps(10_000), Time::from_us(1));
    let mut topology = Star { hosts: u64::from(SENDERS) + 1, host_link: fast }.build().unwrap();
    topology.links[SENDERS as usize].rate = Rate::from_gbps(10);
    let mut config = normal("none", topology, vec![]);
    config.switch.ecn.clear();
    config.switch.pfc.enabled = false;
    let random = RandomStream::new(1, "queueing");
    let source = PoissonPackets { random, mean_gap: SERVICE.0 as f64 / load, clock: 0.0, left: flows };
    config.traffic = Traffic { sources: vec![Box::new(source)], groups: vec!["all".into()] };
    let mut kept = Waits::default();
    weftline_sim::run(config, &mut kept, &mut |_| true).expect("a valid run");
    assert_eq!(kept.0.len(), flows as usize);
    kept.0.sort_unstable_by_key(|wait| wait.0);
    kept.0
}

/// Every wait is what the recursion makes of the arrivals: W' = max(0, W + S - gap).
///
/// Two packets of one sender may start within the 0.84 ns that its link takes; then the second waits there, and as much
/// less at the switch. Acknowledgements never wait: they are shorter than packets.
fn assert_lindley(waits: &[(u32, Time, Time)]) {
    let mut free = Time::ZERO;
    for &(id, start, wait) in waits {
        let expected = free.saturating_sub(start);
        assert_eq!(wait, expected, "flow {id}");
        free = start + expected + SERVICE;
    }
}

/// Estimate of the mean wait over its theoretical value, and its standard error over batches.
///
/// The wait W of a packet is independent of the gap G that follows it, so W (G - mean gap) has mean zero; but it takes
/// with it most of the chance that the plain average has.
fn relative_mean(waits: &[(u32, Time, Time)], load: f64) -> (f64, f64) {
    const BATCHES: usize = 40;
    let service = SERVICE.0 as f64;
    let mean_gap = service / load;
    let theory = load * service / (2.0 * (1.0 - load));
    let estimates: Vec<f64> = waits
        .windows(2)
        .map(|pair| {
            let (wait, gap) = (pair[0].2.0 as f64, (pair[1].1 - pair[0].1).0 as f64);
            (wait + wait * (gap - mean_gap) / (mean_gap - service)) / theory
        })
        .collect();
    let batch = estimates.len() / BATCHES;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let means: Vec<f64> = estimates.chunks_exact(batch).map(mean).collect();
    let all = mean(&means);
    let variance = means.iter().map(|m| (m - all) * (m - all)).sum::<f64>() / (BATCHES - 1) as f64;
    (all, (variance / BATCHES as f64).sqrt())
}

fn queue_at(load: f64, flows: u32) {
    let waits = waits(load, flows);
    assert_lindley(&waits);
    let theory = load * SERVICE.0 as f64 / (2.0 * (1.0 - load));
    let plain = waits.iter().map(|w| w.2.0 as f64).sum::<f64>() / waits.len() as f64 / theory;
    let (mean, error) = relative_mean(&waits, load);
    println!(
        "load {load}: mean wait {plain:.4} of theory; {mean:.4} +- {error:.4} without the chance of gaps"
    );
    assert!(error < 0.007, "{error}");
    assert!((mean - 1.0).abs() < 0.02 && (plain - 1.0).abs() < 0.02, "{mean}, {plain} of theory");
}

#[test]
fn mean_wait_is_that_of_md1_at_load_0_3() {
    queue_at(0.3, 300_000);
}

#[test]
fn mean_wait_is_that_of_md1_at_load_0_6() {
    queue_at(0.6, 500_000);
}

#[test]
fn mean_wait_is_that_of_md1_at_load_0_9() {
    queue_at(0.9, 2_000_000);
}
