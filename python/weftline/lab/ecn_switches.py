"""ECN at ports of the kernel: a program marks packets by the queue that they find there."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftline import _native
from weftline.lab import programs

if TYPE_CHECKING:
    from weftline.lab.network import Network
    from weftline.scenario import Scenario

KEY = "switch.ecn"
COUNTS = "ecn_counts"
PLACE = 4
"""Among the filters of an interface: the last."""


def objects() -> list[Path]:
    """Return where the program may lie."""
    return programs.objects("ecn.bpf.o")


def wanted(values: dict[str, Any]) -> bool:
    """Return whether the switches of a resolved scenario mark packets."""
    ecn = values.get("switch", {}).get("ecn", {})
    # A list of thresholds by rate is one that marks.
    return isinstance(ecn, list) or bool(ecn.get("enabled"))


def problems() -> list[str]:
    """Return what of it cannot be had on this machine."""
    return programs.problems(KEY, objects())


def differs(values: dict[str, Any]) -> list[str]:
    """Return what of it the two engines cannot have alike."""
    ecn = values["switch"]["ecn"]
    each = ecn if isinstance(ecn, list) else [ecn]
    found = ["ECN: one queue of a port counts, with 14 bytes of Ethernet for each packet; other coins fall"]
    if any(one.get("at") != "arrival" for one in each):
        found.append(
            "ECN: a packet is marked by the queue that it finds; in the simulator by that which it leaves "
            '(at = "arrival" has both alike)'
        )
    return found


@dataclass(frozen=True)
class Marking:
    """What the ports of a scenario mark, by their rate."""

    scenario: Scenario

    def loads(self, network: Network) -> list[programs.Load]:
        """Return what every switch of a network loads."""
        found = []
        for number, node in enumerate(network.plan.nodes):
            if node.is_host:
                continue
            ends = list(programs.interfaces(network, node))
            entries = _native.ecn_ports(self.scenario.loaded, [end.port.rate_bps for end, _ in ends])
            pairs = zip(ends, entries, strict=True)
            maps = [("ecn_ports", struct.pack("=I", index), entry) for (_, index), entry in pairs if entry]
            load = programs.Load(
                switch=number,
                namespace=network.name(node.name),
                file=objects(),
                maps=maps,
                filters=[(end.interface, "egress", PLACE, "ecn_mark") for end, _ in ends],
                counts=(COUNTS, _native.ecn_counts()),
            )
            found.append(load)
        return found

    def facts(self, counted: programs.Programs) -> dict[str, Any]:
        """Return what the switches' programs counted, for the summary."""
        return {"ecn": counted.total(COUNTS)}

    def warnings(self, counted: programs.Programs) -> list[str]:
        """Return what a reader has to know before trusting the run."""
        known = counted.total(COUNTS)
        return [] if known else ["ECN: what the switches' programs counted is not known"]
