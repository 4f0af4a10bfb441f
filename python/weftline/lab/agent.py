"""The process of one host: it sends the host's flows, receives those of others, and says when each was done.

Run as a file of its own, without the package, inside the host's namespace. The first line of standard input
is the path of the native module, which receives; the second is the task (JSON). After the answer ``ready`` a
third line gives time zero (CLOCK_REALTIME, ns). Every finished flow is a line of JSON on standard output. A
flow ends when the kernel's time stamp says that its last byte was acknowledged, as in the simulator. At the
end of the scenario, or when standard input ends, each flow that has begun and not finished is a line too, and
its host sends no more.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import heapq
import importlib.machinery
import importlib.util
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import threading
import time
from types import ModuleType
from typing import Any

CHUNK = bytes(1 << 16)
SO_TIMESTAMPING = 37
STAMP = 1 << 4 | 1 << 7 | 1 << 9 | 1 << 11
"""Software stamps, numbered by byte, when the byte was acknowledged, without the payload."""
TCP_CONGESTION = 13
IPPROTO_MPTCP, SOL_MPTCP = 262, 284
MPTCP_INFO, MPTCP_TCPINFO, MPTCP_SUBFLOW_ADDRS = 1, 2, 3
MPTCP_ACKNOWLEDGED = 72
"""Where the kernel's record of a multipath connection (mptcp_info) has the bytes that were acknowledged."""
ENDS_BYTES = 256
"""Of a subflow's two addresses (mptcp_subflow_addrs)."""
INFO_BYTES = 256
"""Of the kernel's record of a connection (tcp_info), what is read."""
COUNTS = {"retransmitted": (100, "I"), "sent": (156, "I"), "timeouts": (240, "H")}
"""Where that record has packets with data that were sent again, all of them, and timeouts."""
ACKNOWLEDGED = 120
"""Where the kernel's record of a connection (tcp_info) has the bytes that were acknowledged."""
SIOCOUTQ = 0x5411
MSG_ERRQUEUE = 0x2000
POLL_S = 0.001
"""How often the queue of a multipath socket is looked at, which gives no stamps."""
SUBFLOWS_NS = 10_000_000
"""How often a multipath connection is queried for its subflows, until all are known."""


class Flow:
    """One flow that this host sends."""

    def __init__(self, task: dict[str, Any], now: int, sock: socket.socket) -> None:
        self.id, self.size, self.multipath = task["id"], task["size"], task["multipath"]
        self.plain = False
        """A multipath connection whose first packets were lost: the kernel continues with TCP (RFC 8684)."""
        self.started_ns, self.late_ns = now, 0
        self.sock, self.sent, self.connected, self.stamped = sock, 0, False, False
        self.subflows: set[tuple[str, int]] = set()
        self.asked_ns = 0


