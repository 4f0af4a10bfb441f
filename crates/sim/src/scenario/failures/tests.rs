use super::super::Scenario;
use super::*;
use std::path::Path;

/// What changes on a network of two hosts and one switch, in microseconds, by events that are listed in this order.
fn changes_of(events: &[&str]) -> Vec<(u64, Change)> {
    let mut text =
        "[topology]\nkind = \"star\"\nhosts = 2\nhost_link.rate = \"400Gbps\"\n[transport]\nkind = \"tcp\"\n\
                    [[workload]]\nkind = \"permutation\"\n"
            .to_string();
    for event in events {
        let subject = if event.contains("switch") { "" } else { "link = [\"host0\", \"s0\"]\n" };
        text += &format!("[[failures.event]]\n{subject}{}\n", event.replace(", ", "\n"));
    }
    let scenario = Scenario::load(&text, "s.toml", Path::new("."), &[], None, Default::default());
    let events = scenario.unwrap_or_else(|error| panic!("{error}")).failures.events;
    events.into_iter().map(|failure| (failure.at.ns() / 1000, failure.change)).collect()
}

/// The same, which must not depend on the order of listing.
fn in_any_order(events: &[&str]) -> Vec<(u64, Change)> {
    let found = changes_of(events);
    let reversed: Vec<&str> = events.iter().rev().copied().collect();
    assert_eq!(changes_of(&reversed), found, "{events:?}");
    found
}

const DOWN: Change = Change::LinkDown(0);
const UP: Change = Change::LinkUp(0);

fn rate(gbps: u64) -> Change {
    Change::LinkRate(0, Rate::from_gbps(gbps))
}

#[test]
fn a_link_is_down_while_any_event_that_took_it_down_is_in_force() {
    let within = ["at = \"1ms\", lasts = \"5ms\"", "at = \"2ms\", lasts = \"1ms\""];
    assert_eq!(in_any_order(&within), [(1000, DOWN), (6000, UP)]);
    let beyond = ["at = \"1ms\", lasts = \"2ms\"", "at = \"2ms\", lasts = \"5ms\""];
    assert_eq!(in_any_order(&beyond), [(1000, DOWN), (7000, UP)]);
    let in_a_row = ["at = \"1ms\", lasts = \"1ms\"", "at = \"2ms\", lasts = \"1ms\""];
    assert_eq!(in_any_order(&in_a_row), [(1000, DOWN), (3000, UP)]);
    let apart = ["at = \"1ms\", lasts = \"1ms\"", "at = \"3ms\", lasts = \"1ms\""];
    assert_eq!(in_any_order(&apart), [(1000, DOWN), (2000, UP), (3000, DOWN), (4000, UP)]);
    let for_good = ["at = \"1ms\"", "at = \"2ms\", lasts = \"1ms\""];
    assert_eq!(in_any_order(&for_good), [(1000, DOWN)]);
}

#[test]
fn an_event_that_brings_a_link_back_ends_what_began_before_it() {
    let up = "at = \"3ms\", change = \"up\"";
    let both = ["at = \"1ms\"", "at = \"2ms\", lasts = \"5ms\"", up];
    assert_eq!(in_any_order(&both), [(1000, DOWN), (3000, UP)]);
    let again = ["at = \"1ms\"", up, "at = \"3ms\", lasts = \"1ms\""];
    assert_eq!(in_any_order(&again), [(1000, DOWN), (4000, UP)]);
    assert_eq!(in_any_order(&[up]), []);
}

#[test]
fn a_link_has_the_rate_of_the_latest_event_in_force() {
    let event = |at: u64, lasts: u64, gbps: u64| {
        format!("at = \"{at}ms\", lasts = \"{lasts}ms\", change = \"rate\", rate = \"{gbps}Gbps\"")
    };
    let changes = |events: &[String]| in_any_order(&events.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(
        changes(&[event(1, 5, 10), event(2, 1, 50)]),
        [(1000, rate(10)), (2000, rate(50)), (3000, rate(10)), (6000, rate(400))]
    );
    assert_eq!(
        changes(&[event(1, 2, 10), event(2, 4, 50)]),
        [(1000, rate(10)), (2000, rate(50)), (6000, rate(400))]
    );
    // Of two that begin together, the lower rate.
    assert_eq!(
        changes(&[event(1, 1, 10), event(1, 2, 50)]),
        [(1000, rate(10)), (2000, rate(50)), (3000, rate(400))]
    );
    let for_good = "at = \"1ms\", change = \"rate\", rate = \"10Gbps\"".to_string();
    assert_eq!(changes(&[for_good, event(2, 1, 50)]), [(1000, rate(10)), (2000, rate(50)), (3000, rate(10))]);
}

#[test]
fn nothing_comes_back_before_what_goes_down_at_the_same_time() {
    let events = ["at = \"1ms\", lasts = \"1ms\"", "at = \"2ms\", lasts = \"1ms\", switch = \"s0\""];
    let switch = 2;
    assert_eq!(
        in_any_order(&events),
        [(1000, DOWN), (2000, Change::SwitchDown(switch)), (2000, UP), (3000, Change::SwitchUp(switch))]
    );
}
