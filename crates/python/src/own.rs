//! Python modules of other crates: all of weftline, and schemes of their own.
//!
//! A process has one engine. The module of the other crate contains a complete one, which replaces the
//! installed `weftline._native` when the module is imported. `WEFTLINE_ENGINE` passes its name on to child
//! processes.

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::wrap_pymodule;
use weftline_sim::schemes::Schemes;

use crate::_native;

/// Makes the Python module of a crate that has schemes of its own, each by its room and the type of its
/// parameters:
///
/// ```ignore
/// weftline_python::module!(own_scheme: controller aimd::AimdParameters);
/// ```
///
/// The rooms are the methods of [`Schemes`](crate::sim::schemes::Schemes). `import own_scheme` makes
/// `weftline` use this module in place of the engine that came with it; `own_scheme.main()` is weftline's
/// command line.
#[macro_export]
macro_rules! module {
    ($name:ident: $($room:ident $parameters:ty),+ $(,)?) => {
        #[$crate::pyo3::pymodule]
        #[pyo3(crate = "::weftline_python::pyo3")]
        fn $name(module: &$crate::pyo3::Bound<'_, $crate::pyo3::types::PyModule>) -> $crate::pyo3::PyResult<()> {
            let schemes = $crate::sim::schemes::Schemes::of(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
            $crate::own::install(module, schemes$(.$room::<$parameters>())+)
        }
    };
}

const ENGINE: &str = "weftline._native";
const VARIABLE: &str = "WEFTLINE_ENGINE";

/// Replaces weftline's engine by that of `module`, with the schemes added.
///
/// Errors: another engine is in use already, or a scheme cannot be added.
pub fn install(module: &Bound<'_, PyModule>, schemes: Schemes) -> PyResult<()> {
    let py = module.py();
    let name: String = module.name()?.extract()?;
    let sys = py.import("sys")?;
    let modules: Bound<'_, PyDict> = sys.getattr("modules")?.cast_into()?;
    if modules.contains(ENGINE)? {
        return Err(PyImportError::new_err(format!(
            "weftline is in use already with another engine: import {name} before weftline, or set {VARIABLE}={name}"
        )));
    }
    schemes.add().map_err(PyImportError::new_err)?;
    let engine = wrap_pymodule!(_native)(py).into_bound(py);
    engine.setattr("__file__", module.getattr("__spec__")?.getattr("origin")?)?;
    modules.set_item(ENGINE, &engine)?;
    py.import("os")?.getattr("environ")?.set_item(VARIABLE, &name)?;
    module.add("__version__", engine.getattr("version")?.call0()?)?;
    module.add_function(wrap_pyfunction!(main, module)?)
}

/// weftline's command line; returns the exit status.
#[pyfunction]
fn main(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    py.import("weftline.cli.main")?.call_method0("main")
}
