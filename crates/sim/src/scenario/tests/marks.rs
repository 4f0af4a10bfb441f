//! Warnings of what is never reached: thresholds of marks, room for a packet, what a path holds.

use super::*;

const INCAST: &str = "[topology]\nkind = \"star\"\nhosts = 9\nhost_link = { rate = \"100Gbps\", delay = \"1us\" }\n\
                      [transport]\nrecovery = \"selective-repeat\"\ncontroller = { kind = \"dcqcn\" }\n\
                      [switch]\npfc = { enabled = false }\n[[workload]]\nkind = \"incast\"\nsenders = 8\n\
                      receiver = \"0\"\nsize = \"5MB\"\n";

fn of_marks(sets: &[(&str, &str)]) -> Vec<String> {
    let scenario = load_with(INCAST, sets).unwrap_or_else(|error| panic!("{error}"));
    scenario.warnings.into_iter().filter(|warning| warning.starts_with("switch.ecn")).collect()
}

#[test]
fn one_queue_of_a_shared_buffer_has_its_share_of_it() {
    // Marks begin at 400 KB, and end at 1600 KB with 20 %.
    for (buffer, alpha, expected) in [
        ("700KB", "1", "no queue holds more than 350KB (lossy_alpha / (1 + lossy_alpha) of the buffer)"),
        ("3MB", "0.125", "no queue holds more than 333.333KB"),
        ("32MiB", "0.0078125", "no queue holds more than"),
        ("1MB", "1", "the fullest queue marks 1.6 % of its packets"),
    ] {
        let shared = [("switch.buffer", buffer), ("switch.lossy_alpha", alpha)];
        let found = of_marks(&shared);
        assert!(found.len() == 1 && found[0].contains(expected), "{buffer}, {alpha}: {found:?}");
        // What it says to set differs from what is set, and is enough.
        let advice = found[0].split("Set switch.ecn = ").nth(1).expect("advice");
        assert_eq!(of_marks(&[&shared[..], &[("switch.ecn", advice)]].concat()), [""; 0], "{advice}");
    }
    assert_eq!(of_marks(&[("switch.buffer", "4MB")]), [""; 0]);
}

#[test]
fn a_shared_buffer_that_no_packet_fits_deserves_a_look() {
    let tcp = STAR.to_string() + "[transport]\nkind = \"tcp\"\n";
    let found = |buffer: &str, alpha: &str, more: &[(&str, &str)]| {
        let sets = [&[("switch.buffer", buffer), ("switch.lossy_alpha", alpha)][..], more].concat();
        let scenario = load_with(&tcp, &sets).unwrap_or_else(|error| panic!("{error}"));
        let warnings = scenario.warnings.into_iter();
        warnings.filter(|warning| warning.starts_with("switch.buffer")).collect::<Vec<_>>()
    };
    let expected = "switch.buffer: of 1.513KB, with lossy_alpha = 2, a queue gets at most 1.513KB, which is less than a full packet \
                    of tcp (1514 B): none ever passes. Set a larger buffer or lossy_alpha";
    assert_eq!(found("1513B", "2", &[]), [expected]);
    assert_eq!(found("1514B", "2", &[]), [""; 0]);
    // A 128th of 193 792 B is 1514 B.
    assert_eq!(found("193791B", "0.0078125", &[]).len(), 1);
    assert_eq!(found("193792B", "0.0078125", &[]), [""; 0]);
    assert_eq!(found("1B", "1", &[("switch.queue", "{ kind = \"codel\" }")]), [""; 0]);
}

#[test]
fn the_law_of_subflows_deserves_the_same_look_as_that_of_tcp() {
    let found = |subflows: &str, transport: &str, start: &str| {
        let link = "hosts = 4\nhost_link = { rate = \"100Gbps\", delay = \"250us\" }\n";
        let text = format!(
            "{}[transport]\nkind = \"mptcp\"\nsubflows = {subflows}\n{transport}\n",
            STAR.replace("hosts = 4\n", link)
        );
        let scenario = load(&text);
        let warnings = scenario.warnings.into_iter();
        warnings.filter(|warning| warning.starts_with(&format!("transport.{start}"))).collect::<Vec<_>>()
    };
    let warned = |echo: &str| {
        found(
            "4",
            &format!("ecn = \"{echo}\"\ncontroller = {{ kind = \"dctcp\" }}"),
            "ecn: controller \"dctcp\"",
        )
        .len()
    };
    assert_eq!([warned("classic"), warned("exact")], [1, 0]);
    let target = |swift: &str| {
        found("4", &format!("controller = {{ kind = \"swift\"{swift} }}"), "controller.base_target").len()
    };
    assert_eq!([target(""), target(", base_target = \"auto\"")], [1, 0]);
    // A round trip of 1 ms holds 12.5 MB, which are some 8260 packets of 1514 B.
    let window = |subflows: &str, packets: u32| {
        let swift =
            format!("controller = {{ kind = \"swift\", base_target = \"auto\", most_window = {packets} }}");
        found(subflows, &swift, "controller.most_window")
    };
    assert!(
        window("4", 2000)[0].contains("the 4 subflows of a connection over paths"),
        "{:?}",
        window("4", 2000)
    );
    assert_eq!(window("4", 2100), [""; 0]);
    assert!(window("1", 2100)[0].contains("a flow over a path"), "{:?}", window("1", 2100));
}
