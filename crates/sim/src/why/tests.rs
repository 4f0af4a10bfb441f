use super::*;
use crate::measure::{FlowRecord, Sample};
use crate::scenario::{Hooks, Scenario};
use std::io;
use std::path::Path;

#[derive(Default)]
struct Records(Vec<FlowRecord>);

impl Sink for Records {
    fn flows(&mut self, batch: &[FlowRecord]) -> io::Result<()> {
        self.0.extend_from_slice(batch);
        Ok(())
    }
    fn samples(&mut self, _: &[Sample]) -> io::Result<()> {
        Ok(())
    }
}

/// The accounts of all flows of a scenario by number, and how the links are named.
fn accounts_of(text: &str) -> (Vec<Account>, Vec<String>) {
    let scenario = Scenario::load(text, "s.toml", Path::new("."), &[], None, Hooks::default());
    let config = scenario.unwrap_or_else(|error| panic!("{error}")).config().expect("a valid scenario");
    let mut records = Records::default();
    let run = Simulation::new(config.clone(), Execution::default()).expect("a valid configuration");
    run.run(&mut records, &mut |_| true).expect("a valid run");
    let traced = |one: &FlowRecord| Traced {
        flow: one.flow,
        src: one.src,
        dst: one.dst,
        start: one.start,
        finish: one.finish.expect("a flow that ended"),
    };
    let mut flows: Vec<Traced> = records.0.iter().map(traced).collect();
    flows.sort_by_key(|flow| flow.flow);
    let nodes: Vec<String> = config.topology.nodes.iter().map(|node| node.name.clone()).collect();
    let (_, findings) =
        trace(config, &flows, Breadth::All, &mut Records::default(), &mut |_| true).expect("a trace");
    let name =
        |link: &(u32, u32, u32, Time)| format!("{}->{}", nodes[link.0 as usize], nodes[link.1 as usize]);
    (accounts(&flows, &findings), findings.links.iter().map(name).collect())
}

fn time_of(account: &Account, cause: Cause) -> Time {
    account.by_cause().get(&cause).copied().unwrap_or_default()
}

/// Four flows into host3, and one from the rack of the first of them to another host: all senders are paused, and one
/// port alone is busy all the time.
#[test]
fn pauses_go_back_to_the_port_that_sends_as_fast_as_it_can() {
    let (accounts, links) = accounts_of(
        "[topology]\nkind = \"leaf-spine\"\nleaves = 3\nspines = 1\nhosts_per_leaf = 3\n\
         host_link = { rate = \"100Gbps\", delay = \"1us\" }\nfabric_link = { rate = \"200Gbps\", delay = \"1us\" }\n\
         [switch]\nbuffer = \"1MiB\"\n[transport]\ncontroller = { kind = \"none\" }\n\
         [[workload]]\nkind = \"flows\"\nflows = [\n\
         { src = 0, dst = 3, size = \"2MB\" }, { src = 6, dst = 3, size = \"2MB\" }, { src = 7, dst = 3, size = \"2MB\" },\n\
         { src = 4, dst = 3, size = \"2MB\" }, { src = 1, dst = 5, size = \"1MB\" } ]\n",
    );
    for account in &accounts {
        let paused: Time = account.paused_for.values().fold(Time::ZERO, |sum, &time| sum + time);
        assert_eq!(paused, time_of(account, Cause::Pause));
        assert!(paused > Time::from_us(10), "flow {}: {paused}", account.flow.flow);
        let of_port = account
            .paused_for
            .iter()
            .filter(|((_, origin), _)| origin.is_some_and(|origin| links[origin as usize] == "leaf1->host3"));
        let of_port: u64 = of_port.map(|(_, time)| time.0).sum();
        assert!(of_port as f64 >= 0.9 * paused.0 as f64, "{:?}", account.paused_for);
    }
    for share in limits(&accounts).iter().filter(|share| share.cause == Cause::Pause) {
        let origin = share.paused_for.map(|link| links[link as usize].as_str());
        assert_eq!(origin, Some("leaf1->host3"), "{share:?}");
    }
}

