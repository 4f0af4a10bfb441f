"""What must hold of the results of every run, whatever the scenario, read from the files of the run.

Each check is a law of the whole: rows that are counted twice, sums that must agree, bounds from physics.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq

SIGNED = {"rtt_diff_ns"}
"""Metrics of series that may be negative."""
MAX_PACKET = 70_000
"""Bytes that no packet exceeds."""
BOUNDS = ("alone", "delivery")
"""Definitions of the ideal time that no flow can beat."""
ROUNDING = 1e-6
SUMS = (
    ("packets_sent", "packet_hops"),
    ("bytes_sent", "bytes_on_wire"),
    *(
        (key, key)
        for key in ("drops", "bytes_dropped", "packets_lost", "bytes_lost", "packets_lost_at_random")
    ),
    *((key, key) for key in ("packets_stranded", "bytes_stranded", "ecn_marks", "pauses")),
)
"""Counters of links, and the totals that their sums are."""


def wrong(folder: Path, report: dict) -> Iterator[str]:
    """Yield what is wrong with the results of a run. ``report``: what `weftline check` printed of it."""
    summary = json.loads((folder / "summary.json").read_text())
    resolved = tomllib.loads((folder / "scenario.toml").read_text())
    flows = pq.read_table(folder / "flows.parquet").to_pydict()
    yield from of_flows(flows, summary, resolved)
    yield from of_totals(flows, summary, report)
    for name in ("series", "queues", "telemetry"):
        path = folder / f"{name}.parquet"
        if path.exists():
            table = pq.read_table(path)
            yield from nulls(table, name, {"path"} if name == "telemetry" else set())
            if name == "series":
                summary["slowest_bps"] = min(link["rate_bps"] for link in report["topology"]["kinds_of_link"])
                yield from of_series(table, flows, summary, resolved)
            if name == "queues":
                rows = table.to_pydict()
                samples: Counter[str] = Counter()
                for port, count in zip(rows["port"], rows["samples"], strict=True):
                    samples[port] += count
                if len(set(samples.values())) > 1:
                    yield f"queues: ports were sampled unequally often: {sorted(set(samples.values()))}"
                if sum(samples.values()) != summary["queues"]["samples"]:
                    yield "queues: the samples are not those of the summary"
    if "capture" in summary and (folder / "capture.pcapng").stat().st_size != summary["capture"]["bytes"]:
        yield "capture: capture.pcapng has not the bytes that the summary states"


def without_rows(resolved: dict) -> set[str]:
    """Groups of jobs whose messages have no rows."""
    return {job["group"] for job in resolved.get("workload", []) if job.get("messages") is False}


def of_flows(flows: dict, summary: dict, resolved: dict) -> Iterator[str]:
    """Problems in the rows of flows.parquet."""
    ids, end = flows["flow_id"], summary["end_ns"]
    has_all = not without_rows(resolved)
    if has_all and len(ids) != summary["flows"]:
        yield f"flows: {len(ids)} rows, the summary counts {summary['flows']}"
    if len(set(ids)) != len(ids):
        yield "flows: a flow has two rows"
    done = sum(finish is not None for finish in flows["finish_ns"])
    if has_all and (done, len(ids) - done) != (summary["flows_done"], summary["flows_unfinished"]):
        yield f"flows: {done} of {len(ids)} rows are of finished flows, the summary differs"
    if summary["status"] == "done" and resolved["run"]["until"] == "flows-done" and done != len(ids):
        yield "flows: status done, and a flow has not finished"
    bound = resolved["measure"]["ideal"] in BOUNDS
    for row in zip(*(flows[column] for column in flows), strict=True):
        flow = dict(zip(flows, row, strict=True))
        where = f"flow {flow['flow_id']}"
        finish, fct, ideal, slowdown = (
            flow[key] for key in ("finish_ns", "fct_ns", "ideal_fct_ns", "slowdown")
        )
        for key in ("start_ns", "finish_ns", "fct_ns", "ideal_fct_ns", "slowdown", "deadline_ns"):
            if flow[key] is not None and not (math.isfinite(flow[key]) and flow[key] >= 0):
                yield f"{where}: {key} is {flow[key]}"
        if (fct is None) != (finish is None) or (slowdown is None) != (finish is None or ideal == 0):
            yield f"{where}: finish, fct and slowdown are not null together"
        if flow["packets_retransmitted"] > flow["packets_sent"]:
            yield f"{where}: more packets were sent again than sent"
        deadline = flow["deadline_ns"]
        if (flow["met_deadline"] is None) != (deadline is None or (finish is None and deadline > end)):
            yield f"{where}: met_deadline where it is not decided, or no met_deadline where it is"
        if finish is None:
            continue
        if abs(finish - flow["start_ns"] - fct) > ROUNDING * max(finish, 1) or finish > end + 1e-3:
            yield f"{where}: finish - start is not fct, or it lies after the end of the run"
        if flow["packets_sent"] < 1 and flow["size_bytes"] > 0:
            yield f"{where}: finished, and nothing was sent"
        if bound and ideal > 0 and fct < ideal - 2e-3:
            yield f"{where}: fct {fct} ns is below the ideal time, {ideal} ns"


def of_totals(flows: dict, summary: dict, report: dict) -> Iterator[str]:
    """Sums of summary.json, over links, groups and flows."""
    for of_links, total in SUMS:
        found = sum(link[of_links] for link in summary["links"].values())
        if found != summary[total]:
            yield f"totals: {total} is {summary[total]}, the links have {found}"
    losses, by_group = summary["losses"], summary["losses"]["by_group"]
    for name, counters in (("all groups", losses), *by_group.items()):
        parts = ("received", "dropped", "lost_on_dead_links", "lost_at_random", "stranded", "in_flight")
        if counters["data_sent"] != sum(counters[f"data_{part}"] for part in parts):
            yield f"losses: data packets of {name} are not all accounted for: {without_groups(counters)}"
        if counters["retransmitted"] != sum(
            counters[f"retransmitted_{why}"] for why in ("needed", "spurious")
        ):
            yield f"losses: retransmissions of {name} do not add up"
    for key, value in losses.items():
        if key != "by_group" and value != sum(counters[key] for counters in by_group.values()):
            yield f"losses: {key} is not the sum of the groups"
    if losses["timeouts"] < sum(flows["timeouts"]):
        yield "losses: fewer timeouts than the flows have"
    for key, value in numbers(summary):
        if not math.isfinite(value) or value < 0:
            yield f"summary: {key} is {value}"
    traffic = report["traffic"]
    if traffic["counted_all"] and summary["status"] == "done":
        offered, found = traffic["flows"], summary["flows"] + summary["flows_not_due"]
        if report["run"]["until_ns"] is None and offered != found:
            yield f"flows: {found} were run, check counted {offered}"


def of_series(table: object, flows: dict, summary: dict, resolved: dict) -> Iterator[str]:
    """Values of series.parquet: finite, within the run, for all ports alike."""
    # Millions of rows name a few thousand ports.
    rows = table.to_pandas(strings_to_categorical=True)
    if not rows["time_ns"].between(0, summary["end_ns"] + 1e-3).all():
        yield "series: a time lies before the run or after its end"
    every = {
        name: _nanoseconds(part["every"])
        for name, part in resolved["measure"].items()
        if isinstance(part, dict) and "every" in part
    }
    for metric, values in rows.groupby("metric", observed=True)["value"]:
        if values.isna().any() or (values.min() < 0 and metric not in SIGNED):
            yield f"series: {metric} is negative or not a number"
    # Internals of a flow's controller are infinite where they limit nothing.
    flow_names = [name for name in rows["entity"].cat.categories if name.startswith("flow")]
    others = rows[~rows["entity"].isin(flow_names)]
    for metric in others.loc[~np.isfinite(others["value"]), "metric"].unique():
        yield f"series: {metric} is infinite"
    if "utilisation" in every and not any(
        event["change"] == "rate" for event in resolved["failures"].get("event", ())
    ):
        # A packet counts when its transmission begins.
        used = rows[rows["metric"] == "utilisation"]
        limit = 1 + MAX_PACKET * 8 / (summary["slowest_bps"] * lengths(used) / 1e9)
        if (used["value"] > limit + 1e-9).any():
            yield f"series: a port is in use by more than a packet beyond its rate, {limit.min():.4g}"
    paused = rows[rows["metric"] == "paused"]
    for entity, values in paused.groupby("entity", observed=True)["value"]:
        if set(values.iloc[::2]) != {1} or not set(values.iloc[1::2]) <= {0}:
            yield f"series: {entity} is paused or resumed twice in a row"
    for metric, name in (("queue_bytes", "queues"), ("utilisation", "utilisation"), ("drops", "port_events")):
        found = rows[rows["metric"] == metric].groupby("entity", observed=True).size()
        if (
            name in every
            and len(found)
            and (found.min() != found.max() or abs(found.min() - summary["end_ns"] // every[name]) > 1)
        ):
            yield f"series: {metric} has not one row for every interval and port"
    if "goodput" in every:
        offered: Counter[str] = Counter()
        for number, group, size in zip(flows["flow_id"], flows["group"], flows["size_bytes"], strict=True):
            offered[group] += size
            offered[f"flow{number}"] += size
        rates = rows[rows["metric"] == "goodput_bps"]
        sums = (rates["value"] * lengths(rates) / 8e9).groupby(rates["entity"], observed=True).sum()
        for entity, delivered in sums.items():
            if entity in without_rows(resolved):
                continue
            if delivered > offered[entity] * (1 + 1e-9) + 1:
                yield f"series: goodput of {entity} comes to {delivered:.0f} B of {offered[entity]} B"


def lengths(rows: pd.DataFrame) -> pd.Series:
    """The lengths in ns of intervals of a series: those of an entity follow each other from time 0."""
    times = rows.groupby("entity", observed=True)["time_ns"]
    return rows["time_ns"] - times.shift().fillna(0.0)


def nulls(table: object, name: str, allowed: set[str]) -> Iterator[str]:
    """Columns of a table that may not be null and are."""
    for column in table.column_names:
        if column not in allowed and pc.sum(pc.is_null(table[column])).as_py():
            yield f"{name}: {column} has nulls"


def numbers(value: object, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield every number of a summary with its path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for inner in value:
            yield from numbers(inner, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value


def without_groups(counters: dict) -> dict:
    return {key: value for key, value in counters.items() if key.startswith("data_")}


def _nanoseconds(text: str) -> float:
    number, unit = re.fullmatch(r"([0-9.]+)(ps|ns|us|ms|s)", text).groups()
    return float(number) * {"ps": 1e-3, "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]
