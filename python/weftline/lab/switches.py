"""The process that gives the switches of a run their programs and reads what these report.

Run as a file of its own, without the package. It has a mount namespace of its own with a file system for BPF
objects in it: however the process ends, that ends too, and the programs go with the switches' namespaces. The
task comes as one line of JSON on standard input; after ``ready`` it copies every record, after the number of
the switch that made it, to the file descriptor that the task names. A switch with a learner has its records
read by that instead, as soon as they come: a file next to this one with a class `Learner` that fills maps.
On SIGTERM it copies what is left, prints what the programs counted and ends.
"""

from __future__ import annotations

import ctypes
import errno
import importlib
import json
import mmap
import os
import select
import signal
import struct
import subprocess
import sys
from typing import Any

CALLS = {"x86_64": 321, "aarch64": 280, "riscv64": 280}
MAP_LOOKUP, MAP_UPDATE, OBJ_GET = 1, 2, 7
HERE = os.path.dirname(os.path.abspath(__file__))
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 0x40000
BUSY, DISCARD = 1 << 31, 1 << 30
RING = 1 << 20
"""Bytes of every ring buffer."""
PAUSE_S = 0.005

_libc = ctypes.CDLL(None, use_errno=True)


def bpf(command: int, attributes: bytes) -> int:
    """Call bpf(2)."""
    data = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    number = CALLS.get(os.uname().machine)
    if number is None:
        raise OSError(f"bpf(2) of a machine {os.uname().machine} is not known here")
    found = _libc.syscall(number, command, data, 128)
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found


def opened(path: str) -> int:
    """Return the descriptor of a map by its place."""
    name = ctypes.create_string_buffer(path.encode())
    return bpf(OBJ_GET, struct.pack("QII", ctypes.addressof(name), 0, 0))


def put(descriptor: int, key: bytes, value: bytes) -> None:
    """Set an entry."""
    place = ctypes.create_string_buffer(key, len(key))
    data = ctypes.create_string_buffer(value, len(value))
    pointers = (ctypes.addressof(place), ctypes.addressof(data))
    bpf(MAP_UPDATE, struct.pack("I4xQQQ", descriptor, *pointers, 0))


def got(descriptor: int, key: bytes, size: int) -> bytes | None:
    """Return an entry, None if it does not exist; `size`: bytes of its value."""
    place = ctypes.create_string_buffer(key, len(key))
    data = ctypes.create_string_buffer(size)
    pointers = (ctypes.addressof(place), ctypes.addressof(data))
    try:
        bpf(MAP_LOOKUP, struct.pack("I4xQQQ", descriptor, *pointers, 0))
    except OSError as error:
        if error.errno == errno.ENOENT:
            return None
        raise
    return data.raw


class Maps:
    """The maps of a switch by name, for its learner."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.places: dict[str, int] = {}

    def _place(self, name: str) -> int:
        if name not in self.places:
            self.places[name] = opened(f"{self.folder}/{name}")
        return self.places[name]

    def get(self, name: str, key: bytes, size: int) -> bytes | None:
        """Return an entry."""
        return got(self._place(name), key, size)

    def put(self, name: str, key: bytes, value: bytes) -> None:
        """Set an entry."""
        put(self._place(name), key, value)


def counted(descriptor: int, key: int) -> int:
    """Return a counter, which every core has its own of, as a sum."""
    with open("/sys/devices/system/cpu/possible") as file:
        cores = int(file.read().strip().replace(",", "-").split("-")[-1]) + 1
    place = ctypes.create_string_buffer(struct.pack("I", key), 4)
    data = ctypes.create_string_buffer(8 * cores)
    pointers = (ctypes.addressof(place), ctypes.addressof(data))
    bpf(MAP_LOOKUP, struct.pack("I4xQQQ", descriptor, *pointers, 0))
    return sum(struct.unpack(f"{cores}Q", data.raw))


class Ring:
    """A ring buffer of records."""

    def __init__(self, descriptor: int, switch: int, record: int, learner: Any = None) -> None:
        page = mmap.PAGESIZE
        self.descriptor, self.switch, self.record, self.at = descriptor, switch, record, 0
        self.learner = learner
        self.consumer = mmap.mmap(descriptor, page)
        self.data = mmap.mmap(descriptor, page + 2 * RING, prot=mmap.PROT_READ, offset=page)

    def take(self) -> bytes:
        """Return all records that are there, each after the switch's number."""
        page, found = mmap.PAGESIZE, []
        (end,) = struct.unpack_from("Q", self.data, 0)
        while self.at < end:
            place = page + self.at % RING
            (length,) = struct.unpack_from("I", self.data, place)
            if length & BUSY:
                break
            size = length & ~DISCARD
            if not length & DISCARD and size == self.record:
                record = self.data[place + 8 : place + 8 + size]
                if self.learner:
                    self.learner.take(record)
                else:
                    found.append(struct.pack("Q", self.switch) + record)
            self.at += (size + 15) & ~7
        struct.pack_into("Q", self.consumer, 0, self.at)
        return b"".join(found)


