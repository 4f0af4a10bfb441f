"""The folder of a run of the lab: the files and columns of a simulated one, and what only the lab has.

Columns mean the same. What has no counterpart is null or absent, never zero.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from weftline import _native
from weftline.lab import (
    captured,
    cores,
    engine_hosts,
    engine_ports,
    goodput,
    ioam,
    lateness,
    priority,
    stamps,
)
from weftline.lab.plan import Plan
from weftline.runs import Run
from weftline.scenario import Scenario

if TYPE_CHECKING:
    from weftline.lab.runs import Outcome

MOST_PRESSURE = 20.0
"""Percent of time in which something waited for a core, above which a run is contaminated."""
MOST_LATE = 0.2
"""Share of the shortest delay that the p99 of lateness may have."""
MOST_NAMED = 5
"""Flows that a warning lists."""
LATE_WITHOUT_DELAYS_NS = 10_000_000
"""Takes the place of the shortest delay in a network without delays."""


def write(place: Path, scenario: Scenario, made: Plan, simulated: Run, outcome: Outcome) -> None:
    """Write everything; the digests come last."""
    place.mkdir(parents=True, exist_ok=True)
    # An interrupted writing must not look like a finished run.
    parts = (
        "digests.json",
        "summary.json",
        "series.parquet",
        "jobs.parquet",
        "telemetry.parquet",
        ioam.TABLE,
        captured.FILE,
    )
    for name in parts:
        (place / name).unlink(missing_ok=True)
    for capture in (place / ioam.FOLDER).glob("*.pcap"):
        capture.unlink()
    rows, end_ns = flow_rows(made, outcome), end_of(made, outcome)
    _write_flows(place / "flows.parquet", rows)
    series = [
        (float(at), port, "queue_bytes", float(size)) for at, port, size in outcome.queues if at <= end_ns
    ]
    if every := made.goodput_every_ns:
        seen = {"zero_ns": outcome.zero_ns, "every_ns": every}
        series += goodput.rows(outcome.flows, outcome.goodput, **seen, end_ns=end_ns)
    if series:
        _write_series(place / "series.parquet", sorted(series))
    digests = None
    if outcome.programs and made.stamping:
        digests = stamps.read(made, outcome.programs.records, outcome.ports, outcome.zero_ns)
        stamps.write(place / "telemetry.parquet", digests)
    traces = None
    if made.ioam_switches:
        kept = outcome.captures, outcome.capture_reports
        traces = ioam.write(place, made, *kept, outcome.ports, outcome.zero_ns)
    for name in made.watched:
        (place / ioam.FOLDER).mkdir(exist_ok=True)
        (place / ioam.FOLDER / f"{name}.pcap").write_bytes(outcome.captures.get(name, b""))
    (place / "scenario.toml").write_text(scenario.resolved, "utf-8")
    summary = summary_of(scenario, made, simulated, outcome, rows)
    if made.captured:
        kept = outcome.captures, outcome.capture_reports
        summary["capture"], warnings = captured.write(place, scenario, made, outcome.zero_ns, *kept)
        summary["warnings"] += warnings
    if traces:
        summary["lab"]["ioam"], warnings = traces
        summary["warnings"] += warnings
    if digests and outcome.programs:
        counts = outcome.programs.total(stamps.COUNTS)
        summary["lab"]["pint"] = digests.facts(counts)
        summary["warnings"] += digests.warnings(counts, outcome.ports_used_twice)
    if made.balancing and outcome.programs:
        summary["lab"]["balancer"] = made.balancing.facts(outcome.programs, outcome.companions)
        if unknown := [node for node, report in outcome.companions.items() if not report]:
            summary["warnings"].append(f"what the processes next to {', '.join(unknown)} did is not known")
        if not outcome.programs.counts:
            summary["warnings"].append("what the switches' programs counted is not known")
        if unknown_joins := summary["lab"]["balancer"]["programs"].get("strangers"):
            contaminate(
                summary,
                f"{unknown_joins} times a subflow joined at a switch that did not know its connection yet: "
                "the process that hashes keys was later than a round trip",
            )
    if outcome.programs:
        for one in made.at_ports:
            summary["lab"] |= one.facts(outcome.programs)
            summary["warnings"] += one.warnings(outcome.programs)
        summary["ecn_marks"] += summary["lab"].get("ecn", {}).get("marked", 0)
    (place / "summary.json").write_text(json.dumps(summary, indent=2, sort_keys=True), "utf-8")
    _native.write_digests(str(place))


def flow_rows(made: Plan, outcome: Outcome) -> list[dict[str, Any]]:
    """Return the table of flows, in the order of their ends as the simulator has it."""
    rows = []
    for flow in made.flows:
        found = outcome.flows.get(flow["flow_id"])
        row = {key: value for key, value in flow.items() if key != "congestion"}
        start = found["start_ns"] - outcome.zero_ns if found else flow["start_ns"]
        finished = found["finish_ns"] if found else None
        fct = finished - found["start_ns"] if finished and found else None
        row |= {
            "start_ns": float(start),
            "finish_ns": float(finished - outcome.zero_ns) if finished else None,
            "fct_ns": float(fct) if fct else None,
            # An ideal is what no packet can be faster than; a kernel's clock may be a grain off it.
            "slowdown": fct / flow["ideal_fct_ns"] if fct else None,
            "packets_sent": (found or {}).get("sent") or 0,
            "packets_retransmitted": (found or {}).get("retransmitted") or 0,
            "timeouts": (found or {}).get("timeouts") or 0,
        }
        rows.append(row)
    end = end_of(made, outcome)
    for row in rows:
        deadline, finish = row.get("deadline_ns"), row["finish_ns"]
        if deadline is not None and (finish is not None or deadline <= end):  # else it is not decided
            row["met_deadline"] = finish is not None and finish <= deadline
    return sorted(rows, key=lambda row: (row["finish_ns"] is None, row["finish_ns"] or 0, row["flow_id"]))


def end_of(made: Plan, outcome: Outcome) -> float:
    """Return when the run ended, in ns: at `run.until`, else with the last flow, or when it was given up."""
    if made.until_ns or outcome.status == "stalled":
        return float(made.until_ns or outcome.ended_ns)
    # A flow that failed has no finish.
    lasts = (found["finish_ns"] or (found.get("last") or [None])[0] for found in outcome.flows.values())
    return float(max((last - outcome.zero_ns for last in lasts if last), default=0))


def _write_flows(path: Path, rows: list[dict[str, Any]]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    name = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema(
        [
            pa.field("flow_id", pa.uint32(), nullable=False),
            pa.field("src", pa.uint32(), nullable=False),
            pa.field("dst", pa.uint32(), nullable=False),
            pa.field("size_bytes", pa.uint64(), nullable=False),
            pa.field("start_ns", pa.float64(), nullable=False),
            pa.field("finish_ns", pa.float64()),
            pa.field("fct_ns", pa.float64()),
            pa.field("ideal_fct_ns", pa.float64(), nullable=False),
            pa.field("slowdown", pa.float64()),
            pa.field("packets_sent", pa.uint64(), nullable=False),
            pa.field("packets_retransmitted", pa.uint64(), nullable=False),
            pa.field("timeouts", pa.uint32(), nullable=False),
            pa.field("group", name, nullable=False),
            pa.field("transport", name, nullable=False),
            pa.field("controller", name, nullable=False),
            pa.field("deadline_ns", pa.float64()),
            pa.field("met_deadline", pa.bool_()),
        ]
    )
    parquet.write_table(pa.Table.from_pylist(rows, schema=schema), path, compression="zstd")


def _write_series(path: Path, rows: list[tuple[float, str, str, float]]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    name = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema(
        [
            pa.field("time_ns", pa.float64(), nullable=False),
            pa.field("entity", name, nullable=False),
            pa.field("metric", name, nullable=False),
            pa.field("value", pa.float64(), nullable=False),
        ]
    )
    columns = [list(column) for column in zip(*rows, strict=True)]
    arrays = [pa.array(column).cast(field.type) for column, field in zip(columns, schema, strict=True)]
    parquet.write_table(pa.Table.from_arrays(arrays, schema=schema), path, compression="zstd")


def summary_of(
    scenario: Scenario, made: Plan, simulated: Run, outcome: Outcome, rows: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the summary: the simulator's keys where they mean the same, and ``lab``."""
    finished = [row for row in rows if row["finish_ns"] is not None]
    wires = lateness.Histogram.of(outcome.relay.get("late", []))
    shortest = made.shortest_delay_ns
    counters = outcome.counters
    drops = sum(found.drops for found in counters.values())
    summary: dict[str, Any] = {
        "engine": "lab",
        "status": outcome.status,
        "name": scenario.name,
        "seed": simulated.summary.get("seed"),
        "versions": simulated.summary.get("versions"),
        "provenance": {**(simulated.summary.get("provenance") or {}), "engine": "lab"},
        "fingerprint": None,
        "flows": len(rows),
        "flows_done": len(finished),
        "flows_unfinished": len(rows) - len(finished),
        "flows_not_due": simulated.summary.get("flows_not_due", 0),
        "end_ns": end_of(made, outcome),
        "bytes_on_wire": sum(found.sent_bytes for found in counters.values()),
        "packet_hops": sum(found.sent_packets for found in counters.values()),
        "drops": drops,
        "ecn_marks": sum(one.get("marked", 0) for one in outcome.relay.get("ports", {}).values()),
        "pauses": 0,
        "jobs": [],
        "slowdown": slowdowns(rows),
        "queues": {"max": None, "p50": None, "p95": None, "p99": None, "p999": None, "samples": 0},
        "wall_seconds": outcome.seconds,
        "file_digests": simulated.summary.get("file_digests"),
        "lab": {
            "kernel": _kernel(),
            "ip": made.ip.version,
            "differs": made.differs,
            "priority": outcome.priority,
            "cores_awake": outcome.awake,
            "lateness": {
                "links": wires.as_json(),
                "starts": outcome.start_lateness.as_json(),
                "processes": outcome.waited.as_json(),
            },
            "shortest_delay_ns": shortest,
            "cpu_pressure_percent": outcome.pressure,
            "relay": {key: outcome.relay.get(key) for key in ("frames", "missed", "refused")},
            "ports": {
                port: {
                    "packets_sent": found.sent_packets,
                    "bytes_sent": found.sent_bytes,
                    "drops": found.drops,
                }
                for port, found in sorted(counters.items())
            },
            "engine_ports": engine_ports.account(outcome.relay) if made.engine_ports else None,
            "engine_hosts": engine_hosts.account(outcome.of_hosts) if made.engine_hosts else None,
            **(
                {"watched": {name: outcome.capture_reports.get(name, {}) for name in made.watched}}
                if made.watched
                else {}
            ),
            **({"dctcp": outcome.dctcp} if made.dctcp else {}),
            **({"plain_tcp": sorted(outcome.plain)} if made.multipath else {}),
            "samples_missed": outcome.missed_samples,
            "failed": {str(i): one["wrong"] for i, one in outcome.flows.items() if one.get("wrong")},
        },
    }
    ideal = median(flow["ideal_fct_ns"] for flow in made.flows) if made.flows else None
    summary["lab"]["contaminated"], summary["warnings"] = [], list(scenario.check()["warnings"])
    for text in contamination(wires, shortest, outcome, ideal):
        contaminate(summary, text)
    if made.dctcp and not outcome.dctcp["windows"]:
        summary["warnings"].append("DCTCP: its programs wrote no window of data down")
    if mended := outcome.dctcp.get("windows_mended"):
        summary["warnings"].append(
            f"DCTCP: {mended} windows jumped as the kernel took back a cut, and were set again with the next "
            "acknowledgement; flows had sent a burst by then: do not trust this run"
        )
    if failed := summary["lab"]["failed"]:
        texts = ", ".join(f"{number} ({wrong})" for number, wrong in list(failed.items())[:MOST_NAMED])
        summary["warnings"].append(
            f"{len(failed)} of {len(rows)} flows failed, which the simulator's never do: {texts}"
            + (", ..." if len(failed) > MOST_NAMED else "")
        )
    if outcome.plain:
        numbers = ", ".join(map(str, sorted(outcome.plain)))
        summary["warnings"].append(
            f"MPTCP: the kernel continued with plain TCP in flows {numbers}, as first packets with its "
            "options were lost; the simulator's connections keep their subflows"
        )
    if lost := (outcome.relay.get("missed") or 0) + (outcome.relay.get("refused") or 0):
        summary["warnings"].append(
            f"{lost} frames were lost between ports, which no link of the scenario loses"
        )
    if lost_inside := sum(outcome.lost_inside.values()):
        summary["warnings"].append(
            f"switches {', '.join(outcome.lost_inside)} lost {lost_inside} packets that no port dropped: "
            "report this"
        )
    if astray := outcome.relay.get("not_conserved"):
        summary["warnings"].append(
            f"ports {', '.join(astray)} do not account for all of their frames: report this"
        )
    if outcome.missed_samples:
        summary["warnings"].append(f"{outcome.missed_samples} moments of the queues' series were missed")
    below = sum(1 for row in finished if row["slowdown"] < 1)
    if below:
        summary["warnings"].append(
            f"{below} flows were faster than the simulator's ideal time: see what differs "
            "(links without a delay, bursts of ports)"
        )
    return summary


