"""Counters of the kernel's queueing disciplines: what waits, what was sent, what was dropped."""

from __future__ import annotations

import errno
import socket
import struct
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from weftline.lab.network import Network, inside

NETLINK_ROUTE, RTM_NEWQDISC, RTM_GETQDISC, NLMSG_DONE, NLM_F_DUMP, NLM_F_REQUEST = 0, 36, 38, 3, 0x300, 1
TCA_STATS2, TCA_STATS_BASIC, TCA_STATS_QUEUE = 7, 1, 3
TC_H_ROOT = 0xFFFFFFFF


@dataclass(frozen=True, kw_only=True)
class Counters:
    """One interface's discipline at a moment."""

    sent_bytes: int
    sent_packets: int
    waiting_bytes: int
    waiting_packets: int
    drops: int


def read(sock: socket.socket) -> dict[int, Counters]:
    """Return the counters of the roots in the namespace of a netlink socket, by the interface's index."""
    sock.send(struct.pack("=IHHII", 36, RTM_GETQDISC, NLM_F_REQUEST | NLM_F_DUMP, 1, 0) + bytes(20))
    found: dict[int, Counters] = {}
    while True:
        data = sock.recv(1 << 18)
        at = 0
        while at + 16 <= len(data):
            length, kind = struct.unpack_from("=IH", data, at)
            if kind == NLMSG_DONE or length < 16:
                return found
            if kind == RTM_NEWQDISC:
                index, _, parent = struct.unpack_from("=iII", data, at + 20)
                stats = _attributes(data, at + 36, at + length).get(TCA_STATS2)
                if parent == TC_H_ROOT and stats:
                    inner = _attributes(stats, 0, len(stats))
                    sent, packets = struct.unpack_from("=QI", inner[TCA_STATS_BASIC])
                    waiting, backlog, drops = struct.unpack_from("=III", inner[TCA_STATS_QUEUE])
                    found[index] = Counters(
                        sent_bytes=sent,
                        sent_packets=packets,
                        waiting_bytes=backlog,
                        waiting_packets=waiting,
                        drops=drops,
                    )
            at += (length + 3) & ~3


def _attributes(data: bytes, at: int, end: int) -> dict[int, bytes]:
    found = {}
    while at + 4 <= end:
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4:
            break
        found[kind & 0x3FFF] = data[at + 4 : at + length]
        at += (length + 3) & ~3
    return found


@dataclass
class Sampler:
    """A thread that reads all queues at a fixed interval from time zero."""

    network: Network
    every_ns: int | None
    rows: list[tuple[int, str, int]] = field(default_factory=list)
    """Time since zero, port, bytes."""
    missed: int = 0
    """Moments that passed while it was late."""

    def __post_init__(self) -> None:
        self._sockets: list[tuple[socket.socket, Mapping[int, str]]] = []
        self._end = threading.Event()
        self._thread: threading.Thread | None = None
        by_node: dict[str, dict[str, str]] = {}
        ends = self.network.plan.ends()
        own = self.network.plan.engine_ports
        for end in (end for end in ends if not (own and end.port.is_switch)):
            by_node.setdefault(end.node, {})[end.interface] = end.entity
        for node, entities in by_node.items():
            with inside(self.network.name(node)):
                sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_ROUTE)
                self._sockets.append((sock, {socket.if_nametoindex(name): e for name, e in entities.items()}))

    def start(self, zero_ns: int) -> None:
        """Begin at time zero, if the scenario asks for series."""
        if self.every_ns:
            self._thread = threading.Thread(target=self._work, args=(zero_ns, self.every_ns), daemon=True)
            self._thread.start()

    def _work(self, zero_ns: int, every_ns: int) -> None:
        tick = 1
        while not self._end.wait(max(zero_ns + tick * every_ns - time.time_ns(), 0) / 1e9):
            for sock, names in self._sockets:
                for index, found in read(sock).items():
                    if index in names:
                        self.rows.append((time.time_ns() - zero_ns, names[index], found.waiting_bytes))
            now = (time.time_ns() - zero_ns) // every_ns + 1
            self.missed += max(now - tick - 1, 0)
            tick = max(now, tick + 1)

    def stop(self) -> dict[str, Counters]:
        """End the series and return the last counters by port."""
        self._end.set()
        if self._thread:
            self._thread.join()
        last = {}
        for sock, names in self._sockets:
            try:
                last.update({names[i]: found for i, found in read(sock).items() if i in names})
            except OSError as error:
                if error.errno != errno.EBADF:
                    raise
            sock.close()
        self._sockets = []
        return last
