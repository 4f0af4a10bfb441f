"""Captures of runs: their keys, and what tshark reads in them."""

from __future__ import annotations

import json
import re
import struct
from collections import Counter
from pathlib import Path

import pytest
import tshark
from packet_bytes import classic, datagram, lab_packet, roce

import weftline
from weftline import _native
from weftline.cli.main import main
from weftline.errors import InputError
from weftline.packets import captures, traces

pytestmark = pytest.mark.skipif(
    not getattr(_native, "__file__", None), reason="the native module is not built (maturin develop)"
)

CLOS = {
    "kind": "leaf-spine",
    "leaves": 2,
    "spines": 2,
    "hosts_per_leaf": 2,
    "host_link": {"rate": "10Gbps", "delay": "1us"},
    "fabric_link": {"rate": "10Gbps", "delay": "1us"},
}
FLOWS = [{"src": 0, "dst": 2, "size": "100KB"}, {"src": 1, "dst": 2, "size": "50KB"}]
OTHER_ENDS = [{"src": 0, "dst": 2, "size": "100KB"}, {"src": 0, "dst": 3, "size": "50KB"}]
LINKS = ["leaf0->spine*", "spine*->leaf0"]
RDMA = {"controller": {"kind": "dctcp"}}
SCHEMES = {
    "tcp": {"transport": {"kind": "tcp"}},
    "mp-hula": {
        "transport": {"kind": "mptcp", "subflows": 2},
        "switch": {"balancer": {"kind": "mp-hula"}},
        "run": {"until": "1ms"},
    },
    "roce": {"transport": RDMA},
    "int": {"transport": {"controller": {"kind": "hpcc"}}},
    "pint": {"transport": {"controller": {"kind": "hpcc-pint"}}, "telemetry": {"kind": "pint"}},
    "timely": {"transport": {"controller": {"kind": "timely"}}},
    "phost": {"transport": {"kind": "phost"}},
    "pfabric": {"transport": {"kind": "pfabric"}, "switch": {"queue": {"kind": "pfabric"}}},
    "fastpass": {"transport": {"kind": "fastpass"}},
    "ndp": {"transport": {"kind": "ndp"}},
    "homa": {"transport": {"kind": "homa"}},
    "conga": {"transport": {"kind": "tcp"}, "switch": {"balancer": {"kind": "conga"}}},
    "clove": {"transport": {"kind": "tcp"}, "switch": {"balancer": {"kind": "clove"}}},
}


QUERIES = """\
bits = 24
hops = { expected = 3, maximal = 8 }

[[query]]
name = "path"
value = "switch-id"
aggregation = "path"
bits = 8

[[query]]
name = "latency"
value = "hop-latency"
aggregation = "quantiles"
approximation = { epsilon = 0.025 }
bits = 8

[[query]]
name = "load"
value = "utilisation"
aggregation = "max"
approximation = { epsilon = 0.025 }
bits = 8
"""


def capture(folder, *, snaplen="auto", links=LINKS, measure=None, flows=FLOWS, **parts):
    """Run with these links captured; the run and the path of the capture."""
    measure = {"pcap": links, "pcap_snaplen": snaplen, **(measure or {})}
    workload = [{"kind": "flows", "flows": flows}]
    scenario = {"name": "packets", "topology": CLOS, "workload": workload, "measure": measure, **parts}
    found = weftline.run(scenario, out=folder)
    return found, found.out / "capture.pcapng"


