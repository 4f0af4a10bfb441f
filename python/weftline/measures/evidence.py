"""Reasons against a verdict, found in the runs; `judgements` has the verdict and the kinds of reasons."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from weftline import columns, quantities
from weftline.measures import (
    deadlines,
    decoded,
    flow_rows,
    ideals,
    measured_alike,
    readings,
    recovery,
    sharing,
    stats,
    steady,
    steps,
)
from weftline.measures.judgements import ONE_SEED, Reason
from weftline.measures.metrics import METRICS, Flows, split
from weftline.measures.pooling import key_of, seed_of
from weftline.runs import Run

MOST_APART = 1.1
"""Ratio of the mean ideal times of the same flows up to which their slowdowns are compared."""
BEYOND = 2
"""Minimum number of flows beyond a percentile of a run: with fewer it is one flow, and is not shown."""
BEYOND_OF_INTERVAL = 20
"""Minimum number beyond a percentile of each run with which the interval of their mean holds its 95 %.

Measured on a star at a load of 0.7; docs/sweeps.md, "Few flows", has the numbers.
"""
MOST_BEYOND = 1000
"""With this number beyond a percentile in each run, that of all runs together is not looked up."""
_ENDINGS = {
    "stalled": "stalled",
    "interrupted": "interrupted",
    "memory-limit": "ended by the memory limit",
}


def against(
    runs: Sequence[Run],
    name: str,
    *,
    flows: Flows | None = None,
    asked: int = 0,
    counted: int | None = None,
    left: int | None = None,
    known: int | None = None,
    remark: str | None = None,
    undecided: str | None = None,
    left_out: str = "",
    failed: str = "",
    ended_early: str = "",
    values: Sequence[float | None] | None = None,
    pooled: float | None = None,
    method: str = "t",
) -> list[Reason]:
    """Return the reasons against a verdict on a metric of runs that differ in the seed alone.

    Parameters
    ----------
    flows : Flows, optional
        Which flows count; all without it.
    asked : int
        Expected number of runs; 0: the actual number.
    counted : int, optional
        The fewest finished flows that count in a run; looked up without it.
    left : int, optional
        How many flows that would count did not finish, in all runs; looked up without it.
    known : int, optional
        How many of the runs have the metric; all without it.
    remark : str, optional
        What is wrong with the steadiness of the runs; without it, whether flows under way were growing.
    undecided : str, optional
        The text of `undecided_text` for the flows that count; looked up without it.
    left_out : str
        Which groups of flows do not count at all; "" if none.
    failed : str
        Which failures lie in what warm-up or drain leaves out; "" if none.
    ended_early : str
        Which workload ended early (`early_ends.text`); "" if none.
    values : sequence of float or None, optional
        The metric of each run: runs that are the same one and have the same value are one observation.
    pooled : float, optional
        The percentile of the flows of all runs together, to be held against the mean of `values`.
    method : {"t", "bootstrap"}
        How the interval over the runs is found.
    """
    flows = flows or Flows()
    found = of_endings(runs, asked)
    if method == "bootstrap" and 1 < len(runs) < stats.FEW_OF_BOOTSTRAP:
        text = f"{len(runs)} runs; below {stats.FEW_OF_BOOTSTRAP} its intervals are too narrow"
        found.append(Reason("bootstrap", text))
    if values is not None:
        found += same_runs(runs, values) + _not_pooled(name, runs, values, pooled)
    if known is not None and known < len(runs):
        found.append(Reason("measured", f"{known} of {len(runs)} runs have it"))
    if of_finished_flows(name):
        left = unfinished(runs, flows) if left is None else left
        found += [Reason("unfinished", unfinished_text(left, runs))] if left else []
    if text := steps_text(name, runs, flows):
        found.append(Reason("steps", text))
    if text := paths_text(name, runs):
        found.append(Reason("paths", text))
    if text := unrecovered_text(name, runs):
        found.append(Reason("recovered", text))
    if text := ended_text(name, runs):
        found.append(Reason("ended", text))
    if text := measured_alike.unlike(name, runs):
        found.append(Reason("measures differ", f"{text} in the runs of one mean"))
    if text := measured_alike.few_samples(name, runs, BEYOND_OF_INTERVAL if len(runs) > 1 else BEYOND):
        found.append(Reason("samples", text))
    found += short_for_queues(name, runs)
    if text := undecided_text(name, runs, flows) if undecided is None else undecided:
        found.append(Reason("undecided", text))
    if left_out:
        found.append(Reason("left out", left_out))
    if failed:
        found.append(Reason("failed", failed))
    if ended_early:
        found.append(Reason("ended early", ended_early))
    if needed(name):
        counted = min((count(run, name, flows) for run in runs), default=0) if counted is None else counted
        found += few_flows(name, counted) or (short_runs(name, counted) if len(runs) > 1 else [])
    if remark is None:
        remark = steady.remark(runs, warmup=None, group=group_looked_at(name, flows.group))
    return found + ([Reason("steady", remark)] if remark else [])


def group_looked_at(name: str, group: str | None) -> str | None:
    """Return the group whose flows a metric is of, None if of all; `group`: that of the flows that count."""
    base, own = split(name)
    return own or (group if base in METRICS and "group" in METRICS[base].chosen_by else None)


def is_whole(name: str) -> bool:
    """Return whether a metric is of the whole run, whatever a warm-up leaves out."""
    base = split(name)[0]
    return base in METRICS and "warmup" not in METRICS[base].chosen_by


def of_endings(runs: Sequence[Run], asked: int = 0) -> list[Reason]:
    """Return the reasons against a verdict in how runs ended and how many there are."""
    found = []
    statuses = [str(run.summary.get("status") or "done") for run in runs]
    for status in dict.fromkeys(status for status in statuses if status != "done"):
        count, of = statuses.count(status), max(asked, len(runs))
        found.append(Reason("runs", f"{count} of {of} runs {_ENDINGS.get(status, status)}"))
    if len(runs) < asked:
        found.append(Reason("runs", missing_text(asked - len(runs), asked)))
    return found + ([ONE_SEED] if len(runs) < 2 else [])


def missing_text(count: int, asked: int) -> str:
    """Return ``"2 of 5 runs missing"``: they failed, or have not been run."""
    return f"{count} of {asked} runs missing"


def of_finished_flows(name: str) -> bool:
    """Return whether a metric is taken over finished flows only, so that unfinished ones flatter it."""
    name = split(name)[0]
    if name.startswith(("request_", "small_p")):
        return True
    return name in METRICS and METRICS[name].completion is not None


def needed(name: str, beyond: int = BEYOND) -> int:
    """Return how many flows a run needs for a metric, 0 if it is not a percentile of flows.

    `beyond`: how many of them have to lie beyond it.
    """
    match = re.search(r"_p(\d\d)$", split(name)[0])
    return math.ceil(100 * beyond / (100 - int(match[1]))) if match and of_finished_flows(name) else 0


def few_flows(name: str, counted: int) -> list[Reason]:
    """Return the reason that a percentile of so few flows gives, if it does."""
    if counted >= needed(name):
        return []
    percentile, kind = split(name)[0].rpartition("_")[2], "requests" if is_of_requests(name) else "flows"
    text = f"{counted_text(name, counted)} in a run; {percentile} needs {needed(name):,}"
    return [Reason(kind, text)]


def short_runs(name: str, counted: int) -> list[Reason]:
    """Return the reason that a percentile of so few flows gives against an interval over runs, if it does."""
    wanted = needed(name, BEYOND_OF_INTERVAL)
    if counted >= wanted:
        return []
    percentile = split(name)[0].rpartition("_")[2]
    text = f"{counted_text(name, counted)} in a run; an interval of {percentile} needs {wanted:,}"
    return [Reason("short", text)]


def short_for_queues(name: str, runs: Sequence[Run]) -> list[Reason]:
    """Return the reason that a percentile of queues gives in several runs that are too short for it.

    Samples that follow each other are of one busy period. So where flows arrive at random, the percentile
    needs as many flows as that of their slowdowns, however often queues are looked at.
    """
    match = re.fullmatch(r"queue_p(\d\d)", name)
    counts = [run.summary.get("flows") or 0 for run in runs if steady.arrivals(run)] if match else []
    if match is None or len(counts) < 2:
        return []
    counted = min(counts)
    wanted = math.ceil(100 * BEYOND_OF_INTERVAL / (100 - int(match[1])))
    if counted >= wanted:
        return []
    flows = f"{counted:,} flow{'s' * (counted != 1)} in a run"
    return [Reason("short", f"{flows}; an interval of p{match[1]} of queues needs {wanted:,}")]


def same_runs(runs: Sequence[Run], values: Sequence[float | None]) -> list[Reason]:
    """Return the reason that runs give which are the same bits and have the same value."""
    known = [(key_of(run), value) for run, value in zip(runs, values, strict=True) if value is not None]
    if len(known) < 2 or len(set(known)) > 1:
        return []
    return [Reason("same", f"{len(known)} seeds gave the same flows, bit by bit: they are one observation")]


def _not_pooled(
    name: str, runs: Sequence[Run], values: Sequence[float | None], pooled: float | None
) -> list[Reason]:
    """Return the reason that the percentile of all flows gives where the mean's interval leaves it out."""
    found = stats.estimate(values, keys=list(map(key_of, runs)))
    if pooled is None or found is None or found.low is None or found.high is None:
        return []
    if found.low <= pooled <= found.high:
        return []
    percentile, write = split(name)[0].rpartition("_")[2], METRICS[split(name)[0]].text
    text = (
        f"{percentile} of all {len(runs)} runs together is {write(pooled)}, and the mean of theirs "
        f"{write(found.mean)}: the runs are too short"
    )
    return [Reason("pooled", text)]


