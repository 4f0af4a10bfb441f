"""The flow of a packet by its headers: addresses, protocol, ports, and bytes of payload.

What `links` finds IP in; IPv4 and IPv6 with their extension headers and fragments; what is in `tunnels`, as
the flow of the inner packet; ports of TCP, UDP and SCTP; of UDP, the headers of `transports`. Payload is
counted from what the headers say, so captures may be cut to them, but never beyond what the record says was
on the wire. A length of 0 (segmentation offload, jumbograms) stands for the length of the record.

Source: RFC 791, RFC 8200 §4, RFC 4302 §2.2, RFC 9293 §3.1, RFC 768.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import NamedTuple

from weftline.packets import links, tunnels
from weftline.packets.captures import Captured
from weftline.packets.links import Unread
from weftline.packets.transports import Content, Numbers, content, inside_int, need

TCP, UDP = 6, 17
_WITH_PORTS = (TCP, UDP, 132, 136)
_FRAGMENT, _AUTHENTICATION = 44, 51
_IPV6_EXTENSIONS = (0, 43, _FRAGMENT, _AUTHENTICATION, 60, 135, 139, 140)

FragmentKey = tuple[str, str, int, int, int]
"""By which the fragments of a packet are known: addresses, protocol (of IPv6 -1), identification, depth.

A packet and its copy in a tunnel have other fragments.
"""
_SYN, _ACK = 2, 16
"""Flags of TCP."""
_END, _PADDING, _MULTIPATH, _JOIN = 0, 1, 30, 1
"""Options of TCP, and the kind of the third that joins a connection."""


class Segment(NamedTuple):
    """A packet of a flow."""

    src: str
    dst: str
    protocol: int
    ports: tuple[int, int]
    payload: int
    """Bytes of the application's data."""
    numbers: Numbers | None
    """How the transport numbers them; None if it does not."""
    opens: bool
    """Of TCP: it is a SYN, which restarts the sequence numbers."""
    is_overlong: bool = False
    """Its IP header says that it was longer than it was on the wire."""
    key: FragmentKey | None = None
    """Of the first fragment of a packet; its payload is that of the fragment alone."""
    before: int = 0
    """Of a first fragment: the bytes of headers before its payload, counted as offsets of fragments are."""
    is_in_tunnel: bool = False
    joins: bool = False
    """It opens a subflow of multipath TCP after the first one of its connection."""


class Fragment(NamedTuple):
    """A later fragment of a packet, which has no ports."""

    key: FragmentKey
    offset: int
    """In bytes."""
    payload: int
    is_overlong: bool = False


def segment(packet: Captured) -> Segment | Fragment | Unread:
    """Return what the headers of a packet say.

    Raises
    ------
    CutOffError
        If too little of the packet was kept to tell.
    """
    data = packet.bytes
    at = links.network_header(data, packet.link_type, packet.length)
    if isinstance(at, Unread):
        return at
    return _ip(data, at, max(packet.length - at, 0), 0)


def _ip(data: bytes, at: int, on_wire: int, depth: int) -> Segment | Fragment | Unread:
    """Read a packet from byte `at` on, in `depth` tunnels."""
    if depth > links.MAX_NESTED:
        return links.NESTED
    need(data, at + 1)
    version = data[at] >> 4
    if version == 4:
        return _ipv4(data, at, on_wire, depth)
    return _ipv6(data, at, on_wire, depth) if version == 6 else Unread(f"IP version {version}")


@lru_cache(maxsize=1 << 16)
def _address(packed: bytes) -> str:
    return str(ipaddress.ip_address(packed))


def _ipv4(data: bytes, at: int, on_wire: int, depth: int) -> Segment | Fragment | Unread:
    length = 4 * (data[at] & 15)
    if length < 20:
        return Unread("IPv4 with a header of less than 20 bytes")
    need(data, at + 20)
    total, identification, place = (int.from_bytes(data[at + n : at + n + 2], "big") for n in (2, 4, 6))
    protocol = data[at + 9]
    src, dst = _address(data[at + 12 : at + 16]), _address(data[at + 16 : at + 20])
    left, is_overlong = min(total or on_wire, on_wire) - length, total > on_wire
    offset, key = 8 * (place & 0x1FFF), (src, dst, protocol, identification, depth)
    if offset:
        return Fragment(key, offset, max(left, 0), is_overlong)
    found = _transport(data, at + length, protocol, src, dst, left, depth)
    return _completed(found, left, is_overlong, key if place & 0x2000 else None)


