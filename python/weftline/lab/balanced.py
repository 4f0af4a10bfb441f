"""An experiment of the lab on load balancers: the same flows under each, simulated and on real packets.

Compared are the bytes of every uplink, lab over simulated, and which of two balancers completes flows sooner.
The failover is on real packets alone: a host pings another one; after some of the pings the far link of the
uplink that carries them fails.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weftline import quantities, scenarios
from weftline.errors import InputError, RunFailed
from weftline.lab import agreement, queues, repeats, runs
from weftline.lab.network import Network, inside, run, tool
from weftline.lab.plan import End, Plan
from weftline.lab.processes import Processes
from weftline.runs import Run
from weftline.scenario import Scenario
from weftline.terminal import Table

KIND = "balancers"
ETHERNET_BYTES = 14
"""Of every packet, which the kernel's ports count and the simulator's do not."""


class Pair(repeats.Pair):
    """One repeat under one balancer in both engines."""

    def bytes(self) -> dict[str, tuple[float, float]]:
        """Return bytes of IP that left by every port whose utilisation was measured, in both engines."""
        import pyarrow

        measured = self.simulated.scenario["measure"]["utilisation"]
        every = quantities.parse_time_ns(str(measured["every"])) / 1e9
        ports = _ports(self.simulated)
        sums: dict[str, float] = {}
        for row in pyarrow.table(self.simulated.series).to_pylist():
            if row["metric"] == "utilisation":
                name = row["entity"]
                sums[name] = sums.get(name, 0.0) + row["value"] * every * ports[name][1] / 8
        counted = self.real.summary["lab"]["ports"]
        found = {}
        for name, simulated in sorted(sums.items()):
            port = counted[name]
            real = port["bytes_sent"] - ETHERNET_BYTES * port["packets_sent"]
            found[ports[name][0]] = (simulated, real)
        return found

    def mean_fct_ms(self) -> tuple[float, float]:
        """Return the mean completion time of the flows that ended, in both engines."""
        return _mean_fct(self.simulated), _mean_fct(self.real)


def _ports(of: Run) -> dict[str, tuple[str, int]]:
    """Return where every port of a run's network leads, and its rate in bit/s."""
    network = Scenario(Path(of.out) / "scenario.toml").network()
    names, found = [node["name"] for node in network["nodes"]], {}
    for link in network["links"]:
        a, b = names[link["a"]], names[link["b"]]
        for port, text in ((link["a_port"], f"{a} -> {b}"), (link["b_port"], f"{b} -> {a}")):
            found[port] = (text, int(link["rate_bps"]))
    return found


def _mean_fct(of: Run) -> float:
    import pyarrow

    times = [row["fct_ns"] for row in pyarrow.table(of.flows).to_pylist() if row["fct_ns"] is not None]
    return repeats.mean(times) / 1e6


@dataclass
class Failover:
    """The settings of the failover, and pings lost by balancer and repeat."""

    source: str
    target: str
    pings: int
    every_ms: float
    fails_after: int
    max_lost: int
    lost: dict[str, list[int]] = field(default_factory=dict)

    def verdict(self, balancer: str) -> str:
        """Return whether no repeat lost too many."""
        lost = self.lost.get(balancer, [])
        if not lost:
            return "not tried"
        return "holds" if max(lost) <= self.max_lost else "fails"


