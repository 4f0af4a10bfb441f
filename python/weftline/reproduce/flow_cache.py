"""Trials of Cebinae's flow cache on a synthetic heavy-tailed trace: top flows that it misses.

    cache       "first-come", "overwrite" or "exact"
    stages, slots    of the cache
    window_ms   time between two recomputations, after which the cache is emptied
    slack       flows within this share of the largest are top

The trace is that of the engine (`queue/cebinae/accuracy.rs`); the same windows for every cache of a seed.

Source: Yu, Sonchack and Liu, "Cebinae", SIGCOMM 2022, accuracy of the flow table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weftline import _native
from weftline.errors import InputError, nearest

if TYPE_CHECKING:
    from weftline.reproduce.trials import Point

SETTINGS: dict[str, Any] = {
    "cache": "first-come",
    "stages": 2,
    "slots": 2048,
    "window_ms": 100,
    "slack": 0.1,
    "trials": 100,
}

CACHES = ("first-come", "overwrite", "exact")


def check(settings: Mapping[str, Any], name: str) -> None:
    """Refuse settings that cannot be tried."""
    if settings["cache"] not in CACHES:
        hint = nearest(str(settings["cache"]), list(CACHES))
        raise InputError(f'{name}: cache: unknown "{settings["cache"]}": {hint}known: {", ".join(CACHES)}')
    for key, highest in (("stages", 16), ("slots", 1 << 24), ("window_ms", 10_000), ("trials", 10**6)):
        value = settings[key]
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= highest:
            raise InputError(f"{name}: {key}: expected 1 to {highest}, found {value!r}")
    slack = settings["slack"]
    if isinstance(slack, bool) or not isinstance(slack, int | float) or not 0 < slack < 1:
        raise InputError(f"{name}: slack: expected a share between 0 and 1, found {slack!r}")


def tried(points: Sequence[Point]) -> list[dict[str, Any]]:
    """Return the numbers of points: ``false_negatives``, ``false_positives``, ``flows``, ``packets``."""
    return [_tried(point.settings, point.seed) for point in points]


def _tried(settings: Mapping[str, Any], seed: int) -> dict[str, Any]:
    window_ns = settings["window_ms"] * 10**6
    args = (settings["cache"], settings["stages"], settings["slots"], window_ns, float(settings["slack"]))
    return json.loads(_native.flow_cache(*args, settings["trials"], seed))
