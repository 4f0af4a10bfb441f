//! Work that cannot look for Ctrl-C itself: reading a scenario, building its network, waiting for a pipe.

use std::convert::Infallible;
use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::errors::failed;

/// How often Ctrl-C is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The stack size of a main thread.
const STACK_BYTES: usize = 8 << 20;

/// Does `work` on a thread of its own, looking for Ctrl-C meanwhile. After Ctrl-C the result is not awaited: the thread
/// continues until it is done or the process ends.
///
/// To be called without the interpreter attached. Errors: what Ctrl-C raised, and those of `work`.
pub fn interruptible<T: Send + 'static>(work: impl FnOnce() -> PyResult<T> + Send + 'static) -> PyResult<T> {
    match watched(work, || None::<Infallible>)? {
        Ok(result) => Ok(result),
        Err(never) => match never {},
    }
}

/// Does the same, and also stops waiting when `reason` returns one; it is called whenever Ctrl-C is checked.
pub fn watched<T: Send + 'static, R>(
    work: impl FnOnce() -> PyResult<T> + Send + 'static,
    mut reason: impl FnMut() -> Option<R>,
) -> PyResult<Result<T, R>> {
    let (sender, receiver) = sync_channel(1);
    let run = move || {
        // After Ctrl-C the receiver no longer exists.
        let _ = sender.send(work());
    };
    let worker = thread::Builder::new().name("weftline".to_string()).stack_size(STACK_BYTES).spawn(run);
    let worker = worker.map_err(|e| failed(format!("a thread cannot be started: {e}")))?;
    loop {
        match receiver.recv_timeout(LOOK_EVERY) {
            Ok(result) => return result.map(Ok),
            Err(RecvTimeoutError::Timeout) => {
                Python::attach(|py| py.check_signals())?;
                if let Some(reason) = reason() {
                    return Ok(Err(reason));
                }
            }
            Err(RecvTimeoutError::Disconnected) => match worker.join() {
                Err(panic) => resume_unwind(panic),
                Ok(()) => return Err(failed("the work ended without a result")),
            },
        }
    }
}
