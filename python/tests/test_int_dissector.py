"""The dissector of INT, reports and PINT agrees with the collector, and with the values of the reference."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
import tshark
from packet_bytes import classic, int_packet
from test_collect_live import report

import weftline

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "telemetry" / "int"
MD_FIELDS = (
    "type",
    "bitmap",
    "hop_words",
    "remaining",
    "domain",
    "domain_flags",
    "node",
    "queue",
    "complement",
)


def numbers(text: str) -> list[int]:
    return [int(value, 0) for value in text.split(",") if value]


def udp_packet(port: int, payload: bytes) -> bytes:
    udp = struct.pack("!HHHH", 4000, port, 8 + len(payload), 0) + payload
    addresses = bytes([10, 0, 0, 9, 10, 0, 0, 10])
    return struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 1, 0x4000, 61, 17, 0) + addresses + udp


def test_nodes_of_packets_and_reports_are_those_of_the_collector(tmp_path):
    tshark.needed()
    packets = [int_packet([1, 2, 4]), int_packet([7]), udp_packet(32766, report(5, 70, [3, 8, 9]))]
    capture = tmp_path / "int.pcap"
    capture.write_bytes(classic(list(enumerate(packets, 1)), nanoseconds=True, link=101))
    rows = tshark.fields(capture, "weftline.int.node", "weftline.report.sequence", "weftline.report.node")
    assert [numbers(row[0]) for row in rows] == [[1, 2, 4], [7], [3, 8, 9]]
    assert (rows[2][1], rows[2][2]) == ("5", "9")
    found = weftline.collect(capture)
    assert {tuple(row["path"]) for row in found.paths} == {(7,), (3, 8, 9)}


def test_the_option_of_pint(tmp_path):
    tshark.needed()
    options = bytes([17, 0, 0x3E, 4, 7, 64, 0xBE, 0xEF])
    udp = struct.pack("!HHHH", 4000, 5000, 8, 1)
    packet = (
        struct.pack("!IHBB", 6 << 28, len(options) + len(udp), 0, 60) + bytes(15) + b"\1" + bytes(15) + b"\2"
    )
    capture = tmp_path / "pint.pcap"
    capture.write_bytes(classic([(1, packet + options + udp)], link=101))
    names = ("weftline.pint.plan", "weftline.pint.hop_limit", "weftline.pint.digest")
    assert tshark.fields(capture, *names) == [("7", "64", "beef")]
    assert weftline.collect(capture).summary["digests_by_carrier"] == {"Option": 1}


def reference(name: str) -> Iterator[dict]:
    if not REFERENCE.exists():
        pytest.skip("the reference data is not here")
    with (REFERENCE / f"{name}.jsonl").open() as lines:
        yield from map(json.loads, lines)


def test_every_packet_of_the_reference():
    tshark.needed()
    expected = list(reference("int_md"))
    rows = tshark.fields(REFERENCE / "int_md.pcap", *(f"weftline.int.{name}" for name in MD_FIELDS))
    assert len(rows) == len(expected) == 13
    for row, packet in zip(rows, expected, strict=True):
        found = {name: numbers(text) for name, text in zip(MD_FIELDS, row, strict=True)}
        hops = packet.get("hops", [])
        assert found["type"] == [{"md": 1, "mx": 3}[packet["type"]]]
        assert found["bitmap"] == [packet["bitmap"]]
        assert found["domain"] == [packet.get("domain", 0)]
        assert found["node"] == [hop["node"] for hop in hops]
        assert found["queue"] == [hop["queue"][1] for hop in hops if hop.get("queue")]
        assert found["complement"] == [hop["complement"] for hop in hops if "complement" in hop]
        if packet["type"] == "md":
            assert (found["hop_words"], found["remaining"]) == (
                [packet["hop_ml"]],
                [packet["remaining_hops"]],
            )
            assert found["domain_flags"] == [packet.get("ds_flags", 0)]


def test_every_report_of_the_reference():
    tshark.needed()
    expected = list(reference("int_report"))
    names = ("report.sequence", "report.node", "report.type", "int.node", "int.queue", "report.drop_reason")
    rows = tshark.fields(REFERENCE / "int_report.pcap", *(f"weftline.{name}" for name in names))
    assert len(rows) == len(expected) == 10
    for row, group in zip(rows, expected, strict=True):
        sequence, node, kinds, nodes, queues, reasons = map(numbers, row)
        assert (sequence, node) == ([group["sequence"]], [group["node"]])
        reports = group["reports"]
        assert kinds == [{"int": 1, "inner only": 0}[each["type"]] for each in reports]
        embedded = [hop for each in reports for hop in each.get("embedded", [])]
        assert nodes == [hop["node"] for hop in embedded]
        own = [[each["queue"][1]] if "queue" in each else [] for each in reports]
        inner = [[hop["queue"][1] for hop in each.get("embedded", []) if "queue" in hop] for each in reports]
        assert queues == [value for mine, theirs in zip(own, inner, strict=True) for value in mine + theirs]
        assert reasons == [each["drop"]["reason"] for each in reports if "drop" in each]
