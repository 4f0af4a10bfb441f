"""`weftline collect --doctor`: what this machine allows a collector."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

CAP_NET_ADMIN, CAP_NET_RAW = 12, 13


def report(interfaces: Sequence[str]) -> str:
    """Return a line for each finding: name, state, and what to do about it."""
    found = [_buffers(), _capability(CAP_NET_RAW, "interfaces", "--interface"), _hash_policy()]
    found += [_interface(name) for name in interfaces]
    found += [_tool("prometheus", "the test of the dashboard"), _tool("tshark", "the test of the dissector")]
    return "\n".join(f"{name:<20} {state:<8} {text}" for name, state, text in found)


def _number(path: str) -> int | None:
    try:
        return int(Path(path).read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def _has(capability: int) -> bool:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return False
    held = next((int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")), 0)
    return bool(held >> capability & 1)


def _buffers() -> tuple[str, str, str]:
    largest = _number("/proc/sys/net/core/rmem_max")
    if _has(CAP_NET_ADMIN):
        return "receive buffers", "ok", "32 MiB a socket (CAP_NET_ADMIN)"
    if largest is None:
        return "receive buffers", "unknown", "/proc/sys/net/core/rmem_max cannot be read"
    state = "ok" if largest >= 32 << 20 else "small"
    return (
        "receive buffers",
        state,
        f"{largest:,} bytes; to allow 32 MiB: sysctl -w net.core.rmem_max=33554432",
    )


def _capability(number: int, name: str, option: str) -> tuple[str, str, str]:
    if _has(number):
        return name, "ok", f"{option} can be used"
    return name, "missing", f"{option} needs CAP_NET_RAW: run as root, or with AmbientCapabilities in systemd"


def _hash_policy() -> tuple[str, str, str]:
    policy = _number("/proc/sys/net/ipv6/fib_multipath_hash_policy")
    if policy is None:
        return "flow labels", "unknown", "no IPv6 routing"
    if policy == 1:
        return "flow labels", "ok", "routes are chosen by ports, not by the flow label"
    text = "a digest in the flow label changes the route here: sysctl -w net.ipv6.fib_multipath_hash_policy=1"
    return "flow labels", "unsafe", text


def _interface(name: str) -> tuple[str, str, str]:
    if not os.path.exists(f"/sys/class/net/{name}"):
        known = ", ".join(sorted(os.listdir("/sys/class/net")))
        return name, "missing", f"no such interface; there are {known}"
    up = Path(f"/sys/class/net/{name}/operstate").read_text().strip()
    return name, "ok" if up in ("up", "unknown") else "down", f"state {up}"


def _tool(name: str, used_for: str) -> tuple[str, str, str]:
    place = shutil.which(name)
    return name, "ok" if place else "missing", place or f"only {used_for} needs it"
