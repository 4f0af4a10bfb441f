//! The collector's count of its own memory, held against the allocator's.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use pint::collector::{Collector, Event, FlowReport, Limits, NoPaths, Sink};
use pint::plan::{self, Plan};
use pint::recorded::{Flow, Recorded};

struct Counting;

thread_local! {
    /// Of this thread alone: that which runs the tests allocates meanwhile.
    static IN_USE: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: passes every request on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.set(IN_USE.get().wrapping_add(layout.size()));
        // SAFETY: as this function requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        IN_USE.set(IN_USE.get().wrapping_sub(layout.size()));
        // SAFETY: as this function requires.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Nowhere;

impl Sink for Nowhere {
    fn event(&mut self, _: Event) {}

    fn ended(&mut self, _: FlowReport) {}

    fn wants_reports(&self) -> bool {
        false
    }
}

const QUERIES: &str = r#"
bits = 16
hops = { expected = 5, maximal = 20 }

[[query]]
name = "latency"
value = "hop-latency"
aggregation = "quantiles"
quantiles = [0.5]
bits = 8
space = 300

[[query]]
name = "ports"
value = "egress-port"
aggregation = "frequent"
share = 0.1
approximation = "exact"
bits = 8
flow = "source-destination"
"#;

#[test]
fn the_memory_of_all_flows_stays_within_the_limit_as_the_allocator_sees_it() {
    let plan = Plan::new(plan::read(QUERIES, "queries.toml").unwrap()).unwrap();
    let version = plan.version();
    let limit = 2 << 20;
    let before = IN_USE.get();
    let mut collector = Collector::new(&plan, Limits { bytes: limit, ..Limits::default() }, NoPaths).unwrap();
    let empty = IN_USE.get() - before;
    let mut max = 0;
    for packet in 0..400_000u64 {
        // Many small flows, then few large ones, then many again.
        let flows = if (100_000..300_000).contains(&packet) { 50 } else { 40_000 };
        let word = pint::hash::mix(packet);
        let (flow, hops) = (Flow { id: Some(word % flows), ..Flow::default() }, 1 + (word >> 40) as u32 % 20);
        let row = Recorded {
            time_ns: packet,
            flow,
            packet,
            digest: word >> 48,
            hops,
            plan_version: version,
            ..Recorded::default()
        };
        collector.take(&row, &mut Nowhere).unwrap();
        if packet % 1_000 == 0 {
            let used = IN_USE.get().wrapping_sub(before + empty);
            assert!(
                used <= limit + limit / 20,
                "packet {packet}: {used} bytes in use, {} counted",
                collector.bytes()
            );
            max = max.max(used);
        }
    }
    assert!(collector.counts().evicted > 10_000);
    // And it is used: the count is not far above the truth.
    assert!(max >= limit / 2, "{max}");
}
