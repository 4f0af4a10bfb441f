"""Whether runs measured alike what a metric is computed from.

A metric of finished flows is computed from every flow. Others are computed from samples that the scenario
asks for in `[measure]`: a percentile of queues from the ports, the interval and the time that were sampled,
Jain's index from the goodputs of the flows that were named. Two numbers of one metric say something about two
schemes only if both were measured alike. `unlike` returns in what they were not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from weftline import quantities
from weftline.errors import InputError
from weftline.measures import over_time
from weftline.measures.metrics import metric
from weftline.measures.pooling import seed_of
from weftline.runs import Run

MOST_APART = 1.1
"""Ratio of two numbers of samples up to which percentiles of them are compared."""


def measures_of(name: str) -> tuple[str, ...]:
    """Return the keys of `[measure]` that decide what a metric is computed from; none for most metrics.

    None for "", what claims that are of no single metric have in place of a name.
    """
    if not name:
        return ()
    if over_time.reader(name) is not None:
        return (over_time.series(name.split()[2]).measure,)
    return metric(name).measured_by


def unlike(name: str, runs: Sequence[Run], others: Sequence[Run] = ()) -> str:
    """Return in what two groups of runs, or the runs of one, measured a metric differently; "" if in nothing.

    ``"measure.queue_histogram.ports is * and leaf*->host*"``. Two groups also have to sample for the same
    time: to the same `run.until`, and, as runs that end with their flows do not end together, with numbers of
    samples that are not further apart than `MOST_APART`. Nor may the numbers of ports whose utilisation
    was measured: one pattern names other ports in another network.
    """
    keys = measures_of(name)
    if not keys:
        return ""
    found = _settings_unlike(keys, [*runs, *others])
    if not others or keys == ("ideal",):
        return found
    if not found:
        found = _differing("run.until", [_until(run) for run in (*runs, *others)])
    if found:
        return found
    if keys == ("queue_histogram",):
        return _samples_unlike(runs, others)
    return _ports_unlike(runs, others) if "utilisation" in keys else ""


def few_samples(name: str, runs: Sequence[Run], beyond: int) -> str:
    """Return that a percentile of queues is of too few samples, "" if not: `beyond` have to lie beyond it."""
    match = re.fullmatch(r"queue_p(\d\d)", name)
    counts = [count for run in runs if (count := samples(run)) is not None] if match else []
    if not match or not counts:
        return ""
    needed = math.ceil(100 * beyond / (100 - int(match[1])))
    if min(counts) >= needed:
        return ""
    one = min(counts) == 1
    return f"{min(counts):,} sample{'s' * (not one)} of queues in a run; p{match[1]} needs {needed:,}"


def samples(run: Run) -> int | None:
    """Return how many samples the histogram of queues has, of all ports; None if it was not measured."""
    found = run.queues["percentiles"].get("samples") if run.queues else None
    return None if found is None else int(found)


def _settings_unlike(keys: Sequence[str], runs: Sequence[Run]) -> str:
    tables = [run.scenario.get("measure", {}) for run in runs]
    for key in keys:
        settings = [_settings(key, table.get(key), run) for table, run in zip(tables, runs, strict=True)]
        for part in dict.fromkeys(part for one in settings for part in one):
            path = f"measure.{key}.{part}" if part else f"measure.{key}"
            if text := _differing(path, [one.get(part) for one in settings if one]):
                return text
    return ""


def _settings(key: str, value: Any, run: Run) -> dict[str, Any]:
    """Return the settings of one table of `[measure]`, each in one form; {"": None} without it."""
    if not isinstance(value, dict):
        return {} if key == "ideal" and value is None else {"": value}
    found = {"": "enabled"}
    for part, setting in value.items():
        if part == "every":
            found[part] = _time(setting)
        elif part == "flows" and key == "goodput":
            found[part] = _flows(setting, run)
        else:
            found[part] = ", ".join(map(str, setting)) if isinstance(setting, list) else setting
    return found


def _time(text: Any) -> Any:
    try:
        return quantities.time_text(quantities.parse_time_ns(text))
    except (InputError, TypeError):
        return text


def _flows(listed: Any, run: Run) -> str:
    """Return which flows are measured; "all" where these are all that the run has."""
    return "all" if _count(listed) >= (run.summary.get("flows") or math.inf) else str(listed)


def _count(listed: Any) -> int:
    """Return how many flows a list such as ``[1, "4-9"]`` names."""
    count = 0
    for one in listed if isinstance(listed, list) else [listed]:
        first, dash, last = str(one).partition("-")
        count += int(last) - int(first) + 1 if dash else 1
    return count


def flows_measured(run: Run) -> tuple[int, int] | None:
    """Return of how many flows the goodput was measured, and of how many; None if it was not, by flow."""
    asked, flows = run.scenario.get("measure", {}).get("goodput"), run.summary.get("flows")
    if not isinstance(asked, dict) or asked.get("by") != "flow" or not flows:
        return None
    return min(_count(asked.get("flows", [])), flows), flows


def _until(run: Run) -> Any:
    return run.scenario.get("run", {}).get("until")


def _differing(path: str, values: Sequence[Any]) -> str:
    distinct = list(dict.fromkeys(values))
    if len(distinct) < 2:
        return ""
    texts = ["not set" if value is None else str(value) for value in distinct]
    return f"{path} is {', '.join(texts[:-1])} and {texts[-1]}"


def _samples_unlike(runs: Sequence[Run], others: Sequence[Run]) -> str:
    """Return that two groups took other numbers of samples, under a seed that both have or in the mean."""
    theirs = {seed_of(run): count for run in others if (count := samples(run))}
    ours = {seed_of(run): count for run in runs if (count := samples(run))}
    if not ours or not theirs:
        return ""
    pairs = [(ours[seed], theirs[seed], f" under seed {seed}") for seed in ours if seed in theirs]
    if not pairs:
        means = [sum(of.values()) / len(of) for of in (ours, theirs)]
        pairs = [(round(means[0]), round(means[1]), " in the mean run")]
    one, other, where = max(pairs, key=lambda pair: max(pair[:2]) / min(pair[:2]))
    if max(one, other) <= MOST_APART * min(one, other):
        return ""
    return f"{one:,} and {other:,} samples of queues{where}"


def _ports_unlike(runs: Sequence[Run], others: Sequence[Run]) -> str:
    """Return that the utilisation of other numbers of ports was measured in the first runs of two groups."""
    one, other = (len(group[0].recorded("utilisation", max_points=1)) for group in (runs, others))
    if not one or not other or max(one, other) <= MOST_APART * min(one, other):
        return ""
    return f"the utilisation of {one:,} and {other:,} ports"
