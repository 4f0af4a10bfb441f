//! What `--set` changes, and what of the file it leaves as it is.

use super::*;

#[test]
fn keys_of_a_workloads_own_kind_stay_where_set_chooses_one_for_the_others() {
    let text = format!(
        "{STAR}[transport]\ncontroller = {{ kind = \"timely\", beta = 0.7 }}\n[[workload]]\nkind = \"incast\"\n\
         transport = {{ controller = {{ kind = \"dctcp\", g = 0.1 }} }}\n"
    );
    for kind in ["timely", "hpcc", "dctcp"] {
        let scenario = load_with(&text, &[("transport.controller.kind", kind)]).ok().unwrap();
        let own = rdma_of(&scenario.transports[1]);
        assert_eq!(own.controller.name(), "dctcp", "{kind}");
        assert!(scenario.resolved().contains("g = 0.1"), "{kind}: {}", scenario.resolved());
        let of_workload = |text: &&String| text.contains("workload.1.transport.controller.g ");
        assert_eq!(scenario.warnings.iter().filter(of_workload).count(), 0, "{kind}");
    }
    // Without a kind of its own it has the others' kind, whose key this is not.
    let text = text.replace("kind = \"dctcp\", g = 0.1", "beta = 0.8");
    let scenario = load_with(&text, &[("transport.controller.kind", "dctcp")]).ok().unwrap();
    let left_out =
        "workload.1.transport.controller.beta of the file is ignored: --set chose another kind than the file";
    assert!(scenario.warnings.iter().any(|text| text == left_out), "{:?}", scenario.warnings);
}

#[test]
fn keys_of_the_kind_that_set_replaces_in_a_workload_are_left_out_whatever_the_others_have() {
    let text = format!(
        "{STAR}[transport]\ncontroller = {{ kind = \"hpcc\", eta = 0.9 }}\n[[workload]]\nkind = \"incast\"\n\
         transport = {{ mtu = \"2KB\", controller = {{ kind = \"dctcp\", g = 0.1 }} }}\n"
    );
    let left_out =
        "workload.1.transport.controller.g of the file is ignored: --set chose another kind than the file";
    for kind in ["hpcc", "timely", "dctcp"] {
        let scenario = load_with(&text, &[("workload.1.transport.controller.kind", kind)]).ok().unwrap();
        assert_eq!(rdma_of(&scenario.transports[1]).controller.name(), kind);
        assert_eq!(scenario.warnings.iter().any(|text| text == left_out), kind != "dctcp", "{kind}");
        let of_workload = scenario.resolved().lines().filter(|line| line.starts_with("transport = {"));
        let inherits = of_workload.filter(|line| line.contains("eta = 0.9")).count();
        assert_eq!(inherits, usize::from(kind == "hpcc"), "{kind}");
    }
}
