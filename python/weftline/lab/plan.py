"""A scenario as the lab sees it: nodes, links, routes and flows; or everything for which it cannot be run.

Nothing here touches the machine. The simulated run gives the flows, so that both engines carry the
same list, and with each its ideal completion time.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from weftline.errors import InputError
from weftline.lab import (
    balancers,
    captured,
    dctcp,
    ecn_switches,
    engine_hosts,
    engine_ports,
    int_switches,
    internet,
    ioam,
    kernel_hosts,
    stamps,
)
from weftline.lab.ports import BANDS, ETHERNET_BYTES, Port
from weftline.lab.resolved import ns, size
from weftline.scenario import Scenario

CONGESTION = {"cubic": "cubic", "newreno": "reno", "dctcp": "dctcp", "bbr": "bbr"}
"""Window controllers that a kernel may have, by the name that it gives them."""
QUEUES = ("fifo",)
MTU = 1500
PORT = 5001
"""Where hosts listen; where they take what echoes marks in its own way, one above."""
ECHOING = (dctcp.KIND,)
"""Congestion controls of which the receiver's echo of marks is a part."""
MOST_NODES = 200
WIRES = "wires"
"""The namespace through which links with a delay pass."""
LONGEST_NAME = 100
"""Characters of a node's name that its namespace has."""
MOST_SUBFLOWS = 8
TCP_HEADER = 52
"""IPv4 and TCP with time stamps, what an mss leaves of a packet."""
MAPPING = 24
"""What MPTCP adds to it: where in the stream the data belong."""


