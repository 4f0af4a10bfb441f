//! Schemes of another crate: they are added once, and named like those of this one; what they do wrong ends a run with an error
//! that names them. A binary of its own, because what is added is there for the whole process.

mod common;

use common::*;
use std::sync::Once;

use weftline_sim::config::Config;
use weftline_sim::doc::SchemeDoc;
use weftline_sim::parameters::Parameters;
use weftline_sim::queue::{
    BUFFER, Discipline, DisciplineParameters, Limit, List, ManagedConfig, PortPlace, QueueContext, Queued,
};
use weftline_sim::schemes::Schemes;
use weftline_sim::{Execution, Simulation};

/// The built-in FIFO with a buffer of its own once more, from outside the crate.
#[derive(Debug)]
struct OutsideConfig;
#[derive(Default)]
struct Outside(List);

impl DisciplineParameters for OutsideConfig {
    type State = Outside;
    const DOC: SchemeDoc =
        SchemeDoc { name: "outside", title: "first come, first served", ..SchemeDoc::NONE };
    fn read(_p: &mut Parameters) -> OutsideConfig {
        OutsideConfig
    }
    fn start(&self, _limit: Limit, _place: &PortPlace) -> Outside {
        Outside::default()
    }
}

impl Discipline for Outside {
    fn enqueue(&mut self, packet: Queued, cx: &mut QueueContext) {
        if cx.is_full_for(packet.size) {
            return cx.drop(packet, &BUFFER);
        }
        cx.waiting.push(&mut self.0, packet);
    }
    fn dequeue(&mut self, cx: &mut QueueContext) -> Option<Queued> {
        cx.waiting.pop(&mut self.0)
    }
    fn reset(&mut self) {
        *self = Outside::default();
    }
}

fn add() {
    static ADDED: Once = Once::new();
    ADDED.call_once(|| {
        let schemes =
            Schemes::of("own", "1").queue::<ManagedConfig<OutsideConfig>>().queue::<ManagedConfig<Greedy>>();
        let schemes = schemes.queue::<faults::Queue>().balancer::<faults::Balancer>();
        let schemes = schemes.queue::<ManagedConfig<faults::Early>>();
        schemes.controller::<faults::Controller>().add().unwrap();
    });
}

#[test]
fn it_is_named_in_a_scenario_and_the_built_in_fifo_written_again_gives_the_same_bits() {
    add();
    let load = |queue: &str| {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 8\n[switch]\npfc = {{ enabled = false }}\nqueue = {queue}\n\
             [transport]\nkind = \"tcp\"\n[[workload]]\nkind = \"incast\"\nsenders = 7\nsize = \"100KB\"\n"
        );
        common::load(&text, &[])
    };
    let ends = |config: Config| run(config).0.flows.iter().map(|flow| flow.finish).collect::<Vec<_>>();
    let own = load("{ kind = \"outside\", packets = 20 }").unwrap();
    assert!(common::load(own.resolved(), &[]).is_ok(), "{}", own.resolved());
    let built_in = load("{ kind = \"fifo\", packets = 20 }").unwrap();
    assert_eq!(ends(own.config().unwrap()), ends(built_in.config().unwrap()));
    let wrong = load("{ kind = \"outside\", pakets = 20 }").err().unwrap();
    assert!(wrong.contains("did you mean \"packets\"?"), "{wrong}");
    let known = load("{ kind = \"outsid\" }").err().unwrap();
    assert!(known.contains("did you mean \"outside\"?"), "{known}");
}

/// A discipline in a buffer of the port's own that returns its first packet for ever.
#[derive(Debug)]
struct Greedy;
#[derive(Default)]
struct Returns(Option<Queued>);

impl DisciplineParameters for Greedy {
    type State = Returns;
    const DOC: SchemeDoc =
        SchemeDoc { name: "greedy", title: "returns one packet for ever", ..SchemeDoc::NONE };
    fn read(_p: &mut Parameters) -> Greedy {
        Greedy
    }
    fn start(&self, _limit: Limit, _place: &PortPlace) -> Returns {
        Returns::default()
    }
}

