"""The processes of a run of the lab, inside its namespaces: agents, links, captures, balancers, lateness."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weftline import _native
from weftline.errors import RunFailed
from weftline.lab import captured, engine_hosts, ioam, lateness
from weftline.lab import priority as priorities
from weftline.lab.network import Network, tool
from weftline.lab.plan import WIRES

HERE = Path(__file__).parent
READY_S = 30.0
LEAVE_S = 5.0
"""Time for agents to report the flows that they have not finished."""


class Processes:
    """The processes inside the namespaces: started, given time zero, ended."""

    def __init__(
        self,
        network: Network,
        *,
        dies: bool = True,
        host_task: str = "",
        priority: priorities.Priority = "auto",
    ) -> None:
        self.network = network
        self.host_task = host_task
        self.dies = dies
        self.priority = priority
        self.kinds: list[str] = []
        """What priority each process got."""
        self.watch: subprocess.Popen[str] | None = None
        self.relay: subprocess.Popen[str] | None = None
        self.hosts: subprocess.Popen[str] | None = None
        """The process of the engine's hosts."""
        self.agents: dict[str, subprocess.Popen[str]] = {}
        self.left: dict[str, bytes] = {}
        """What each agent printed and was not read before it ended."""
        self.of_hosts: dict[str, Any] = {}
        """What the process of the hosts printed at its end."""
        self.companions: dict[str, subprocess.Popen[str]] = {}
        """Those next to switches, and what each printed at its end."""
        self.reports: dict[str, dict[str, Any]] = {}
        self.capturing: dict[str, tuple[subprocess.Popen[str], Any]] = {}
        """By node, each with its file; then what came there, and what it counted."""
        self.captures: dict[str, bytes] = {}
        self.capture_reports: dict[str, dict[str, Any]] = {}
        self.waited = lateness.Histogram()
        """How late a process of the agents' priority woke during the run."""

    def _start(
        self,
        namespace: str,
        file: str,
        level: int,
        *lines: str,
        arguments: Sequence[str] = (),
        output: int | None = None,
    ) -> subprocess.Popen[str]:
        """Start a process in a namespace; `output`: an open file that it writes."""
        extra = [*arguments, *([] if self.dies else ["stays"])]
        extra += [] if output is None else [str(output)]
        started = subprocess.Popen(
            [tool("ip"), "netns", "exec", namespace, sys.executable, "-I", "-S", str(HERE / file), *extra],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # A reader of our messages must not wait for a process that stays.
            stderr=None if self.dies else subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            pass_fds=[] if output is None else [output],
        )
        self.give(started, level)
        assert started.stdin is not None
        started.stdin.write("".join(f"{line}\n" for line in lines))
        started.stdin.flush()
        return started

    def give(self, process: subprocess.Popen[str], level: int) -> None:
        """Let a process go before others, unless that is not wanted."""
        if self.priority != "normal":
            self.kinds.append(priorities.give(process.pid, level))

    def start(self) -> None:
        """Start all and wait until each is ready."""
        made = self.network.plan
        if made.wires:
            self.start_wires()
        if made.engine_hosts:
            self.hosts = self._start(
                self.network.name(WIRES),
                "host_process.py",
                priorities.LINKS,
                str(_native.__file__),
                self.host_task,
            )
            _expect_ready(self.hosts, "the process of the hosts")
        hosts = [node for node in made.own_nodes if node.is_host]
        if made.ioam_switches:
            receivers = sorted({flow["dst"] for flow in made.flows})
            self.start_captures([hosts[number].name for number in receivers], "traces")
        self.start_captures(made.watched, "ipv4")
        for place, links in (made.captured.tasks if made.captured else {}).items():
            self.start_capture(captured.KEY + place, place, "links", links)
        addresses = [node.address for node in hosts]
        for number, node in enumerate(hosts):
            mine = [flow for flow in made.flows if flow["src"] == number]
            flows = [
                {
                    "id": flow["flow_id"],
                    "start_ns": round(flow["start_ns"]),
                    "size": flow["size_bytes"],
                    "to": addresses[flow["dst"]],
                    "congestion": self.network.congestion(flow["congestion"]),
                    "multipath": made.multipath,
                    "port": made.listens(flow["congestion"]),
                }
                for flow in mine
            ]
            if not mine and not any(flow["dst"] == number for flow in made.flows):
                continue
            task = {
                "address": node.address,
                "listens": sorted(
                    {
                        (made.listens(one), self.network.congestion(one) if made.echoes(one) else "")
                        for one in (flow["congestion"] for flow in made.flows if flow["dst"] == number)
                    }
                ),
                "multipath": made.multipath,
                "subflows": 1 + len(node.aliases),
                "flows": flows,
                "every_ns": made.goodput_every_ns,
                # Reports of all hosts at one moment would keep every core busy for milliseconds.
                "apart_ns": (made.goodput_every_ns or 0) * number // (8 * len(hosts)),
                "until_ns": made.until_ns,
                "options": ioam.header(made.ioam_switches).hex() if made.ioam_switches else None,
            }
            self.agents[node.name] = self._start(
                self.network.name(node.name),
                "agent.py",
                priorities.HOSTS,
                str(_native.__file__),
                json.dumps(task),
            )
        for name, agent in self.agents.items():
            _expect_ready(agent, f"the agent of {name}")
        self.start_balancers()
        # As late as an agent would be.
        place = self.network.name(hosts[0].name if hosts else WIRES)
        self.watch = self._start(place, "lateness.py", priorities.HOSTS, "")
        _expect_ready(self.watch, "the process that measures lateness")

    def start_captures(self, nodes: Sequence[str], keeps: str) -> None:
        """Start what keeps the headers of arriving packets at these nodes."""
        for name in nodes:
            self.start_capture(name, name, keeps)

    def start_capture(self, key: str, node: str, keeps: str, *task: str) -> None:
        """Start what keeps frames at a node."""
        file = tempfile.TemporaryFile()  # noqa: SIM115
        started = self._start(
            self.network.name(node),
            "capture.py",
            priorities.HOSTS,
            *task,
            arguments=[keeps],
            output=file.fileno(),
        )
        self.capturing[key] = started, file
        _expect_ready(started, f"the process that captures at {node}")

    def start_balancers(self) -> None:
        """Start what runs next to the programs of switches."""
        balancing = self.network.plan.balancing
        for node, (file, task) in (balancing.tasks(self.network) if balancing else {}).items():
            started = self._start(self.network.name(node), file, priorities.SWITCHES, json.dumps(task))
            self.companions[node] = started
            _expect_ready(started, f"the process next to {node}")

    def start_wires(self) -> None:
        """Start what gives links their delay."""
        task, native = self.network.plan.port_task, str(_native.__file__)
        place = self.network.name(WIRES)
        self.relay = self._start(place, "port_process.py", priorities.LINKS, native, task)
        _expect_ready(self.relay, "the process of the links' delays")

    def begin(self, zero_ns: int) -> None:
        """Tell every agent when time zero is."""
        for process in (*self.agents.values(), *([self.hosts] if self.hosts else [])):
            assert process.stdin is not None
            process.stdin.write(f"{zero_ns}\n")
            process.stdin.flush()

    def end(self) -> dict[str, Any]:
        """End all and return what the relay counted."""
        self.left = _last_lines(self.agents)
        for process in self.companions.values():
            process.terminate()
        self.reports = {node: _last_words(process) for node, process in self.companions.items()}
        for name, (process, file) in self.capturing.items():
            self.capture_reports[name] = _last_words(process)
            file.seek(0)
            self.captures[name] = file.read()
            file.close()
        if self.watch is not None:
            self.waited = lateness.Histogram.of(_last_words(self.watch) or [])
        self.of_hosts = _last_words(self.hosts) if self.hosts is not None else {}
        relay = _last_words(self.relay) if self.relay is not None else {}
        return engine_hosts.added(relay, self.of_hosts) if self.hosts is not None else relay


