//! Congestion controllers written in Python: one object a flow, its `on_ack` called with named fields.
//!
//! The class is called with a [`Flow`]. After that and after every call its attributes `rate_bps` and `cwnd_bytes` are
//! read, where they exist and are not None. Optional: a class attribute `needs_int = True` asks for telemetry in every
//! acknowledgement, and a method `on_timeout(now_ns)`. The first exception ends the run. What a law does that
//! may be a mistake is a warning of the run ([`LawNotes`]).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use weftline_sim::congestion::{
    self, CongestionController, Control, ExternalController, FlowContext, Needs, Window,
};
use weftline_sim::telemetry::int::{IntLayout, IntRecord};
use weftline_sim::units::{Rate, Time};

use crate::errors::{InputError, input};
use crate::law_notes::{LawNotes, RATE, WINDOW, short};
use crate::runs::is_interrupt;

/// What is fixed for a flow.
#[pyclass(frozen, get_all, module = "weftline._native")]
pub struct Flow {
    /// Rate of the NIC in bit/s: the flow's first and highest rate.
    line_rate_bps: u64,
    base_rtt_ns: f64,
    /// Line rate times base RTT.
    window_bytes: u64,
    /// Payload bytes of a full packet.
    mtu: u32,
}

/// An acknowledgement.
#[pyclass(frozen, module = "weftline._native")]
pub struct Ack {
    #[pyo3(get)]
    now_ns: f64,
    /// Next byte that the receiver expects.
    #[pyo3(get)]
    acknowledged: u64,
    /// Bytes that it took out of flight.
    #[pyo3(get)]
    newly_acknowledged: u64,
    /// Next byte that the sender will send.
    #[pyo3(get)]
    next_byte: u64,
    /// The packet that it answers was marked (ECN).
    #[pyo3(get)]
    marked: bool,
    #[pyo3(get)]
    rtt_ns: f64,
    /// Payload bytes of that packet; 0 where its message has ended already.
    #[pyo3(get)]
    payload: u32,
    /// It says that a packet is missing.
    #[pyo3(get)]
    negative: bool,
    /// Telemetry of the path, first hop first; empty without.
    hops: Py<PyList>,
    notes: Arc<LawNotes>,
}

#[pymethods]
impl Ack {
    #[getter]
    fn hops(&self, py: Python<'_>) -> Py<PyList> {
        self.notes.read_hops(self.hops.bind(py).is_empty());
        self.hops.clone_ref(py)
    }
}

/// What a switch wrote into the packet; `hop.queue_bytes` and `hop["queue_bytes"]` are the same.
#[pyclass(frozen, module = "weftline._native")]
pub struct Hop {
    record: IntRecord,
    layout: IntLayout,
}

#[pymethods]
impl Hop {
    /// Departure in ns, modulo 2^24 (times the factor of `[scale]`); see `since`.
    #[getter]
    fn time_ns(&self) -> u64 {
        u64::from(self.record.time) * u64::from(self.layout.time_unit)
    }
    /// Bytes that the port had sent, modulo 2^20 units; see `since`.
    #[getter]
    fn sent_bytes(&self) -> u64 {
        u64::from(self.record.sent) * u64::from(self.layout.sent_unit)
    }
    /// Bytes left in the port's queue.
    #[getter]
    fn queue_bytes(&self) -> u64 {
        self.record.queue_bytes(self.layout)
    }
    /// Rate of the port in bit/s.
    #[getter]
    fn rate_bps(&self) -> u64 {
        u64::from(self.record.rate_kbps) * 1000
    }
    /// (ns, bytes sent by the port) from the same hop's `earlier` record to this one, with the wraps undone.
    fn since(&self, earlier: &Hop) -> (u64, u64) {
        (
            self.record.ns_since(&earlier.record, self.layout),
            self.record.bytes_since(&earlier.record, self.layout),
        )
    }
    fn __getitem__(&self, name: &str) -> PyResult<u64> {
        match name {
            "time_ns" => Ok(self.time_ns()),
            "sent_bytes" => Ok(self.sent_bytes()),
            "queue_bytes" => Ok(self.queue_bytes()),
            "rate_bps" => Ok(self.rate_bps()),
            other => Err(PyKeyError::new_err(other.to_string())),
        }
    }
    fn keys(&self) -> [&'static str; 4] {
        ["time_ns", "sent_bytes", "queue_bytes", "rate_bps"]
    }
    fn __repr__(&self) -> String {
        format!(
            "Hop(time_ns={}, sent_bytes={}, queue_bytes={}, rate_bps={})",
            self.time_ns(),
            self.sent_bytes(),
            self.queue_bytes(),
            self.rate_bps()
        )
    }
}

