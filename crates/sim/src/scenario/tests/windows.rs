//! Default windows and targets: what the paths of their packets hold.

use super::*;

fn loaded(text: &str, sets: &[(&str, &str)]) -> Scenario {
    load_with(text, sets).unwrap_or_else(|error| panic!("{error}"))
}

/// The warnings of a key of the transport.
fn warned(text: &str, key: &str) -> Vec<String> {
    let warnings = loaded(text, &[]).warnings;
    warnings.into_iter().filter(|warning| warning.starts_with(&format!("transport.{key}"))).collect()
}

/// A key of the transport as it is in force.
fn resolved(text: &str, sets: &[(&str, &str)], key: &str) -> String {
    let scenario = loaded(text, sets);
    let lines: Vec<&str> = scenario.resolved().lines().collect();
    let found = lines.iter().find_map(|line| line.strip_prefix(&format!("{key} = ")));
    found.unwrap_or_else(|| panic!("{key} is not in\n{}", scenario.resolved())).to_string()
}

fn two_racks(spines: u32, gbps: u32, kind: &str) -> String {
    format!(
        "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = {spines}\nhosts_per_leaf = 1\n\
         fabric_link = {{ rate = \"{gbps}Gbps\", delay = \"1us\" }}\n[transport]\nkind = \"{kind}\"\n\
         [[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n"
    )
}

const KEYS: [(&str, &str); 4] =
    [("homa", "rtt_bytes"), ("ndp", "first_window"), ("phost", "free_tokens"), ("pfabric", "initial_window")];

#[test]
fn pairs_that_are_all_alike_hold_what_their_median_does() {
    for (kind, key) in KEYS {
        for (spines, gbps) in [(2, 50), (10, 10), (20, 5)] {
            let found = warned(&two_racks(spines, gbps, kind), key);
            assert_eq!(found, [""; 0], "{kind} over {spines} spines");
        }
    }
}

#[test]
fn a_flow_that_keeps_its_path_has_the_window_of_one_path() {
    let window =
        |spines, sets: &[(&str, &str)]| resolved(&two_racks(spines, 25, "ndp"), sets, "first_window");
    let one_path = window(1, &[]);
    let kept = ("transport.spray", "false");
    assert_eq!(window(4, &[kept]), one_path);
    assert_ne!(window(4, &[]), one_path);
    // Switches spread its packets.
    assert_eq!(window(4, &[kept, ("switch.balancer.kind", "spray")]), window(4, &[]));
    // Or all packets to a host take one path, whatever their labels.
    assert_eq!(window(4, &[("switch.balancer.kind", "destination")]), one_path);
}

#[test]
fn windows_do_not_depend_on_how_hosts_are_numbered() {
    let of = |fast: usize, kind: &str, key: &str| {
        let overrides: String = (0..40)
            .map(|leaf| {
                let host = 2 * leaf + fast;
                format!(
                    "[[topology.override]]\nbetween = [\"leaf{leaf}\", \"host{host}\"]\nrate = \"100Gbps\"\n"
                )
            })
            .collect();
        let link = "{ rate = \"10Gbps\", delay = \"1us\" }";
        let text = format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 40\nspines = 10\nhosts_per_leaf = 2\nhost_link = {link}\n\
             fabric_link = {link}\n{overrides}[transport]\nkind = \"{kind}\"\n[[workload]]\nkind = \"permutation\"\n\
             size = \"1KB\"\n"
        );
        (resolved(&text, &[], key), warned(&text, key).len())
    };
    for (kind, key) in KEYS {
        assert_eq!(of(0, kind, key), of(1, kind, key), "{kind}");
    }
    // 100 Gb/s for 8 us of links and a packet's own time on each.
    let window: u32 = of(1, "ndp", "first_window").0.parse().expect("a whole number");
    assert!((72..=96).contains(&window), "{window}");
}

