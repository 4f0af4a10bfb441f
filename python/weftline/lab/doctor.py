"""What this kernel and this user can do for the lab, found by trying, and how to get what is missing."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from weftline.errors import InputError, RunFailed
from weftline.lab import balancers, dctcp, internet, ioam, lateness, stamps

IPV6, IOAM = "IPv6", "IOAM"
"""Findings without which some runs are not possible; see `require`."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line of the diagnosis."""

    name: str
    state: str
    """``ok``, ``missing`` (what needs it cannot be had, the rest can) or ``problem`` (nothing can run)."""
    text: str


def congestion_controls() -> list[str]:
    """Return the congestion controls that this kernel has now."""
    try:
        return Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    except OSError:
        return []


def findings(*, measure: bool = True) -> list[Finding]:
    """Look at this machine; with `measure`, also at how late its processes run."""
    found = [_linux(), _root()]
    ip, tc = _tool("ip"), _tool("tc")
    found += [_program("ip", ip), _program("tc", tc), _arrow()]
    if all(one.state == "ok" for one in found):
        found += _tried(str(ip), str(tc))
    found += [_congestion(), _dctcp(tries=measure), _multipath(), *_bpf()]
    if measure:
        found.append(_lateness())
    return found


def can_run(found: list[Finding]) -> bool:
    """Return whether scenarios can be run here."""
    return all(one.state != "problem" for one in found)


def require(*also: str) -> None:
    """Raise InputError with what is missing if nothing can run here; quick, and it leaves nothing.

    `also`: findings that must not be missing either.
    """
    found = findings(measure=False)
    wrong = [one for one in found if one.state == "problem" or (one.state == "missing" and one.name in also)]
    if wrong:
        raise InputError("\n".join(f"the lab cannot run here: {one.name}: {one.text}" for one in wrong))


def as_json(found: list[Finding]) -> dict[str, Any]:
    """Return all for programs."""
    return {"can_run": can_run(found), "findings": [asdict(one) for one in found]}


def _tool(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/sbin")


def _linux() -> Finding:
    import platform

    if platform.system() != "Linux":
        return Finding(
            name="kernel", state="problem", text="network namespaces need Linux: use a virtual machine"
        )
    return Finding(name="kernel", state="ok", text=platform.release())


def _root() -> Finding:
    if os.geteuid() != 0:
        text = f"you are user {os.geteuid()}; namespaces and rates of links need root: sudo weftline lab ..."
        return Finding(name="root", state="problem", text=text)
    return Finding(name="root", state="ok", text="namespaces and links can be made")


def _program(name: str, path: str | None) -> Finding:
    if path is None:
        return Finding(name=name, state="problem", text="apt install iproute2")
    return Finding(name=name, state="ok", text=path)


def _arrow() -> Finding:
    from importlib import metadata

    try:
        return Finding(name="pyarrow", state="ok", text=metadata.version("pyarrow"))
    except metadata.PackageNotFoundError:
        return Finding(
            name="pyarrow", state="problem", text="writes the tables of a run: pip install pyarrow"
        )


def _failure(*command: str) -> str | None:
    """Return the first line of what a command that failed says, None of one that did not."""
    done = subprocess.run(command, capture_output=True, text=True, start_new_session=True)
    return None if done.returncode == 0 else (done.stderr.strip() or "failed").splitlines()[0]


def _tried(ip: str, tc: str) -> list[Finding]:
    """Make two namespaces with a link, try each thing in them, and remove them."""
    from weftline.lab import network

    number = secrets.token_hex(3)
    one, other = f"weftline-{number}-try1", f"weftline-{number}-try2"
    made = dict.fromkeys((one, other), 0)

    found = []
    network.record(number, made)
    try:
        wrong = _failure(ip, "netns", "add", one) or _failure(ip, "netns", "add", other)
        found.append(_try("namespaces", wrong, "a kernel with CONFIG_NET_NS"))
        if wrong:
            return found
        peer = ("peer", "name", "try1", "netns", other)
        wrong = _failure(ip, "-n", one, "link", "add", "try0", "type", "veth", *peer)
        found.append(_try("veth", wrong, "a kernel with CONFIG_VETH"))
        if wrong:
            return found
        at = (tc, "-n", one, "qdisc", "replace", "dev", "try0", "root")
        wrong = _failure(*at, "tbf", "rate", "10mbit", "burst", "3028", "limit", "100000")
        found.append(_try("tbf", wrong, "a kernel with CONFIG_NET_SCH_TBF (modprobe sch_tbf)"))
        for name in ("netem", "fq_codel", "red"):
            wrong = _failure(*at, name, *(("limit", "100000", "avpkt", "1500") if name == "red" else ()))
            text = "not used by the lab, which has its own delays and the simulator's disciplines"
            state, text = (
                ("missing", f"this kernel does not have it; {text}") if wrong else ("ok", f"there; {text}")
            )
            found.append(Finding(name=name, state=state, text=text))
        found += _tried_ipv6(ip, one)
    finally:
        with network.uninterrupted():
            network.remove(number, made)
    return found


def _tried_ipv6(ip: str, namespace: str) -> list[Finding]:
    """Set a namespace as the lab does for IPv6 and for IOAM, and give a socket an empty trace."""
    from weftline.lab.network import apply, inside

    def refused(settings: tuple[str, ...]) -> str | None:
        try:
            with inside(namespace):
                apply(settings)
        except OSError as error:
            return f"{error.filename or namespace}: {error.strerror}"
        return None

    def no_trace() -> str | None:
        try:
            with inside(namespace), socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as sock:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_HOPOPTS, ioam.header(ioam.MOST_SWITCHES))
        except OSError as error:
            return f"a socket takes no trace: {error.strerror}"
        return None

    wrong = refused((*internet.IPV6.settings, *internet.IPV6.forwarding))
    needs = "--ip 6 needs a kernel with CONFIG_IPV6 from 4.18 that was not started with ipv6.disable=1"
    text = (
        f"{wrong}; {needs}" if wrong else f"tried: --ip 6; labels do not choose next hops ({internet.POLICY})"
    )
    found = [Finding(name=IPV6, state="missing" if wrong else "ok", text=text)]
    wrong = wrong or refused(ioam.settings(1)) or no_trace()
    wrong = wrong or _failure(ip, "-n", namespace, "ioam", "namespace", "add", str(ioam.NAMESPACE))
    text = f"{wrong}; --ioam needs a kernel from 5.15 and iproute2 from 5.16" if wrong else "tried: --ioam"
    found.append(Finding(name=IOAM, state="missing" if wrong else "ok", text=text))
    trace = ("trace", "prealloc", "type", f"{ioam.FIELDS:#x}", "ns", str(ioam.NAMESPACE), "size", "16")
    route = ("route", "add", "fd00::/64", "encap", "ioam6", *trace, "dev", "try0")
    wrong = wrong or _failure(ip, "-n", namespace, "link", "set", "try0", "up")
    wrong = wrong or _failure(ip, "-n", namespace, "-6", *route)
    text = "not used by the lab, whose senders put the trace into their packets"
    text = f"{wrong}; needs CONFIG_IPV6_IOAM6_LWTUNNEL; {text}" if wrong else f"there; {text}"
    found.append(Finding(name="IOAM by routes", state="missing" if wrong else "ok", text=text))
    return found


