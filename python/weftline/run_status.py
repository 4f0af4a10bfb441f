"""How a run ended that is not done, as a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weftline.runs import Run


def ending(run: Run) -> str | None:
    """Return how a run ended and what to do, None if it is done or does not say."""
    status = run.summary.get("status", "done")
    if status == "done":
        return None
    if status == "memory-limit":
        return _memory_limit(run)
    if status == "interrupted":
        return f"interrupted; what was computed is in {run.out}"
    if status == "stalled" and run.summary.get("engine") == "lab":
        return f"stalled: flows are unfinished, and none ended for longer than the lab waits; see {run.out}"
    if status == "stalled":
        reason = run.summary.get("reason")
        found = [f"flows are unfinished, and {reason}"] if reason else []
        found += run.summary.get("waiting") or []
        return f"stalled: {'; '.join(found) or 'flows are unfinished'}; see {run.out}"
    return f"the run is {status}; see {run.out}"


def warnings(run: Run) -> list[str]:
    """Return what a run warns of, without what `ending` says too: why a job is stalled."""
    text = ending(run) or ""
    found = [str(warning) for warning in run.summary.get("warnings") or []]
    found += [waited] if (waited := _waited_text(run)) else []
    return [warning for warning in found if warning.removeprefix("a job is ") not in text]


def _waited_text(run: Run) -> str:
    from weftline.measures import steady

    try:
        text = (run.out / "scenario.toml").read_text("utf-8")
    except (OSError, ValueError):
        return ""
    # To parse every scenario for its warnings alone would take longer than to read them.
    return steady.waited_text([run]) if 'kind = "request-response"' in text else ""


def _memory_limit(run: Run) -> str:
    from weftline.quantities import bytes_text, time_text

    found = run.summary
    held, limit = found.get("memory_held_bytes") or 0, found.get("memory_limit_bytes")
    if limit is None or not held > limit:
        used, more = found.get("reason", "the machine's memory was used up"), "Free memory, or lower"
    else:
        used = f"the process used {bytes_text(held, figures=4)}, more than its memory limit of "
        used, more = used + bytes_text(limit, figures=4), "Raise --memory, or lower"
    return (
        f"{used}: the run ended at {time_text(found.get('end_ns'))} of simulated "
        f"time with {found.get('flows_done', 0):,} flows done; what was computed is in {run.out}. "
        f"{more} the load or the number of flows at a time; `weftline check` estimates "
        "what a run needs"
    )
