"""Pages: one HTML file over runs or over a sweep, and the local server that shows a store."""

_RENAMED = {"of_runs": "run_page", "of_sweep": "sweep_page"}


def __getattr__(name: str) -> object:
    """Return a module by the name that it had in an earlier version, with a warning."""
    if name not in _RENAMED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib
    import warnings

    warnings.warn(
        f"weftline.report.{name} is now weftline.report.{_RENAMED[name]}; the old name will be removed",
        DeprecationWarning,
        stacklevel=2,
    )
    return importlib.import_module(f"weftline.report.{_RENAMED[name]}")
