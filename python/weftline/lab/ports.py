"""The rate and the queue of a port, and no offloads.

`set_up` is the one place where a port is made; what else acts at a port (programs at its ingress and egress)
is attached there.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import struct
from dataclasses import dataclass

from weftline.errors import RunFailed

BURST_PACKETS = 2
BANDS = 3
"""Of pfifo_fast, each of which holds as many packets as the device's queue is long."""
BURST = (
    "a port of the kernel gives its link up to two packets at once (burst of tbf), which pass it one after "
    "the other: its queue shows one packet fewer, and takes one more"
)
"""What engine and lab do not have alike at such a port."""
SIOCETHTOOL = 0x8946
ETHERNET_BYTES = 14
# Command to set, command to get, and what it is.
OFFLOADS = (
    (0x1F, 0x1E, "TCP segmentation"),
    (0x24, 0x23, "generic segmentation"),
    (0x2C, 0x2B, "generic receive"),
    (0x17, 0x16, "transmit checksum"),
)


@dataclass(frozen=True, kw_only=True)
class Port:
    """Rate and queue of an interface that sends."""

    rate_bps: int
    queue_bytes: int
    """Most bytes that wait; 0: `queue_packets` counts."""
    queue_packets: int
    mtu: int
    is_switch: bool
    bands: bool = False
    """Frames of control priority go first; `queue_packets` is the limit of each band."""

    @property
    def burst_bytes(self) -> int:
        """Bytes that the port gives to its link at once after a pause."""
        return BURST_PACKETS * (self.mtu + ETHERNET_BYTES)

    @property
    def times(self) -> dict[str, int]:
        """What a process needs to give frames of this port their time on the link: length / rate each."""
        return {"rate_bps": self.rate_bps, "burst_bytes": self.burst_bytes}


def set_up(namespace: str, interface: str, port: Port) -> None:
    """Give an interface its rate and its queue."""
    from weftline.lab.network import run, tool

    frames = port.queue_packets * (port.mtu + ETHERNET_BYTES)
    # tbf counts what waits; the packet on the wire of the simulator is the tokens that were taken here.
    limit = port.queue_bytes or frames
    at = (tool("tc"), "-n", namespace, "qdisc", "add", "dev", interface)
    rate = ("rate", f"{port.rate_bps}bit", "burst", str(port.burst_bytes), "limit", str(limit))
    run(*at, "root", "handle", "1:", "tbf", *rate)
    if port.bands:
        # The limit of a band of pfifo_fast is that of its device.
        run(tool("ip"), "-n", namespace, "link", "set", interface, "txqueuelen", str(port.queue_packets))
        run(*at, "parent", "1:1", "handle", "10:", "pfifo_fast")
    elif port.queue_packets and not port.queue_bytes:
        run(*at, "parent", "1:1", "handle", "10:", "pfifo", "limit", str(port.queue_packets))


def no_offloads(interface: str) -> None:
    """Switch offloads off, so that a packet of the kernel is a packet on the wire.

    Raises
    ------
    RunFailed
        If one cannot be switched off: digests, queues and marks would be those of bundles of packets.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for setting, getting, what in OFFLOADS:
            try:
                _ethtool(sock, interface, setting, 0)
                left = _ethtool(sock, interface, getting, 0)
            except OSError as error:
                if error.errno == errno.EOPNOTSUPP:
                    continue
                raise
            if left:
                raise RunFailed(f"lab: {what} offload of {interface} cannot be switched off")


def _ethtool(sock: socket.socket, interface: str, command: int, value: int) -> int:
    import ctypes

    data = ctypes.create_string_buffer(struct.pack("II", command, value), 8)
    request = struct.pack("16sP", interface.encode(), ctypes.addressof(data)).ljust(40, b"\0")
    fcntl.ioctl(sock, SIOCETHTOOL, request)
    return struct.unpack("II", data.raw)[1]


def use_every_core(namespace: str) -> None:
    """Let every core receive for the interfaces of a namespace, flow by flow.

    Else a frame is received by the core whose process has sent it, which for all links with a delay is the
    core of one process.
    """
    from weftline.lab.network import run, tool

    mask = f"{sum(1 << core for core in os.sched_getaffinity(0)):x}"
    groups = ",".join(mask[max(end - 8, 0) : end] for end in range(len(mask) % 8 or 8, len(mask) + 1, 8))
    # The tool shows the namespace's own interfaces under /sys. A kernel without this has no such files.
    each = "for queue in /sys/class/net/*/queues/rx-0/rps_cpus"
    write = f"{each}; do if [ -e $queue ]; then echo {groups} > $queue; fi; done"
    run(tool("ip"), "netns", "exec", namespace, "/bin/sh", "-c", write)
