"""What UDP datagrams carry: the payload after known headers, whether it is data, and the packets' numbers.

RoCEv2 (UDP port 4791), weftline's telemetry and transports (49201 and 49200, see docs/packets.md), hosts of
the simulator in the lab (22342) and INT-MD and INT-MX over UDP (49203). A datagram of these ports that does
not begin as they do is payload as a whole; of one that was not kept up to the end of these headers it is not
known whether it has data (`CutOffError`).

Source: InfiniBand Architecture Specification, volume 1, release 1.4, chapter 9 (base and extended transport
headers, codes of operations) and annex A17 (RoCEv2); P4.org, "INT Dataplane Specification", version 2.1,
§5.5 (INT over UDP).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

ROCE, OWN, TELEMETRY, INT, LAB = 4791, 49_200, 49_201, 49_203, 22_342
"""UDP ports."""
_BASE, _CHECK = 12, 4
"""Bytes of the base transport header and of the invariant CRC."""
_UNRELIABLE_DATAGRAM = 3
_CONNECTED = (0, 1)
"""Reliable and unreliable connections."""
_EXTENDED = {
    **dict.fromkeys((0, 1, 2, 4, 7, 8, 14), 0),
    **dict.fromkeys((3, 5, 9, 13, 15, 16, 22, 23), 4),
    **dict.fromkeys((6, 10), 16),
    11: 20,
}
"""Bytes of the extended transport headers by operation, of those that carry data."""
_RESPONSES = range(13, 17)
_DATA = 0
_OWN_NUMBERS = {
    1: (12, 4, False),
    2: (8, 8, True),
    3: (12, 4, False),
    4: (12, 4, False),
    5: (16, 4, False),
}
"""By scheme: where a data packet has its number, its length, and whether bytes or packets are counted."""
_LAB_FIELDS, _LAB_KINDS, _LAB_CUT = 48, range(7), 6
"""Of hosts of the simulator (crates/ports/src/carrier.rs): bytes of fields; kinds of packets, of which the
first are data; bits of packets whose payload was cut off."""
_SIMULATED = 28
"""Bytes of IPv4 and UDP, which are part of the length of the simulated packet."""
_MAX_NESTED = 2


class CutOffError(Exception):
    """Too little of a packet was kept to tell whether it has data, and which."""


class Numbers(NamedTuple):
    """The numbers that a packet has in a stream of them."""

    first: int
    length: int
    """Those that its payload takes: one for each byte, or one for the packet."""
    bits: int
    """Numbers count modulo 2 to the power of this."""
    stream: Hashable
    """Tells the streams of a five-tuple apart."""
    other: int | None = None
    """Of the lab: a second number, whose meaning depends on the transport, which packets do not name. It is
    the number of the packet where `first` is the size of its message, the first byte in the connection where
    `first` counts in a subflow, and of no use where `first` is the first byte of the flow."""


class Content(NamedTuple):
    """What a datagram carries."""

    port: int
    """That the datagram was for before telemetry was put into it."""
    payload: int
    """Bytes of data; 0 for acknowledgements and other packets without any."""
    numbers: Numbers | None
    flow: int | None = None
    """The number of its flow, for which the source port does not stand."""


def content(data: bytes, at: int, port: int, left: int) -> Content:
    """Return what a datagram carries whose payload of `left` bytes begins at byte `at`.

    `data` may end before the datagram does.

    Raises
    ------
    CutOffError
        If it ends before the headers do.
    """
    for _ in range(_MAX_NESTED):
        inside = _after_telemetry(data, at, port, left)
        if inside is None:
            break
        header, port = inside
        at, left = at + header, left - header
    if port == ROCE:
        return _roce(data, at, left)
    if port == OWN:
        return _own(data, at, left)
    if port == LAB:
        return _of_lab(data, at, left)
    return Content(port, left, None)


def _after_telemetry(data: bytes, at: int, port: int, left: int) -> tuple[int, int] | None:
    """Return the bytes of a telemetry header and the port that the rest is for."""
    if port == TELEMETRY and left >= 8:
        need(data, at + 8)
        if data[at] >> 4 != 1:
            return None
        header = _number(data, at + 2, 2)
        return (header, _number(data, at + 4, 2)) if 8 <= header <= left else None
    if port == INT and left >= 5:
        need(data, at + 5)
        # Type 1 or 2 (INT-MD, INT-MX), next protocol 1: payload follows; version 2.
        header = 4 + 4 * data[at + 1]
        fits = data[at] >> 4 in (1, 2) and data[at] >> 2 & 3 == 1 and data[at + 4] >> 4 == 2
        return (header, _number(data, at + 2, 2)) if fits and 16 <= header <= left else None
    return None


def _roce(data: bytes, at: int, left: int) -> Content:
    if left < _BASE + _CHECK:
        return Content(ROCE, left, None)
    need(data, at + _BASE)
    service, operation = data[at] >> 5, data[at] & 31
    if service not in (*_CONNECTED, _UNRELIABLE_DATAGRAM) or operation not in _EXTENDED:
        # An acknowledgement, a request to read, an atomic operation, a notification of congestion.
        return Content(ROCE, 0, None)
    datagram = service == _UNRELIABLE_DATAGRAM
    headers = _BASE + _EXTENDED[operation] + (8 if datagram else 0)
    padding = data[at + 1] >> 4 & 3
    # Each direction of a queue pair numbers its requests, and the answers to those of the other one.
    stream = _number(data, at + 5, 3) << 1 | (operation in _RESPONSES)
    if datagram:
        need(data, at + _BASE + 8)
        stream |= _number(data, at + _BASE + 5, 3) << 25
    numbers = Numbers(_number(data, at + 9, 3), 1, 24, stream)
    return Content(ROCE, max(left - headers - padding - _CHECK, 0), numbers)


def _own(data: bytes, at: int, left: int) -> Content:
    if left < 8:
        return Content(OWN, left, None)
    need(data, at + 8)
    if data[at] >> 4 != 1 or not 8 <= data[at + 3] <= left:
        return Content(OWN, left, None)
    scheme, kind, header = data[at] & 15, data[at + 1], data[at + 3]
    if kind != _DATA:
        return Content(OWN, 0, None)
    payload = left - header
    if scheme not in _OWN_NUMBERS:
        return Content(OWN, payload, None)
    place, length, counts_bytes = _OWN_NUMBERS[scheme]
    if place + length > header:
        return Content(OWN, payload, None)
    need(data, at + place + length)
    first = _number(data, at + place, length)
    count = payload if counts_bytes else 1
    return Content(OWN, payload, Numbers(first, count, 8 * length, _number(data, at + 4, 4)))


def _of_lab(data: bytes, at: int, left: int) -> Content:
    if left < _LAB_FIELDS:
        return Content(LAB, left, None)
    need(data, at + _LAB_FIELDS)
    kind, trimming, version = data[at + 38], data[at + 44], data[at + 45]
    if version != 1 or kind not in _LAB_KINDS:
        return Content(LAB, left, None)
    flow = _number(data, at + 16, 4)
    payload = min(_number(data, at + 32, 2), left + _SIMULATED)
    if kind != _DATA or trimming & _LAB_CUT:
        return Content(LAB, 0, None, flow)
    # The number of the sender has that of the subflow.
    first, sender, aux = _number(data, at, 8), _number(data, at + 20, 4), _number(data, at + 28, 4)
    packets, packet = first >> 32, first & 0xFFFF_FFFF
    if packets > packet:
        return Content(LAB, payload, Numbers(packet, 1, 32, sender), flow)
    return Content(LAB, payload, Numbers(first, payload, 64, sender, aux), flow)


def inside_int(data: bytes, at: int, port: int, left: int) -> tuple[int, int] | None:
    """Return the bytes of INT before a whole transport segment, and the IP protocol of that; None without it.

    `at` is where the payload of a datagram to `port` begins, which has `left` bytes.
    """
    if port != INT or left < 5:
        return None
    need(data, at + 5)
    # Type 1 or 2, next protocol 2: what followed the IP header before; version 2.
    header = 4 + 4 * data[at + 1]
    fits = data[at] >> 4 in (1, 2) and data[at] >> 2 & 3 == 2 and data[at + 4] >> 4 == 2
    return (header, data[at + 3]) if fits and 16 <= header <= left else None


def need(data: bytes, end: int) -> None:
    """Raise unless the packet was kept up to this byte."""
    if len(data) < end:
        raise CutOffError


def _number(data: bytes, at: int, count: int) -> int:
    return int.from_bytes(data[at : at + count], "big")
