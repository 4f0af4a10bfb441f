//! Congestion controllers written in Python: one object a flow, its `on_ack` called with named fields.
//!
//! The class is called with a [`Flow`]. After that and after every call its attributes `rate_bps` and `cwnd_bytes` are
//! read, where they exist and are not None. Optional: a class attribute `needs_int = True` asks for telemetry in every
//! acknowledgement, and a method `on_timeout(now_ns)`. The first exception ends the run.

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
#[pyclass(frozen, get_all, module = "weftline._native")]
pub struct Ack {
    now_ns: f64,
    /// Next byte that the receiver expects.
    acknowledged: u64,
    /// Bytes that it took out of flight.
    newly_acknowledged: u64,
    /// Next byte that the sender will send.
    next_byte: u64,
    /// The packet that it answers was marked (ECN).
    marked: bool,
    rtt_ns: f64,
    /// Payload bytes of that packet; 0 where its message has ended already.
    payload: u32,
    /// It says that a packet is missing.
    negative: bool,
    /// Telemetry of the path, first hop first; empty without.
    hops: Py<PyList>,
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

/// The first exception that a controller raised.
#[derive(Default)]
pub struct Failure {
    happened: AtomicBool,
    /// (name of the controller, what it raised)
    first: Mutex<Option<(String, PyErr)>>,
}

impl Failure {
    pub fn happened(&self) -> bool {
        self.happened.load(Ordering::Relaxed)
    }

    fn set(&self, name: &str, error: PyErr) {
        // A lock that another thread's panic has poisoned still holds the first failure.
        let mut first = self.first.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        first.get_or_insert_with(|| (name.to_string(), error));
        self.happened.store(true, Ordering::Relaxed);
    }

    /// The exception, if it was Ctrl-C that came while Python computed.
    pub fn take_interrupt(&self) -> Option<PyErr> {
        let mut first = self.first.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let interrupt = first.take_if(|(_, error)| Python::attach(|py| is_interrupt(py, error)));
        interrupt.map(|(_, error)| error)
    }

    /// What went wrong, with the traceback; none if nothing did. After it nothing has happened.
    pub fn take(&self) -> Option<String> {
        self.happened.store(false, Ordering::Relaxed);
        let (name, error) = self.first.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take()?;
        Some(Python::attach(|py| {
            let traceback = error.traceback(py).and_then(|t| t.format().ok()).unwrap_or_default();
            if traceback.is_empty() && error.is_instance_of::<InputError>(py) {
                return format!("controller \"{name}\": {}", error.value(py));
            }
            format!("controller \"{name}\" raised an exception\n{traceback}{error}")
        }))
    }
}

/// The controllers of a run by name, and where their failures go.
pub fn external(classes: Option<Bound<'_, PyDict>>) -> PyResult<(Vec<ExternalController>, Arc<Failure>)> {
    let failure = Arc::new(Failure::default());
    let mut found = Vec::new();
    for (name, class) in classes.iter().flat_map(|classes| classes.iter()) {
        let name: String = name.extract().map_err(|_| input(format!("controllers: {name} is not a name")))?;
        if !class.is_callable() {
            return Err(input(format!(
                "controllers: \"{name}\" is {class}, expected a class with on_ack(self, ack)"
            )));
        }
        let needs_int = match class.getattr_opt("needs_int")? {
            Some(value) => value.is_truthy()?,
            None => false,
        };
        found.push(controller(name, class.unbind(), needs_int, failure.clone()));
    }
    Ok((found, failure))
}

fn controller(name: String, class: Py<PyAny>, needs_int: bool, failure: Arc<Failure>) -> ExternalController {
    let of_name = name.clone();
    let make = move |flow: &FlowContext, _: usize| -> Box<dyn CongestionController + Send> {
        let object = Python::attach(|py| {
            let flow = Flow {
                line_rate_bps: flow.line_rate.0,
                base_rtt_ns: flow.base_rtt.as_ns(),
                window_bytes: flow.window_bytes,
                mtu: flow.mtu,
            };
            class.call1(py, (flow,))
        });
        let object = object.map_err(|error| failure.set(&of_name, error)).ok();
        Box::new(PythonController {
            name: of_name.clone(),
            object,
            layout: flow.int_layout,
            failure: failure.clone(),
        })
    };
    let needs = Needs { int: needs_int, ..Needs::window(Window::None) };
    ExternalController { name: name.into(), needs, parameters: None, one_thread: true, make: Arc::new(make) }
}

/// One flow's object; none when it could not be made, and then the run is about to end.
struct PythonController {
    name: String,
    object: Option<Py<PyAny>>,
    layout: IntLayout,
    failure: Arc<Failure>,
}

impl PythonController {
    /// Calls the object, unless the run has failed, and takes over what it steers.
    fn steer(&self, control: &mut Control, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>) {
        let Some(object) = self.object.as_ref().filter(|_| !self.failure.happened()) else { return };
        let done = Python::attach(|py| {
            let object = object.bind(py);
            call(object)?;
            if let Some(rate) = attribute(object, "rate_bps", "a number of bit/s", false)? {
                let rate = Rate(rate.max(1.0) as u64);
                control.repace |= rate != control.rate;
                control.rate = rate;
            }
            let cwnd = attribute(object, "cwnd_bytes", "a number of bytes, or None", true)?;
            control.cwnd = cwnd.map(|bytes| bytes.max(1.0) as u64);
            Ok(())
        });
        if let Err(error) = done {
            self.failure.set(&self.name, error);
        }
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
        })
    }
}

/// A number that the object has under this name; none if it has no such attribute, or if it is None and that
/// is allowed.
fn attribute(
    object: &Bound<'_, PyAny>,
    name: &str,
    expected: &str,
    may_be_none: bool,
) -> PyResult<Option<f64>> {
    let Some(value) = object.getattr_opt(name)?.filter(|value| !(may_be_none && value.is_none())) else {
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

impl CongestionController for PythonController {
    fn on_start(&mut self, control: &mut Control) {
        self.steer(control, |_| Ok(()));
    }

    fn on_ack(&mut self, ack: &congestion::Ack, control: &mut Control) {
        self.steer(control, |object| {
            let ack = self.ack(object.py(), ack)?;
            object.call_method1("on_ack", (ack,)).map(drop)
        });
    }

    fn on_timeout(&mut self, now: Time, control: &mut Control) {
        self.steer(control, |object| match object.getattr_opt("on_timeout")? {
            Some(method) => method.call1((now.as_ns(),)).map(drop),
            None => Ok(()),
        });
    }
}
