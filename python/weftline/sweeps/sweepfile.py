"""The file of a sweep: a scenario, what varies, how often, and what to report.

    name, question          what it is called, and what is to be found out
    scenario                a scenario's file, or the scenario itself as a table
    seeds                   a number of runs (5: seeds 1 to 5), a list, or text such as "1-5,9"; without it
                            the scenario's own seed
    zip                     lists of axes that advance together: [["leaves", "spines"]]
    [set]                   settings of every point: "path" = value
    [controllers]           controllers in Python, which scenarios name as python:NAME: NAME = "FILE.py:CLASS"
    [[axis]]                name, and one of
                              key = "path", values = [...]
                              key = "path", range = { from, to, step } or { from, to, points, scale = "log" }
                              keys = ["path", "path"], values = [[a, b], ...]       several keys at once
                              variants = [{ name, set = { path = value } }, ...]    anything, by name
    [report]                metrics, rows = axis, along = axis, against = variant of rows, group,
                            sizes = { min, max }, interval = "t" or "bootstrap", warmup, drain, answer

Every combination of axes is run with every seed. The seeds are the same everywhere, so that schemes meet the
same flows.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from weftline import quantities, renamed, scenarios
from weftline.errors import InputError, nearest
from weftline.measures import metrics, stats
from weftline.quantities import parse_numbers
from weftline.sweeps.axes import SEEDS_NOT_SET, Axis, check_names, read_zipped
from weftline.sweeps.axes import read as axes_of
from weftline.toml_lines import Where, check_keys

MAX_POINTS = 200_000
MAX_SEEDS = 10_000
_KEYS = {
    "sweep": "name question scenario seeds zip set controllers axis report",
    "report": "metrics rows along against group sizes interval warmup drain answer",
    "sizes": "min max",
}
_ANSWER = re.compile(r"\s*(.+?)\s*(<|>)\s*([^<>=\s][^<>=]*?)\s*")

Choice = tuple[tuple[str, str], ...]
"""One variant of each axis: ((axis, variant), ...)."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """What is made of the runs."""

    metrics: Sequence[str] = ("slowdown_p50", "slowdown_p99")
    rows: str = ""
    """The axis whose variants are compared; the first that is not `along` without it."""
    along: str = ""
    """The axis of x, or of the columns of a table."""
    against: str = ""
    """The variant of `rows` that the others are compared with; the first without it."""
    group: str | None = None
    sizes: Mapping[str, str] = field(default_factory=dict)
    interval: str = "t"
    warmup: str = ""
    """A time, or a share such as "20%" of that in which flows start: those that start within do not count."""
    drain: str = ""
    """The same at the end."""
    answer: str = ""
    """A bound on a metric, such as "slowdown_p99 < 5", that each combination keeps or not."""

    @property
    def reported(self) -> list[str]:
        """The metric of the answer, and the metrics of the report."""
        bound = self.bound
        return list(dict.fromkeys([*(bound[:1] if bound else ()), *self.metrics]))

    @property
    def groups(self) -> dict[str, str]:
        """The groups that it names, each with the key that does and its value, for messages."""
        found = {self.group: f'report.group = "{self.group}"'} if self.group else {}
        for name in self.reported:
            group = metrics.group_of(name)
            if group is not None:
                found.setdefault(group, f'metric "{name}"')
        return found

    @property
    def size_range(self) -> tuple[int, int | None]:
        """Minimum and maximum size in bytes of the flows that count."""
        low, high = (self.sizes.get(key) for key in ("min", "max"))
        return (
            int(quantities.parse_bytes(low)) if low else 0,
            int(quantities.parse_bytes(high)) if high else None,
        )

    @property
    def bound(self) -> tuple[str, str, float] | None:
        """The answer's metric, ``"<"`` or ``">"``, and the number, in the metric's unit.

        Raises
        ------
        InputError
            If there is no such metric, the number is not in its unit, or every value or none meets the bound.
        """
        match = _ANSWER.fullmatch(self.answer)
        if not match:
            return None
        name = renamed.METRICS.get(match[1], match[1])
        number = _number_of(name, match[3])
        _check_bound(name, match[2], number)
        return name, match[2], number


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A sweep as its file says it."""

    name: str
    question: str
    file: str
    source: scenarios.Source
    settings: Mapping[str, Any]
    axes: Sequence[Axis]
    zipped: Sequence[Sequence[str]]
    seeds: Sequence[int]
    report: Report
    report_at: str = ""
    """Where its report is declared, as ``FILE:LINE``."""

    def combinations(self) -> list[Choice]:
        """Return every combination of variants, the last axis fastest; zipped axes advance together."""
        together = {name: tuple(names) for names in self.zipped for name in names}
        groups = list(dict.fromkeys(together.get(axis.name, (axis.name,)) for axis in self.axes))
        axes = {axis.name: axis for axis in self.axes}
        steps = [
            list(zip(*([(name, variant) for variant in axes[name].variants] for name in names), strict=True))
            for names in groups
        ]
        order = {axis.name: place for place, axis in enumerate(self.axes)}
        return [
            tuple(sorted(itertools.chain(*step), key=lambda pair: order[pair[0]]))
            for step in itertools.product(*steps)
        ]

    def changes(self, choice: Choice) -> dict[str, Any]:
        """Return the settings of a combination, later axes over earlier ones."""
        axes = {axis.name: axis for axis in self.axes}
        return scenarios.layered(self.settings, *(axes[name].variants[variant] for name, variant in choice))


