//! A queue discipline from outside this crate.
//!
//! It is written as those of this room are: parameters with [`QueueParameters`] over the switch's buffer, or with
//! [`DisciplineParameters`](super::DisciplineParameters) over one of the port's own, and its state. A scenario may name the
//! disciplines that it is given ([`Hooks`](crate::scenario::Hooks)) as it names those of this room.
//!
//! It costs a call through a pointer for everything that a port asks it, several a packet, and its state lies in memory of its
//! own, beside the port.

use super::{PortPlace, QueueDefaults, QueueDiscipline, QueueFacts, QueueParameters};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;
use crate::units::Rate;
use std::fmt;
use std::sync::Arc;

/// A discipline that a scenario may name: its texts, and what reads its keys.
#[derive(Clone)]
pub struct ExternalQueue {
    pub doc: SchemeDoc,
    pub read: Arc<dyn Fn(&mut Parameters, QueueDefaults) -> ExternalConfig + Send + Sync>,
}

impl ExternalQueue {
    /// The discipline with these parameters.
    pub fn of<P>() -> ExternalQueue
    where
        P: QueueParameters<State: QueueDiscipline + Send + 'static> + Send + Sync + 'static,
    {
        let read =
            |p: &mut Parameters, defaults| ExternalConfig { parameters: Arc::new(P::read(p, defaults)) };
        ExternalQueue { doc: P::DOC, read: Arc::new(read) }
    }
}

/// One with its parameters. Equal when it is the very same.
#[derive(Clone)]
pub struct ExternalConfig {
    parameters: Arc<dyn AnyParameters>,
}

impl ExternalConfig {
    pub(super) fn doc(&self) -> SchemeDoc {
        self.parameters.doc()
    }
    pub(super) fn facts(&self) -> QueueFacts {
        self.parameters.facts()
    }
    pub(super) fn warning(&self, rate: Rate, port: &dyn Fn() -> String) -> Option<String> {
        self.parameters.warning(rate, port)
    }
    pub(super) fn start(&self, place: &PortPlace) -> Box<dyn QueueDiscipline + Send> {
        self.parameters.start(place)
    }
}

impl fmt::Debug for ExternalConfig {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_tuple("ExternalConfig").field(&self.doc().name).finish()
    }
}

impl PartialEq for ExternalConfig {
    fn eq(&self, other: &ExternalConfig) -> bool {
        Arc::ptr_eq(&self.parameters, &other.parameters)
    }
}

/// [`QueueParameters`] behind a pointer.
trait AnyParameters: Send + Sync {
    fn doc(&self) -> SchemeDoc;
    fn facts(&self) -> QueueFacts;
    fn warning(&self, rate: Rate, port: &dyn Fn() -> String) -> Option<String>;
    fn start(&self, place: &PortPlace) -> Box<dyn QueueDiscipline + Send>;
}

impl<P: QueueParameters<State: QueueDiscipline + Send + 'static> + Send + Sync> AnyParameters for P {
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