#[test]
fn targets_that_follow_a_distant_host_of_no_flow_deserve_a_look() {
    let of = |controller: &str, sets: &[(&str, &str)]| {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 5\nhost_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
             override = [{{ between = [\"s0\", \"host4\"], delay = \"5ms\" }}]\n[transport]\nkind = \"rdma\"\n\
             controller = {{ kind = \"swift\", base_target = \"auto\"{controller} }}\n[switch]\n\
             pfc = {{ enabled = false }}\n[[workload]]\nkind = \"flows\"\n\
             flows = [{{ src = 1, dst = 0, size = \"20MB\" }}, {{ src = 4, dst = 0, size = \"1MB\" }}]\n"
        );
        let found = loaded(&text, sets).warnings.into_iter();
        found.filter(|warning| warning.contains("the targets of these")).collect::<Vec<_>>()
    };
    let found = of("", &[]);
    assert!(found.len() == 1 && found[0].contains("95 % of the bytes"), "{found:?}");
    assert!(found[0].contains("Set per_hop = 140ns and range = 21us for them"), "{found:?}");
    assert_eq!(of("", &[("transport.kind", "tcp")]).len(), 1);
    // The distant host is what the network is used for, or like the others; or the times are set.
    let far = "[{ src = 1, dst = 0, size = \"1MB\" }, { src = 4, dst = 0, size = \"20MB\" }]";
    assert_eq!(of("", &[("workload.0.flows", far)]), [""; 0]);
    assert_eq!(
        of("", &[("topology.override", "[{ between = [\"s0\", \"host4\"], delay = \"1us\" }]")]),
        [""; 0]
    );
    assert_eq!(of(", per_hop = \"130ns\", range = \"20us\"", &[]), [""; 0]);
}

#[test]
fn a_window_that_is_not_there_cannot_stay_fixed() {
    let warned = |controller: &str| {
        let text = format!("{STAR}[transport]\ncontroller = {{ kind = \"dcqcn\", {controller} }}\n");
        let idle = "transport.controller.var_window has no effect here: set window = true";
        load(&text).warnings.iter().filter(|warning| *warning == idle).count()
    };
    assert_eq!(warned("var_window = false"), 1);
    assert_eq!(["var_window = true", "window = true, var_window = false"].map(warned), [0, 0]);
    // A transport of a workload may be without, and inherits the other values.
    let own = "[[workload]]\nkind = \"incast\"\ntransport = { controller = { window = false } }\n";
    let text = format!(
        "{STAR}[transport]\ncontroller = {{ kind = \"dcqcn\", window = true, var_window = false }}\n{own}"
    );
    assert_eq!(load(&text).warnings.iter().filter(|text| text.contains("var_window")).count(), 0);
    let own = "[[workload]]\nkind = \"incast\"\ntransport = { plb = \"none\" }\n";
    let text = format!("{STAR}[transport]\nplb = \"delay\"\nplb_rounds = 9\n{own}");
    assert_eq!(load(&text).warnings.iter().filter(|text| text.contains("plb_rounds")).count(), 0);
}

/// No NACK is sent where only missing packets are sent again; what a workload inherits is not its own.
#[test]
fn the_interval_of_nacks_is_idle_without_nacks() {
    let warned = |keys: &str, own: &str| {
        let text = format!(
            "{STAR}[transport]\n{keys}\n[[workload]]\nkind = \"incast\"\ntransport = {{ mtu = \"1KB\"{own} }}\n"
        );
        let found = load(&text).warnings.into_iter();
        found.filter(|warning| warning.contains("nack_interval has no effect")).count()
    };
    let (far, usual) = ("nack_interval = \"10us\"", "nack_interval = \"500us\"");
    for recovery in ["selective-repeat", "irn"] {
        let chosen = format!("recovery = \"{recovery}\"");
        assert_eq!(warned(&format!("{far}\n{chosen}"), ""), 1, "{recovery}");
        assert_eq!(warned(&format!("{usual}\n{chosen}"), ""), 0, "{recovery}");
        assert_eq!(warned(far, &format!(", {chosen}")), 0, "{recovery}");
    }
    assert_eq!(warned(far, ""), 0);
}