@dataclass(frozen=True, kw_only=True)
class End:
    """One end of a link: an interface and its port."""

    node: str
    interface: str
    entity: str
    """What the simulator calls the port."""
    port: Port
    peer: tuple[str, str]
    peer_address: str


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link; with a delay it is a wire, which the relay serves."""

    number: int
    a: End
    b: End
    delay_ns: int
    mtu: int


@dataclass(kw_only=True)
class Node:
    """A host or a switch."""

    name: str
    is_host: bool
    address: str | None
    aliases: list[str] = field(default_factory=list)
    """Further addresses, one for each further subflow."""
    routes: dict[str, list[End]] = field(default_factory=dict)


@dataclass(kw_only=True)
class Plan:
    """All that is built and run."""

    name: str
    nodes: list[Node]
    links: list[Link]
    flows: list[dict[str, Any]]
    multipath: bool
    route_settings: str
    receive_buffer: int
    """What that of a socket begins with: twice the scenario's, since the kernel counts more than payload."""
    queue_every_ns: int | None
    goodput_every_ns: int | None
    """How often the acknowledged bytes of flows are looked at."""
    until_ns: int | None
    differs: list[str]
    stamping: stamps.Stamping | None = None
    balancing: balancers.Balancing | None = None
    at_ports: list[int_switches.Writing | ecn_switches.Marking] = field(default_factory=list)
    """What else acts on packets that are given to a switch's port."""
    engine_ports: bool = False
    """The ports of switches are the engine's, and every link passes by its process."""
    port_task: str = ""
    """What the process does that links pass by."""
    takes_marks: bool = False
    engine_hosts: bool = False
    """Hosts are the engine's: they have no namespaces, and their process gives their links rate and delay."""
    dctcp: dctcp.Control | None = None
    """What a run registers, since the kernel lacks it."""
    ip: internet.Internet = internet.IPV4
    captured: captured.Links | None = None
    """What `measure.pcap` asks for."""
    watched: list[str] = field(default_factory=list)
    """Switches at which the headers of arriving packets are kept."""
    ioam_switches: int = 0
    """For how many switches an IOAM trace has room; 0: packets carry none."""

    @property
    def every_core(self) -> bool:
        """Return whether every core receives: not where frames come from a process, with digests in labels.

        To choose the core, Linux then hashes the label, and takes that hash for the next hop too, whatever
        the policy of hashing. A frame that passes no process keeps the hash of the socket that sent it.
        """
        return self.ip.version == 4 or self.stamping is None or not self.wires

    def echoes(self, congestion: str) -> bool:
        """Return whether receivers need this congestion control too."""
        return congestion in ECHOING and not self.multipath

    def listens(self, congestion: str) -> int:
        """Return the port at which receivers of such flows listen."""
        return PORT + self.echoes(congestion)

    def settings(self, node: Node) -> tuple[str, ...]:
        """Return what the namespace of a node is set to, beyond what all are."""
        marks = ("net.ipv4.tcp_ecn=1",) if self.takes_marks else ()
        traced = () if node.is_host or not self.ioam_switches else ioam.settings(self.nodes.index(node))
        buffer = f"net.ipv4.tcp_rmem=4096 {self.receive_buffer} {kernel_hosts.MOST_RECEIVED}"
        return (*self.ip.settings, buffer, *marks, *traced)

    @cached_property
    def host_links(self) -> list[tuple[Link, End]]:
        """Links of the engine's hosts, each with its end at the switch."""
        if not self.engine_hosts:
            return []
        return [
            (link, end)
            for link in self.links
            for end, other in ((link.a, link.b), (link.b, link.a))
            if not other.port.is_switch
        ]

    @cached_property
    def _others(self) -> list[Link]:
        own = {link.number for link, _ in self.host_links}
        return [link for link in self.links if link.number not in own]

    @cached_property
    def wires(self) -> list[Link]:
        """Links that pass by the process of delays: those with one, or all where that has the ports."""
        return self.links if self.engine_ports else [link for link in self._others if link.delay_ns]

    @cached_property
    def direct(self) -> list[Link]:
        """Links between namespaces that do not."""
        return [] if self.engine_ports else [link for link in self._others if not link.delay_ns]

    def untimed(self) -> list[str]:
        """Return that packets take no time on links without a delay, if there are any."""
        if not self.direct:
            return []
        slowest = min(end.port.rate_bps for link in self.direct for end in (link.a, link.b))
        longest = max(link.mtu for link in self.direct) + ETHERNET_BYTES
        return [
            f"{len(self.direct)} links without a delay pass by no process: after a pause a packet is at "
            f"their far end at once, not after length / rate (up to {8e3 * longest / slowest:.3g} ms a link)"
        ]

    def limits_of_bands(self) -> list[str]:
        """Return that a limit in packets is that of each band, if ports of the kernel have bands."""
        packets = max((end.port.queue_packets for end in self.ends() if end.port.bands), default=0)
        if self.engine_ports or not packets:
            return []
        return [
            f"switch.queue.packets = {packets}: ports of the kernel with priorities (pfifo_fast) have this "
            f"limit for each of {BANDS} bands, so up to {BANDS * packets} packets wait where the simulator's "
            f"port holds {packets}; ports of the engine (--ports engine) have one limit for all"
        ]

    @property
    def own_nodes(self) -> list[Node]:
        """Nodes that have a namespace."""
        return [node for node in self.nodes if not (node.is_host and self.engine_hosts)]

    def ends(self) -> Iterator[End]:
        """Yield every end of a link that is in the namespace of a node."""
        for link in self.links:
            for end in (link.a, link.b):
                if end.port.is_switch or not self.engine_hosts:
                    yield end

    @property
    def shortest_delay_ns(self) -> int | None:
        """The shortest delay of a link that has one."""
        return min((link.delay_ns for link in self.links if link.delay_ns), default=None)


