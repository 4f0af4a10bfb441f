"""Namespaces, links and routes of one run: made, recorded before they are made, and removed.

Each run has an id. Its namespaces are called ``weftline-ID-NAME``, and ``/run/weftline-lab/ID.json`` lists
them with their inode numbers, so that `clean` removes what a killed run left and nothing else; so it is with
what `doctor` tries, and with the folder of a simulated run. No interface is made outside these namespaces,
which have no link to any other: nothing can be sent beyond them.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weftline.errors import InputError, RunFailed
from weftline.lab import dctcp, engine_hosts, internet, ioam, ports
from weftline.lab.plan import WIRES, Plan
from weftline.outputs import write_whole

RECORDS = Path("/run/weftline-lab")
NAMED = Path("/run/netns")
FOLDER = "weftline-lab-"
"""What the name of a folder for a while begins with; the id follows."""
CLONE_NEWNET = 0x40000000
SETTINGS = (
    "net.ipv4.ip_forward=1",
    "net.ipv4.conf.all.rp_filter=0",
    "net.ipv4.conf.default.rp_filter=0",
    "net.ipv4.fib_multipath_hash_policy=1",
    "net.ipv4.tcp_no_metrics_save=1",
    "net.ipv4.tcp_wmem=4096 16384 33554432",
    "net.ipv4.tcp_ecn=0",
)


def apply(settings: Iterable[str]) -> None:
    """Write settings of the kernel, such as "net.ipv4.ip_forward=1", in the namespace of this thread."""
    for setting in settings:
        key, _, value = setting.partition("=")
        Path("/proc/sys", key.replace(".", "/")).write_text(value)


def tool(name: str) -> str:
    """Return the path of a program of iproute2, which may stand where only root looks."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/sbin")
    if found is None:
        raise InputError(f"the lab needs `{name}` of iproute2: apt install iproute2")
    return found


def run(*command: str, text: str | None = None) -> str:
    """Run a program to its end.

    Raises
    ------
    RunFailed
        With what it says, if it fails.
    """
    # A session of its own: Ctrl-C in the terminal must not end what removes the network.
    done = subprocess.run(command, input=text, capture_output=True, text=True, start_new_session=True)
    if done.returncode:
        what = " ".join(command)
        raise RunFailed(f"lab: `{what}` failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


@contextlib.contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Let this thread be in a namespace: sockets that it opens belong there."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(NAMED / namespace, os.O_RDONLY)
    try:
        if libc.setns(there, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), namespace)
        try:
            yield
        finally:
            libc.setns(before, CLONE_NEWNET)
    finally:
        os.close(before)
        os.close(there)


