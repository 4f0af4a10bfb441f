//! What a controller in Python did in a run that its author may not have meant: warnings of the run.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use weftline_sim::parameters::nearest;

use crate::errors::input;

pub const RATE: &str = "rate_bps";
pub const WINDOW: &str = "cwnd_bytes";

/// A rate below it is a warning: a packet takes seconds, so the unit is probably not bit/s.
const SLOWEST_BPS: f64 = 1000.0;
/// Objects whose attributes are looked at when the run has ended.
const OBJECTS: usize = 8;
/// Words in the names of attributes that suggest a rate or a window.
const OUTPUT_WORDS: [&str; 5] = ["rate", "bps", "cwnd", "window", "pacing"];

/// What is known of one controller in the present run.
#[derive(Default)]
pub struct LawNotes {
    rate_changed: AtomicBool,
    window_set: AtomicBool,
    /// The largest window so far in bytes; 0: none above 0.
    largest_window: AtomicU64,
    /// It read telemetry of which there was none, and some of which there was.
    empty_hops: AtomicBool,
    full_hops: AtomicBool,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    /// Payload bytes of a full packet.
    mtu: u32,
    /// The first rate below [`SLOWEST_BPS`].
    slow: Option<String>,
    /// The first window at or below 0.
    closed: Option<String>,
    /// The first value that a method returned.
    ignored: Option<String>,
    objects: Vec<Py<PyAny>>,
}

impl LawNotes {
    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the first text of a kind. The lock is not held while Python makes the text.
    fn keep(&self, of: impl Fn(&mut Found) -> &mut Option<String>, text: impl FnOnce() -> String) {
        if of(&mut self.found()).is_none() {
            let text = text();
            of(&mut self.found()).get_or_insert(text);
        }
    }

    /// Notes the object of a flow.
    pub fn made(&self, object: &Bound<'_, PyAny>, mtu: u32) {
        let mut found = self.found();
        found.mtu = found.mtu.max(mtu);
        if found.objects.len() < OBJECTS {
            found.objects.push(object.clone().unbind());
        }
    }

    /// Notes a rate that differs from the one before. `place`: where it was set.
    ///
    /// Errors: it is True or False.
    pub fn rate(&self, object: &Bound<'_, PyAny>, bps: f64, place: impl FnOnce() -> String) -> PyResult<()> {
        self.rate_changed.store(true, Ordering::Relaxed);
        if bps >= SLOWEST_BPS {
            return Ok(());
        }
        no_bool(object, RATE, "a number of bit/s")?;
        let effect = if bps < 1.0 { "the flow sends at 1 bit/s" } else { "a packet takes seconds" };
        let text = || format!("{RATE} was {bps} {}: {effect}; the unit is bit/s, so 5 Gb/s is 5e9", place());
        self.keep(|found| &mut found.slow, text);
        Ok(())
    }

    /// Notes a window that differs from the one before.
    ///
    /// Errors: it is True or False.
    pub fn window(
        &self,
        object: &Bound<'_, PyAny>,
        bytes: f64,
        place: impl FnOnce() -> String,
    ) -> PyResult<()> {
        self.window_set.store(true, Ordering::Relaxed);
        if bytes > 1.0 {
            self.largest_window.fetch_max(bytes as u64, Ordering::Relaxed);
            return Ok(());
        }
        no_bool(object, WINDOW, "a number of bytes, or None")?;
        if bytes > 0.0 {
            self.largest_window.fetch_max(1, Ordering::Relaxed);
            return Ok(());
        }
        let effect = "it counts as 1 byte, so one packet is in flight";
        self.keep(|found| &mut found.closed, || format!("{WINDOW} was {bytes} {}: {effect}", place()));
        Ok(())
    }

    /// Notes that a method looked at the telemetry of an acknowledgement.
    pub fn read_hops(&self, is_empty: bool) {
        let kind = if is_empty { &self.empty_hops } else { &self.full_hops };
        kind.store(true, Ordering::Relaxed);
    }