def _try(name: str, wrong: str | None, remedy: str) -> Finding:
    if wrong and "not permitted" in wrong:
        remedy = "CAP_SYS_ADMIN and CAP_NET_ADMIN: run outside a restricted container"
    if wrong:
        return Finding(name=name, state="problem", text=f"{wrong}; needs {remedy}")
    return Finding(name=name, state="ok", text="tried")


def _congestion() -> Finding:
    have = congestion_controls()
    text = " ".join(have)
    if "cubic" not in have and "reno" not in have:
        return Finding(
            name="congestion controls", state="problem", text=f"{text or 'none'}; expected cubic or reno"
        )
    lacking = [name for name in ("reno", "cubic") if name not in have]
    if lacking:
        text += f"; without {', '.join(lacking)} (modprobe, where the kernel has modules)"
    return Finding(name="congestion controls", state="missing" if lacking else "ok", text=text)


def _dctcp(*, tries: bool) -> Finding:
    if dctcp.KIND in congestion_controls():
        return Finding(name="DCTCP", state="ok", text="the kernel's own")
    wrong = dctcp.problems({}, [], multipath=False)
    if tries and not wrong and os.geteuid() == 0:
        from weftline.lab import network

        number = secrets.token_hex(3)
        network.record(number, {})
        try:
            dctcp.Control.of({}).register(number)
        except RunFailed as error:
            wrong = [str(error)]
        finally:
            with network.uninterrupted():
                network.remove(number, {})
    tried = "tried: " if tries else ""
    text = "the kernel lacks it; " + ("; ".join(wrong) or f"{tried}a run registers programs as one")
    return Finding(name="DCTCP", state="missing" if wrong else "ok", text=text)


def _multipath() -> Finding:
    if Path("/proc/sys/net/mptcp/enabled").exists():
        return Finding(name="MPTCP", state="ok", text="transport mptcp")
    return Finding(name="MPTCP", state="missing", text="transport mptcp needs a kernel with CONFIG_MPTCP")


def _bpf() -> list[Finding]:
    found = []
    for name, package in (("clang", "clang"), ("bpftool", "bpftool")):
        path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
        text = path or f"for programs in switches; apt install {package}"
        found.append(Finding(name=name, state="ok" if path else "missing", text=text))
    types = Path("/sys/kernel/btf/vmlinux")
    text = str(types) if types.exists() else "for programs in switches: a kernel with CONFIG_DEBUG_INFO_BTF"
    found.append(Finding(name="BTF", state="ok" if types.exists() else "missing", text=text))
    wanted = [stamps.objects(), *(module.objects() for module in balancers.PROGRAMMED.values())]
    lie = [next((path for path in paths if path.exists()), None) for paths in wanted]
    missing = [paths[0].name for paths, path in zip(wanted, lie, strict=True) if path is None]
    text = f"no {', '.join(missing)}: `make lab-objects` in the sources, or WEFTLINE_BPF"
    text = text if missing else " ".join(map(str, lie))
    found.append(Finding(name="programs", state="missing" if missing else "ok", text=text))
    return found


def _lateness() -> Finding:
    with lateness.awake() as awake:
        late = lateness.measure()
    p50, p99 = late.quantile_ns(0.5) or 0, late.quantile_ns(0.99) or 0
    shortest = p99 / lateness.SHARE_OF_DELAY
    cores = "with cores kept awake, as during a run" if awake else f"{lateness.CORES} cannot be opened"
    text = (
        f"processes wake up to {p50 / 1e6:g} ms late (p50), {p99 / 1e6:g} ms (p99; {cores}): links with a "
        f"delay of {shortest / 1e6:g} ms or more are honest, or [scale] by"
    )
    return Finding(name="lateness", state="ok", text=text)