def problems(
    values: dict[str, Any],
    kernel_has: list[str],
    *,
    engine: bool = False,
    hosts: bool = False,
    ip: int = 4,
    traced: bool = False,
) -> list[str]:
    """Return everything in a resolved scenario that the lab cannot run, each as a sentence.

    `engine`: the ports of switches are the engine's, which says itself what they cannot do. `hosts`: so are
    the hosts. `ip`: the version of IP. `traced`: packets of flows carry IOAM.
    """
    found = []
    switch, transport = values.get("switch", {}), values.get("transport", {})
    kind = transport.get("kind")
    if not hosts and kind not in engine_hosts.KERNEL:
        found.append(
            f'transport.kind = "{kind}": kernels have tcp and mptcp; hosts of the engine have all: leave '
            "--hosts out"
        )
    own = _own_dctcp(values, kernel_has)
    if own and not hosts and kind in engine_hosts.KERNEL:
        found += dctcp.problems(values, own, multipath=kind == "mptcp")
        kernel_has = [*kernel_has, dctcp.KIND]
    controllers = dict.fromkeys([_controller(transport), *_own_controllers(values).values()])
    ours = ", ".join(f'"{name}"' for name, theirs in CONGESTION.items() if theirs in kernel_has)
    for controller in controllers:
        if not hosts and kind in engine_hosts.KERNEL and CONGESTION.get(controller) not in kernel_has:
            found.append(f'transport.controller.kind = "{controller}": this kernel has {ours}')
    queue = switch.get("queue", {})
    if switch.get("pfc", {}).get("enabled"):
        found.append("switch.pfc.enabled: ports of the lab cannot pause each other: set it to false")
    if engine:
        pass
    elif queue.get("kind") not in QUEUES:
        found.append(
            f'switch.queue.kind = "{queue.get("kind")}": the kernel\'s ports are fifo with their own limit: '
            'queue = { kind = "fifo", limit = "300KB" }, or leave --ports out'
        )
    elif not size(queue.get("limit")) and not queue.get("packets"):
        found.append(
            "switch.queue: ports of the kernel share no buffer: give each a limit of its own, such as "
            'queue = { kind = "fifo", limit = "300KB" }'
        )
    else:
        found += engine_ports.beyond_kernel(queue)
    if switch.get("port") and not engine:
        found.append("switch.port: the kernel's ports all have the same queue: leave it or --ports out")
    if ecn_switches.wanted(values) and not engine:
        found += ecn_switches.problems()
    if not hosts:
        found += kernel_hosts.problems(values)
    if switch.get("forwarding", "store-and-forward") != "store-and-forward":
        found.append(
            f'switch.forwarding = "{switch["forwarding"]}": switches of the lab forward whole frames: set it '
            'to "store-and-forward"'
        )
    if not hosts and kind == "mptcp" and not has_mptcp():
        found.append(
            'transport.kind = "mptcp": kernels with CONFIG_MPTCP have it, this one lacks it: choose '
            '"tcp", or hosts of the engine (--hosts engine)'
        )
    subflows = transport.get("subflows", 1)
    if not hosts and kind == "mptcp" and subflows > MOST_SUBFLOWS:
        found.append(f"transport.subflows = {subflows}: the kernel has up to {MOST_SUBFLOWS}")
    found += balancers.problems(values, hosts=hosts)
    found += internet.problems(values, engine=engine, hosts=hosts) if ip == 6 else []
    found += ioam.problems(values) if traced and not hosts else []
    failures = values.get("failures", {})
    if failures.get("event") or failures.get("loss"):
        found.append("failures: the lab cannot make links fail: leave them out")
    if int_switches.wanted(values):
        found += int_switches.problems(engine=engine, hosts=hosts)
    else:
        found += stamps.problems(values, engine=engine)
    if values.get("compat", {}).get("like", "none") != "none":
        found.append("compat.like: another simulator's rules do not hold for real packets: leave it out")
    for number, workload in enumerate(values.get("workload", [])):
        own = workload.get("transport", {})
        extra = {key for key in own if key != "controller" and own[key] != transport.get(key)}
        if extra and not hosts:
            found.append(
                f"workload.{number}.transport.{min(extra)}: only the controller of a workload may differ "
                "from [transport]: leave it out"
            )
    groups: dict[str, str] = {}
    for workload in values.get("workload", []):
        chosen = _controller({**transport, **workload.get("transport", {})})
        if groups.setdefault(_group(workload), chosen) != chosen:
            found.append(
                f'workloads of the group "{_group(workload)}" have different controllers: name their groups '
                "apart (group)"
            )
    return found


