//! Files of queries and of plans, from any text: refused with lines, or a plan that reads back as it was written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pint::plan::Plan;

fuzz_target!(|text: &str| {
    if let Ok(plan) = Plan::open(text, "queries.toml") {
        let again = Plan::read(&plan.to_toml(), "plan.toml").expect("a plan's own file");
        assert_eq!(again.version(), plan.version());
        plan.encoder().expect("a plan that switches can run");
    }
});