@dataclass
class Experiment:
    """The file, read."""

    title: str
    scenario: Path
    margin: float
    faster: str
    slower: str
    balancers: dict[str, dict[str, Any]]
    failover: Failover
    pairs: dict[str, list[Pair]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, rows: Sequence[str]) -> Experiment:
        """Read a `lab.toml` of this kind.

        Raises
        ------
        InputError
            If it is not one, or rows are named.
        """
        with repeats.reading(path, "an experiment on balancers") as text:
            fails = text["failover"]
            found = cls(
                title=text["title"],
                scenario=path.parent / text["scenario"],
                margin=text["margin"],
                faster=text["faster"],
                slower=text["slower"],
                balancers=dict(text["balancer"]),
                failover=Failover(
                    source=fails["from"],
                    target=fails["to"],
                    pings=fails["pings"],
                    every_ms=fails["every_ms"],
                    fails_after=fails["fails_after"],
                    max_lost=fails["lost"],
                ),
            )
        repeats.refuse_rows(path, rows)
        repeats.check_names(path, "balancer", (found.faster, found.slower), found.balancers)
        return found

    def run(self, out: Path, *, count: int, seconds: float | None = None) -> None:
        """Run everything, repeat by repeat; what a former call has finished is kept.

        Raises
        ------
        InputError
            If `seconds` is given: flows have sizes here, so a run ends with the last flow.
        """
        repeats.refuse_seconds(seconds)
        _ping_tool()
        for repeat, name in repeats.there_and_back(list(self.balancers), count):
            place = out / name / str(repeat)
            scenario = balancing(self.scenario, self.balancers[name], repeat)
            self.pairs.setdefault(name, []).append(pair(scenario, place, f"{name}, repeat {repeat}"))
            self.failover.lost.setdefault(name, []).append(self._lost(scenario, place, name, repeat))

    def _lost(self, scenario: Scenario, place: Path, name: str, repeat: int) -> int:
        done = place / "failover.json"
        if done.exists():
            return int(json.loads(done.read_text("utf-8"))["lost"])
        print(f"{name}, failover {repeat}", file=sys.stderr, flush=True)
        made, _ = runs.planned(scenario, "kernel")
        lost = fail_over(made, self.failover)
        done.write_text(json.dumps({"lost": lost}), "utf-8")
        return lost

    def uplinks(self, name: str) -> dict[str, list[tuple[float, float]]]:
        """Return the bytes of every uplink under a balancer in both engines, of each repeat."""
        found: dict[str, list[tuple[float, float]]] = {}
        for pair in self.pairs.get(name, []):
            for port, both in pair.bytes().items():
                found.setdefault(port, []).append(both)
        return found

    def verdict(self, name: str, port: str) -> tuple[str, tuple[float, float] | None]:
        """Return whether an uplink carries the same in both engines, with the interval of lab over simulated.

        Contaminated runs do not count; if too many are, it is open.
        """
        both = [pair.bytes()[port] for pair in repeats.clean(self.pairs[name])]
        ratios = [real / simulated for simulated, real in both if simulated]
        return repeats.verdict(ratios, 1.0, self.margin)

    def order(self) -> str:
        """Return whether both engines have the same balancer in front, in at least nine of ten repeats."""
        both = list(zip(self.pairs[self.faster], self.pairs[self.slower], strict=True))
        clean = [(one, other) for one, other in both if not one.contaminated and not other.contaminated]
        if len(clean) < (1 - agreement.MOST_DROPPED) * len(both):
            return "open"
        return repeats.front([_fronts(*one) for one in clean])

    def table(self) -> Table:
        """Return a line for each uplink and balancer, one for completion times, one for the failover."""
        lines = []
        for name in self.balancers:
            for port, both in self.uplinks(name).items():
                word, interval = self.verdict(name, port)
                every = [real / simulated for simulated, real in both if simulated]
                shown = [
                    repeats.spread([value / 1e6 for value in column], 2) for column in zip(*both, strict=True)
                ]
                between = repeats.between(interval)
                what = f"{name}, MB on {port}"
                lines.append(
                    [what, *shown, repeats.spread(every, 3), between, repeats.spoilt(self.pairs[name]), word]
                )
        for name, pairs in self.pairs.items():
            times = [pair.mean_fct_ms() for pair in pairs]
            shown = [repeats.spread(list(column), 2) for column in zip(*times, strict=True)]
            ratio = repeats.spread([real / simulated for simulated, real in times], 2)
            word = self.order() if name == self.faster else ""
            lines.append(
                [f"{name}, mean FCT in ms", *shown, ratio, "–", repeats.spoilt(self.pairs[name]), word]
            )
        for name, lost in self.failover.lost.items():
            word = self.failover.verdict(name) if name == self.faster else ""
            text = f"{repeats.mean(lost):.1f} ({min(lost)} to {max(lost)})"
            lines.append(
                [f"{name}, pings lost of {self.failover.pings}", "–", text, "–", "–", "does not apply", word]
            )
        head = ["", "simulated", "lab", "lab / simulated", "90 %", "contaminated", "verdict"]
        return Table(head, lines, left=1)

    def holds(self) -> bool:
        """Return whether all uplinks are equal, the order is the same and the failover holds."""
        words = [self.verdict(name, port)[0] for name in self.balancers for port in self.uplinks(name)]
        same = all(word == "equal" for word in words) and self.order() == "same order"
        return same and self.failover.verdict(self.faster) == "holds"

    def as_json(self) -> dict[str, Any]:
        """Return everything that the table says, with each repeat."""
        found: dict[str, Any] = {}
        for name, pairs in self.pairs.items():
            verdicts = {port: self.verdict(name, port) for port in self.uplinks(name)}
            every = [
                {
                    "bytes": pair.bytes(),
                    "mean_fct_ms": pair.mean_fct_ms(),
                    "contaminated": pair.contaminated,
                    "balancer": pair.real.summary["lab"].get("balancer"),
                }
                for pair in pairs
            ]
            found[name] = {"repeats": every, "uplinks": verdicts, "pings_lost": self.failover.lost[name]}
        words = {"order": self.order(), "failover": self.failover.verdict(self.faster)}
        return {"title": self.title, "balancers": found, "verdicts": words, "holds": self.holds()}

    def write(self, out: Path) -> None:
        """Write the results as `experiment.json`."""
        repeats.write(out, self.as_json())


