"""A run and its results, from Python.

`run` does one; `Run.open` takes up the folder of an earlier one. Tables come as Arrow (the PyCapsule
interface), which pandas, polars, DuckDB and pyarrow take without copying; weftline itself needs none of
them.
"""

from __future__ import annotations

import json
import math
import numbers
import os
import sys
import tomllib
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftline import _native, integrity, own_schemes, renamed
from weftline.errors import DamagedError, InputError, RunFailed, path_text, utf8, warn
from weftline.kept_paths import KeptPath
from weftline.measures.flow_rows import Flows, check_group, size_of
from weftline.measures.over_time import check_series
from weftline.tables import Table

if TYPE_CHECKING:
    from weftline.figures.plots import Plots


def run(
    scenario: str | os.PathLike[str] | Mapping[str, Any],
    *,
    set: Mapping[str, object] | None = None,
    seed: int | None = None,
    threads: int | None = None,
    memory: str | None = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    controllers: Mapping[str, type | str] | None = None,
    progress: Callable[[dict[str, Any]], None] | None = None,
) -> Run:
    """Run a scenario and return its results, or those that an equal run has stored.

    A run is equal if its resolved scenario is, the content of every file and controller that it names, and
    the build of weftline. A line on standard error says that its results were there; ``run.reused`` is True.

    A run that stalled (flows unfinished, nothing moves) or reached its memory limit returns too:
    ``run.summary["status"]`` states this. Warnings to check before the result is trusted are in
    ``run.warnings``, and given as `WeftlineWarning`, as the command line prints it.

    Parameters
    ----------
    scenario : path or dict
        A TOML file, or the same content as a dict; a dict without a name is called ``run``.
    set : dict, optional
        Values by dotted path that replace those of the scenario: ``{"workload.0.load": 0.7}``.
    seed : int, optional
        Seed of every random stream; the scenario's own without it.
    threads : int, optional
        Worker threads; 0: choose automatically; the scenario's ``run.threads`` without it. Results
        do not depend on it.
    memory : str, optional
        Most memory that this process may hold, such as ``"8GB"``: beyond it the run ends with its results
        so far and the status ``memory-limit``. ``"none"``: when the machine has no memory left; without it
        as the scenario says.
    out : path, optional
        Folder for the results; ``out/<name>-<hash>`` without it.
    force : bool
        Run in any case, and replace the results that the folder already holds.
    controllers : dict of name to class, optional
        Congestion controllers in Python, which the scenario names as ``python:NAME``: classes (see
        `weftline.Controller`), or where they are, ``"FILE.py:CLASS"``.
    progress : callable, optional
        Called about ten times a second with a dict: ``now_ns``, ``until_ns`` (or None), ``flows_done``,
        ``flows``, ``packet_hops``, ``hops_per_second``, ``seconds``. Without it, a notebook shows a line
        under the cell that runs.

    Raises
    ------
    InputError
        If the scenario cannot be run as it is written, or the folder already holds results of another run.
    RunFailed
        If the run could not be completed; what was computed stays in the folder.
    """
    from weftline.scenario import Scenario

    found = Scenario(scenario, set=set, seed=seed, controllers=controllers)
    return found.run(threads=threads, memory=memory, out=out, force=force, progress=progress)


# What tables and pages calculate with; the rest of a summary is passed on as it is.
_NUMBERS = (
    "flows",
    "flows_done",
    "end_ns",
    "packet_hops",
    "packet_hops_per_cpu_second",
    "bytes_on_wire",
    "drops",
    "pauses",
    "paused_share",
    "recirculated_share",
    "ecn_marks",
    "cpu_seconds",
    "memory_limit_bytes",
    "memory_held_bytes",
)


def _checked(summary: object) -> dict[str, Any]:
    """Return what summary.json holds if it can be the summary of a run, else raise ValueError."""
    if not isinstance(summary, dict):
        raise ValueError("expected an object")
    for key in _NUMBERS:
        value = summary.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise ValueError(f"{key}: expected a number, found {json.dumps(value)[:40]}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{key}: expected a finite number, found {value}")
    if "status" not in summary:
        raise ValueError('expected an object with the key "status", which every run writes')
    return summary


def _check_group_name(group: object) -> None:
    if group is not None and not isinstance(group, str):
        raise InputError(f"group: expected the name of a group or None, found {group!r}")
    utf8("group", group or "")


def _check_count(name: str, value: object, low: int = 0, bits: int = 64) -> None:
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_whole or not low <= value < 2**bits:  # type: ignore[operator]
        raise InputError(f"{name}: expected a whole number from {low} to 2^{bits} - 1, found {value!r}")


