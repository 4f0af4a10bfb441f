//! Small scenarios from arbitrary text, as for the target `scenario`, run for a moment: whatever loads must run or say why
//! not, and its accounts must balance.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use weftline_sim::measure::{FlowRecord, Sample, Sink};
use weftline_sim::scenario::{Hooks, Scenario};

#[path = "bounds.rs"]
mod bounds;

/// Takes records and keeps none.
struct Nowhere;

impl Sink for Nowhere {
    fn flows(&mut self, _batch: &[FlowRecord]) -> std::io::Result<()> {
        Ok(())
    }
    fn samples(&mut self, _batch: &[Sample]) -> std::io::Result<()> {
        Ok(())
    }
}

fuzz_target!(|input: &str| {
    let Some((sets, text)) = bounds::read(input) else { return };
    let loaded =
        Scenario::load(text, "fuzz.toml", Path::new("/nonexistent"), &sets, None, Hooks::default());
    let Ok(scenario) = loaded else { return };
    let config = scenario.config().expect("what was loaded can be built");
    if !bounds::is_small(&config.traffic) {
        return;
    }
    // Watched for the first time after a tenth of a second, and then it is enough.
    let _ = weftline_sim::run(config, &mut Nowhere, &mut |_| false);
});