def has_mptcp() -> bool:
    """Return whether hosts of this kernel can open multipath connections."""
    return Path("/proc/sys/net/mptcp/enabled").exists()


def _controller(transport: dict[str, Any]) -> str:
    return transport.get("controller", {}).get("kind", "cubic")


def _group(workload: dict[str, Any]) -> str:
    return str(workload.get("group") or workload.get("kind"))


def _own_dctcp(values: dict[str, Any], kernel_has: list[str]) -> list[dict[str, Any]]:
    """Return the controllers that a run has to register, since the kernel lacks them."""
    transport = values.get("transport", {})
    every = [transport, *(workload.get("transport", {}) for workload in values.get("workload", []))]
    found = [one["controller"] for one in every if one.get("controller", {}).get("kind") == dctcp.KIND]
    return [] if dctcp.KIND in kernel_has else found


def _own_controllers(values: dict[str, Any]) -> dict[str, str]:
    """Return the controllers of workloads that have one of their own, by group."""
    return {
        _group(workload): _controller(workload["transport"])
        for workload in values.get("workload", [])
        if "controller" in workload.get("transport", {})
    }


def make(
    scenario: Scenario,
    kernel_has: list[str],
    flows: list[dict[str, Any]],
    *,
    engine: bool = False,
    hosts: bool = False,
    ip: int = 4,
    traced: bool = False,
) -> Plan:
    """Return the plan of a scenario that has no `problems`; `traced`: packets of flows carry IOAM.

    Raises
    ------
    InputError
        If the network has no place here.
    """
    values, graph = scenario.values, scenario.network()
    if len(graph["nodes"]) > MOST_NODES:
        raise InputError(f"{len(graph['nodes'])} nodes: the lab takes up to {MOST_NODES} on one machine")
    transport, queue = values["transport"], values["switch"]["queue"]
    multipath = transport["kind"] == "mptcp" and not hosts
    header = TCP_HEADER + (MAPPING if multipath else 0)
    mss = size(transport.get("mss")) or MTU - header
    version = internet.VERSIONS[ip]
    names = _plain([one["name"] for one in graph["nodes"]])
    nodes = [
        Node(name=name, is_host=True, address=version.host(number))
        if one["kind"] == "host"
        else Node(name=name, is_host=False, address=None)
        for number, (name, one) in enumerate(zip(names, graph["nodes"], strict=True))
    ]
    for number, node in enumerate(nodes):
        if node.is_host and multipath:
            extra = range(1, int(transport.get("subflows", 1)))
            node.aliases = [version.host(number, subflow) for subflow in extra]
    balancing = balancers.asked(scenario)
    writes = int_switches.wanted(values) and not engine
    marks = ecn_switches.wanted(values) and not engine
    adds = bool(size(queue.get("link_header"))) and not engine
    bands = hosts or bool(balancing and balancing.probes_first)
    longest = engine_hosts.MTU if hosts else mss + header
    mtu = longest + version.header_bytes - internet.IPV4.header_bytes
    longer = balancing.extra_bytes if balancing else 0
    links = _connected(graph, nodes, queue, (mtu, mtu + longer), bands, hosts, version)
    switches = _switches_of_longest_path(nodes) if traced else 0
    if switches:
        ioam.check(switches)
        mtu += len(ioam.header(switches))
        links = _connected(graph, nodes, queue, (mtu, mtu + longer), bands, hosts, version)
    if ip == 6 and mtu < internet.SMALLEST_MTU:
        raise InputError(
            f"transport.mss = {mss}B: links with IPv6 carry packets of {internet.SMALLEST_MTU} bytes or more:"
            f" set it to {mss + internet.SMALLEST_MTU - mtu}B or more, or leave --ip out"
        )
    room, needs = size(queue.get("limit")), mtu + ETHERNET_BYTES
    if 0 < room < needs:
        raise InputError(
            f'switch.queue.limit = "{queue["limit"]}": has no room for a full packet, which is {needs} bytes '
            "long, so none would ever pass: set it to more"
        )
    own = _own_controllers(values)
    registered = [] if hosts else _own_dctcp(values, kernel_has)
    measured = values.get("measure", {}).get("queues")
    goodput = values.get("measure", {}).get("goodput")
    until = values.get("run", {}).get("until")
    made = Plan(
        name=scenario.name,
        nodes=nodes,
        links=links,
        flows=[
            {**flow, "congestion": CONGESTION.get(own.get(flow["group"], _controller(transport)), "")}
            for flow in flows
        ],
        multipath=multipath,
        route_settings=kernel_hosts.route_settings(transport),
        receive_buffer=kernel_hosts.receive_buffer(transport),
        queue_every_ns=ns(measured.get("every")) if isinstance(measured, dict) else None,
        goodput_every_ns=ns(goodput.get("every")) if isinstance(goodput, dict) else None,
        until_ns=None if until in (None, "flows-done") else ns(until),
        differs=[
            *(
                engine_hosts.differs(engine_ports=engine)
                if hosts
                else kernel_hosts.differs(values, engine=engine)
            ),
            *(kernel_hosts.not_measured(values, ("queues",)) if hosts else []),
            *(engine_ports.differs() if engine and not hosts else []),
            *(["switch.queue.link_header: ports of the kernel add none"] if adds else []),
            *(int_switches.differs(values) if writes and not engine else []),
            *(ecn_switches.differs(values) if marks else []),
            *(dctcp.differs() if registered else []),
            *(internet.differs() if ip == 6 else []),
            *(ioam.differs(switches) if switches else []),
        ],
        engine_hosts=hosts,
        engine_ports=engine,
        takes_marks=(engine or marks) and engine_ports.takes_marks(values),
        balancing=balancing,
        at_ports=[
            *([int_switches.Writing()] if writes else []),
            *([ecn_switches.Marking(scenario)] if marks else []),
        ],
        stamping=stamps.asked(values, _longest_round_trip_ns(nodes, links), int(values.get("seed", 1)), ip),
        dctcp=dctcp.Control.of(registered[0]) if registered else None,
        ip=version,
        ioam_switches=switches,
    )
    if made.wires:
        made.port_task = engine_ports.task(scenario, made) if engine else engine_ports.delays(made)
    made.differs += [*made.untimed(), *made.limits_of_bands()]
    if hosts:
        engine_hosts.check(scenario, made)
    return made


