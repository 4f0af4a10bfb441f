//! Adds the schemes of another crate to their rooms.
//!
//! A crate that has a controller of its own adds it once, before any scenario is read:
//!
//! ```ignore
//! Schemes::of("own-scheme", "0.1.0").controller::<AimdParameters>().add()?;
//! ```
//!
//! After that, scenarios may name it, and its keys, texts and errors work like those of this crate's
//! controllers.

use crate::balance::external::{self as balancers, ReadBalancer};
use crate::balance::{self, BalancerParameters, LoadBalancer};
use crate::congestion::{self, ControllerParameters, ReadController};
use crate::external::{Package, caught, guarded, note_places, remember, wrong_counter, wrong_key};
use crate::measure::WAITS;
use crate::parameters::{Nothing, Parameters};
use crate::queue::external::{self as queues, ReadQueue};
use crate::queue::{self, QueueDefaults, QueueParameters};
use crate::{telemetry, topology, transport, workload};
use std::fmt;

/// The schemes that a crate adds.
pub struct Schemes {
    package: Package,
    controllers: Vec<ReadController>,
    balancers: Vec<ReadBalancer>,
    queues: Vec<ReadQueue>,
}

impl Schemes {
    /// An empty list for a crate with this name and version, which the results of every run with its schemes
    /// record.
    pub fn of(package: &str, version: &str) -> Schemes {
        let package = Package { name: format!("{package} {version}"), schemes: Vec::new() };
        Schemes { package, controllers: Vec::new(), balancers: Vec::new(), queues: Vec::new() }
    }

    /// Appends a congestion controller of queue pairs, by the type of its parameters; `DOC` has its name.
    #[must_use]
    pub fn controller<P>(mut self) -> Schemes
    where
        P: ControllerParameters + fmt::Debug + Send + Sync + 'static,
        P::State: Send + 'static,
    {
        self.package.schemes.push(("controllers", P::DOC));
        self.controllers.push(congestion::external::<P>());
        self
    }

    /// Appends a load balancer, by the type of its parameters; `DOC` has its name.
    #[must_use]
    pub fn balancer<P>(mut self) -> Schemes
    where
        P: BalancerParameters<State: LoadBalancer + Send + 'static> + fmt::Debug + Send + Sync + 'static,
    {
        self.package.schemes.push(("balancers", P::DOC));
        self.balancers.push(balancers::external::<P>());
        self
    }

    /// Appends a queue discipline, by the type of its parameters; `DOC` has its name. One over a buffer of
    /// the port's own is a [`ManagedConfig`](crate::queue::ManagedConfig) of its parameters.
    #[must_use]
    pub fn queue<P>(mut self) -> Schemes
    where
        P: QueueParameters<State: Send + 'static> + fmt::Debug + Send + Sync + 'static,
    {
        self.package.schemes.push(("queues", P::DOC));
        self.queues.push(queues::external::<P>());
        self
    }

    /// Adds all schemes of the list. A panic of one of them ends its run with an error that names the scheme
    /// and the line.
    ///
    /// Errors: a name is taken or not allowed, a key cannot be what is declared, or schemes were added before: a
    /// process adds schemes once.
    pub fn add(self) -> Result<(), String> {
        self.package.check_names(&[
            balance::KINDS,
            congestion::KINDS,
            congestion::window::KINDS,
            queue::KINDS,
            topology::KINDS,
            transport::KINDS,
            workload::KINDS,
        ])?;
        self.check_declared()?;
        congestion::ADDED.add(self.controllers)?;
        balancers::ADDED.add(self.balancers)?;
        queues::ADDED.add(self.queues)?;
        note_places();
        remember(self.package);
        Ok(())
    }

    /// Checks keys, counters and series of each scheme.
    fn check_declared(&self) -> Result<(), String> {
        let docs = [balance::DOCS, transport::DOCS, telemetry::DOCS].into_iter().flatten();
        let of_docs = docs.flat_map(|doc| doc.counters).copied();
        let mut others: Vec<_> = queue::counters().into_iter().chain([&WAITS]).chain(of_docs).collect();
        for (room, doc) in &self.package.schemes {
            let mut nothing = Nothing::default();
            let p = &mut Parameters::new(&mut nothing);
            let read = caught(|| guarded(room.trim_end_matches('s'), doc.name, || self.read(doc.name, p)));
            read.map_err(|panic| panic.to_string())?;
            let wrong = wrong_key(&nothing.declared).or_else(|| wrong_counter(doc, &others));
            if let Some(wrong) = wrong {
                return Err(format!("{} \"{}\": {wrong}", room.trim_end_matches('s'), doc.name));
            }
            others.extend(doc.counters);
        }
        Ok(())
    }

    /// Reads the keys of one of the schemes.
    fn read(&self, name: &str, p: &mut Parameters) {
        for one in self.controllers.iter().filter(|one| one.doc.name == name) {
            (one.read)(p);
        }
        for one in self.balancers.iter().filter(|one| one.doc.name == name) {
            (one.read)(p);
        }
        for one in self.queues.iter().filter(|one| one.doc.name == name) {
            (one.read)(p, QueueDefaults::default());
        }
    }
}
