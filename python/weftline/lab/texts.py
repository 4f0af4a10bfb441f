"""What the terminal shows of a run of the lab."""

from __future__ import annotations

from weftline import quantities
from weftline.measures.slowdown_table import enough
from weftline.runs import Run
from weftline.terminal import Table


def facts(run: Run) -> Table:
    """Return facts on a run, one a row."""
    summary = run.summary
    lab, slow = summary["lab"], summary["slowdown"]
    late = lab["lateness"]["links"]["p99_ns"]
    delay = lab["shortest_delay_ns"]
    no_frame = "no frame passed one" if delay else "no link has a delay"
    slowdowns = " / ".join(
        quantities.digits(slow[name]) if name == "max" or enough(name, slow["count"]) else "–"
        for name in ("p50", "p99", "max")
    )
    rows = [
        ["flows", f"{summary['flows_done']:,} of {summary['flows']:,} done, {summary['status']}"],
        ["took", quantities.time_text(summary["end_ns"])],
        ["slowdown p50 / p99 / max", slowdowns],
        ["drops at ports", f"{summary['drops']:,}"],
        ["packet-hops", f"{summary['packet_hops']:,}"],
        [
            "lateness of links p99",
            no_frame if late is None else f"below {quantities.time_text(late)}",
        ],
        [
            "shortest delay",
            quantities.time_text(delay) if delay else "none",
        ],
        ["cores", "kept awake" if lab.get("cores_awake") else "may sleep, and then wake up late"],
        [
            "cores waited for",
            "unknown" if lab["cpu_pressure_percent"] is None else f"{lab['cpu_pressure_percent']:g} %",
        ],
        ["contaminated", "; ".join(lab["contaminated"]) or "no"],
        ["differs", "; ".join(lab["differs"])],
        ["folder", str(run.out)],
    ]
    return Table([f"{run.name} (lab)", ""], rows, left=2)