impl Discipline for Returns {
    fn enqueue(&mut self, packet: Queued, _cx: &mut QueueContext) {
        self.0.get_or_insert(packet);
    }
    fn dequeue(&mut self, _cx: &mut QueueContext) -> Option<Queued> {
        self.0
    }
    fn reset(&mut self) {}
}

/// Schemes that do one thing wrong, which their key `fault` chooses.
mod faults {
    use std::fmt;
    use weftline_sim::balance::{self, *};
    use weftline_sim::compat::Rules;
    use weftline_sim::congestion::{self, *};
    use weftline_sim::counters::{Counter, CounterGroup};
    use weftline_sim::doc::{SchemeDoc, Series};
    use weftline_sim::packet::{Packet, PacketId, PacketSlab};
    use weftline_sim::parameters::Parameters;
    use weftline_sim::queue::{self, *};
    use weftline_sim::units::{Rate, Time};

    fn fault(p: &mut Parameters) -> i64 {
        p.integer("fault", 0, (0, 99), "What it does wrong.")
    }

    #[derive(Debug)]
    pub struct Queue(i64);
    pub struct Waits(i64, ClassLists);

    impl QueueParameters for Queue {
        type State = Waits;
        const DOC: SchemeDoc = SchemeDoc { name: "own-faulty-queue", title: "wrong", ..SchemeDoc::NONE };
        fn read(p: &mut Parameters, _: QueueDefaults) -> Queue {
            Queue(fault(p))
        }
        fn start(&self, _: &PortPlace) -> Waits {
            Waits(self.0, ClassLists::default())
        }
    }

    impl QueueDiscipline for Waits {
        fn enqueue(&mut self, id: PacketId, packets: &mut PacketSlab, _: Time) -> Verdict {
            match self.0 {
                1 => return Verdict::Queued,
                2 => return Verdict::Dropped(id ^ 1),
                3 => packets[id].size /= 2,
                4 => panic!("it was asked"),
                _ => {}
            }
            self.1.push(id, packets);
            Verdict::Queued
        }
        fn dequeue(&mut self, paused: u8, packets: &mut PacketSlab, _: Time) -> Option<PacketId> {
            if self.0 == 8 {
                return None;
            }
            let ready = self.1.occupied() & !(paused & !1);
            let id = (ready != 0).then(|| self.1.pop(ready.trailing_zeros() as usize, packets))?;
            match self.0 {
                5 => self.1.push(id, packets),
                6 => return Some(1 << 30),
                _ => {}
            }
            Some(id)
        }
        fn bytes(&self) -> u64 {
            self.1.bytes() * 7
        }
        fn class_bytes(&self, _: u8) -> u64 {
            u64::MAX
        }
        fn is_empty(&self) -> bool {
            self.0 == 7
        }
    }

    #[derive(Debug)]
    pub struct Balancer(i64);

    impl BalancerParameters for Balancer {
        type State = Chooses;
        const DOC: SchemeDoc = SchemeDoc { name: "own-faulty-balancer", title: "wrong", ..SchemeDoc::NONE };
        fn read(p: &mut Parameters) -> Balancer {
            Balancer(fault(p))
        }
        fn start(&self, _: &Place) -> Chooses {
            Chooses(self.0)
        }
        fn order(&self) -> Reorders {
            assert!(self.0 != 40, "it was asked");
            Reorders::Packets
        }
        fn at_host(&self, _: u64, _: u32) -> Option<Chooses> {
            (20..30).contains(&self.0).then_some(Chooses(self.0))
        }
    }

    pub struct Chooses(i64);

