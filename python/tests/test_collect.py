"""`weftline collect` and `weftline.collect`: findings, the account of all packets, errors."""

import gzip
import json
import subprocess
import sys

import pytest
from packet_bytes import classic, int_packet

import weftline
from weftline.cli.main import main

NODES = ([1, 2, 4], [1, 2, 4], [1, 3, 4])


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "int.pcap"
    packets = [*map(int_packet, NODES), b"\x45"]
    timed = [(10**9 + number, packet) for number, packet in enumerate(packets)]
    path.write_bytes(classic(timed, nanoseconds=True, link=101))
    return path


def test_paths_hops_and_a_change(file):
    found = weftline.collect(file)
    (path,) = found.paths
    assert (path["path"], path["packets"], path["changes"]) == ([1, 3, 4], 3, 1)
    assert (path["src"], path["src_port"], path["dst_port"]) == ("10.0.0.1", 5000, 9000)
    (event,) = found.events
    assert (event["time_ns"], event["before"], event["after"]) == (1_000_000_002, [1, 2, 4], [1, 3, 4])
    assert {hop["node"]: hop["queue_max"] for hop in found.hops} == {1: 10, 2: 20, 3: 30, 4: 40}
    assert found.summary["counts"]["unreadable"] == 1
    assert found.summary["malformed"] == {"IP header": 1}
    assert found.summary["adds_up"]


def test_gzipped_and_several_captures(file, tmp_path):
    zipped = tmp_path / "int.pcap.gz"
    zipped.write_bytes(gzip.compress(file.read_bytes()))
    found = weftline.collect([file, zipped])
    assert found.summary["counts"]["packets"] == 8
    assert [each["packets"] for each in found.summary["captures"]] == [4, 4]


def test_a_capture_that_is_given_twice_is_refused(file, tmp_path):
    link = tmp_path / "again.pcap"
    link.symlink_to(file)
    with pytest.raises(weftline.InputError, match=r"captures: .*int\.pcap is given twice: its packets"):
        weftline.collect([file, file])
    with pytest.raises(weftline.InputError, match=r"again\.pcap is given twice, first as .*int\.pcap"):
        weftline.collect([file, link])


def run(*arguments, **options):
    command = [sys.executable, "-m", "weftline", "collect", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, **options)


def test_the_command_says_where_every_packet_went(file, tmp_path):
    done = run(file, "--out", tmp_path / "out")
    text = done.stdout.decode()
    assert done.returncode == 0, done.stderr
    assert "4 packets = 3 with telemetry + 1 with a malformed frame or IP header" in text
    assert "10.0.0.1:5000 > 10.0.0.2:9000 (17)" in text
    assert "malformed: IP header (1)" in text
    rows = (tmp_path / "out" / "paths.jsonl").read_text().splitlines()
    assert json.loads(rows[0])["path"] == [1, 3, 4]


def test_the_standard_input(file):
    done = run("-", "--json", input=file.read_bytes())
    assert json.loads(done.stdout)["summary"]["counts"]["int_md"] == 3


def test_a_capture_that_is_cut_off_is_used_and_named(file):
    file.write_bytes(file.read_bytes()[:-10])
    done = run(file)
    assert done.returncode == 0
    assert b"record 4" in done.stderr and b"cut off" in done.stderr


def capture(path, paths, times):
    """Packets of one flow, of which the n-th has the n-th path and time."""
    packets = [(10**9 + time, int_packet(nodes)) for nodes, time in zip(paths, times, strict=True)]
    path.write_bytes(classic(packets, nanoseconds=True, link=101))
    return path


