//! Tests of overloads by the configured hosts and sizes of workloads.

use super::super::tests::{overloads, share_of};

#[test]
fn uplinks_of_one_kind_are_overloaded_together_where_chance_may_explain_each() {
    let text = |seed: u32, load: f64, faster: &str| {
        format!(
            "seed = {seed}\n[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 4\nhosts_per_leaf = 8\n\
             host_link.rate = \"100Gbps\"\nfabric_link.rate = \"100Gbps\"\n{faster}[switch]\nbalancer = {{ kind = \"spray\" }}\n\
             [[workload]]\nkind = \"poisson\"\nsize = \"1MB\"\nload = {load}\ndestinations = \"inter-rack\"\nduration = \"4ms\"\n"
        )
    };
    // 0.6 of 800 Gb/s over 400 Gb/s, with headers 126 %.
    let half = "[[topology.override]]\nbetween = [\"leaf*\", \"spine0\"]\nrate = \"400Gbps\"\n";
    for seed in 1..=3 {
        for faster in ["", half] {
            let share = share_of(&text(seed, 0.6, faster), " can carry");
            assert!((110.0..190.0).contains(&share), "{seed}: {share}");
        }
        assert_eq!(overloads(&text(seed, 0.45, "")), [""; 0]);
    }
}

#[test]
fn rounds_that_draw_their_receivers_bring_each_host_its_share() {
    let rounds = |every: &str, more: &str| {
        format!(
            "[topology]\nkind = \"star\"\nhosts = 16\nhost_link.rate = \"100Gbps\"\n{more}[[workload]]\nkind = \"incast\"\n\
             arrivals = \"periodic\"\nevery = \"{every}\"\ncount = 40\nsenders = 15\nsize = \"100KB\"\n"
        )
    };
    // 1.5 MB in 5 us into 1.6 Tb/s, with headers of 9 %.
    let share =
        share_of(&rounds("5us", ""), "the link from host0 (with 15 more like that, all together) can carry");
    assert!((160.0..167.0).contains(&share), "{share}");
    assert_eq!(overloads(&rounds("10us", "")), [""; 0]);
    // One round is not a lasting load.
    assert_eq!(overloads(&rounds("5us", "").replace("count = 40", "duration = \"4us\"")), [""; 0]);
    // A sixteenth of it on a link of a tenth of the rate.
    let slow = "[[topology.override]]\nbetween = [\"host5\", \"s0\"]\nrate = \"10Gbps\"\n";
    let share = share_of(&rounds("20us", slow), "host5 can carry");
    assert!((400.0..418.0).contains(&share), "{share}");
}

#[test]
fn drawn_sizes_count_with_the_mean_of_their_kind_of_flow() {
    let star = "[topology]\nkind = \"star\"\nhosts = 9\nhost_link.rate = \"100Gbps\"\n[[workload]]\nsizes = \"websearch\"\n";
    let answers =
        "kind = \"request-response\"\nclients = \"0\"\nservers = \"1-8\"\nload = 0.5\nduration = \"5ms\"\n";
    // Eight times half of its link, with headers; the number of requests is by chance.
    for seed in 1..=6 {
        let share = share_of(&format!("seed = {seed}\n{star}{answers}"), "the link to host0 can carry");
        assert!((330.0..510.0).contains(&share), "{seed}: {share}");
    }
    // Eight flows of 1.7 MB in 1 ms.
    let rounds = "kind = \"incast\"\nreceiver = \"0\"\narrivals = \"periodic\"\nevery = \"1ms\"\ncount = 5\n";
    let shares =
        [1, 2].map(|seed| share_of(&format!("seed = {seed}\n{star}{rounds}"), "the link to host0 can carry"));
    assert!(shares[0] == shares[1] && shares[0] > 105.0, "{shares:?}");
}

#[test]
fn links_carry_less_while_failures_last() {
    let text = |spines: u32, event: &str| {
        format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = {spines}\nhosts_per_leaf = 4\nhost_link.rate = \"10Gbps\"\n\
             fabric_link.rate = \"20Gbps\"\n[failures]\nevent = [{event}]\n[[workload]]\nkind = \"poisson\"\n\
             destinations = \"inter-rack\"\nload = 0.7\nsize = \"20KB\"\nduration = \"10ms\"\n"
        )
    };
    let failed = |event: &str| share_of(&text(2, event), "(slower or down by failures.event) can carry");
    let one_spine = share_of(&text(1, ""), " other switches can carry");
    assert_eq!(failed("{ at = \"0us\", switch = \"spine1\" }"), one_spine);
    // From then on, though the links carry about as much in 10 ms as comes.
    let late = failed("{ at = \"5ms\", switch = \"spine1\" }");
    assert!((late - one_spine).abs() <= 1.0, "{late} {one_spine}");
    assert_eq!(overloads(&text(2, "{ at = \"4ms\", switch = \"spine1\", lasts = \"2ms\" }")), [""; 0]);
    // Half of 28 Gb/s, with headers and acknowledgements.
    let slow = "link = [\"leaf0\", \"spine1\"], change = \"rate\", rate = \"1Gbps\"";
    let share = failed(&format!("{{ at = \"0us\", {slow} }}"));
    assert!((1400.0..1850.0).contains(&share), "{share}");
}

#[test]
fn acknowledgements_cross_the_links_the_other_way() {
    let text = |load: f64, to: &str| {
        format!(
            "[topology]\nkind = \"star\"\nhosts = 6\nhost_link.rate = \"25Gbps\"\n[transport]\ncontroller = {{ kind = \"dctcp\" }}\n\
             [[workload]]\nkind = \"poisson\"\nsize = \"100B\"\nload = {load}\nhosts = \"0-2\"\nto = \"{to}\"\nduration = \"400us\"\n"
        )
    };
    // 148 B and an acknowledgement of 60 B for each 100 B.
    let share = share_of(&text(0.58, "hosts"), " can carry");
    assert!((118.0..124.0).contains(&share), "{share}");
    assert_eq!(overloads(&text(0.46, "hosts")), [""; 0]);
    // One way, no link has both.
    assert_eq!(overloads(&text(0.58, "3-5")), [""; 0]);
}
