"""HULA on real packets: what switches load, and the processes that send the first probe of each round."""

from __future__ import annotations

import random
import socket
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftline import _native
from weftline.lab import programs

if TYPE_CHECKING:
    from weftline.lab.network import Network
    from weftline.scenario import Scenario

KEY = 'switch.balancer.kind = "hula"'
COUNTS = "hula_counts"
PLACE = 2
"""Among the filters of an interface: after PINT's."""
MAC_BYTES = 6


def objects() -> list[Path]:
    """Return where the programs may lie."""
    return programs.objects("hula.bpf.o")


def problems() -> list[str]:
    """Return what of it cannot be had on this machine."""
    return programs.problems(KEY, objects())


def probes_first(values: dict[str, Any]) -> bool:
    """Return whether probes go before all others in both engines, at ports of the kernel."""
    switch = values["switch"]
    return switch["balancer"].get("probe_class", 0) == 0 and bool(switch["queue"].get("packets"))


def differs(values: dict[str, Any], *, engine: bool) -> list[str]:
    """Return what of it the two engines cannot have alike."""
    found = [
        "hula: a packet counts to a link's load when it enters the port's queue; in the simulator when its "
        "transmission begins",
        "hula: a process at each ToR sends its probes, as late as lab.balancer says; times of probes and "
        "flowlets are the machine's",
        "hula: a next hop whose link is down is left once its probes are missing; routes do not change",
    ]
    if not engine and not probes_first(values):
        found.append(
            "hula: probes wait in the data's queue and are dropped with it, since it has a limit in bytes: "
            'queue = { kind = "fifo", packets = 100 } lets them go first'
        )
    return found


@dataclass(frozen=True)
class Hula:
    """The switches of a scenario; relatives of HULA have another object, another program and more maps."""

    switches: list[Any]
    tor_of: list[int]
    interval_ns: int
    probes_first: bool
    seed: int
    extra_bytes: int = 0
    """By which packets between switches may be longer."""
    object: str = "hula.bpf.o"
    program: str = "hula_switch"
    counters: list[str] = field(default_factory=_native.hula_counts)
    more: dict[int, list[tuple[str, bytes, bytes]]] = field(default_factory=dict)
    """Further entries of maps, by switch."""
    ring: tuple[str, int] | None = None
    learner: str | None = None

    def loads(self, network: Network) -> list[programs.Load]:
        """Return what every switch loads."""
        nodes = network.plan.nodes
        hosts = [[node.address or "", *node.aliases] for node in nodes if node.is_host]
        names = {node.name for node in nodes if node.is_host}
        found = []
        for switch in self.switches:
            node = nodes[switch.node]
            maps = [("hula_config", key(0), switch.config)]
            maps += [("hula_tors", key(tor), entry) for tor, entry in enumerate(switch.tors)]
            maps += [
                ("hula_hosts", _prefix(address), key(tor + 1))
                for addresses, tor in zip(hosts, self.tor_of, strict=True)
                for address in addresses
            ]
            maps += self.more.get(switch.node, [])
            filters = []
            for end, index in programs.interfaces(network, node):
                port = programs.port_number(end)
                macs = _addresses(network, node.name, end.interface, end.peer)
                entry = struct.pack("=IIQQQQ12sI", 0, index, switch.whole[port], 0, 0, 0, macs, 0)
                maps += [("hula_ports", key(port), entry), ("hula_interfaces", key(index), key(port + 1))]
                filters.append((end.interface, "ingress", PLACE, self.program))
                if end.peer[0] not in names:
                    filters.append((end.interface, "egress", PLACE, "hula_departure"))
            load = programs.Load(
                switch=switch.node,
                namespace=network.name(node.name),
                file=programs.objects(self.object),
                maps=maps,
                filters=filters,
                counts=(COUNTS, self.counters),
                ring=self.ring,
                learner=self.learner,
            )
            found.append(load)
        return found

    def tasks(self, network: Network) -> dict[str, tuple[str, dict[str, Any]]]:
        """Return the processes that send probes, by ToR."""
        found = {}
        for switch in (switch for switch in self.switches if switch.probe):
            name = network.plan.nodes[switch.node].name
            ends = [end for end in network.plan.ends() if end.node == name]
            frames = []
            for end in (end for end in ends if switch.up >> programs.port_number(end) & 1):
                macs = _addresses(network, name, end.interface, end.peer)
                frames.append((end.interface, (macs + switch.probe[2 * MAC_BYTES :]).hex()))
            begins = random.Random(f"{self.seed} {name}").randrange(self.interval_ns)
            task = {"frames": frames, "interval_ns": self.interval_ns, "begins_ns": begins}
            found[name] = ("prober.py", task)
        return found

    def facts(self, counted: programs.Programs, ended: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """Return what goes into the summary."""
        nodes = counted.network.plan.nodes
        by_switch = {nodes[switch].name: counts for switch, counts in counted.counts.get(COUNTS, {}).items()}
        return {"programs": counted.total(COUNTS), "by_switch": by_switch, "probers": ended}


def asked(scenario: Scenario) -> Hula:
    """Return what a scenario without problems needs."""
    switches, tor_of, interval_ns = _native.hula_switches(scenario.loaded)
    seed = int(scenario.values.get("seed", 1))
    return Hula(switches, tor_of, interval_ns, probes_first(scenario.values), seed)


def key(number: int) -> bytes:
    """Return a number as the key of a map."""
    return struct.pack("=I", number)


def _prefix(address: str) -> bytes:
    return struct.pack("=I", 128) + bytes(10) + b"\xff\xff" + socket.inet_aton(address)


def _addresses(network: Network, node: str, interface: str, peer: tuple[str, str]) -> bytes:
    from weftline.lab.network import mac

    there, here = mac(network.name(peer[0]), peer[1]), mac(network.name(node), interface)
    return bytes.fromhex((there + here).replace(":", ""))
