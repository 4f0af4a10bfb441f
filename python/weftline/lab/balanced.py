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
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weftline import quantities, scenarios
from weftline.errors import InputError, RunFailed
from weftline.lab import agreement, queues, runs
from weftline.lab.network import Network, inside, run, tool
from weftline.lab.plan import End, Plan
from weftline.runs import Run
from weftline.scenario import Scenario, status_of
from weftline.terminal import Table

KIND = "balancers"
ETHERNET_BYTES = 14
"""Of every packet, which the kernel's ports count and the simulator's do not."""


@dataclass
class Pair:
    """One repeat under one balancer in both engines."""

    simulated: Run
    real: Run

    @property
    def contaminated(self) -> list[str]:
        """Why the lab's run does not count."""
        return list(self.real.summary["lab"]["contaminated"])

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
    return _mean(times) / 1e6 if times else float("nan")


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
        try:
            text = tomllib.loads(path.read_text("utf-8"))
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
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}") from error
        except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path}: is not an experiment on balancers: {error}") from error
        if rows:
            raise InputError(f"{path}: has no rows to choose from: leave --rows out")
        for name in (found.faster, found.slower):
            if name not in found.balancers:
                has = ", ".join(found.balancers)
                raise InputError(f"{path}: there is no balancer {name}: it has {has}")
        return found

    def run(self, out: Path, *, repeats: int, seconds: float | None = None) -> None:
        """Run everything, repeat by repeat; what a former call has finished is kept.

        Raises
        ------
        InputError
            If `seconds` is given: flows have sizes here, so a run ends with the last flow.
        """
        if seconds is not None:
            raise InputError("--seconds: not for this experiment, whose flows have sizes")
        for repeat in range(1, repeats + 1):
            names = list(self.balancers)
            for name in names if repeat % 2 else names[::-1]:
                place = out / name / str(repeat)
                scenario = self._scenario(name, repeat)
                self.pairs.setdefault(name, []).append(pair(scenario, place, f"{name}, repeat {repeat}"))
                self.failover.lost.setdefault(name, []).append(self._lost(scenario, place, name, repeat))

    def _scenario(self, name: str, seed: int) -> Scenario:
        changes = {f"switch.balancer.{key}": value for key, value in self.balancers[name].items()}
        return Scenario.of(scenarios.load(str(self.scenario)), scenarios.settings(changes), seed=seed)

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

    def _spoilt(self, name: str) -> int:
        return sum(bool(pair.contaminated) for pair in self.pairs.get(name, []))

    def verdict(self, name: str, port: str) -> tuple[str, tuple[float, float] | None]:
        """Return whether an uplink carries the same in both engines, with the interval of lab over simulated.

        Contaminated runs do not count; if too many are, it is open.
        """
        pairs = [pair for pair in self.pairs[name] if not pair.contaminated]
        ratios = [real / simulated for simulated, real in (pair.bytes()[port] for pair in pairs) if simulated]
        if len(ratios) < 2 or self._spoilt(name) > agreement.MOST_DROPPED * len(self.pairs[name]):
            return "open", None
        low, high = agreement.interval_90(ratios)
        if 1 - self.margin <= low and high <= 1 + self.margin:
            return "equal", (low, high)
        return ("different" if low > 1 + self.margin or high < 1 - self.margin else "open"), (low, high)

    def order(self) -> str:
        """Return whether both engines have the same balancer in front, in at least nine of ten repeats."""
        both = list(zip(self.pairs[self.faster], self.pairs[self.slower], strict=True))
        clean = [(one, other) for one, other in both if not one.contaminated and not other.contaminated]
        if len(clean) < 2 or len(clean) < (1 - agreement.MOST_DROPPED) * len(both):
            return "open"
        agree = sum(_in_front(*one) for one in clean)
        if agree >= 0.9 * len(clean):
            return "same order"
        return "open" if agree > 0.5 * len(clean) else "different order"

    def table(self) -> Table:
        """Return a line for each uplink and balancer, one for completion times, one for the failover."""
        lines = []
        for name in self.balancers:
            for port, both in self.uplinks(name).items():
                word, interval = self.verdict(name, port)
                every = [real / simulated for simulated, real in both if simulated]
                shown = [_spread([value / 1e6 for value in column]) for column in zip(*both, strict=True)]
                spread = f"{_mean(every):.3f} ({min(every):.3f} to {max(every):.3f})" if every else "–"
                between = "–" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"
                what = f"{name}, MB on {port}"
                lines.append([what, *shown, spread, between, self._dropped(name), word])
        for name, pairs in self.pairs.items():
            times = [pair.mean_fct_ms() for pair in pairs]
            shown = [_spread(list(column)) for column in zip(*times, strict=True)]
            ratio = _spread([real / simulated for simulated, real in times])
            word = self.order() if name == self.faster else ""
            lines.append([f"{name}, mean FCT in ms", *shown, ratio, "–", self._dropped(name), word])
        for name, lost in self.failover.lost.items():
            word = self.failover.verdict(name) if name == self.faster else ""
            text = f"{_mean(lost):.1f} ({min(lost)} to {max(lost)})"
            lines.append(
                [f"{name}, pings lost of {self.failover.pings}", "–", text, "–", "–", "does not apply", word]
            )
        head = ["", "simulated", "lab", "lab / simulated", "90 %", "contaminated", "verdict"]
        return Table(head, lines, left=1)

    def _dropped(self, name: str) -> str:
        return f"{self._spoilt(name)} of {len(self.pairs[name])}"

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
        (out / "experiment.json").write_text(json.dumps(self.as_json(), indent=2), "utf-8")


def _in_front(faster: Pair, slower: Pair) -> bool:
    one, other = faster.mean_fct_ms(), slower.mean_fct_ms()
    return (one[0] < other[0]) == (one[1] < other[1])


def pair(scenario: Scenario, place: Path, what: str) -> Pair:
    """Simulate a scenario and run it on real packets, unless that is done already."""
    simulated, real = place / "sim", place / "lab"
    if status_of(simulated) != "done" or Run.read(simulated).scenario != scenario.values:
        scenario.start(out=simulated, force=True, sync=False)
    if status_of(real) != "done" or Run.read(real).scenario != scenario.values:
        print(what, file=sys.stderr, flush=True)
        runs.run(scenario, str(real), force=True, ports="kernel")
    return Pair(Run.read(simulated), Run.read(real))


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
        processes, programs = runs.Processes(network), runs.programs_of(network)
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
    if (ping := shutil.which("ping")) is None:
        raise InputError("the failover needs `ping`: apt install iputils-ping")
    before = _sent(network, leaf)
    every = failover.every_ms / 1e3
    process = subprocess.Popen(
        [
            *(tool("ip"), "netns", "exec", network.name(failover.source), ping, "-q"),
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


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _spread(values: Sequence[float]) -> str:
    return f"{_mean(values):.2f} ({min(values):.2f} to {max(values):.2f})"
