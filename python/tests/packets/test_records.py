"""Traces out of tables of flow records: NetFlow and IPFIX as CSV."""

from __future__ import annotations

import json

import pytest
from packet_bytes import NFDUMP, classic, ethernet, ipv4, rows, segment, udp, wrong

from weftline.cli.main import main
from weftline.packets import traces


def test_a_table_maps_addresses_and_networks_and_the_longest_counts(tmp_path):
    table = tmp_path / "hosts.csv"
    table.write_text("address,host\n# a rack\n192.168.0.0/24,5\n192.168.0.2,9\n")
    path = tmp_path / "a.pcap"
    other = ethernet(ipv4("10.0.0.9", "192.168.0.1", 17, udp(1, 2, 50), 50))
    inside = ethernet(ipv4("192.168.0.7", "192.168.0.1", 17, udp(1, 2, 50), 50))
    path.write_bytes(classic([segment(0, 1, 100), (1000, other), (2000, inside)]))
    found = traces.read([path], table=table)
    assert found.rows == [(5, 9, 100, 0)]
    assert (found.unmapped, found.inside) == (1, 1)
    assert found.addresses == {"192.168.0.1": 5, "192.168.0.2": 9}


def test_a_table_of_nfdump_gives_payload_and_its_reverse(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(NFDUMP)
    found = traces.read([path])
    # 10.0.0.3, 10.0.0.2, 10.0.0.1 come in this order; 40 and 28 B of headers in a packet.
    assert found.rows == [(0, 1, 100, 0), (2, 1, 10_000, 250_000_000), (1, 2, 100, 250_000_000)]
    assert traces.read([path], header_bytes=0, min_size=200).rows == [(0, 1, 10_400, 0)]


def test_the_later_columns_of_nfdump_and_those_of_ipfix_are_known(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(
        "firstSeen,duration,proto,srcAddr,srcPort,dstAddr,dstPort,packets,bytes,flows\n"
        "2026-01-31 12:00:00.500,00:00:01.000,TCP,fd00::1,1,fd00::2,2,1,1040,1\n"
    )
    assert rows(path) == [(0, 1, 1000, 0)]
    names = "sourceIPv4Address,destinationIPv4Address,protocolIdentifier,sourceTransportPort,"
    names += "destinationTransportPort,flowStartMilliseconds,flowEndMilliseconds,"
    names += "octetDeltaCount,packetDeltaCount\n"
    path.write_text(
        names + "10.0.0.1,10.0.0.2,6,1,2,1000,61000,1040,1\n10.0.0.1,10.0.0.2,6,1,2,61100,90000,2080,2\n"
    )
    assert rows(path) == [(0, 1, 3000, 0)], "the exporter cut it after a minute"


def test_what_several_exporters_or_files_have_of_a_flow_counts_once(tmp_path, capsys):
    head = "ts,te,sa,da,sp,dp,pr,ipkt,ibyt"

    def record(start, end, where="", source_port=1000):
        times = ",".join(f"2026-01-31 12:00:{at:06.3f}" for at in (start, end))
        return f"\n{times},10.0.0.1,10.0.0.2,{source_port},80,TCP,100,104000{where}"

    path, other = tmp_path / "a.csv", tmp_path / "b.csv"
    both = record(0, 1, ",r1,0") + record(0.001, 1.001, ",r2,0")
    path.write_text(head + ",ra,dir" + both + record(5, 6, ",r2,0"))
    found = traces.read([path])
    assert [row[2:] for row in found.rows] == [(100_000, 0), (100_000, 5 * 10**9)]
    assert (found.at_several, found.unnumbered, found.overlapping) == (1, 1, 0)
    # One router, as packets came in and as they left; it cut the flow in pieces.
    both = record(0, 1, ",r1,0") + record(0.001, 1.001, ",r1,1")
    path.write_text(head + ",ra,dir" + both + record(1.5, 2, ",r1,0"))
    assert [row[2] for row in rows(path)] == [200_000]
    # A file for each router, without a column of the exporter.
    path.write_text(head + record(0, 1) + record(5, 5.5, source_port=7))
    other.write_text(head + record(0.01, 1.01) + record(5.01, 5.6, source_port=7))
    for files in ([path, other], [other, path], [path, path]):
        found = traces.read(files)
        assert [row[2] for row in found.rows] == [100_000, 100_000] and found.at_several == 2
    # In one file nothing tells them apart.
    path.write_text(path.read_text() + record(0.01, 1.01))
    assert main(["import", str(path), "--out", str(tmp_path / "flows.csv")]) == 0
    assert "warning: 1 five-tuples have records that overlap in time" in capsys.readouterr().err


def test_files_of_records_that_continue_each_other_are_one_point(tmp_path):
    """An exporter cuts a flow each minute, and its files each five minutes, later by half a minute."""
    head = "src,dst,start_s,end_s,bytes\n"

    def of_exporter(name, later):
        pieces = [(at, at + 59.9, "10.0.0.1") for at in range(30, 600, 60)]
        pieces += [(at, at + 0.1, f"10.0.1.{at // 7}") for at in range(0, 600, 7)]
        files = [tmp_path / f"{name}.{part}.csv" for part in range(2)]
        for part, file in enumerate(files):
            own = [each for each in pieces if part == (each[1] > 305)]
            lines = [f"{source},10.0.0.2,{at + later},{end + later},1000" for at, end, source in own]
            file.write_text(head + "\n".join(lines) + "\n")
        return files

    one, other = of_exporter("one", 0), of_exporter("other", 0.01)
    expected = sorted(row[2] for row in traces.read(one).rows)
    assert expected == [1000] * 86 + [10_000] and traces.read(one).at_several == 0
    for files in (one[::-1], one + other, [*other[::-1], one[1], one[0]]):
        found = traces.read(files)
        assert sorted(row[2] for row in found.rows) == expected
        assert found.at_several == (87 if len(files) > 2 else 0)


@pytest.mark.parametrize(
    ("columns", "values", "factor"),
    [
        ("samplingInterval", "1000", 1000),
        ("samplingPacketInterval,samplingPacketSpace", "1,999", 1000),
        ("samplingPacketInterval,samplingPacketSpace,samplingInterval", "10,5,0", 1.5),
        ("samplingTimeInterval,samplingTimeSpace", "1,0", 1),
        ("samplingSize,samplingPopulation,samplingProbability", "3,12,0.25", 4),
        ("samplingAlgorithm,samplerRandomInterval", "2,64", 64),
        ("sampling_rate", "0", 1),
        ("samplingAlgorithm,samplingFlowSpacing", "0,0", 1),
        ("samplingInterval,samplingProbability", ",1", 1),
        (
            "samplingInterval",
            "",
            "samplingInterval: expected the sampling factor of the record, found nothing",
        ),
        ("samplingInterval,sampling_rate", "100,1000", "factors differ: 100 by samplingInterval, 1,000 by"),
        ("samplingPacketSpace", "999", "expected both samplingPacketInterval and samplingPacketSpace"),
        ("samplingProbability", "2", "samplingProbability: a sampling factor of 0.5 is less than 1"),
        (
            "samplingAlgorithm",
            "1",
            "samplingAlgorithm says that packets were sampled, and no column how many",
        ),
        ("samplingFlowSpacing", "9", "samplingFlowSpacing: whole flows were left out"),
        ("samplingInterval", "1e999", "samplingInterval: expected a number, found '1e999'"),
    ],
)
def test_sampled_records_are_multiplied_or_refused(columns, values, factor, tmp_path, capsys):
    path, out = tmp_path / "a.csv", tmp_path / "flows.csv"
    head = "src,dst,protocol,start_ns,bytes,packets,bytes_back,packets_back,"
    path.write_text(f"{head}{columns},tos\n10.0.0.1,10.0.0.2,6,0,10400,10,1040,1,{values},0\n")
    if isinstance(factor, str):
        wrong(path, factor)
        return
    assert [row[2] for row in rows(path)] == [10_000 * factor, 1000 * factor]
    assert main(["import", str(path), "--out", str(out), "--json"]) == 0
    output = capsys.readouterr()
    text = f"{factor:,}"
    assert json.loads(output.out)["sampling_factors"] == [text][: factor > 1]
    warning = (
        f"1 records are of sampled packets: their bytes were multiplied by their sampling factor ({text})"
    )
    assert (warning in output.err) == (factor > 1)
    assert ("with one sampled packet has as many packets as the factor says" in output.err) == (factor > 1)
    assert ("1 records have a sampling factor of 0" in output.err) == (values == "0")
    assert "a.csv: columns that are not used: tos\n" in output.err


def test_of_several_address_families_the_one_that_is_filled_counts(tmp_path):
    path = tmp_path / "a.csv"
    head = "sourceIPv4Address,sourceIPv6Address,destinationIPv4Address,destinationIPv6Address,"
    head += "exporterIPv4Address,exporterIPv6Address,protocolIdentifier,flowStartSeconds,flowEndSeconds,"
    records = ["10.0.0.1,,10.0.0.2,,,fd00::9", "0.0.0.0,fd00::1,0.0.0.0,fd00::2,,fd00::9"]
    records += ["10.0.0.1,::,10.0.0.2,::,0.0.0.0,fd00::9", "10.0.0.1,::,10.0.0.2,::,0.0.0.0,fd00::8"]
    path.write_text(head + "octetDeltaCount\n" + "".join(f"{one},6,1,1,500\n" for one in records))
    found = traces.read([path])
    # The same was reported by another exporter.
    assert [row[:3] for row in found.rows] == [(0, 1, 1000), (2, 3, 500)]
    assert found.addresses["fd00::2"] == 3 and found.at_several == 1
    path.write_text(head + "octetDeltaCount\n,,10.0.0.2,,,,6,1,1,500\n")
    wrong(path, "record 1 (line 2): src is empty")


def test_total_counts_of_a_flow_are_not_added_up(tmp_path):
    names = "sourceIPv4Address,destinationIPv4Address,sourceTransportPort,flowStartMilliseconds,"
    names += "flowEndMilliseconds,protocolIdentifier,octetTotalCount,packetTotalCount,"
    names += "packetDeltaCount,reverseOctetTotalCount,reversePacketTotalCount\n"
    parts = ["0,60000,6,1040000,1000,1000,400,10", "0,120000,6,2080000,2000,1000,1400,10"]
    parts += ["120500,130000,6,10400,10,10,400,10", "0,120000,6,2080000,2000,1000,1400,10"]
    files = [tmp_path / f"{number}.csv" for number in range(4)]
    for number, file in enumerate(files):
        file.write_text(names + f"10.0.0.1,10.0.0.2,1,{parts[number]}\n")
    files[0].write_text(names + "".join(f"10.0.0.1,10.0.0.2,1,{part}\n" for part in parts[:3]))
    # The largest of those with one start; what began later is added, as it is the same flow by `idle_ns`.
    assert rows(files[0]) == [(0, 1, 2_010_000, 0), (1, 0, 1000, 0)]
    assert [row[2] for row in traces.read([files[1], files[3]]).rows] == [2_000_000, 1000]
    both = names.replace("reverseOctetTotalCount", "octetDeltaCount")
    files[0].write_text(both + f"10.0.0.1,10.0.0.2,1,{parts[1]}\n")
    assert [row[2] for row in rows(files[0], header_bytes=0)] == [1400], "what is not a total comes first"


def test_plain_columns_do(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("src,dst,start_ns,bytes\n10.0.0.1,10.0.0.2,1000,500\n10.0.0.2,10.0.0.1,1750,10\n")
    assert rows(path) == [(0, 1, 500, 0), (1, 0, 10, 750)]


def test_what_is_not_known_of_headers_and_records_that_are_headers_alone_is_counted(tmp_path, capsys):
    path = tmp_path / "a.csv"
    head = "src,dst,protocol,start_ns,bytes,packets\n"
    alone = ["10.0.0.3,10.0.0.4,6,0,40,1", "10.0.0.3,10.0.0.4,17,0,56,2", "10.0.0.3,10.0.0.4,1,0,20,1"]
    path.write_text(head + "\n".join(["10.0.0.1,10.0.0.2,6,0,1500,1", *alone, ""]))
    found = traces.read([path])
    assert found.rows == [(0, 1, 1460, 0)] and found.headers_alone == 3
    assert (found.without_packets, found.without_protocol) == (0, 0)
    path.write_text("src,dst,start_s,bytes,packets\n10.0.0.1,10.0.0.2,1.5,1e6,1000\n")
    assert main(["import", str(path), "--out", str(tmp_path / "out.csv")]) == 0
    assert "warning: 1 records have no protocol: of each packet, only the 20" in capsys.readouterr().err
    assert traces.read([path]).rows == [(0, 1, 980_000, 0)]
    assert traces.read([path], header_bytes=40).without_protocol == 0
    path.write_text("src,dst,start_ns,bytes\n10.0.0.1,10.0.0.2,0,1500\n")
    assert main(["import", str(path), "--out", str(tmp_path / "out.csv")]) == 0
    assert "warning: 1 records have no number of packets, so that their sizes" in capsys.readouterr().err
    assert traces.read([path], header_bytes=0).without_packets == 0


def test_of_times_the_finest_one_counts_to_its_last_digit(tmp_path):
    path = tmp_path / "r.csv"
    head = "src,dst,flowStartSeconds,flowStartMilliseconds,octetDeltaCount,packetDeltaCount\n"
    path.write_text(f"{head}10.0.0.1,10.0.0.2,1000,1000100,5000,0\n10.0.0.3,10.0.0.2,1000,1000500,5000,0\n")
    assert [row[3] for row in traces.read([path]).rows] == [0, 400_000_000]
    times = (
        "2026-01-31 12:00:00.000000100",
        "2026-01-31T13:00:00.000001Z",
        "2026-01-31 15:00:00.0000018+01:00",
    )
    lines = [f"10.0.0.{n},10.0.1.1,{time},5000\n" for n, time in enumerate(times)]
    path.write_text("src,dst,ts,bytes\n" + "".join(lines))
    assert [row[3] for row in traces.read([path]).rows] == [0, 3_600_000_000_900, 7_200_000_001_700]


def test_a_line_without_an_end_is_not_read_into_memory(tmp_path):
    path = tmp_path / "a.csv"
    with path.open("wb") as file:
        file.truncate(1 << 34)  # holes: it takes no room on the disk
    wrong(path, "line 1: is longer than 1,048,575 characters")
    lines = NFDUMP.splitlines(keepends=True)
    path.write_text(lines[0] + "x" * (1 << 20) + "\n")
    wrong(path, "line 2: is longer than")
