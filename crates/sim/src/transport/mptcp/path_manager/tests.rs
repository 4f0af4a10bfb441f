use crate::measure::{FlowRecord, Sample, Sink};
use crate::scenario::{Hooks, Scenario};
use crate::units::Time;
use crate::{Execution, Simulation};
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

/// When a flow of 1 MB ends between two hosts that have a NIC in each of two planes.
fn end(scheduler: &str, reinject: bool, event: &str, detection: &str) -> Option<Time> {
    let text = format!(
        "[topology]\nkind = \"hpn\"\nsegments = 1\nnodes_per_segment = 2\ngpus = 1\nspines = 1\n\
         host_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
         [transport]\nkind = \"mptcp\"\nscheduler = \"{scheduler}\"\nreinject = {reinject}\n\
         [[workload]]\nkind = \"flows\"\nflows = [{{ src = 0, dst = 1, size = \"1MB\" }}]\n\
         [failures]\ndetection = \"{detection}\"\nevent = [{event}]\n[run]\nstall = \"20s\"\n"
    );
    let scenario = Scenario::load(&text, "s.toml", Path::new("."), &[], None, Hooks::default());
    let config = scenario.unwrap_or_else(|error| panic!("{error}")).config().expect("a configuration");
    let mut records = Records::default();
    let run = Simulation::new(config, Execution::default()).expect("a valid configuration");
    run.run(&mut records, &mut |_| true).expect("a valid run");
    records.0[0].finish
}

#[test]
fn what_has_not_left_by_a_nic_whose_link_goes_leaves_by_the_other_one() {
    // Subflows that were given data and have nothing in flight have no timeout that tells the others.
    for (scheduler, reinject) in ["min-rtt", "round-robin", "linux"]
        .into_iter()
        .flat_map(|s| [true, false].map(|reinject| (s, reinject)))
    {
        for (at, detection) in [(30, "1000s"), (50, "100us"), (100, "1000s"), (150, "0s"), (300, "100us")] {
            let event = format!("{{ at = \"{at}us\", link = [\"host0\", \"tor0\"] }}");
            let finish = end(scheduler, reinject, &event, detection);
            println!("{scheduler}, {reinject}, {at} us, {detection}: {finish:?}");
            assert!(finish.is_some(), "{scheduler}, reinject = {reinject}, {at} us, {detection}");
        }
    }
}

#[test]
fn a_nic_whose_link_is_back_soon_is_used_again() {
    for scheduler in ["min-rtt", "round-robin", "linux"] {
        let back = end(
            scheduler,
            true,
            "{ at = \"100us\", link = [\"host0\", \"tor0\"], lasts = \"50us\" }",
            "10us",
        );
        assert!(back.is_some_and(|end| end < Time::from_ms(300)), "{scheduler}: {back:?}");
    }
}
