"""Hosts of the engine in the lab: the simulator's transports send real packets through the kernel's switches.

One process (`host_process.py`) runs all hosts of a scenario. Their links lead from it to the switches: rate,
queue and delay of a host's side are the simulator's, those of the switch's port the kernel's.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Literal

from weftline import _native
from weftline.lab.lateness import Histogram
from weftline.lab.ports import BURST, ETHERNET_BYTES

if TYPE_CHECKING:
    from weftline.lab.plan import Plan
    from weftline.lab.queues import Counters
    from weftline.scenario import Scenario

Hosts = Literal["auto", "kernel", "engine"]
MTU = 1600
"""Bytes of the longest packet: simulated ones may count Ethernet's header, gap and preamble."""
SENT = slice(8, 10)
"""Bytes and packets that an interface sent, in its line of /proc/net/dev."""
KERNEL = ("tcp", "mptcp")
"""Transports that a kernel has."""


def wanted(values: dict[str, Any], asked: Hosts) -> bool:
    """Return whether hosts are the engine's; "auto": where the kernel has no such transport."""
    if asked != "auto":
        return asked == "engine"
    own = [values.get("transport", {}), *(one.get("transport", {}) for one in values.get("workload", []))]
    kinds = [one.get("kind", values.get("transport", {}).get("kind")) for one in own]
    return any(kind not in KERNEL for kind in kinds)


def task(scenario: Scenario, made: Plan, addresses: dict[tuple[str, str], str]) -> str:
    """Return the task of the process; `addresses`: the MAC address of each switch's interface."""
    number = {node.name: place for place, node in enumerate(made.nodes)}
    links = [
        {
            "interface": interface(link.number),
            "node": number[switch.node],
            "local": int(switch.interface[1:]),
            "from": mac_of_host(link.number),
            "to": addresses.get((switch.node, switch.interface), mac_of_host(0)),
            **({"delayed": True} if made.engine_ports else switch.port.times),
        }
        for link, switch in made.host_links
    ]
    return json.dumps(
        {
            "scenario": scenario.resolved,
            "base": os.fspath(scenario.source.base_dir),
            "addresses": [node.address for node in made.nodes if node.is_host],
            "links": links,
        }
    )


def check(scenario: Scenario, made: Plan) -> None:
    """Find out whether the hosts can run a scenario.

    Raises
    ------
    InputError
        If not, with the reason.
    """
    _native.check_hosts(task(scenario, made, {}))


def interface(link: int) -> str:
    """Return the interface by which the process sends on a link of a host."""
    return f"h{link}"


def mac_of_host(link: int) -> str:
    """Return a host's address on its link; the interface has another one, so that it takes nothing itself."""
    return f"06:00:00:00:{link >> 8 & 255:02x}:{link & 255:02x}"


def differs(*, engine_ports: bool) -> list[str]:
    """Return what engine and lab do not have alike with these hosts; `engine_ports`: so are the ports."""
    if engine_ports:
        return [
            "hosts are the engine's, and so are ports: lengths and classes of packets are the simulated ones",
            "hosts of the engine write no series",
            "bytes_on_wire counts 76 bytes or more for each packet on a host's own link",
            "times of links: processes give them, as late as the lateness histogram says",
        ]
    return [
        "hosts are the engine's: packets are UDP with the simulator's fields, 76 bytes or more of IPv4, so "
        "that acknowledgements and control packets are longer than simulated",
        "priorities: three bands at most, by the class in which a packet leaves its host, and only where the "
        "switch's queue has a limit in packets",
        "a port of the kernel counts 14 bytes of Ethernet more than the simulator, and so does a link of a "
        "host in bytes_on_wire",
        "hosts of the engine write no series",
        "times of links: a process gives them, as late as the lateness histogram says",
        BURST,
    ]


def flows(report: dict[str, Any], zero_ns: int) -> dict[int, dict[str, Any]]:
    """Return the flows that ended, as the agents of other hosts report theirs."""
    return {
        one["flow"]: {
            **one,
            "start_ns": zero_ns + round(one["start_ns"]),
            "finish_ns": zero_ns + round(one["finish_ns"]) if one["finish_ns"] is not None else None,
        }
        for one in report.get("flows", [])
    }


def counters(made: Plan, devices: str) -> dict[str, Counters]:
    """Return what hosts sent, by port; `devices`: /proc/net/dev of the namespace in which their links begin.

    A port of the kernel counts Ethernet's header, so it counts here too; ports of the engine do not.
    """
    from weftline.lab.queues import Counters

    numbers = {}
    for line in devices.splitlines()[2:]:
        name, _, counts = line.partition(":")
        numbers[name.strip()] = [int(one) for one in counts.split()]
    header = ETHERNET_BYTES if made.engine_ports else 0
    found = {}
    for link, switch in made.host_links:
        sent_bytes, sent_packets = numbers[interface(link.number)][SENT]
        port = link.a if switch is link.b else link.b
        found[port.entity] = Counters(
            sent_bytes=sent_bytes - header * sent_packets,
            sent_packets=sent_packets,
            waiting_bytes=0,
            waiting_packets=0,
            drops=0,
        )
    return found


def added(relay: dict[str, Any], report: dict[str, Any]) -> dict[str, Any]:
    """Return what the process of links has counted, with frames of the hosts' links."""
    both = {**relay}
    for key in ("frames", "missed", "refused"):
        both[key] = (relay.get(key) or 0) + (report.get("received" if key == "frames" else key) or 0)
    late = [Histogram.of(one.get("late") or []) for one in (relay, report)]
    both["late"] = (late[0] + late[1]).counts
    return both


def account(report: dict[str, Any]) -> dict[str, Any]:
    """Return what the process counted, for the summary.

    `overdue` is of packets that came for a time that had passed.
    """
    keys = ("sent", "received", "foreign", "refused", "missed", "on_links")
    overdue = Histogram.of(report.get("overdue", []))
    return {**{key: report.get(key) for key in keys}, "overdue": overdue.as_json()}
