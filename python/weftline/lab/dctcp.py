"""DCTCP for kernels that were built without it: a congestion control as BPF programs (struct_ops).

A run registers a copy of the object under a name of its own, ``wl_ID_dctcp``, which sockets of every
namespace can choose. It is the machine's and not a namespace's, so it is removed by that name: at the end of
the run, and by `weftline lab clean`.
"""

from __future__ import annotations

import json
import math
import os
import re
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weftline.errors import RunFailed
from weftline.lab import programs

KIND = "dctcp"
KEY = f'transport.controller.kind = "{KIND}"'
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
ID = "000000"
"""What the names in the object have where those of a run have its id."""
MARK = struct.pack("=Q", 0x7463642D74666577)
"""After it the object has its settings (crates/dataplane/bpf/dctcp.h)."""
ONE = 1 << 20
"""One, in the units of alpha and g."""


def objects() -> list[Path]:
    """Return where the programs may lie."""
    return programs.objects("dctcp.bpf.o")


def problems(values: dict[str, Any], every: list[dict[str, Any]], *, multipath: bool) -> list[str]:
    """Return why a kernel without it cannot run the controllers of a scenario; `every`: all of this kind."""
    found = programs.problems(KEY, objects())
    if multipath:
        found.append(f'{KEY}: the programs are for transport.kind = "tcp"; choose "cubic" or "newreno"')
    if len({Control.of(one) for one in every}) > 1:
        found.append(f"{KEY}: one g and one initial_alpha hold for all flows of the lab: make them the same")
    return found


def differs() -> list[str]:
    """Return what of it the two engines cannot have alike."""
    return [
        "dctcp: the kernel lacks it, so programs of the run are its congestion control; shares of marks are "
        "of packets, in the simulator of bytes",
        "dctcp: windows grow by whole packets as under Reno; a loss halves the window, not what is in flight",
        'dctcp: after a loss the window is the threshold at once, as with recovery = "threshold" simulated',
    ]


def name(run: str) -> str:
    """Return the name under which a run registers it."""
    return f"wl_{run}_{KIND}"


@dataclass(frozen=True)
class Control:
    """What is registered."""

    g: float
    initial_alpha: float
    returned: int = 0
    """For tests, unless 0: what the kernel gets for a threshold, as if it had skipped the program."""

    @classmethod
    def of(cls, controller: dict[str, Any]) -> Control:
        """Return the one that a controller of a scenario asks for."""
        return cls(float(controller.get("g", 1 / 16)), float(controller.get("initial_alpha", 1)))

    def register(self, run: str) -> None:
        """Make it known to the kernel.

        Raises
        ------
        RunFailed
            With what the kernel's verifier or bpftool says.
        """
        from weftline.lab.network import run as command

        source = next(path for path in objects() if path.exists()).read_bytes()
        at = source.find(MARK) + len(MARK)
        if at < len(MARK):
            raise RunFailed("lab: dctcp.bpf.o has no place for g: `make lab-objects` makes it again")
        weights = (round(one * ONE) for one in (self.g, self.initial_alpha))
        settings = struct.pack("=III", *weights, self.returned)
        found = source[:at] + settings + source[at + len(settings) :]
        found = found.replace(f"wl_{ID}_".encode(), f"wl_{run}_".encode())
        # In memory: it is removed with this process, however that ends.
        with open(os.memfd_create("weftline-dctcp"), "wb") as copy:
            copy.write(found)
            copy.flush()
            copied = f"/proc/{os.getpid()}/fd/{copy.fileno()}"
            command(str(programs.bpftool()), "struct_ops", "register", copied)
        if run not in registered():
            raise RunFailed(f"lab: the kernel does not list {name(run)} after it was registered")


def registered() -> list[str]:
    """Return the runs under whose names something is registered."""
    try:
        return re.findall(rf"\bwl_([0-9a-f]{{6}})_{KIND}\b", AVAILABLE.read_text())
    except OSError:
        return []


def unregister(run: str) -> list[str]:
    """Remove what a run registered, and return its name; nothing if it registered none.

    Raises
    ------
    RunFailed
        If it is still there.
    """
    if run not in registered():
        return []
    by_name = ("struct_ops", "unregister", "name", name(run))
    if tool := programs.bpftool():
        subprocess.run([tool, *by_name], capture_output=True, start_new_session=True)
    if run in registered():
        raise RunFailed(f"lab: could not remove {name(run)}: `bpftool {' '.join(by_name)}`")
    return [name(run)]


@dataclass(frozen=True)
class Window:
    """A window of data of some connection: packets delivered, those with an echo, alpha before and after."""

    delivered: int
    marked: int
    before: float
    after: float


def windows(run: str) -> tuple[list[Window], int]:
    """Return the windows of data that the programs of a run have written down, and how many windows they had
    to set again because the kernel had larger ones than they set."""
    command = [str(programs.bpftool()), "-j", "map", "dump", "name", f"wl_{run}_alpha"]
    done = subprocess.run(command, capture_output=True, text=True, start_new_session=True)
    try:
        entries = [one["formatted"] for one in json.loads(done.stdout)]
    except (ValueError, KeyError, TypeError):
        return [], 0
    values = {one["key"]: one["values"] for one in entries}
    return list(_windows(values)), sum(core["value"]["marked"] for core in values[0])


def _windows(entries: dict[int, list[dict[str, Any]]]) -> Iterator[Window]:
    for core in range(len(entries[0])):
        for number in range(1, min(entries[0][core]["value"]["delivered"], len(entries) - 1) + 1):
            one = entries[number][core]["value"]
            before, after = one["before"] / ONE, one["after"] / ONE
            yield Window(one["delivered"], one["marked"], before, after)


def facts(control: Control, found: list[Window], mended: int = 0) -> dict[str, Any]:
    """Return what goes into the summary of a run."""
    changed = [one for one in found if one.delivered]
    law = [
        abs(one.after - ((1 - control.g) * one.before + control.g * one.marked / one.delivered))
        for one in changed
    ]
    return {
        "g": control.g,
        "initial_alpha": control.initial_alpha,
        "windows": len(found),
        "with_marks": sum(one.marked > 0 for one in found),
        "mean_alpha": math.fsum(one.after for one in found) / len(found) if found else None,
        # Of alpha and its law in numbers with a point: rounding.
        "furthest_from_law": max(law, default=None),
        "windows_mended": mended,
    }
