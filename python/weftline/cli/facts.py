"""Facts for a person: what `check` found, nested names and numbers, each with its unit."""

from __future__ import annotations

from typing import Any

from weftline import quantities, terminal
from weftline.quantities import bytes_text, count_text, seconds_text, time_text

MAX_TERMS = 3
"""Workloads whose configured load is listed."""


def of_check(found: dict[str, Any]) -> dict[str, Any]:
    """Return what `check` found with words for what is not a number, estimate and warnings at the end."""
    run = dict(found.get("run", {}))
    if run.get("until_ns", 0) is None:
        del run["until_ns"]
        run["until"] = "flows-done"
    if run.get("memory_limit_bytes", 0) is None:
        del run["memory_limit_bytes"]
        run["memory limit"] = "none"
    last = {}
    if "estimate" in found:
        last["estimate"] = _estimate_texts(found["estimate"], run.get("threads", 1))
    if "warnings" in found:
        last["warnings"] = found["warnings"]
    first = {key: value for key, value in found.items() if key not in last}
    if "traffic" in found:
        first["traffic"] = _traffic_texts(found["traffic"])
    return {**first, **({"run": run} if run else {}), **last}


def _traffic_texts(traffic: dict[str, Any]) -> dict[str, Any]:
    """Return facts on flows: the load of the drawn flows next to the configured load."""
    asked, error = traffic.get("offered_load_asked"), traffic.get("offered_load_error", 0.0)
    shown = {key: value for key, value in traffic.items() if not key.startswith("offered_load_")}
    if not shown.get("flows_not_due"):
        shown.pop("flows_not_due", None)
    drawn, flows = shown.pop("flows_drawn", traffic.get("flows")), traffic.get("flows")
    if shown.pop("flows_are_lower_bound", False):
        shown["flows"] = f"more than {flows}: no more are counted"
    elif flows is not None and drawn < flows:
        shown["flows"] = f"about {flows}: {drawn} were drawn, the others are what the sources expect"
    if "bytes" in shown and shown["bytes"] is None:
        shown["bytes"] = "without end: bulk flows send until run.until"
    load = shown.get("offered_load")
    if load is None:
        return shown
    of_what = f"{load:.3g} of the links of all hosts"
    if asked is None:
        return {**shown, "offered_load": of_what}
    # Two standard deviations: what 19 of 20 seeds stay within.
    here = f"this seed: {'within' if abs(load - asked) <= 2 * error else 'beyond'} that"
    counted = f"the {flows} flows of this seed"
    if flows is not None and drawn < flows:
        # The load of flows that were not drawn is the configured one, whatever the seed.
        counted = f"about {flows} flows, of which {drawn} were drawn with this seed"
        here = "this seed: not known, as not all of its flows were drawn"
    shown["offered_load"] = (
        f"{of_what} by {counted}; "
        f"configured: {_terms_text(traffic)}{asked:.3g} of the links of all hosts. "
        "Flows are drawn at random: "
        f"with this number and sizes of flows, 19 of 20 seeds deviate by up to {2 * error:.1g} "
        f"({here})"
    )
    return shown


def _terms_text(traffic: dict[str, Any]) -> str:
    """Return each workload's load as its scenario has it, with what it is a share of; "" if nothing says."""
    terms = traffic.get("offered_load_terms") or []
    if not terms:
        return ""
    more = len(terms) - MAX_TERMS
    return " and ".join(terms[:MAX_TERMS]) + (f" and {more} more" if more > 0 else "") + " = "


