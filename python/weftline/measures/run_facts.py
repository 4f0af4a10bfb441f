"""What the terminal shows of one run: its facts, its groups, its jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weftline import quantities
from weftline.measures import groups, jobs, losses, readings, slowdown_table
from weftline.measures.lines import PERCENTILES, Line, scheme_name
from weftline.measures.metrics import METRICS
from weftline.runs import Run
from weftline.terminal import Table

MAX_CHANGES = 3
"""Changes of links and switches that are listed after a run; of more, the number is shown."""


def facts(run: Run) -> list[tuple[str, str]]:
    """Return facts on one finished run, as names and texts."""
    summary = run.summary
    overall = run.slowdown(bins=1)["overall"]
    done, flows = summary.get("flows_done"), summary.get("flows")
    rows = [
        ("scheme", scheme_name(run)),
        ("flows", f"{done:,} of {flows:,} done" if done is not None and flows is not None else "–"),
        ("simulated", quantities.time_text(summary.get("end_ns"))),
        ("slowdown p50 / p95 / p99", _percentiles_text(overall)),
    ]
    if run.queues:
        found = run.queues["percentiles"]
        bins = [readings.queue_bin_text(found.get(p)) for p in ("p95", "p99")]
        queue = " / ".join([*bins, quantities.bytes_text(found.get("max"))])
        rows.append(("queue p95 / p99 / max", f"{queue}{_of_hosts_too(run)}"))
    rows.append(("pauses", METRICS["pauses"].text(summary.get("pauses"))))
    rows += losses.shown(run) or [("packets lost", "none")]
    speed = METRICS["speed"].text(summary.get("packet_hops_per_cpu_second"))
    hops = METRICS["packet_hops"].text(summary.get("packet_hops"))
    rows.append(("packet-hops", f"{hops}, {speed} per CPU second"))
    times = [summary.get(key) for key in ("cpu_seconds", "wall_seconds")]
    rows.append(("CPU time, wall time", ", ".join(map(quantities.seconds_text, times))))
    failures = summary.get("failures") or []
    if failures:
        parts = [f"{one['change']} at {quantities.time_text(one['at_ns'])}" for one in failures]
        rows.append(("failures", _changes_text(parts)))
    if isinstance(threads := summary.get("threads"), int) and threads > 1:
        rows.append(("threads", _threads_text(threads, summary)))
    rows.append(("seed, fingerprint", f"{summary.get('seed', '–')}, {summary.get('fingerprint', '–')}"))
    rows.append(("folder", str(run.out)))
    return rows


def _of_hosts_too(run: Run) -> str:
    """Return ``", of all ports, those of hosts too"`` where all ports were sampled."""
    sampled = run.scenario.get("measure", {}).get("queue_histogram") or {}
    ports = sampled.get("ports")
    return ", of all ports, those of hosts too" if ports == "*" or ports == ["*"] else ""


def _changes_text(changes: Sequence[str]) -> str:
    """Return the changes of links and switches; of many, their number and the first ones."""
    if len(changes) <= MAX_CHANGES:
        return "; ".join(changes)
    first, more = "; ".join(changes[:MAX_CHANGES]), len(changes) - MAX_CHANGES
    return f"{len(changes):,} changes: {first} and {more:,} more"


def _percentiles_text(overall: Mapping[str, Any]) -> str:
    """Slowdown of all finished flows, "–" where there are too few for a percentile."""
    count = overall["count"]
    parts = [
        quantities.digits(overall.get(p)) if slowdown_table.enough(p, count) else "–" for p in PERCENTILES
    ]
    return f"{' / '.join(parts)} of {count:,} flow{'s' * (count != 1)}"


def _threads_text(threads: int, summary: dict[str, Any]) -> str:
    """How the work was spread: threads, busiest region over the mean, share of packets between regions."""
    balance, crossing = summary.get("balance"), summary.get("crossing_share")
    parts = [str(threads)]
    if isinstance(balance, int | float):
        parts.append(f"busiest region {balance:.2f} of mean")
    if isinstance(crossing, int | float):
        parts.append(f"{crossing:.0%} of hops between regions")
    return ", ".join(parts)


def facts_table(run: Run) -> Table:
    """Return `facts` as a table, one fact a row."""
    return Table([run.name, ""], [list(row) for row in facts(run)], left=2)


def run_tables(run: Run) -> list[Table]:
    """Return what the terminal shows after a run: its facts, its groups, its jobs."""
    lines = [Line(scheme_name(run), [run])]
    found = (facts_table(run), groups.table(lines), jobs.table(lines), jobs.steps_table(run))
    return [table for table in found if table]
