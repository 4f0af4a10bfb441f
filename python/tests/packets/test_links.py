"""What a link layer puts around packets, and packets that have no IP."""

from __future__ import annotations

import struct
from collections import Counter

import pytest
from packet_bytes import block, classic, datagram, ethernet, ipv4, rows, segment, tcp, udp

from weftline.cli.main import main
from weftline.packets import captures, links, traces
from weftline.packets.transports import CutOffError

PACKET = ipv4("10.0.0.1", "10.0.0.2", 6, tcp(1000, 80, 1), 1000)
V6 = struct.pack(">IHBB", 6 << 28, 1020, 6, 64) + bytes(15) + b"\x01" + bytes(15) + b"\x02" + tcp(7, 80, 1)
MACS, OTHER_MACS = bytes(12), bytes.fromhex("4aa1b2c3d4e5 6aa1b2c3d4e5".replace(" ", ""))
LABELS = bytes.fromhex("00010040 00020140")


def frame(kind: int, rest: bytes, macs: bytes = MACS) -> bytes:
    return macs + struct.pack(">H", kind) + rest


PLAIN = frame(0x0800, PACKET)


@pytest.mark.parametrize(
    ("link", "data", "packet"),
    [
        *((1, frame(tag, b"\0\5\x81\0\0\6\x08\0" + PACKET), PACKET) for tag in (0x8100, 0x88A8, 0x9100)),
        *((1, frame(tag, b"\0\5\x08\0" + PACKET), PACKET) for tag in (0x9200, 0x9300)),
        (1, frame(0x8847, LABELS + PACKET), PACKET),
        (1, frame(0x8848, LABELS + V6), V6),
        (1, frame(0x8847, LABELS + bytes(4) + PLAIN), PACKET),
        (1, frame(0x8847, LABELS + PLAIN), PACKET),
        (1, frame(0x8847, LABELS + frame(0x8100, b"\0\5\x08\0" + PACKET, OTHER_MACS)), PACKET),
        (1, frame(0x8100, b"\0\5\x88\x47" + LABELS + PACKET), PACKET),
        (1, frame(0x8864, b"\x11\0\0\1\x03\xf0\0\x21" + PACKET), PACKET),
        (1, frame(0x8864, b"\x11\0\0\1\x03\xf0\0\x57" + V6), V6),
        (1, frame(0x8864, b"\x11\0\0\1\x03\xf0\2\x81" + LABELS + PACKET), PACKET),
        (1, frame(0x88E7, b"\0\0\0\7" + PLAIN), PACKET),
        (1, frame(48, b"\xaa\xaa\3\0\0\0\x08\0" + PACKET), PACKET),
        (113, bytes(14) + b"\x81\0\0\5\x08\0" + PACKET, PACKET),
        (276, b"\x88\x47" + bytes(18) + LABELS + PACKET, PACKET),
    ],
)
def test_ip_is_found_in_what_a_link_layer_puts_around_it(link, data, packet):
    length = len(data) + 1000
    at = links.network_header(data, link, length)
    assert isinstance(at, int) and data[at:] == packet
    for kept in range(at):
        # A kind by which a cut packet may not be left out as one without IP.
        try:
            assert links.network_header(data[:kept], link, length) == at, kept
        except CutOffError:
            continue


def test_nested_encapsulations_are_followed_to_a_limit():
    assert links.network_header(frame(0x8847, (b"\0\0\1\0" + frame(0x8847, b"")) * 999), 1, 10**6) == (
        links.Unread("nested encapsulations")
    )


def test_packets_without_ip_are_counted_by_their_kind_in_one_warning(tmp_path, capsys):
    frames = [frame(0x0806, bytes(28))] * 3 + [frame(0x88CC, bytes(60)), frame(38, b"\x42\x42\3" + bytes(35))]
    frames += [frame(0x8864, b"\x11\0\0\1\0\x08\xc0\x21" + bytes(6)), frame(0x8847, LABELS + bytes(40))] * 2
    frames += [frame(0x88B5, bytes(12)), frame(0x0800, b"\x55" + bytes(40)), PLAIN]
    path = tmp_path / "a.pcap"
    path.write_bytes(classic([(at, each) for at, each in enumerate(frames)]))
    found = traces.read([path])
    assert found.rows == [(0, 1, 1000, 0)] and found.cut_off == 0
    assert found.unread == Counter(
        {
            "ARP": 3,
            "PPP without IP": 2,
            "MPLS without IP": 2,
            "LLDP": 1,
            "LLC (IEEE 802.2)": 1,
            "EtherType 0x88b5": 1,
            "IP version 5": 1,
        }
    )
    assert main(["import", str(path), "--out", str(tmp_path / "flows.csv")]) == 0
    assert capsys.readouterr().err == (
        "warning: 11 packets left out: they have no IP that can be read (ARP: 3, MPLS without IP: 2, "
        "PPP without IP: 2, EtherType 0x88b5: 1, 3 other kinds: 3)\n"
    )


