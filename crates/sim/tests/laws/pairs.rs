//! Balancers that reorder, with transports that take that for loss: unnecessary retransmissions were warned of.

use crate::common::*;
use weftline_sim::config::Config;
use weftline_sim::engine::random::RandomStream;
use weftline_sim::scenario::Scenario;
use weftline_sim::units::Time;
use weftline_sim::workload::FlowSpec;

/// Every balancer, with a pause between flowlets from far below a round trip to far above it.
const BALANCERS: &[&str] = &[
    "kind = \"ecmp\"",
    "kind = \"destination\"",
    "kind = \"label\"",
    "kind = \"spray\"",
    "kind = \"spray\", order = \"round-robin\"",
    "kind = \"drill\"",
    "kind = \"presto\"",
    "kind = \"presto\", cell = \"8KB\"",
    "kind = \"letflow\", gap = GAP",
    "kind = \"conga\", gap = GAP",
    "kind = \"clove\", gap = GAP",
    "kind = \"clove\", feedback = \"none\", gap = GAP",
    "kind = \"hula\", gap = GAP",
    "kind = \"mp-hula\", gap = GAP",
];
const GAPS: &[&str] = &["100ns", "1us", "5us", "10us", "20us", "50us", "100us", "500us"];

/// Every way to take what does not come.
const TRANSPORTS: &[&str] = &[
    "kind = \"rdma\"",
    "kind = \"rdma\"\ncontroller = { kind = \"dcqcn\" }",
    "kind = \"rdma\"\nrecovery = \"selective-repeat\"",
    "kind = \"rdma\"\nrecovery = \"selective-repeat\"\nreordering = 1000",
    "kind = \"tcp\"\ncontroller = { kind = \"dctcp\" }",
    "kind = \"tcp\"\ncontroller = { kind = \"cubic\" }\nloss_detection = \"sack\"",
    "kind = \"tcp\"\nprofile = \"ns3-3.35\"",
    "kind = \"mptcp\"",
    "kind = \"mptcp\"\nloss_detection = \"sack\"",
    "kind = \"phost\"",
    "kind = \"pfabric\"",
    "kind = \"fastpass\"",
];

const FABRIC: &str = "kind = \"leaf-spine\"\nleaves = 2\nspines = 4\nhosts_per_leaf = 4\nhost_link = { rate = \"10Gbps\", delay = \
                      \"1us\" }\nfabric_link = { rate = \"10Gbps\", delay = \"1us\" }";
const STAR: &str = "kind = \"star\"\nhosts = 8\nhost_link = { rate = \"10Gbps\", delay = \"1us\" }";

fn scenario(topology: &str, balancer: &str, transport: &str) -> Result<Scenario, String> {
    let text = format!(
        "[topology]\n{topology}\n[switch]\nbalancer = {{ {balancer} }}\n[transport]\n{transport}\n[[workload]]\nkind = \
         \"permutation\"\nsize = \"1MB\"\n[run]\nuntil = \"20ms\"\n"
    );
    load_text(&text)
}

/// From 20 to 150 flows of up to 500 KB within half a millisecond.
fn flows(random: &mut RandomStream) -> Vec<FlowSpec> {
    let count = 20 + random.below(131);
    let mut flows: Vec<FlowSpec> = (0..count)
        .map(|_| {
            let src = random.below(8) as u32;
            let dst = (src + 1 + random.below(7) as u32) % 8;
            flow(src, dst, 1 + random.below(500_000), Time::from_us(random.below(500)))
        })
        .collect();
    flows.sort_by_key(|flow| flow.start);
    flows
}

fn load_text(text: &str) -> Result<Scenario, String> {
    load(text, &[])
}

/// Warnings of two parts that do not suit each other.
fn of_order(scenario: &Scenario) -> Vec<&String> {
    scenario.warnings.iter().filter(|warning| warning.contains("overtak")).collect()
}

#[test]
fn a_pair_that_sends_more_than_one_packet_in_a_hundred_again_without_a_loss_was_warned_of() {
    let mut random = RandomStream::new(1, "pairs");
    let (mut checked, mut reordered) = (0, 0);
    for balancer in (0..3).flat_map(|_| BALANCERS) {
        for transport in TRANSPORTS {
            let gap = GAPS[random.below(GAPS.len() as u64) as usize];
            let balancer = balancer.replace("GAP", &format!("\"{gap}\""));
            // Some balancers cannot serve every network, nor every transport.
            let Ok(scenario) = scenario(FABRIC, &balancer, transport) else { continue };
            let warned = !of_order(&scenario).is_empty();
            let flows = flows(&mut random);
            let (_, outcome) = run_in(1, Config { traffic: traffic(flows), ..scenario.config().unwrap() });
            let losses = losses_of(&outcome);
            checked += 1;
            if losses.lost() > 0 {
                continue;
            }
            let share = losses.retransmitted as f64 / losses.data_sent.max(1) as f64;
            println!("{balancer} | {transport:?}: {share:.4} again, warned: {warned}");
            reordered += usize::from(share > 0.01);
            assert!(share <= 0.01 || warned, "{balancer} under {transport:?}: {share}: {losses:?}");
        }
    }
    assert!(
        checked > 300 && reordered > 15,
        "{checked} pairs ran, {reordered} of them sent again for nothing"
    );
}

#[test]
fn where_there_is_one_path_no_pair_is_warned_of() {
    for balancer in BALANCERS {
        for transport in TRANSPORTS {
            let balancer = balancer.replace("GAP", "\"100ns\"");
            let Ok(scenario) = scenario(STAR, &balancer, transport) else { continue };
            assert_eq!(of_order(&scenario), Vec::<&String>::new(), "{balancer} under {transport:?}");
        }
    }
}

