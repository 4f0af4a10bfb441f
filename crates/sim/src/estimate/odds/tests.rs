//! Tests of the chance of a slow next hop, and of what follows from it.

use super::super::tests::checked;
use super::*;

const SPINES: &str = "kind = \"leaf-spine\"\nleaves = 2\nspines = 8\nhosts_per_leaf = 4\nhost_link.rate = \"100Gbps\"\n\
                      fabric_link.rate = \"100Gbps\"\n";
const RING: &str = "kind = \"collective\"\noperation = \"ring-all-reduce\"\nbytes = \"8MB\"\n";

/// The warnings about next hops, the oversubscription, and the end in milliseconds.
fn found(topology: &str, rest: &str) -> (String, f64, f64) {
    let facts = checked(&format!("[topology]\n{topology}{rest}"));
    let warnings = facts["warnings"].as_array().into_iter().flatten().filter_map(|text| text.as_str());
    let text = warnings.filter(|text| text.starts_with("switch.balancer")).collect();
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    let (ratio, end) = (&facts["topology"]["oversubscription"], &facts["estimate"]["end_ns"]);
    (text, number(ratio), number(end) / 1e6)
}

fn slow_spine(rate: &str) -> String {
    format!("override = [{{ between = [\"leaf*\", \"spine0\"], rate = \"{rate}\" }}]\n")
}

#[test]
fn a_ring_meets_one_slow_spine_of_eight_in_a_quarter_of_all_cases() {
    let healthy = found(SPINES, &format!("[[workload]]\n{RING}"));
    let one = found(&(SPINES.to_string() + &slow_spine("10Gbps")), &format!("[[workload]]\n{RING}"));
    // Two connections between the leaves: 1 - (7 / 8)^2. Runs took 1.29 ms, or 12.8.
    assert!(one.0.contains("a chance of 23 %") && one.0.contains("about 12ms if one does"), "{}", one.0);
    assert!(!one.0.contains("can be used"), "{}", one.0);
    assert!((one.2 / healthy.2 - 1.0).abs() < 0.01, "{} {}", one.2, healthy.2);
    assert!((one.1 - 400.0 / 710.0).abs() < 1e-9, "{}", one.1);
}

#[test]
fn a_link_that_an_event_slows_down_for_good_is_like_one_of_that_rate() {
    let event = |leaf: u32| {
        format!(
            "{{ at = \"0us\", link = [\"leaf{leaf}\", \"spine0\"], change = \"rate\", rate = \"10Gbps\" }}"
        )
    };
    let events = format!("[failures]\nevent = [{}, {}]\n[[workload]]\n", event(0), event(1));
    let all_to_all = RING.replace("ring-all-reduce", "all-to-all");
    let load = "kind = \"poisson\"\nsize = \"100KB\"\nload = 0.5\ndestinations = \"inter-rack\"\nduration = \"1ms\"\n";
    let flow = "kind = \"flows\"\nflows = [{ src = 0, dst = 4, size = \"8MB\" }]\n";
    for workload in [RING, &all_to_all, load, flow] {
        let built =
            found(&(SPINES.to_string() + &slow_spine("10Gbps")), &format!("[[workload]]\n{workload}"));
        assert_eq!(found(SPINES, &format!("{events}{workload}")), built, "{workload}");
        assert_ne!(found(SPINES, &format!("[[workload]]\n{workload}")), built, "{workload}");
    }
}

#[test]
fn equal_shares_do_not_limit_flows_without_an_end_nor_subflows() {
    let slow = SPINES.replace("spines = 8", "spines = 4").replace("hosts_per_leaf = 4", "hosts_per_leaf = 8");
    let fast = slow + "override = [{ between = [\"leaf*\", \"spine0\"], rate = \"400Gbps\" }]\n";
    let load = "[[workload]]\nkind = \"poisson\"\nsize = \"2MB\"\nload = 0.4\ndestinations = \"inter-rack\"\nduration = \"1ms\"\n";
    let bulk = "[run]\nuntil = \"1ms\"\n[[workload]]\nkind = \"bulk\"\nflows_per_pair = 4\n";
    let subflows = format!("[transport]\nkind = \"mptcp\"\n{load}");
    for (rest, ratio) in [(load, 2.0), (bulk, 800.0 / 700.0), (&subflows, 800.0 / 700.0)] {
        let (warning, found, _) = found(&fast, rest);
        assert!((found - ratio).abs() < 1e-9, "{found} {rest}");
        assert_eq!(warning.contains("400Gbps of 700Gbps can be used"), ratio == 2.0, "{warning}");
    }
    // Ten megabytes of one connection at 10 Gb/s, whatever the slow way is. Runs took 14 ms.
    let two = "kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\nhost_link.rate = \"10Gbps\"\n\
               fabric_link.rate = \"10Gbps\"\noverride = [{ between = [\"leaf0\", \"spine1\"], rate = \"1Gbps\" }]\n";
    let flow = "[[workload]]\nkind = \"flows\"\nflows = [{ src = 0, dst = 2, size = \"10MB\" }]\n";
    let (warning, _, end) = found(two, &format!("[transport]\nkind = \"mptcp\"\n{flow}"));
    assert!(warning.is_empty() && (8.0..14.0).contains(&end), "{warning} {end}");
    // With one path it is as slow as that in half of all cases.
    let (warning, ratio, _) = found(two, &format!("[transport]\nkind = \"tcp\"\n{flow}"));
    assert!(warning.contains("a chance of 50 %") && (ratio - 20.0 / 11.0).abs() < 1e-9, "{warning} {ratio}");
}

#[test]
fn a_run_ends_by_the_chances_of_those_flows_that_would_end_it() {
    let ms = |time: u64| Time::from_us(1000 * time);
    let end = |flows: &[(u64, u64, f64)]| {
        let mut late = Late::default();
        flows.iter().for_each(|&(end, slow, chance)| late.add((ms(end), ms(slow)), chance, false));
        late.end(ms(10))
    };
    // The short flow ends before the long one anyway.
    assert_eq!(end(&[(1, 8, 0.9), (10, 10, 0.5)]), (ms(10), None));
    let (half, ends) = end(&[(10, 40, 0.5), (9, 20, 0.5), (5, 20, 0.5)]);
    assert_eq!(
        (half, ends.map(|ends| (ends.early, ends.late, ends.chance))),
        (ms(40), Some((ms(10), ms(40), 0.875)))
    );
    assert_eq!(end(&[(10, 40, 0.99)]), (ms(40), None));
    assert_eq!(end(&[(10, 40, 0.02)]), (ms(10), None));
}
