"""Captures and flow records written by hand, byte by byte, and what is read from them."""

from __future__ import annotations

import re
import struct

import pytest

from weftline.errors import InputError
from weftline.packets import traces

NFDUMP = """ts,te,td,sa,da,sp,dp,pr,flg,fwd,stos,ipkt,ibyt,opkt,obyt
2026-01-31 12:00:00.500,2026-01-31 12:00:02.500,2.000,10.0.0.1,10.0.0.2,40000,80,TCP,.AP.S.,0,0,10,10400,2,180
2026-01-31 12:00:00.250,2026-01-31 12:00:00.250,0.000,10.0.0.3,10.0.0.2,53,5353,UDP,......,0,0,1,128,0,0
Summary
flows,bytes,packets,avg_bps,avg_pps,avg_bpp
2,10528,11,1,1,1
"""


def ipv4(src: str, dst: str, protocol: int, body: bytes, payload: int) -> bytes:
    addresses = b"".join(bytes(map(int, address.split("."))) for address in (src, dst))
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body) + payload, 0, 0, 64, protocol, 0)
    return head + addresses + body


def tcp(sport: int, dport: int, sequence: int, flags: int = 16) -> bytes:
    return struct.pack(">HHIIBBHHH", sport, dport, sequence, 0, 5 << 4, flags, 0, 0, 0)


def udp(sport: int, dport: int, payload: int) -> bytes:
    return struct.pack(">HHHH", sport, dport, 8 + payload, 0)


def ethernet(packet: bytes, *, vlan: bool = False) -> bytes:
    return bytes(12) + (b"\x81\x00\x00\x05" if vlan else b"") + b"\x08\x00" + packet


def on_wire(data: bytes) -> int:
    """Bytes that a frame had by its IPv4 header, which may state more than it has here."""
    at = 18 if data[12:14] == b"\x81\x00" else 14
    is_ipv4 = data[at - 2 : at] == b"\x08\x00"
    return max(len(data), at + int.from_bytes(data[at + 2 : at + 4], "big") if is_ipv4 else 0)


def classic(
    packets: list[tuple[int, bytes]], *, order: str = "<", nanoseconds: bool = False, link=1
) -> bytes:
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    tick = 1 if nanoseconds else 1000
    written = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, link)
    for time_ns, data in packets:
        seconds, rest = divmod(time_ns, 10**9)
        written += (
            struct.pack(order + "IIII", seconds, rest // tick, len(data), max(on_wire(data), 1500)) + data
        )
    return written


def block(kind: int, body: bytes, order: str) -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def next_generation(packets: list[tuple[int, bytes]], *, order: str = "<") -> bytes:
    written = block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)
    name = struct.pack(order + "HH", 2, 4) + b"eth7"
    # Times in 2^-20 s.
    resolution = struct.pack(order + "HHBxxx", 9, 1, 0x80 | 20)
    written += block(1, struct.pack(order + "HHI", 1, 0, 0) + name + resolution, order)
    written += block(5, bytes(12), order)
    for ticks, data in packets:
        head = struct.pack(order + "IIIII", 0, ticks >> 32, ticks & 0xFFFFFFFF, len(data), 1500)
        written += block(6, head + data, order)
    return written


def interfaces(packets: list[tuple[int, int, bytes]], names: list[str]) -> bytes:
    """A pcapng file of Ethernet interfaces with these names; packets with their interface and time in us."""
    written = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1), "<")
    for name in map(str.encode, names):
        option = struct.pack("<HH", 2, len(name)) + name + bytes(-len(name) % 4)
        written += block(1, struct.pack("<HHI", 1, 0, 0) + option, "<")
    for number, time_us, data in packets:
        head = struct.pack("<IIIII", number, time_us >> 32, time_us & 0xFFFFFFFF, len(data), on_wire(data))
        written += block(6, head + data, "<")
    return written


def roce(operation: int, number: int, payload: int, *, extended: bytes = b"", padding: int = 0) -> bytes:
    """The payload of a datagram to UDP port 4791: queue pair 300, `payload` bytes and the CRC."""
    base = struct.pack(">BBHII", operation, padding << 4, 0xFFFF, 300, number)
    return base + extended + bytes(payload + padding + 4)


def lab_packet(flow: int, first: int, payload: int, *, kind=0, aux=0, sender=0, trimming=0) -> bytes:
    """The payload of a datagram of a host of the simulator: fields, then a zero for each byte of payload."""
    fields = struct.pack(">QQ4I3H", first, 7, flow, sender, 0xBEEF, aux, payload, 0, 1448)
    return fields + bytes([kind, 1, 1, 0, 0, 0, trimming, 1, 0, 0]) + bytes(payload)


def datagram(payload: bytes, port: int, *, ends=("10.0.0.1", "10.0.0.2"), source_port: int = 50_000) -> bytes:
    """An Ethernet frame with a UDP datagram."""
    body = udp(source_port, port, len(payload)) + payload
    return ethernet(ipv4(*ends, 17, body, 0))


def segment(start_ns: int, sequence: int, payload: int, *, flags: int = 16, ports=(40000, 80)):
    body = tcp(*ports, sequence, flags)
    return start_ns, ethernet(ipv4("192.168.0.1", "192.168.0.2", 6, body, payload))


def int_packet(nodes: list[int]) -> bytes:
    """IPv4, UDP to port 49203, INT-MD with node and queue of each hop."""
    stack = b"".join(struct.pack("!II", node, node * 10) for node in reversed(nodes))
    header = struct.pack("!BBBBHHHH", 0x20, 0, 2, 8, 0x9000, 0, 0, 0) + stack
    shim = struct.pack("!BBH", 0x14, len(header) // 4, 9000) + header
    udp = struct.pack("!HHHH", 5000, 49203, 8 + len(shim), 0) + shim
    addresses = bytes([10, 0, 0, 1, 10, 0, 0, 2])
    return struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 1, 0x4000, 61, 17, 0) + addresses + udp


def rows(path, **options) -> list[tuple[int, int, int, int]]:
    """Return the flows that are read from a file: source, destination, bytes, start in ns."""
    return traces.read([path], **options).rows


def wrong(path, message, **options):
    """Assert that a file is refused with a message."""
    with pytest.raises(InputError, match=re.escape(message)):
        traces.read([path], **options)
