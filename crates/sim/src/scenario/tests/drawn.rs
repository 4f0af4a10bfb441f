//! Scenarios drawn at random: laws of the reader.

use super::*;
use proptest::prelude::*;

/// Lines that a scenario may or may not have; most combinations are wrong somewhere.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("[switch]".to_string()),
        Just("[transport]".to_string()),
        Just("[[workload]]".to_string()),
        Just("[measure]".to_string()),
        Just("[[failures.event]]".to_string()),
        Just("kind = \"poisson\"".to_string()),
        Just("queues = { ports = [\"*\", 3] }".to_string()),
        Just("at = \"1ms\"".to_string()),
        Just("link = [\"host0\"]".to_string()),
        Just("transport = { mtu = \"9KB\" }".to_string()),
        ("[a-z_]{1,8}", "[0-9]{0,4}[a-zA-Z]{0,3}").prop_map(|(key, value)| format!("{key} = \"{value}\"")),
        "[a-z.]{1,12} = [0-9{\\[\"]{0,4}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        let _ = load_with(&text, &[]);
    }

    #[test]
    fn arbitrary_sections_and_sets_never_panic(
        lines in prop::collection::vec(line(), 0..12),
        path in "[a-z0-9.]{0,20}|topology.kind|workload.0.load|switch.ecn",
        value in ".{0,10}",
    ) {
        let _ = load_with(&format!("{STAR}{}", lines.join("\n")), &[(&path, &value)]);
    }

    #[test]
    fn what_is_resolved_resolves_to_itself(
        hosts in 2..9u32,
        seed in 0..=i64::MAX as u64,
        eta in 0.5..1.0f64,
        delay_ns in 1..100_000u64,
        class in 1..8u8,
        kind in prop::sample::select(vec!["hpcc", "dcqcn", "timely", "dctcp", "none"]),
        recovery in prop::sample::select(vec!["go-back-n", "selective-repeat", "irn"]),
        workload in prop::sample::select(vec!["permutation", "all-to-all", "incast", "poisson"]),
        compat in prop::sample::select(vec!["none", "hpcc-ns3"]),
        marking in any::<bool>(),
    ) {
        let eta = if kind == "hpcc" { format!(", eta = {eta:?}") } else { String::new() };
        let text = format!(
            "seed = {seed}\n[topology]\nkind = \"star\"\nhosts = {hosts}\nhost_link.delay = \"{delay_ns}ns\"\n\
             [switch]\nbuffer = \"4GiB\"\necn = {{ enabled = {marking} }}\n\
             [transport]\ncontroller = {{ kind = \"{kind}\"{eta} }}\nclass = {class}\nrecovery = \"{recovery}\"\n\
             [compat]\nlike = \"{compat}\"\n[[workload]]\nkind = \"{workload}\"\nduration = \"10us\"\n\
             [measure]\nutilisation = {{}}\npauses = true\n"
        );
        let first = load_with(&text, &[]).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let second = load_with(first.resolved(), &[]).map_err(|e| TestCaseError::fail(e.to_string()))?;
        prop_assert_eq!(first.resolved(), second.resolved());
        prop_assert_eq!(&first.switch, &second.switch);
        prop_assert_eq!(&first.transports, &second.transports);
        prop_assert_eq!(first.telemetry, second.telemetry);
        prop_assert_eq!(first.until, second.until);
    }
}
