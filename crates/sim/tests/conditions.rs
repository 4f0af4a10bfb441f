//! Every scheme that papers compare with today under everything that may happen to it: failures, links that lose a fifth of all
//! packets, PFC on and off, telemetry, slow hosts, other schemes in the same run. Every flow ends, and threads and regions give the same
//! bits.

use crate::common::*;
use weftline_sim::Execution;
use weftline_sim::measure::Ending;

const TRAFFIC: &str = r#"
    [switch]
    buffer = "2MB"
    [[workload]]
    kind = "permutation"
    size = "60KB"
    [[workload]]
    kind = "incast"
    hosts = "0-5"
    receiver = "11"
    size = "30KB"
"#;

/// A link of the fabric, one of a host, and a spine go down and come up again.
fn failures() -> String {
    let changes = [
        ("link = [\"leaf0\", \"spine0\"]", 12, 300),
        ("link = [\"host3\", \"leaf0\"]", 10, 200),
        ("switch = \"spine1\"", 400, 700),
    ];
    let event = |what: &str, at: u32, change: &str| {
        format!("[[failures.event]]\n{what}\nat = \"{at}us\"\nchange = \"{change}\"\n")
    };
    changes.map(|(what, down, up)| event(what, down, "down") + &event(what, up, "up")).concat()
}

const TCP: &str =
    "rto_min = \"300us\", rto_initial = \"1ms\", rto_max = \"1ms\", retries = 1000, syn_retries = 1000";

/// Names, transports, and whether the balancer is ConWeave.
fn schemes() -> Vec<(&'static str, String, bool)> {
    let rdma = |law: &str| format!("kind = \"rdma\", rto = \"300us\", controller = {{ kind = \"{law}\" }}");
    let others = ["ndp", "homa", "phost", "pfabric", "fastpass"];
    let mut all = vec![
        ("powertcp", rdma("powertcp"), false),
        ("theta-powertcp", rdma("theta-powertcp"), false),
        ("swift", rdma("swift"), false),
        ("swift over TCP", format!("kind = \"tcp\", {TCP}, controller = {{ kind = \"swift\" }}"), false),
        ("conweave", rdma("dcqcn"), true),
        ("conweave with IRN", format!("{}, recovery = \"irn\"", rdma("dcqcn")), true),
    ];
    all.extend(others.map(|kind| (kind, format!("kind = \"{kind}\""), false)));
    all
}

/// Keys and their values.
type Sets = Vec<(&'static str, String)>;

/// The conditions: what is added to the text, and what is set. Telemetry goes with all transports: those that make no use of it carry it.
fn conditions() -> Vec<(&'static str, String, Sets)> {
    let set = |key, value: &str| vec![(key, value.to_string())];
    let homa = "[[workload]]\nkind = \"permutation\"\nsize = \"30KB\"\ntransport = { kind = \"homa\" }\n";
    let tcp = format!(
        "[[workload]]\nkind = \"permutation\"\nsize = \"30KB\"\ntransport = {{ kind = \"tcp\", {TCP}, controller = {{ kind = \"swift\" }} }}\n"
    );
    let rdma = "[[workload]]\nkind = \"permutation\"\nsize = \"30KB\"\ntransport = { kind = \"rdma\", rto = \"300us\", controller = { kind = \"powertcp\" } }\n";
    vec![
        ("PFC", String::new(), set("switch.pfc.enabled", "true")),
        ("no PFC", String::new(), set("switch.pfc.enabled", "false")),
        ("failures", failures(), Vec::new()),
        ("20 % loss", "[failures]\nloss = 0.2\n".into(), Vec::new()),
        ("loss and failures", format!("[failures]\nloss = 0.2\n{}", failures()), Vec::new()),
        ("INT in all data", "[telemetry]\nkind = \"int\"\nall = true\n".into(), Vec::new()),
        ("PINT", "[telemetry]\nkind = \"pint\"\n".into(), Vec::new()),
        ("slow hosts", "[host]\npacket_time = \"200ns\"\n".into(), Vec::new()),
        (
            "slow hosts and loss",
            "[failures]\nloss = 0.2\n[host]\npacket_time = \"200ns\"\n".into(),
            Vec::new(),
        ),
        ("others in the run", format!("{homa}{tcp}{rdma}"), Vec::new()),
    ]
}

#[test]
fn every_scheme_ends_its_flows_under_every_condition_with_the_same_bits() {
    let (mut runs, mut refused, mut wrong) = (0, Vec::new(), Vec::new());
    for (name, transport, conweave) in schemes() {
        for (condition, more, sets) in conditions() {
            let text = format!("transport = {{ {transport} }}\n{THREE_LEAVES}{TRAFFIC}{more}");
            let mut sets: Vec<(&str, &str)> =
                sets.iter().map(|(key, value)| (*key, value.as_str())).collect();
            if conweave {
                sets.push(("switch.balancer.kind", "conweave"));
            }
            let scenario = match load(&text, &sets) {
                Ok(scenario) => scenario,
                Err(error) => {
                    refused.push(format!("{name}, {condition}: {error}"));
                    continue;
                }
            };
            assert!(scenario.check()["transports"].as_array().is_some_and(|facts| !facts.is_empty()));
            let config = || scenario.config().expect("a configuration");
            let (kept, outcome) = run(config());
            let left: Vec<_> = kept.flows.iter().filter(|flow| flow.finish.is_none()).collect();
            if (outcome.ending, left.len()) != (Ending::Done, 0) {
                wrong.push(format!("{name}, {condition}: {left:?}"));
            }
            let execution = Execution { threads: 4, regions: Some(4), windows: None };
            assert_eq!(run_as(execution, config()).1, outcome, "{name}, {condition}: 4 threads");
            runs += 1;
        }
    }
    refused.iter().for_each(|one| println!("refused: {one}"));
    println!("{runs} runs");
    assert_eq!(wrong, [""; 0]);
    // PowerTCP reads INT, so PINT cannot take its place.
    assert!(refused.iter().all(|one| one.starts_with("powertcp, PINT: ")), "{refused:?}");
}
