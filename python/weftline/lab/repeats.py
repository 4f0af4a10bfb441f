"""Repeats of the points of an experiment: what is run, in which order, which of them count, what they show.

Points go there and back in turn (ABBA), so that what drifts on the machine meets all of them. What a former
call has finished is kept. Contaminated runs are shown and do not count; where too many are, nothing does.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tomllib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from weftline import provenance
from weftline.errors import InputError
from weftline.lab import agreement, runs
from weftline.measures import stats
from weftline.runs import Run
from weftline.scenario import Scenario, status_of

Interval = tuple[float, float]
Point = TypeVar("Point")


@dataclass
class Pair:
    """One repeat of a point in both engines."""

    simulated: Run
    real: Run

    @property
    def contaminated(self) -> list[str]:
        """Why the lab's run does not count."""
        return list(self.real.summary["lab"]["contaminated"])

    def each(self) -> tuple[Run, Run]:
        """Return the run of both engines."""
        return self.simulated, self.real


AnyPair = TypeVar("AnyPair", bound=Pair)


@contextlib.contextmanager
def reading(path: Path, what: str) -> Iterator[dict[str, Any]]:
    """Yield what a file `lab.toml` says.

    Raises
    ------
    InputError
        If it cannot be read, or the block finds that it is not `what`.
    """
    try:
        yield tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except (
        tomllib.TOMLDecodeError,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
    ) as error:
        raise InputError(f"{path}: is not {what}: {error}") from error


def check_names(path: Path, what: str, names: Sequence[str], has: Collection[str]) -> None:
    """Raise InputError if a file names what it does not have."""
    for name in names:
        if name not in has:
            raise InputError(f"{path}: there is no {what} {name}: it has {', '.join(has)}")


def refuse_rows(path: Path, rows: Sequence[str]) -> None:
    """Raise InputError if rows are named of an experiment without any."""
    if rows:
        raise InputError(f"{path}: has no rows to choose from: leave --rows out")


def refuse_seconds(seconds: float | None) -> None:
    """Raise InputError if a time is given to an experiment whose runs end with the last flow."""
    if seconds is not None:
        raise InputError("--seconds: not for this experiment, whose flows have sizes")


def there_and_back(points: Sequence[Point], repeats: int) -> Iterator[tuple[int, Point]]:
    """Yield every point once a repeat, with the repeat's number from 1 on, which is its seed too."""
    for repeat in range(1, repeats + 1):
        for point in points if repeat % 2 else points[::-1]:
            yield repeat, point


def kept(place: Path, scenario: Scenario) -> bool:
    """Return whether a former call has finished a scenario in a folder, with this build of the engine."""
    if status_of(place) != "done":
        return False
    found = Run.read(place)
    build = (found.summary.get("provenance") or {}).get("build")
    return found.scenario == scenario.values and build is not None and build == provenance.build()


def real(scenario: Scenario, place: Path, what: str, **settings: Any) -> Run:
    """Run a scenario on real packets, unless that is done already; `settings`: those of `runs.run`."""
    if not kept(place, scenario):
        print(what, file=sys.stderr, flush=True)
        runs.run(scenario, str(place), force=True, **settings)
    return Run.read(place)


def pair(scenario: Scenario, place: Path, what: str, **settings: Any) -> Pair:
    """Simulate a scenario and run it on real packets, unless that is done already."""
    simulated = place / "sim"
    if not kept(simulated, scenario):
        scenario.start(out=simulated, force=True, sync=False)
    found = real(scenario, place / "lab", what, **settings)
    return Pair(Run.read(simulated), found)


def clean(pairs: Sequence[AnyPair]) -> list[AnyPair]:
    """Return the repeats that count: none if too many are contaminated."""
    found = [pair for pair in pairs if not pair.contaminated]
    return found if len(found) >= (1 - agreement.MOST_DROPPED) * len(pairs) else []


def spoilt(pairs: Sequence[Pair]) -> str:
    """Return how many repeats are contaminated."""
    return f"{sum(bool(pair.contaminated) for pair in pairs)} of {len(pairs)}"


def verdict(values: Sequence[float], same: float, margin: float) -> tuple[str, Interval | None]:
    """Return whether values are what they would be if alike, `same`, with their 90 % interval.

    "equal": the interval lies within the margin; "different": it leaves `same` out; else "open".
    """
    if len(values) < 2:
        return "open", None
    low, high = stats.interval_t(values, level=0.9)
    if same - margin <= low and high <= same + margin:
        return "equal", (low, high)
    return ("different" if low > same or high < same else "open"), (low, high)


def order(gains: Sequence[Sequence[float]], same: float) -> str:
    """Return whether gains have the same sign in both engines, by 90 % intervals; `same`: without a gain."""
    words = [verdict(values, same, 0.0)[1] for values in gains]
    if not all(words):
        return "open"
    signs = [1 if low > same else -1 if high < same else 0 for low, high in filter(None, words)]
    if 0 in signs:
        return "open"
    return "same order" if signs[0] == signs[1] else "different order"


def front(both: Sequence[tuple[bool, bool]]) -> str:
    """Return whether both engines have the same one in front, in at least nine of ten repeats."""
    agree = sum(simulated == real for simulated, real in both)
    if len(both) < 2:
        return "open"
    if agree >= 0.9 * len(both):
        return "same order"
    return "open" if agree > 0.5 * len(both) else "different order"


def mean(values: Sequence[float]) -> float:
    """Return the mean, not a number if there are no values."""
    return sum(values) / len(values) if values else float("nan")


def spread(values: Sequence[float], digits: int) -> str:
    """Return mean and range as text."""
    if not values:
        return "–"
    return f"{mean(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def between(interval: Interval | None, form: str = ".3f") -> str:
    """Return an interval as text."""
    return "–" if interval is None else f"{interval[0]:{form}} to {interval[1]:{form}}"


def write(out: Path, found: dict[str, Any]) -> None:
    """Write what an experiment found as `experiment.json`."""
    (out / "experiment.json").write_text(json.dumps(found, indent=2), "utf-8")