def load(path: str | os.PathLike[str]) -> Sweep:
    """Return the sweep of a file.

    Raises
    ------
    InputError
        If it cannot be read, or is not as it should be: with the line where it is known.
    """
    path = Path(path)
    text = scenarios.read_text(path, "a sweep")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: {error}") from None
    return read(data, file=str(path), base_dir=path.parent, text=text)


def read(data: Mapping[str, Any], *, file: str, base_dir: Path, text: str = "") -> Sweep:
    """Return the sweep that a parsed file holds; `text` is the file's, for the lines in messages."""
    where = Where(file, text)
    if "scenario" not in data and ("topology" in data or "workload" in data):
        raise InputError(
            f'{file}: this is a scenario; expected a sweep, which names one: scenario = "{Path(file).name}", '
            "with [[axis]] tables; see docs/sweeps.md"
        )
    check_keys(data, "sweep", _KEYS["sweep"], where)
    axes = axes_of(data.get("axis", []), where)
    zipped = read_zipped(data.get("zip", []), axes, where)
    name = data.get("name", Path(file).stem if text else "sweep")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9._ -]+", name) or not name.strip(". "):
        raise InputError(
            f"{where('name')}: name: expected letters, digits, blanks, '-', '_' and '.', found {name!r}"
        )
    question = _typed(data.get("question", ""), str, "question", where)
    settings = _typed(data.get("set", {}), dict, "set", where)
    if "seed" in settings:
        raise InputError(f"{where('seed', 'set')}: set: {SEEDS_NOT_SET}")
    source = _with_controllers(data, base_dir, where)
    sweep = Sweep(
        name=name,
        question=question.strip(),
        file=file,
        source=source,
        settings=settings,
        axes=list(axes.values()),
        zipped=zipped,
        seeds=parse_seeds(data["seeds"], f"{where('seeds')}: seeds") if "seeds" in data else own_seed(source),
        report=_report(data.get("report", {}), axes, where),
        report_at=where("", "report"),
    )
    check_names(axes, sweep.report.reported, lambda number: where("name", "axis", number))
    _refuse_lost(settings, axes, where)
    highest = len(sweep.seeds)
    for steps in {tuple(z) for z in zipped} | {(a,) for a in axes if not any(a in z for z in zipped)}:
        highest *= len(axes[steps[0]].variants)
    if highest > MAX_POINTS:
        raise InputError(
            f"{file}: {highest:,} points; expected at most {MAX_POINTS:,}: fewer axes, values or seeds"
        )
    return sweep


def _refuse_lost(settings: Mapping[str, Any], axes: Mapping[str, Axis], where: Where) -> None:
    """Refuse a table that replaces one in which what comes before it sets a key."""
    if undone := scenarios.first_lost(settings):
        raise InputError(f"{where('', 'set')}: {scenarios.lost_text('[set]', *undone)}")
    earlier = dict.fromkeys(settings, "[set]")
    for number, axis in enumerate(axes.values()):
        for name, variant in axis.variants.items():
            if undone := scenarios.first_lost(variant):
                what = f'axis "{axis.name}", variant "{name}"'
                raise InputError(f"{where('', 'axis', number)}: {scenarios.lost_text(what, *undone)}")
        for path in dict.fromkeys(path for variant in axis.variants.values() for path in variant):
            if lost := scenarios.replaced_by(path, earlier):
                raise InputError(
                    f'{where("", "axis", number)}: axis "{axis.name}": {path} replaces the table in which '
                    f"{earlier[lost]} has {lost}, which would have no effect: set {lost} in its variants, or "
                    f"set single keys there, such as {path}.kind"
                )
        earlier |= {path: f'axis "{axis.name}"' for variant in axis.variants.values() for path in variant}