def _estimate_texts(estimate: dict[str, Any], threads: int) -> dict[str, str]:
    """Return the estimate of a run as a person reads it: to two figures, as more would promise too much."""
    time = f"about {seconds_text(_two_figures(estimate['seconds']))} on one core"
    if threads > 1:
        time += f", {seconds_text(_two_figures(estimate['seconds_on_threads']))} on {threads}"
    kept = estimate.get("connections", 0)
    open_connections = f"; {count_text(kept)} connections stay open" if kept else ""
    parts = {key.removesuffix("_bytes"): value for key, value in estimate["memory"].items()}
    # The summary is made after packets and flows were freed.
    in_run, after = ("packets", "flows"), ("summary",)
    lesser = min((in_run, after), key=lambda names: sum(parts.get(name, 0) for name in names))
    parts = {name: size for name, size in parts.items() if size >= 1_000_000 and name not in lesser}
    largest = sorted(parts.items(), key=lambda part: -part[1])
    of_it = ", ".join(f"{name} {bytes_text(value, figures=2)}" for name, value in largest)
    stalled = estimate.get("if_stalled")
    if stalled and stalled["seconds"] >= 2 * estimate["seconds"]:
        time += (
            f"; up to {seconds_text(_two_figures(stalled['seconds']))} if flows stall, with "
            f"{count_text(_two_figures(stalled['series_rows']))} rows of series.parquet until "
            f"{time_text(stalled['end_ns'], figures=2)} of simulated time"
        )
    end = f"about {time_text(estimate['end_ns'], figures=2)} of simulated time"
    if alone := estimate.get("end_without_collisions_ns"):
        end += f" ({time_text(alone, figures=2)} if no flows collide on a path)"
    if estimate.get("end_is_beyond_clock"):
        end = "beyond the limit of the clock"
    left_out = estimate.get("end_does_not_count")
    without = f"; this does not count {left_out}" if left_out else ""
    return {
        "packet hops": count_text(estimate["packet_hops"]),
        "ends at": f"{end}{without}",
        "in flight": f"at most about {count_text(_two_figures(estimate['flows_in_flight']))} flows and "
        f"{count_text(_two_figures(estimate['packets_in_flight']))} packets" + open_connections,
        "time": time,
        "memory": f"about {bytes_text(estimate['memory_bytes'], figures=2)} ({of_it})",
    }


def _two_figures(value: float) -> float:
    return float(f"{value:.2g}")


def show(facts: dict[str, Any], indent: int = 0) -> None:
    """Print nested facts, one a line, names aligned within a group."""
    plain = {key: value for key, value in facts.items() if not _is_group(value)}
    width = max((len(_fact(key, None)[0]) for key in plain), default=0)
    for key, value in facts.items():
        name, text = _fact(key, value)
        if not _is_group(value):
            print(terminal.entries_text([(name, text)], indent=indent, narrowest=width))
            continue
        print(" " * indent + f"{name}:")
        if isinstance(value, dict):
            show(value, indent + 2)
        else:
            for entry in value:
                text = entry
                if isinstance(entry, dict):
                    text = ", ".join(" ".join(_fact(k, v)) for k, v in entry.items())
                print(terminal.indented(text, indent + 2))


def _is_group(value: object) -> bool:
    if not isinstance(value, list) or not value:
        return isinstance(value, dict)
    return all(isinstance(v, dict) for v in value) or _are_sentences(value)


def _are_sentences(values: list[object]) -> bool:
    """Return whether there are several texts of several words, such as warnings: each has its own line."""
    return len(values) > 1 and all(isinstance(value, str) and " " in value for value in values)


def _fact(key: str, value: object) -> tuple[str, str]:
    """Return a fact's name and its text; the unit at the end of a name moves to the number."""
    units = {"ns": quantities.time_text, "bps": quantities.rate_text, "bytes": quantities.bytes_text}
    name, _, unit = key.rpartition("_")
    if unit in units and (value is None or (isinstance(value, int | float) and not isinstance(value, bool))):
        return (name or key).replace("_", " "), units[unit](value, figures=5)
    if unit in units and isinstance(value, list):
        return name.replace("_", " "), ", ".join(units[unit](one, figures=5) for one in value) or "none"
    return key.replace("_", " "), _plain(value)


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or (isinstance(value, float) and abs(value) >= 1000):
        return f"{value:,.0f}"
    if isinstance(value, float):
        return quantities.digits(value)
    if isinstance(value, list):
        return ", ".join(_plain(v) for v in value) or "none"
    return "–" if value is None else str(value)
