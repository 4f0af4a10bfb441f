use super::super::situation::{Still, place};
use super::*;
use crate::balance::mp_hula::MpHulaParameters;
use crate::units::Rate;

fn config() -> HulaParameters {
    HulaParameters {
        interval: Time::from_us(200),
        probe_size: 64,
        probe_class: 0,
        release: true,
        time_constant: Time::from_us(400),
        failure_time: Time::from_us(600),
        flowlets: FlowletParameters { gap: Time::from_us(100), slots: 1 << 16 },
        refresh_on_best: true,
        suppress: true,
        hysteresis: 0,
        hardware: false,
        staggered: true,
    }
}

/// A switch with two ports down to ToRs 0 and 1 and two up, by which ToR 2 is reached; or, `tor` given, with two up alone.
fn switch(tor: Option<u32>, ranks: u8, config: HulaParameters) -> Hula {
    let fabric = Arc::new(Fabric { tor_of: vec![0, 1, 2], host_on: vec![0, 1, 2], ..Fabric::default() });
    let neighbour = |side| Neighbour { node: 9, port: 0, side };
    let neighbours = [Side::Down, Side::Down, Side::Up, Side::Up].map(neighbour);
    let at = Place { node: 4, tier: 2, tor, neighbours: &neighbours, ..place(&fabric) };
    Hula::new(config, ranks, None, &at)
}

fn at(us: u64) -> Still {
    Still { now: Time::from_us(us), ..Still::default() }
}

fn port_of(hula: &mut Hula, flow: u32, ports: &Still) -> u32 {
    let candidates = [2, 3];
    candidates[hula.choose(&Packet { dst: 2, hash: flow, ..Packet::default() }, &candidates, ports)]
}

#[test]
fn a_probe_takes_on_the_load_of_the_link_that_data_would_leave_by() {
    let mut hula = switch(None, 1, config());
    // 625 000 B within tau, on 100 Gb/s: an eighth of 5 MB.
    let now = Time::from_us(10);
    let departure = Departure { port: 2, bytes: 625_000, rate: Rate::from_gbps(100), now };
    hula.on_departure(&departure, &mut 0);
    let ports = at(10);
    assert_eq!(hula.record_probe(2, 5, 2, true, &ports), Some(32));
    assert_eq!(
        hula.record_probe(2, 200, 2, true, &ports),
        Some(200),
        "the busier of the two counts, bad news too"
    );
    assert_eq!(hula.record_probe(2, 90, 3, true, &ports), Some(90), "a better port is news");
    assert_eq!(port_of(&mut hula, 1, &ports), 3);
}

#[test]
fn what_is_no_news_is_passed_on_once_an_interval() {
    let mut hula = switch(None, 1, config());
    assert_eq!(hula.record_probe(2, 50, 2, true, &at(10)), Some(50));
    assert_eq!(hula.record_probe(2, 50, 3, true, &at(12)), None, "a copy of the same round by another path");
    assert_eq!(hula.record_probe(2, 50, 2, true, &at(209)), Some(50));
    let mut loud = switch(None, 1, HulaParameters { suppress: false, ..config() });
    assert_eq!(loud.record_probe(2, 50, 2, true, &at(10)), Some(50));
    assert_eq!(loud.record_probe(2, 50, 3, true, &at(12)), Some(50));
}

#[test]
fn probes_go_up_only_from_below_and_never_back() {
    let hula = switch(None, 1, config());
    let goes: Vec<Vec<u32>> =
        (0..4).map(|from| (0..4).filter(|&to| hula.passes_on(from, to)).collect()).collect();
    assert_eq!(goes, [vec![1, 2, 3], vec![0, 2, 3], vec![0, 1], vec![0, 1]]);
}

#[test]
fn a_tor_keeps_the_probes_of_others_and_drops_its_own() {
    let mut hula = switch(Some(0), 1, config());
    assert_eq!(hula.record_probe(2, 50, 2, true, &at(10)), None);
    assert_eq!(port_of(&mut hula, 7, &at(10)), 2);
    assert_eq!(hula.record_probe(0, 0, 3, true, &at(10)), None);
    assert_eq!(hula.hops.live(0, Time::from_us(10).0).count(), 0);
}