def parse_seeds(value: object, what: str) -> list[int]:
    """Return the seeds of a number of runs, a list, or text such as ``"1-5,9"``."""
    expected = f'expected a number of runs from 1 to {MAX_SEEDS}, a list of seeds, or text such as "1-5"'
    if isinstance(value, bool):
        raise InputError(f"{what}: {expected}, found {value!r}")
    if isinstance(value, int):
        if not 1 <= value <= MAX_SEEDS:
            raise InputError(f"{what}: {expected}, found {value}")
        return list(range(1, value + 1))
    if isinstance(value, list | tuple | range):
        if not value or not all(
            isinstance(s, int) and not isinstance(s, bool) and 0 <= s < 2**63 for s in value
        ):
            raise InputError(f"{what}: {expected}, found {list(value)!r}")
        if twice := [seed for seed, count in Counter(value).items() if count > 1]:
            raise InputError(f"{what}: {twice[0]} is there twice")
        return list(value)
    if not isinstance(value, str):
        raise InputError(f"{what}: {expected}, found {value!r}")
    return parse_numbers(value, f"{what} {value}", "seed")


def own_seed(source: scenarios.Source) -> list[int]:
    """Return the seed that a scenario's text sets, 1 if it sets none or cannot be read."""
    try:
        seed = tomllib.loads(source.text).get("seed", 1)
    except tomllib.TOMLDecodeError:
        return [1]  # the engine reports what is wrong
    return [seed] if isinstance(seed, int) and 0 <= seed < 2**63 else [1]


def _typed(value: Any, kind: type, key: str, where: Where) -> Any:
    if not isinstance(value, kind):
        expected = "text" if kind is str else "a table"
        raise InputError(f"{where(key)}: {key}: expected {expected}, found {value!r}")
    return value


def _with_controllers(data: Mapping[str, Any], base_dir: Path, where: Where) -> scenarios.Source:
    source = _scenario(data, base_dir, where)
    if not data.get("controllers"):
        return source
    from weftline import controllers

    try:
        return replace(source, controllers=controllers.of(data["controllers"], base_dir))
    except InputError as error:
        raise InputError(f"{where('', 'controllers')}: {error}") from None


def _scenario(data: Mapping[str, Any], base_dir: Path, where: Where) -> scenarios.Source:
    given = data.get("scenario")
    if isinstance(given, Mapping):
        named = {"name": data.get("name", "sweep"), **given}
        return scenarios.Source(
            text=scenarios.to_toml(named), file=f"{where()}, [scenario]", base_dir=str(base_dir)
        )
    if not isinstance(given, str):
        raise InputError(
            f'{where("scenario")}: scenario: expected a file such as "fabric.toml", or a table, '
            f"found {'nothing' if given is None else repr(given)}"
        )
    try:
        return scenarios.load(base_dir / given)
    except InputError as error:
        raise InputError(f"{where('scenario')}: scenario: {error}") from None


def _report(table: object, axes: Mapping[str, Axis], where: Where) -> Report:
    if not isinstance(table, Mapping):
        raise InputError(f"{where('report')}: report: expected a table, found {table!r}")
    table = renamed.section(table, f"{where('report')}: report.")
    check_keys(table, "report", _KEYS["report"], where, "report")

    def wrong(key: str, expected: str) -> InputError:
        return InputError(f"{where(key, 'report')}: report.{key}: expected {expected}, found {table[key]!r}")

    for key in ("rows", "along", "against", "group", "warmup", "drain", "answer", "interval"):
        if key in table and not isinstance(table[key], str):
            raise wrong(key, "text")
    for key in ("rows", "along"):
        if table.get(key, "") and table[key] not in axes:
            raise wrong(key, f"an axis; {nearest(table[key], list(axes))}known: {', '.join(axes) or 'none'}")
    names = table.get("metrics", Report.metrics)
    if not isinstance(names, list | tuple) or not names or not all(isinstance(n, str) for n in names):
        raise wrong("metrics", "a list of metrics")
    report = Report(**{**table, "metrics": tuple(names)})
    if report.interval not in stats.METHODS:
        raise wrong("interval", '"t" or "bootstrap"')
    if report.along and report.along == report.rows:
        raise wrong("along", "another axis than rows")
    if report.against:
        able = [report.rows] if report.rows else [name for name in axes if name != report.along]
        found = [name for name in able if report.against in axes[name].variants]
        if not found:
            known = [variant for name in able for variant in axes[name].variants]
            near = nearest(report.against, known)
            raise wrong("against", f"a variant of {' or '.join(able)}; {near}known: {', '.join(known)}")
        # Without rows those are compared of which it is one.
        report = replace(report, rows=found[0])
    try:
        bound = report.bound
    except InputError as error:
        raise InputError(f"{where('answer', 'report')}: report.answer: {error}") from None
    if report.answer and bound is None:
        raise wrong("answer", 'a bound on a metric, with < or >, such as "slowdown_p99 < 5"')
    check_window(
        {"warmup": report.warmup, "drain": report.drain},
        lambda key: f"{where(key, 'report')}: report.{key}",
    )
    _check_sizes(table.get("sizes", {}), where)
    for name in report.metrics:
        try:
            metrics.metric(name)
        except InputError as error:
            raise InputError(f"{where('metrics', 'report')}: report: {error}") from None
    return report


