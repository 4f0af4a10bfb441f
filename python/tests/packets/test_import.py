"""Traces out of captures and flow records, from bytes written by hand."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import struct
import time

import pytest
from packet_bytes import (
    NFDUMP,
    block,
    classic,
    datagram,
    ethernet,
    interfaces,
    ipv4,
    lab_packet,
    next_generation,
    roce,
    rows,
    segment,
    tcp,
    udp,
    wrong,
)

import weftline
from weftline import _native
from weftline.cli.main import main
from weftline.errors import InputError
from weftline.packets import captures, traces
from weftline.packets.flows import MAX_RANGES, Ranges

built = pytest.mark.skipif(
    not getattr(_native, "__file__", None), reason="the native module is not built (maturin develop)"
)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nanoseconds", [True, False])
def test_a_classic_capture_is_read_in_either_byte_order(order, nanoseconds, tmp_path):
    path = tmp_path / "a.pcap"
    path.write_bytes(classic([segment(5_000_001_000, 1, 1448)], order=order, nanoseconds=nanoseconds))
    (packet,) = captures.read(path)
    assert (packet.number, packet.time_ns, packet.link_type, packet.length) == (1, 5_000_001_000, 1, 1502)
    assert captures.is_capture(path)


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_next_generation_capture_has_interfaces_and_its_own_resolution(order, tmp_path):
    path = tmp_path / "a.pcapng"
    path.write_bytes(next_generation([(1 << 21, b"1234567")], order=order))
    (packet,) = captures.read(path)
    assert (packet.time_ns, packet.interface, packet.bytes) == (2_000_000_000, "eth7", b"1234567")


def test_a_tcp_flow_is_its_payload_and_what_is_sent_again_counts_once(tmp_path):
    packets = [
        segment(0, 99, 0, flags=2),
        segment(1_000, 100, 1000),
        segment(2_000, 1100, 1000),
        segment(3_000, 100, 1000),
        segment(4_000, 1600, 1000),
    ]
    path = tmp_path / "a.pcap"
    path.write_bytes(classic(packets))
    # From the first byte on; the last segment repeats 500 B.
    assert rows(path) == [(0, 1, 2500, 0)]


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [0, 2, 1, 3, 4], [0, 2, 3, 4, 1], [4, 3, 2, 1, 0]])
def test_segments_count_in_any_order(order, tmp_path):
    path = tmp_path / "a.pcap"
    packets = [segment(0, 99, 0, flags=2)]
    packets += [segment(1000 * at, 100 + 1000 * place, 1000) for at, place in enumerate(order, 1)]
    path.write_bytes(classic(packets))
    assert [row[2] for row in rows(path)] == [5000]


def test_a_five_tuple_that_opens_again_has_new_numbers(tmp_path):
    path = tmp_path / "a.pcap"
    packets = [segment(0, 99, 0, flags=2), segment(1000, 100, 1000)]
    again = [segment(2000, 99, 0, flags=2), segment(3000, 100, 1000)]
    path.write_bytes(classic([*packets, *again]))
    assert [row[2] for row in rows(path)] == [1000], "the SYN was sent again"
    path.write_bytes(classic([*packets, segment(2000, 599, 0, flags=2), segment(3000, 600, 1000)]))
    assert [row[2] for row in rows(path)] == [2000]


def test_ranges_are_the_numbers_that_were_added_modulo_all_of_them():
    chance = random.Random(3)
    for bits in (32, 24):
        first = (1 << bits) - 3000
        ranges, known = Ranges(first, bits), set()
        for _ in range(3000):
            start, length = chance.randrange(6000), chance.randrange(1, 40)
            fresh = set(range(start, start + length)) - known
            assert ranges.add((first + start) % (1 << bits), length) == len(fresh)
            known |= fresh


def test_ranges_take_a_limited_memory_and_close_their_oldest_gap():
    ranges = Ranges(0, 32)
    for number in range(MAX_RANGES + 1):
        ranges.add(2 * number, 1)
    assert ranges.add(1, 1) == 0 and ranges.add(3, 1) == 1


def test_a_datagram_at_several_interfaces_counts_once(tmp_path, capsys):
    path, out = tmp_path / "a.pcapng", tmp_path / "flows.csv"
    sent = [datagram(bytes(100), 53, source_port=port) for port in (1000, 1001)]
    packets = [(2 * time, 0, sent[time % 2]) for time in range(10)]
    # The other interface missed three of the first flow's packets.
    packets += [(2 * time + 1, 1, sent[time % 2]) for time in range(10) if time not in (2, 4, 6)]
    packets.sort(key=lambda packet: packet[0])
    path.write_bytes(interfaces([(at, time, data) for time, at, data in packets], ["eth0", "eth0"]))
    assert rows(path) == [(0, 1, 500, 0), (0, 1, 500, 2000)]
    assert main(["import", str(path), "--out", str(out), "--json"]) == 0
    output = capsys.readouterr()
    assert "2 flows without numbers of packets were seen at several points of observation" in output.err
    assert json.loads(output.out)["at_several_points"] == 2


def test_packets_with_numbers_may_be_spread_over_interfaces(tmp_path):
    path = tmp_path / "a.pcapng"
    packets = [(number % 2, number, segment(0, 100 + 10 * number, 10)[1]) for number in range(6)]
    # All of them again after the two links.
    packets += [(2, 10 + number, data) for _, number, data in packets]
    path.write_bytes(interfaces(packets, ["spine0", "spine1", "host"]))
    assert rows(path) == [(0, 1, 60, 0)]


def test_payload_of_roce_has_no_headers_and_acknowledgements_are_no_flow(tmp_path):
    path = tmp_path / "a.pcap"
    immediate, remote, syndrome = bytes(4), bytes(16), bytes(4)
    sent = [roce(0, 7, 1024), roce(1, 8, 1024), roce(1, 8, 1024), roce(2, 9, 101, padding=3)]
    sent += [roce(6, 10, 1024, extended=remote), roce(9, 11, 10, extended=immediate, padding=2)]
    sent += [roce(12, 12, 0, extended=remote), roce(0x81, 13, 16)]
    frames = [datagram(each, 4791) for each in sent]
    back = [roce(17, 9, 0, extended=syndrome), roce(16, 8, 40, extended=syndrome)]
    frames += [datagram(each, 4791, ends=("10.0.0.2", "10.0.0.1")) for each in back]
    path.write_bytes(classic([(1000 * at, frame) for at, frame in enumerate(frames)]))
    # Packet 8 was sent twice; of what came back, only the answer to a read is data.
    assert rows(path) == [(0, 1, 3 * 1024 + 101 + 10, 0), (1, 0, 40, 9000)]


def test_payload_of_hosts_of_the_simulator_counts_once_by_the_numbers_of_their_transport(tmp_path):
    path = tmp_path / "a.pcapng"
    ends = ("10.0.0.2", "10.0.0.1")
    # Packets of one flow, which may differ in their source port: first, second number, sender.
    flows = [
        # TCP, RDMA: the first byte, bytes left.
        [(at, 50_000, 0) for at in (0, 1000, 500, 2000)],
        # A long flow, whose last packets have a number of bytes left that a message could also have.
        [(at, 10**7 - at, 0) for at in (0, 10**7 - 2000, 10**7 - 1000)],
        # Packets of the flow in the upper half.
        [(4 << 32 | number, 9, 0) for number in (0, 1, 1, 3)],
        # Size of the message, number of the packet.
        [(3000, number, 0) for number in (2, 0, 0, 1)],
        # Subflows of a connection, one of which sends what the other one has sent.
        [(0, 0, 1), (1000, 1000, 1), (0, 2000, 1 << 24), (1000, 1000, 1 << 24)],
    ]
    sent = [
        (flow, lab_packet(flow, first, 1000, aux=aux, sender=sender))
        for flow, packets in enumerate(flows)
        for first, aux, sender in packets
    ]
    frames = [datagram(each, 22_342, source_port=50_000 + place) for place, (_, each) in enumerate(sent)]
    frames += [datagram(lab_packet(0, 1000, 0, kind=1), 22_342, ends=ends)]
    frames += [datagram(lab_packet(2, 4 << 32 | 2, 1000, trimming=3), 22_342)]
    # INT before the whole segment: a packet of the last flow.
    last = udp(7, 22_342, 1048) + lab_packet(4, 2000, 1000, aux=3000, sender=1)
    shim = struct.pack(">BBBB", 0x18, 3, 0, 17) + struct.pack(
        ">BBBBHHHH", 0x20, 0, 7, 5, 0x9400, 0x5746, 0x6000, 0
    )
    frames += [datagram(shim + last, 49_203, source_port=7)]
    # Another protocol.
    frames += [datagram(bytes(60), 22_342, source_port=8)]
    path.write_bytes(interfaces([(at % 2, at, frame) for at, frame in enumerate(_twice(frames))], ["a", "b"]))
    found = traces.read([path])
    assert sorted(row[2] for row in found.rows) == [60, 3000, 3000, 3000, 3000, 4000]
    assert {row[:2] for row in found.rows} == {(0, 1)} and found.cut_off == 0


def test_telemetry_is_no_payload_and_the_port_is_the_one_before_it(tmp_path):
    path = tmp_path / "a.pcap"
    int_ = struct.pack(">BBHBBBBHHHH", 0x14, 5, 9000, 0x20, 0, 2, 8, 0x9000, 0, 0, 0) + bytes(8)
    ours = struct.pack(">BBHHH", 0x11, 1, 24, 4791, 0x2000) + bytes(16)
    frames = [
        datagram(int_ + bytes(50), 49_203),
        datagram(bytes(50), 9000),
        datagram(ours + roce(0, 0, 1000), 49_201, source_port=50_001),
        datagram(roce(2, 1, 1000), 4791, source_port=50_001),
        # Of these ports, but not of these protocols.
        datagram(bytes(60), 49_203, source_port=50_002),
        datagram(bytes(60), 49_201, source_port=50_003),
    ]
    path.write_bytes(classic([(1000 * at, frame) for at, frame in enumerate(frames)]))
    assert [row[2] for row in rows(path)] == [100, 2000, 60, 60]


def test_packets_cut_off_before_they_tell_whether_they_have_data_are_left_out_and_counted(tmp_path, capsys):
    def telemetry(rest: bytes) -> bytes:
        return struct.pack(">BBHHH", 0x11, 1, 24, 4791, 0x2000) + bytes(16) + rest

    ends = ("10.0.0.2", "10.0.0.1")
    full = [datagram(telemetry(roce(0, number, 1000)), 49_201) for number in range(3)]
    full += [datagram(telemetry(roce(17, 1, 0, extended=bytes(4))), 49_201, ends=ends)]
    path, out = tmp_path / "a.pcap", str(tmp_path / "flows.csv")
    # Ethernet, IPv4, UDP and telemetry have 66 bytes, the base transport header 12.
    for kept, cut in ((len(full[0]), 0), (78, 0), (77, 4), (66, 4), (45, 4), (33, 4)):
        frames = [frame[:kept] for frame in full]
        rest = datagram(bytes(50), 9000)
        path.write_bytes(classic([(1000 * at, frame) for at, frame in enumerate([*frames, rest])]))
        found = traces.read([path])
        sizes = [row[2] for row in found.rows]
        assert (found.cut_off, sizes) == (cut, [50] if cut else [3000, 50]), kept
    assert main(["import", str(path), "--out", out]) == 0
    assert "warning: 4 packets left out: too few of their bytes were kept" in capsys.readouterr().err
    path.write_bytes(classic([(0, full[0][:60])]))
    with pytest.raises(InputError, match="no flow is left: of 1 packets too few bytes were kept"):
        traces.read([path])


def test_a_packet_is_never_longer_than_its_record_says_and_a_length_of_0_is_that_of_the_record(
    tmp_path, capsys
):
    path = tmp_path / "a.pcapng"

    def written(stated: int | None, *, version=4, ends=b"\0\1") -> bytes:
        body = tcp(1, 2, 0) + bytes(5000)
        if version == 4:
            frame = bytearray(ethernet(ipv4("10.0.0.1", "10.0.0.2", 6, body, 0)))
            place = 16
        else:
            head = (
                struct.pack(">IHBB", 6 << 28, len(body), 6, 64) + bytes(15) + ends[:1] + bytes(15) + ends[1:]
            )
            frame = bytearray(bytes(12) + b"\x86\xdd" + head + body)
            place = 18
        if stated is not None:
            frame[place : place + 2] = stated.to_bytes(2, "big")
        head = struct.pack("<IIIII", 0, 0, 0, 70, len(frame))
        file = interfaces([], ["eth0"]) + block(6, head + frame[:70] + bytes(2), "<")
        path.write_bytes(file)
        found = traces.read([path])
        assert found.overlong == (stated == 60_000)
        return found.rows[0][2]

    for version in (4, 6):
        assert [written(stated, version=version) for stated in (None, 0, 60_000)] == [5000] * 3
        assert written(1040 if version == 4 else 1020, version=version) == 1000, "the rest is padding"
    written(60_000)
    assert main(["import", str(path), "--out", str(tmp_path / "flows.csv")]) == 0
    assert "warning: 1 packets have headers that state more bytes than the capture" in capsys.readouterr().err


def fragments(body: bytes, *, version: int, protocol: int, number: int, size: int = 1448) -> list[bytes]:
    """The frames of an IP packet that was cut into fragments; an IPv6 one with an authentication header."""
    if version == 6:
        body, protocol = bytes([protocol, 4]) + bytes(22) + body, 51
    frames = []
    for offset in range(0, len(body), size):
        part, more = body[offset : offset + size], offset + size < len(body)
        if version == 4:
            frame = bytearray(ethernet(ipv4("10.0.0.1", "10.0.0.2", protocol, part, 0)))
            frame[18:22] = struct.pack(">HH", number, more << 13 | offset // 8)
            frames.append(bytes(frame))
        else:
            part = struct.pack(">BBHI", protocol, 0, offset | more, number) + part
            ends = bytes(15) + b"\1" + bytes(15) + b"\2"
            frames.append(
                bytes(12) + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, len(part), 44, 64) + ends + part
            )
    return frames


@pytest.mark.parametrize("version", [4, 6])
def test_fragments_are_of_the_flow_of_the_first_one(version, tmp_path, capsys):
    path, out = tmp_path / "a.pcapng", tmp_path / "flows.csv"
    packets = []
    for number in range(6):
        body = udp(5 + number % 2, 53, 4000) + bytes(4000)
        packets.append(fragments(body, version=version, protocol=17, number=number))
    # TCP that two interfaces saw, and a segment that was sent again, in one piece or in others.
    segments = [tcp(1, 2, 1) + bytes(3000), tcp(1, 2, 1001) + bytes(1000), tcp(1, 2, 1) + bytes(3000)]
    for number, body in enumerate(segments, 10):
        packets.append(fragments(body, version=version, protocol=6, number=number, size=800 * (number - 9)))

    def written(order=1) -> traces.Imported:
        seen = [frame for packet in packets for frame in packet[::order]]
        path.write_bytes(
            interfaces([(at % 2, at, frame) for at, frame in enumerate(_twice(seen))], ["a", "b"])
        )
        return traces.read([path])

    for found in (written(), written(-1)):
        assert [row[2] for row in found.rows] == [12_000, 12_000, 3000]
        assert found.fragments == 0 and found.span_ns == 6 * 6 * 1000 and found.cut_off == 0
    packets[0] = packets[0][1:]
    assert [row[2] for row in written().rows] == [12_000, 8000, 3000]
    assert main(["import", str(path), "--out", str(out)]) == 0
    assert "warning: 4 fragments left out: the first one of their packet" in capsys.readouterr().err
    del packets[1:]
    path.write_bytes(classic([(at, frame) for at, frame in enumerate(packets[0])]))
    wrong(path, "no flow is left: of 2 fragments the first one of their packet was not seen")


def _twice(frames):
    return [frame for frame in frames for _ in range(2)]


def test_captures_are_read_together_by_time_and_their_order_changes_nothing(tmp_path):
    def frames(times, source_port=1000):
        return [(1000 * time, datagram(bytes(100), 53, source_port=source_port)) for time in times]

    # Two points of observation, one of them with two files that continue each other.
    parts = {"left": range(50), "left1": range(50, 100), "right": range(10, 90)}
    files = [tmp_path / f"{name}.pcap" for name in parts]
    for file, times in zip(files, parts.values(), strict=True):
        file.write_bytes(classic(frames(times)))
    for order in (files, files[::-1], files[1:] + files[:1]):
        found = traces.read(order)
        assert found.rows == [(0, 1, 10_000, 0)]
        assert (found.at_several, found.unnumbered) == (1, 1)
    found = traces.read(files[1::-1])
    assert (found.rows, found.at_several) == ([(0, 1, 10_000, 0)], 0)
    # The same file twice is two points at which the same was seen.
    assert traces.read([files[0], files[0]]).rows == [(0, 1, 5000, 0)]
    # After another interface, a file continues nothing.
    files[0].write_bytes(interfaces([(0, time, frame) for time, (_, frame) in enumerate(frames([0]))], ["a"]))
    files[1].write_bytes(interfaces([(0, 5, frames([0])[0][1])], ["b"]))
    assert traces.read(files[:2]).at_several == 1


def test_sections_of_a_file_continue_each_other_as_files_do(tmp_path):
    def section(times, names=("a",), port=1000):
        frame = datagram(bytes(100), 53, source_port=port)
        return interfaces([(len(names) - 1, time, frame) for time in times], list(names))

    path, other = tmp_path / "a.pcapng", tmp_path / "b.pcapng"
    for parts, size, several in [
        ([section(range(5)), section(range(5, 10))], 1000, 0),
        ([section([]), section(range(5)), section([], ["b"]), section(range(4, 10))], 1100, 0),
        # Other interfaces, and times that overlap, are other points.
        ([section(range(5)), section(range(5, 10), ["b"])], 500, 1),
        ([section(range(5), ["a", "b"]), section(range(5, 10), ["b"])], 500, 1),
        ([section(range(5)), section(range(3, 10))], 700, 1),
        ([section(range(3, 10)), section(range(5))], 700, 1),
        # Each continues the section of its interfaces.
        ([section([at], [name]) for at in range(6) for name in "ab"], 600, 1),
    ]:
        path.write_bytes(b"".join(parts))
        found = traces.read([path])
        assert ([row[2] for row in found.rows], found.at_several) == ([size], several)
        # As files.
        files = [tmp_path / f"{number}.pcapng" for number in range(len(parts))]
        for file, part in zip(files, parts, strict=True):
            file.write_bytes(part)
        found = traces.read(files)
        assert ([row[2] for row in found.rows], found.at_several) == ([size], several)
    # Two points of which one saw less; the flow rests, and what is damaged is named with its record.
    path.write_bytes(
        b"".join(section(times, [name]) for name, times in [("a", range(0, 90, 30)), ("b", (0, 30))])
    )
    for one in (path, tmp_path / "a.pcapng.gz"):
        one.write_bytes(path.read_bytes() if one == path else gzip.compress(path.read_bytes()))
        assert [row[2] for row in rows(one, idle_ns=10_000)] == [100, 100, 100]
    path.write_bytes(path.read_bytes() + section([])[:-2])
    wrong(path, "record 6 (byte")
    found = traces.read([path], idle_ns=10_000, partial=True)
    assert len(found.rows) == 3 and len(found.ended) == 1 and "the 5 packets before it" in found.ended[0]
    path.write_bytes(section(range(5)) + section(range(5, 10)))
    other.write_bytes(section([]) + section(range(10, 15)) + section(range(15, 20)))
    assert [row[2] for row in traces.read([other, path]).rows] == [2000]


def test_sequence_numbers_may_wrap(tmp_path):
    path = tmp_path / "a.pcap"
    path.write_bytes(classic([segment(0, 2**32 - 500, 1000), segment(1000, 500, 1000)]))
    assert rows(path) == [(0, 1, 2000, 0)]


def test_rest_splits_a_flow_and_ports_tell_flows_apart(tmp_path):
    packets = [
        segment(0, 1, 100),
        segment(10_000, 1, 7, ports=(40001, 80)),
        segment(900_000, 101, 100),
        segment(3_000_000, 201, 100),
    ]
    path = tmp_path / "a.pcap"
    path.write_bytes(classic(packets))
    assert rows(path, idle_ns=1_000_000) == [(0, 1, 200, 0), (0, 1, 7, 10_000), (0, 1, 100, 3_000_000)]
    assert rows(path, idle_ns=10**9) == [(0, 1, 300, 0), (0, 1, 7, 10_000)]


def test_udp_vlan_tags_gzip_and_other_packets(tmp_path):
    datagram = ipv4("10.0.0.9", "10.0.0.1", 17, udp(5000, 53, 512), 512)
    arp = bytes(12) + b"\x08\x06" + bytes(28)
    path = tmp_path / "a.pcap.gz"
    path.write_bytes(gzip.compress(classic([(0, arp), (7_000, ethernet(datagram, vlan=True))])))
    assert rows(path) == [(0, 1, 512, 0)]


def test_a_file_that_is_named_like_a_capture_and_is_none_is_not_taken_for_a_table(tmp_path):
    for name in ("noise.pcap", "noise.pcapng.gz"):
        (tmp_path / name).write_bytes(b"\x01\x02\x03\x04" * 25)
        with pytest.raises(InputError, match="is not a capture: expected pcap or pcapng"):
            traces.read([tmp_path / name])


def test_a_damaged_capture_is_refused_with_the_number_of_its_record(tmp_path):
    path = tmp_path / "a.pcap"
    whole = classic([segment(0, 1, 100), segment(1000, 101, 100)])
    path.write_bytes(whole[:-10])
    cut = "a.pcap: record 2 (byte 110): cut off: expected 54 bytes, found 44"
    wrong(path, cut)
    found = traces.read([path], partial=True)
    assert found.rows == [(0, 1, 100, 0)]
    assert [text[text.index("a.pcap") :] for text in found.ended] == [
        f"{cut}; the 1 packet before it is used"
    ]
    path.write_bytes(whole[:24] + b"\xff" * 16)
    wrong(path, "record 1 (byte 40): says that it has 4294967295 bytes")
    path.write_bytes(b"\xd4\xc3\xb2\xa1")
    wrong(path, "record 1 (byte 4): cut off")
    path.write_bytes(whole[:20] + struct.pack("<I", 147) + whole[24:])
    wrong(path, "record 1: link type 147: expected Ethernet")
    path.write_bytes(gzip.compress(whole)[:-20])
    wrong(path, "record")
    wrong(tmp_path / "none.pcap", "none.pcap: No such file")
    wrong(tmp_path, "Is a directory")


@pytest.mark.parametrize("record", [bytes(16), struct.pack("<4I", 0, 0, 1, 1) + b"x"])
def test_a_small_file_that_unpacks_to_much_is_given_up(tmp_path, record):
    path = tmp_path / "bomb.pcap.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"\xd4\xc3\xb2\xa1" + struct.pack("<HHiIII", 2, 4, 0, 0, 65535, 1))
        for _ in range(40):
            file.write(record * 60_000)
    begin = time.monotonic()
    with pytest.raises(InputError, match=r"had no bytes|unpacks to more than 100 times its size"):
        sum(1 for _ in captures.read(path))
    assert time.monotonic() - begin < 20


def test_a_bomb_is_refused_before_its_records_are_read(tmp_path):
    path = tmp_path / "bomb.pcap.gz"
    record = struct.pack("<IIII", 0, 0, 1, 1) + b"\0"
    with gzip.open(path, "wb") as file:
        file.write(classic([]))
        for _ in range(150):
            file.write(record * 65_536)
    begin = time.monotonic()
    wrong(path, "unpacks to more than 100 times its size; if that is meant, gunzip it first")
    assert time.monotonic() - begin < 10, "17 s if its records are read"


def test_a_damaged_block_is_refused(tmp_path):
    path = tmp_path / "a.pcapng"
    whole = next_generation([(0, b"1234")])
    path.write_bytes(whole[:-4] + b"\x01\x00\x00\x00")
    wrong(path, "record 1 (byte", kind="pcap")
    wrong(path, "two lengths differ", kind="pcap")
    path.write_bytes(whole[:28])
    wrong(path, "no flow is left")
    simple = block(3, struct.pack("<I", 4) + b"1234", "<")
    path.write_bytes(whole[:-36] + simple)
    wrong(path, "simple packet block, which has no time")
    strange = block(6, struct.pack("<IIIII", 3, 0, 0, 0, 0), "<")
    path.write_bytes(whole[:-36] + strange)
    wrong(path, "is of interface 3, of which there are 1")


def test_no_bytes_end_a_reading_but_with_an_error_of_the_input(tmp_path):
    chance = random.Random(7)
    cut = [fragments(bytes(300), version=at, protocol=6, number=1, size=80) for at in (4, 6)]
    seeds = [classic([segment(0, 1, 100)] * 3), next_generation([(0, segment(0, 1, 100)[1])] * 3)]
    frames = [*cut[0], *cut[1], datagram(lab_packet(1, 0, 20), 22_342)]
    seeds += [interfaces([(0, at, each) for at, each in enumerate(frames)], ["a"])]
    seeds += [interfaces([(0, at, each) for at, each in enumerate(frames[:3])], ["a"]) * 2]
    path = tmp_path / "a.pcap"
    for trial in range(800):
        data = bytearray(seeds[trial % len(seeds)])
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(data[: chance.randrange(1, len(data) + 1)])
        with contextlib.suppress(InputError):
            found = traces.read([path, path][trial % 2 :], kind="pcap", partial=trial % 3 == 0)
            on_wire = sum(packet.length for packet in captures.read(path, partial=True))
            assert found.bytes <= on_wire * (2 - trial % 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty: expected a header"),
        ("sa,ta,ts,ibyt\n", "line 1: no column says dst: "),
        ("src,dst,start_ns,size_bytes\n", 'no column says bytes: of "size_bytes", did you mean "bytes"? '),
        (
            "src,dst,start_ns,bytes\n10.0.0.1,10.0.0.2,5\n",
            "record 1 (line 2): expected 4 fields as in the header, found 3",
        ),
        (
            "src,dst,start_ns,bytes\n10.0.0.1,host,5,6\n",
            "record 1 (line 2): dst: expected an IP address, found 'host'",
        ),
        ("src,dst,start_ns,bytes\n10.0.0.1,10.0.0.2,noon,6\n", "start: expected a time such as"),
        (
            "src,dst,start_ns,bytes\n10.0.0.1,10.0.0.2,5,1.2 M\n",
            "bytes: expected a whole number, without a unit",
        ),
        ("src,dst,start_ns,bytes\n10.0.0.1,10.0.0.2,5,-6\n", "bytes: expected a whole number"),
        ("src,dst,start_ns,bytes\n10.0.0.1,10.0.0.2,,6\n", "start is empty"),
        (
            "src,dst,start_s,end_s,bytes\n10.0.0.1,10.0.0.2,5,3,6\n",
            "record 1 (line 2): end: expected no time before the start, 5,000,000,000 ns, found 3",
        ),
        ("src,dst,start_ns,bytes\n", "no flow is left"),
        ("src,dst,start_ns,bytes\n10.0.0.1,10.0.0.1,5,6\n", "1 begin and end at one host"),
    ],
)
def test_a_wrong_table_is_refused_with_its_record(text, message, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(text)
    wrong(path, message)


def test_more_addresses_than_hosts_and_a_wrong_map_are_refused(tmp_path):
    path, table = tmp_path / "a.csv", tmp_path / "hosts.csv"
    path.write_text("src,dst,start_ns,bytes\n10.0.0.1,10.0.0.2,0,5\n10.0.0.1,10.0.0.3,0,5\n")
    wrong(path, "10.0.0.3 is address 3 and there are 2 hosts", host_count=2)
    for text, output in [
        ("10.0.0.1\n", "hosts.csv:1: expected an address and a host"),
        ("10.0.0.300,1\n", "hosts.csv:1: '10.0.0.300' does not appear to be"),
        ("10.0.0.1,one\n", "hosts.csv:1: expected the number of a host, found 'one'"),
        ("10.0.0.1,1\n10.0.0.1,2\n", "hosts.csv:2: 10.0.0.1/32 is host 1 already"),
        ("10.9.0.0/16,1\n", "2 have an end that --map does not name"),
    ]:
        table.write_text(text)
        wrong(path, output, table=table)


def test_the_command_writes_a_trace_and_says_what_it_left_out(tmp_path, capsys):
    path, out = tmp_path / "a.csv", tmp_path / "flows.csv"
    path.write_text(NFDUMP)
    arguments = ["import", str(path), "--out", str(out)]
    assert main([*arguments, "--min-size", "1KB", "--group", "real"]) == 0
    output = capsys.readouterr()
    assert "1 flow between 2 hosts, 10 KB" in output.out
    assert "2 flows left out, which are smaller than --min-size" in output.err
    assert out.read_text() == "src,dst,size_bytes,start_ns,group\n0,1,10000,0,real\n"
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["addresses"]["10.0.0.3"] == 0
    assert main([*arguments, "--kind", "pcab"]) == 2
    assert 'did you mean "pcap"' in capsys.readouterr().err
    for option, value, problem in (
        ("--idle", "1", "--idle: expected a time"),
        ("--min-size", "1", "--min-size: expected a size with its unit"),
        ("--min-size", "99999999999TB", "--min-size: expected a size below 2^64 B"),
    ):
        assert main([*arguments, option, value]) == 2
        assert problem in capsys.readouterr().err
    assert main(["import", str(path), "--out", str(tmp_path / "none" / "f.csv")]) == 2
    assert "f.csv: No such file" in capsys.readouterr().err


@built
def test_what_a_run_captured_is_the_traffic_that_it_had(tmp_path):
    topology = {"kind": "star", "hosts": 3, "host_link": {"rate": "10Gbps", "delay": "1us"}}
    flows = [{"src": 0, "dst": 2, "size": "70KB"}, {"src": 1, "dst": 2, "size": "9KB", "start": "1ms"}]
    scenario = {"name": "real", "topology": topology, "transport": {"kind": "tcp"}}
    first = weftline.run(
        scenario
        | {"workload": [{"kind": "flows", "flows": flows}], "measure": {"pcap": ["host0->*", "host1->*"]}},
        out=tmp_path / "first",
    )
    table = tmp_path / "hosts.csv"
    table.write_text("".join(f"10.0.0.{host + 1},{host}\n" for host in range(3)))
    found = traces.read([first.out / "capture.pcapng"], table=table)
    assert [row[:3] for row in found.rows] == [(0, 2, 70_000), (1, 2, 9_000)]
    traces.write(found, tmp_path / "flows.csv")
    again = weftline.run(
        scenario | {"workload": [{"kind": "trace", "file": str(tmp_path / "flows.csv")}]},
        out=tmp_path / "again",
    )
    assert again.summary["flows_done"] == 2
    # Each waits for its own handshake on an empty network, so they are as far apart as they were.
    assert found.rows[1][3] == pytest.approx(1_000_000, abs=2)


def test_a_file_of_another_name_is_not_taken_for_a_job_graph(tmp_path, capsys):
    path = tmp_path / "job.txt"
    path.write_text("num_ranks 1\n")
    assert main(["import", str(path)]) == 2
    assert "job.txt is not named as a job graph (.goal, .bin or .et" in capsys.readouterr().err
    assert main(["import", str(path), "--loggops", "L=1"]) == 2
    assert capsys.readouterr().err.startswith("error: --loggops: only job graphs have these")


def test_the_prefix_of_chakras_files_stands_for_all_of_them(tmp_path, capsys):
    # A message of metadata, and a computation: id 1, type COMP_NODE, 5 us.
    trace = b"\x07\x0a\x050.0.4" + b"\x06\x08\x01\x18\x04\x38\x05"
    for rank in range(2):
        (tmp_path / f"job.{rank}.et").write_bytes(trace)
    for name in ("job", "job.0.et"):
        assert main(["import", str(tmp_path / name)]) == 0
        assert "chakra, 2 ranks: 2 computations" in capsys.readouterr().out
    assert main(["import", str(tmp_path / "job.1.et")]) == 2
    assert "job.1.et: the file of rank 1: expected that of rank 0, " in capsys.readouterr().err
    scenario = {
        "topology": {"kind": "star", "hosts": 2},
        "workload": [{"kind": "job-file", "file": str(tmp_path / "job")}],
    }
    assert weftline.Scenario(scenario).check()["traffic"]["groups"] == ["job-file"]