    impl LoadBalancer for Chooses {
        fn choose(&mut self, _: &Packet, candidates: &[u32], ports: &impl Ports) -> usize {
            match self.0 {
                1 => candidates.len(),
                2 => ports.backlog(1000) as usize,
                _ => 0,
            }
        }
        fn events(&self) -> Events {
            match self.0 {
                3..6 => Events::ARRIVALS.and(Events::FORWARDS),
                6 => Events::HOLDS,
                _ => Events::NONE,
            }
        }
        fn holds(&mut self, _: &Forward, packet: Held, _: u64, _: &mut impl SwitchContext) -> Option<Held> {
            if self.0 == 6 { None } else { Some(packet) }
        }
        fn on_arrival(&mut self, _: &Arrival, _: &mut u64) -> i32 {
            [0, i32::MIN, i32::MAX, 0].get(self.0 as usize - 2).copied().unwrap_or(0)
        }
        fn on_forward(&mut self, forward: &Forward, _: &mut u64) -> i32 {
            if self.0 == 5 { -i32::from(forward.packet.size) } else { 0 }
        }
        fn first_timer(&self) -> Option<Time> {
            (10..20).contains(&self.0).then_some(Time::from_us(1))
        }
        fn on_timer(&mut self, cx: &mut impl SwitchContext) -> Option<Time> {
            let probe = Packet { size: 64, ..Packet::default() };
            match self.0 {
                10 => cx.send(1000, probe),
                11 => cx.send(0, Packet { class: 200, ..probe }),
                12 => cx.send(0, Packet { size: 0, ..probe }),
                13 => return Some(cx.now()),
                14 => return Some(Time::ZERO),
                15 => (0..2).for_each(|port| cx.send(port, probe)),
                _ => {}
            }
            Some(cx.now() + Time::from_us(10))
        }
        fn on_send(&mut self, packet: &mut Packet, _: &HostPort<impl Wiring>) -> u64 {
            match self.0 {
                20 => packet.dst = 1 << 20,
                21 => packet.class = 77,
                22 => packet.size = 0,
                _ => {}
            }
            0
        }
    }

    #[derive(Debug)]
    pub struct Controller(i64);

    impl ControllerParameters for Controller {
        type State = Steers;
        const DOC: SchemeDoc = SchemeDoc {
            name: "own-faulty-controller",
            title: "wrong",
            series: &[Series::new("fault", "", "What it does wrong.")],
            ..SchemeDoc::NONE
        };
        const MARKS_AT_STEP: bool = true;
        fn read(p: &mut Parameters) -> Controller {
            Controller(fault(p))
        }
        fn needs(&self) -> Needs {
            Needs::window(congestion::Window::FollowsRate)
        }
        fn follow(&mut self, rules: &Rules) {
            if self.0 == 20 && rules.released_laws {
                self.0 = 3;
            }
        }
        fn derived(&self, line_rate: Rate) -> Vec<(&'static str, Rate)> {
            vec![("step_bps", Rate(line_rate.0 / 100))]
        }
        fn unfit(&self, _: Time) -> Option<String> {
            Some("own-faulty-controller suits no network".into())
        }
        fn unfit_at(&self, line_rate: Rate, _: u64, _: Time) -> Option<String> {
            Some(format!("own-faulty-controller suits no NIC of {line_rate}"))
        }
        fn start(&self, _: &FlowContext, _: usize) -> Steers {
            Steers(self.0)
        }
    }

    pub struct Steers(i64);

    impl CongestionController for Steers {
        fn on_start(&mut self, control: &mut Control) {
            if self.0 == 6 {
                control.timers[0] = Time::from_us(1);
            }
        }
        fn internals(&self, _: Time, out: &mut Vec<(&'static str, f64)>) {
            match self.0 {
                7 => out.push(("undeclared", 1.0)),
                8 => out.extend([("fault", 1.0), ("fault", 2.0)]),
                9 => out.push(("fault", f64::NAN)),
                fault => out.push(("fault", fault as f64)),
            }
        }
        fn on_ack(&mut self, ack: &Ack, control: &mut Control) {
            match self.0 {
                1 => control.timers[0] = ack.now,
                2 => control.timers[1] = Time::ZERO,
                3 => panic!("it was asked"),
                4 => control.cwnd = Some(0),
                5 => control.rate = Rate(u64::MAX),
                _ => {}
            }
        }
        fn on_timer(&mut self, timer: usize, now: Time, control: &mut Control) {
            control.timers[timer] = now;
        }
    }

    cause!(
        OWN_REASON,
        "own-reason",
        "drops for a reason of its own",
        "Every third packet.",
        "Drops of every third packet."
    );

