//! Warnings of hosts that failures cut off: of those that workloads use.

use super::*;

#[test]
fn a_host_that_no_workload_uses_may_be_cut_off() {
    let found = |workload: &str, host: u32| -> usize {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 6\n[[workload]]\n{workload}\n[[failures.event]]\nat = \"1ms\"\n\
             link = [\"host{host}\", \"s0\"]\n"
        );
        load(&text).warnings.iter().filter(|text| text.contains("no path leads from")).count()
    };
    for workload in [
        "kind = \"permutation\"\nhosts = \"0-3\"",
        "kind = \"collective\"\nhosts = \"0-3\"",
        "kind = \"poisson\"\nhosts = \"0-3\"\nload = 0.1\nduration = \"1ms\"",
        "kind = \"flows\"\nflows = [{ src = 0, dst = 3, size = \"1MB\" }]",
    ] {
        assert_eq!([0, 3, 5].map(|host| found(workload, host)), [1, 1, 0], "{workload}");
    }
}
