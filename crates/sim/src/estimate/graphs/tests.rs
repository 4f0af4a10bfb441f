//! Tests of the estimated ends of jobs.

use super::super::tests::checked;

#[test]
fn repeats_of_an_operation_that_not_all_ranks_wait_for_overlap() {
    let end = |operation: &str, repeat: u32| {
        let facts = checked(&format!(
            "[topology]\nkind = \"star\"\nhosts = 32\nhost_link.rate = \"100Gbps\"\n[transport]\nmtu = \"4KB\"\n[[workload]]\n\
             kind = \"collective\"\noperation = \"{operation}\"\nbytes = \"1MB\"\nrepeat = {repeat}\n"
        ));
        facts["estimate"]["end_ns"].as_f64().expect("a number")
    };
    // Two copies of 1 MB leave a rank, or come to it: 162 us with headers, and the round trip of an acknowledgement. In a run each
    // further broadcast takes 166 us, and each reduce 198.
    for (operation, run) in [("broadcast", 166e3), ("reduce", 198e3)] {
        let further = (end(operation, 20) - end(operation, 1)) / 19.0;
        assert!((0.9..1.05).contains(&(further / run)), "{operation}: {further}");
    }
    for operation in ["all-reduce", "all-to-all"] {
        assert!((end(operation, 20) / end(operation, 1) / 20.0 - 1.0).abs() < 1e-3, "{operation}");
    }
    // A gather ends when its root has all, and so does the next.
    assert!((end("gather", 20) / end("gather", 1) / 20.0 - 1.0).abs() < 0.05);
}
