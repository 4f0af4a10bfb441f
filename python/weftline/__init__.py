"""weftline: a packet-level simulator for datacenter fabrics.

    import weftline

    run = weftline.run("websearch.toml", set={"workload.0.load": 0.7}, seed=3)
    print(run.summary["slowdown"]["p99"])
    frame = polars.DataFrame(run.flows)    # or pyarrow.table, pandas.DataFrame.from_arrow

Nothing is loaded before it is used, so that the command line starts at once.
"""

from __future__ import annotations

import os as _os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from weftline.collector import Collected as Collected
    from weftline.collector import collect as collect
    from weftline.controller import Controller as Controller
    from weftline.errors import DamagedError as DamagedError
    from weftline.errors import DeterminismWarning as DeterminismWarning
    from weftline.errors import InputError as InputError
    from weftline.errors import ResultsWarning as ResultsWarning
    from weftline.errors import RunFailed as RunFailed
    from weftline.errors import WeftlineWarning as WeftlineWarning
    from weftline.figures.plots import plot as plot
    from weftline.live import LiveCollector as LiveCollector
    from weftline.live import collecting as collecting
    from weftline.measures.comparison import Comparison as Comparison
    from weftline.measures.comparison import compare as compare
    from weftline.runs import Run as Run
    from weftline.runs import run as run
    from weftline.runs import show_versions as show_versions
    from weftline.scenario import Scenario as Scenario
    from weftline.sweeps.result import SweepResult as SweepResult
    from weftline.sweeps.runner import load as load
    from weftline.sweeps.runner import sweep as sweep
    from weftline.tables import Table as Table

_HOMES = {
    "run": "weftline.runs",
    "plot": "weftline.figures.plots",
    "Run": "weftline.runs",
    "show_versions": "weftline.runs",
    "Scenario": "weftline.scenario",
    "Table": "weftline.tables",
    "SweepResult": "weftline.sweeps.result",
    "load": "weftline.sweeps.runner",
    "Comparison": "weftline.measures.comparison",
    "compare": "weftline.measures.comparison",
    "sweep": "weftline.sweeps.runner",
    "Controller": "weftline.controller",
    "Collected": "weftline.collector",
    "collect": "weftline.collector",
    "LiveCollector": "weftline.live",
    "collecting": "weftline.live",
    "DamagedError": "weftline.errors",
    "InputError": "weftline.errors",
    "ResultsWarning": "weftline.errors",
    "RunFailed": "weftline.errors",
    "WeftlineWarning": "weftline.errors",
    "DeterminismWarning": "weftline.errors",
}

__all__ = [
    "Collected",
    "Comparison",
    "Controller",
    "DamagedError",
    "DeterminismWarning",
    "InputError",
    "LiveCollector",
    "ResultsWarning",
    "Run",
    "RunFailed",
    "Scenario",
    "SweepResult",
    "Table",
    "WeftlineWarning",
    "collect",
    "collecting",
    "compare",
    "load",
    "plot",
    "run",
    "show_versions",
    "sweep",
]


if _os.environ.get("WEFTLINE_ENGINE"):
    from weftline.own_schemes import take_engine_or_exit as _take_engine

    _take_engine(_os.environ["WEFTLINE_ENGINE"])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from weftline import _native

        return _native.version()
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'weftline' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, "__version__"])
