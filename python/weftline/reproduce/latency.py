"""Trials of latency quantiles: how far PINT's estimate of a hop's quantile is off, on what a run recorded.

    quantile        0.5, 0.99
    samples         of the hop; each is a packet of the flow that brought this hop's latency
    bits, epsilon   how a latency is written (0 bits: exactly)
    sketch_bytes    bytes of the hop's sketch, a sample taking `bits` of them (0: all samples are kept)
    independent     samples are drawn from the whole flow, each by itself, instead of one after the other
    smallest        hops whose true quantile (ns) is below are left out: a relative error needs a truth
                    above 0
    trials          estimates, each at a hop and a place in the flow drawn at random
    plan            queries of the run, in the experiment's folder; the first one samples the latency of hops
    in
                    wide fields

The scenario runs once under the settings that begin with "scenario."; its flows that are long enough, hop by
hop, are the streams. Truth is the quantile over the whole flow.

Source: Ben Basat et al., "PINT", SIGCOMM 2020, §6.2, Fig 9.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftline import _native, pint, scenarios
from weftline.errors import InputError
from weftline.sweeps import store

if TYPE_CHECKING:
    from weftline.reproduce.experiments import Experiment
    from weftline.reproduce.trials import Point

SETTINGS: dict[str, Any] = {
    "quantile": 0.5,
    "samples": 500,
    "longest_sample": 1000,
    "bits": 8,
    "epsilon": 0.022,
    "sketch_bytes": 0,
    "independent": False,
    "smallest": 1.0,
    "trials": 1000,
    "plan": "record.toml",
}


def run_of(experiment: Experiment, seed: int, settings: Mapping[str, Any], out: Path) -> store.Point:
    """Return the run, a point of a store, whose digests are looked at."""
    source = scenarios.load(experiment.scenario)
    changed = scenarios.settings(settings)
    name = ", ".join(f"{key.rsplit('.', 1)[-1]} {value}" for key, value in changed) or experiment.name
    return store.point(out, source, settings, seed, name=name)


def check(settings: Mapping[str, Any], folder: Path, name: str) -> str:
    """Return what the numbers depend on in addition to the settings; refuse settings that cannot be tried."""
    if not 0 < settings["quantile"] < 1:
        raise InputError(
            f"{name}: quantile: expected a number between 0 and 1, found {settings['quantile']!r}"
        )
    whole = (("samples", 1, 10**6), ("longest_sample", 1, 10**6), ("bits", 0, 32), ("trials", 1, 10**7))
    for key, lowest, highest in (*whole, ("sketch_bytes", 0, 10**9)):
        value = settings[key]
        if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
            raise InputError(f"{name}: {key}: expected {lowest} to {highest}, found {value!r}")
    if settings["samples"] > settings["longest_sample"]:
        raise InputError(
            f"{name}: samples: expected at most longest_sample, {settings['longest_sample']},"
            f" found {settings['samples']}"
        )
    return pint.Plan.open(folder / settings["plan"]).toml()


def tried(points: Sequence[Point], folder: Path) -> list[dict[str, Any]]:
    """Return the numbers of points on one run.

    These are `mean_relative_error` and `median_relative_error` (over the estimates), `streams` (hops of flows
    that are looked at), `left_out` (those whose quantile is too small) and `truth_ns` (median over streams).
    """
    digests = str(points[0].recorded.folder / "telemetry.parquet")
    found: dict[int, dict[str, Any]] = {}
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, point in enumerate(points):
        s = point.settings
        # The same hops at every number of samples: those that have enough for the largest number.
        groups.setdefault(
            (s["plan"], s["longest_sample"], s["smallest"], s["trials"], point.seed), []
        ).append(number)
    for (plan, lowest, smallest, trials, seed), numbers in groups.items():
        chosen = [points[number].settings for number in numbers]
        quantiles = sorted({s["quantile"] for s in chosen})
        text = json.loads(
            _native.pint_replay(
                pint.Plan.open(folder / plan)._native,
                digests,
                lowest,
                quantiles,
                [_way(s) for s in chosen],
                smallest,
                trials,
                seed,
            )
        )
        for place, (number, settings) in enumerate(zip(numbers, chosen, strict=True)):
            of = text["quantiles"][quantiles.index(settings["quantile"])]
            found[number] = (of["errors"][place] or {}) | {
                "streams": of["streams"],
                "left_out": of["left_out"],
                "truth_ns": of["truth_median"],
            }
    return [found[number] for number in range(len(points))]


def _way(settings: Mapping[str, Any]) -> tuple[int, int, float, int, bool]:
    room = settings["sketch_bytes"] * 8 // (settings["bits"] or 32)
    return (
        settings["samples"],
        settings["bits"],
        float(settings["epsilon"]),
        room,
        bool(settings["independent"]),
    )