def check_window(window: Mapping[str, object], called: Callable[[str], str]) -> None:
    """Refuse a warmup and a drain that are not times or shares, or that leave no time between them.

    `called` has the place and the name of each, by its key.
    """
    shares: dict[str, float] = {}
    for key, text in window.items():
        try:
            if not isinstance(text, str):
                raise ValueError(text)
            if "%" in text:
                shares[key] = share(text)
            elif text:
                time_ns(text)
        except ValueError:
            raise InputError(
                f'{called(key)}: expected a time such as "1ms", or a share such as "20%", found {text!r}'
            ) from None
    if shares and sum(shares.values()) >= 1:
        what = " and ".join(f'{key} = "{window[key]}"' for key in shares)
        raise InputError(
            f'{called(next(iter(shares)))}: no flow counts with {what}: expected less than "100%" in total'
        )


def _check_sizes(sizes: object, where: Where) -> None:
    here = where("sizes", "report")
    if not isinstance(sizes, Mapping):
        raise InputError(f'{here}: report.sizes: expected {{ min = "10KB", max = "1MB" }}, found {sizes!r}')
    for key, value in sizes.items():
        if key not in _KEYS["sizes"].split():
            raise InputError(f'{here}: report.sizes: unknown key "{key}": expected min and max')
        try:
            quantities.parse_bytes(value)
        except InputError as error:
            raise InputError(f"{here}: report.sizes.{key}: {error}") from None
    if len(sizes) == 2 and quantities.parse_bytes(sizes["min"]) > quantities.parse_bytes(sizes["max"]):
        raise InputError(
            f'{here}: report.sizes: no flow has a size from min = "{sizes["min"]}" to '
            f'max = "{sizes["max"]}": expected min at most max'
        )


def _number_of(name: str, text: str) -> float:
    """Return the number of a bound on a metric, in the unit in which its values are stored."""
    what, read = _BOUNDS[metrics.metric(name).unit]
    try:
        number = read(text)
    except InputError as error:
        raise InputError(f"{name} {what}: {error}") from None
    if not math.isfinite(number):
        raise InputError(f"{name} {what}: expected a finite number, found {text!r}")
    return number


def _check_bound(name: str, sign: str, number: float) -> None:
    """Refuse a bound that decides nothing: a slip, most often of the unit."""
    found = metrics.metric(name)
    low = -math.inf if found.minimum is None else found.minimum
    if sign == "<":
        none, every = number <= low, number > found.maximum
    else:
        none, every = number >= found.maximum, number < low
    if not (none or every):
        return
    limit = f"below {found.text(low)}" if number <= low else f"above {found.text(found.maximum)}"
    hint = f'; did you mean "{number:g}%"?' if found.unit == "share" and 1 < number <= 100 else ""
    raise InputError(
        f"{name} is never {limit}, so {'no' if none else 'every'} value is "
        f"{'below' if sign == '<' else 'above'} {found.text(number)}{hint}"
    )


def _plain(text: str) -> float:
    """Return a number without unit."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"expected a plain number such as 5, found {text!r}") from None


def _fraction(text: str) -> float:
    """Return the share of ``"20%"`` or ``"0.2"``."""
    try:
        return share(text) if "%" in text else float(text)
    except ValueError:
        raise InputError(f'expected a share such as "20%" or 0.2, found {text!r}') from None


def share(text: str) -> float:
    """Return the share of ``"20%"``."""
    match = re.fullmatch(r"\s*([0-9.]+)\s*%\s*", text)
    if not match:
        raise ValueError(text)
    return float(match[1]) / 100


_BOUNDS: dict[str, tuple[str, Callable[[str], float]]] = {
    "ns": ("is a time", quantities.parse_time_ns),
    "bytes": ("is a size", quantities.parse_bytes),
    "bit/s": ("is a rate", quantities.parse_rate),
    "share": ("is a share", _fraction),
    "count": ("is a count", _plain),
    "number": ("has no unit", _plain),
}
"""By unit of a metric: its description, and how the number of a bound on it is read."""


def time_ns(text: str) -> float:
    """Return the nanoseconds of ``"10us"``."""
    return quantities.parse_time_ns(text)
