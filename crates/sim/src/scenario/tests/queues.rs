//! Warnings about queues: times that ticks round, marks that senders ignore, control that is slower than round trips.

use super::*;

const DUMBBELL: &str =
    "[topology]\nkind = \"dumbbell\"\nleft = 2\nright = 2\n[switch]\npfc = { enabled = false }\n";

/// Of a dumbbell whose switches have this queue.
fn warnings_of(queue: &str, transport: &str) -> Vec<String> {
    let text = format!(
        "{DUMBBELL}queue = {{ {queue} }}\n[transport]\n{transport}\n[[workload]]\nkind = \"permutation\"\nsize = \"1MB\"\n"
    );
    load(&text).warnings
}

const TCP: &str = "kind = \"tcp\"";

#[test]
fn times_that_ticks_round_by_more_than_a_hundredth_are_exact_unless_the_scenario_asks_for_ticks() {
    let queue = |target| format!("kind = \"fq-codel\", target = \"{target}\", interval = \"1048576ns\"");
    // 48.8 ticks, and 98.
    assert_eq!(warnings_of(&queue("50us"), TCP), [""; 0]);
    let ticks = |target| warnings_of(&format!("{}, arithmetic = \"fixed-point\"", queue(target)), TCP);
    assert_eq!(ticks("100352ns"), [""; 0]);
    let found = ticks("50us");
    let text = "switch.queue.target: 50us is 49.152us in the ticks of 1024 ns of arithmetic = \"fixed-point\", and that is in force";
    assert!(found.len() == 1 && found[0].starts_with(text), "{found:?}");
    let refused = problems(
        "[switch]\nqueue = { kind = \"codel\", target = \"1us\", interval = \"1ms\", arithmetic = \"fixed-point\" }\n",
    );
    assert!(refused[0].contains("queue.target: 1us is less than a tick of 1024 ns"), "{refused:?}");
}

#[test]
fn marks_instead_of_drops_for_senders_that_ignore_them_are_warned_of() {
    let codel = |ecn| format!("kind = \"codel\", target = \"50us\", interval = \"1ms\", ecn = {ecn}");
    let rdma = |kind| format!("recovery = \"selective-repeat\"\ncontroller = {{ kind = \"{kind}\" }}");
    let ignored = |queue: &str, transport: &str| {
        let found = warnings_of(queue, transport);
        found.into_iter().find(|warning| warning.starts_with("switch.queue.ecn: "))
    };
    let found = ignored(&codel(true), &rdma("timely")).unwrap();
    assert!(found.contains("the controller \"timely\" of rdma does not react to marks"), "{found}");
    assert!(found.ends_with("Set ecn = false"), "{found}");
    let found = ignored(&codel(true), "kind = \"homa\"").unwrap();
    assert!(found.contains("and homa does not react to marks"), "{found}");
    assert!(ignored("kind = \"dualpi2\", ecn = false", &rdma("timely")).unwrap().contains("l4s_class"));
    assert_eq!(ignored(&codel(false), &rdma("timely")), None);
    let ecn = |kind| format!("kind = \"tcp\"\necn = \"classic\"\ncontroller = {{ kind = \"{kind}\" }}");
    for ignores in [rdma("swift"), ecn("bbr")] {
        assert!(ignored(&codel(true), &ignores).is_some(), "{ignores}");
    }
    for reacts in [&rdma("dcqcn"), &rdma("newreno"), TCP, &ecn("cubic")] {
        assert_eq!(ignored(&codel(true), reacts), None, "{reacts}");
    }
}

#[test]
fn control_that_is_slower_than_round_trips_and_halves_without_room_are_warned_of() {
    let queue = |rest: &str| warnings_of(&format!("kind = \"cebinae\", {rest}"), TCP);
    assert_eq!(queue("packets = 200, deadline = \"1us\""), [""; 0]);
    let found = queue("packets = 200");
    assert!(found.len() == 1 && found[0].starts_with("switch.queue.deadline: 100us at "), "{found:?}");
    let split = |limit: &str| queue(&format!("{limit}, buffer = \"split\", deadline = \"1us\""));
    assert_eq!(split("packets = 2, limit = \"3028B\""), [""; 0]);
    let found = split("packets = 1");
    assert!(found.len() == 1 && found[0].contains("each of two rounds has half of the buffer"), "{found:?}");
    let found = split("packets = 0, limit = \"3000B\"");
    assert!(
        found.iter().any(|warning| warning.contains("with 1.5KB have no room for a full packet")),
        "{found:?}"
    );
}

#[test]
fn waiting_times_for_the_internet_deserve_a_look_in_a_fabric() {
    let aims = |queue: &str| {
        let found = warnings_of(queue, TCP).into_iter();
        found.filter(|warning| warning.starts_with("switch.queue.target: ")).collect::<Vec<_>>()
    };
    for kind in ["codel", "fq-codel", "dualpi2"] {
        let found = aims(&format!("kind = \"{kind}\""));
        assert!(found.len() == 1 && found[0].contains("is for the Internet"), "{kind}: {found:?}");
    }
    assert_eq!(aims("kind = \"codel\", target = \"50us\", interval = \"1ms\""), [""; 0]);
    assert_eq!(aims("kind = \"dualpi2\", target = \"50us\", update = \"50us\""), [""; 0]);
}

