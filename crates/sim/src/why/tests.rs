//! Tests of what flows waited for at transports' own timers, and of packets that had no route.

use super::*;
use crate::measure::{DigestRecord, FlowRecord, Frames, Sample};
use crate::scenario::{Hooks, Scenario};
use std::io;
use std::path::Path;

/// Keeps the records of flows.
#[derive(Default)]
struct Flows(Vec<FlowRecord>);

impl Sink for Flows {
    fn flows(&mut self, batch: &[FlowRecord]) -> io::Result<()> {
        self.0.extend_from_slice(batch);
        Ok(())
    }
    fn samples(&mut self, _: &[Sample]) -> io::Result<()> {
        Ok(())
    }
    fn digests(&mut self, _: &[DigestRecord]) -> io::Result<()> {
        Ok(())
    }
    fn frames(&mut self, _: &Frames) -> io::Result<bool> {
        Ok(false)
    }
}

/// The accounts of all flows of a scenario, and its configuration.
fn accounts_of(text: &str) -> (Vec<Account>, Config) {
    let scenario = Scenario::load(text, "s.toml", Path::new("."), &[], None, Hooks::default());
    let config =
        scenario.unwrap_or_else(|error| panic!("{error}")).config().unwrap_or_else(|error| panic!("{error}"));
    let mut flows = Flows::default();
    let run = Simulation::new(config.clone(), Execution::default()).expect("a run");
    run.run(&mut flows, &mut |_| true).expect("a run");
    let traced: Vec<Traced> = flows
        .0
        .iter()
        .filter_map(|one| {
            let finish = one.finish?;
            Some(Traced { flow: one.flow, src: one.src, dst: one.dst, start: one.start, finish })
        })
        .collect();
    let again = trace(config.clone(), &traced, Breadth::All, &mut Flows::default(), &mut |_| true);
    let found = accounts(&traced, &again.expect("a run").1);
    assert!(found.iter().all(Account::adds_up), "{found:?}");
    (found, config)
}

fn of(account: &Account, cause: Cause) -> Time {
    account.by_cause().get(&cause).copied().unwrap_or_default()
}

/// One flow over a star whose last link is down for 1.1 us, while its first packets are there.
fn lossy(transport: &str, size: &str) -> String {
    format!(
        "[topology]\nkind = \"star\"\nhosts = 3\nhost_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
         [transport]\n{transport}\n[[workload]]\nkind = \"flows\"\nflows = [{{ src = 1, dst = 0, size = \"{size}\" }}]\n\
         [[failures.event]]\nat = \"1500ns\"\nlink = [\"host0\", \"s0\"]\nlasts = \"1100ns\"\n"
    )
}

#[test]
fn a_transports_own_timer_is_a_timeout_in_its_words() {
    for (transport, size, shortest, until) in [
        ("kind = \"homa\"\nrto = \"1ms\"", "1KB", 999, "until the sender, which had received no answer"),
        ("kind = \"homa\"\nrto = \"1ms\"", "20KB", 999, "until the receiver requested packets"),
        ("kind = \"ndp\"\nrto = \"200us\"", "1KB", 199, "until the sender sent packets again"),
        ("kind = \"phost\"\nrequest_timeout = \"100us\"", "1KB", 99, "until the source repeated its request"),
        (
            "kind = \"phost\"\nrequest_timeout = \"100us\"",
            "1KB",
            1,
            "until the destination gave tokens again",
        ),
        ("kind = \"rdma\"\nrto = \"1ms\"", "1KB", 999, "until the sender's retransmission timeout"),
    ] {
        let (found, _) = accounts_of(&lossy(transport, size));
        let waited = &found[0].waited_until;
        let named = waited.iter().find(|(words, _)| words.starts_with(until));
        assert!(named.is_some_and(|(_, &time)| time >= Time::from_us(shortest)), "{transport}: {waited:?}");
        let all = waited.values().map(|time| time.0).sum();
        assert_eq!(of(&found[0], Cause::Timeout), Time(all), "{transport}");
        assert_eq!(of(&found[0], Cause::Transport), Time::ZERO, "{transport}");
    }
}

#[test]
fn a_switch_without_a_route_is_named_with_the_time_at_which_it_lost_it() {
    let text = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 1\n\
                [transport.controller]\nkind = \"dcqcn\"\n[[workload]]\nkind = \"flows\"\n\
                flows = [{ src = 0, dst = 1, size = \"5MB\" }]\n[failures]\ndetection = \"20us\"\n\
                [[failures.event]]\nat = \"100us\"\nlink = [\"leaf1\", \"spine0\"]\nlasts = \"200us\"\n";
    let (found, config) = accounts_of(text);
    let named = |name: &str| config.topology.nodes.iter().position(|node| node.name == name);
    let node = named("leaf0").expect("a leaf") as u32;
    let place = Place::WithoutRoute { node, dst: 1, since: Time::from_us(120) };
    assert!(found[0].lost.get(&place).is_some_and(|&packets| packets > 100), "{:?}", found[0].lost);
    let elsewhere = found[0].lost.keys().filter(|place| matches!(place, Place::Node(_)));
    assert_eq!(elsewhere.count(), 0, "{:?}", found[0].lost);
}

#[test]
fn no_timeout_is_found_where_nothing_is_lost() {
    for transport in crate::transport::DECLARED {
        for loss in ["0", "0.02"] {
            let text = format!(
                "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 1\nhosts_per_leaf = 1\nextra_hosts = 1\n\
                 [transport]\nkind = \"{}\"\n[[workload]]\nkind = \"permutation\"\nsize = \"200KB\"\n\
                 [failures]\nloss = {loss}\nloss_of = \"data\"\n",
                transport.name
            );
            let (found, _) = accounts_of(&text);
            let waited = found.iter().filter(|one| !one.waited_until.is_empty()).count();
            assert!(loss != "0" || waited == 0, "{}: {found:?}", transport.name);
        }
    }
}