def pooled_percentile(name: str, runs: Sequence[Run], flows: Sequence[Flows], counted: int) -> float | None:
    """Return a percentile of the flows of all runs together; None where it is not looked up.

    It is not for a metric that is not a percentile of flows or requests, and not where at least `MOST_BEYOND`
    lie beyond it in each run: such a run is long enough by itself.

    Parameters
    ----------
    flows : sequence of Flows
        Those that count in each run.
    counted : int
        How many of them finished in the run with the fewest.
    """
    base, of = split(name)
    match = re.fullmatch(r"(slowdown|fct|request)_p(\d\d)", base)
    if match is None or len(runs) < 2 or counted >= needed(name, MOST_BEYOND):
        return None
    flows = [replace(one, group=of or one.group) for one in flows]
    if match[1] == "request":
        times = [t for run, one in zip(runs, flows, strict=True) for t in readings.request_times(run, one)]
        return flow_rows.number(times, f"p{match[2]}")
    column = {"slowdown": "slowdown", "fct": "fct_ns"}[match[1]]
    return flow_rows.pooled(runs, flows, column).get(int(match[2]))


def is_of_requests(name: str) -> bool:
    """Return whether a metric is over requests (jobs that ended), not over flows."""
    return split(name)[0].startswith("request_")


def counted_text(name: str, counted: int) -> str:
    """Return ``"4 flows that count"``, or ``"4 requests that count"`` of a metric over requests."""
    one = counted == 1
    return (
        f"{counted:,} {'request' if is_of_requests(name) else 'flow'}{'s' * (not one)} that count{'s' * one}"
    )