@dataclass
class Network:
    """The network of one run while it exists."""

    plan: Plan
    id: str = field(default_factory=lambda: secrets.token_hex(3))
    namespaces: dict[str, int] = field(default_factory=dict)
    """Those that exist or are about to, with their inode numbers (0: about to)."""
    macs: dict[tuple[str, str], str] = field(default_factory=dict)
    """Addresses of interfaces, by node and name."""
    keep: bool = False
    """It outlives the process: `up`."""
    awake: bool = False
    """The cores of the machine are kept awake while it exists."""

    def name(self, node: str) -> str:
        """Return the namespace of a node."""
        return f"weftline-{self.id}-{node}"

    def congestion(self, kind: str) -> str:
        """Return what a congestion control is called in this run."""
        return dctcp.name(self.id) if self.plan.dctcp and kind == dctcp.KIND else kind

    @property
    def record(self) -> Path:
        """The file that lists what belongs to this run."""
        return RECORDS / f"{self.id}.json"

    def build(self) -> None:
        """Make everything; what was made is removed again if that fails."""
        made = self.plan
        names = {self.name(node.name): (*SETTINGS, *made.settings(node)) for node in made.own_nodes}
        if made.wires or made.host_links:
            names[self.name(WIRES)] = (*SETTINGS, *internet.IPV4.settings)
        taken = [name for name in names if (NAMED / name).exists()]
        if taken:
            raise InputError(
                f"a namespace called {taken[0]} exists already; `weftline lab clean` removes leftovers"
            )
        try:
            for name, settings in names.items():
                self._make(name, settings)
            self._links()
            self._routes()
            if made.dctcp:
                made.dctcp.register(self.id)
        except BaseException:
            self.remove()
            raise

    def _make(self, name: str, settings: Iterable[str]) -> None:
        self.namespaces[name] = 0
        self._write()
        run(tool("ip"), "netns", "add", name)
        self.namespaces[name] = os.stat(NAMED / name).st_ino
        self._write()
        with inside(name):
            apply(settings)
        if self.plan.ioam_switches and name != self.name(WIRES):
            run(tool("ip"), "-n", name, "ioam", "namespace", "add", str(ioam.NAMESPACE))
        run(tool("ip"), "-n", name, "link", "set", "lo", "up")

    def _write(self) -> None:
        record(self.id, self.namespaces, keep=self.keep, scenario=self.plan.name)

    def _links(self) -> None:
        for wire in self.plan.wires:
            for end, inner in ((wire.a, f"w{wire.number}a"), (wire.b, f"w{wire.number}b")):
                engine = self.plan.engine_hosts and not end.port.is_switch
                node, name = (
                    (WIRES, engine_hosts.interface(wire.number)) if engine else (end.node, end.interface)
                )
                self._pair(node, name, WIRES, inner, wire.mtu)
        for link, end in self.plan.host_links if not self.plan.engine_ports else []:
            self._pair(end.node, end.interface, WIRES, engine_hosts.interface(link.number), link.mtu)
        for link in self.plan.direct:
            self._pair(link.a.node, link.a.interface, link.b.node, link.b.interface, link.mtu)
        for end in self.plan.ends():
            with inside(self.name(end.node)):
                ports.no_offloads(end.interface)
            if not (self.plan.engine_ports and end.port.is_switch):
                ports.set_up(self.name(end.node), end.interface, end.port)
        passing = [f"w{wire.number}{letter}" for wire in self.plan.wires for letter in "ab"]
        passing += [engine_hosts.interface(link.number) for link, _ in self.plan.host_links]
        if passing:
            with inside(self.name(WIRES)):
                for interface in passing:
                    ports.no_offloads(interface)
        for own in self.plan.own_nodes:
            with inside(self.name(own.name)):
                apply(self.plan.ip.forwarding)
        for namespace in self.namespaces if self.plan.every_core else ():
            ports.use_every_core(namespace)

    def _pair(self, node: str, interface: str, peer: str, peer_interface: str, mtu: int) -> None:
        one, other = self.name(node), self.name(peer)
        run(
            *(tool("ip"), "-n", one, "link", "add", interface, "mtu", str(mtu), "type", "veth"),
            *("peer", "name", peer_interface, "mtu", str(mtu), "netns", other),
        )
        for namespace, name in ((one, interface), (other, peer_interface)):
            run(tool("ip"), "-n", namespace, "link", "set", name, *self.plan.ip.link_settings, "up")

    def _routes(self) -> None:
        """Addresses of hosts, fixed neighbours (nothing asks who has which), and all shortest paths."""
        ends = {(end.node, end.interface): end for end in self.plan.ends()}
        macs = {key: mac(self.name(key[0]), key[1]) for key in ends}
        for link, end in self.plan.host_links:
            macs[end.peer] = engine_hosts.mac_of_host(link.number)
        self.macs = macs
        hosts = [node.name for node in self.plan.nodes if node.is_host]
        sends = {hosts[flow["src"]] for flow in self.plan.flows}
        for node in self.plan.own_nodes:
            lines = []
            own = [node.address, *node.aliases] if node.address else []
            ip = self.plan.ip
            lines += [f"address add {address}/{ip.prefix} dev lo{ip.address_settings}" for address in own]
            for end in self.plan.ends():
                if end.node == node.name:
                    there = macs[end.peer]
                    lines.append(
                        f"neigh replace {end.peer_address} lladdr {there} dev {end.interface} nud permanent"
                    )
            for address, hops in node.routes.items():
                via = [f"via {end.peer_address} dev {end.interface} onlink" for end in hops]
                source = f" src {node.address}" if node.address else ""
                extra = f"{source} {self.plan.route_settings}" if node.address else ""
                if len(via) == 1:
                    lines.append(f"route add {address}/{ip.prefix} {via[0]}{extra}")
                else:
                    lines.append(
                        f"route add {address}/{ip.prefix}{extra} " + " ".join(f"nexthop {one}" for one in via)
                    )
            if node.aliases:
                lines.append(f"mptcp limits set subflow {len(node.aliases)} add_addr_accepted 0")
                # A host that has endpoints opens subflows of what it receives too, which the sender refuses.
                endpoints = node.aliases if node.name in sends else []
                lines += [f"mptcp endpoint add {address} subflow" for address in endpoints]
            run(tool("ip"), "-n", self.name(node.name), "-batch", "-", text="\n".join(lines) + "\n")

    def lost_inside(self) -> dict[str, int]:
        """Return how many packets of IPv4 each switch received that it neither forwarded nor took itself.

        No port has them among its drops: a packet that was sent too often, or from or to no address.
        """
        found = {}
        for node in self.plan.own_nodes:
            if not node.is_host:
                with inside(self.name(node.name)):
                    names, values = Path("/proc/thread-self/net/snmp").read_text().split("\n")[:2]
                counts = dict(zip(names.split()[1:], map(int, values.split()[1:]), strict=True))
                found[node.name] = counts["InReceives"] - counts["ForwDatagrams"] - counts["InDelivers"]
        return {name: count for name, count in found.items() if count > 0}

    def remove(self) -> None:
        """Remove all of it; safe to call again, and while it is half built."""
        with uninterrupted():
            remove(self.id, self.namespaces)