@pytest.mark.parametrize("snaplen", ["auto", "65535B"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_tshark_complains_of_no_packet(scheme, snaplen, tmp_path):
    tshark.needed()
    found, path = capture(tmp_path / "run", snaplen=snaplen, **SCHEMES[scheme])
    assert found.summary["capture"]["packets"] > 50 and found.summary["capture"]["stopped_ns"] is None
    tshark.assert_clean(path)


def test_a_tcp_connection_is_read_from_its_handshake_to_its_last_byte(tmp_path):
    tshark.needed()
    _, path = capture(tmp_path / "run", links=["host0->leaf0", "leaf0->host0"], **SCHEMES["tcp"])
    rows = tshark.fields(path, "tcp.flags", "tcp.seq", "tcp.ack", "tcp.len", "tcp.options.timestamp.tsecr")
    flags = [int(row[0], 16) for row in rows]
    assert flags[:3] == [0x02, 0x12, 0x10], "SYN, SYN-ACK, ACK"
    sent = [(int(row[1]), int(row[3])) for row in rows if int(row[3] or 0) > 0]
    assert sum(length for _, length in sent) == 100_000
    assert max(first + length for first, length in sent) == 100_001
    assert max(int(row[2]) for row in rows) == 100_001, "everything is acknowledged"
    syn = tshark.fields(path, "tcp.options.mss_val", "tcp.options.wscale.shift", "tcp.options.sack_perm")[0]
    assert syn[:2] == ("1448", "7") and syn[2]
    assert tshark.fields(path, "frame.interface_name")[0] == ("host0->leaf0",)


def test_selective_blocks_lie_after_the_gap_that_a_loss_has_left(tmp_path):
    tshark.needed()
    loss = {"loss": 0.02}
    _, path = capture(
        tmp_path / "run", links="leaf0->host0", failures=loss, flows=FLOWS[:1], **SCHEMES["tcp"]
    )
    rows = tshark.fields(
        path, "tcp.ack", "tcp.options.sack_le", "tcp.options.sack_re", of="tcp.options.sack_le"
    )
    assert rows
    for ack, left, right in rows:
        for edge, end in zip(left.split(","), right.split(","), strict=True):
            assert int(edge) < int(end) <= 100_001
        assert int(ack) <= 100_001
    tshark.assert_clean(path)


def test_marks_of_mp_hula_tell_the_subflows_of_a_connection_apart(tmp_path):
    tshark.needed()
    long = [flow | {"size": "400KB"} for flow in FLOWS]
    _, path = capture(tmp_path / "run", flows=long, **SCHEMES["mp-hula"])
    rows = tshark.fields(
        path, "weftline.tag.connection", "weftline.tag.subflow", "tcp.srcport", of="tcp.len > 0"
    )
    marked = [row for row in rows if row[0]]
    assert len(marked) > len(rows) / 2
    ports: dict[tuple, set] = {}
    for connection, subflow, port in marked:
        ports.setdefault((connection, subflow), set()).add(port)
    connections = {connection for connection, _ in ports}
    assert len(connections) == 2 and len(ports) == 4, "two flows of two subflows"
    assert all(len(found) == 1 for found in ports.values()), "a subflow has one port"
    options = tshark.fields(path, "tcp.options.mptcp.subtype")
    assert {"0", "1", "2"} <= {row[0] for row in options}, "MP_CAPABLE, MP_JOIN, DSS"


def test_a_token_of_a_join_is_the_one_that_tshark_works_out_of_the_keys(tmp_path):
    tshark.needed()
    links = ["host0->leaf0", "leaf0->host0"]
    _, path = capture(tmp_path / "run", links=links, flows=FLOWS[:1], **SCHEMES["mp-hula"])
    expected = tshark.fields(path, "mptcp.expected_token", of="mptcp.expected_token")
    joined = tshark.fields(path, "tcp.options.mptcp.recvtok", of="tcp.options.mptcp.recvtok")
    assert joined and {row[0] for row in joined} <= {row[0] for row in expected}


def test_probes_say_whose_they_are(tmp_path):
    tshark.needed()
    _, path = capture(tmp_path / "run", **SCHEMES["mp-hula"])
    rows = tshark.fields(path, "weftline.tag.tor", "weftline.tag.utilisation", of="weftline.tag.kind == 4")
    assert {row[0] for row in rows} == {"0", "1"}
    assert all(0 <= int(row[1]) < 256 for row in rows)


def test_int_records_show_the_queue_that_the_series_has(tmp_path):
    tshark.needed()
    found, path = capture(
        tmp_path / "run",
        links="leaf1->host2",
        measure={"queues": {"ports": "leaf1->host2"}},
        **SCHEMES["int"],
    )
    rows = tshark.fields(
        path,
        "weftline.telemetry.hops",
        "weftline.telemetry.rate_gbps",
        "weftline.telemetry.queue_bytes",
        of="weftline.telemetry.opcode < 5",
    )
    assert {row[0] for row in rows} == {"3"}, "leaf, spine, leaf"
    assert {row[1] for row in rows} == {"10,10,10"}
    highest = max(int(queue) for row in rows for queue in row[2].split(","))
    assert highest > 5000, "two senders of 10 Gb/s meet"
    assert found.summary["status"] == "done"


def test_the_dissector_marks_records_that_later_hops_have_overwritten(tmp_path):
    tshark.needed()
    path = tmp_path / "a.pcap"

    def frame(contents: int, hops: int, records: int) -> bytes:
        head = struct.pack(">BBHHH", 0x10 | contents, 1, 8 + 8 * records, 4791, hops << 12)
        return datagram(head + bytes(8 * records) + roce(0, 0, 10), 49_201)

    # Five hops; seven over five records; 20; more than 15 over 15.
    frames = [frame(1, 5, 5), frame(1, 7, 5), frame(9, 7, 5), frame(1, 15, 20), frame(9, 15, 15)]
    path.write_bytes(classic(list(enumerate(frames))))
    rows = tshark.fields(path, "weftline.telemetry.hops", "weftline.telemetry.overwritten")
    assert rows == [("5", "0"), ("7", "1"), ("7", "1"), ("20", "0"), ("15", "1")]
    text = "\n".join(tshark.run(path, "-V"))
    for each in ("INT, 7 hops, 5 records, overwritten", "INT, 15 or more hops, 15 records, overwritten"):
        assert each in text


def test_pint_digests_are_as_long_as_the_plan_says(tmp_path):
    tshark.needed()
    _, path = capture(tmp_path / "run", **SCHEMES["pint"])
    rows = tshark.fields(
        path, "weftline.telemetry.hops", "weftline.telemetry.digest", of="weftline.telemetry.pint"
    )
    assert {row[0] for row in rows} == {"1", "3"}, "data on their way up, acknowledgements on theirs back"
    assert {len(row[1]) for row in rows} == {2}, "8 bits"


def test_digests_of_a_capture_are_decoded_as_those_that_the_sink_recorded(tmp_path, capsys):
    queries = tmp_path / "queries.toml"
    queries.write_text(QUERIES)
    telemetry = {"kind": "pint", "queries": str(queries), "record": 1.0}
    links = ["leaf*->spine*", "leaf*->host*"]
    found, path = capture(tmp_path / "run", links=links, transport=RDMA, telemetry=telemetry)
    of = ["--plan", str(queries), "--topology", str(found.out / "scenario.toml")]
    assert main(["pint", "decode", str(found.out / "telemetry.parquet"), *of]) == 0
    recorded = capsys.readouterr().out
    assert main(["pint", "decode", str(path), *of]) == 0
    captured = capsys.readouterr()
    assert captured.out == recorded
    assert "leaf0" in captured.out and " us" in captured.out and "%" in captured.out
    assert "does not state the plan's version" in captured.err and "are left out" in captured.err
    queries.write_text(QUERIES.replace("bits = 24", "bits = 32"))
    assert main(["pint", "decode", str(path), *of]) == 2
    assert "a digest of 3 bytes: those of this plan have 4" in capsys.readouterr().err
    _, other = capture(tmp_path / "other", transport=RDMA)
    assert main(["pint", "decode", str(other), *of]) == 2
    assert "holds no digests of PINT" in capsys.readouterr().err


def test_digests_of_a_part_of_the_path_are_not_taken_for_the_path(tmp_path, capsys):
    queries = tmp_path / "queries.toml"
    queries.write_text(QUERIES)
    parts = {"transport": RDMA, "telemetry": {"kind": "pint", "queries": str(queries)}}
    of = ["--plan", str(queries), "--json"]
    found, path = capture(tmp_path / "part", links="leaf0->spine*", **parts)
    topology = ["--topology", str(found.out / "scenario.toml")]
    assert main(["pint", "decode", str(path), *of, *topology]) == 2
    assert "no captured link ends at the destination of a flow" in capsys.readouterr().err
    # One of two flows arrives.
    _, path = capture(tmp_path / "half", links=["leaf0->spine*", "leaf1->host2"], flows=OTHER_ENDS, **parts)
    assert main(["pint", "decode", str(path), *of, *topology]) == 0
    output = capsys.readouterr()
    assert "1 of 2 flows are left out: no captured link ends at their destination" in output.err
    assert json.loads(output.out)["flows"] == 1


def test_a_capture_that_is_cut_off_is_used_up_to_there(tmp_path, capsys):
    queries = tmp_path / "queries.toml"
    queries.write_text(QUERIES)
    telemetry = {"kind": "pint", "queries": str(queries)}
    found, path = capture(tmp_path / "run", links="leaf*->host*", transport=RDMA, telemetry=telemetry)
    of = ["--plan", str(queries), "--topology", str(found.out / "scenario.toml"), "--json"]
    assert main(["pint", "decode", str(path), *of]) == 0
    whole = json.loads(capsys.readouterr().out)
    cut, before = tmp_path / "cut.pcapng", found.summary["capture"]["packets"] - 1
    cut.write_bytes(path.read_bytes()[:-7])
    for command in (["pint", "decode", str(cut), *of], ["pcap", str(cut), "--json"]):
        assert main(command) == 0
        output = capsys.readouterr()
        assert f"record {before + 1} " in output.err and "cut off: expected" in output.err
        assert f"; the {before:,} packets before it are used" in output.err
        if command[0] == "pint":
            assert 0 <= whole["rows"] - json.loads(output.out)["rows"] <= 1
    cut.write_bytes(path.read_bytes()[:20])
    assert main(["pcap", str(cut)]) == 2


@pytest.mark.parametrize("scheme", SCHEMES)
def test_flows_out_of_a_capture_have_the_sizes_that_they_had(scheme, tmp_path):
    """With every link captured, by which each packet is there three or four times, and losses."""
    parts = dict(SCHEMES[scheme])
    if parts["transport"].get("kind") == "tcp":
        parts["switch"] = {"buffer": "20KB"} | parts.get("switch", {})
    _, path = capture(tmp_path / "run", links="*", **parts)
    (tmp_path / "hosts.csv").write_text("".join(f"10.0.0.{host + 1},{host}\n" for host in range(8)))
    trace = traces.read([path], table=tmp_path / "hosts.csv")
    sizes = Counter()
    for src, dst, size, _ in trace.rows:
        sizes[src, dst] += size
    if scheme != "mp-hula":
        assert [row[:3] for row in sorted(trace.rows)] == [(0, 2, 100_000), (1, 2, 50_000)]
        assert trace.unnumbered == 0
    # What a connection of MPTCP sends again on another subflow counts there.
    assert sizes[0, 2] >= 100_000 and sizes[1, 2] >= 50_000 and len(sizes) == 2


@pytest.mark.parametrize("scheme", ["phost", "pfabric", "fastpass", "ndp", "homa"])
def test_packets_of_our_own_schemes_name_their_kind_and_flow(scheme, tmp_path):
    tshark.needed()
    _, path = capture(
        tmp_path / "run", links=["host0->leaf0", "leaf0->host0"], flows=FLOWS[:1], **SCHEMES[scheme]
    )
    rows = tshark.fields(
        path, "weftline.packet.kind", "weftline.packet.flow", "weftline.packet.last", "udp.length"
    )
    kinds = Counter(int(row[0]) for row in rows)
    needed = {
        "phost": {0, 1, 2, 3},
        "pfabric": {0, 1},
        "fastpass": {0, 1, 2, 4},
        "ndp": {0, 1, 13},
        "homa": {0, 1, 14},
    }
    assert needed[scheme] <= set(kinds)
    assert {row[1] for row in rows} <= {"0", ""}
    assert sum(row[2] in ("1", "True") for row in rows) == 1, "one packet has the last byte"


def test_the_dissector_names_every_scheme_and_kind_that_captures_have(tmp_path):
    tshark.needed()
    source = (Path(__file__).parents[3] / "crates/sim/src/capture/datagrams.rs").read_text()
    schemes = sorted({int(number) for number in re.findall(r"\[(\d+), (?:kind|[A-Z_]+)\]", source)})
    kinds = [int(number) for number in re.findall(r"^const [A-Z_]+: u8 = (\d+);", source, re.MULTILINE)]
    kinds.remove(1)  # The version of the header.
    assert len(schemes) >= 6 and len(kinds) >= 18

    def frame(scheme: int, kind: int) -> bytes:
        return datagram(bytes([0x10 | scheme, kind, 0, 24]) + struct.pack(">I", 7) + bytes(16), 49_200)

    frames = [frame(scheme, 0) for scheme in schemes] + [frame(1, kind) for kind in kinds]
    path = tmp_path / "a.pcap"
    path.write_bytes(classic(list(enumerate(frames))))
    text = tshark.run(path, "-V")
    named = [line for line in text if re.match(r" *(Scheme|Kind): [A-Za-z][^(]* \(\d+\)$", line)]
    assert len(named) == 2 * len(frames), "each number with its name"
    bodies = [line for line in text if re.match(r" *(Packets of the flow|First byte|Bytes of the m)", line)]
    assert len(bodies) >= len(schemes), "data of every scheme has a body"


def test_roce_packets_are_numbered_and_their_last_is_acknowledged(tmp_path):
    tshark.needed()
    _, path = capture(
        tmp_path / "run", links=["host0->leaf0", "leaf0->host0"], flows=FLOWS[:1], **SCHEMES["roce"]
    )
    rows = tshark.fields(path, "infiniband.bth.opcode", "infiniband.bth.psn", "infiniband.bth.destqp")
    sent = [int(row[1]) for row in rows if row[0] in ("0", "1", "2")]
    assert sent == list(range(100))
    assert [row[0] for row in rows].count("0") == [row[0] for row in rows].count("2") == 1
    assert max(int(row[1]) for row in rows if row[0] == "17") == 99
    assert {int(row[2], 16) for row in rows} == {256}


def test_a_full_file_stops_and_the_run_says_so(tmp_path, capsys):
    whole, _ = capture(tmp_path / "whole", **SCHEMES["tcp"])
    found, path = capture(tmp_path / "run", measure={"pcap_bytes": "10KB"}, **SCHEMES["tcp"])
    output = found.summary["capture"]
    assert path.stat().st_size == output["bytes"] <= 10_000 < whole.summary["capture"]["bytes"]
    times = [packet.time_ns for packet in captures.read(whole.out / "capture.pcapng")]
    assert times[output["packets"]] == int(output["stopped_ns"])
    assert any("pcap_bytes" in warning for warning in found.summary["warnings"])
    for given in (found.out, path):
        assert main(["pcap", str(given)]) == 0
        assert "warning: capture.pcapng reached measure.pcap_bytes" in capsys.readouterr().err
    assert found.summary["fingerprint"] == whole.summary["fingerprint"]


def test_a_capture_is_the_same_for_any_number_of_threads(tmp_path):
    files = []
    for threads in (1, 2):
        _, path = capture(tmp_path / f"run{threads}", run={"threads": threads}, **SCHEMES["int"])
        files.append(path.read_bytes())
    assert files[0] == files[1]


def test_a_run_without_the_key_has_no_capture(tmp_path):
    scenario = {"name": "plain", "topology": CLOS, "workload": [{"kind": "flows", "flows": FLOWS}]}
    found = weftline.run(scenario, out=tmp_path / "run")
    assert "capture" not in found.summary and not (found.out / "capture.pcapng").exists()
    assert "pcap" not in (found.out / "scenario.toml").read_text()


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ({"pcap": "lef0->spine1"}, 'unknown node "lef0": did you mean "leaf0"'),
        ({"pcap": "leaf0->leaf1"}, "there is no link between"),
        ({"pcap": []}, "expected at least one link"),
        ({"pcap": 3}, "unknown node"),
        ({"pcap": LINKS, "pcap_bytes": "0B"}, "measure.pcap_bytes: 0B is too small"),
        ({"pcap": LINKS, "pcap_snaplen": "10B"}, "expected 64B to"),
        ({"pcap_bytes": "1MB"}, "has no effect without pcap"),
        ({"pcap": LINKS, "pcap_byte": "1MB"}, 'did you mean "pcap_bytes"'),
    ],
)
def test_what_cannot_be_captured_is_refused_with_its_key(measure, message, tmp_path):
    scenario = {"name": "wrong", "topology": CLOS, "workload": [{"kind": "flows", "flows": FLOWS}]}
    with pytest.raises(InputError, match=re.escape(message)):
        weftline.run(scenario | {"measure": measure}, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_schema_lets_links_be_a_text_or_a_list():
    key = json.loads(_native.schema())["properties"]["measure"]["properties"]["pcap"]
    assert [kind["type"] for kind in key["anyOf"]] == ["string", "array"]


def test_the_dissector_reads_packets_of_the_labs_hosts_with_and_without_int(tmp_path):
    tshark.needed()
    capture = tmp_path / "lab.pcap"
    inner = struct.pack(">HHHH", 7, 22_342, 148, 0) + lab_packet(5, 2000, 92, aux=9, trimming=1)
    shim = b"\x18\x03\0\x11" + struct.pack(">BBBBHHHH", 0x20, 0, 7, 5, 0x9400, 0x5746, 0x6000, 0)
    frames = [datagram(lab_packet(4, 1 << 40, 100, kind=6), 22_342), datagram(shim + inner, 49_203)]
    frames += [datagram(bytes(60), 22_342), datagram(lab_packet(4, 0, 0)[:40], 22_342)]
    capture.write_bytes(classic(list(enumerate(frames))))
    names = [f"weftline.lab.{key}" for key in ("flow", "first", "aux", "payload", "kind", "trimmable")]
    rows = [
        [value.replace("True", "1").replace("False", "0") for value in row]
        for row in tshark.fields(capture, *names)
    ]
    assert rows[0] == ["4", str(1 << 40), "0", "100", "6", "0"]
    assert rows[1] == ["5", "2000", "9", "92", "0", "1"]
    assert not any(map(any, rows[2:]))
    assert tshark.run(capture, "-Y", "_ws.malformed || _ws.lua.error") == []


def test_the_command_says_what_a_capture_holds_and_prints_the_dissector(tmp_path, capsys):
    found, _ = capture(tmp_path / "run", **SCHEMES["tcp"])
    assert main(["pcap", str(found.out), "--json"]) == 0
    links = json.loads(capsys.readouterr().out)
    assert sum(link["packets"] for link in links.values()) == found.summary["capture"]["packets"]
    assert set(links) <= {f"{a}->{b}" for a, b in [("leaf0", "spine0"), ("leaf0", "spine1")]} | {
        "spine0->leaf0",
        "spine1->leaf0",
    }
    assert main(["pcap", str(found.out)]) == 0
    assert "leaf0->spine" in capsys.readouterr().out
    assert main(["pcap", "--dissector"]) == 0
    assert 'Proto("weftline.telemetry"' in capsys.readouterr().out
    assert main(["pcap"]) == 2
    assert main(["pcap", str(tmp_path)]) == 2
    assert "capture.pcapng: No such file" in capsys.readouterr().err
