"""Links that pass by a process of the engine (`port_process.py`): their times, and ports of switches.

The kernel stamps every frame as it arrives, so a frame leaves at its time after that however late it was
read: length / rate after the frame before it, and one delay. Where the kernel has rates and queues, those are
of the interface that the frame came from. Where the ports of switches are the engine's, every link passes by:
discipline, rate, marks and delay are the simulator's, and hosts keep the kernel's ports.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from weftline import _native
from weftline.lab import ecn_switches
from weftline.lab.resolved import size

if TYPE_CHECKING:
    from weftline.lab.plan import End, Plan
    from weftline.lab.queues import Counters
    from weftline.scenario import Scenario

Ports = Literal["auto", "kernel", "engine"]


def wanted(values: dict[str, Any], asked: Ports, *, hosts: bool = False) -> bool:
    """Return whether the ports of switches are the engine's.

    "auto": where the kernel has no such queue, and where queues mark, unless `hosts` are the engine's.
    """
    if asked != "auto":
        return asked == "engine"
    switch = values.get("switch", {})
    queue = switch.get("queue", {})
    marks = ecn_switches.wanted(values) and not hosts
    return bool(queue.get("kind") != "fifo" or beyond_kernel(queue) or switch.get("port") or marks)


def beyond_kernel(queue: dict[str, Any]) -> list[str]:
    """Return what of a FIFO no port of the kernel has, each as a sentence."""
    found = []
    if size(queue.get("limit")) and queue.get("packets"):
        found.append(
            f"switch.queue: ports of the kernel have one limit, and here are two (packets = "
            f'{queue["packets"]}, limit = "{queue["limit"]}"): leave one out, or leave --ports out'
        )
    if queue.get("nic_packets"):
        found.append(
            f"switch.queue.nic_packets = {queue['nic_packets']}: a port of the kernel has one queue "
            "and not two: leave it out, or leave --ports out"
        )
    return found


def takes_marks(values: dict[str, Any]) -> bool:
    """Return whether the kernel's TCP has to send packets that can be marked."""
    transport = values.get("transport", {})
    controller = transport.get("controller", {}).get("kind")
    return transport.get("ecn") in ("classic", "exact") or controller == "dctcp"


def task(scenario: Scenario, made: Plan) -> str:
    """Return the checked task of the process.

    Raises
    ------
    InputError
        If a discipline cannot stand between real interfaces.
    """
    number = {node.name: place for place, node in enumerate(made.nodes)}
    directions = [
        {
            **one,
            "node": number[end.node],
            "local": int(end.interface[1:]),
            **({} if end.port.is_switch else _of_host(made, end, ns)),
        }
        for one, end, ns in _directions(made)
    ]
    hosts = [node for node in made.nodes if node.is_host]
    addresses = {address: at for at, node in enumerate(hosts) for address in (node.address, *node.aliases)}
    text = json.dumps(
        {
            "scenario": scenario.resolved,
            "base": os.fspath(scenario.source.base_dir),
            "directions": directions,
            "hosts": addresses,
            "own_hosts": made.engine_hosts,
            "sample_every_ns": made.queue_every_ns,
        }
    )
    _native.check_ports(text)
    return text


def delays(made: Plan) -> str:
    """Return the task of the process where it gives links their times alone."""
    directions = [{**one, **end.port.times, "delay_ns": ns} for one, end, ns in _directions(made)]
    return json.dumps({"directions": directions})


def _of_host(made: Plan, end: End, delay_ns: int) -> dict[str, int]:
    """Return the times of a link from a host; what hosts of the engine send has had them already."""
    return {"delay_ns": 0} if made.engine_hosts else {**end.port.times, "delay_ns": delay_ns}


def _directions(made: Plan) -> Iterator[tuple[dict[str, str], End, int]]:
    """Yield each direction of the links that pass by: its interfaces, the end that sends, the delay."""
    for link in made.wires:
        for source, target, end in (("a", "b", link.a), ("b", "a", link.b)):
            names = {"from": f"w{link.number}{source}", "to": f"w{link.number}{target}"}
            yield {**names, "entity": end.entity}, end, link.delay_ns


def differs() -> list[str]:
    """Return what engine and lab do not have alike with these ports."""
    return [
        "ports of switches are the engine's; those of hosts the kernel's (tbf), which give their links up to "
        "two packets at once",
        "flows are numbered in the order in which ports see them: their hashes are not the simulated run's",
    ]


def counters(report: dict[str, Any]) -> dict[str, Counters]:
    """Return the counters of the switches' ports."""
    from weftline.lab.queues import Counters

    return {
        entity: Counters(
            sent_bytes=one["bytes_sent"],
            sent_packets=one["sent"],
            waiting_bytes=one["bytes_queued"],
            waiting_packets=one["queued"],
            drops=one["dropped"],
        )
        for entity, one in report.get("ports", {}).items()
        if "sent" in one
    }


def queue_rows(report: dict[str, Any], zero_ns: int) -> list[tuple[int, str, int]]:
    """Return the series of the queues from time zero."""
    names = report.get("entities", [])
    return [
        (at - zero_ns, names[place], size) for at, place, size in report.get("samples", []) if at >= zero_ns
    ]


def account(report: dict[str, Any]) -> dict[str, Any]:
    """Return the counters of each port, and whether all frames are accounted for, for the summary."""
    keys = ("matched", "not_conserved")
    ports = {entity: one for entity, one in report.get("ports", {}).items() if "sent" in one}
    return {
        **{key: report.get(key) for key in keys},
        "conserved": not report.get("not_conserved"),
        "ports": ports,
    }
