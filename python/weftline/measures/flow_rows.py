"""Which flows of a run a number is about, and the rows of the table of flows that these are."""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftline import columns, quantities
from weftline.errors import InputError, nearest

if TYPE_CHECKING:
    from weftline.runs import Run


@dataclass(frozen=True, kw_only=True)
class Flows:
    """Which flows count: sizes in bytes and times of start, ends included, and one group or all."""

    min_size: int = 0
    max_size: int | None = None
    group: str | None = None
    first_ns: float = -math.inf
    last_ns: float = math.inf
    by_group: tuple[tuple[str, float, float], ...] = ()
    """Group, first and last time of start of groups that have times of their own; one may have several."""

    @property
    def is_by_size(self) -> bool:
        """Whether some sizes do not count."""
        return self.min_size > 0 or self.max_size is not None

    @property
    def is_by_start(self) -> bool:
        """Whether some times of start do not count."""
        return (self.first_ns, self.last_ns, self.by_group) != (-math.inf, math.inf, ())

    def times_of(self, group: str) -> list[tuple[float, float]]:
        """Return the first and the last time of start that count of a group; it may have several pairs."""
        own = [(first, last) for name, first, last in self.by_group if name == group]
        return own or [(self.first_ns, self.last_ns)]


ALL = Flows()


_OFFERED = ("flow_id", "src", "dst", "size_bytes", "start_ns", "group")
_COLUMNS = ("start_ns", "size_bytes", "group", "fct_ns", "ideal_fct_ns", "slowdown")


def read(run: Run) -> dict[str, list[Any]]:
    """Return the columns of a run's flows that decide which of them count, and what of them."""
    return _read(run.folder, (run.out / "flows.parquet").stat().st_mtime_ns)


@lru_cache(maxsize=4)
def _read(folder: Path, modified: int) -> dict[str, list[Any]]:
    from weftline import _native

    del modified  # part of the key alone
    return columns.read(_native.table(str(folder), "flows"), _COLUMNS)


def offered(run: Run) -> bytes:
    """Return a digest of the flows that a run was offered: number, ends, size, start and group of each."""
    return _offered(run.folder, (run.out / "flows.parquet").stat().st_mtime_ns)


@lru_cache(maxsize=4096)
def _offered(folder: Path, modified: int) -> bytes:
    from weftline import _native

    del modified  # part of the key alone
    found = columns.read(_native.table(str(folder), "flows"), _OFFERED)
    rows = sorted(zip(*(found[column] for column in _OFFERED), strict=True))
    return hashlib.sha256(repr(rows).encode()).digest()


def pooled(runs: Sequence[Run], flows: Sequence[Flows], column: str) -> dict[int, float]:
    """Return percentiles 1 to 99 of a column of the finished flows that count, of all runs together.

    `flows`: those that count in each run.
    """
    if not all((run.out / "flows.parquet").exists() for run in runs):
        return {}
    found = tuple((run.folder, (run.out / "flows.parquet").stat().st_mtime_ns) for run in runs)
    return _pooled(found, tuple(flows), column)


@lru_cache(maxsize=1024)
def _pooled(runs: tuple[tuple[Path, int], ...], flows: tuple[Flows, ...], column: str) -> dict[int, float]:
    values: list[float] = []
    for (folder, modified), one in zip(runs, flows, strict=True):
        of = _read(folder, modified)
        values += [of[column][n] for n in _rows(of, one, finished=True) if of[column][n] is not None]
    values.sort()
    last = len(values) - 1
    return {p: values[min(last, int(len(values) * p / 100))] for p in range(1, 100)} if values else {}


def starts_ns(run: Run) -> tuple[float, float]:
    """Return when the first and the last flow started; 0, 0 without flows."""
    return _starts_ns(run.folder, (run.out / "flows.parquet").stat().st_mtime_ns)


@lru_cache(maxsize=4096)
def _starts_ns(folder: Path, modified: int) -> tuple[float, float]:
    starts = _read(folder, modified)["start_ns"]
    return (min(starts), max(starts)) if starts else (0.0, 0.0)


def last_start_ns(run: Run) -> float | None:
    """Return when the last flow started; None without flows."""
    return _last_start_ns(run.folder, (run.out / "flows.parquet").stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _last_start_ns(folder: Path, modified: int) -> float | None:
    from weftline import _native

    del modified  # part of the key alone
    return max(columns.read(_native.table(str(folder), "flows"), ("start_ns",))["start_ns"], default=None)


def chosen(run: Run, flows: Flows, *, finished: bool | None = True) -> list[int]:
    """Return the rows of the flows that count: those that finished, those that did not, or (None) both."""
    return _rows(read(run), flows, finished)


def _rows(of: dict[str, list[Any]], flows: Flows, finished: bool | None) -> list[int]:
    highest = math.inf if flows.max_size is None else flows.max_size
    times = {group: flows.times_of(group) for group in set(of["group"])} if flows.is_by_start else {}
    return [
        n
        for n, start in enumerate(of["start_ns"])
        if finished in (None, of["fct_ns"][n] is not None)
        and flows.min_size <= of["size_bytes"][n] <= highest
        and flows.group in (None, of["group"][n])
        and (not times or any(first <= start <= last for first, last in times[of["group"][n]]))
    ]


def check_group(run: Run, group: str | None) -> None:
    """Raise an error if the run has no flow and no workload of this group."""
    if group is None:
        return
    known = list((run.summary.get("slowdown") or {}).get("by_group") or {})
    if group in known:
        return
    workloads = run.scenario.get("workload")
    known += [str(one["group"]) for one in workloads if "group" in one] if isinstance(workloads, list) else []
    if group in known:
        return
    known = list(dict.fromkeys([*known, *read(run)["group"]]))
    if group not in known:
        near = nearest(str(group), known)
        raise InputError(f'{run.out}: the run has no group "{group}": {near}known: {", ".join(known)}')


def size_of(given: object, name: str) -> int:
    """Return a size in bytes: a whole number from 0, or text such as ``"10KB"``."""
    if isinstance(given, str):
        try:
            return int(quantities.parse_bytes(given))
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
    try:
        size = int(given) if isinstance(given, float) and given.is_integer() else operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        size = -1
    if isinstance(given, bool) or not 0 <= size < 2**64:
        raise InputError(
            f'{name}: expected a size in bytes, or with its unit such as "10KB", found {given!r}'
        )
    return size


def number(values: list[float], key: str) -> float | None:
    """Return the mean or a percentile by the engine's rule: element floor(n p), counted from 0."""
    if not values:
        return None
    if key == "mean":
        return math.fsum(values) / len(values)
    values.sort()
    return values[min(len(values) - 1, int(len(values) * int(key[1:]) / 100))]
