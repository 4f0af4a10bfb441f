//! Recorded digests and what hops saw, from any bytes, and all of it through a collector: no panic, bounded memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pint::collector::{Collector, Event, FlowReport, Limits, MIN_BYTES, NoPaths, Sink};
use pint::observed::Walks;
use pint::plan::{self, Plan};
use pint::recorded::{CsvReader, Recorded};

/// Looks at everything, keeps nothing.
struct Reader<'a>(&'a Plan);

impl Sink for Reader<'_> {
    fn event(&mut self, event: Event) {
        event.to_json(self.0);
    }

    fn ended(&mut self, report: FlowReport) {
        report.to_json(self.0);
    }
}

fuzz_target!(|bytes: &[u8]| {
    let queries = plan::read(include_str!("../corpus/digests/queries.toml"), "queries.toml").unwrap();
    let plan = Plan::new(queries).unwrap();
    if let Ok(walks) = Walks::new(&plan, bytes, "seen.csv") {
        walks.for_each(drop);
    }
    let limits = Limits { bytes: MIN_BYTES, idle_ns: Some(1_000), ..Limits::default() };
    let mut collector = Collector::new(&plan, limits, NoPaths).unwrap();
    let mut sink = Reader(&plan);
    let Ok(rows) = CsvReader::new(bytes, "digests.csv") else { return };
    for row in rows.map_while(Result::ok) {
        let _ = collector.take(&row, &mut sink);
        // As if the switches ran this plan, so that the digest gets further.
        let likely = Recorded { plan_version: plan.version(), digest: row.digest & 0xffff_ffff, ..row };
        let _ = collector.take(&likely, &mut sink);
        assert!(collector.bytes() <= MIN_BYTES);
    }
    collector.finish(&mut sink);
});
