"""Packets in packets: the flow is that of the inner one."""

from __future__ import annotations

import struct

import pytest
from packet_bytes import classic, ethernet, interfaces, ipv4, rows, tcp, udp

from weftline.cli.main import main
from weftline.packets import traces

INNER = ipv4("10.0.0.1", "10.0.0.2", 6, tcp(1000, 80, 1), 1000)
ANSWER = ipv4("10.0.0.2", "10.0.0.1", 6, tcp(80, 1000, 1), 0)
OUTER = ("192.168.0.1", "192.168.0.2")


def in_udp(port: int, header: bytes, inner: bytes) -> bytes:
    body = header + inner
    payload = 1000 if inner.endswith(INNER) else 0
    return ipv4(*OUTER, 17, udp(50_000, port, len(body) + payload) + body, payload)


def over_ip(protocol: int, header: bytes, inner: bytes) -> bytes:
    return ipv4(*OUTER, protocol, header + inner, 1000 if inner.endswith(INNER) else 0)


def vxlan(inner: bytes) -> bytes:
    return in_udp(4789, b"\x08\0\0\0\0\0\5\0", ethernet(inner))


TUNNELS = {
    "VXLAN": vxlan,
    "VXLAN of Linux": lambda inner: in_udp(8472, b"\x08\0\0\0\0\0\5\0", ethernet(inner, vlan=True)),
    "VXLAN-GPE": lambda inner: in_udp(4790, b"\x0c\0\0\1\0\0\5\0", inner),
    "Geneve": lambda inner: in_udp(6081, b"\2\0\x65\x58\0\0\5\0" + bytes(8), ethernet(inner)),
    "IP in IP": lambda inner: over_ip(4, b"", inner),
    "GRE": lambda inner: over_ip(47, b"\x20\0\x08\0\0\0\0\7", inner),
    "NVGRE": lambda inner: over_ip(47, b"\x20\0\x65\x58\0\0\5\0", ethernet(inner)),
    "ERSPAN": lambda inner: over_ip(47, b"\x10\0\x88\xbe" + bytes(12), ethernet(inner)),
    "ERSPAN III": lambda inner: over_ip(
        47, b"\x10\0\x22\xeb" + bytes(15) + b"\1" + bytes(8), ethernet(inner)
    ),
    "one in another": lambda inner: over_ip(47, b"\0\0\x88\x47\0\0\1\0", vxlan(inner)),
}


@pytest.mark.parametrize("name", TUNNELS)
def test_the_flow_is_that_of_the_inner_packet_wherever_it_was_seen(name, tmp_path):
    path = tmp_path / "a.pcapng"
    around = [ethernet(TUNNELS[name](each)) for each in (INNER, ANSWER)]
    path.write_bytes(interfaces([(0, 0, around[0]), (0, 5, around[1]), (1, 9, ethernet(INNER))], ["a", "b"]))
    found = traces.read([path])
    assert found.rows == [(0, 1, 1000, 0)] and list(found.addresses) == ["10.0.0.1", "10.0.0.2"]
    assert (found.cut_off, found.overlong) == (0, 0)


def plain(size: int) -> bytes:
    return ipv4("10.0.0.1", "10.0.0.2", 17, udp(1000, 53, size) + bytes(size), 0)


def cooked(interface: int, packet: bytes) -> bytes:
    """A packet as LINUX_SLL2 has it."""
    return b"\x08\0\0\0" + struct.pack(">IHBB", interface, 1, 0, 6) + bytes(8) + packet


