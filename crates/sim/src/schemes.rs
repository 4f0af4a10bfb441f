//! Schemes of another crate, on their way to their rooms.
//!
//! A crate that has a controller of its own adds it once, before anything is read:
//!
//! ```ignore
//! Schemes::of("own-scheme", "0.1.0").controller::<AimdParameters>().add()?;
//! ```
//!
//! From then on scenarios may name it, and it has its keys, its text and its errors as if it stood in this crate.

use crate::congestion::{self, ControllerParameters, ReadController};
use crate::external::{Package, note_places, remember};
use std::fmt;

/// The schemes that a crate adds.
pub struct Schemes {
    package: Package,
    controllers: Vec<ReadController>,
}

impl Schemes {
    /// None yet, of a crate with this name and version; they are in the results of every run that a scheme takes part in.
    pub fn of(package: &str, version: &str) -> Schemes {
        let package = Package { name: format!("{package} {version}"), schemes: Vec::new() };
        Schemes { package, controllers: Vec::new() }
    }

    /// With a congestion controller of queue pairs, by its parameters. Its name is that of its `DOC`.
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

    /// Adds them all. A panic of one ends the run that it happens in with an error that names the scheme and the line.
    ///
    /// Errors: the message says which name is taken or not allowed, or that this came too late: schemes are added once.
    pub fn add(self) -> Result<(), String> {
        congestion::add(self.controllers)?;
        note_places();
        remember(self.package);
        Ok(())
    }
}