class Agent:
    """The loop over sockets and start times."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.task = task
        self.epoll = select.epoll()
        self.flows: dict[int, Flow] = {}
        self.receiving = select.epoll()
        """Connections that this host accepted. The native module receives from them and closes them."""
        self.listeners = {}
        self.ended = False
        self.family = socket.AF_INET6 if ":" in task["address"] else socket.AF_INET
        for port, congestion in task["listens"]:
            protocol = IPPROTO_MPTCP if task["multipath"] else 0
            listener = socket.socket(self.family, socket.SOCK_STREAM, protocol)
            if congestion:
                # What a receiver echoes of marks is up to its congestion control.
                listener.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, congestion.encode())
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((task["address"], port))
            listener.listen(4096)
            listener.setblocking(False)
            self.listeners[listener.fileno()] = listener
            self.epoll.register(listener, select.EPOLLIN)

    def _report(self, now: int) -> None:
        """Print how many bytes of every unfinished flow were acknowledged."""
        found = []
        for flow in self.flows.values():
            if (acknowledged := self._acknowledged(flow)) is not None:
                found.append((flow.id, acknowledged))
        if found:
            print(json.dumps({"at_ns": now, "acknowledged": found}), flush=True)

    def _acknowledged(self, flow: Flow) -> int | None:
        """Return how many bytes of a flow were acknowledged; None: the kernel does not say."""
        # TCP's record of a multipath socket is that of its first subflow.
        several = flow.multipath and not flow.plain
        level, kind, at = (
            (SOL_MPTCP, MPTCP_INFO, MPTCP_ACKNOWLEDGED)
            if several
            else (socket.IPPROTO_TCP, socket.TCP_INFO, ACKNOWLEDGED)
        )
        try:
            info = flow.sock.getsockopt(level, kind, INFO_BYTES)
            found: int = struct.unpack_from("Q", info, at)[0]
        except (OSError, struct.error):
            return None
        # TCP counts its first packet, without data, as a byte.
        return min(max(found - (not several), 0), flow.size)

    def run(self, zero: int, native: ModuleType) -> None:
        """Send every flow; receive until the process is ended."""
        if self.listeners:
            receive, where = native.receive, self.receiving.fileno()
            threading.Thread(target=receive, args=[where], daemon=True).start()
        every = self.task.get("every_ns") or 0
        report_at = zero + every + (self.task.get("apart_ns") or 0)
        until = zero + self.task["until_ns"] if self.task.get("until_ns") else None
        due = [(zero + flow["start_ns"], number) for number, flow in enumerate(self.task["flows"])]
        heapq.heapify(due)
        self.epoll.register(sys.stdin, select.EPOLLIN)
        while not self.ended:
            now = time.time_ns()
            while due and due[0][0] <= now:
                at, number = heapq.heappop(due)
                self._start(self.task["flows"][number], at)
                now = time.time_ns()
            if every and now >= report_at:
                self._report(now)
                report_at += ((now - report_at) // every + 1) * every
            if until and now >= until:
                break
            next_ns = [
                *(at for at, _ in due[:1]),
                *([report_at] if every else []),
                *([until] if until else []),
            ]
            wait = (min(next_ns, default=now + 10**9) - now) / 1e9
            if any(flow.multipath for flow in self.flows.values()):
                wait = min(wait, POLL_S)
                self._look()
            # select, because epoll's own timeout has whole milliseconds.
            select.select([self.epoll], [], [], max(wait, 0))
            self._poll()
        self._poll()
        for flow in self.flows.values():
            self._tell_end(flow, None)
            # What was not sent yet is thrown away.
            flow.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            flow.sock.close()
        sys.stdin.read()

    def _poll(self) -> None:
        for number, events in self.epoll.poll(0):
            self._serve(number, events)

    def _start(self, task: dict[str, Any], due: int) -> None:
        try:
            self._connect(task, due)
        except OSError as error:
            # What this machine has no more of: descriptors, ports, memory.
            now, wrong = time.time_ns(), errno.errorcode.get(error.errno or 0, str(error))
            found = {"flow": task["id"], "start_ns": now, "finish_ns": None, "late_ns": now - due}
            print(json.dumps({**found, "wrong": wrong, "refused": True}), flush=True)

    def _connect(self, task: dict[str, Any], due: int) -> None:
        sock = socket.socket(self.family, socket.SOCK_STREAM, IPPROTO_MPTCP if task["multipath"] else 0)
        sock.setblocking(False)
        if options := self.task.get("options"):
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_HOPOPTS, bytes.fromhex(options))
        sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, task["congestion"].encode())
        flow = Flow(task, time.time_ns(), sock)
        flow.late_ns = flow.started_ns - due
        with contextlib.suppress(BlockingIOError):
            sock.connect((task["to"], task["port"]))
        print(json.dumps({"flow": flow.id, "port": sock.getsockname()[1]}), flush=True)
        self.flows[sock.fileno()] = flow
        self.epoll.register(sock, select.EPOLLOUT)

    def _serve(self, number: int, events: int) -> None:
        if number == sys.stdin.fileno():
            self.ended = True
        elif number in self.listeners:
            with contextlib.suppress(BlockingIOError):
                while True:
                    sock, _ = self.listeners[number].accept()
                    sock.setblocking(False)
                    self.receiving.register(sock.detach(), select.EPOLLIN)
        elif number in self.flows:
            try:
                self._send(self.flows[number], events)
            except OSError as error:
                self._end(self.flows[number], None, errno.errorcode.get(error.errno or 0, str(error)))

    def _send(self, flow: Flow, events: int) -> None:
        if events & select.EPOLLERR:
            self._stamps(flow)
            if flow.sock.fileno() < 0:
                return
        if not flow.connected and events & (select.EPOLLOUT | select.EPOLLHUP):
            if wrong := flow.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                raise OSError(wrong, os.strerror(wrong))
            flow.connected = True
            if not flow.multipath:
                flow.sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, STAMP)
        with contextlib.suppress(BlockingIOError):
            while flow.connected and flow.sent < flow.size:
                flow.sent += flow.sock.send(memoryview(CHUNK)[: flow.size - flow.sent])
        if flow.sent == flow.size:
            self.epoll.modify(flow.sock, 0)

    def _stamps(self, flow: Flow) -> None:
        """Read the stamps; that of the last byte ends the flow."""
        while True:
            try:
                _, ancillary, _, _ = flow.sock.recvmsg(1, 512, MSG_ERRQUEUE)
            except BlockingIOError:
                return
            at, byte = None, None
            for level, kind, data in ancillary:
                if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPING:
                    seconds, ns = struct.unpack_from("qq", data)
                    at = seconds * 10**9 + ns
                elif level in (socket.IPPROTO_IP, socket.IPPROTO_IPV6) and len(data) >= 16:
                    byte = struct.unpack_from("IBBBBII", data)[6]
            if at is not None and byte == (flow.size - 1) % 2**32 and flow.sent == flow.size:
                self._end(flow, at)
                return

    def _look(self) -> None:
        """Look for new subflows, and end the multipath flows whose bytes were all acknowledged."""
        now = time.time_ns()
        for flow in self.flows.values():
            few = len(flow.subflows) < self.task["subflows"] and not flow.plain
            if few and now - flow.asked_ns >= SUBFLOWS_NS:
                flow.asked_ns = now
                self._tell_subflows(flow)
        for flow in [flow for flow in self.flows.values() if flow.multipath and flow.sent == flow.size]:
            left = struct.unpack("i", fcntl.ioctl(flow.sock, SIOCOUTQ, b"\0" * 4))[0]
            if left == 0:
                self._end(flow, time.time_ns())

    def _tell_subflows(self, flow: Flow) -> None:
        """Print the addresses and ports of this host that a connection uses and that were not printed yet."""
        try:
            new = own_ends(flow.sock.fileno(), self.task["subflows"]) - flow.subflows
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP and not flow.plain:
                flow.plain = True
                print(json.dumps({"flow": flow.id, "plain": True}), flush=True)
            return
        flow.subflows |= new
        if new:
            print(json.dumps({"flow": flow.id, "subflows": sorted(new)}), flush=True)

    def _end(self, flow: Flow, at: int | None, wrong: str | None = None) -> None:
        if flow.multipath:
            self._tell_subflows(flow)
        self._tell_end(flow, at, wrong)
        self.epoll.unregister(flow.sock)
        del self.flows[flow.sock.fileno()]
        flow.sock.close()

    def _infos(self, flow: Flow) -> list[bytes]:
        """Return the kernel's record of a flow's connection, or of each subflow that it still has."""
        with contextlib.suppress(OSError):
            if flow.multipath and not flow.plain:
                try:
                    return of_subflows(flow.sock.fileno(), MPTCP_TCPINFO, self.task["subflows"], INFO_BYTES)
                except OSError as error:
                    if error.errno != errno.EOPNOTSUPP:  # else it continued with plain TCP
                        raise
            return [flow.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)]
        return []

    def _tell_end(self, flow: Flow, at: int | None, wrong: str | None = None) -> None:
        infos = self._infos(flow)
        counts = {
            name: sum(struct.unpack_from(form, info, place)[0] for info in infos)
            if infos and all(len(info) >= place + 4 for info in infos)
            else None
            for name, (place, form) in COUNTS.items()
        }
        now, acknowledged = time.time_ns(), flow.size if at else self._acknowledged(flow)
        print(
            json.dumps(
                {
                    "flow": flow.id,
                    "start_ns": flow.started_ns,
                    "finish_ns": at,
                    "late_ns": flow.late_ns,
                    "wrong": wrong,
                    "last": None if acknowledged is None else (at or now, acknowledged),
                    **counts,
                }
            ),
            flush=True,
        )


def of_subflows(sock: int, kind: int, count: int, size: int) -> list[bytes]:
    """Return a record of each subflow of a multipath socket, up to `count`, of `size` bytes at most."""
    head = struct.Struct("=4I")
    data = ctypes.create_string_buffer(head.size + count * size)
    head.pack_into(data, 0, head.size, 0, 0, size)
    length = ctypes.c_uint32(len(data))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.getsockopt(sock, SOL_MPTCP, kind, data, ctypes.byref(length)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    _, number, _, each = head.unpack_from(data, 0)
    places = range(head.size, head.size + min(number, count) * each, each)
    return [data.raw[at : at + each] for at in places]


def own_ends(sock: int, count: int) -> set[tuple[str, int]]:
    """Return this host's address and port of each subflow of a multipath socket, up to `count`."""
    found = set()
    for record in of_subflows(sock, MPTCP_SUBFLOW_ADDRS, count, ENDS_BYTES):
        family, port, address = struct.unpack_from("=HH4s", record)
        if family == socket.AF_INET:
            found.add((socket.inet_ntoa(address), socket.ntohs(port)))
    return found


def die_with_parent() -> None:
    """Let the kernel end this process when the one that started it is killed."""
    libc = ctypes.CDLL(None)
    libc.prctl(1, signal.SIGKILL)
    libc.prctl(29, 1)  # the shortest timer slack


def first_line() -> str:
    """Return the first line of standard input; without one the parent has ended, and so does this process."""
    return sys.stdin.readline() or sys.exit(1)


def native_module() -> ModuleType:
    """Load the native module from the path in the first line of standard input."""
    name, path = "_native", first_line().strip()
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def main() -> None:
    """Take the task, wait for time zero, work."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    native = native_module()
    agent = Agent(json.loads(first_line()))
    print("ready", flush=True)
    line = sys.stdin.readline()
    if not line.strip():
        return
    try:
        agent.run(int(line), native)
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        print(json.dumps({"stopped": f"it has {limit} connections open (ulimit -n)"}), flush=True)


if __name__ == "__main__":
    main()