def count(run: Run, name: str, flows: Flows) -> int:
    """Return how many finished flows, or jobs that ended, a metric is over."""
    name, group = split(name)
    flows = replace(flows, group=group or flows.group)
    if is_of_requests(name):
        return len(readings.request_times(run, flows))
    if name.startswith("small_p"):
        found = readings.smallest(run, flows)
        return found["count"] if found else 0
    if flows.is_by_start:
        return len(flow_rows.chosen(run, flows))
    return run.completion_of(flows)["count"]


def unfinished(runs: Sequence[Run], flows: Flows | None = None) -> int:
    """Return how many flows that would count did not finish, in all runs together."""
    return sum(_unfinished(run, flows or Flows()) for run in runs)


def _unfinished(run: Run, flows: Flows) -> int:
    total, done = run.summary.get("flows"), run.summary.get("flows_done")
    if total is None or done is None or total <= done:
        return 0
    if flows == Flows():
        return total - done
    rows = _open_flows(run.folder, (run.out / "flows.parquet").stat().st_mtime_ns)
    if len(rows) != total - done:
        return total - done  # without a row for each there is no telling which of them would count
    highest = math.inf if flows.max_size is None else flows.max_size
    return sum(flows.min_size <= size <= highest and flows.group in (None, group) for size, group in rows)