    /// A discipline in a buffer of the port's own, with a reason of its own to drop packets.
    #[derive(Debug)]
    pub struct Early(i64);
    pub struct Thirds(i64, List, u64);

    impl DisciplineParameters for Early {
        type State = Thirds;
        const DOC: SchemeDoc = SchemeDoc {
            name: "own-thirds",
            title: "drops early",
            counters: &[&OWN_REASON],
            ..SchemeDoc::NONE
        };
        fn read(p: &mut Parameters) -> Early {
            Early(fault(p))
        }
        fn start(&self, _: Limit, _: &PortPlace) -> Thirds {
            Thirds(self.0, List::default(), 0)
        }
    }

    impl Discipline for Thirds {
        fn enqueue(&mut self, packet: Queued, cx: &mut QueueContext) {
            self.2 += 1;
            match self.0 {
                1 => {}
                2 => (0..2).for_each(|_| cx.drop(packet, &BUFFER)),
                3 => (0..2).for_each(|_| cx.waiting.push(&mut self.1, packet)),
                4 => {
                    cx.waiting.push(&mut self.1, packet);
                    cx.drop(packet, &EARLY);
                }
                5 => cx.waiting.push(&mut self.1, Queued { size: packet.size / 2, ..packet }),
                _ if packet.data && self.2.is_multiple_of(3) => cx.drop(packet, &OWN_REASON),
                _ => cx.waiting.push(&mut self.1, packet),
            }
        }
        fn dequeue(&mut self, cx: &mut QueueContext) -> Option<Queued> {
            if self.0 == 6 { None } else { cx.waiting.pop(&mut self.1) }
        }
        fn reset(&mut self) {
            self.1 = List::default();
        }
    }

    /// Whose text or keys cannot be.
    pub struct Wrong<const FAULT: u8>;

    impl<const FAULT: u8> fmt::Debug for Wrong<FAULT> {
        fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
            write!(f, "{FAULT}")
        }
    }

    static OWN_EARLY: CounterGroup = CounterGroup {
        table: "drop_causes",
        counters: &[Counter::sum("early", "packets", "early", "Early.")],
        ..CounterGroup::NONE
    };

    impl<const FAULT: u8> DisciplineParameters for Wrong<FAULT> {
        type State = Thirds;
        const DOC: SchemeDoc = SchemeDoc {
            name: "own-wrong",
            counters: if FAULT == 3 { &[&OWN_EARLY] } else { &[] },
            series: if FAULT == 4 { &[Series::new("rate_bps", "bit/s", "A rate.")] } else { &[] },
            ..SchemeDoc::NONE
        };
        fn read(p: &mut Parameters) -> Self {
            match FAULT {
                1 => p.number("cut", 5.0, (0.0, 1.0), "") as u64,
                2 => p.integer("packets", 5, (0, 10), "") as u64,
                5 => panic!("it was asked"),
                _ => 0,
            };
            Wrong
        }
        fn start(&self, _: Limit, _: &PortPlace) -> Thirds {
            Thirds(0, List::default(), 0)
        }
    }

    // The rooms' names, for those who read the uses above.
    const _: (&str, &str) = (queue::DEFAULT_KIND, balance::DEFAULT);
}

