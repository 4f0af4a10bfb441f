//! A queue discipline of another crate: it is added once, and named like those of this one. A binary of its own, because what is
//! added is there for the whole process.

mod common;

use common::*;
use weftline_sim::config::Config;
use weftline_sim::doc::SchemeDoc;
use weftline_sim::parameters::Parameters;
use weftline_sim::queue::{
    BUFFER, Discipline, DisciplineParameters, Limit, List, ManagedConfig, PortPlace, QueueContext, Queued,
};
use weftline_sim::schemes::Schemes;

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

#[test]
fn it_is_named_in_a_scenario_and_the_built_in_fifo_written_again_gives_the_same_bits() {
    Schemes::of("own", "1").queue::<ManagedConfig<OutsideConfig>>().add().unwrap();
    let load = |queue: &str| {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 8\n[switch]\npfc = {{ enabled = false }}\nqueue = {queue}\n\
             [transport]\nkind = \"tcp\"\n[[workload]]\nkind = \"incast\"\nsenders = 7\nsize = \"100KB\"\ncount = 2\n"
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
