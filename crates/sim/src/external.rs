//! Schemes that another crate adds to a room, and how their panics are reported.
//!
//! A room keeps the schemes that were added in an [`Added`]. The module that is built from the other crate
//! fills it once, before any scenario is read. After that an added scheme has its name in scenarios, its keys
//! in the schema, and its text in `weftline list` and `weftline explain`, like the schemes of this crate. Its
//! additional cost is a call through a pointer.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, OnceLock};

use crate::counters::CounterGroup;
use crate::doc::SchemeDoc;
use crate::parameters::{Declared, Kind, Parameters};

/// A scheme of another crate: its text, and the function that reads its parameters.
#[derive(Debug, Clone, Copy)]
pub struct Scheme<Read> {
    pub doc: SchemeDoc,
    pub read: Read,
}

/// The schemes that were added to a room.
pub struct Added<Read: 'static> {
    /// The noun for a scheme of the room, such as `controller`.
    what: &'static str,
    schemes: OnceLock<Vec<Scheme<Read>>>,
    kinds: OnceLock<Vec<(&'static str, &'static str)>>,
}

impl<Read> Added<Read> {
    /// An empty list. `what`: the noun for a scheme of the room in messages.
    pub const fn none(what: &'static str) -> Added<Read> {
        Added { what, schemes: OnceLock::new(), kinds: OnceLock::new() }
    }

    /// Adds schemes to a room, under names that [`Package::check_names`] has allowed.
    ///
    /// Errors: the list of the room's schemes was read already.
    pub fn add(&self, schemes: Vec<Scheme<Read>>) -> Result<(), String> {
        let late = self.kinds.get().is_some() || self.schemes.set(schemes).is_err();
        if late {
            Err(format!("{}s must be added once, before the first scenario is read", self.what))
        } else {
            Ok(())
        }
    }

    /// The schemes that were added.
    pub fn all(&self) -> &[Scheme<Read>] {
        self.schemes.get().map_or(&[], Vec::as_slice)
    }

    /// The names that a scenario may use, each with one line: the room's `own`, then those that were added.
    pub fn kinds(&self, own: &[(&'static str, &'static str)]) -> &[(&'static str, &'static str)] {
        let added = self.all().iter().map(|scheme| (scheme.doc.name, scheme.doc.title));
        self.kinds.get_or_init(|| own.iter().copied().chain(added).collect())
    }

    /// Reads the parameters of the added scheme of this name by `call`; none for other names, or if its
    /// function panicked, which is reported as a problem of the key `kind`.
    pub fn read<C>(
        &self,
        kind: &str,
        p: &mut Parameters,
        call: impl FnOnce(&Read, &mut Parameters) -> C,
    ) -> Option<C> {
        let scheme = self.all().iter().find(|scheme| scheme.doc.name == kind)?;
        let read = caught(|| guarded(self.what, kind, || call(&scheme.read, p)));
        read.map_err(|panic| p.complain("kind", panic.to_string())).ok()
    }
}

/// The parameters of a scheme of another crate, with a pointer to what its room requires of them. Equal by text of the scheme
/// and text of the parameters.
pub struct ExternalParameters<T: ?Sized> {
    pub doc: SchemeDoc,
    pub own: Arc<T>,
}

impl<T: ?Sized> Clone for ExternalParameters<T> {
    fn clone(&self) -> Self {
        ExternalParameters { doc: self.doc, own: self.own.clone() }
    }
}

impl<T: fmt::Debug + ?Sized> fmt::Debug for ExternalParameters<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.own.fmt(f)
    }
}

impl<T: fmt::Debug + ?Sized> PartialEq for ExternalParameters<T> {
    fn eq(&self, other: &Self) -> bool {
        self.doc == other.doc && format!("{self:?}") == format!("{other:?}")
    }
}

/// The crate whose schemes were added, as `own-scheme 0.1.0`, and the text of each with the name of its room.
#[derive(Debug)]
pub struct Package {
    pub name: String,
    pub schemes: Vec<(&'static str, SchemeDoc)>,
}

impl Package {
    /// Checks that results and `weftline explain` can tell the schemes from each other and from those `taken`.
    ///
    /// Errors: a name is taken, or not allowed in a scenario.
    pub fn check_names(&self, taken: &[&[(&str, &str)]]) -> Result<(), String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        for (at, (room, doc)) in self.schemes.iter().enumerate() {
            let (what, name) = (room.trim_end_matches('s'), doc.name);
            if name.is_empty() || !name.chars().all(plain) {
                return Err(format!("{what} \"{name}\": expected a name of letters, digits, '-' and '_'"));
            }
            let before = self.schemes[..at].iter().map(|(_, other)| other.name);
            if taken.iter().copied().flatten().map(|kind| kind.0).chain(before).any(|other| other == name) {
                return Err(format!("{what} \"{name}\": another scheme has this name: choose another"));
            }
        }
        Ok(())
    }
}

