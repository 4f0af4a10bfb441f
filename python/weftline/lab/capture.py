"""The process that keeps the headers of what arrives at one node, or frames of some of its links.

Run as a file of its own, without the package, inside the node's namespace; its arguments are which frames it
keeps and the number of the open file that it writes. After the answer ``ready`` it keeps every IPv6 frame
that has hop-by-hop options ("traces") or every IPv4 frame ("ipv4") that arrives, as a pcap file; or all of
some links ("links"), each after a `FRAME`. At SIGTERM it writes what the kernel still
holds, prints how many frames it kept and how many it lost as a line of JSON, and ends.

Of links its input has a line of JSON: `kept`, bytes of each frame; `bytes`, after which nothing more is
written; and `links`, by interface those that leave by it ("out") and arrive at it ("in"), as [number, ns a
byte, further ns]: a frame began that long before it was seen.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from typing import Any

TRACES, IPV4, LINKS = "traces", "ipv4", "links"
FRAME = struct.Struct("=qHII")
"""When it began (ns), number of its link, its length, bytes of it that follow."""
LONGEST = 1 << 16
ETHERTYPES = {TRACES: 0x86DD, IPV4: 0x0800}
ETH_P_ALL = 3
"""Programs of switches send frames on before a socket of their EtherType gets them."""
SOL_PACKET, PACKET_STATISTICS = 263, 6
SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35
BUFFER = 64 << 20
KEPT = 14 + 40 + 256 + 60
"""Bytes: Ethernet, IPv6, the longest options, the longest TCP header."""
FIRST_BYTES = 21
"""A frame has the kind of its first extension header in the last of these."""
LAST_WAIT_S = 0.05


class Capture:
    """The socket and the file."""

    def __init__(self, keeps: str, file: int) -> None:
        self.file = os.fdopen(file, "wb", buffering=1 << 20)
        self.prepare(keeps)
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
        self.sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.sock.setblocking(False)
        self.frames = 0

    def prepare(self, keeps: str) -> None:
        """Write what the file begins with."""
        self.traces = keeps == TRACES
        self.ethertype = struct.pack(">H", ETHERTYPES[keeps])
        self.file.write(struct.pack("=IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, KEPT, 1))

    def take(self) -> bool:
        """Keep one frame; return whether there was one."""
        try:
            frame, ancillary, _, address = self.sock.recvmsg(KEPT, 64, socket.MSG_TRUNC)
        except BlockingIOError:
            return False
        other = address[2] == socket.PACKET_OUTGOING or frame[12:14] != self.ethertype
        if other or len(frame) < FIRST_BYTES or (self.traces and frame[FIRST_BYTES - 1] != 0):
            return True
        seconds, ns = divmod(seen(ancillary), 10**9)
        length = 54 + struct.unpack_from(">H", frame, 18)[0] if self.traces else length_of(frame)
        self.file.write(struct.pack("=IIII", seconds, ns, len(frame), length) + frame)
        self.frames += 1
        return True

    def end(self) -> None:
        """Keep what is left, and print what was kept."""
        until = time.monotonic() + LAST_WAIT_S
        while self.take() or time.monotonic() < until:
            pass
        _, lost = struct.unpack("II", self.sock.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        self.file.flush()
        print(json.dumps({"frames": self.frames, "lost": lost}), flush=True)


class Links(Capture):
    """The same for links: all frames, in both directions."""

    def __init__(self, file: int, task: dict[str, Any]) -> None:
        self.out = {name: sides["out"] for name, sides in task["links"].items() if "out" in sides}
        self.into = {name: sides["in"] for name, sides in task["links"].items() if "in" in sides}
        self.kept, self.room = task["kept"] or KEPT, task["bytes"]
        super().__init__(LINKS, file)

    def prepare(self, keeps: str) -> None:
        """Nothing stands before the first frame."""

    def take(self) -> bool:
        """Keep one frame; return whether there was one."""
        try:
            frame, ancillary, _, address = self.sock.recvmsg(LONGEST, 64)
        except BlockingIOError:
            return False
        sides = self.out if address[2] == socket.PACKET_OUTGOING else self.into
        if (link := sides.get(address[0])) is None or self.room <= 0:
            return True
        number, ns_a_byte, more = link
        began = seen(ancillary) - round(ns_a_byte * len(frame)) - more
        kept = frame[: self.kept]
        self.file.write(FRAME.pack(began, number, len(frame), len(kept)) + kept)
        self.room -= len(kept)
        self.frames += 1
        return True


def seen(ancillary: list[tuple[int, int, bytes]]) -> int:
    """Return when the kernel saw a frame, in ns."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
            seconds, ns = struct.unpack_from("qq", data)
            return int(seconds) * 10**9 + int(ns)
    return time.time_ns()


def length_of(frame: bytes) -> int:
    """Return the length of an IPv4 frame by its header."""
    return 14 + int(struct.unpack_from(">H", frame, 16)[0])


def main() -> None:
    """Capture until the end."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: ending.append(1))
    keeps, file = sys.argv[1], int(sys.argv[2])
    capture = Links(file, json.loads(sys.stdin.readline())) if keeps == LINKS else Capture(keeps, file)
    print("ready", flush=True)
    while not ending:
        select.select([capture.sock], [], [], 0.1)
        while not ending and capture.take():
            pass
    capture.end()


if __name__ == "__main__":
    main()