#[test]
fn averages_and_thresholds_that_do_not_suit_a_link_deserve_a_look() {
    let found = |queue: &str, rate: &str, delay: &str| {
        let links = format!("host_link = {{ rate = \"{rate}\", delay = \"{delay}\" }}");
        let links = format!("{links}\nbottleneck_link = {{ rate = \"{rate}\", delay = \"{delay}\" }}");
        let text = format!(
            "{}queue = {{ kind = \"red\", {queue} }}\n[transport]\n{TCP}\n[[workload]]\nkind = \"permutation\"\nsize = \"1MB\"\n",
            DUMBBELL.replace("right = 2\n", &format!("right = 2\n{links}\n"))
        );
        let mut found = load(&text).warnings;
        found.retain(|warning| warning.starts_with("switch.queue."));
        found
    };
    let one = |queue: &str, rate: &str, delay: &str| {
        let found = found(queue, rate, delay);
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].clone()
    };
    assert_eq!(found("packets = 1000", "100Gbps", "1us"), [""; 0]);
    assert_eq!(found("packets = 60", "100Gbps", "1us"), [""; 0]);
    let never = one("packets = 30", "100Gbps", "1us");
    assert!(
        never.starts_with("switch.queue.min_queue: 50KB at ") && never.contains("never comes above"),
        "{never}"
    );
    let late = one("packets = 20000, min_queue = \"10MB\", max_queue = \"30MB\"", "100Gbps", "1us");
    assert!(
        late.starts_with("switch.queue.min_queue: 800us at ") && late.contains("for the Internet"),
        "{late}"
    );
    // 500 packets of 120 ns.
    let brief = one("packets = 1000", "100Gbps", "1ms");
    assert!(brief.starts_with("switch.queue.weight: 0.002 at ") && brief.contains("over 60us"), "{brief}");
    assert!(brief.contains("Set weight = 2.0e-6,"), "{brief}");
    assert_eq!(found("weight = 2.0e-6", "100Gbps", "1ms"), [""; 0]);
    assert_eq!(found("weight = 1.0", "100Gbps", "1ms"), [""; 0]);
    let long = one("weight = 1e-5", "100Gbps", "1us");
    assert!(long.contains("averages the queue over 12ms") && long.contains("do not show"), "{long}");
}

/// [transport] itself, where each workload has another one.
#[test]
fn a_transport_that_no_workload_has_is_not_warned_of() {
    let of = |second: &str| {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 4\n[switch.pfc]\nenabled = false\n\
             [[workload]]\nkind = \"permutation\"\ntransport = {{ recovery = \"selective-repeat\" }}\n\
             [[workload]]\nkind = \"collective\"\n{second}\n"
        );
        let warnings = load_with(&text, &[]).unwrap().warnings;
        warnings.iter().filter(|text| text.contains("go-back-N")).count()
    };
    assert_eq!(of(""), 1);
    assert_eq!(of("transport = { recovery = \"selective-repeat\", mtu = \"4KB\" }"), 0);
}

/// Warnings of the transports themselves, as of keys of their controllers: at 1 Gb/s published rates and intervals
/// do not suit.
#[test]
fn every_transport_in_use_is_warned_of_and_no_other() {
    let of = |kinds: [&str; 3]| {
        let mut text =
            "[topology]\nkind = \"star\"\nhosts = 4\nhost_link = { rate = \"1Gbps\", delay = \"1us\" }\n"
                .to_string();
        text += &format!("[transport]\ncontroller = {{ kind = \"{}\" }}\n", kinds[0]);
        for kind in &kinds[1..] {
            text += &format!(
                "[[workload]]\nkind = \"permutation\"\ntransport = {{ controller = {{ kind = \"{kind}\" }} }}\n"
            );
        }
        let warnings = load_with(&text, &[]).unwrap().warnings;
        ["rai", "increase_interval"].map(|key| {
            let start = format!("transport.controller.{key} = ");
            warnings.iter().filter(|text| text.starts_with(&start)).count()
        })
    };
    assert_eq!(of(["none", "hpcc", "dcqcn"]), [1, 1]);
    assert_eq!(of(["none", "dcqcn", "hpcc"]), [1, 1]);
    assert_eq!(of(["dcqcn", "hpcc", "hpcc"]), [1, 0]);
    assert_eq!(of(["hpcc", "dcqcn", "dcqcn"]), [0, 1]);
}

/// Two transports of one kind may send in classes of their own, too.
#[test]
fn classes_of_which_one_starves_another_are_warned_of_whatever_kind_their_transports_have() {
    let of = |[first, second]: [u8; 2], queue: &str| {
        let workload =
            |class| format!("[[workload]]\nkind = \"permutation\"\ntransport = {{ class = {class} }}\n");
        let text = format!("{DUMBBELL}queue = {{ {queue} }}\n{}{}", workload(first), workload(second));
        let found = load(&text).warnings.into_iter();
        found.filter(|text| text.contains("serve classes by strict priority")).collect::<Vec<_>>()
    };
    let strict = "kind = \"priority\", limit = \"1MB\"";
    let found = of([4, 2], strict);
    assert!(found.len() == 1 && found[0].contains("(\"rdma\" in class 2, \"rdma\" in class 4)"), "{found:?}");
    assert_eq!(of([3, 3], strict), [""; 0]);
    assert_eq!(of([4, 2], "kind = \"fifo\""), [""; 0]);
}