def contaminate(summary: dict[str, Any], why: str) -> None:
    """Note why a run does not count."""
    summary["lab"]["contaminated"].append(why)
    summary["warnings"].append(f"contaminated: {why}")


def contamination(
    wires: lateness.Histogram, shortest: int | None, outcome: Outcome, ideal_fct_ns: float | None = None
) -> list[str]:
    """Return why the machine, not the network, may have decided the numbers of a run.

    `ideal_fct_ns`: the median over its flows.
    """
    found = []
    p99 = wires.quantile_ns(0.99)
    if p99 is not None and shortest and p99 > MOST_LATE * shortest:
        found.append(
            f"frames left up to {p99 / 1e6:g} ms late (p99), above {MOST_LATE:.0%} of the shortest delay, "
            f"{shortest / 1e6:g} ms: "
            "raise [scale] by"
        )
    waited = outcome.waited.quantile_ns(0.99)
    allowed = MOST_LATE * (shortest or LATE_WITHOUT_DELAYS_NS)
    # Other processes may wait while those of the lab, which go first, do not.
    first = outcome.priority == priority.REAL_TIME and waited is not None
    if first and waited is not None and waited > allowed:
        found.append(
            f"processes woke up to {waited / 1e6:g} ms late (p99) at real-time priority, "
            f"above {allowed / 1e6:g} ms"
        )
    if not first and outcome.pressure is not None and outcome.pressure > MOST_PRESSURE:
        found.append(
            f"processes waited for a core in {outcome.pressure:g} % of the time, above {MOST_PRESSURE:g} %"
        )
    # Without delays nothing is late where a core is short, whatever goes first: packets are only slower.
    busy, waits = outcome.busy.busiest, outcome.busy.waited
    if not shortest and busy is not None and busy > cores.MOST_BUSY:
        found.append(
            f"a core was busy in {busy:.3g} % of the time in which flows ran, above {cores.MOST_BUSY:g} %, "
            "and without delays of links this machine may have limited them: lower the rates, or raise "
            "[scale] by"
        )
    elif not shortest and waits is not None and waits > MOST_PRESSURE:
        found.append(
            f"processes waited for a core in {waits:.3g} % of the time in which flows ran, above "
            f"{MOST_PRESSURE:g} %, and without delays of links this machine may have limited them"
        )
    if outcome.relay.get("missed"):
        found.append(f"{outcome.relay['missed']} frames were lost by the process between interfaces")
    began = outcome.start_lateness.quantile_ns(0.99)
    if began is not None and ideal_fct_ns and began > MOST_LATE * ideal_fct_ns:
        found.append(
            f"flows started up to {began / 1e6:g} ms late (p99), above {MOST_LATE:.0%} of their median ideal "
            f"completion time, {ideal_fct_ns / 1e6:.3g} ms"
        )
    if refused := sum(bool(one.get("refused")) for one in outcome.flows.values()):
        found.append(f"{refused} flows were refused by this machine: see lab.failed in summary.json")
    if outcome.clock_step_ns > MOST_LATE * (shortest or LATE_WITHOUT_DELAYS_NS):
        found.append(f"the time of day was set meanwhile, by {outcome.clock_step_ns / 1e6:g} ms")
    return found


def slowdowns(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the distribution of slowdowns, over all and by group."""
    values = [row["slowdown"] for row in rows if row["slowdown"] is not None]
    groups = sorted({row["group"] for row in rows})
    by_group = {
        name: _spread(
            [row["slowdown"] for row in rows if row["group"] == name and row["slowdown"] is not None]
        )
        for name in groups
    }
    below = sum(value < 1 for value in values)
    return {
        **_spread(values),
        "by_group": by_group,
        "by_size": [],
        "below_1": below,
        "raised_to_1": 0,
        "without": 0,
    }


def _spread(values: list[float]) -> dict[str, Any]:
    ordered = sorted(values)

    def at(share: float) -> float | None:
        return ordered[max(math.ceil(share * len(ordered)) - 1, 0)] if ordered else None

    mean = sum(ordered) / len(ordered) if ordered else None
    return {
        "count": len(ordered),
        "mean": mean,
        "max": ordered[-1] if ordered else None,
        "p50": at(0.5),
        "p95": at(0.95),
        "p99": at(0.99),
    }


def _kernel() -> str:
    import platform

    return platform.release()