/// What a run says with a setting; `done` if it ends as any run.
fn message_for(setting: &str, value: &str) -> String {
    add();
    let text = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 3\n\
                [transport]\ncontroller = { kind = \"none\" }\n\
                [[workload]]\nkind = \"permutation\"\nsize = \"50KB\"\n\
                [[workload]]\nkind = \"incast\"\nsenders = 4\nsize = \"20KB\"\ncount = 1\n\
                [measure]\ncontrollers = { flows = [0], every = \"1us\" }\n[run]\nuntil = \"1ms\"\n";
    let config = common::load(text, &[(setting, value)]).unwrap().config().unwrap();
    let mut all = [1, 3].map(|regions| {
        let execution = Execution { threads: 1, regions: Some(regions), windows: None };
        let run = Simulation::new(config.clone(), execution);
        match run.and_then(|run| run.run(&mut Kept::default(), &mut |_| true)) {
            Ok(_) => "done".into(),
            Err(error) => error.to_string(),
        }
    });
    assert_eq!(all[0].split_once(':').map(|it| it.0), all[1].split_once(':').map(|it| it.0), "{all:?}");
    std::mem::take(&mut all[0])
}

#[test]
fn a_queue_that_loses_or_invents_packets_ends_the_run_with_its_name() {
    for (fault, expected) in [
        (0, "done"),
        (1, "dequeue returned none although "),
        (2, "which it does not hold"),
        (3, "it changed the size of a packet"),
        (4, "it was asked"),
        (5, "which it does not hold"),
        (6, "packet 1073741824, which it does not hold"),
        // What waits is counted for it.
        (7, "done"),
        (8, "dequeue returned none although "),
    ] {
        let text = message_for("switch.queue", &format!("{{ kind = 'own-faulty-queue', fault = {fault} }}"));
        assert!(text.contains(expected), "{fault}: {text}");
        assert!(expected == "done" || text.starts_with("queue \"own-faulty-queue\" panicked: "), "{text}");
    }
    let text = message_for("switch.queue.kind", "greedy");
    assert!(text.starts_with("queue \"greedy\" panicked: it returned packet "), "{text}");
}

#[test]
fn a_balancer_that_decides_what_no_switch_can_do_ends_the_run_with_its_name() {
    for (fault, expected) in [
        (0, "done"),
        (1, "it chose index 2 of 2 candidates"),
        (2, "port 1000 of a switch with "),
        (3, "it made a packet of "),
        (4, "it made a packet of "),
        (5, "it made a packet of "),
        (6, "it dropped 1 packets that it held"),
        (10, "port 1000 of a switch with "),
        (11, "in class 200"),
        (12, "a probe of 0 bytes"),
        (13, "must fire next at a later time"),
        (14, "must fire next at a later time"),
        // Hosts ignore probes.
        (15, "done"),
        (20, "it may change only"),
        (21, "it may change only"),
        (22, "it made a packet of "),
    ] {
        let text =
            message_for("switch.balancer", &format!("{{ kind = 'own-faulty-balancer', fault = {fault} }}"));
        assert!(text.contains(expected), "{fault}: {text}");
        let named = text.starts_with("balancer \"own-faulty-balancer\" panicked: ");
        assert!(expected == "done" || named, "{text}");
    }
}

#[test]
fn a_discipline_in_a_buffer_of_the_ports_own_that_loses_or_invents_packets_ends_the_run_with_its_name() {
    assert_eq!(message_for("switch.queue", "{ kind = 'own-thirds' }"), "done");
    // Builds that check sums find that those of the port are wrong before the ledger does.
    let none = "dequeue returned none although ";
    for (fault, expected) in
        [(1, none), (2, ""), (3, "which it does not hold"), (4, ""), (5, "was queued as one of"), (6, none)]
    {
        let text = message_for("switch.queue", &format!("{{ kind = 'own-thirds', fault = {fault} }}"));
        assert!(text.starts_with("queue \"own-thirds\" panicked: ") && text.contains(expected), "{text}");
    }
}

#[test]
fn a_reason_of_its_own_is_counted_at_every_port_and_named_among_the_metrics() {
    add();
    let text = "[topology]\nkind = \"star\"\nhosts = 4\n[switch]\nqueue = { kind = \"own-thirds\" }\n\
                [transport]\nkind = \"tcp\"\n[[workload]]\nkind = \"permutation\"\nsize = \"30KB\"\n";
    let (_, outcome) = run(common::load(text, &[]).unwrap().config().unwrap());
    let of_ports = outcome.disciplines.iter().map(|(_, _, counted)| counted.get("own-reason"));
    assert!(of_ports.clone().all(|drops| drops.is_some()));
    assert!(of_ports.flatten().sum::<u64>() > 0);
    assert!(weftline_sim::describe::explain("drops_own-reason").is_ok());
}

#[test]
fn what_the_parameters_of_a_controller_state_holds_outside_of_the_crate_too() {
    add();
    let text = "[topology]\nkind = \"star\"\nhosts = 4\n[transport]\n\
                controller = { kind = \"own-faulty-controller\" }\n\
                [[workload]]\nkind = \"permutation\"\nsize = \"30KB\"\n";
    let own = common::load(text, &[]).unwrap();
    for expected in ["suits no network", "suits no NIC of 100Gbps"] {
        assert!(own.warnings.iter().any(|warning| warning.contains(expected)), "{:?}", own.warnings);
    }
    let marks = |kind: &str| {
        let loaded = common::load(text, &[("transport.controller.kind", kind)]).unwrap();
        let table: toml::Table = loaded.resolved().parse().unwrap();
        table["switch"]["ecn"].clone()
    };
    assert_eq!(marks("own-faulty-controller"), marks("dctcp"));
    assert_ne!(marks("dctcp"), marks("dcqcn"));
}

#[test]
fn a_panic_while_a_scenario_is_read_names_the_scheme() {
    add();
    let text = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 3\n\
                [[workload]]\nkind = \"permutation\"\nsize = \"30KB\"\n";
    let balancer = [("switch.balancer", "{ kind = 'own-faulty-balancer', fault = 40 }")];
    let error = common::load(text, &balancer).err().unwrap();
    assert!(error.contains("balancer \"own-faulty-balancer\" panicked: it was asked"), "{error}");
}

#[test]
fn a_scheme_whose_keys_or_names_cannot_be_is_not_added() {
    use faults::Wrong;
    for (wrong, expected) in [
        (Schemes::of("a", "1").queue::<ManagedConfig<Wrong<1>>>(), "key \"cut\": its default 5"),
        (Schemes::of("a", "1").queue::<ManagedConfig<Wrong<2>>>(), "key \"packets\" is declared twice"),
        (Schemes::of("a", "1").queue::<ManagedConfig<Wrong<3>>>(), "counter \"early\": there is one"),
        (Schemes::of("a", "1").queue::<ManagedConfig<Wrong<4>>>(), "series \"rate_bps\": expected a name"),
        (Schemes::of("a", "1").queue::<ManagedConfig<Wrong<5>>>(), "panicked: it was asked"),
    ] {
        let error = wrong.add().unwrap_err();
        assert!(error.starts_with("queue \"own-wrong\"") && error.contains(expected), "{error}");
    }
}

#[test]
fn a_controller_that_stops_time_ends_the_run_with_its_name() {
    for (fault, expected) in [
        (0, "done"),
        (1, "it set a timer for "),
        (2, "it set a timer for "),
        (3, "it was asked"),
        (4, "done"),
        (5, "done"),
        (6, "it set a timer in on_start"),
        (7, "internals gave \"undeclared\", which the series of its DOC do not have"),
        (8, "internals gave \"fault\" twice"),
        (9, "internals gave \"fault\" a value that is not a number"),
    ] {
        let text = message_for(
            "transport.controller",
            &format!("{{ kind = 'own-faulty-controller', fault = {fault} }}"),
        );
        assert!(text.contains(expected), "{fault}: {text}");
        let named = text.starts_with("controller \"own-faulty-controller\" panicked: ");
        assert!(expected == "done" || named, "{text}");
    }
}

#[test]
fn a_controller_of_another_crate_follows_the_rules_of_the_run() {
    add();
    let text = "[topology]\nkind = \"star\"\nhosts = 4\n[transport]\n\
                controller = { kind = \"own-faulty-controller\", fault = 20 }\n\
                [[workload]]\nkind = \"permutation\"\nsize = \"30KB\"\n";
    let outcome = |like: &str| {
        let config = common::load(text, &[("compat.like", like)]).unwrap().config().unwrap();
        let run = Simulation::new(config, Execution { threads: 1, regions: None, windows: None });
        run.and_then(|run| run.run(&mut Kept::default(), &mut |_| true)).map_err(|error| error.to_string())
    };
    assert!(outcome("none").is_ok());
    assert!(outcome("powertcp-ns3").unwrap_err().contains("it was asked"));
}
