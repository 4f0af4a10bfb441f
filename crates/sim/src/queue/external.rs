//! A queue discipline of another crate, written like those of this room: over the switch's buffer with [`QueueParameters`], over one
//! of the port's own with [`DisciplineParameters`](super::DisciplineParameters).
//!
//! Everything that a port asks it costs a call through a pointer, several a packet, and its state lies in memory of its own. A panic
//! names the discipline.

use super::{
    PortPlace, QueueCounters, QueueDefaults, QueueDiscipline, QueueFacts, QueueParameters, Verdict,
    forward_to,
};
use crate::counters::CounterSet;
use crate::doc::SchemeDoc;
use crate::external::{Added, Scheme, guarded};
use crate::packet::{PacketId, PacketSlab};
use crate::parameters::Parameters;
use crate::units::{Rate, Time};
use std::fmt;
use std::sync::Arc;

type Read = fn(&mut Parameters, QueueDefaults) -> ExternalQueue;

static ADDED: Added<Read> = Added::none("queue");

pub(crate) type ReadQueue = Scheme<Read>;

/// A discipline of another crate by its parameters.
pub(crate) fn external<P>() -> ReadQueue
where
    P: QueueParameters<State: Send + 'static> + fmt::Debug + Send + Sync + 'static,
{
    Scheme { doc: P::DOC, read: |p, defaults| ExternalQueue { parameters: Arc::new(P::read(p, defaults)) } }
}

/// Adds disciplines of another crate to those that a scenario may name. Errors: see [`Added::add`].
pub(crate) fn add(schemes: Vec<ReadQueue>) -> Result<(), String> {
    ADDED.add(super::KINDS, schemes)
}

/// The parameters of a discipline of another crate.
#[derive(Clone)]
pub struct ExternalQueue {
    parameters: Arc<dyn AnyParameters>,
}

impl ExternalQueue {
    pub(super) fn named(kind: &str, p: &mut Parameters, defaults: QueueDefaults) -> Option<ExternalQueue> {
        ADDED.read(kind, p, |read, p| read(p, defaults))
    }
    pub(super) fn kinds(own: &[(&'static str, &'static str)]) -> &'static [(&'static str, &'static str)] {
        ADDED.kinds(own)
    }
    pub(super) fn doc(&self) -> SchemeDoc {
        self.parameters.doc()
    }
    pub(super) fn facts(&self) -> QueueFacts {
        self.parameters.facts()
    }
    pub(super) fn warning(&self, rate: Rate, port: &dyn Fn() -> String) -> Option<String> {
        self.parameters.warning(rate, port)
    }
    pub(super) fn start(&self, place: &PortPlace) -> External {
        let name = self.doc().name;
        External { name, queue: guarded("queue", name, || self.parameters.start(place)) }
    }
}

impl fmt::Debug for ExternalQueue {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.parameters.fmt(f)
    }
}

impl PartialEq for ExternalQueue {
    fn eq(&self, other: &ExternalQueue) -> bool {
        self.doc() == other.doc() && format!("{self:?}") == format!("{other:?}")
    }
}

/// [`QueueParameters`] behind a pointer.
trait AnyParameters: fmt::Debug + Send + Sync {
    fn doc(&self) -> SchemeDoc;
    fn facts(&self) -> QueueFacts;
    fn warning(&self, rate: Rate, port: &dyn Fn() -> String) -> Option<String>;
    fn start(&self, place: &PortPlace) -> Box<dyn QueueDiscipline + Send>;
}

impl<P: QueueParameters<State: Send + 'static> + fmt::Debug + Send + Sync> AnyParameters for P {
    fn doc(&self) -> SchemeDoc {
        P::DOC
    }
    fn facts(&self) -> QueueFacts {
        QueueParameters::facts(self)
    }
    fn warning(&self, rate: Rate, port: &dyn Fn() -> String) -> Option<String> {
        QueueParameters::warning(self, rate, port)
    }
    fn start(&self, place: &PortPlace) -> Box<dyn QueueDiscipline + Send> {
        Box::new(QueueParameters::start(self, place))
    }
}

/// The queue of a port.
pub struct External {
    name: &'static str,
    queue: Box<dyn QueueDiscipline + Send>,
}

macro_rules! each_guarded {
    ($external:ident, $q:ident => $it:ident.$call:ident($($argument:expr),*)) => {
        guarded("queue", $external.name, || $external.queue.$call($($argument),*))
    };
}

impl QueueDiscipline for External {
    forward_to!(each_guarded);
}