def run(*command: str, text: str | None = None) -> None:
    """Run a program; its words are ours if it fails."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, start_new_session=True)
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise OSError(f"{command[0]} {command[1]}: {' / '.join(lines[-3:])}")


def load(task: dict[str, Any]) -> tuple[list[Ring], list[tuple[str, int, list[str], int]]]:
    """Load and attach everything; return the ring buffers, and the maps of counters by name and switch."""
    root = task["root"]
    if _libc.unshare(CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "no mount namespace of its own")
    if _libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None):
        raise OSError(ctypes.get_errno(), "mounts cannot be made private")
    if _libc.mount(b"bpf", root.encode(), b"bpf", 0, None):
        raise OSError(ctypes.get_errno(), "a file system for BPF objects cannot be mounted")
    rings, counts, hooked = [], [], set()
    for number, one in enumerate(task["loads"]):
        programs, maps = (f"{root}/{kind}{number}" for kind in ("programs", "maps"))
        run(task["bpftool"], "prog", "loadall", one["object"], programs, "pinmaps", maps)
        places = {name: opened(f"{maps}/{name}") for name in {name for name, _, _ in one["maps"]}}
        for name, key, value in one["maps"]:
            put(places[name], bytes.fromhex(key), bytes.fromhex(value))
        lines = []
        for interface, way, place, program in one["filters"]:
            if (one["namespace"], interface) not in hooked:
                hooked.add((one["namespace"], interface))
                lines.append(f"qdisc add dev {interface} clsact")
            at = f"filter add dev {interface} {way} pref {place}"
            lines.append(f"{at} bpf da object-pinned {programs}/{program}")
        run(task["tc"], "-n", one["namespace"], "-batch", "-", text="\n".join(lines) + "\n")
        name, names = one["counts"]
        counts.append((name, one["switch"], names, opened(f"{maps}/{name}")))
        if one["ring"]:
            name, size = one["ring"]
            learner = importlib.import_module(one["learner"]).Learner(Maps(maps)) if one["learner"] else None
            rings.append(Ring(opened(f"{maps}/{name}"), one["switch"], size, learner))
        for descriptor in places.values():
            os.close(descriptor)
    return rings, counts


def main() -> None:
    """Load, read until the end is requested, report what was counted."""
    _libc.prctl(1, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    task = json.loads(sys.stdin.readline() or sys.exit(1))
    sys.path.insert(0, HERE)
    try:
        rings, counts = load(task)
    except OSError as error:
        print(f"{error.strerror or error}", flush=True)
        sys.exit(1)
    wakes = select.epoll()
    for ring in rings:
        if ring.learner:
            wakes.register(ring.descriptor, select.EPOLLIN)
    print("ready", flush=True)
    with os.fdopen(task["to"], "wb", closefd=False) as out:
        while True:
            last = bool(ended)
            for ring in rings:
                out.write(ring.take())
            if last:
                break
            # Records with a learner cut the pause short.
            select.select([wakes], [], [], PAUSE_S)
    found = [
        (name, switch, {key: counted(place, n) for n, key in enumerate(names)})
        for name, switch, names, place in counts
    ]
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
