"""Where the IP header of a packet begins that travels in another one: IP in IP, GRE, VXLAN, Geneve, ERSPAN.

What does not begin as such a header does is payload of the outer packet. Encrypted tunnels (ESP, WireGuard)
look like other payload.

Source: RFC 2003, RFC 4213 §3.1 (IP in IP); RFC 2784, RFC 2890, RFC 7637 (GRE); RFC 7348 §5 (VXLAN); RFC 8926
§3.4 (Geneve); draft-ietf-nvo3-vxlan-gpe §3 (VXLAN-GPE); draft-foschiano-erspan §4 (ERSPAN).
"""

from __future__ import annotations

from weftline.packets import links
from weftline.packets.links import Unread
from weftline.packets.transports import need

_IP_IN_IP, _GRE = (4, 41), 47
PROTOCOLS = frozenset((*_IP_IN_IP, _GRE))
"""Numbers of IP protocols that are tunnels."""
_VXLAN, _GPE, _GENEVE = (4789, 8472), 4790, 6081
PORTS = frozenset((*_VXLAN, _GPE, _GENEVE))
"""UDP ports of tunnels; the second one of VXLAN is Linux' own."""
_BRIDGED, _ERSPAN, _ERSPAN_3 = 0x6558, 0x88BE, 0x22EB
"""EtherTypes of a whole Ethernet frame, and of one that a switch has mirrored."""
_GPE_KINDS = {1: 0x0800, 2: 0x86DD, 3: _BRIDGED, 5: 0x8847}
"""EtherTypes by VXLAN-GPE's next protocol."""


def of_protocol(data: bytes, at: int, protocol: int, end: int) -> int | Unread | None:
    """Return where IP begins in a packet of one of `PROTOCOLS`; None where it is not a tunnel.

    Raises
    ------
    CutOffError
        If the packet was not kept up to there.
    """
    if protocol in _IP_IN_IP:
        return _within(data, at, 0x0800, end)
    if end - at < 4:
        return None
    need(data, at + 4)
    flags, kind = data[at], _number(data, at + 2)
    if data[at + 1] & 7:
        return None
    # A checksum, a key and a number take a word each.
    begin = at + 4 + 4 * (flags & 0xB0).bit_count()
    if kind == _ERSPAN:
        return _within(data, begin + (8 if flags & 0x10 else 0), _BRIDGED, end)
    if kind == _ERSPAN_3:
        need(data, begin + 12)
        return _within(data, begin + (20 if data[begin + 11] & 1 else 12), _BRIDGED, end)
    return _within(data, begin, kind, end)


def of_port(data: bytes, at: int, port: int, end: int) -> int | Unread | None:
    """Return where IP begins in the payload of a datagram to one of `PORTS`; None where it is not a tunnel.

    Raises
    ------
    CutOffError
        If the packet was not kept up to there.
    """
    if end - at < 8:
        return None
    need(data, at + 8)
    flags = data[at]
    if port == _GENEVE:
        # Version 0; the length of options in words.
        return None if flags >> 6 else _within(data, at + 8 + 4 * (flags & 63), _number(data, at + 2), end)
    if not flags & 8:
        return None
    if port == _GPE and flags & 4:
        kind = _GPE_KINDS.get(data[at + 3])
        return None if kind is None else _within(data, at + 8, kind, end)
    return _within(data, at + 8, _BRIDGED, end)


def _within(data: bytes, at: int, kind: int, end: int) -> int | Unread | None:
    if at >= end:
        return None
    found = links.ethernet(data, at, end) if kind == _BRIDGED else links.of_type(data, kind, at, end)
    if isinstance(found, Unread):
        return found if found.is_known else None
    need(data, found + 1)
    return found if data[found] >> 4 in (4, 6) else None


def _number(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "big")
