"""Both versions of IP in the lab: addresses, settings of namespaces, and what one of them cannot carry.

The simulator has no addresses, so the version is chosen with the run (`weftline lab run --ip 6`). With IPv6
the links carry nothing but what hosts send: interfaces have no addresses of their own, neighbours are fixed,
and nothing listens for groups or routers.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any

from weftline.errors import InputError

SMALLEST_MTU = 1280
"""Below this Linux has no IPv6 on an interface (RFC 8200, section 5)."""
MAPPED = 0xFFFF << 32
"""An IPv4 address as programs of switches have it: ::ffff:a.b.c.d."""


@dataclass(frozen=True, kw_only=True)
class Internet:
    """A version of IP."""

    version: int
    header_bytes: int
    """Of a packet, without options."""
    prefix: int
    """Bits of an address."""
    settings: tuple[str, ...]
    """What a namespace has in addition to what all have, before its links exist."""
    forwarding: tuple[str, ...] = ()
    """What it has once they exist."""
    link_settings: tuple[str, ...] = ()
    """Words of `ip link set` for interfaces of nodes."""
    address_settings: str = ""

    def host(self, number: int, subflow: int = 0) -> str:
        """Return an address of a host."""
        return (
            _fourth(10 + subflow, number) if self.version == 4 else _sixth(0xFD0A + (subflow << 16), number)
        )

    def link(self, number: int) -> str:
        """Return the address of an end of a link, which exists in the tables of neighbours alone."""
        return _fourth(100, number) if self.version == 4 else _sixth(0xFD64, number)


def _fourth(first: int, number: int) -> str:
    return (
        f"{first}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}" if number else f"{first}.255.0.1"
    )


def _sixth(first: int, number: int) -> str:
    block, subflow = first & 0xFFFF, first >> 16
    return str(ipaddress.IPv6Address(block << 112 | subflow << 96 | (number + 1)))


def number(address: str) -> int:
    """Return an address as the programs of switches report it, in 128 bits."""
    found = ipaddress.ip_address(address)
    return int(found) | (MAPPED if found.version == 4 else 0)


IPV4 = Internet(
    version=4,
    header_bytes=20,
    prefix=32,
    settings=("net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1"),
)
POLICY = "net.ipv6.fib_multipath_hash_policy=1"
"""Next hops follow from addresses and ports. With 0 they follow from the flow label, and a digest steers."""
IPV6 = Internet(
    version=6,
    header_bytes=40,
    prefix=128,
    settings=(
        POLICY,
        "net.ipv6.conf.all.disable_ipv6=0",
        "net.ipv6.conf.default.disable_ipv6=0",
        # No address of the link's own, so no packet that looks for duplicates, neighbours or routers.
        "net.ipv6.conf.default.addr_gen_mode=1",
        "net.ipv6.conf.default.accept_dad=0",
        "net.ipv6.conf.default.accept_ra=0",
    ),
    # Set earlier, each new interface would join the group of routers and report that.
    forwarding=("net.ipv6.conf.all.forwarding=1",),
    link_settings=("multicast", "off"),
    address_settings=" nodad",
)
VERSIONS = {one.version: one for one in (IPV4, IPV6)}


def problems(values: dict[str, Any], *, engine: bool, hosts: bool) -> list[str]:
    """Return what of a resolved scenario cannot run over IPv6."""
    found = []
    if hosts:
        found.append("--ip 6: hosts of the simulator send IPv4: leave --ip out, or use --hosts kernel")
    elif engine:
        found.append("--ip 6: ports of the simulator read IPv4: leave --ip out, or use --ports kernel")
    balancer = values.get("switch", {}).get("balancer", {}).get("kind", "ecmp")
    if balancer != "ecmp":
        found.append(
            f'--ip 6: switch.balancer.kind = "{balancer}" knows hosts by IPv4 addresses: leave --ip out, or '
            'set "ecmp"'
        )
    return found


def chosen(asked: int | None, *, traced: bool) -> int:
    """Return the version of a run; `asked`: 4, 6 or None, then 6 where packets are traced.

    Raises
    ------
    InputError
        If packets of IPv4 are to be traced.
    """
    if asked == 4 and traced:
        raise InputError("--ioam: a trace is an option of IPv6 packets: leave --ip 4 out")
    return asked or (6 if traced else 4)


def differs() -> list[str]:
    """Return what the two engines do not have alike over IPv6."""
    longer = IPV6.header_bytes - IPV4.header_bytes
    return [f"packets are IPv6: {longer} bytes longer than the simulated ones"]