@pytest.mark.parametrize(
    ("link", "copies"),
    [
        (1, lambda packet: [ethernet(packet), ethernet(vxlan(packet))]),
        (276, lambda packet: [cooked(2, packet), cooked(3, vxlan(packet))]),
        (276, lambda packet: [cooked(2, packet), cooked(3, packet)]),
    ],
)
def test_a_datagram_inside_and_outside_of_its_tunnel_or_at_two_interfaces_of_any_counts_once(
    link, copies, tmp_path
):
    path = tmp_path / "a.pcap"
    frames = [frame for _ in range(5) for frame in copies(plain(100))]
    path.write_bytes(classic([(at * 1000, frame) for at, frame in enumerate(frames)], link=link))
    found = traces.read([path])
    assert found.rows == [(0, 1, 500, 0)] and (found.at_several, found.without_interface) == (1, 0)


def test_fragments_of_a_datagram_and_of_its_copy_in_a_tunnel_are_apart(tmp_path):
    whole = plain(1200)
    pieces = [bytearray(whole[:820]), bytearray(whole[:20] + whole[820:])]
    for piece, place in zip(pieces, (0x2000, 100), strict=True):
        piece[2:8] = struct.pack(">HHH", len(piece), 9, place)
    copies = [ethernet(around(bytes(piece))) for around in (bytes, vxlan) for piece in pieces]
    path = tmp_path / "a.pcap"
    # Both first fragments come before both last ones.
    path.write_bytes(classic([(at * 1000, copies[n]) for at, n in enumerate((0, 2, 1, 3))]))
    found = traces.read([path])
    assert found.rows == [(0, 1, 1200, 0)] and (found.fragments, found.at_several) == (0, 1)


def test_captures_that_do_not_state_interfaces_have_a_warning_where_packets_have_no_numbers(tmp_path, capsys):
    path = tmp_path / "a.pcap"
    head = bytes(14) + b"\x08\0"
    path.write_bytes(classic([(0, head + plain(100)), (1000, head + INNER)], link=113))
    assert main(["import", str(path), "--out", str(tmp_path / "flows.csv")]) == 0
    assert "warning: 1 packets without numbers are of Linux cooked captures" in capsys.readouterr().err


def test_a_fragmented_tunnel_has_the_bytes_of_the_inner_packet(tmp_path):
    packet = bytearray(vxlan(INNER) + bytes(1000))
    # At byte 600 of the outer payload.
    first, last = bytearray(packet[:620]), bytearray(packet[:20] + packet[620:])
    first[2:8], last[2:8] = struct.pack(">HHH", 620, 9, 0x2000), struct.pack(">HHH", len(last), 9, 75)
    path = tmp_path / "a.pcap"
    path.write_bytes(classic([(0, ethernet(bytes(first))), (1000, ethernet(bytes(last)))]))
    found = traces.read([path])
    assert [row[2] for row in found.rows] == [1000] and (found.overlong, found.fragments) == (0, 0)


def test_what_does_not_begin_as_a_tunnel_is_payload_and_what_has_no_ip_is_left_out(tmp_path):
    other = [in_udp(4789, bytes(8), ethernet(ANSWER)), in_udp(6081, b"\xc0" + bytes(7), ANSWER)]
    other += [over_ip(47, b"\0\1\x88\x0b" + bytes(8), b"x" * 50), over_ip(50, bytes(8), b"x" * 100)]
    arp = in_udp(4789, b"\x08\0\0\0\0\0\5\0", bytes(12) + b"\x08\x06" + bytes(28))
    path = tmp_path / "a.pcap"
    path.write_bytes(classic([(at * 1000, ethernet(each)) for at, each in enumerate([*other, arp])]))
    found = traces.read([path])
    assert sorted(row[2] for row in found.rows) == sorted([8 + 54, 8 + 40, 62, 108])
    assert found.unread == {"ARP": 1}


def test_tunnels_are_followed_to_a_limit(tmp_path):
    packet = INNER
    for _ in range(40):
        packet = ipv4(*OUTER, 4, packet, 0)
    path = tmp_path / "a.pcap"
    path.write_bytes(classic([(0, ethernet(packet)), (1, ethernet(INNER))]))
    assert traces.read([path]).unread == {"nested encapsulations": 1}
    assert rows(path) == [(0, 1, 1000, 0)]