    /// Notes what a method returned instead of None.
    ///
    /// Errors: it is a generator or a coroutine, so the method's body did not run.
    pub fn returned(
        &self,
        method: &str,
        value: &Bound<'_, PyAny>,
        place: impl FnOnce() -> String,
    ) -> PyResult<()> {
        let kind = value.get_type().name()?.to_string();
        let word = match kind.as_str() {
            "generator" => "yield",
            "coroutine" | "async_generator" => "async",
            _ => {
                let effect = format!("it is ignored; set {RATE} or {WINDOW}");
                let text = || format!("{method} returned {} {}: {effect}", short(value), place());
                self.keep(|found| &mut found.ignored, text);
                return Ok(());
            }
        };
        let kind = kind.replace('_', " ");
        Err(input(format!(
            "{method} returned a {kind}, so its body did not run: expected a method without {word}"
        )))
    }

    /// The warnings of the run, after which nothing is known.
    pub fn take(&self, py: Python<'_>) -> Vec<String> {
        let found = std::mem::take(&mut *self.found());
        let rate_changed = self.rate_changed.swap(false, Ordering::Relaxed);
        let window_set = self.window_set.swap(false, Ordering::Relaxed);
        let largest = self.largest_window.swap(0, Ordering::Relaxed);
        let read_hops = self.empty_hops.swap(false, Ordering::Relaxed);
        let without_hops = !self.full_hops.swap(false, Ordering::Relaxed) && read_hops;
        let blind = without_hops.then(|| {
            "hops was empty whenever it was read: packets have telemetry with needs_int = True on the class, \
             on paths of at most as many hops as the header has room for"
                .to_string()
        });
        let small = (largest > 0 && largest < u64::from(found.mtu)).then(|| {
            let packet = found.mtu;
            format!(
                "{WINDOW} was never more than {largest}: below one packet of {packet} bytes, so one packet \
                 was in flight; the unit is bytes"
            )
        });
        let mut unchanged = Vec::new();
        unchanged.extend((!rate_changed).then_some(RATE));
        unchanged.extend((!window_set).then_some(WINDOW));
        let similar: BTreeSet<String> = names(py, &found.objects)
            .into_iter()
            .filter(|name| name != RATE && name != WINDOW && resembles(name, &unchanged))
            .collect();
        let misspelt = (!similar.is_empty()).then(|| {
            let similar = similar.into_iter().take(3).collect::<Vec<_>>().join(", ");
            let unchanged = unchanged.join(" and ");
            format!(
                "{unchanged} did not change in this run, but its objects have the attribute {similar}: \
                 only {RATE} and {WINDOW} are read"
            )
        });
        [found.slow, found.closed, small, found.ignored, misspelt, blind].into_iter().flatten().collect()
    }
}

/// Whether a name was probably meant to be that of an output which did not change.
fn resembles(name: &str, unchanged: &[&str]) -> bool {
    let steers_nothing = unchanged.len() == 2;
    let suggests = || name.to_lowercase().split('_').any(|word| OUTPUT_WORDS.contains(&word));
    nearest(name, unchanged.iter().copied()).is_some() || steers_nothing && suggests()
}

/// Names of the objects' own attributes.
fn names(py: Python<'_>, objects: &[Py<PyAny>]) -> BTreeSet<String> {
    let own = objects.iter().filter_map(|object| object.bind(py).getattr("__dict__").ok());
    let own = own.filter_map(|own| own.cast_into::<PyDict>().ok());
    own.flat_map(|own| own.keys().iter().filter_map(|key| key.extract().ok()).collect::<Vec<_>>()).collect()
}

fn no_bool(object: &Bound<'_, PyAny>, name: &str, expected: &str) -> PyResult<()> {
    let value = object.getattr(name)?;
    if value.is_instance_of::<PyBool>() {
        return Err(input(format!("{name} is {value}: expected {expected}")));
    }
    Ok(())
}

/// The first characters of an object's `repr`.
pub fn short(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map(|text| text.to_string_lossy().into_owned());
    text.unwrap_or_else(|_| "an object without repr".to_string()).chars().take(40).collect()
}
