"""A stored `weftline bench --out FILE`, and the comparison of a new measurement with it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weftline import renamed
from weftline.errors import InputError, nearest

FORMAT = "weftline bench"
VERSION = 1
NOISE_FLOOR = 0.03
"""Two rounds of one program on a shared machine differ by this much even where each looks steady."""

FASTEST = 1e18
"""Packet-hops a second that nothing reaches; keeps infinity and numbers beyond a float out of ratios."""

_EXPECTED = "what `weftline bench --out` writes"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One workload, now and then."""

    metric: str
    """What is compared: packet-hops per CPU second, or per wall second where either used several threads."""
    ratio: float
    """Median now over median then; above 1 is faster."""
    verdict: str
    """``faster``, ``slower`` or ``same``."""
    same_work: bool
    """Whether the fingerprints agree."""
    by_chance: float
    """In which share of cases the ranges of that many runs of one speed do not meet."""


@dataclass(frozen=True, kw_only=True)
class Stored:
    """A stored measurement."""

    machine: object
    """What it was made on, as `bench.machine` has it; None where it does not say."""
    workloads: dict[str, dict[str, Any]]
    """Its workloads by name."""


def read(path: Path) -> Stored:
    """Return a stored measurement.

    Raises
    ------
    InputError
        If there is no such file or it is not what `weftline bench` of this version writes.
    """
    document = _parse(path, _text(path))
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(f"{path}: expected {_EXPECTED} (format: {json.dumps(FORMAT)})")
    if document.get("version") != VERSION:
        found = json.dumps(document.get("version"))
        raise InputError(
            f"{path}: version: expected {VERSION}, found {found}; measure again with `weftline bench --out`"
        )
    listed = document.get("workloads")
    if not isinstance(listed, list):
        raise InputError(f"{path}: workloads: expected a list, as in {_EXPECTED}")
    listed = [
        renamed.keys(entry, renamed.BENCH, str(path)) if isinstance(entry, dict) else entry
        for entry in listed
    ]
    for place, entry in enumerate(listed):
        _check(entry, f"{path}: workloads.{place}")
    return Stored(machine=document.get("machine"), workloads={entry["workload"]: entry for entry in listed})


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        near = sorted(p.name for p in path.parent.glob("*.json")) if path.parent.is_dir() else []
        raise InputError(f"{path}: no such file; {nearest(path.name, near)}expected {_EXPECTED}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start}); expected {_EXPECTED}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise InputError(f"{str(path)!r}: not a path: {error}") from None


def _parse(path: Path, text: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: not JSON ({error.msg}); expected {_EXPECTED}") from None
    except (RecursionError, ValueError):
        raise InputError(f"{path}: not JSON that can be read; expected {_EXPECTED}") from None


def _check(entry: object, where: str) -> None:
    """Refuse a workload that lacks something that a comparison reads."""
    if not isinstance(entry, dict):
        raise InputError(f"{where}: expected an object, as in {_EXPECTED}")
    for key, kind in (("workload", str), ("fingerprint", str), ("threads", int)):
        if not isinstance(entry.get(key), kind):
            raise InputError(f"{where}.{key}: {_found(entry, key)}, expected a {kind.__name__}")
    for of in ("median", "min", "max"):
        if not isinstance(entry.get(of), dict):
            raise InputError(f"{where}.{of}: {_found(entry, of)}, expected an object")
        for key in ("packet_hops_per_cpu_second", "packet_hops_per_wall_second"):
            value = entry[of].get(key)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not (number and 0 < value < FASTEST):
                raise InputError(f"{where}.{of}.{key}: {_found(entry[of], key)}, expected a positive number")


def _found(table: Mapping[str, Any], key: str) -> str:
    return f"found {json.dumps(table[key])[:40]}" if key in table else "missing"


def compare(now: Mapping[str, Any], then: Mapping[str, Any]) -> Comparison:
    """Compare one workload's result with the stored one.

    It is faster or slower when the ranges of both do not meet and the medians differ by more than
    `NOISE_FLOOR`.
    """
    one_thread = now["threads"] == then["threads"] == 1
    metric = f"packet_hops_per_{'cpu' if one_thread else 'wall'}_second"
    ratio = now["median"][metric] / then["median"][metric]
    verdict = "same"
    if ratio > 1 + NOISE_FLOOR and now["min"][metric] > then["max"][metric]:
        verdict = "faster"
    elif ratio < 1 - NOISE_FLOOR and now["max"][metric] < then["min"][metric]:
        verdict = "slower"
    same_work = now["fingerprint"] == then["fingerprint"]
    counts = (len(one.get("runs") or [one]) for one in (now, then))
    chance = by_chance(*counts)
    return Comparison(metric=metric, ratio=ratio, verdict=verdict, same_work=same_work, by_chance=chance)


def by_chance(runs: int, others: int) -> float:
    """Return the probability that all of some runs are faster, or all slower, than all others of one speed.

    Of the orders of all runs, in which any is as likely, two keep both groups apart.
    """
    return min(1.0, 2 / math.comb(runs + others, runs))


def beyond(comparisons: Mapping[str, Comparison], percent: float) -> list[str]:
    """Return the workloads whose packet-hop takes more than `percent` longer than then, with how much."""
    longer = {name: 100 * (1 / found.ratio - 1) for name, found in comparisons.items()}
    return [f"{name} ({more:.1f} % longer)" for name, more in longer.items() if more > percent]
