"""Hosts with the kernel's TCP: what they are set to, and what cannot be as in the simulator."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Collection
from functools import cache
from typing import Any

from weftline import quantities, scenarios
from weftline.lab import balancers, stamps
from weftline.lab.ports import BURST
from weftline.lab.resolved import ns, size
from weftline.scenario import Scenario

NIC_QUEUE = 4_000_000
"""Bytes that may wait at a host, whose queue has no limit in the simulator."""
MEASURED = ("queues", "goodput")
"""Of [measure], where hosts are the kernel's."""
APPLICATION = ("app_rate", "app_message", "app_read_rate")
"""Of [transport]: how fast applications write and read."""
CLOSED = ("closed-loop", "request-response")
"""Workloads whose flows wait for others, or have connections that outlive them."""
TAKEN = (
    *("kind", "controller", "mss", "initial_window", "rto_min", "receive_buffer", "ecn", "subflows", "plb"),
    # What is not alike in these has entries of its own.
    *("ack_delay", "rto_granularity", "join", "scheduler"),
)
"""Of [transport]: what hosts of the kernel follow."""
OF_KERNEL = {"rto_syn": "1s", "syn_retries": 6, "opportunistic": False, "penalise": False}
"""Of [transport]: what the kernel has, where the simulator's default is not that."""
OF_CONTROLLERS = {"dctcp": ("kind", "g", "initial_alpha")}
"""Of controllers: what those that a run registers follow."""
LEAST_RECEIVED, MOST_RECEIVED = 128 << 10, 32 << 20
"""Bytes that the receive buffer of a socket begins with at least, and up to which it grows."""


def receive_buffer(transport: dict[str, Any]) -> int:
    """Return with how many bytes receive buffers begin: the kernel counts more than payload in them."""
    return min(max(2 * size(transport.get("receive_buffer")), LEAST_RECEIVED), MOST_RECEIVED)


def route_settings(transport: dict[str, Any]) -> str:
    """Return what a route can tell the kernel's TCP, so that it has the scenario's values."""
    parts = []
    if isinstance(window := transport.get("initial_window"), int):
        parts.append(f"initcwnd {window}")
    minimum = ns(transport.get("rto_min"))
    if minimum is not None and minimum >= 1_000_000:
        parts.append(f"rto_min {round(minimum / 1e6)}ms")
    return " ".join(parts)


def problems(values: dict[str, Any]) -> list[str]:
    """Return what would be another load or another network with hosts of the kernel, each as a sentence."""
    transport, host = values.get("transport", {}), values.get("host", {})
    out = "leave it out, or use hosts of the engine (--hosts engine)"
    found = [
        f'transport.{key} = "{transport[key]}": applications at hosts of the kernel write and read as fast '
        f"as TCP lets them: {out}"
        for key in APPLICATION
        if transport.get(key, "auto") != "auto"
    ]
    if transport.get("plb", "none") != "none":
        found.append(
            f'transport.plb = "{transport["plb"]}": hosts of the kernel keep a flow on its path: {out}'
        )
    found += [
        f'workload.{number}.kind = "{one["kind"]}": hosts of the kernel play flows at the times of a '
        "simulated run, and here some start when others end: choose another, or hosts of the engine (--hosts "
        "engine)"
        for number, one in enumerate(values.get("workload", []))
        if one.get("kind") in CLOSED
    ]
    if quantities.parse_time_ns(host.get("packet_time", "0s")) > 0:
        found.append(f"host.packet_time: hosts of the kernel take the time that they take: {out}")
    if (policy := host.get("nic_policy", "hash")) != "hash":
        found.append(
            f'host.nic_policy = "{policy}": hosts of the kernel choose a NIC by the hash of a flow: set '
            '"hash", or use hosts of the engine (--hosts engine)'
        )
    if "queue" in host:
        found.append(f"host.queue: hosts of the kernel have that of their system: {out}")
    if host.get("resequencing", {}).get("enabled"):
        found.append(f"host.resequencing.enabled: hosts of the kernel hand packets on as they come: {out}")
    return found


def not_taken(values: dict[str, Any]) -> list[str]:
    """Return the settings of transports, other than defaults, that those of the kernel do not follow."""
    own = [
        (f"workload.{number}.transport", {**values["transport"], **one["transport"]})
        for number, one in enumerate(values.get("workload", []))
        if "controller" in one.get("transport", {})
    ]
    found = []
    for place, transport in [("transport", values["transport"]), *own]:
        usual = _defaults(transport["kind"], transport.get("controller", {}).get("kind", "cubic"))
        keys = {key for key in transport if key not in (*TAKEN, *APPLICATION)} if place == "transport" else ()
        found += [
            f"{place}.{key} = {json.dumps(transport[key])}"
            for key in keys
            if transport[key] != usual.get(key)
        ]
        controller = transport.get("controller", {})
        takes = OF_CONTROLLERS.get(controller.get("kind"), ())
        found += [
            f"{place}.controller.{key} = {json.dumps(value)}"
            for key, value in controller.items()
            if key not in takes and value != usual["controller"].get(key)
        ]
    if not found:
        return []
    return [f"the kernel's transport has settings of its own, and not these: {', '.join(sorted(found))}"]