/// Returns the first error in the keys that a scheme declares. With such a key the resolved scenario could not be read again.
pub fn wrong_key(declared: &[Declared]) -> Option<String> {
    for (at, one) in declared.iter().enumerate() {
        let key = one.key;
        if key == "kind" || declared[..at].iter().any(|other| other.key == key) {
            return Some(format!("key \"{key}\" is declared twice: choose another name"));
        }
        let Some(default) = one.default.as_deref().filter(|text| *text != "auto") else { continue };
        let number = default.parse::<f64>();
        let wrong = match one.kind {
            Kind::Number { min, max } => number.is_ok_and(|x| !(min..=max).contains(&x)),
            Kind::Integer { min, max } => number.is_ok_and(|x| !(min as f64..=max as f64).contains(&x)),
            Kind::Choice(names) => !names.iter().any(|(name, _)| *name == default),
            _ => false,
        };
        if wrong {
            return Some(format!("key \"{key}\": its default {default} is not a value that it may have"));
        }
    }
    None
}

/// Returns the first error in the names of a scheme's counters and series, where `others` are the counters of all other schemes. Two
/// with the same name would be counted as one.
pub fn wrong_counter(doc: &SchemeDoc, others: &[&'static CounterGroup]) -> Option<String> {
    let own =
        || doc.counters.iter().filter(|group| !others.iter().any(|other| std::ptr::eq(**group, *other)));
    let shown = |group: &&'static CounterGroup| {
        let metrics = group.metrics.iter().map(|metric| metric.series.0).filter(|name| !name.is_empty());
        metrics.chain(group.gauges.iter().map(|gauge| gauge.key)).collect::<Vec<_>>()
    };
    for group in own() {
        let rest = || others.iter().chain(own()).filter(|other| !std::ptr::eq(**other, *group));
        for counter in group.counters {
            let key = counter.key;
            let mut same = rest().filter(|other| other.table == group.table).flat_map(|other| other.counters);
            if same.any(|other| other.key == key) {
                return Some(format!(
                    "counter \"{key}\": there is one: choose another key, or use the group that has it"
                ));
            }
        }
        for metric in group.metrics {
            let name = metric.name;
            if rest().flat_map(|other| other.metrics).any(|other| other.name == name) {
                return Some(format!("metric \"{name}\": there is one: choose another name"));
            }
            let counted = |key: &str| group.counters.iter().any(|counter| counter.key == key);
            if !counted(metric.part) || !metric.over.iter().all(|key| counted(key)) {
                return Some(format!("metric \"{name}\" is of a counter that its group does not have"));
            }
        }
        if let Some(name) = shown(group).into_iter().find(|name| rest().flat_map(shown).any(|n| n == *name)) {
            return Some(format!("series \"{name}\": there is one: choose another name"));
        }
    }
    let names = doc.series.iter().map(|series| series.name);
    let taken = |at: usize, name: &str| {
        ["", "rate_bps", "cwnd_bytes"].contains(&name) || doc.series[..at].iter().any(|one| one.name == name)
    };
    let name = names.enumerate().find(|&(at, name)| taken(at, name))?.1;
    Some(format!("series \"{name}\": expected a name that no other series of a flow has"))
}

static PACKAGE: OnceLock<Package> = OnceLock::new();

/// The crate whose schemes were added; none without such a crate.
pub fn package() -> Option<&'static Package> {
    PACKAGE.get()
}

/// Keeps the description of the crate for [`package`].
pub(crate) fn remember(package: Package) {
    PACKAGE.get_or_init(|| package);
}

/// The text of the added scheme of this name; none for other names.
pub fn doc(name: &str) -> Option<&'static SchemeDoc> {
    package()?.schemes.iter().map(|(_, doc)| doc).find(|doc| doc.name == name)
}

/// The crate of the added scheme of this name, with its version; none for other names.
pub fn package_of(name: &str) -> Option<&'static str> {
    doc(name).and(package()).map(|package| package.name.as_str())
}

/// What a scheme of another crate panicked with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{scheme} panicked: {message}")]
pub struct SchemePanic {
    /// Such as `controller "aimd"`.
    pub scheme: String,
    pub message: String,
}

/// Calls a scheme of another crate. A panic continues as a [`SchemePanic`] that names the scheme.
#[inline]
pub fn guarded<R>(what: &str, name: &str, call: impl FnOnce() -> R) -> R {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result,
        Err(payload) => blame(what, name, payload),
    }
}

#[cold]
fn blame(what: &str, name: &str, payload: Box<dyn Any + Send>) -> ! {
    let text = payload.downcast_ref::<&str>().map(|text| text.to_string());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
    let place = PLACE.with_borrow_mut(Option::take);
    let message =
        [Some(text).filter(|text| !text.is_empty()), place].into_iter().flatten().collect::<Vec<_>>();
    let scheme = format!("{what} \"{name}\"");
    resume_unwind(Box::new(SchemePanic { scheme, message: message.join(", at ") }))
}

/// Calls code that calls schemes of other crates. Returns the panic of such a scheme as an error; other
/// panics continue.
pub fn caught<R>(call: impl FnOnce() -> R) -> Result<R, SchemePanic> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|payload| match payload.downcast::<SchemePanic>() {
        Ok(panic) => *panic,
        Err(other) => resume_unwind(other),
    })
}

thread_local! {
    /// File and line of the last panic of this thread.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// After this call the message of a scheme's panic has its line. Panics are printed as before.
pub fn note_places() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PLACE.set(info.location().map(|place| format!("{}:{}", place.file(), place.line())));
        before(info);
    }));
}

#[cfg(test)]
mod tests;