/// What went wrong in the controllers of a run: the first exception, which ends it, and warnings.
#[derive(Default)]
pub struct Failure {
    happened: AtomicBool,
    first: Mutex<Option<Raised>>,
    /// By the names of the controllers.
    notes: Vec<(String, Arc<LawNotes>)>,
}

/// An exception of a controller.
struct Raised {
    name: String,
    /// Where and when, such as `in on_ack of Aimd, aimd.py:12, flow 7, at 21.8 us`.
    place: String,
    error: PyErr,
}

impl Failure {
    pub fn happened(&self) -> bool {
        self.happened.load(Ordering::Relaxed)
    }

    fn set(&self, raised: Raised) {
        // A lock that another thread's panic has poisoned still holds the first failure.
        let mut first = self.first.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        first.get_or_insert(raised);
        self.happened.store(true, Ordering::Relaxed);
    }

    /// The exception, if it was Ctrl-C that came while Python computed.
    pub fn take_interrupt(&self) -> Option<PyErr> {
        let mut first = self.first.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let interrupt = first.take_if(|raised| Python::attach(|py| is_interrupt(py, &raised.error)));
        interrupt.map(|raised| raised.error)
    }

    /// What went wrong, with the traceback; none if nothing did. After it nothing has happened.
    pub fn take(&self) -> Option<String> {
        self.happened.store(false, Ordering::Relaxed);
        let first = self.first.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        let Raised { name, place, error } = first?;
        Some(Python::attach(|py| {
            let traceback = error.traceback(py).and_then(|t| t.format().ok()).unwrap_or_default();
            if traceback.is_empty() && error.is_instance_of::<InputError>(py) {
                return format!("controller \"{name}\": {} ({place})", error.value(py));
            }
            format!("controller \"{name}\" raised an exception {place}\n{traceback}{error}")
        }))
    }

    /// What deserves a look in the run that has ended; after it nothing is known of the run.
    pub fn warnings(&self) -> Vec<String> {
        if self.notes.is_empty() {
            return Vec::new();
        }
        Python::attach(|py| {
            let of_law = |(name, notes): &(String, Arc<LawNotes>)| {
                let texts = notes.take(py).into_iter();
                texts.map(|text| format!("controller \"{name}\": {text}")).collect::<Vec<_>>()
            };
            self.notes.iter().flat_map(of_law).collect()
        })
    }

    /// Forgets an earlier run.
    pub fn reset(&self) {
        self.take();
        self.warnings();
    }
}

/// The controllers of a run by name, and where their failures go.
pub fn external(classes: Option<Bound<'_, PyDict>>) -> PyResult<(Vec<ExternalController>, Arc<Failure>)> {
    let mut laws = Vec::new();
    for (name, class) in classes.iter().flat_map(|classes| classes.iter()) {
        let name: String = name.extract().map_err(|_| input(format!("controllers: {name} is not a name")))?;
        if !class.is_callable() {
            return Err(input(format!(
                "controllers: \"{name}\" is {class}, expected a class with on_ack(self, ack)"
            )));
        }
        let (needs_int, reads_marks) = (needs_int(&class)?, reads_marks(&class)?);
        laws.push(Law { name, needs_int, reads_marks, class: class.unbind(), notes: Arc::default() });
    }
    let notes = laws.iter().map(|law| (law.name.clone(), law.notes.clone())).collect();
    let failure = Arc::new(Failure { notes, ..Failure::default() });
    let found = laws.into_iter().map(|law| law.controller(failure.clone())).collect();
    Ok((found, failure))
}

/// Whether a class asks for telemetry, or a `functools.partial` of one; a function may have the attribute.
fn needs_int(class: &Bound<'_, PyAny>) -> PyResult<bool> {
    let partial = class.py().import("functools")?.getattr("partial")?;
    let mut class = class.clone();
    loop {
        if let Some(value) = class.getattr_opt("needs_int")? {
            return value.is_truthy();
        }
        if !class.is_instance(&partial)? {
            return Ok(false);
        }
        class = class.getattr("func")?;
    }
}

/// Whether the code of a class' methods, or of those of a `functools.partial` of one, names `marked`.
fn reads_marks(class: &Bound<'_, PyAny>) -> PyResult<bool> {
    let partial = class.py().import("functools")?.getattr("partial")?;
    let mut class = class.clone();
    while class.is_instance(&partial)? {
        class = class.getattr("func")?;
    }
    let names_it = |method: Bound<'_, PyAny>| -> PyResult<bool> {
        method.getattr("__code__")?.getattr("co_names")?.contains("marked")
    };
    let names: Vec<String> = class.dir()?.extract()?;
    Ok(names.iter().any(|name| class.getattr(name.as_str()).and_then(names_it).unwrap_or(false)))
}