#[test]
fn ports_off_the_shortest_paths_are_not_believed() {
    let mut hula = switch(None, 3, config());
    assert_eq!(hula.record_probe(2, 0, 1, false, &at(10)), None);
    assert_eq!(hula.hops.live(2, Time::from_us(10).0).count(), 0);
}

#[test]
fn flowlets_stay_until_they_end_and_then_take_the_best_hop() {
    let mut hula = switch(None, 1, config());
    hula.record_probe(2, 50, 2, true, &at(0));
    hula.record_probe(2, 60, 3, true, &at(0));
    assert_eq!(port_of(&mut hula, 1, &at(1)), 2);
    hula.record_probe(2, 90, 2, true, &at(50));
    hula.record_probe(2, 60, 3, true, &at(51));
    assert_eq!(port_of(&mut hula, 1, &at(100)), 2, "99 us: the same flowlet");
    assert_eq!(port_of(&mut hula, 2, &at(100)), 3);
    assert_eq!(port_of(&mut hula, 1, &at(201)), 3, "101 us later a new one");
}

#[test]
fn a_silent_port_is_left_at_once_and_a_stale_hop_gives_way_to_any() {
    let mut hula = switch(None, 1, config());
    hula.record_probe(2, 10, 2, true, &at(0));
    let mut us = 1;
    // A flow without pauses; port 3 is heard of all the time, and is worse.
    while us < 600 {
        hula.record_probe(2, 200, 3, true, &at(us));
        assert_eq!(port_of(&mut hula, 1, &at(us)), 2, "{us} us");
        us += 50;
    }
    // Port 2 was heard of last at 0: after 600 us it counts as dead, and the next probe of port 3 is the best there is.
    hula.record_probe(2, 200, 3, true, &at(601));
    assert_eq!(port_of(&mut hula, 1, &at(601)), 3);
}

#[test]
fn without_probes_a_hash_spreads_over_live_ports() {
    let mut hula = switch(None, 1, config());
    let mut count = [0u32; 2];
    for flow in 0..2000u32 {
        count[port_of(&mut hula, flow.wrapping_mul(0x9e37_79b9), &at(0)) as usize - 2] += 1;
    }
    assert!(count.iter().all(|&c| c.abs_diff(1000) < 120), "{count:?}");
    // Port 3 alone speaks, of other ToRs: the other one has failed 600 us after the start, and not before.
    hula.record_probe(1, 10, 3, true, &at(10));
    let on_three = |hula: &mut Hula, us: u64| {
        (0..100).filter(|&flow: &u32| port_of(hula, flow.wrapping_mul(0x9e37_79b9), &at(us)) == 3).count()
    };
    assert!(on_three(&mut hula, 500) < 70);
    hula.record_probe(1, 10, 3, true, &at(600));
    assert_eq!(on_three(&mut hula, 601), 100);
}

#[test]
fn on_the_wire_a_mark_stands_between_switches_alone() {
    let of = MpHulaParameters { hula: config(), ranks: 2, subflows: Default::default() };
    // The mark's bit, subflow 5, and connection 0x20 without its last five bits.
    let word = 1 << 63 | 5 << 59 | 1;
    let tag = Tag { kind: 1, first: 5, rest: [0, 0, 0, 0, 0, 0, 0, 0x20] };
    assert_eq!(of.tag(word, true), Some(tag));
    assert_eq!(of.tag(word, false), None);
    assert_eq!(of.tag(0, true), None, "a packet without a mark");
}

#[test]
fn on_the_wire_a_probe_names_its_tor_and_what_the_path_is_worth() {
    let probe = Packet { src: 258, aux: 31, ..Packet::default() };
    assert_eq!(config().probe_tag(&probe), Some(Tag { kind: 4, first: 0, rest: [0, 0, 1, 2, 31, 0, 0, 0] }));
}
