"""`weftline collect` on what arrives: every datagram accounted for, PINT's digests, restarts, errors."""

import contextlib
import json
import random
import socket
import struct
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from packet_bytes import classic

import weftline
from weftline import pint

MASK = (1 << 64) - 1


def report(sequence: int, port: int, nodes: list[int], *, queues: bool = False) -> bytes:
    """A telemetry report 2.0 of a packet that passed these nodes: latencies, and with `queues` queues."""
    words = [[node, node * 1000, *([1 << 24 | node * 10] if queues else [])] for node in reversed(nodes)]
    stack = b"".join(struct.pack(f"!{len(hop)}I", *hop) for hop in words)
    bits = 0xB000 if queues else 0xA000
    header = struct.pack("!BBBBHHHH", 0x20, 0, len(words[0]), 8, bits, 0, 0, 0) + stack
    shim = struct.pack("!BBH", 0x14, len(header) // 4, 9000) + header
    udp = struct.pack("!HHHH", port, 49203, 8 + len(shim), 0) + shim
    addresses = bytes([10, 0, 0, 1, 10, 0, 0, 2])
    packet = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 1, 0x4000, 61, 17, 0) + addresses + udp
    individual = bytes([0x14, 2 + len(packet) // 4, 0, 0x20]) + bytes(8)
    return struct.pack("!II", 2 << 28 | sequence % (1 << 22), nodes[-1]) + individual + packet


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def send(port: int, datagrams) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(("127.0.0.1", port))
        return sum(1 for datagram in datagrams if sender.send(datagram))


def wait_for(what, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_reports_become_paths_events_and_metrics(tmp_path):
    port = free_port()
    options = {"listen": f"udp:{port}", "prometheus": ":0", "interval_s": 0.2, "out": tmp_path / "out"}
    with weftline.collecting(**options) as collector:
        paths = ([1, 2, 4], [1, 3, 4])
        sent = send(port, (report(n, n % 50, paths[n >= 500], queues=True) for n in range(1000)))
        wait_for(lambda: collector.status()["packets"] == sent)
        wait_for(lambda: b"weftline_packets_total 1000" in get(collector, "/metrics"))
        assert len(json.loads(get(collector, "/events"))["rows"]) == 50
    found = collector.found
    assert {row["node"]: row["queue_max"] for row in found.hops} == {1: 10, 2: 20, 3: 30, 4: 40}
    assert len(found.paths) == 50 and all(row["path"] == [1, 3, 4] for row in found.paths)
    assert [row["received"] + row["dropped"] for row in found.summary["inputs"][:1]] == [sent]
    assert found.summary["adds_up"] and found.summary["lost_groups"] == 0
    events = [json.loads(line) for line in (tmp_path / "out" / "events.jsonl").open()]
    assert sorted(event["event"] for event in events) == list(range(1, 51))


def get(collector, path: str) -> bytes:
    with urllib.request.urlopen(f"http://{collector.http}{path}", timeout=10) as answer:
        return answer.read()


def mix(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def packet_id(packet: bytes) -> int:
    """The id of an IPv4 UDP packet with a checksum, as docs/collect.md states it."""
    addresses = (b"\0" * 10 + b"\xff\xff" + packet[at : at + 4] for at in (12, 16))
    words = [*struct.unpack("!4Q", b"".join(addresses)), packet[9], *struct.unpack("!Q", packet[20:28])]
    value = 0
    for word in words:
        value = mix(value ^ word)
    return value


QUERIES = """
bits = 16
hops = { expected = 5, maximal = 8 }

[[query]]
name = "path"
value = "switch-id"
aggregation = "path"
bits = 16
copies = 2
ids = 64
"""


def test_ids_of_packets_without_df_are_not_digests_and_a_warning_counts_them(tmp_path):
    packets = []
    for number, flags in enumerate((0x4000, 0, 0, 0x2000)):
        udp = struct.pack("!HHHH", 5000, 9000, 8, 1)
        head = struct.pack("!BBHHHBBH", 0x45, 0, 28, 0x1234, flags, 61, 17, 0)
        packets.append((number, head + bytes([10, 0, 0, 1, 10, 0, 0, 2]) + udp))
    capture = tmp_path / "ids.pcap"
    capture.write_bytes(classic(packets, link=101))
    done = subprocess.run(command(capture, "--pint-ipv4-id"), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "4 packets = 1 with telemetry + 3 without" in done.stdout
    assert "left out: 2 IPv4 ids of unfragmented packets without DF" in done.stdout
    assert "warning: the IPv4 ids of 2 unfragmented packets without DF are not read as digests" in done.stderr
    assert "warning" not in subprocess.run(command(capture), capture_output=True, text=True).stderr


def test_digests_in_ipv4_ids_give_the_path(tmp_path):
    plan_file = tmp_path / "plan.toml"
    plan_file.write_text(QUERIES)
    plan = pint.Plan.open(plan_file)
    ring = "".join(f'  node [ id {n} label "s{n}" ]\n' for n in range(64))
    ring += "".join(f"  edge [ source {n} target {(n + 1) % 64} ]\n" for n in range(64))
    topology = tmp_path / "net.gml"
    topology.write_text(f"graph [\n{ring}]\n")
    generator = random.Random(1)
    # Each switch of the file has a host, and hosts have the first numbers.
    path = [67, 68, 69, 70, 71]
    packets = []
    for number in range(400):
        udp = struct.pack("!HHHH", 5000, 9000, 16, generator.randrange(1, 65536)) + bytes(8)
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0x4000, 64 - len(path), 17, 0)
        packet = head + bytes([10, 0, 0, 1, 10, 0, 0, 2]) + udp
        digest = plan.encode(packet_id=packet_id(packet), hops=[{"switch-id": hop} for hop in path])[-1]
        packet = packet[:4] + struct.pack("!H", digest) + packet[6:]
        packets.append((10**9 + number, packet))
    capture = tmp_path / "digests.pcap"
    capture.write_bytes(classic(packets, nanoseconds=True, link=101))
    found = weftline.collect(capture, pint_ipv4_id=True, plan=plan_file, topology=topology)
    assert found.summary["counts"]["pint_digests"] == 400
    (row,) = found.pint
    assert row["flow"]["src"] == "10.0.0.1"
    (query,) = row["queries"].values()
    assert query["hops"] == path and query["decoded_after"] < 60
    (counts,) = found.summary["pint"]
    assert counts["inconsistent"] == counts["impossible"] == counts["other_plan"] == 0
    for shards in (1, 2, 4):
        again = weftline.collect(capture, pint_ipv4_id=True, plan=plan_file, topology=topology, shards=shards)
        assert (again.pint, again.events, again.paths) == (found.pint, found.events, found.paths)
    with pytest.raises(weftline.InputError, match="shards: expected 1 to 64, found 0"):
        weftline.collect(capture, shards=0)
    options = ("--pint-ipv4-id", "--plan", plan_file, "--topology", topology)
    done = subprocess.run(command(capture, *options), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert found.summary["names"]["67"] == "s3"
    assert "s3 s4 s5 s6 s7" in done.stdout and "PINT: 400 digests, 1 paths known" in done.stdout


def test_a_network_alone_is_enough_for_the_switches_of_digests(tmp_path):
    """A scenario must have traffic, on which no switch depends."""
    network = tmp_path / "net.toml"
    network.write_text('[topology]\nkind = "leaf-spine"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n')
    plan = tmp_path / "plan.toml"
    plan.write_text('bits = 8\n[[query]]\nname = "p"\nvalue = "switch-id"\naggregation = "path"\nbits = 8\n')
    capture = tmp_path / "c.pcap"
    capture.write_bytes(classic([], nanoseconds=True, link=101))
    assert weftline.collect(capture, plan=plan, topology=network).pint == []


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('# options\nlistn = "udp:1"', "c.toml:2: unknown option 'listn'; did you mean 'listen'?"),
        ("listen = 5", "c.toml:1: listen: expected text or a list of texts, found 5"),
        ('listen = "udp:0"\nshards = "x"', "c.toml:2: shards: expected a whole number, found 'x'"),
        ('listen = ["udp:0", 3]', "c.toml:1: listen: expected text or a list of texts, found 3 in it"),
        ('listen = "udp:0"\ninterval_s = nan', "c.toml:2: interval_s: expected 0.1 to 3600, found nan"),
        ('listen = "udp:0"\ninterval_s = inf', "c.toml:2: interval_s: expected 0.1 to 3600, found inf"),
        ('listen = "udp:0"\ntopology = "t.toml"', "c.toml:2: topology: expected with plan"),
        ('listen = "udp:0"\nparquet = true', "c.toml:2: parquet: expected with out"),
        ('listen = "udp:0"\nreport_ports = 49203', "49203 is the UDP port of INT"),
        ('listen = "udp:0"\nshards = 0', "c.toml:2: shards: expected 1 to 64, found 0"),
        ('listen = "udp:0"\nallow = "10.0.0.0/99"', "c.toml:2: allow: expected a network such as"),
        ('# inputs\nlisten = "udp:banana"', "c.toml:2: listen: expected udp:PORT"),
        ('listen = "udp:0"\nmemory = "3"', "c.toml:2: memory: expected a size with its unit"),
        ('listen = "udp:0"\nint_port = 99999', "c.toml:2: int_port: expected 0 to 65535, found 99999"),
        ('listen = "udp:0"\nint_dscp = 64', "c.toml:2: int_dscp: expected 0 to 63, found 64"),
        (
            'listen = "udp:0"\nreport_ports = [70000]',
            "c.toml:2: report_ports: expected 0 to 65535, found 70000",
        ),
        ('listen = "udp:0"\nplan = "p.toml"', 'p.toml:3: query.p.valu: unknown key "valu"'),
    ],
)
def test_what_is_wrong_with_a_configuration_file_is_named_with_its_line(tmp_path, monkeypatch, text, error):
    monkeypatch.chdir(tmp_path)
    Path("c.toml").write_text(text)
    Path("p.toml").write_text('[[query]]\nname = "p"\nvalu = "switch-id"\n')
    done = subprocess.run(command("--config", "c.toml"), capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and error in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("option", [("--shards", "0"), ("--interval", "0s")])
def test_zero_is_not_taken_for_an_option_that_is_missing(option):
    done = subprocess.run(command("--listen", "udp:0", *option), capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and "expected" in done.stderr


def test_values_at_the_largest_code_are_marked(tmp_path, capsys):
    from weftline.cli.main import main

    plan_file = tmp_path / "plan.toml"
    plan_file.write_text(
        'bits = 8\nhops = { expected = 2, maximal = 8 }\n[[query]]\nname = "latency"\nvalue = "hop-latency"\n'
        'aggregation = "quantiles"\nquantiles = [0.5, 0.99]\napproximation = { epsilon = 0.025 }\nbits = 8\n'
    )
    plan = pint.Plan.open(plan_file)
    rows = ["packet_id,digest,hops,plan_version,src"]
    for packet in range(2000):
        # The first hop holds packets for a second, the second one for 1 us.
        hops = [{"hop-latency": 10**9}, {"hop-latency": 1000}]
        rows.append(f"{packet},{plan.encode(packet_id=packet, hops=hops)[-1]},2,{plan.version},10.0.0.1")
    table = tmp_path / "digests.csv"
    table.write_text("\n".join(rows) + "\n")
    (report,) = pint.decode(plan, table)["reports"]
    first, second = report["queries"]["latency"]["hops"]
    assert all(found["at_ceiling"] and found["high"] is None for found in first["quantiles"])
    assert 290_000 < first["quantiles"][0]["value"] < 300_000
    assert not any("at_ceiling" in found for found in second["quantiles"])
    assert main(["pint", "decode", str(table), "--plan", str(plan_file)]) == 0
    text = capsys.readouterr().out
    assert "p50/p99 ≥ 295 us/≥ 295 us, 1.01 us/1.01 us" in text and "the largest code of the plan" in text


def test_a_port_that_holds_packets_for_longer_than_the_codes_reach_is_reported(tmp_path):
    query = 'name = "latency"\nvalue = "hop-latency"\naggregation = "quantiles"\nbits = 8\n'
    warned = {}
    for epsilon in (0.025, 0.1):
        queries = tmp_path / f"{epsilon}.toml"
        queries.write_text(f"bits = 8\n[[query]]\n{query}approximation = {{ epsilon = {epsilon} }}\n")
        scenario = tmp_path / "scenario.toml"
        scenario.write_text(
            '[topology]\nkind = "dumbbell"\nleft = 1\nright = 1\n'
            'host_link = { rate = "1Gbps", delay = "1us" }\n'
            'bottleneck_link = { rate = "100Mbps", delay = "1us" }\n'
            '[switch]\nqueue = { kind = "fifo", limit = "100KB" }\n[transport]\nkind = "tcp"\n'
            f'[telemetry]\nkind = "pint"\nqueries = "{epsilon}.toml"\n'
            '[[workload]]\nkind = "flows"\nflows = [{ src = 0, dst = 1, size = "10KB" }]\n'
        )
        done = subprocess.run(
            [sys.executable, "-m", "weftline", "check", str(scenario)],
            capture_output=True, text=True, timeout=30,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        warned[epsilon] = done.stdout + done.stderr
    assert 'codes of query "latency" end at 29' in warned[0.025] and "may wait 8ms" in warned[0.025]
    assert "codes of query" not in warned[0.1]


def command(*arguments):
    return [sys.executable, "-m", "weftline", "collect", *map(str, arguments)]


def test_the_command_runs_until_its_duration_and_accounts_for_all(tmp_path):
    port = free_port()
    config = tmp_path / "collect.toml"
    config.write_text(f'listen = "udp:{port}"\ninterval_s = 0.2\n')
    running = subprocess.Popen(
        command("--config", config, "--duration", "2s", "--out", tmp_path / "out"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stderr.readline().startswith(f"Collecting from udp:127.0.0.1:{port}")
    sent = send(port, (report(n, n % 10, [1, 2, 3]) for n in range(500)))
    output, errors = running.communicate(timeout=30)
    assert running.returncode == 0, errors
    assert f"udp:127.0.0.1:{port}: {sent} sent = {sent} received + 0 dropped by the kernel" in output
    assert "500 packets = 500 with telemetry" in output
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["adds_up"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--listen", "tcp:1"], "listen: expected udp:PORT"),
        (["--listen", "udp:0.0.0.0:0"], "--allow"),
        (["--listen", "udp:0", "--allow", "10.0.0.0/33"], "10.0.0.0/33"),
        (["--listen", "udp:0", "--otlp", "ftp://x"], "ftp://x"),
        (["--interface", "no-such"], "no-such"),
        (["--listen", "udp:0", "a.pcap"], "captures and --listen or --interface exclude each other"),
        (["--config", "c.toml", "a.pcap"], "captures and --config exclude each other"),
        (["--listen", "udp:0", "--topology", "t.toml"], "--topology: expected with --plan"),
        (["--listen", "udp:0", "--parquet"], "--parquet: expected with --out"),
        (["--listen", "udp:0", "--interval", "1"], "--interval: expected a time with its unit"),
        (["--listen", "udp:0", "--duration", ""], "--duration: expected a time with its unit"),
        (["--listen", "udp:0", "--points", "each"], "--points: only with captures"),
        ([], "expected captures"),
    ],
)
def test_errors_name_the_option(arguments, text):
    done = subprocess.run(command(*arguments), capture_output=True, text=True)
    assert done.returncode == 2 and text in done.stderr, done.stderr


def test_tables_as_parquet_files_hold_the_same_rows(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    port = free_port()
    with weftline.collecting(listen=f"udp:{port}", out=tmp_path, parquet=True) as collector:
        sent = send(port, (report(n, n % 3, [1, 2, 3]) for n in range(30)))
        wait_for(lambda: collector.status()["packets"] == sent)
    stored = pyarrow.parquet.read_table(tmp_path / "paths.parquet").to_pylist()
    assert stored == collector.found.paths
    assert not (tmp_path / "events.parquet").exists()


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1.0])
def test_an_interval_that_is_no_time_is_refused(seconds):
    with pytest.raises(weftline.InputError, match=r"interval_s: expected 0\.1 to 3600, found "):
        weftline.collecting(listen="udp:0", interval_s=seconds)


def test_an_unknown_option_of_the_file_is_named_with_the_nearest(tmp_path):
    with pytest.raises(weftline.InputError, match="did you mean 'listen'"):
        weftline.collecting(lisen="udp:0")


def test_the_doctor_says_what_the_machine_allows():
    done = subprocess.run(command("--doctor", "--interface", "lo"), capture_output=True, text=True)
    assert done.returncode == 0
    assert "receive buffers" in done.stdout and "\nlo " in done.stdout


def test_twenty_kills_lose_one_interval_or_less_and_count_nothing_twice(tmp_path):
    port = free_port()
    out, state = tmp_path / "out", tmp_path / "state"
    arguments = command(
        *("--listen", f"udp:{port}", "--out", out, "--checkpoint", state, "--interval", "100ms")
    )
    generator = random.Random(7)
    sent = 0

    def feed(sender, seconds: float) -> None:
        nonlocal sent
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            # A flow changes its path in every 50th datagram.
            path = [1, 2 + sent // 50 % 2, 4]
            # While no collector listens, the kernel reports it at the next datagram.
            with contextlib.suppress(ConnectionRefusedError):
                sent += sender.send(report(sent, 7, path)) > 0
            time.sleep(0.001)

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(("127.0.0.1", port))
        for kill in range(21):
            running = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            assert running.stderr.readline().startswith("Collecting"), running.stderr.read()
            feed(sender, 0.2 + generator.random() * 0.3)
            if kill < 20:
                running.kill()
                running.communicate()
        running.terminate()
        _, errors = running.communicate(timeout=30)
        assert running.returncode == 0, errors
    summary = json.loads((out / "summary.json").read_text())
    counted = summary["counts"]["packets"]
    assert summary["adds_up"]
    assert counted <= sent
    # At most an interval, and the time until the next one begins, for each kill.
    assert sent - counted < 20 * 400
    events = [json.loads(line) for line in (out / "events.jsonl").open()]
    assert [event["event"] for event in events] == list(range(1, len(events) + 1))
    # Two changes in one batch of datagrams have the same time, and not the same paths.
    changes = [(event["time_ns"], event["before"], event["after"]) for event in events]
    assert all(one not in changes[:n] for n, one in enumerate(changes))
    rows = [json.loads(line) for line in (out / "intervals.jsonl").open()]
    keys = [(row["interval"], row["node"]) for row in rows]
    assert len(set(keys)) == len(keys)
    (path,) = [json.loads(line) for line in (out / "paths.jsonl").open()]
    assert path["packets"] == summary["counts"]["reports"] == counted
    of_node = sum(row["latency_samples"] for row in rows if row["node"] == "4")
    assert of_node == counted
