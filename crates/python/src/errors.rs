//! Exceptions: the input is wrong (exit status 2), or the run failed (exit status 1).

use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use weftline_results::ResultsError;

create_exception!(
    weftline._native,
    InputError,
    PyValueError,
    "The scenario or another input is wrong; the text says where and how."
);
create_exception!(
    weftline._native,
    DamagedError,
    InputError,
    "Results are not what a run wrote; the text names the file."
);
create_exception!(
    weftline._native,
    RunFailed,
    PyRuntimeError,
    "The run could not be completed; the text says why and what is readable."
);

pub fn input(text: impl ToString) -> PyErr {
    InputError::new_err(text.to_string())
}

pub fn failed(text: impl ToString) -> PyErr {
    RunFailed::new_err(text.to_string())
}

pub fn of_results(error: ResultsError) -> PyErr {
    match error {
        ResultsError::Input(text) => input(text),
        ResultsError::Damaged(text) => DamagedError::new_err(text),
        ResultsError::Failed(text) => failed(text),
    }
}

/// A whole number from a Python object, of any size and sign there.
pub fn whole<'py, T: for<'a> FromPyObject<'a, 'py>>(
    value: &Bound<'py, PyAny>,
    what: &str,
    expected: &str,
) -> PyResult<T> {
    value.extract().map_err(|_| input(format!("{what}: expected {expected}, found {value}")))
}