/// A controller in Python.
struct Law {
    name: String,
    /// A class, or something else that makes the object of a flow.
    class: Py<PyAny>,
    needs_int: bool,
    /// Its code names the mark of an acknowledgement.
    reads_marks: bool,
    notes: Arc<LawNotes>,
}

impl Law {
    fn controller(self, failure: Arc<Failure>) -> ExternalController {
        let name = self.name.as_str().into();
        let needs = Needs { int: self.needs_int, marks: self.reads_marks, ..Needs::window(Window::None) };
        let make = move |flow: &FlowContext, _: usize| -> Box<dyn CongestionController + Send> {
            let number = flow.flow;
            let object = Python::attach(|py| self.object(py, flow).map(Bound::unbind));
            let object = object.map_err(|error| {
                let place = format!("while the object of flow {number} was made");
                failure.set(Raised { name: self.name.clone(), place, error });
            });
            Box::new(PythonController {
                name: self.name.clone(),
                object: object.ok(),
                layout: flow.int_layout,
                flow: number,
                failure: failure.clone(),
                notes: self.notes.clone(),
            })
        };
        ExternalController {
            name,
            needs,
            parameters: None,
            one_thread: true,
            make: Some(Arc::new(make)),
            stated: None,
        }
    }

    /// The object of a flow.
    fn object<'py>(&self, py: Python<'py>, flow: &FlowContext) -> PyResult<Bound<'py, PyAny>> {
        let mtu = flow.mtu;
        let flow = Flow {
            line_rate_bps: flow.line_rate.0,
            base_rtt_ns: flow.base_rtt.as_ns(),
            window_bytes: flow.window_bytes,
            mtu,
        };
        let class = self.class.bind(py);
        let object = class.call1((flow,))?;
        if !object.getattr_opt("on_ack")?.is_some_and(|method| method.is_callable()) {
            let (by, text) = (described(class), short(&object));
            return Err(input(format!("{by} made {text}: expected an object with on_ack(self, ack)")));
        }
        let asks = object.getattr_opt("needs_int")?.map_or(Ok(false), |value| value.is_truthy())?;
        if asks && !self.needs_int {
            let (by, of) = (described(class), object.get_type().qualname()?);
            return Err(input(format!(
                "objects of {of} have needs_int = True, but {by}, which makes them, has not, so packets \
                 would carry no telemetry: give the class or a functools.partial of it, or set \
                 needs_int = True on what makes the objects"
            )));
        }
        self.notes.made(&object, mtu);
        Ok(object)
    }
}

/// A class or function with its place in a file.
fn described(callable: &Bound<'_, PyAny>) -> String {
    let name = callable.getattr("__qualname__").and_then(|name| name.extract::<String>());
    let name = name.unwrap_or_else(|_| short(callable));
    line_of(callable).map_or(name.clone(), |line| format!("{name} ({line})"))
}

/// `aimd.py:12`, where a function or method begins; none if it is not written in Python.
fn line_of(function: &Bound<'_, PyAny>) -> Option<String> {
    let code = function.getattr("__code__").ok()?;
    let line: u32 = code.getattr("co_firstlineno").ok()?.extract().ok()?;
    Some(format!("{}:{line}", code.getattr("co_filename").ok()?))
}

/// A method of a controller that the transport calls.
#[derive(Clone, Copy)]
struct Call {
    method: &'static str,
    /// None: when the flow starts.
    at: Option<Time>,
}

/// One flow's object; none when it could not be made, and then the run is about to end.
struct PythonController {
    name: String,
    object: Option<Py<PyAny>>,
    layout: IntLayout,
    /// Number of the flow.
    flow: u32,
    failure: Arc<Failure>,
    notes: Arc<LawNotes>,
}

impl PythonController {
    /// Calls the object, unless the run has failed, and takes over what it steers.
    fn steer(&self, control: &mut Control, of: Call, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>) {
        let Some(object) = self.object.as_ref().filter(|_| !self.failure.happened()) else { return };
        Python::attach(|py| {
            let object = object.bind(py);
            if let Err(error) = call(object).and_then(|()| self.take_over(object, control, of)) {
                let place = self.place(object, of);
                self.failure.set(Raised { name: self.name.clone(), place, error });
            }
        });
    }