def _longest_round_trip_ns(nodes: list[Node], links: list[Link]) -> int:
    """Return the longest time that a full packet and its small answer take without a queue."""
    cost = {}
    for link in links:
        for end in (link.a, link.b):
            rate = end.port.rate_bps
            wires = 8_000_000_000 * (link.mtu + TCP_HEADER) // rate
            cost[end.node, end.interface] = 2 * link.delay_ns + wires
    return _longest(nodes, lambda end: cost[end.node, end.interface]) or 1


def _switches_of_longest_path(nodes: list[Node]) -> int:
    """Return the switches of the longest path between two hosts."""
    # A path has one link more than switches.
    return _longest(nodes, lambda _: 1) - 1


def _longest(nodes: list[Node], cost: Callable[[End], int]) -> int:
    """Return the highest cost of a path from a host to a host; `cost`: of a link."""
    far: dict[tuple[str, str], int] = {}
    by_name = {node.name: node for node in nodes}

    def from_here(node: Node, address: str) -> int:
        if address == node.address:
            return 0
        if (node.name, address) not in far:
            ways = node.routes.get(address, [])
            far[node.name, address] = max(
                (cost(end) + from_here(by_name[end.peer[0]], address) for end in ways), default=0
            )
        return far[node.name, address]

    hosts = [node for node in nodes if node.is_host]
    return max((from_here(one, other.address or "") for one in hosts for other in hosts), default=0)


