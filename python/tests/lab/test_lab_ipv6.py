"""IPv6 in the lab: addresses, IOAM traces, and digests in flow labels against traces of the same packets."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.lab.test_lab import lab, nothing_left
from tests.lab.test_lab_pint import PINT, QUERIES, programs
from weftline import InputError, Scenario, pint, scenarios
from weftline.lab import doctor, experiment, internet, ioam, plan, stamped, stamps, traced
from weftline.runs import Run

__all__ = ["nothing_left", "programs"]

DIAMOND = """
name = "diamond"
[topology]
kind = "file"
file = "network.toml"
[switch]
queue = { kind = "fifo", limit = "100KB" }
[transport]
kind = "tcp"
[[workload]]
kind = "flows"
flows = [
"""
FLOWS = 24


@pytest.fixture
def ipv6(machine: None) -> None:
    """Skip, or fail under `make lab`, where there is no IPv6 or no IOAM."""
    wrong = [
        one for one in doctor.findings(measure=False) if one.name in ("IPv6", "IOAM") and one.state != "ok"
    ]
    if wrong:
        (pytest.fail if os.environ.get("WEFTLINE_LAB") else pytest.skip)("; ".join(one.text for one in wrong))


def test_addresses_of_both_versions_differ_and_are_as_programs_report_them() -> None:
    for ip in (internet.IPV4, internet.IPV6):
        every = [ip.host(n, subflow) for n in range(300) for subflow in range(3)]
        every += [ip.link(n) for n in range(300)]
        assert len({internet.number(one) for one in every}) == len(every)
    assert internet.IPV6.host(0) == "fd0a::1" and internet.IPV6.host(258, 2) == "fd0a:2::103"
    assert internet.number("10.0.0.7") == 0xFFFF_0A00_0007 and internet.number("::7") == 7


def test_a_trace_has_the_bytes_of_the_standard() -> None:
    header = ioam.header(5)
    # Five switches of 16 bytes: 96 bytes, 11 units of 8 after the first; then padding of two, and the option.
    assert header[:4] == bytes([0, 11, 1, 0]) and len(header) == 96
    assert header[4:8] == bytes([0x31, 90, 0, 0])
    # Namespace, 4 words for a node, 20 words of room, hop limit and node, time, queue.
    assert header[8:16] == bytes.fromhex("5746 2014 b2000000") and not any(header[16:])
    assert len(ioam.header(ioam.MOST_SWITCHES)) == 256
    with pytest.raises(InputError, match="16 switches, and an IPv6 option holds the traces of 15"):
        ioam.check(16)


def test_a_trace_is_read_in_the_order_of_the_path() -> None:
    written = [(62, 7, 5, 250, 1514), (63, 6, 5, 200, 0)]  # The newest first, after the free room.
    words = b"".join(
        struct.pack(">IIII", limit << 24 | node, s, us, queue) for limit, node, s, us, queue in written
    )
    header = bytearray(ioam.header(3))
    header[0], header[11] = 6, 4
    header[32:] = words
    addresses = bytes(range(32))
    tcp = struct.pack(">HHIIBBHHH", 40000, 5001, 1, 2, 0x50, 0x10, 100, 0xABCD, 0)
    head = struct.pack(">IHBB", 6 << 28, len(header) + len(tcp), 0, 62) + addresses
    frame = bytes(12) + b"\x86\xdd" + head + bytes(header) + tcp
    packet = ioam.parse(frame, 9)
    assert packet is not None and not packet.overflow
    assert (packet.source_port, packet.destination_port, packet.time_ns) == (40000, 5001, 9)
    assert [(hop.node, hop.hop_limit, hop.queue_bytes) for hop in packet.hops] == [(6, 63, 0), (7, 62, 1514)]
    assert packet.hops[1].time_ns == 5_000_250_000
    assert ioam.parse(frame[:100], 9) is None
    assert ioam.parse(frame[:20] + b"\x06" + frame[21:], 9) is None


def test_what_does_not_run_over_ipv6_is_an_error_with_the_way_out() -> None:
    values = {"switch": {"balancer": {"kind": "hula"}}, "transport": {"kind": "mptcp"}}
    assert "--ports kernel" in internet.problems({}, engine=True, hosts=False)[0]
    assert "--hosts kernel" in internet.problems({}, engine=True, hosts=True)[0]
    assert 'kind = "hula" knows hosts by IPv4' in internet.problems(values, engine=False, hosts=False)[0]
    assert 'set transport.kind = "tcp"' in ioam.problems(values)[0]
    assert internet.chosen(None, traced=True) == 6 and internet.chosen(None, traced=False) == 4
    assert internet.differs() == ["packets are IPv6: 20 bytes longer than the simulated ones"]
    with pytest.raises(InputError, match="leave --ip 4 out"):
        internet.chosen(4, traced=True)


def test_small_packets_are_refused_before_anything_is_changed(dumbbell: Path) -> None:
    scenario = Scenario(dumbbell, set={"transport.mss": "1000B"})
    with pytest.raises(InputError, match=r"mss = 1000B: links with IPv6 carry .* set it to 1208B or more"):
        plan.make(scenario, ["cubic"], [], ip=6)
    assert plan.make(scenario, ["cubic"], [], ip=4).links[0].mtu == 1052
    # Two switches on a path: a trace of 48 bytes.
    assert plan.make(Scenario(dumbbell), ["cubic"], [], ip=6, traced=True).links[0].mtu == 1500 + 20 + 48


@pytest.mark.parametrize("delay", ["0.1ns", "2ms"])
@pytest.mark.usefixtures("programs", "ipv6", "nothing_left")
def test_digests_in_labels_are_the_librarys_for_the_path_of_the_kernels_trace(
    tmp_path: Path, delay: str
) -> None:
    """With two ways after the first switch: labels change with every packet, and a flow keeps its path."""
    (tmp_path / "queries.toml").write_text(QUERIES.replace("expected = 2", "expected = 4"))
    text = traced.network([0, 0, 4, 4], 5, traced.DIAMOND_LINKS, delay)
    (tmp_path / "network.toml").write_text(text)
    flows = [
        f'{{ src = {n % 2}, dst = {2 + n % 2}, size = "60KB", start = "{20 * n}ms" }},' for n in range(FLOWS)
    ]
    text = DIAMOND.replace("[transport]", PINT + "[transport]") + "\n".join(flows) + "\n]\n"
    (tmp_path / "diamond.toml").write_text(text)
    done = lab("run", tmp_path / "diamond.toml", "--ioam", "--out", tmp_path / "lab", "--json")
    out, err = done.communicate(timeout=120)
    assert done.returncode == 0, err
    found = json.loads(out)["lab"]
    counts, traces = found["pint"], found["ioam"]
    programs = counts["programs"]
    assert found["ip"] == 6
    assert traces["lost"] == traces["strangers"] == traces["overflows"] == counts["strangers"] == 0
    assert all(programs[name] == 0 for name in ("lost", "unstamped", "hop_limit", "other_plan", "loop"))
    assert programs["source"] == programs["sink"] and programs["switch"] == 4 * programs["sink"]
    rows = pq.read_table(tmp_path / "lab" / "telemetry.parquet").to_pylist()
    by_id = {one["packet_id"]: one for one in pq.read_table(tmp_path / "lab" / ioam.TABLE).to_pylist()}
    assert len(rows) == counts["recorded"] == traces["traces"] >= FLOWS * 40
    queries = pint.Plan.open(tmp_path / "queries.toml")
    ways: dict[int, set[tuple[int, ...]]] = {}
    for row in rows:
        trace = by_id[row["packet_id"]]
        assert trace["hop_limits"] == [63, 62, 61, 60] and trace["flow_id"] == row["flow_id"]
        hops = [{"switch-id": node} for node in trace["nodes"]]
        assert queries.encode(packet_id=row["packet_id"], hops=hops)[-1] == row["digest"]
        ways.setdefault(row["flow_id"], set()).add(tuple(trace["nodes"]))
    assert len(ways) == FLOWS and all(len(one) == 1 for one in ways.values())
    assert len({way for one in ways.values() for way in one}) == 2, "both ways are in use"


def test_the_experiment_has_its_rows_and_its_networks_are_networks(tmp_path: Path) -> None:
    found = experiment.read("lab-pint-ioam", ["4", "5"])
    assert isinstance(found, traced.Experiment)
    assert [found.shapes[row.switches] for row in found.rows] == ["diamond", "chain"]
    for row, switches in zip(found.rows, (5, 5), strict=True):
        found._networks(row, tmp_path, 64)
        changes = {
            "topology.file": str(tmp_path / "network.toml"),
            "telemetry.queries": str(found.queries),
            "workload": [{"kind": "flows", "flows": found._flows(row)}],
        }
        source = scenarios.load(str(found.scenario))
        scenario = Scenario.of(source, scenarios.settings(changes), seed=1)
        assert scenario.check()["topology"]["switches"] == switches
        changes["topology.file"] = str(tmp_path / "known.toml")
        known = Scenario.of(source, scenarios.settings(changes), seed=1)
        numbers, of_known = (
            {n for n, node in enumerate(one.network()["nodes"]) if node["kind"] == "switch"}
            for one in (scenario, known)
        )
        assert numbers <= of_known and len(of_known) == 64, "the collector knows the lab's switches"


def test_bits_of_queries_are_found_where_the_plan_has_them() -> None:
    queries = pint.Plan.open(experiment.named()["lab-pint-ioam"] / "queries.toml")
    at = traced.places(queries)
    assert set(map(frozenset, at)) == {frozenset(("path", "latency")), frozenset(("path", "congestion"))}
    for packet in range(200):
        where = at[frozenset(queries.serves(packet))]
        few, many = (
            queries.encode(
                packet_id=packet, hops=[{"switch-id": 5, "hop-latency": value, "utilisation": value}]
            )[-1]
            for value in (1, 1 << 30)
        )
        assert traced._part(few, where["path"]) == traced._part(many, where["path"])
        other = where.get("latency") or where["congestion"]
        assert traced._part(few, other) < traced._part(many, other)


@dataclass
class Written:
    """A run with 60 packets of one flow over three switches, each with another queue."""

    out: Path
    summary: dict[str, Any] = field(default_factory=lambda: {"lab": {"contaminated": []}})

    def checked(self, change: Callable[[dict[str, Any]], None] = lambda trace: None) -> traced.Checked:
        """Hold digests against traces, of which the packet with a long queue has a change."""
        queries = pint.Plan.open(experiment.named()["lab-pint-ioam"] / "queries.toml")
        rows, traces = [], []
        for number in range(60):
            packet, queues = 977 * number, [0, 3260 * (number % 4), 1630]
            hops = [traced._seen(12 + hop, 80 * queue + 9_000) for hop, queue in enumerate(queues)]
            digest = queries.encode(packet_id=packet, hops=hops)[-1]
            row = dict.fromkeys(stamps.COLUMNS, 0) | {"packet_id": packet, "digest": digest, "hops": 3}
            rows.append(
                row | {"dst": 1, "plan_version": queries.version, "path": None, "time_ns": number * 1e6}
            )
            at, times = number * 1e6, []
            for queue in queues:
                times.append(at)
                at += 80 * queue + 9_000
            trace = {
                "packet_id": packet,
                "flow_id": 0,
                "nodes": [12, 13, 14],
                "time_ns": at,
                "times_ns": times,
            }
            traces.append(trace | {"hop_limits": [63, 62, 61], "queues_bytes": queues})
        change(traces[7])
        stamps.write(self.out / "telemetry.parquet", stamps.Digests(rows, 0, 0))
        pq.write_table(pa.Table.from_pylist(traces), self.out / ioam.TABLE)
        known = self.out / "known.toml"
        known.write_text(traced.network([0] * 10, 64, stamped.chain(64), "1us"))
        return traced.checked(cast(Run, self), queries, known, "100Mbps", (0, 1))


def test_digests_and_traces_of_the_same_packets_agree_and_a_changed_trace_is_found(tmp_path: Path) -> None:
    run = Written(tmp_path)
    found = run.checked()
    assert (found.digests, found.equal, found.paths) == (60, 60, 1)
    assert found.contradictions == found.outside == found.unmatched == found.steered == 0
    assert found.latencies > 40 and found.near == len(found.quantiles) == 6

    def elsewhere(trace: dict[str, Any]) -> None:
        trace["nodes"] = [12, 20, 14]

    found = run.checked(elsewhere)
    assert found.steered == 1 and found.contradictions >= 1

    def another(trace: dict[str, Any]) -> None:
        trace["packet_id"] = 1

    found = run.checked(another)
    assert found.unmatched == 1 and found.contradictions == 0 and found.equal == found.digests == 59
    row = stamped.Row(3, 10.0, [replace(found, packets=10.0, paths=stamped.FLOWS)] * 3)
    assert row.verdict(0.1) == "open"

    def longer(trace: dict[str, Any]) -> None:
        # The packet's latency is of one hop of the three; all of them have now waited for much longer.
        trace["queues_bytes"] = [99_000] * 3

    found = run.checked(longer)
    assert found.outside == found.contradictions == 1 and found.equal == 60