@lru_cache(maxsize=64)
def _open_flows(folder: Path, modified: int) -> list[tuple[int, str]]:
    """Return size and group of each flow that did not finish."""
    from weftline import _native

    del modified  # part of the key alone
    of = columns.read(_native.table(str(folder), "flows"), ("size_bytes", "group", "fct_ns"))
    rows = zip(of["size_bytes"], of["group"], of["fct_ns"], strict=True)
    return [(size, group) for size, group, fct in rows if fct is None]


def unfinished_text(left: int, runs: Sequence[Run]) -> str:
    """Return ``"12 of 4,000 flows unfinished"``, of all runs together."""
    return f"{left:,} of {sum(run.summary.get('flows') or 0 for run in runs):,} flows unfinished"


def is_of_deadlines(name: str) -> bool:
    """Return whether a metric is a share of deadlines that were met."""
    return split(name)[0] == deadlines.METRIC


def undecided_text(name: str, runs: Sequence[Run], flows: Flows | Sequence[Flows] | None = None) -> str:
    """Return ``"81 of 4,000 deadlines not decided"``, of all runs together; "" if all were.

    `flows` may be a `Flows` for each run.
    """
    if not is_of_deadlines(name):
        return ""
    each = [flows or Flows()] * len(runs) if flows is None or isinstance(flows, Flows) else flows
    found = [deadlines.counts(run, _of_group(name, one)) for run, one in zip(runs, each, strict=True)]
    left = sum(open_ones for *_, open_ones in found)
    return f"{left:,} of {sum(count for count, *_ in found):,} deadlines not decided" if left else ""


def is_of_steps(name: str) -> bool:
    """Return whether a metric is taken over the steps of jobs that ended."""
    name = split(name)[0]
    return name in METRICS and METRICS[name].is_of_steps


def _of_group(name: str, flows: Flows) -> Flows:
    return replace(flows, group=split(name)[1] or flows.group)


def steps_ended(name: str, runs: Sequence[Run], flows: Flows | None = None) -> tuple[int, int]:
    """Return how many steps of a metric ended and of how many, in all runs; 0 and 0 if it is not of steps."""
    if not is_of_steps(name):
        return 0, 0
    flows = _of_group(name, flows or Flows())
    done = sum(steps.ended_by_job(run, flows).total() for run in runs)
    return done, sum(steps.asked(run, flows) for run in runs)


def steps_text(name: str, runs: Sequence[Run], flows: Flows | None = None) -> str:
    """Return ``"5 of 15 steps ended"``, of all runs together; "" if all did."""
    done, asked = steps_ended(name, runs, flows)
    return f"{done:,} of {asked:,} steps ended" if done < asked else ""


def of_difference(found: stats.Difference | None, reasons: Iterable[Reason]) -> list[Reason]:
    """Return the reasons against two schemes that are reasons against their difference.

    Where only one of them is the same run under all seeds, the difference still has an interval.
    """
    has_interval = found is not None and found.estimate.low is not None
    return [reason for reason in dict.fromkeys(reasons) if not (has_interval and reason.kind == "same")]


