"""What collectors find in digests of PINT, from Python and from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

native = pytest.importorskip("weftline._native", reason="the native module is not built")
if not hasattr(native, "Plan"):
    pytest.skip("the native module is not built", allow_module_level=True)

from pint_files import PATHS, one_query, output_of, seen, shown  # noqa: E402

from weftline import pint  # noqa: E402
from weftline.cli.main import main  # noqa: E402
from weftline.errors import InputError  # noqa: E402


def test_digests_of_a_file_become_quantiles_per_hop(here, capsys):
    seen("seen.csv")
    output_of(capsys, "pint", "plan", "queries.toml", "--out", "plan.toml")
    output_of(capsys, "pint", "encode", "plan.toml", "seen.csv", "--out", "digests.csv")
    files = ["--findings", "all.jsonl", "--out", "paths.csv"]
    printed = output_of(capsys, "pint", "decode", "digests.csv", "--plan", "plan.toml", *files)
    assert "2,000 digests, 0 refused, 2 flows" in printed.out and printed.err == ""
    reports = [json.loads(line) for line in (here / "all.jsonl").read_text().splitlines()]
    assert len(reports) == 2
    for report in reports:
        medians = [hop["quantiles"][0] for hop in report["queries"]["latency"]["hops"]]
        for hop, median in enumerate(medians, start=1):
            assert median["value"] == pytest.approx(1000 * hop, rel=0.06)
            assert median["low"] <= 1000 * hop <= median["high"]
        load = report["queries"]["load"]
        assert load["smallest"] == load["largest"] == pytest.approx(300, rel=0.026)
    assert (here / "paths.csv").read_text().startswith("flow_id,src,dst,")


def test_numbers_of_known_paths_stand_with_the_count_of_unknown_ones(here, capsys):
    (here / "paths.toml").write_text(PATHS)
    plan = pint.Plan.open("paths.toml")
    hops = [{"switch-id": hop} for hop in (3, 4, 5)]
    rows = [(flow, packet) for flow, packets in ((1, 60), (2, 60), (3, 0)) for packet in range(packets)]
    rows.append((3, 7))  # one digest of 16 bits may leave several switches at every hop
    lines = ["packet_id,digest,hops,plan_version,flow_id"]
    lines += [
        f"{packet},{plan.encode(packet_id=packet, hops=hops)[-1]},3,{plan.version},{flow}"
        for flow, packet in rows
    ]
    (here / "digests.csv").write_text("\n".join(lines) + "\n")
    known = ["--topology", "line.gml", "--ids-only"]
    decode = ["pint", "decode", "digests.csv", "--plan", "paths.toml", *known]
    found = json.loads(output_of(capsys, *decode, "--json").out)
    packets = found["packets_to_decode"]
    assert (packets["known"], packets["unknown"]) == (2, 1)
    assert packets["mean"] == packets["median"] == packets["p99"] > 1
    printed = output_of(capsys, *decode)
    assert "(without the 1 paths that are not known)" in printed.out and "records" not in printed.err
    assert "2 of 3 flows have a known path: 2 confirmed, 0 not confirmed; the others had" in printed.out


def test_a_flow_on_several_paths_at_a_time_is_one_flow_and_warned_of(here, capsys):
    (here / "paths.toml").write_text(PATHS)
    plan = pint.Plan.open("paths.toml")
    routes = [[{"switch-id": hop} for hop in route] for route in ((3, 4, 5), (5, 4, 3), (4, 5, 4))]
    lines = ["packet_id,digest,hops,plan_version,flow_id"]
    for packet in range(3000):
        for flow in (1, 2):
            hops = routes[packet * 7919 // 11 % 3 if flow == 1 else 0]
            lines.append(f"{packet},{plan.encode(packet_id=packet, hops=hops)[-1]},3,{plan.version},{flow}")
    (here / "digests.csv").write_text("\n".join(lines) + "\n")
    decode = ["pint", "decode", "digests.csv", "--plan", "paths.toml", "--topology", "line.gml", "--ids-only"]
    found = json.loads(output_of(capsys, *decode, "--json").out)
    changed, records = found["changed_records"], found["records"]
    assert found["flows"] == 2 and records == changed + 2 > 20
    assert found["complete_paths"] + found["incomplete_paths"] == records
    assert 1 <= found["confirmed_paths"] <= found["complete_paths"]
    printed = output_of(capsys, *decode)
    assert f"6,000 digests, 0 refused, 2 flows with {records:,} records: one for each path" in printed.out
    assert f"of {records:,} records have a known path: {found['confirmed_paths']:,} confirmed" in printed.out
    assert f"warning: {changed:,} of {records:,} records of 2 flows ended because digests" in printed.err


def test_flows_on_paths_longer_than_the_plan_allows_are_counted_and_warned_of(here, capsys):
    one_query(here, value="hop-latency", aggregation="max", more="approximation = { epsilon = 0.05 }")
    plan = pint.Plan.open("one.toml")
    lines = ["packet_id,digest,hops,plan_version,flow_id"]
    lines += [
        f"{packet},{digest},{hops},{plan.version},{flow}"
        for flow, hops in ((1, 12), (2, 13), (3, 14), (1, 13))
        for packet in range(5)
        for digest in plan.encode(packet_id=packet, hops=[{"hop-latency": 500}])
    ]
    (here / "digests.csv").write_text("\n".join(lines) + "\n")
    decode = ["pint", "decode", "digests.csv", "--plan", "one.toml"]
    found = json.loads(output_of(capsys, *decode, "--json").out)
    assert found["too_long"] == {"digests": 15, "most_hops": 14, "flows_left_out": 2}
    printed = output_of(capsys, *decode)
    assert "20 digests, 15 refused, 1 flows" in printed.out
    expected = (
        "15 digests are refused, as they passed up to 14 hops and the plan has hops.maximal = 12: 2 of 3"
    )
    assert f"warning: {expected} flows are left out" in printed.err


def test_a_packet_in_a_loop_is_reported_by_encoders_and_collectors(here, capsys):
    one_query(here, value="switch-id", aggregation="loops", bits=16, more="tolerance = 0")
    plan = pint.Plan.open("one.toml")
    circle = [{"switch-id": 5 + hop % 3} for hop in range(12)]
    digests, hop = plan.encode_and_report(packet_id=7, hops=circle)
    assert digests == plan.encode(packet_id=7, hops=circle) and 4 <= hop <= 12
    assert plan.encode_and_report(packet_id=7, hops=circle[:3])[1] is None
    parts = [part for seen in circle for part in ("--hop", f"switch-id={seen['switch-id']}")]
    encode = ["pint", "encode", "one.toml", "--packet", "7", *parts]
    assert f"loop reported at hop {hop}" in output_of(capsys, *encode).out
    assert json.loads(output_of(capsys, *encode, "--json").out)["loop_hop"] == hop
    rows = [f"{n},{hop},{seen['switch-id']}" for n in range(50) for hop, seen in enumerate(circle, start=1)]
    (here / "seen.csv").write_text("\n".join(["packet_id,hop,switch-id", *rows]) + "\n")
    output_of(capsys, "pint", "encode", "one.toml", "seen.csv", "--out", "digests.csv")
    found = json.loads(output_of(capsys, "pint", "decode", "digests.csv", "--plan", "one.toml", "--json").out)
    assert found["counts"]["loops"] > 40 and found["events"][0]["event"] == "loop"
    lines = [f"{n},{hop},{4 + hop}" for n in range(50, 60) for hop in (1, 2, 3)]
    with open(here / "seen.csv", "a") as table:
        table.write("\n".join(lines) + "\n")
    output_of(capsys, "pint", "encode", "one.toml", "seen.csv", "--out", "digests.csv")
    decoded = output_of(capsys, "pint", "decode", "digests.csv", "--plan", "one.toml").out
    assert "no loop in these packets" in decoded and "no loop reported" not in decoded
    collector = pint.Collector(plan)
    assert collector.take(packet_id=7, digest=digests[hop - 1], hops=hop, loop=True) is None
    (event,) = collector.drain()["events"]
    assert (event["event"], event["packet_id"]) == ("loop", 7)
    printed = output_of(capsys, "pint", "accuracy", "one.toml").out
    assert "packets with a loop of 3 switches" in printed and "packets without a loop: 0 %" in printed


def test_names_of_switches_and_ports_are_shown_as_they_were_written(here, capsys):
    one_query(here, value="switch-id", aggregation="frequent")
    printed = shown(here, capsys, [(3, 4, 5)] * 300, "--topology", "line.gml")
    assert "west (100 %), middle (100 %), east (100 %)" in printed.out and "bits tell" not in printed.err
    one_query(here, value="egress-port", aggregation="frequent")
    assert "173 (100 %), 3 (100 %), 254 (100 %)" in shown(here, capsys, [(173, 3, 254)] * 300).out
    one_query(here, value="egress-port", aggregation="max")
    assert "2  174 to 201" in shown(here, capsys, [(3, 174, 2), (201, 1, 1)]).out
    # Ids that do not fit are marked, and a collector that knows the switches says that some do not.
    one_query(here, value="switch-id", aggregation="frequent", bits=2)
    printed = shown(here, capsys, [(2, 3, 5)] * 300, "--topology", "line.gml")
    assert "2 (100 %), ≥ 3 (100 %), ≥ 3 (100 %)" in printed.out
    assert "q: 2 bits tell ids below 3 apart, and the topology has switches up to 5" in printed.err
    assert "give the query 3 bits" in printed.err
    one_query(here, value="switch-id", aggregation="quantiles")
    error = output_of(capsys, "pint", "plan", "one.toml", status=2).err
    assert (
        'switch-id is a name, not a quantity, so quantiles of it means nothing: use aggregation = "path"'
        in error
    )


def test_a_value_that_may_be_nothing_is_marked(here, capsys):
    more = 'approximation = { epsilon = 0.1, rounding = "nearest" }'
    one_query(here, value="queue-bytes", aggregation="max", more=more)
    printed = shown(here, capsys, [(0, 0, 0)] * 5).out
    assert "mean ≤ 1 B, ≤ 1 B to ≤ 1 B" in printed and "the true value may be 0" in printed
    assert "≤ 1 B to 653 B" in shown(here, capsys, [(0, 0, 0), (0, 700, 0)]).out
    one_query(here, value="hop-latency", aggregation="quantiles", more="approximation = { epsilon = 0.1 }")
    assert "p50/p99 ≤ 1 ns/≤ 1 ns" in shown(here, capsys, [(0, 0, 0)] * 300).out
    one_query(here, value="queue-bytes", aggregation="max", more='approximation = "exact"')
    assert "mean 0 B, 0 B to 0 B" in shown(here, capsys, [(0, 0, 0)] * 5).out


def test_counts_and_sums_that_are_beyond_their_bits_are_marked(here, capsys):
    one_query(here, value="utilisation", aggregation="count-above", bits=2, more="threshold = 5")
    assert "mean 3.00, 3.00 to 3.00" in shown(here, capsys, [(9, 9, 9)] * 5).out
    assert "mean ≥ 3.00, ≥ 3.00 to ≥ 3.00" in shown(here, capsys, [(9, 9, 9, 9)] * 5).out
    one_query(here, value="utilisation", aggregation="count-above", bits=1, more="threshold = 5")
    error = output_of(capsys, "pint", "plan", "one.toml", status=2).err
    assert "1 bits count up to 1 hops, and paths of 3 are expected" in error
    one_query(here, value="hop-latency", aggregation="sum", more="approximation = { epsilon = 0.05 }")
    largest = pint.Plan.open("one.toml").facts()["queries"][0]["prediction"]["largest"]
    assert largest == pytest.approx(49_084, rel=1e-3)
    assert "mean ≥ 49.1 us, ≥ 49.1 us to ≥ 49.1 us" in shown(here, capsys, [(10**6,) * 3] * 5).out


def test_a_sketch_refuses_shares_beyond_0_and_1_and_a_merge_with_itself(here):
    sketch = pint.QuantileSketch()
    sketch.update([float(number) for number in range(1000)])
    for share in (1.1, -0.1, float("nan")):
        with pytest.raises(InputError, match="share: expected a number from 0 to 1"):
            sketch.quantiles([0.5, share])
        with pytest.raises(InputError, match="share: expected a number from 0 to 1"):
            sketch.interval(share, 0.95)
    for confidence in (0.0, 1.0, 1.5, float("nan")):
        with pytest.raises(InputError, match="confidence: expected a number above 0 and below 1"):
            sketch.interval(0.5, confidence)
    with pytest.raises(InputError, match="merge: expected another sketch"):
        sketch.merge(sketch)
    other = pint.QuantileSketch(seed=2)
    other.merge(sketch)
    assert len(other) == 1000 and other.quantiles([0.0, 1.0]) == [0.0, 999.0]
    frequent = pint.FrequentSketch(4)
    with pytest.raises(InputError, match="share: expected a number from 0 to 1"):
        frequent.frequent(99)
    with pytest.raises(InputError, match="merge: expected another sketch"):
        frequent.merge(frequent)


def test_flows_of_sinks_whose_clocks_differ_are_not_idle(here, capsys):
    plan = pint.Plan.open("queries.toml")
    hops = [{"hop-latency": 800, "utilisation": 100}] * 3
    lines = ["packet_id,digest,hops,plan_version,flow_id,sink,time_ns"]
    lines += [
        f"{n},{plan.encode(packet_id=n, hops=hops)[-1]},3,{plan.version},{sink},{sink},{n * 10**6 + ahead}"
        for n in range(300)
        for sink, ahead in ((1, 0), (2, 11 * 10**9))
    ]
    (here / "digests.csv").write_text("\n".join(lines) + "\n")
    decode = ["pint", "decode", "digests.csv", "--plan", "queries.toml", "--idle", "10s"]
    printed = output_of(capsys, *decode)
    assert "warning: 299 digests are older than the newest one before them by more than --idle" in printed.err
    found = json.loads(output_of(capsys, *decode, "--json").out)
    assert found["flows"] == 2 and found["records"] <= 3 and found["counts"]["late"] == 299


def test_parquet_and_csv_say_the_same(here, capsys):
    pq, pacsv = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow.csv")
    seen("seen.csv", packets=500)
    plan = pint.Plan.open("queries.toml")
    assert pint.encode(plan, "seen.csv", "digests.csv") == 500
    pq.write_table(pacsv.read_csv("digests.csv"), "digests.parquet")
    assert pint.decode(plan, "digests.parquet") == pint.decode(plan, "digests.csv")


def test_what_cannot_be_is_refused_and_reported(here, capsys):
    seen("seen.csv", packets=100)
    plan = pint.Plan.open("queries.toml")
    pint.encode(plan, "seen.csv", "digests.csv")
    lines = (here / "digests.csv").read_text().splitlines()
    lines[3] = lines[3].replace(f",{plan.version},", ",1,")
    (here / "digests.csv").write_text("\n".join(lines) + "\n")
    printed = output_of(capsys, "pint", "decode", "digests.csv", "--plan", "queries.toml")
    assert "100 digests, 1 refused" in printed.out and "1 of another plan" in printed.out
    assert "row 3, packet 2: recorded under plan version 0x00000001" in printed.err
    (here / "other.csv").write_text("\n".join([lines[0], lines[3]]) + "\n")
    printed = output_of(capsys, "pint", "decode", "other.csv", "--plan", "queries.toml", status=2)
    assert "1 of another plan" in printed.out and "other.csv: no digest of it was taken" in printed.err
    (here / "digests.csv").write_text("\n".join(lines)[:-6])
    error = output_of(capsys, "pint", "decode", "digests.csv", "--plan", "queries.toml", status=2).err
    assert "digests.csv:101:" in error and "is the file cut off?" in error
    (here / "digests.csv").write_text("packet,digest\n")
    error = output_of(capsys, "pint", "decode", "digests.csv", "--plan", "queries.toml", status=2).err
    assert "digests.csv:1: column packet_id: the header does not have it" in error
    error = output_of(
        capsys, "pint", "decode", "digests.csv", "--plan", "queries.toml", "--idle", "9", status=2
    ).err
    assert "--idle: expected a time with its unit such as \"10us\", found '9'" in error
    error = output_of(capsys, "pint", "decode", "none.csv", "--plan", "queries.toml", status=2).err
    assert "none.csv" in error


def test_a_collector_is_fed_from_python(here):
    plan = pint.Plan.open("queries.toml")
    collector = pint.Collector(plan, memory="100KB", idle_ns=10_000)
    hops = [{"hop-latency": 800, "utilisation": 100}] * 3
    for packet in range(500):
        digest = plan.encode(packet_id=packet, hops=hops)[-1]
        assert collector.take(packet_id=packet, digest=digest, hops=3, flow_id=1, time_ns=packet) is None
    assert collector.flows == 1 and 0 < collector.memory_bytes <= 100_000
    (report,) = collector.reports()
    assert report["flow"] == {"flow_id": 1} and report["ending"] is None and report["digests"] == 500
    refused = collector.take(packet_id=1, digest=1, hops=13)
    assert refused == "13 hops, expected 1 to 12"
    assert "plan version" in collector.take(packet_id=1, digest=1, hops=3, plan_version=9)
    assert collector.take(packet_id=1, digest=0, hops=3, flow_id=2, time_ns=20_000) is None
    (ended,) = collector.drain()["ended"]
    assert ended["ending"] == "idle" and collector.drain() == {"events": [], "ended": []}
    with pytest.raises(InputError, match="src: expected a host's number"):
        collector.take(packet_id=1, digest=0, hops=3, src="here")
    assert pint.Collector(plan, patience=(5, 9, 100)).flows == 0
    for patience in [(3, 8), (3, 0, 64), (3, 8, 1 << 32)]:
        with pytest.raises(InputError, match="patience: expected three whole numbers from 1"):
            pint.Collector(plan, patience=patience)


def test_whole_numbers_of_numpy_are_those_of_python(here):
    numpy = pytest.importorskip("numpy")
    plan = pint.Plan.open("queries.toml")
    seven, memory = numpy.int64(7), numpy.int32(100_000)
    plain = plan.encode(packet_id=7, hops=[{"hop-latency": 800, "utilisation": 100}])
    hops = [{"hop-latency": numpy.int16(800), "utilisation": numpy.uint8(100)}]
    assert plan.encode(packet_id=seven, hops=hops) == plain
    collector = pint.Collector(plan, memory=memory, idle_ns=seven, patience=tuple(numpy.array([3, 8, 64])))
    assert collector.take(packet_id=seven, digest=numpy.uint64(plain[0]), hops=numpy.int8(1)) is None
    for wrong in (True, numpy.float64(7), -1):
        with pytest.raises(InputError, match=r"^packet_id: expected a whole number from 0 to 2\^64 - 1"):
            plan.encode(packet_id=wrong, hops=hops)
    with pytest.raises(InputError, match=r"^trials: expected a whole number"):
        pint.accuracy(plan, trials=-1)


def test_memory_stays_bounded_over_many_flows(here):
    plan = pint.Plan.open("queries.toml")
    seen("seen.csv", packets=20_000, flows=20_000)
    pint.encode(plan, "seen.csv", "digests.csv")
    found = pint.decode(plan, "digests.csv", memory="500KB", show=3)
    assert found["rows"] == found["flows"] == 20_000 and len(found["reports"]) == 3
    assert found["counts"]["evicted"] > 15_000
    with pytest.raises(InputError, match="memory: expected at least"):
        pint.decode(plan, "digests.csv", memory="1KB")


def test_digests_with_the_ids_of_a_gml_file_are_answered_with_the_ids_of_its_switches(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    nodes = "\n".join(f'node [ id {number} label "{name}" ]' for number, name in enumerate("abcd"))
    edges = "\n".join(f"edge [ source {n} target {(n + 1) % 4} ]" for n in range(4))
    Path("ring.gml").write_text(f"graph [\n{nodes}\n{edges}\n]\n")
    query = '[[query]]\nname = "p"\nvalue = "switch-id"\naggregation = "path"\nbits = 8\n'
    Path("q.toml").write_text(f"bits = 8\nhops = {{ expected = 2, maximal = 4 }}\n{query}")
    for first, warned in ((0, True), (4, False)):
        rows = [f"{packet},{hop + 1},{first + hop}" for packet in range(50) for hop in (0, 1)]
        Path("seen.csv").write_text("\n".join(["packet_id,hop,switch-id", *rows, ""]))
        assert main(["pint", "encode", "q.toml", "seen.csv", "--out", "d.csv"]) == 0
        assert main(["pint", "decode", "d.csv", "--plan", "q.toml", "--topology", "ring.gml"]) == 0
        text = "not the id in the file: 4 a, 5 b, 6 c, 7 d"
        assert (text in capsys.readouterr().err) is warned


def test_values_state_how_many_digests_may_be_of_the_route_after_them():
    from weftline.cli.pint_decode import report_rows

    hop = {"samples": 9, "quantiles": [{"quantile": 0.5, "value": 40.0}]}
    queries = {
        "path": {"hops": [7], "candidates": [1], "digests": 9, "decoded_after": 1, "confirmed_after": 2}
    }
    report = {"flow": {}, "may_be_of_next": 23, "queries": {**queries, "latency": {"hops": [hop]}}}
    asked = {"path": {"value": "switch-id"}, "latency": {"value": "hop-latency", "aggregation": "quantiles"}}
    path, latency = report_rows(report, {}, asked)
    assert path[-1] == "7"
    assert latency[-1] == "p50 7 40 ns (up to 23 digests may be of the next route)"
    assert report_rows({**report, "may_be_of_next": 0}, {}, asked)[1][-1] == "p50 7 40 ns"


def test_a_path_that_network_and_ends_leave_alone_is_known_after_no_digest_and_confirmed(tmp_path):
    network = tmp_path / "network.toml"
    network.write_text(
        '[topology]\nkind = "leaf-spine"\nleaves = 2\nspines = 1\nhosts_per_leaf = 2\n'
        '[[workload]]\nkind = "permutation"\nsize = "1KB"\n'
    )
    plan = pint.Plan(
        'bits = 8\nhops = { expected = 3, maximal = 5 }\n[[query]]\nname = "path"\nvalue = "switch-id"\n'
        'aggregation = "path"\nbits = 8\n'
    )
    collector = pint.Collector(plan, topology=network, ends=True)
    for packet in range(200):
        digest = plan.encode(packet_id=packet, hops=[{"switch-id": switch} for switch in (4, 6, 5)])[-1]
        collector.take(packet_id=packet, digest=digest, hops=3, src=0, dst=2)
    (report,) = collector.reports()
    path = report["queries"]["path"]
    assert (path["hops"], path["decoded_after"], path["contradicted"]) == ([4, 6, 5], 0, False)
    assert path["confirmed_after"] < 50
    assert [event["event"] for event in collector.drain()["events"]] == ["path-decoded"]


def test_a_path_that_its_digests_contradict_is_marked_and_names_no_hops():
    from weftline.cli.pint_decode import report_rows

    after = {"decoded_after": None, "confirmed_after": None}
    path = {"hops": [7, 8], "candidates": [1, 1], "digests": 9, **after, "contradicted": True}
    hop = {"samples": 9, "quantiles": [{"quantile": 0.5, "value": 40.0}]}
    report = {"flow": {}, "queries": {"path": path, "latency": {"hops": [hop, hop]}}}
    asked = {"path": {"value": "switch-id"}, "latency": {"value": "hop-latency", "aggregation": "quantiles"}}
    marked, latency = report_rows(report, {"7": "a", "8": "b"}, asked)
    assert marked[-1] == "a b (contradicted)"
    assert "a 40 ns" not in latency[-1]
    path["contradicted"] = False
    assert "a 40 ns" in report_rows(report, {"7": "a", "8": "b"}, asked)[1][-1]


def test_a_warning_states_that_over_half_of_the_ids_repeat():
    from weftline.cli.pint_decode import _repeated

    assert _repeated({"digests": 10, "repeated": 5}) == []
    [warning] = _repeated({"digests": 3_000, "repeated": 2_999})
    assert warning.startswith("2,999 of 3,000 digests have a packet_id that their record has used")
