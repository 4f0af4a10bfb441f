"""The process that gives links their delay: it takes each frame off one interface, and later sends it.

Run as a file of its own, without the package, inside the namespace where links pass through. The kernel
stamps every frame as it arrives, so a frame leaves one delay after that however late it was read; how late
each frame left nevertheless is a histogram, printed as JSON when the process is ended. Rate and queue are not
here: they are those of the interface that the frame came from.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from agent import die_with_parent  # type: ignore[import-not-found]

SOL_PACKET, PACKET_STATISTICS, PACKET_IGNORE_OUTGOING = 263, 6, 23
SO_TIMESTAMPNS, SO_RCVBUFFORCE, SO_SNDBUFFORCE = 35, 33, 32
BUFFER = 1 << 24
ETH_P_ALL = 3
SHARE_NS = 1_000
"""Unit of the histogram: bucket k counts frames that left up to 2^k of it late."""


def open_end(name: str) -> socket.socket:
    """Return a socket that receives and sends frames at an interface."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
    sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, BUFFER)
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    sock.bind((name, ETH_P_ALL))
    sock.setblocking(False)
    return sock


class Relay:
    """Every link's two directions, in one queue by the time at which frames are due."""

    def __init__(self, wires: list[dict[str, Any]]) -> None:
        self.epoll = select.epoll()
        self.next: dict[int, tuple[socket.socket, socket.socket, int]] = {}
        for wire in wires:
            one, other = open_end(wire["a"]), open_end(wire["b"])
            for source, target in ((one, other), (other, one)):
                self.next[source.fileno()] = (source, target, wire["delay_ns"])
                self.epoll.register(source, select.EPOLLIN)
        self.due: list[tuple[int, int, socket.socket, bytes]] = []
        self.count, self.refused, self.late = 0, 0, [0] * 40
        self.ended = False

    def run(self) -> None:
        """Pass frames on until SIGTERM."""
        due = self.due
        while not self.ended:
            now = time.time_ns()
            while due and due[0][0] <= now:
                at, _, target, frame = heapq.heappop(due)
                try:
                    target.send(frame)
                except OSError:
                    self.refused += 1
                now = time.time_ns()
                self.late[min((max(now - at, 0) // SHARE_NS).bit_length(), 39)] += 1
            wait = (due[0][0] - now) / 1e9 if due else 0.5
            select.select([self.epoll], [], [], max(wait, 0))
            for number, _ in self.epoll.poll(0):
                self._take(*self.next[number])

    def _take(self, source: socket.socket, target: socket.socket, delay_ns: int) -> None:
        with contextlib.suppress(BlockingIOError, OSError):
            for _ in range(64):
                frame, ancillary, _, _ = source.recvmsg(65536, 64)
                at = time.time_ns()
                for level, kind, data in ancillary:
                    if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
                        seconds, ns = struct.unpack_from("qq", data)
                        at = seconds * 10**9 + ns
                self.count += 1
                heapq.heappush(self.due, (at + delay_ns, self.count, target, frame))

    def result(self) -> dict[str, Any]:
        """Return what was passed on, how late, and what was lost here."""
        missed = 0
        for source, _, _ in self.next.values():
            with contextlib.suppress(OSError):
                missed += struct.unpack("II", source.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
        return {
            "frames": self.count,
            "missed": missed,
            "refused": self.refused,
            "late": self.late,
            "unit_ns": SHARE_NS,
        }


def main() -> None:
    """Open every wire, then pass frames on."""
    if "stays" not in sys.argv:
        die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    relay = Relay(json.loads(sys.stdin.readline()))
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))

    def end(*_: object) -> None:
        relay.ended = True

    signal.signal(signal.SIGTERM, end)
    print("ready", flush=True)
    relay.run()
    print(json.dumps(relay.result()), flush=True)


if __name__ == "__main__":
    main()
