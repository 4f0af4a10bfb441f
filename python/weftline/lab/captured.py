"""`measure.pcap` on real packets: frames of links, as processes inside namespaces see them, in one file.

A frame is taken where it leaves the queue of a port of the kernel, which is when its first bit leaves. Ports
of the engine, and hosts of it, have no such place: there a frame is taken where it arrives, and began its own
time on the link and the link's delay before that. The file is written by the code that writes the
simulator's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftline import _native
from weftline.lab.capture import FRAME

if TYPE_CHECKING:
    from weftline.lab.plan import End, Plan
    from weftline.scenario import Scenario

FILE = "capture.pcapng"
KEY = "links of "
"""Before the name of a node, for what was captured there."""


@dataclass(frozen=True)
class Links:
    """What is captured where."""

    tasks: dict[str, str]
    """By node."""
    unseen: list[str]
    """Links of which no namespace sees a frame."""

    def differs(self) -> list[str]:
        """Return what of a capture the two engines cannot have alike."""
        found = ["captures: frames of the kernel, with its addresses, ports, and packets that no flow sent"]
        if self.unseen:
            found.append(
                f"captures: {', '.join(self.unseen)} lead from ports of the engine to its hosts, where no "
                "namespace sees a frame"
            )
        return found


def asked(scenario: Scenario, made: Plan) -> Links | None:
    """Return what a scenario asks for, if it captures links."""
    if (found := _native.captured_links(scenario.loaded)) is None:
        return None
    links, kept, max_bytes = found
    ends = {end.entity: (end, link.delay_ns) for link in made.links for end in (link.a, link.b)}
    sides: dict[str, dict[str, dict[str, tuple[int, float, int]]]] = {}
    unseen = []
    for number, (port, name) in enumerate(links):
        end, delay_ns = ends[port]
        if place := _place(made, end, delay_ns):
            node, interface, side, ns_a_byte, more = place
            sides.setdefault(node, {}).setdefault(interface, {})[side] = number, ns_a_byte, more
        else:
            unseen.append(name)
    tasks = {
        node: json.dumps({"links": one, "kept": kept, "bytes": max_bytes}) for node, one in sides.items()
    }
    return Links(tasks, unseen)


def _place(made: Plan, end: End, delay_ns: int) -> tuple[str, str, str, float, int] | None:
    """Return node, interface and direction where frames of a link are taken; ns a byte and ns since begun."""
    own = {node.name for node in made.own_nodes}
    if end.node in own and not (made.engine_ports and end.port.is_switch):
        return end.node, end.interface, "out", 0.0, 0
    node, interface = end.peer
    return (node, interface, "in", 8e9 / end.port.rate_bps, delay_ns) if node in own else None


def _frames(zero_ns: int, until_ns: int | None, data: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Yield the frames of a process that began within the run: time since its begin, link, length, bytes."""
    at = 0
    while at + FRAME.size <= len(data):
        began, link, length, kept = FRAME.unpack_from(data, at)
        at += FRAME.size
        began -= zero_ns
        if began >= 0 and (until_ns is None or began < until_ns):
            yield began, link, length, data[at : at + kept]
        at += kept


def write(
    place: Path,
    scenario: Scenario,
    made: Plan,
    zero_ns: int,
    captures: Mapping[str, bytes],
    reports: Mapping[str, dict[str, Any]],
) -> tuple[dict[str, Any], list[str]]:
    """Write the file; return what the summary states of it, and warnings."""
    assert made.captured is not None
    keys = [KEY + node for node in made.captured.tasks]
    frames = [one for key in keys for one in _frames(zero_ns, made.until_ns, captures.get(key, b""))]
    frames.sort(key=lambda one: one[:2])
    facts, warning = _native.write_capture(scenario.loaded, place / FILE, frames)
    lost = sum(reports.get(key, {}).get("lost", 0) for key in keys)
    warnings = [warning] if warning else []
    if lost:
        warnings.append(f"{lost} frames of captured links are not in {FILE}: its processes were too slow")
    if missing := [key for key in keys if "lost" not in reports.get(key, {})]:
        warnings.append(f"{FILE} may be incomplete: what was captured of {', '.join(missing)} is not known")
    return {**json.loads(facts), "lost": lost}, warnings
