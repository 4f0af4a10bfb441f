"""The tc programs of the switches of a network: what each switch loads, and the process that has them.

Who wants programs in switches (`stamps`, a load balancer) states what each switch is to load. `Programs`
starts one process for all of them (`switches.py`), keeps the records that they report and returns their
counters.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftline.errors import RunFailed

if TYPE_CHECKING:
    from weftline.lab.network import Network
    from weftline.lab.plan import End, Node

READY_S = 120.0
INTERFACES = 1024
"""Programs keep state of interfaces with a number below this."""


def objects(name: str) -> list[Path]:
    """Return where an object may lie: where WEFTLINE_BPF says, else where `make lab-objects` puts it."""
    if given := os.environ.get("WEFTLINE_BPF"):
        return [Path(given) / name]
    checkout = Path(__file__).parents[3] / "target"
    targets = [Path(os.environ.get("CARGO_TARGET_DIR") or checkout), checkout]
    return [target / "bpf" / name for target in targets]


def bpftool() -> str | None:
    """Return the program that loads objects, if there is one."""
    return shutil.which("bpftool") or shutil.which("bpftool", path="/usr/sbin:/sbin:/usr/local/sbin")


def problems(key: str, lie: list[Path]) -> list[str]:
    """Return what is missing on this machine for a key of a scenario that needs an object."""
    found = []
    if not bpftool():
        found.append(f"{key}: bpftool loads the programs: apt install bpftool")
    if not any(path.exists() for path in lie):
        found.append(
            f"{key}: no {lie[0]}: `make lab-objects` in the sources makes it (needs clang and libbpf-dev), "
            "WEFTLINE_BPF names another folder"
        )
    return found


def interfaces(network: Network, node: Node) -> Iterator[tuple[End, int]]:
    """Yield the ends of a switch, each with the number of its interface in Linux."""
    from weftline.lab.network import inside

    with inside(network.name(node.name)):
        for end in (end for end in network.plan.ends() if end.node == node.name):
            index = socket.if_nametoindex(end.interface)
            if index >= INTERFACES:
                raise RunFailed(
                    f"lab: interface {index} of {node.name}: the programs keep {INTERFACES}; use fewer links"
                )
            yield end, index


def port_number(end: End) -> int:
    """Return the number that a port has in the simulator."""
    return int(end.entity.rpartition("p")[2])


@dataclass
class Load:
    """What one switch loads of one object."""

    switch: int
    namespace: str
    file: list[Path]
    """Places of the object, of which the first that exists is taken."""
    maps: list[tuple[str, bytes, bytes]]
    """Map, key and value of every entry that is set before the programs run."""
    filters: list[tuple[str, str, int, str]]
    """Interface, "ingress" or "egress", place among the filters there, program."""
    counts: tuple[str, list[str]]
    """The map of the counters, and their names in its order."""
    ring: tuple[str, int] | None = None
    """The ring buffer that is read, and bytes of its records."""
    learner: str | None = None
    """A module next to `switches.py` with a `Learner` that takes the records; None: they are kept."""


@dataclass
class Programs:
    """The programs of a network while they run."""

    network: Network
    loads: list[Load]
    process: subprocess.Popen[str] | None = None
    counts: dict[str, dict[int, dict[str, int]]] = field(default_factory=dict)
    """By map of counters and switch. Empty: they could not be read."""
    records: bytes = b""
    """Of all ring buffers, each after the number of its switch."""

    def total(self, counters: str) -> dict[str, int]:
        """Return the sums over all switches of the counters of a map."""
        found: dict[str, int] = {}
        for counts in self.counts.get(counters, {}).values():
            for name, count in counts.items():
                found[name] = found.get(name, 0) + count
        return found

    def start(self) -> None:
        """Load and attach them; what they report is read from here on."""
        from weftline.lab.network import RECORDS, tool

        self._file = os.memfd_create("weftline-records")
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("switches.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            pass_fds=[self._file],
        )
        task = {
            # In the process's own view of the machine the objects lie over the records, which it needs not.
            "root": str(RECORDS),
            "tc": tool("tc"),
            "bpftool": bpftool(),
            "loads": [_as_task(load) for load in self.loads],
            "to": self._file,
        }
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        ready, _, _ = select.select([self.process.stdout], [], [], READY_S)
        line = self.process.stdout.readline().strip() if ready else ""
        if line != "ready":
            self.process.kill()
            raise RunFailed(f"lab: the programs of the switches were not loaded: {line or 'no word'}")

    def alive(self) -> bool:
        """Return whether the reader is at work."""
        return self.process is None or self.process.poll() is None

    def end(self) -> None:
        """Read what is left."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            out, _ = self.process.communicate(timeout=30)
            for counters, switch, counts in json.loads(out.strip().splitlines()[-1]):
                self.counts.setdefault(counters, {})[switch] = counts
        except (subprocess.TimeoutExpired, ValueError, IndexError):
            self.process.kill()
            self.process.wait()
        self.records = os.pread(self._file, os.fstat(self._file).st_size, 0)
        os.close(self._file)


def _as_task(load: Load) -> dict[str, Any]:
    lies: Iterable[Path] = (path.resolve() for path in load.file if path.exists())
    return {
        "switch": load.switch,
        "namespace": load.namespace,
        "object": str(next(iter(lies))),
        "maps": [(name, key.hex(), value.hex()) for name, key, value in load.maps],
        "filters": load.filters,
        "counts": load.counts,
        "ring": load.ring,
        "learner": load.learner,
    }
