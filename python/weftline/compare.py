"""Tables over runs: slowdown by flow size beside what it costs, for the terminal, for a page and as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from weftline import quantities
from weftline.lines import PERCENTILES, Line, Mean, scheme_name
from weftline.metrics import METRICS
from weftline.runs import Run
from weftline.terminal import Table

_IDEALS = {
    "alone": "what the flow takes alone on its path: all its packets with headers and telemetry, back to "
    "back, and the last acknowledgement on its way back",
    "hpcc": "as the HPCC authors define it, base RTT plus all bytes with 48 B headers at the slowest link; "
    "telemetry is not in it, so its cost counts against a scheme",
    "phost": "as the pHost authors define it (OPT), without the last acknowledgement",
}
COSTS = ("queue_p99", "pauses", "drops", "seconds", "speed")


def ideal_text(lines: Sequence[Line]) -> str:
    """Return what slowdown means in these runs, as a sentence for the caption of a figure."""
    kinds = dict.fromkeys(
        str(run.scenario.get("measure", {}).get("ideal", "alone")) for line in lines for run in line.runs
    )
    ideal = "; or ".join(_IDEALS.get(kind, kind) for kind in kinds)
    return f"Slowdown: completion time over the ideal one, at least 1. Ideal: {ideal}."


def table(lines: Sequence[Line], *, title: str = "") -> Table:
    """Return percentiles of slowdown by flow size, queues, pauses, seconds and speed: three rows a line."""
    decades = {line.label: line.by_decade() for line in lines}
    shown = sorted({decade for by_decade in decades.values() for decade in by_decade})
    columns = ["FCT slowdown", "", *(f"≤ {quantities.bytes_text(10**d)}" for d in shown), "all"]
    costs = [
        name for name in COSTS if name != "drops" or any(_positive(line.metric("drops")) for line in lines)
    ]
    columns += [METRICS[name].title for name in costs]
    if any(_positive(line.metric("unfinished")) for line in lines):
        costs.append("unfinished")
        columns.append(METRICS["unfinished"].title)
    result = Table(columns, title=title, left=2)
    for line in lines:
        overall = line.overall()
        for row, percentile in enumerate(PERCENTILES):
            cells = [line.label if row == 0 else "", percentile]
            cells += [_cell(decades[line.label].get(d, {}).get(percentile)) for d in shown]
            cells.append(_cell(overall[percentile]))
            cells += [line.metric_text(name) if row == 0 else "" for name in costs]
            result.rows.append(cells)
    result.note = "Columns: flows up to that size. hops/s: packets sent on any link, per CPU second."
    if any(len(line.runs) > 1 for line in lines):
        result.note += " ±: half of the 95 % interval over the seeds."
    return result


def as_json(lines: Sequence[Line]) -> dict:
    """Return the same numbers for programs; ``interval`` is null for a single run."""
    return {
        "lines": [
            {
                "label": line.label,
                "runs": [str(run.out) for run in line.runs],
                "seeds": [run.summary.get("seed") for run in line.runs],
                "slowdown": {
                    "all": _numbers(line.overall()),
                    **{str(10**decade): _numbers(p) for decade, p in sorted(line.by_decade().items())},
                },
                "metrics": {
                    name: _number(line.metric(name)) for name in METRICS if not name.startswith("slowdown")
                },
            }
            for line in lines
        ]
    }


def facts(run: Run) -> list[tuple[str, str]]:
    """Return what one run says of itself after it ends, as names and texts."""
    summary = run.summary
    overall = run.slowdown(bins=1)["overall"]
    done, flows = summary.get("flows_done"), summary.get("flows")
    rows = [
        ("scheme", scheme_name(run)),
        ("flows", f"{done:,} of {flows:,} done" if done is not None and flows is not None else "–"),
        ("simulated", quantities.time_text(summary.get("end_ns"))),
        ("slowdown p50 / p95 / p99", " / ".join(quantities.digits(overall.get(p)) for p in PERCENTILES)),
    ]
    if run.queues:
        found = run.queues["percentiles"]
        queue = " / ".join(quantities.bytes_text(found.get(p)) for p in ("p95", "p99", "max"))
        rows.append(("queue p95 / p99 / max", queue))
    rows.append(
        (
            "pauses, drops",
            f"{METRICS['pauses'].text(summary.get('pauses'))}, {METRICS['drops'].text(summary.get('drops'))}",
        )
    )
    speed = METRICS["speed"].text(summary.get("packet_hops_per_cpu_second"))
    hops = METRICS["packet_hops"].text(summary.get("packet_hops"))
    rows.append(
        ("packet-hops", f"{hops} in {quantities.seconds_text(summary.get('cpu_seconds'))}, {speed}/s")
    )
    if isinstance(threads := summary.get("threads"), int) and threads > 1:
        rows.append(("threads", _threads_text(threads, summary)))
    rows.append(("seed, fingerprint", f"{summary.get('seed', '–')}, {summary.get('fingerprint', '–')}"))
    rows.append(("folder", str(run.out)))
    return rows


def _threads_text(threads: int, summary: dict) -> str:
    """How the work was spread: threads, busiest region over the mean, share of packets between regions."""
    balance, crossing = summary.get("balance"), summary.get("crossing_share")
    wall = quantities.seconds_text(summary.get("wall_seconds"))
    parts = [f"{threads}, {wall} wall"]
    if isinstance(balance, int | float):
        parts.append(f"busiest region {balance:.2f} of mean")
    if isinstance(crossing, int | float):
        parts.append(f"{crossing:.0%} of hops between regions")
    return ", ".join(parts)


def facts_table(run: Run) -> Table:
    """Return `facts` as a table, one fact a row."""
    return Table([run.name, ""], [list(row) for row in facts(run)], left=2)


def _cell(mean: Mean | None) -> str:
    return mean.text(quantities.digits) if mean else "–"


def _positive(mean: Mean | None) -> bool:
    return mean is not None and mean.value > 0


def _number(mean: Mean | None) -> dict | None:
    return None if mean is None else {"value": mean.value, "interval": mean.interval}


def _numbers(percentiles: dict[str, Mean | None]) -> dict:
    return {p: _number(mean) for p, mean in percentiles.items()}