def record(number: str, namespaces: dict[str, int], **more: Any) -> None:
    """Write down what is about to be made under an id, so that `clean` finds it if this process is killed.

    `more`: ``scenario``, ``keep`` (it outlives this process), ``folder`` (see `folder_for_a_while`).
    """
    RECORDS.mkdir(mode=0o755, parents=True, exist_ok=True)
    who = {"id": number, "pid": os.getpid(), "started": started(os.getpid())}
    write_whole(RECORDS / f"{number}.json", json.dumps({**who, **more, "namespaces": namespaces}))


@contextlib.contextmanager
def folder_for_a_while() -> Iterator[Path]:
    """Have an empty folder that is removed however the block ends, or by `clean`."""
    number = secrets.token_hex(3)
    folder = Path(tempfile.gettempdir(), FOLDER + number)
    record(number, {}, folder=str(folder))
    try:
        folder.mkdir(mode=0o700)
        yield folder
    finally:
        with uninterrupted():
            remove(number, {}, str(folder))


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold signals back until the block is done, so that a second Ctrl-C cannot interrupt it.

    By handlers: a mask is of one thread, and a signal that this one does not take is given to another one.
    """
    came: list[int] = []
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for one in dict.fromkeys(came):
            signal.raise_signal(one)


def remove(number: str, namespaces: dict[str, int], folder: str | None = None) -> list[str]:
    """Remove namespaces that are ours by inode, the processes in them, and a folder; return their names."""
    removed = []
    for name, inode in namespaces.items():
        path = NAMED / name
        try:
            found = os.stat(path).st_ino
        except FileNotFoundError:
            continue
        # 0: killed while the namespace was made; then its name, which has our id, is all there is.
        if inode not in (0, found):
            continue
        _end_processes(found)
        subprocess.run([tool("ip"), "netns", "delete", name], capture_output=True, start_new_session=True)
        removed.append(name)
    left = [name for name in removed if (NAMED / name).exists()]
    if left:
        raise RunFailed(f"lab: could not remove {', '.join(left)}: `ip netns delete` them by hand")
    removed += dctcp.unregister(number)
    if folder and Path(folder).name == FOLDER + number and Path(folder).exists():
        shutil.rmtree(folder, ignore_errors=True)
        removed.append(folder)
    (RECORDS / f"{number}.json").unlink(missing_ok=True)
    return removed


def _end_processes(inode: int) -> None:
    """End every process that is in a namespace of ours."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal() or int(folder.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if os.stat(folder / "ns/net").st_ino == inode:
                os.kill(int(folder.name), signal.SIGKILL)


def started(pid: int) -> str | None:
    """Return when a process started, which tells it from a later one of the same number; None if it ended."""
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        # A killed one may have its number until its parent asks how it ended.
        return None if state in ("Z", "X") else rest[18]
    except (OSError, ValueError, IndexError):
        return None


def records() -> list[dict[str, Any]]:
    """Return the runs of the lab that have something in this machine, each with ``alive``."""
    found = []
    for path in sorted(RECORDS.glob("*.json")) if RECORDS.is_dir() else []:
        try:
            one = json.loads(path.read_text())
            one["namespaces"].items()
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            continue
        one["alive"] = one.get("started") is not None and started(int(one.get("pid", 0))) == one["started"]
        found.append(one)
    return found


def clean(of: Iterable[dict[str, Any]]) -> list[str]:
    """Remove what these runs left; return the names of it."""
    return [name for one in of for name in remove(str(one["id"]), one["namespaces"], one.get("folder"))]


def clean_unrecorded() -> list[str]:
    """Remove congestion controls that carry the id of no recorded run; return their names."""
    known = {str(one["id"]) for one in records()}
    return [name for run in dctcp.registered() if run not in known for name in dctcp.unregister(run)]


def mac(namespace: str, interface: str) -> str:
    """Return the address of an interface, as text."""
    with inside(namespace), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        found = fcntl.ioctl(sock, 0x8927, struct.pack("16s24x", interface.encode()))
    return found[18:24].hex(":")