def _ipv6(data: bytes, at: int, on_wire: int, depth: int) -> Segment | Fragment | Unread:
    need(data, at + 40)
    stated, protocol = int.from_bytes(data[at + 4 : at + 6], "big"), data[at + 6]
    left, is_overlong = min(stated or on_wire, on_wire - 40), stated > on_wire - 40
    src, dst = _address(data[at + 8 : at + 24]), _address(data[at + 24 : at + 40])
    at += 40
    key, part = None, left
    while protocol in _IPV6_EXTENSIONS:
        need(data, at + 8)
        # The fragment header has a reserved byte in place of its length.
        size = 8 if protocol == _FRAGMENT else _extension_bytes(data, at, protocol)
        if protocol == _FRAGMENT:
            place, part = int.from_bytes(data[at + 2 : at + 4], "big"), left - size
            identity = (src, dst, -1, int.from_bytes(data[at + 4 : at + 8], "big"), depth)
            if place & 0xFFF8:
                return Fragment(identity, place & 0xFFF8, max(part, 0), is_overlong)
            key = identity if place & 1 else None
        protocol, at, left = data[at], at + size, left - size
    found = _transport(data, at, protocol, src, dst, left, depth)
    return _completed(found, part, is_overlong, key)


def _extension_bytes(data: bytes, at: int, protocol: int) -> int:
    units = data[at + 1]
    return 4 * (units + 2) if protocol == _AUTHENTICATION else 8 * (units + 1)


def _completed(
    found: Segment | Fragment | Unread, part: int, is_overlong: bool, key: FragmentKey | None
) -> Segment | Fragment | Unread:
    """Add what the IP header says; `part` are the bytes after it, or after the header of a fragment."""
    if isinstance(found, Unread) or not (is_overlong or key is not None):
        return found
    if key is None or isinstance(found, Fragment):
        return found._replace(is_overlong=True) if is_overlong else found
    # In a fragment, headers of inner packets state more than it has.
    return found._replace(is_overlong=is_overlong, key=key, before=max(part, 0) - found.payload)


def _transport(
    data: bytes, at: int, protocol: int, src: str, dst: str, left: int, depth: int
) -> Segment | Fragment | Unread:
    """Read from byte `at` on, where `left` bytes of the packet begin."""
    if depth > links.MAX_NESTED:
        return links.NESTED
    while protocol == _AUTHENTICATION:
        need(data, at + 2)
        size = _extension_bytes(data, at, protocol)
        protocol, at, left = data[at], at + size, left - size
    if protocol in tunnels.PROTOCOLS:
        within = tunnels.of_protocol(data, at, protocol, at + left)
        if within is not None:
            return _in_tunnel(data, within, at + left, depth)
    if protocol not in _WITH_PORTS:
        return Segment(src, dst, protocol, (0, 0), max(left, 0), None, False)
    need(data, at + 4)
    ports = (int.from_bytes(data[at : at + 2], "big"), int.from_bytes(data[at + 2 : at + 4], "big"))
    if protocol == UDP:
        inside = inside_int(data, at + 8, ports[1], left - 8)
        if inside is not None:
            size, protocol = inside
            return _transport(data, at + 8 + size, protocol, src, dst, left - 8 - size, depth + 1)
        if ports[1] in tunnels.PORTS:
            within = tunnels.of_port(data, at + 8, ports[1], at + left)
            if within is not None:
                return _in_tunnel(data, within, at + left, depth)
        found: Content = content(data, at + 8, ports[1], max(left - 8, 0))
        source = ports[0] if found.flow is None else found.flow
        return Segment(src, dst, UDP, (source, found.port), found.payload, found.numbers, False)
    if protocol != TCP:
        return Segment(src, dst, protocol, ports, max(left - 12, 0), None, False)
    need(data, at + 14)
    payload = max(left - 4 * (data[at + 12] >> 4), 0)
    opens = bool(data[at + 13] & _SYN)
    # A SYN has a number of its own, before that of the first byte.
    first = int.from_bytes(data[at + 4 : at + 8], "big") + opens
    joins = data[at + 13] & (_SYN | _ACK) == _SYN and _has_join(data[at + 20 : at + 4 * (data[at + 12] >> 4)])
    return Segment(src, dst, TCP, ports, payload, Numbers(first, payload, 32, 0), opens, joins=joins)


def _has_join(options: bytes) -> bool:
    """Whether options of TCP have MP_JOIN (RFC 8684 §3.2)."""
    at = 0
    while at + 1 < len(options) and options[at] != _END:
        size = 1 if options[at] == _PADDING else options[at + 1]
        if options[at] == _MULTIPATH and at + 2 < len(options) and options[at + 2] >> 4 == _JOIN:
            return True
        at += max(size, 1)
    return False


def _in_tunnel(data: bytes, at: int | Unread, end: int, depth: int) -> Segment | Fragment | Unread:
    if isinstance(at, Unread):
        return at
    found = _ip(data, at, max(end - at, 0), depth + 1)
    return found._replace(is_in_tunnel=True) if isinstance(found, Segment) else found