    fn take_over(&self, object: &Bound<'_, PyAny>, control: &mut Control, of: Call) -> PyResult<()> {
        if let Some(bps) = attribute(object, RATE, "a number of bit/s", false)? {
            let rate = Rate(bps.max(1.0) as u64);
            if rate != control.rate {
                control.repace = true;
                control.rate = rate;
                self.notes.rate(object, bps, || self.place(object, of))?;
            }
        }
        let bytes = attribute(object, WINDOW, "a number of bytes, or None", true)?;
        let cwnd = bytes.map(|bytes| bytes.max(1.0) as u64);
        if cwnd != control.cwnd {
            control.cwnd = cwnd;
            bytes.map_or(Ok(()), |bytes| self.notes.window(object, bytes, || self.place(object, of)))?;
        }
        Ok(())
    }

    /// Looks at what a method returned, which is expected to be None.
    fn returned(&self, object: &Bound<'_, PyAny>, of: Call, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if value.is_none() {
            return Ok(());
        }
        self.notes.returned(of.method, value, || self.place(object, of))
    }

    /// Where and when a method was called.
    fn place(&self, object: &Bound<'_, PyAny>, of: Call) -> String {
        let class = object.get_type().qualname().map_or_else(|_| short(object), |name| name.to_string());
        let line = object.getattr(of.method).ok().and_then(|method| line_of(&method));
        let line = line.map(|line| format!(", {line}")).unwrap_or_default();
        let at = of.at.map(|at| format!(", at {:.3} us", at.as_ns() / 1000.0)).unwrap_or_default();
        format!("in {} of {class}{line}, flow {}{at}", of.method, self.flow)
    }

    fn ack<'py>(&self, py: Python<'py>, ack: &congestion::Ack) -> PyResult<Ack> {
        // Where more hops wrote than the header has room for, records were overwritten and mean nothing.
        let records = ack.telemetry.filter(|view| view.hops as usize <= view.records.len());
        let records = records.map_or(&[][..], |view| &view.records[..view.hops as usize]);
        let hops = records.iter().map(|record| Hop { record: *record, layout: self.layout });
        let hops = hops.map(|hop| Bound::new(py, hop)).collect::<PyResult<Vec<_>>>()?;
        Ok(Ack {
            now_ns: ack.now.as_ns(),
            acknowledged: ack.acknowledged,
            newly_acknowledged: ack.newly_acknowledged,
            next_byte: ack.next_byte,
            marked: ack.marked,
            rtt_ns: ack.rtt.as_ns(),
            payload: ack.payload,
            negative: ack.negative,
            hops: PyList::new(py, hops)?.unbind(),
            notes: self.notes.clone(),
        })
    }
}

/// A number that the object has under this name; none if it has no such attribute, or if it is None and that
/// is allowed. An AttributeError within a property of this name is an error, not a missing attribute.
fn attribute(
    object: &Bound<'_, PyAny>,
    name: &str,
    expected: &str,
    may_be_none: bool,
) -> PyResult<Option<f64>> {
    let found = object.getattr_opt(name)?;
    if found.is_none() && is_computed(object, name)? {
        object.getattr(name)?;
    }
    let Some(value) = found.filter(|value| !(may_be_none && value.is_none())) else {
        return Ok(None);
    };
    match value.extract::<f64>() {
        Ok(number) if !number.is_nan() => Ok(Some(number)),
        _ => {
            let found: String = value.repr()?.to_string_lossy().chars().take(40).collect();
            Err(input(format!("{name} is {found}: expected {expected}")))
        }
    }
}

/// Whether the class of an object computes this attribute, as a property does; a slot without a value is none.
fn is_computed(object: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
    let slot = object.py().import("types")?.getattr("MemberDescriptorType")?;
    let of_class = object.get_type().getattr_opt(name)?;
    of_class.map_or(Ok(false), |found| Ok(!found.is_instance(&slot)?))
}

impl CongestionController for PythonController {
    fn on_start(&mut self, control: &mut Control) {
        self.steer(control, Call { method: "__init__", at: None }, |_| Ok(()));
    }

    fn on_ack(&mut self, ack: &congestion::Ack, control: &mut Control) {
        let of = Call { method: "on_ack", at: Some(ack.now) };
        self.steer(control, of, |object| {
            let ack = self.ack(object.py(), ack)?;
            let returned = object.call_method1(of.method, (ack,))?;
            self.returned(object, of, &returned)
        });
    }

    fn on_timeout(&mut self, now: Time, control: &mut Control) {
        let of = Call { method: "on_timeout", at: Some(now) };
        self.steer(control, of, |object| match object.getattr_opt(of.method)? {
            Some(method) => self.returned(object, of, &method.call1((now.as_ns(),))?),
            None => Ok(()),
        });
    }
}