def _last_lines(agents: dict[str, subprocess.Popen[str]]) -> dict[str, bytes]:
    """End agents and return what they print then, of flows that have not finished."""
    for agent in agents.values():
        assert agent.stdin is not None
        with contextlib.suppress(OSError):
            agent.stdin.close()
    found, until = dict.fromkeys(agents, b""), time.monotonic() + LEAVE_S
    for name, agent in agents.items():
        assert agent.stdout is not None
        while select.select([agent.stdout], [], [], max(until - time.monotonic(), 0))[0]:
            if not (data := os.read(agent.stdout.fileno(), 1 << 16)):
                break
            found[name] += data
        agent.kill()
        agent.wait()
    return found


def _last_words(process: subprocess.Popen[str]) -> Any:
    """End a process and return what it prints then, nothing if it had to be killed."""
    process.terminate()
    try:
        out, _ = process.communicate(timeout=5)
        return json.loads(out.strip().splitlines()[-1])
    except (subprocess.TimeoutExpired, ValueError, IndexError):
        process.kill()
        process.wait()
        return {}


def _expect_ready(process: subprocess.Popen[str], what: str) -> None:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], READY_S)
    line = process.stdout.readline() if ready else ""
    if line.strip() != "ready":
        raise RunFailed(f"lab: {what} did not start: {line.strip() or 'it said nothing'}")