def _plain(names: Iterable[str]) -> list[str]:
    """Return names that namespaces can have, each once."""
    found: dict[str, None] = {}
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_.-]", "-", name)[:LONGEST_NAME]
        while plain in found or plain == WIRES:
            plain += "-"
        found[plain] = None
    return list(found)


def _connected(
    graph: dict[str, Any],
    nodes: list[Node],
    queue: dict[str, Any],
    mtus: tuple[int, int],
    probes_first: bool,
    hosts_too: bool,
    ip: internet.Internet,
) -> list[Link]:
    """Return the links, and give every node its routes."""
    links = _links(graph, nodes, queue, mtus, probes_first, hosts_too, ip)
    _routes(nodes, links)
    return links


def _links(
    graph: dict[str, Any],
    nodes: list[Node],
    queue: dict[str, Any],
    mtus: tuple[int, int],
    probes_first: bool,
    hosts_too: bool,
    ip: internet.Internet,
) -> list[Link]:
    """Return the links.

    `mtus`: of links to hosts, and of those between switches. `probes_first`: ports between switches have
    bands; `hosts_too`: those to hosts as well.
    """
    used = [0] * len(nodes)
    links = []
    for number, one in enumerate(graph["links"]):
        sides = []
        for side in "ab":
            place = one[side]
            sides.append(
                (place, f"p{used[place]}", one[f"{side}_port"], ip.link(2 * number + (side == "b") + 1))
            )
            used[place] += 1
        fits = mtus[not any(nodes[one[side]].is_host for side in "ab")]

        def end(own: int, number_in: list[tuple[int, str, str, str]], rate: int, fits: int) -> End:
            place, interface, entity, _ = number_in[own]
            other, peer, _, address = number_in[1 - own]
            is_switch = not nodes[place].is_host
            limit = size(queue.get("limit")) if is_switch else kernel_hosts.NIC_QUEUE
            packets = int(queue.get("packets", 0)) if is_switch else 0
            port = Port(
                rate_bps=rate,
                queue_bytes=limit,
                queue_packets=packets,
                mtu=fits,
                is_switch=is_switch,
                bands=probes_first
                and is_switch
                and (hosts_too or not nodes[other].is_host)
                and bool(packets),
            )
            return End(
                node=nodes[place].name,
                interface=interface,
                entity=entity,
                port=port,
                peer=(nodes[other].name, peer),
                peer_address=address,
            )

        rate = int(one["rate_bps"])
        links.append(
            Link(
                number=number,
                a=end(0, sides, rate, fits),
                b=end(1, sides, rate, fits),
                delay_ns=round(one["delay_ns"]),
                mtu=fits,
            )
        )
    return links


def _routes(nodes: list[Node], links: list[Link]) -> None:
    """Give every node all its shortest paths to every host, by links."""
    by_name = {node.name: node for node in nodes}
    out: dict[str, list[End]] = {node.name: [] for node in nodes}
    for link in links:
        out[link.a.node].append(link.a)
        out[link.b.node].append(link.b)
    for target in (node for node in nodes if node.is_host):
        far, todo = {target.name: 0}, deque([target.name])
        while todo:
            here = todo.popleft()
            for end in out[here]:
                there = end.peer[0]
                # Hosts do not forward.
                if there not in far and not (by_name[here].is_host and here != target.name):
                    far[there] = far[here] + 1
                    todo.append(there)
        for node in nodes:
            if node is target or node.name not in far:
                continue
            hops = [
                end
                for end in out[node.name]
                if far.get(end.peer[0], len(nodes)) == far[node.name] - 1
                and (end.peer[0] == target.name or not by_name[end.peer[0]].is_host)
            ]
            for address in (target.address, *target.aliases):
                node.routes[address or ""] = hops
