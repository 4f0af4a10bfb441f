//! Warnings of queues that end below the thresholds of marks.

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