def _check_name(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise InputError(f"{name}: expected a name, found {value!r}")
    utf8(name, value)


def _check_time(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputError(f"{name}: expected a time in nanoseconds, found {value!r}")


class Run:
    """The results of one run.

    Attributes
    ----------
    out : Path
        The run's folder, as it was given; the absolute path in another working directory.
    summary : dict
        Totals, percentiles, versions and fingerprint: ``summary.json``.
    reused : bool
        Whether `run` found these results instead of computing them.
    """

    def __init__(self, out: str | os.PathLike[str], summary: dict[str, Any]) -> None:
        self._out = KeptPath(out)
        self.summary = summary
        self.reused = False
        # As texts, so that what a caller changes in an answer is not in the next one.
        self._slowdowns: dict[tuple[Any, ...], str] = {}
        self._completions: dict[tuple[Any, ...], str] = {}
        self._mark: Mapping[str, str] | bytes | None = None

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Run:
        """Return the run whose results are in `folder`; its `warnings` are given as `WeftlineWarning`.

        Raises
        ------
        InputError
            If it is not the folder of a run, or its summary cannot be read.
        """
        found = cls.read(folder)
        warn(found.warnings)
        return found

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Run:
        """Return the same without giving its warnings.

        Raises
        ------
        InputError
            If it is not the folder of a run, or its summary cannot be read.
        DamagedError
            If it is not as the run wrote it. Its tables are looked at when they are first read.
        """
        path = Path(path_text("folder", folder))
        if path.is_file():
            raise InputError(f"{path}: is a file; expected the folder of a run, as `weftline run` prints it")
        digests = integrity.check(path)
        try:
            text = (path / "summary.json").read_text("utf-8")
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise InputError(
                f"{path}: not the folder of a finished run (summary.json: {why}); "
                "expected what `weftline run` prints as its folder"
            ) from None
        try:
            summary = _checked(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path / 'summary.json'}: not the summary of a run: {error}") from None
        if digests is None:
            integrity.warn_unverified(path)
        found = cls(path, summary)
        found._mark = integrity.mark_of(path, digests)
        return found

    @property
    def out(self) -> Path:
        """The run's folder, as it was given; the absolute path in another working directory."""
        return self._out.path

    def check(self) -> None:
        """Check that the folder holds the results that were opened; reads no table.

        Raises
        ------
        DamagedError
            If it holds other results by now, or none.
        """
        if self._mark is not None:
            integrity.check_mark(self.out, self._mark)

    @property
    def folder(self) -> Path:
        """The run's folder after `check`: what reads the results takes it from here."""
        self.check()
        return self.out

    def verify(self) -> bool:
        """Check every file of the run against its digest; return False if an earlier version wrote none.

        Raises
        ------
        DamagedError
            If a file is not what the run wrote, or the folder holds other results by now.
        """
        return _native.check_files(str(self.folder)) is not None

    @property
    def flows(self) -> Table:
        """One row per flow (see the columns in docs/results.md; times in ns)."""
        return Table(self, "flows")

    @property
    def series(self) -> Table:
        """What `[measure]` records over time: time_ns, entity, metric, value."""
        return Table(self, "series")

    @property
    def jobs(self) -> Table:
        """One row per step of a job: a collective or the event of an incast (see docs/results.md)."""
        return Table(self, "jobs")

    @property
    def ranks(self) -> Table:
        """One row per rank and step of a job graph, such as a collective (see docs/results.md)."""
        return Table(self, "ranks")

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The rows of `jobs` as dicts; empty for a run without jobs, or of an earlier version."""
        return [dict(row) for row in self._steps]

    @cached_property
    def _steps(self) -> list[dict[str, Any]]:
        return json.loads(_native.jobs(str(self.folder)))

    def slowdown(
        self, *, bins: int = 20, scheme: str = "equal-count", group: str | None = None
    ) -> dict[str, Any]:
        """Return FCT slowdown by flow size.

        Parameters
        ----------
        bins : int
            Number of bins that hold equally many flows, in order of size.
        scheme : {"equal-count", "decades"}
            "decades" has one bin for each power of ten of the size instead.
        group : str, optional
            Only the flows of this group.

        Returns
        -------
        dict
            ``bins``: a list with ``size_bytes`` (the largest size in the bin), ``count``, ``p50``, ``p95``,
            ``p99``, ``mean``, ``max``; ``overall``: the same over all finished flows. Slowdown is FCT over
            ideal FCT; it may be below 1 under ``measure.ideal = "phost"``, and where acknowledgements are
            lost.
        """
        _check_count("bins", bins, low=1, bits=32)
        _check_name("scheme", scheme)
        _check_group_name(group)
        asked = (bins, scheme, group)
        if asked not in self._slowdowns:
            # Millions of flows take their time to read, and a page asks for the same several times.
            self._slowdowns[asked] = _native.slowdown(str(self.folder), *asked)
        return json.loads(self._slowdowns[asked])

    def completion(
        self,
        *,
        min_size: int | str = 0,
        max_size: int | str | None = None,
        group: str | None = None,
        **old: int | None,
    ) -> dict[str, Any]:
        """Return completion times, goodputs and slowdowns of the finished flows of a range of sizes.

        Parameters
        ----------
        min_size, max_size : int or str
            Range of sizes, ends included: bytes, or text such as ``"10KB"``; the former names still work,
            with a warning.
        group : str, optional
            Only the flows of this group.

        Returns
        -------
        dict
            ``count``, and of ``fct_ns``, ``goodput_bps`` (payload over FCT) and ``slowdown`` each ``p50``,
            ``p95``, ``p99``, ``mean`` (each flow counts once) and ``max``; ``nfct``, the sum of FCTs over the
            sum of the ideal ones. None where there is no such flow.

        Raises
        ------
        InputError
            If the run has no such group, or no size is in the range.
        """
        if old:
            known = {"min_size": min_size, "max_size": max_size}
            return self.completion(group=group, **known | renamed.arguments(old, renamed.SIZE_ARGUMENTS))
        low, high = size_of(min_size, "min_size"), None
        if max_size is not None:
            high = size_of(max_size, "max_size")
            if high < low:
                raise InputError(f"expected min_size at most max_size, found {min_size!r} and {max_size!r}")
        _check_group_name(group)
        check_group(self, group)
        return self.completion_of(Flows(min_size=low, max_size=high, group=group))

    def completion_of(self, flows: Flows) -> dict[str, Any]:
        """Return the same of flows chosen by size and group; 0 flows count if the run lacks the group."""
        asked = (flows.min_size, flows.max_size, flows.group)
        if asked not in self._completions:
            self._completions[asked] = _native.completion(str(self.folder), *asked)
        return json.loads(self._completions[asked])

    def distribution(
        self, column: str = "slowdown", *, group: str | None = None, max_points: int = 300, **old: int
    ) -> list[Any]:
        """Return the cumulative curve of the finished flows: ``[[value, share at or below it], ...]``.

        It has one point for each distinct value, and its last share is 1. No flow that did not finish is in
        it.

        Parameters
        ----------
        column : {"slowdown", "fct_ns", "goodput_bps"}
            What is distributed.
        group : str, optional
            Only the flows of this group.
        max_points : int
            Maximum number of points, 0: all; the first and the last are kept, and the tail keeps its shape.
            `most` is its former name.

        Raises
        ------
        InputError
            If there is no such column, or the run has no such group.
        """
        if old:
            new = renamed.arguments(old, renamed.POINT_ARGUMENTS)
            return self.distribution(column, group=group, **new)
        _check_name("column", column)
        _check_count("max_points", max_points)
        _check_group_name(group)
        check_group(self, group)
        return json.loads(_native.distribution(str(self.folder), column, max_points, group))

    def deadlines(self, *, group: str | None = None) -> tuple[int, int]:
        """Return how many deadlines of flows (of a group) were decided, and how many of these were met.

        A deadline after the end of the run, of a flow that had not finished, is not decided.

        Raises
        ------
        InputError
            If the run has no such group.
        """
        from weftline.measures import deadlines

        _check_group_name(group)
        check_group(self, group)
        count, met, left = deadlines.counts(self, Flows(group=group))
        return count - left, met

    def deadlines_of(self, flows: Flows) -> tuple[int, int]:
        """Return how many flows chosen by group have a deadline, and how many of these had ended by it.

        0 flows count if the run lacks the group.
        """
        found = json.loads(_native.deadlines(str(self.folder), flows.group))
        return found["count"], found["met"]

    def backlog(self) -> dict[str, Any] | None:
        """Return what was under way when half of the flows had started and when the last one did.

        Flows without an end are left out.

        Returns
        -------
        dict or None
            ``half_ns``, ``last_ns``: these moments; ``half_bytes``, ``last_bytes``: payload of flows started
            but not delivered, None where an interval of goodput is longer than the time in between, or where
            a flow without an end is of the group of others; ``started_bytes``: of the flows that started in
            between. None unless ``measure.goodput`` by group was enabled and two such flows started.
        """
        return json.loads(_native.backlog(str(self.folder)))

    def shares(self, from_ns: float = 0, to_ns: float | None = None) -> list[dict[str, Any]]:
        """Return what each flow delivered between two times.

        ``flow``, ``src``, ``dst`` (numbers of hosts), ``group``, ``start_ns``, ``bytes``; ``until_ns``, until
        when goodput was measured: the end of the run, or of the last whole interval in older folders.

        Of the flows whose goodput was measured (``measure.goodput`` by flow), whether they finished or not;
        until the end of the run without `to_ns`.

        Raises
        ------
        InputError
            If one is not a time, or the second is before the first.
        """
        _check_time("from_ns", from_ns)
        until = self.summary.get("end_ns", 0) if to_ns is None else to_ns
        _check_time("to_ns", until)
        if until < from_ns:
            raise InputError(f"to_ns: expected at least from_ns = {from_ns:g}, found {until:g}")
        return json.loads(_native.shares(str(self.folder), from_ns, until))

    @property
    def queues(self) -> dict[str, Any] | None:
        """Queue length over all sampled ports, from a histogram of bins of 1000 bytes; None if not measured.

        ``percentiles``: the lower edges of the bins that they lie in, and the exact ``max``, in bytes;
        ``cdf``: ``[[bytes, share of samples that are shorter], ...]``, at the upper edges of bins.
        """
        found = json.loads(self._queues)
        return found if found and found.get("cdf") else None

    @cached_property
    def _queues(self) -> str:
        folder = str(self.folder)
        try:
            return _native.queues(folder)
        except DamagedError:
            raise
        except (InputError, RunFailed):
            return "null"

    def over_time(self, metric: str, *, every_ns: float = 0, max_points: int = 400) -> dict[str, list[Any]]:
        """Return ``{entity: [[time_ns, value], ...]}`` of one metric, thinned; empty if not measured.

        Values are averaged over time: over spans of `every_ns` where the series has shorter intervals, the
        last of which ends with the run, then over neighbours, to at most `max_points` (0: all). A mean of
        counts is per whole interval. A state (``paused``) is averaged over equal spans. An infinite value is
        None.

        Raises
        ------
        InputError
            If the run has no such series, and it is none of those that any run can record.
        """
        found = self.recorded(metric, every_ns=every_ns, max_points=max_points)
        if not found:
            check_series(self, metric)
        return found

    def recorded(self, metric: str, *, every_ns: float = 0, max_points: int = 400) -> dict[str, list[Any]]:
        """Return the same, empty whatever the name of a series that the run does not have."""
        _check_name("metric", metric)
        _check_time("every_ns", every_ns)
        if not 0 <= every_ns <= sys.float_info.max:
            raise InputError(f"every_ns: expected a finite time of at least 0, found {every_ns!r}")
        _check_count("max_points", max_points)
        return json.loads(_native.series(str(self.folder), metric, every_ns, max_points))["entities"]

    @cached_property
    def scenario(self) -> dict[str, Any]:
        """The resolved scenario."""
        path = self.folder / "scenario.toml"
        integrity.check(self.out, (path.name,))
        try:
            found = tomllib.loads(path.read_text("utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            why = getattr(error, "strerror", None) or error
            raise InputError(f"{path}: cannot be read: {why}") from None
        for keys in (("topology",), ("measure",), ("transport",), ("transport", "controller")):
            place = found
            for key in keys:
                place = place.get(key, {})
            if not isinstance(place, dict):
                raise InputError(f"{path}: {'.'.join(keys)}: expected a table, found {place!r}")
        return found

    @property
    def name(self) -> str:
        """The scenario's name."""
        return str(self.summary.get("name") or self.scenario.get("name") or self.out.name)

    @property
    def plot(self) -> Plots:
        """The figures of this run: ``run.plot.fct_slowdown()``; see `weftline.figures.plots`."""
        from weftline.figures.plots import Plots
        from weftline.measures.lines import lines_of

        return Plots(lines_of([self]))

    @property
    def warnings(self) -> list[str]:
        """What deserves a look before the results are trusted, and how the run ended if it is not done."""
        from weftline import run_status

        return run_status.warnings(self) + [text for text in (run_status.ending(self),) if text]

    def __repr__(self) -> str:
        many = len(self.warnings)
        warned = f", {many} warning{'s' if many > 1 else ''}" if many else ""
        return f"<weftline.Run {self.name!r} {self.summary.get('status')} in {str(self.out)!r}{warned}>"

    def _repr_html_(self) -> str:
        from html import escape

        from weftline.measures.run_facts import facts
        from weftline.terminal import warnings_html

        rows = "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in facts(self))
        return f"<table><caption>{escape(self.name)}</caption>{rows}</table>{warnings_html(self.warnings)}"


def show_versions() -> None:
    """Print the versions that a bug report needs."""
    import platform
    from importlib import metadata

    print(f"weftline  {_native.version()}")
    if own := own_schemes.identity():
        print(f"schemes   {own}")
    print(f"python    {platform.python_version()}")
    print(f"platform  {platform.platform()}")
    for package in ("pyarrow", "pandas", "polars", "duckdb", "vl-convert-python"):
        try:
            print(f"{package:<9} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            print(f"{package:<9} not installed")