def differ(name: str, runs: Sequence[Run], others: Sequence[Run], flows: Flows | None = None) -> list[Reason]:
    """Return the reasons against a verdict on the difference of two schemes alone, found in their runs."""
    return [
        *steps_differ(name, runs, others, flows),
        *paths_differ(name, runs, others),
        *ideals_differ(name, runs, others, flows),
        *measures_differ(name, runs, others),
    ]


def measures_differ(name: str, runs: Sequence[Run], others: Sequence[Run]) -> list[Reason]:
    """Return the reason that two schemes give where they did not measure a metric alike."""
    text = measured_alike.unlike(name, runs, others)
    if not text:
        return []
    if measured_alike.measures_of(name) == ("ideal",):
        return [Reason("ideals differ", f"{text}; compare fct_mean")]
    return [Reason("measures differ", text)]


def ideals_differ(
    name: str, runs: Sequence[Run], others: Sequence[Run], flows: Flows | None = None
) -> list[Reason]:
    """Return the reason that two schemes give where the same flows, or steps, have other ideal times.

    Such are hosts that send a flow by one of their links and by all of them, and networks of other rates: the
    lower slowdown may be that of the slower flow. Looked at is the first seed that both have, and of it the
    flows that finished in both.
    """
    if not split(name)[0].startswith(ideals.RELATIVE):
        return []
    flows = _of_group(name, flows or Flows())
    by_seed = {seed_of(run): run for run in others}
    for run in runs:
        other = by_seed.get(seed_of(run))
        if other is None:
            continue
        ours, theirs = ideals.pair_of(split(name)[0], run, other, flows)
        if ours and theirs and max(ours, theirs) > MOST_APART * min(ours, theirs):
            times = f"{quantities.time_text(ours)} and {quantities.time_text(theirs)} in the mean"
            return [Reason("ideals differ", f"{times}; compare {_time_of(name)}")]
        break
    return []


def ideals_decide(
    name: str,
    runs: Sequence[Run],
    others: Sequence[Run],
    values: Mapping[int, float | None],
    base: Mapping[int, float | None],
    *,
    chosen: Callable[[Run], Flows],
    method: str = "t",
    paired: bool = True,
) -> list[Reason]:
    """Return the reason that ideal times give where they decide the sign of a difference of slowdowns.

    Of shares of deadlines that were met too: deadlines are at least some ideal times after the start.
    Arguments are those of `weftline.measures.ideals.sign_text`.
    """
    base_name = split(name)[0]
    if is_of_deadlines(name):
        text = paired and deadlines.difference_text(
            runs, others, values, base, chosen=chosen, factor=MOST_APART, method=method
        )
        return [Reason("deadlines differ", f"{text}; compare fct_mean")] if text else []
    text = ideals.sign_text(
        base_name, runs, others, values, base, chosen=chosen, method=method, paired=paired
    )
    if not text:
        return []
    decided = "over the ideal times of one of the two, the sign of the difference is another or chance"
    return [Reason("ideals differ", f"{text}: {decided}; compare {_time_of(name)}")]


def _time_of(name: str) -> str:
    return "step_mean" if is_of_steps(name) else "fct_mean"


def steps_differ(
    name: str, runs: Sequence[Run], others: Sequence[Run], flows: Flows | None = None
) -> list[Reason]:
    """Return the reason that two schemes give where they did not end as many steps under a seed."""
    if not is_of_steps(name):
        return []
    flows = _of_group(name, flows or Flows())
    by_seed = {seed_of(run): steps.ended_by_job(run, flows) for run in others}
    for run in runs:
        ours, theirs = steps.ended_by_job(run, flows), by_seed.get(seed_of(run))
        if theirs is not None and sorted(ours.values()) != sorted(theirs.values()):
            text = f"{ours.total():,} and {theirs.total():,} steps ended under seed {seed_of(run)}"
            return [Reason("steps differ", text)]
    return []