def _fronts(faster: Pair, slower: Pair) -> tuple[bool, bool]:
    """Return whether the first is in front, in both engines."""
    one, other = faster.mean_fct_ms(), slower.mean_fct_ms()
    return one[0] < other[0], one[1] < other[1]


def balancing(scenario: Path, balancer: dict[str, Any], seed: int) -> Scenario:
    """Return a scenario with what is set for a balancer."""
    changes = {f"switch.balancer.{key}": value for key, value in balancer.items()}
    return Scenario.of(scenarios.load(str(scenario)), scenarios.settings(changes), seed=seed)


def pair(scenario: Scenario, place: Path, what: str) -> Pair:
    """Simulate a scenario and run it on real packets, unless that is done already."""
    return Pair(*repeats.pair(scenario, place, what, ports="kernel").each())


def fail_over(made: Plan, failover: Failover) -> int:
    """Return how many pings are lost when the far link of the uplink that carries them fails.

    Raises
    ------
    RunFailed
        If the pings take no uplink, or `ping` does not print what it received.
    """
    names = {node.name: node for node in made.nodes}
    for name in (failover.source, failover.target):
        if name not in names or not names[name].is_host:
            raise InputError(f"failover: there is no host {name}")
    with runs.up(made) as network:
        processes, programs = Processes(network), runs.programs_of(network)
        try:
            if programs:
                programs.start()
            if made.wires:
                processes.start_wires()
            processes.start_balancers()
            # Every switch knows every rack before the first ping.
            time.sleep(0.5)
            return _ping(network, failover, names[failover.target].address or "")
        finally:
            processes.end()
            if programs:
                programs.end()


def _ping(network: Network, failover: Failover, address: str) -> int:
    leaf = next(end.peer[0] for end in network.plan.ends() if end.node == failover.source)
    hosts = {node.name for node in network.plan.nodes if node.is_host}
    uplinks = [end for end in network.plan.ends() if end.node == leaf and end.peer[0] not in hosts]
    before = _sent(network, leaf)
    every = failover.every_ms / 1e3
    process = subprocess.Popen(
        [
            *(tool("ip"), "netns", "exec", network.name(failover.source), _ping_tool(), "-q"),
            *("-i", f"{every:g}", "-c", str(failover.pings), "-W", "1", address),
        ],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        time.sleep(failover.fails_after * every)
        after = _sent(network, leaf)
        used = max(uplinks, key=lambda end: after[end.interface] - before[end.interface])
        if after[used.interface] == before[used.interface]:
            raise RunFailed("lab: no ping took an uplink")
        _cut(network, used.peer[0], failover)
        out, _ = process.communicate(timeout=30 + 2 * failover.pings * every)
    finally:
        process.kill()
        process.wait()
    found = re.search(r"(\d+) packets transmitted, (\d+) received", out)
    if found is None:
        raise RunFailed(f"lab: ping printed: {out.strip()}")
    return int(found[1]) - int(found[2])


def _ping_tool() -> str:
    if (ping := shutil.which("ping")) is None:
        raise InputError("the failover needs `ping`: apt install iputils-ping")
    return ping


def _sent(network: Network, node: str) -> dict[str, int]:
    """Return packets sent by each interface of a switch."""
    import socket

    with inside(network.name(node)):
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, queues.NETLINK_ROUTE) as sock:
            found = queues.read(sock)
        return {socket.if_indextoname(index): one.sent_packets for index, one in found.items()}


def _cut(network: Network, spine: str, failover: Failover) -> None:
    """Take down both ends of the link from a switch to the target's."""
    leaf = next(end.peer[0] for end in network.plan.ends() if end.node == failover.target)
    ends: list[End] = [end for end in network.plan.ends() if {end.node, end.peer[0]} == {spine, leaf}]
    for end in ends:
        run(tool("ip"), "-n", network.name(end.node), "link", "set", end.interface, "down")
