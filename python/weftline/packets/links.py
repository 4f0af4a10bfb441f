"""Where the IP header of a packet begins: the link layer, and what it puts around packets.

Ethernet, raw IP, BSD loopback and Linux cooked captures. Before IP there may be VLAN and service tags, a
provider's own Ethernet header, LLC and SNAP, a PPPoE session, and MPLS labels with IP or a whole Ethernet
frame (a pseudowire, with or without its control word) below them. A label stack does not state what it
carries: that follows from the first four bits and the length.

Source: LINKTYPE_ values of tcpdump.org; IEEE 802.1Q (tags), 802.1ah (service instance tag); RFC 1042 (SNAP);
RFC 2516 §4, RFC 1661 (PPPoE, PPP); RFC 3032 §2.1, RFC 4385 §3, RFC 4448 §4, RFC 4928 §3 (MPLS).
"""

from __future__ import annotations

from typing import NamedTuple

from weftline.packets.transports import need

COOKED = 113
"""LINKTYPE_LINUX_SLL, which does not state the interface of a packet."""
_ETHERNET, _LOOPBACK, _COOKED_2 = 1, (0, 108), 276
_RAW = (12, 14, 101, 228, 229)
_IP = (0x0800, 0x86DD)
_TAGS = (0x8100, 0x88A8, 0x9100, 0x9200, 0x9300)
_MPLS, _PPPOE, _BACKBONE = (0x8847, 0x8848), 0x8864, 0x88E7
_MAX_LENGTH = 1_500
"""An EtherType of up to this is the length of an IEEE 802.3 frame."""
_SNAP = b"\xaa\xaa\x03\0\0\0"
_PPP_IP, _PPP_MPLS = (0x0021, 0x0057), (0x0281, 0x0283)
_NETLINK = 824
"""ARPHRD_ value of captures of netlink."""
MAX_NESTED = 8
_OTHERS = {
    0x0806: "ARP",
    0x8035: "RARP",
    0x8808: "PFC and pause",
    0x8809: "LACP",
    0x8863: "PPPoE discovery",
    0x888E: "802.1X",
    0x88CC: "LLDP",
    0x88E5: "MACsec",
    0x88F7: "PTP",
    0x8902: "CFM",
    0x8906: "FCoE",
    0x8914: "FCoE",
    0x8915: "RoCE version 1",
}
"""What has no IP header, or not one that can be read, by EtherType."""


class Unread(NamedTuple):
    """What a packet is that has no IP header which can be read."""

    kind: str
    is_known: bool = True
    """Whether the bytes that tell its kind are unlikely in anything else."""


NESTED = Unread("nested encapsulations")
"""What is in more than `MAX_NESTED` of them."""


def link_types() -> str:
    """Return what captures may be of, for messages."""
    return "Ethernet, raw IP, BSD loopback or Linux cooked capture"


def known(link_type: int) -> bool:
    """Say whether packets of this link type can be read."""
    return link_type in (_ETHERNET, COOKED, _COOKED_2, *_LOOPBACK, *_RAW)


def interface_index(data: bytes, link_type: int) -> int:
    """Return the index of the interface that the link layer of a packet states; 0 if it states none."""
    return int.from_bytes(data[4:8], "big") if link_type == _COOKED_2 else 0


def network_header(data: bytes, link_type: int, length: int) -> int | Unread:
    """Return the byte at which the IP header begins of a packet that had `length` bytes on the wire.

    Raises
    ------
    CutOffError
        If the packet was not kept up to there.
    """
    if link_type == _ETHERNET:
        return ethernet(data, 0, length)
    if link_type in _RAW:
        return 0
    if link_type in _LOOPBACK:
        return 4
    kind, hardware, at = (14, 2, 16) if link_type == COOKED else (0, 8, 20)
    need(data, at)
    if _number(data, hardware) == _NETLINK:
        return Unread("netlink")
    return of_type(data, _number(data, kind), at, length)


def ethernet(data: bytes, at: int, end: int, depth: int = 0) -> int | Unread:
    """Return the byte at which the IP header begins in a frame from byte `at` to `end`."""
    need(data, at + 14)
    return of_type(data, _number(data, at + 12), at + 14, end, depth)


def of_type(data: bytes, kind: int, at: int, end: int, depth: int = 0) -> int | Unread:
    """Return the byte at which the IP header begins in what is of an EtherType."""
    while kind in _TAGS:
        need(data, at + 4)
        kind, at = _number(data, at + 2), at + 4
    if kind in _IP:
        return at
    if depth == MAX_NESTED:
        return NESTED
    if kind in _MPLS:
        return _below_labels(data, at, end, depth + 1)
    if kind == _PPPOE:
        return _in_session(data, at, end, depth + 1)
    if kind == _BACKBONE:
        return ethernet(data, at + 4, end, depth + 1)
    if kind <= _MAX_LENGTH:
        need(data, at + 6)
        if data[at : at + 6] != _SNAP:
            return Unread("LLC (IEEE 802.2)", is_known=False)
        need(data, at + 8)
        return of_type(data, _number(data, at + 6), at + 8, end, depth + 1)
    other = _OTHERS.get(kind)
    return Unread(other) if other else Unread(f"EtherType 0x{kind:04x}", is_known=False)


def _below_labels(data: bytes, at: int, end: int, depth: int) -> int | Unread:
    while True:
        need(data, at + 4)
        at += 4
        # The bit at the bottom of the stack.
        if data[at - 2] & 1:
            break
    if is_ip(data, at, end):
        return at
    first = data[at] >> 4
    if first == 1:
        return Unread("MPLS associated channel")
    # The control word of a pseudowire begins with four zeros, and so may an address.
    begins = (at + 4, at) if first == 0 else (at,)
    for begin in begins:
        found = ethernet(data, begin, end, depth)
        if found.is_known if isinstance(found, Unread) else is_ip(data, found, end):
            return found
    return Unread("MPLS without IP")


def _in_session(data: bytes, at: int, end: int, depth: int) -> int | Unread:
    need(data, at + 8)
    protocol = _number(data, at + 6)
    if protocol in _PPP_IP:
        return at + 8
    if protocol in _PPP_MPLS:
        return _below_labels(data, at + 8, end, depth)
    return Unread("PPP without IP")


def is_ip(data: bytes, at: int, end: int) -> bool:
    """Say whether what begins at byte `at` may be an IP header of a packet that ends before byte `end`."""
    need(data, at + 6)
    version, stated = data[at] >> 4, _number(data, at + (2 if data[at] >> 4 == 4 else 4))
    if version == 4:
        return data[at] & 15 >= 5 and (20 <= stated <= end - at or stated == 0)
    return version == 6 and 40 + stated <= end - at


def _number(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "big")
