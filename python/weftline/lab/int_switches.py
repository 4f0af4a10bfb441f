"""INT on real packets: every switch writes its values into data, and hosts of the engine read them."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftline import _native
from weftline.lab import programs

if TYPE_CHECKING:
    from weftline.lab.network import Network

KEY = 'telemetry.kind = "int"'
COUNTS = "int_counts"
PLACE = 3
"""Among the filters of an interface: after PINT's and HULA's."""
HEADER_BYTES, HOP_BYTES = 24, 28
UNWRITTEN = ("transit_e", "transit_m", "malformed")
"""Counters of packets that a switch could not write into."""


def objects() -> list[Path]:
    """Return where the programs may lie."""
    return programs.objects("int.bpf.o")


def wanted(values: dict[str, Any]) -> bool:
    """Return whether a resolved scenario asks for INT."""
    return values.get("telemetry", {}).get("kind") == "int"


def problems(*, engine: bool, hosts: bool) -> list[str]:
    """Return what of it cannot be had on this machine."""
    found = []
    if not hosts:
        found.append(f"{KEY}: the kernel's transports do not read it: leave --hosts out or choose engine")
    # Ports of the engine write it themselves.
    return found if engine else found + programs.problems(KEY, objects())


def differs(values: dict[str, Any]) -> list[str]:
    """Return what of INT the two engines cannot have alike."""
    simulated = 8 * int(values["telemetry"].get("max_hops", 5)) + 2
    return [
        "INT: a switch writes queue, time and bytes sent when a packet is given to the port's queue; the "
        "simulator when the packet leaves it",
        f"INT: a data packet has {HEADER_BYTES} bytes of header and {HOP_BYTES} more from every switch; the "
        f"simulated one {simulated} from its sender on",
    ]


@dataclass(frozen=True)
class Writing:
    """The switches of a scenario with INT."""

    def loads(self, network: Network) -> list[programs.Load]:
        """Return what every switch of a network loads."""
        found = []
        for number, node in enumerate(network.plan.nodes):
            if node.is_host:
                continue
            maps, filters = [("int_config", bytes(4), _native.int_switch(number))], []
            for end, index in programs.interfaces(network, node):
                entry = _native.int_port(programs.port_number(end), end.port.rate_bps)
                maps.append(("int_ports", struct.pack("=I", index), entry))
                filters.append((end.interface, "egress", PLACE, "int_switch"))
            load = programs.Load(
                switch=number,
                namespace=network.name(node.name),
                file=objects(),
                maps=maps,
                filters=filters,
                counts=(COUNTS, _native.int_counts()),
            )
            found.append(load)
        return found

    def facts(self, counted: programs.Programs) -> dict[str, Any]:
        """Return what the switches' programs counted, for the summary."""
        return {"int": counted.total(COUNTS)}

    def warnings(self, counted: programs.Programs) -> list[str]:
        """Return what a reader has to know before trusting the run."""
        counts = counted.total(COUNTS)
        if not counts:
            return ["INT: what the switches' programs counted is not known"]
        without = sum(counts[name] for name in UNWRITTEN)
        text = "times a switch could not write into a packet: senders did not steer by these"
        return [f"INT: {without} {text}"] if without else []