#[test]
fn what_puts_packets_in_order_or_takes_them_in_any_is_not_warned_of() {
    let spray = "kind = \"spray\"";
    let plain = scenario(FABRIC, spray, TRANSPORTS[0]).unwrap();
    assert_eq!(of_order(&plain).len(), 1, "{:?}", plain.warnings);
    for transport in ["kind = \"phost\"", "kind = \"pfabric\"", "kind = \"fastpass\"", TRANSPORTS[3]] {
        let any = scenario(FABRIC, spray, transport).unwrap();
        assert_eq!(of_order(&any), Vec::<&String>::new(), "{transport}");
    }
    let text = format!(
        "[topology]\n{FABRIC}\n[switch]\nbalancer = {{ {spray} }}\n[host]\nresequencing = {{ enabled = true }}\n[[workload]]\nkind = \
         \"permutation\"\nsize = \"1MB\"\n"
    );
    assert_eq!(of_order(&load_text(&text).unwrap()), Vec::<&String>::new());
}

const BESIDE: &str = "[topology]\nkind = \"leaf-spine\"\n[transport]\nkind = \"FIRST\"\n[[workload]]\nkind = \"permutation\"\nsize = \
                      \"1MB\"\n[[workload]]\nkind = \"permutation\"\nsize = \"1MB\"\ntransport = { SECOND }\n";

#[test]
fn a_controller_that_steers_by_marks_is_warned_of_where_no_switch_marks_and_the_advice_helps() {
    let marked = [
        "kind = \"tcp\", controller = { kind = \"dctcp\" }",
        "kind = \"rdma\", controller = { kind = \"dctcp\" }, recovery = \"selective-repeat\"",
        "kind = \"rdma\", controller = { kind = \"dcqcn\" }, recovery = \"selective-repeat\"",
        "kind = \"rdma\", controller = { kind = \"tcp.dctcp\" }, recovery = \"selective-repeat\"",
    ];
    let of_marks = |scenario: &Scenario| -> Vec<String> {
        scenario.warnings.iter().filter(|warning| warning.starts_with("switch.ecn")).cloned().collect()
    };
    for first in ["phost", "pfabric", "fastpass"] {
        for second in marked {
            let text = BESIDE.replace("FIRST", first).replace("SECOND", second);
            let found = of_marks(&load_text(&text).unwrap());
            assert_eq!(found.len(), 1, "{first} beside {second}: {found:?}");
            assert!(found[0].contains("reacts to marks") && found[0].contains(first), "{found:?}");
            // What it says can be written as it stands, and is enough.
            let advice = found[0].split("Set switch.ecn = ").nth(1).unwrap();
            let mended = load(&text, &[("switch.ecn", advice)]).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(of_marks(&mended), Vec::<String>::new());
            // Marks that begin above what a queue holds are none.
            let high = load(&text, &[("switch.ecn", "{ enabled = true, kmin = \"20MB\", kmax = \"21MB\" }")])
                .unwrap();
            assert!(of_marks(&high)[0].contains("no queue holds more than"), "{:?}", of_marks(&high));
        }
        let unmarked = BESIDE
            .replace("FIRST", first)
            .replace("SECOND", "kind = \"tcp\", controller = { kind = \"cubic\" }");
        assert_eq!(of_marks(&load_text(&unmarked).unwrap()), Vec::<String>::new());
    }
}

#[test]
fn failures_that_move_flows_and_buffers_that_drop_are_warned_of_under_go_back_n() {
    let found = |more: &str, transport: &str| {
        let text = format!(
            "[topology]\n{FABRIC}\n[transport]\n{transport}\n{more}\n[[workload]]\nkind = \"permutation\"\nsize = \"1MB\"\n"
        );
        let mut warnings = load_text(&text).unwrap().warnings;
        // The published minimum rate is for faster hosts than these.
        warnings.retain(|warning| !warning.starts_with("transport.controller.min_rate"));
        warnings
    };
    let cut = "[[failures.event]]\nat = \"10us\"\nchange = \"down\"\nlink = [\"leaf0\", \"spine0\"]";
    for (more, key) in
        [(cut, "failures: flows change their paths"), ("[switch.pfc]\nenabled = false", "switch.pfc: off")]
    {
        let warned = found(more, TRANSPORTS[0]);
        assert!(warned.iter().any(|warning| warning.starts_with(key)), "{more}: {warned:?}");
        for other in [TRANSPORTS[3], TRANSPORTS[4]] {
            let warned = found(more, other);
            assert!(
                !warned.iter().any(|warning| warning.starts_with(key)),
                "{more} under {other}: {warned:?}"
            );
        }
    }
    let from_the_start = cut.replace("10us", "0us").replace("[[", "[failures]\ndetection = \"0us\"\n[[");
    let warned = found(&from_the_start, TRANSPORTS[0]);
    assert!(!warned.iter().any(|warning| warning.starts_with("failures: flows")), "{warned:?}");
    assert_eq!(found("", TRANSPORTS[0]), Vec::<String>::new());
    // The published pauses of flowlets are long enough.
    for balancer in ["letflow", "conga", "clove"] {
        let kept = found(&format!("[switch.balancer]\nkind = \"{balancer}\""), TRANSPORTS[0]);
        assert_eq!(kept, Vec::<String>::new(), "{balancer}");
    }
}