def test_captures_of_two_links_are_two_points_and_change_no_path(tmp_path):
    upstream = capture(tmp_path / "upstream.pcap", [[3, 8]] * 5, range(0, 50, 10))
    downstream = capture(tmp_path / "downstream.pcap", [[3, 8, 9]] * 5, range(5, 55, 10))
    found = weftline.collect([upstream, downstream])
    assert not found.events and found.summary["counts"]["late_paths"] == 0
    rows = [(row["point"], row["interface"], row["path"], row["packets"]) for row in found.paths]
    assert rows == [(0, 0, [3, 8], 5), (1, 0, [3, 8, 9], 5)]
    other = weftline.collect([downstream, upstream])
    assert (other.paths, other.hops, other.summary) == (found.paths, found.hops, found.summary)
    text = run(downstream.name, upstream.name, cwd=tmp_path).stdout.decode()
    assert "point 1, interface 0" in text
    assert "0      upstream.pcap\n1      downstream.pcap\n" in text
    assert run(upstream, downstream, "--points", "one").stdout.count(b"path changed") == 1
    wrong = run(upstream, "--points", "all").stderr
    assert b"points: expected one of by-time, each, one, found 'all'" in wrong


def test_captures_that_continue_each_other_are_one_point(tmp_path):
    first = capture(tmp_path / "link.pcap", [[3, 8]] * 3, range(3))
    second = capture(tmp_path / "link.pcap1", [[3, 7]] * 3, range(3, 6))
    for order in ([first, second], [second, first]):
        found = weftline.collect(order)
        (path,) = found.paths
        assert (path["path"], path["packets"], path["changes"]) == ([3, 7], 6, 1)
        assert [each["capture"] for each in found.summary["captures"]] == [str(first), str(second)]
    assert len(weftline.collect([first, second], points="each").paths) == 2
    # The standard input can be read once.
    done = run("-", second, "--json", input=first.read_bytes())
    assert [row["packets"] for row in json.loads(done.stdout)["paths"]] == [6]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--topology", "none.toml"], "--topology: expected with --plan"),
        (["--checkpoint", "c"], "--checkpoint: only with --listen or --interface"),
        (["--prometheus", ":0"], "--prometheus: only with"),
        (["--otlp", "http://x"], "--otlp: only with"),
        (["--allow", "10.0.0.0/8"], "--allow: only with"),
        (["--interval", "1s"], "--interval: only with"),
        (["--duration", "1s"], "--duration: only with"),
        (["--parquet"], "--parquet: expected with --out DIR"),
        (["--report-port", "49203"], "report_ports: 49203 is the UDP port of INT"),
        (["--int-port", "32766"], "report_ports: 32766 is the UDP port of INT"),
        (["--report-port", "4790"], "report_ports: 4790 is the UDP port of VXLAN-GPE"),
    ],
)
def test_options_without_effect_are_refused(file, options, text):
    done = run(file, *options)
    assert done.returncode == 2 and text in done.stderr.decode(), done.stderr
    assert done.stderr.count(b"\n") == 1


def test_errors_name_the_file_and_the_value(file, tmp_path):
    with pytest.raises(weftline.InputError, match=r"no\.pcap"):
        weftline.collect(tmp_path / "no.pcap")
    (tmp_path / "text.pcap").write_text("not a capture")
    with pytest.raises(weftline.InputError, match="is not a capture"):
        weftline.collect(tmp_path / "text.pcap")
    with pytest.raises(weftline.InputError, match="int_port: expected 0 to 65535, found 70000"):
        weftline.collect(file, int_port=70_000)
    with pytest.raises(weftline.InputError, match="memory"):
        weftline.collect(file, memory="1KB")


def test_digests_in_the_capture_of_a_run_are_left_to_the_command_that_decodes_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "path-tracing"]) == 0
    made = weftline.run("path-tracing.toml", out="out", set={"measure.pcap": "*", "workload.0.size": "20KB"})
    done = run(made.out / "capture.pcapng", "--plan", "path-queries.toml", text=True)
    *_, telemetry, _, last = done.stdout.splitlines()
    assert telemetry.startswith("telemetry: ") and telemetry.endswith(" PINT digests")
    digests = telemetry.split()[1]
    assert last == (
        f"PINT: none of the {digests} digests in the packets is decoded here: "
        "captures of runs are decoded by weftline pint decode"
    )