def paths_open(name: str, runs: Sequence[Run]) -> tuple[int, int]:
    """Return how many paths never became known and of how many, in all runs; 0, 0 if it is not of paths."""
    known = decoded.KNOWN.get(split(name)[0])
    counts = [decoded.paths_open(run, known) for run in runs] if known else []
    return sum(left for left, _ in counts), sum(of for _, of in counts)


def paths_text(name: str, runs: Sequence[Run]) -> str:
    """Return ``"3 of 250 paths never known"``, of all runs together; "" if all became known."""
    left, of = paths_open(name, runs)
    return f"{left:,} of {of:,} paths never known" if left else ""


def paths_differ(name: str, runs: Sequence[Run], others: Sequence[Run]) -> list[Reason]:
    """Return the reason that two schemes give where they left other shares of paths unknown under a seed."""
    by_seed = {seed_of(run): run for run in others}
    for run in runs if split(name)[0] in decoded.KNOWN else ():
        if (other := by_seed.get(seed_of(run))) is None:
            continue
        (ours, of), (theirs, of_theirs) = paths_open(name, [run]), paths_open(name, [other])
        if ours * of_theirs != theirs * of:
            text = f"{ours:,} of {of:,} and {theirs:,} of {of_theirs:,} never known under seed {seed_of(run)}"
            return [Reason("paths differ", text)]
    return []


def unrecovered_text(name: str, runs: Sequence[Run]) -> str:
    """Return ``"2 of 5 runs had not recovered"``; "" if all had, or the metric is not of that."""
    return recovery.unrecovered_text(runs) if split(name)[0] == "recovery" else ""


def ended_text(name: str, runs: Sequence[Run]) -> str:
    """Return how many measured flows ended before the run, for a metric of goodputs to its end; else ""."""
    if split(name)[0] not in sharing.TO_THE_END:
        return ""
    counts = [sharing.ended(run) for run in runs]
    ended, of = sum(count for count, _ in counts), sum(count for _, count in counts)
    if not ended:
        return ""
    return (
        f"{ended:,} of {of:,} measured flows ended before the run did: their mean goodputs to its end are "
        "their sizes over one time; see fairness"
    )


def pooled_text(name: str, runs: Sequence[Run], flows: Flows | None = None) -> str:
    """Return the note that a metric is over the steps of jobs of different kinds, "" where it is not."""
    if not is_of_steps(name) or METRICS[split(name)[0]].higher_is_better:
        return ""  # bandwidths are of one kind
    kinds = steps.kinds_text(runs, _of_group(name, flows or Flows()))
    if not kinds:
        return ""
    alone = f'"{split(name)[0]} of JOB" is that of one'
    if steps.share_a_group(runs):
        alone = f"{alone} where each job has a group of its own"
    return f"{name} is over the steps of jobs of different kinds: {kinds}; {alone}."


def left_text(
    name: str,
    runs: Sequence[Run],
    flows: Flows | None = None,
    *,
    unfinished_flows: int | None = None,
    undecided: str | None = None,
) -> str:
    """Return what a metric leaves out, "" if nothing.

    ``"12 unfinished"`` flows, ``"5 of 15 steps ended"``, ``"3 of 250 paths never known"``,
    ``"8 of 1,956 deadlines not decided"``.

    `unfinished_flows`, and what `undecided_text` says, are looked up without them.
    """
    if of_finished_flows(name):
        left = unfinished(runs, flows) if unfinished_flows is None else unfinished_flows
        return f"{left:,} unfinished" if left else ""
    undecided = undecided_text(name, runs, flows) if undecided is None else undecided
    found = paths_text(name, runs) or unrecovered_text(name, runs)
    return found or steps_text(name, runs, flows) or undecided


def qualifier(*, runs: int = 0, asked: int = 0, left: str = "") -> str:
    """Return the note on a mean: its number of runs where some are missing, what it leaves out."""
    parts = [f"{runs} of {asked} runs"] if runs < asked else []
    parts += [left] if left else []
    return f" ({', '.join(parts)})" if parts else ""