@cache
def _defaults(kind: str, controller: str) -> dict[str, Any]:
    text = (
        f'transport = {{ kind = "{kind}", controller = {{ kind = "{controller}" }} }}\n'
        'topology = { kind = "star", hosts = 2 }\n'
        'workload = [{ kind = "flows", flows = [{ src = 0, dst = 1, size = "1KB" }] }]\n'
    )
    source = scenarios.Source(text=text, file="defaults", base_dir=".")
    return Scenario.of(source, [], seed=None).values["transport"] | OF_KERNEL


def differs(values: dict[str, Any], *, engine: bool) -> list[str]:
    """Return what the two engines cannot have alike, for the summary."""
    transport = values["transport"]
    found = [
        f"timers of the kernel's TCP have a grain of {1000 / _hz():g} ms (HZ {_hz()}); "
        f"the simulator's {transport.get('rto_granularity', 'none')}",
        "which flow takes which of several equal paths: the hashes differ",
        "buffers of sockets: the kernel counts its own overhead and grows them to 32 MiB; to send they begin "
        "with 16 KiB, to receive with twice the scenario's",
        "times of links: a process gives them, as late as the lateness histogram says",
        *([] if engine else [BURST]),
        "the ideal completion time is the simulator's",
    ]
    if stamps.wanted(values):
        found += stamps.differs(values)
    found += balancers.differs(values, engine=engine)
    if transport["kind"] == "mptcp":
        found.append(
            "packets, retransmissions and timeouts of MPTCP's flows: sums over the subflows that a "
            "connection still has when it ends"
        )
        found.append(
            "MPTCP: the kernel continues with plain TCP where the first packets with its options are lost "
            "(RFC 8684, section 3.7); the simulator's connections keep their subflows"
        )
        if (join := transport.get("join", "confirmed")) != "confirmed":
            found.append(
                "joins of MPTCP: hosts of the kernel open subflows from further addresses of their own, "
                f'once data are acknowledged ("confirmed"); simulated is "{join}"'
            )
        if (scheduler := transport.get("scheduler", "min-rtt")) != "linux":
            found.append(f'scheduler of MPTCP: the kernel has its own ("linux"); simulated is "{scheduler}"')
    found += not_measured(values, MEASURED)
    if "goodput" in values.get("measure", {}):
        found.append(
            "goodput: in the lab of bytes that were acknowledged, of every flow; what comes between two "
            "looks counts as if it came evenly"
        )
    found += not_taken(values)
    if "ack_delay" in transport:
        found.append(
            "delayed acknowledgements: the kernel's 40 ms to 200 ms, and quick ones by its own rules; the "
            f"simulator's {transport['ack_delay']}, after {transport.get('quick_acks', 0)} quick ones"
        )
    found.append(
        f"queues of hosts: {NIC_QUEUE} bytes, and the kernel holds back what waits there "
        "(small queues of TCP)"
    )
    minimum = ns(transport.get("rto_min"))
    if minimum is not None and minimum < 1_000_000:
        found.append(f"rto_min: the kernel has at least 1 ms; the simulator {transport['rto_min']}")
    return found


def not_measured(values: dict[str, Any], measured: Collection[str]) -> list[str]:
    """Return what of [measure] the lab leaves out, or does for more ports; `measured`: what it does."""
    asked = {key: value for key, value in values.get("measure", {}).items() if value not in (None, False, "")}
    found = []
    extra = sorted(key for key in asked if key not in (*measured, "ideal") and not key.startswith("pcap"))
    if extra:
        found.append(f"measure: the lab measures {' and '.join(measured)}, not {', '.join(extra)}")
    if isinstance(queues := asked.get("queues"), dict) and queues.get("ports", "*") != "*":
        found.append("measure.queues: the lab looks at every port")
    return found


def _hz() -> int:
    """Return the kernel's ticks a second; 250 where its configuration cannot be read."""
    try:
        with gzip.open("/proc/config.gz", "rt") as config:
            found = re.search(r"^CONFIG_HZ=(\d+)", config.read(), re.MULTILINE)
    except OSError:
        found = None
    return int(found[1]) if found else 250