def test_the_packet_blocks_before_enhanced_ones_are_read(tmp_path):
    data = datagram(bytes(500), 80)
    written = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1), "<")
    written += block(1, struct.pack("<HHI", 1, 0, 0), "<") * 2
    written += block(2, struct.pack("<HHIIII", 1, 7, 0, 5, len(data), len(data)) + data, "<")
    path = tmp_path / "a.pcapng"
    path.write_bytes(written)
    (packet,) = captures.read(path)
    assert (packet.interface_number, packet.time_ns, packet.bytes) == (1, 5000, data)
    assert rows(path) == [(0, 1, 500, 0)]


def test_a_syn_after_data_of_its_connection_restarts_nothing(tmp_path):
    path = tmp_path / "a.pcap"
    first = [segment(0, 100, 0, flags=2), segment(1, 101, 2000), segment(2, 3101, 1000)]
    # The second connection: its second segment is seen first, then the SYN, and the segment again.
    second = [segment(3, 10_001, 1000), segment(4, 9000, 0, flags=2), segment(5, 9001, 1000)]
    path.write_bytes(classic([*first, *second, segment(6, 10_001, 1000)]))
    assert [row[2] for row in rows(path)] == [5000]
    # Without the first SYN, and where a new connection begins before the numbers of the last one.
    path.write_bytes(classic([segment(0, 101, 1000), segment(1, 100, 0, flags=2), segment(2, 101, 1000)]))
    assert [row[2] for row in rows(path)] == [1000]
    path.write_bytes(classic([*first, segment(4, 90, 0, flags=2), segment(5, 91, 3000)]))
    assert [row[2] for row in rows(path)] == [6000]


def test_a_capture_may_begin_with_keep_alives(tmp_path):
    path = tmp_path / "a.pcap"
    alive = [segment(10**9 * at, 999, 1) for at in range(3)]
    path.write_bytes(classic([*alive, segment(10**10, 1000, 1000), segment(10**10 + 7000, 2000, 1)]))
    found = traces.read([path], idle_ns=10**12)
    assert found.rows == [(0, 1, 1001, 0)] and found.span_ns == 0


def fragment(at_ns: int, port: int, offset: int, size: int) -> tuple[int, bytes]:
    """One of two fragments, with number 5; the first one has the UDP header."""
    packet = bytearray(ipv4("10.0.0.1", "10.0.0.2", 17, b"" if offset else udp(port, 80, 2000), size))
    packet[4:8] = struct.pack(">HH", 5, offset // 8 | (0 if offset else 0x2000))
    return at_ns, ethernet(bytes(packet))


def test_fragments_in_reverse_order_are_of_the_next_first_one_where_their_number_is_used_again(tmp_path):
    path = tmp_path / "a.pcap"
    packets = [
        fragment(at + 2 * port, port, *part)
        for port in (1, 2)
        for at, part in enumerate(((1480, 528), (0, 1472)))
    ]
    path.write_bytes(classic(packets))
    found = traces.read([path])
    assert [row[2] for row in found.rows] == [2000, 2000] and found.fragments == 0
    # The last fragment of both before the first one of both.
    path.write_bytes(classic([packets[0], packets[2], packets[1], packets[3]]))
    found = traces.read([path])
    assert [row[2] for row in found.rows] == [2000, 2000] and found.fragments == 0


def test_extension_headers_are_followed_after_an_authentication_header(tmp_path):
    path = tmp_path / "a.pcap"
    chain = b"\x3c\x04" + bytes(22) + b"\x8b\x00" + bytes(6) + b"\x06\x00" + bytes(6) + tcp(7, 80, 1)
    packet = struct.pack(">IHBB", 6 << 28, len(chain) + 1000, 51, 64) + V6[8:40] + chain
    path.write_bytes(classic([(0, MACS + b"\x86\xdd" + packet)]))
    assert rows(path) == [(0, 1, 1000, 0)]
    # A chain of the greatest length of a record.
    loop = struct.pack(">IHBB", 6 << 28, 60_000, 51, 64) + V6[8:40] + b"\x33\x00\0\0\0\0\0\0" * 7000
    path.write_bytes(classic([(0, MACS + b"\x86\xdd" + loop), (1, PLAIN)]))
    assert traces.read([path]).cut_off == 1
