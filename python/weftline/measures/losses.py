"""What became of the packets of a run: dropped, lost, stranded, sent again, waited for in vain.

The engine declares the counters of data packets, with their titles and texts; nothing here knows them by
name but the few that tables and pages show whenever they are not zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weftline import quantities
from weftline.measures import counted

if TYPE_CHECKING:
    from weftline.measures.flow_rows import Flows
    from weftline.measures.readings import Reader
    from weftline.runs import Run

__all__ = ["SHOWN", "counter", "declared", "lost_at_random", "lost_on_dead_links", "shown"]

SHOWN = ("drops", "lost_on_dead_links", "stranded", "lost_at_random")
"""Metrics of lost packets of every kind; a run without any of them lost nothing."""
SENT_AGAIN = ("retransmitted", "retransmitted_spurious", "timeouts", "loss_probes")
"""Metrics of what senders did about it; shown with the others whenever they are not zero."""


def declared() -> list[dict[str, str]]:
    """Return the counters of data packets, each with ``key``, ``unit``, ``title`` and ``text``."""
    return counted.declarations()["losses"]


def counter(key: str) -> Reader:
    """Return a reader of a counter over all groups; None in folders of before there were any."""
    return lambda run: (run.summary.get("losses") or {}).get(key)


def of_group(key: str) -> Any:
    """Return a reader of a counter of the group whose flows count, of all where no group is named."""

    def read(run: Run, flows: Flows) -> float | None:
        found = run.summary.get("losses") or {}
        return (found.get("by_group") or {}).get(flows.group, {}).get(key) if flows.group else found.get(key)

    return read


def lost_at_random(run: Run) -> float | None:
    """Packets of every kind that links lost at random."""
    return run.summary.get("packets_lost_at_random")


def lost_on_dead_links(run: Run) -> float | None:
    """Packets of every kind on a link when it went down; with those lost at random in older folders."""
    lost = run.summary.get("packets_lost")
    return None if lost is None else lost - run.summary.get("packets_lost_at_random", 0)


def shown(run: Run) -> list[tuple[str, str]]:
    """Return title and text of every loss, retransmission and timeout of a run that there was."""
    from weftline.measures.metrics import METRICS

    values = [(METRICS[name], METRICS[name].read(run)) for name in (*SHOWN, *SENT_AGAIN)]
    return [(metric.title, quantities.count_text(value)) for metric, value in values if value]