/// The acknowledgements of flow 4, from host4 to host0, leave by the link that is down from 500 us on.
#[test]
fn acknowledgements_that_were_lost_are_named_though_no_packet_was_sent_again() {
    let (accounts, links) = accounts_of(
        "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\n\
         host_link = { rate = \"10Gbps\", delay = \"1us\" }\nfabric_link = { rate = \"10Gbps\", delay = \"1us\" }\n\
         [transport]\nkind = \"tcp\"\ncontroller = { kind = \"newreno\" }\n\
         [[workload]]\nkind = \"permutation\"\npartners = \"shift\"\nshift = 4\nsize = \"2MB\"\n\
         [failures]\ndetection = \"1ms\"\n\
         [[failures.event]]\nat = \"500us\"\nlink = [\"leaf0\", \"spine0\"]\nlasts = \"3ms\"\n",
    );
    let account = &accounts[4];
    assert!(time_of(account, Cause::Receiver) > Time::from_ms(30), "{:?}", account.by_cause());
    assert_eq!(time_of(account, Cause::Retransmission) + time_of(account, Cause::Timeout), Time::ZERO);
    let lost: Vec<(&Place, &usize)> = account.lost.iter().collect();
    let [(&Place::Link(link), &packets)] = lost[..] else { panic!("{lost:?}") };
    assert_eq!((links[link as usize].as_str(), packets > 50), ("leaf0->spine0", true), "{packets}");
    assert_eq!(account.answers_lost, account.lost);
}

#[test]
fn a_wait_for_a_probe_of_a_subflow_is_loss_detection() {
    let (accounts, _) = accounts_of(
        "[topology]\nkind = \"star\"\nhosts = 5\n[transport]\nkind = \"mptcp\"\n\
         [switch]\nbuffer = \"256KiB\"\npfc = { enabled = false }\n\
         [[workload]]\nkind = \"incast\"\nsize = \"300KB\"\nsenders = 4\nreceiver = \"0\"\n",
    );
    let detection = accounts.iter().map(|account| time_of(account, Cause::LossDetection)).max();
    assert!(detection > Some(Time::from_ms(199)), "{detection:?}");
    assert!(accounts.iter().all(|account| time_of(account, Cause::Timeout) == Time::ZERO));
}

/// Two senders that are paced over one link to two receivers.
#[test]
fn of_a_flow_that_is_paced_the_busiest_link_is_the_shared_one() {
    let (accounts, links) = accounts_of(
        "[topology]\nkind = \"dumbbell\"\nleft = 2\nright = 2\n\
         [[workload]]\nkind = \"bulk\"\nhosts = \"0-1\"\nto = \"2-3\"\nsize = \"2MB\"\n",
    );
    for account in &accounts {
        let spent = account.flow.finish - account.flow.start;
        let share = |link: &u32| account.used[link].0 as f64 / spent.0 as f64;
        let busiest = account.used.keys().max_by(|a, b| share(a).total_cmp(&share(b))).expect("links");
        assert_eq!(links[*busiest as usize], "s0->s1");
        assert!(share(busiest) > 0.85, "{}", share(busiest));
        assert!(account.used.keys().filter(|link| *link != busiest).all(|link| share(link) < 0.7));
        assert!(time_of(account, Cause::Pacing) > Time(spent.0 / 4), "{:?}", account.by_cause());
    }
}

/// All hosts of a rack send to those of the other one, over a link with half the rate of one host.
#[test]
fn packets_that_a_narrow_link_trims_are_counted_there_and_their_resends_in_the_time_of_nics() {
    let (accounts, links) = accounts_of(
        "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 3\n\
         fabric_link = { rate = \"50Gbps\" }\n[transport]\nkind = \"ndp\"\n\
         [[workload]]\nkind = \"all-to-all\"\nsize = \"100KB\"\n",
    );
    let mut trimmed: BTreeMap<String, usize> = BTreeMap::new();
    let (mut nic, mut again) = (0, 0);
    for account in &accounts {
        let name = |place: &Place| match *place {
            Place::Link(link) => links[link as usize].clone(),
            other => format!("{other:?}"),
        };
        account.trimmed.iter().for_each(|(place, count)| *trimmed.entry(name(place)).or_default() += count);
        assert!(account.nic_again <= time_of(account, Cause::Nic));
        (nic, again) = (nic + time_of(account, Cause::Nic).0, again + account.nic_again.0);
    }
    let all: usize = trimmed.values().sum();
    let at_uplinks = trimmed["leaf0->spine0"] + trimmed["leaf1->spine0"];
    assert!(at_uplinks == all && all > 1000, "{trimmed:?}");
    assert!(again > nic / 2, "{again} of {nic}");
}
