"""PINT from Python and from the command line: plans, digests, what collectors find in them."""

from __future__ import annotations

import csv
import itertools
import json
import random
from pathlib import Path

import pytest

native = pytest.importorskip("weftline._native", reason="the native module is not built")
if not hasattr(native, "Plan"):
    pytest.skip("the native module is not built", allow_module_level=True)

from weftline import pint  # noqa: E402
from weftline.cli.main import main  # noqa: E402
from weftline.errors import InputError  # noqa: E402

QUERIES = """\
bits = 16
seed = 5
hops = { expected = 4, maximal = 12 }

[[query]]
name = "latency"
value = "hop-latency"
aggregation = "quantiles"
quantiles = [0.5, 0.99]
approximation = { epsilon = 0.025 }
bits = 8
frequency = "15/16"

[[query]]
name = "load"
value = "utilisation"
aggregation = "max"
approximation = { epsilon = 0.025, rounding = "nearest" }
bits = 8
"""
LINE = """\
graph [
  node [ id 0 label "west" ]
  node [ id 1 label "middle" ]
  node [ id 2 label "east" ]
  edge [ source 0 target 1 ]
  edge [ source 1 target 2 ]
]
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working directory with a file of queries and a topology."""
    (tmp_path / "queries.toml").write_text(QUERIES)
    (tmp_path / "line.gml").write_text(LINE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def seen(path, *, packets=2000, flows=2):
    """Write what three hops see of each packet: latencies of about 1, 2 and 3 us, loads 100, 200, 300."""
    draw = random.Random(1)
    with open(path, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["packet_id", "hop", "hop-latency", "utilisation", "flow_id", "src", "dst", "time_ns"])
        for packet in range(packets):
            for hop in (1, 2, 3):
                latency = round(1000 * hop * draw.uniform(0.8, 1.2))
                rows.writerow([packet, hop, latency, 100 * hop, packet % flows, 0, 2, 10 * packet])


def output_of(capsys, *arguments, status=0):
    assert main(list(arguments)) == status
    return capsys.readouterr()


def test_a_plan_is_printed_written_and_read_again(here, capsys):
    assert "0.9375" in output_of(capsys, "pint", "plan", "queries.toml", "--out", "plan.toml").out
    plan, again = pint.Plan.open("queries.toml"), pint.Plan.open("plan.toml")
    assert plan.version == again.version and plan.values == ["hop-latency", "utilisation"]
    facts = json.loads(output_of(capsys, "pint", "plan", "plan.toml", "--json").out)
    assert facts["version"] == f"{plan.version:08x}" and facts == plan.facts()
    changed = (here / "plan.toml").read_text().replace("seed = 5", "seed = 6")
    with pytest.raises(InputError, match="it was changed after planning"):
        pint.Plan(changed, name="plan.toml")


def test_wrong_queries_name_the_line_and_the_nearest_name(here, capsys):
    (here / "wrong.toml").write_text(QUERIES.replace("hop-latency", "hop-latancy"))
    error = output_of(capsys, "pint", "plan", "wrong.toml", status=2).err
    assert "wrong.toml:7" in error and 'did you mean "hop-latency"' in error
    (here / "narrow.toml").write_text(QUERIES.replace("bits = 16", "bits = 8", 1))
    error = output_of(capsys, "pint", "plan", "narrow.toml", status=2).err
    assert "do not fit a digest of 8 bits" in error and "frequencies" in error
    assert "absent.toml" in output_of(capsys, "pint", "plan", "absent.toml", status=2).err


def test_one_packet_is_encoded_hop_by_hop(here, capsys):
    plan = pint.Plan.open("queries.toml")
    hops = [{"hop-latency": 810, "utilisation": 100}, {"hop-latency": 90, "utilisation": 700}]
    digests = plan.encode(packet_id=7, hops=hops)
    arguments = [f"hop-latency={hop['hop-latency']},utilisation={hop['utilisation']}" for hop in hops]
    parts = [part for text in arguments for part in ("--hop", text)]
    found = json.loads(
        output_of(capsys, "pint", "encode", "queries.toml", "--packet", "7", *parts, "--json").out
    )
    assert found == {"packet_id": 7, "queries": plan.serves(7), "digests": digests, "loop_hop": None}
    assert all(digest < 2**16 for digest in digests)
    error = output_of(
        capsys, "pint", "encode", "queries.toml", "--packet", "7", "--hop", "latency=3", status=2
    ).err
    assert 'hop 1: "hop-latency" is missing' in error
    with pytest.raises(InputError, match="packet_id"):
        plan.encode(packet_id=-1, hops=hops)


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


def one_query(here, *, value, aggregation, bits=8, more=""):
    """Write a file with one query."""
    (here / "one.toml").write_text(
        f"bits = {bits}\nhops = {{ expected = 3, maximal = 12 }}\n"
        f'[[query]]\nname = "q"\nvalue = "{value}"\naggregation = "{aggregation}"\nbits = {bits}\n{more}\n'
    )


def shown(here, capsys, values, *options):
    """Return what is printed of packets that each passed hops with these values."""
    plan = pint.Plan.open("one.toml")
    lines = ["packet_id,digest,hops,plan_version,flow_id"]
    for packet, seen in enumerate(values):
        digest = plan.encode(packet_id=packet, hops=[{plan.values[0]: value} for value in seen])[-1]
        lines.append(f"{packet},{digest},{len(seen)},{plan.version},1")
    (here / "digests.csv").write_text("\n".join(lines) + "\n")
    return output_of(capsys, "pint", "decode", "digests.csv", "--plan", "one.toml", *options)


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


def test_a_value_that_fragments_would_cut_is_refused(here, capsys):
    more = 'blocks = "fragments"\nvalue-bits = 2'
    one_query(here, value="switch-id", aggregation="path", more=more)
    plan = pint.Plan.open("one.toml")
    with pytest.raises(InputError, match="hop 2: switch-id: 5 has 3 bits, and query q writes 2"):
        plan.encode(packet_id=7, hops=[{"switch-id": 3}, {"switch-id": 5}])
    printed = shown(here, capsys, [(1, 2, 3)] * 300, "--topology", "line.gml")
    assert "q: the topology has switches up to 5: 5 has 3 bits" in printed.err


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


def test_numbers_beyond_the_codes_are_not_errors_of_the_plan(here, capsys):
    one_query(here, value="queue-bytes", aggregation="sum", more="largest = 10000")
    tried = ["pint", "accuracy", "one.toml", "--hops", "1,5", "--trials", "100"]
    one, five = json.loads(output_of(capsys, *tried, "--json").out)["queries"][0]["lengths"]
    # The law has a median of 28 KB at the first hop; codes end at 30 KB, of three hops.
    assert one["packets"] > 100 and one["at_ceiling"] > 100
    assert one["mean_relative_error"] < 0.1 and abs(one["bias"]) < 0.05
    assert five["at_ceiling"] > 950
    assert "more have the largest code and are left out" in output_of(capsys, *tried).out
    more = "largest = 2000\nquantiles = [0.1, 0.99]"
    one_query(here, value="hop-latency", aggregation="quantiles", more=more)
    found = json.loads(output_of(capsys, *tried, "--json").out)["queries"][0]["lengths"][0]["sizes"][-1]
    low, high = found["quantiles"]
    assert low["beyond_codes"] == 0 and low["mean_relative_error"] < 0.3
    assert high["beyond_codes"] == 1 and high["mean_relative_error"] is None
    assert "quantile 0.99 is beyond the largest code" in output_of(capsys, *tried).out


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


def test_a_product_multiplies(here, capsys):
    one_query(here, value="utilisation", aggregation="product", bits=16)
    found = json.loads(output_of(capsys, "pint", "accuracy", "one.toml", "--json").out)
    (length,) = found["queries"][0]["lengths"]
    assert length["mean_relative_error"] < 0.001
    one_query(here, value="utilisation", aggregation="product", bits=16, more='approximation = "exact"')
    error = output_of(capsys, "pint", "plan", "one.toml", status=2).err
    assert "one.toml:3: query.q: a product adds the logarithms of the hops' values" in error


def test_predicted_errors_of_quantiles_are_those_of_a_trial(here):
    more = "approximation = { epsilon = 0.0025 }"
    one_query(here, value="hop-latency", aggregation="quantiles", bits=12, more=more)
    plan = pint.Plan.open("one.toml")
    (length,) = pint.accuracy(plan, trials=1000, seed=2)["queries"][0]["lengths"]
    tried = {(size["packets"], q["quantile"]): q for size in length["sizes"] for q in size["quantiles"]}
    predicted = plan.facts()["queries"][0]["prediction"]
    assert predicted["sketch_k"] == 200
    for error in predicted["errors"]:
        if found := tried.get((error["packets"], error["quantile"])):
            assert error["sketch_rank_error"] == pytest.approx(0.0133, rel=0.01)
            assert found["mean_relative_error"] == pytest.approx(error["relative_error"], rel=0.25)


def test_what_the_command_line_cannot_mean_is_refused(here, capsys):
    twice = "hop-latency=1,utilisation=3,hop-latency=2"
    encode = ["pint", "encode", "queries.toml", "--packet", "7", "--hop", twice]
    assert f'--hop: "hop-latency" is given twice in "{twice}"' in output_of(capsys, *encode, status=2).err
    (here / "net.bin").write_bytes(b"\0\1")
    (here / "digests.csv").write_text("packet_id,digest,hops,plan_version\n")
    decode = ["pint", "decode", "digests.csv", "--plan", "queries.toml", "--topology", "net.bin"]
    error = output_of(capsys, *decode, status=2).err
    assert error.startswith("error: topology: expected a file that ends in .toml, ") and '"net.bin"' in error
    more = "approximation = { epsilon = 0.05, base = 1.1 }"
    one_query(here, value="hop-latency", aggregation="max", more=more)
    error = output_of(capsys, "pint", "plan", "one.toml", status=2).err
    assert "query.q.approximation: expected only one of epsilon, base and delta" in error


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
    assert '--idle: expected a time with its unit such as "10s", found "9"' in error
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


def test_accuracy_is_that_of_the_plan(here, capsys):
    found = json.loads(output_of(capsys, "pint", "accuracy", "queries.toml", "--trials", "50", "--json").out)
    latency, load = found["queries"]
    small, large = (size["quantiles"][0] for size in latency["lengths"][0]["sizes"])
    # 8 of the 16 bits are the load's on every packet, so the latency has the other 8 on every packet too.
    assert small["samples_per_hop"] == pytest.approx(1000 / 4, rel=0.05)
    assert large["mean_relative_error"] < small["mean_relative_error"] < 0.2
    assert load["lengths"][0]["mean_relative_error"] < 0.026
    assert found == pint.accuracy(pint.Plan.open("queries.toml"), trials=50)
    error = output_of(capsys, "pint", "accuracy", "queries.toml", "--hops", "13", status=2).err
    assert "hops: expected 1 to 12" in error


PATHS = """\
bits = 16
hops = { expected = 3, maximal = 5 }
[[query]]
name = "path"
value = "switch-id"
aggregation = "path"
bits = 16
copies = 2
ids = 3
"""


def test_accuracy_is_tried_on_the_paths_of_a_topology(here, capsys):
    (here / "paths.toml").write_text(PATHS)
    ring = "".join(f"edge [ source {n} target {(n + 1) % 8} ]\n" for n in range(8))
    (here / "ring.gml").write_text(
        "graph [\n" + "".join(f"node [ id {n} ]\n" for n in range(8)) + ring + "]\n"
    )
    tried = ["pint", "accuracy", "paths.toml", "--topology", "ring.gml", "--trials", "300", "--json"]
    means = []
    for known in (["--ids-only"], [], ["--ends"], ["--shortest", "--ends"]):
        found = json.loads(output_of(capsys, *tried, *known).out)
        (length,) = found["queries"][0]["lengths"]
        assert (length["hops"], length["wrong"], length["given_up"]) == (3, 0, 0)
        means.append(length["mean_packets"])
    # Between two switches two links apart, a ring has one way: nothing is left to find out.
    assert means[0] > means[1] > means[2] == means[3] == 0
    line = output_of(capsys, "pint", "accuracy", "paths.toml", "--topology", "line.gml", "--hops", "2,3").out
    assert line.count("0 wrong") == 2

    assert "neither ends nor shortest" in output_of(capsys, *tried, "--ids-only", "--ends", status=2).err

    error = output_of(capsys, *tried[:-3], "--hops", "5,4,3", status=0)
    assert error.out.count("hops") == 3
    error = output_of(capsys, *tried[:3], "--topology", "line.gml", "--hops", "5", status=2).err
    assert "no shortest path of the topology has 5 switches; the longest has 3" in error
    error = output_of(capsys, *tried[:3], "--ends", status=2).err
    assert "needs --topology" in error
    error = output_of(capsys, *tried[:3], "--topology", "none.gml", status=2).err
    assert "none.gml" in error


class Draws:
    """The random numbers of `pint.accuracy`: splitmix64."""

    GOLDEN, WORD = 0x9E3779B97F4A7C15, (1 << 64) - 1

    def __init__(self, seed):
        self.state = self._mix(seed)

    def _mix(self, x):
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & self.WORD
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB & self.WORD
        return x ^ (x >> 31)

    def word(self):
        self.state = (self.state + self.GOLDEN) & self.WORD
        return self._mix(self.state)


def test_accuracy_names_its_decoder_and_is_that_of_a_collector_where_links_are_known(here):
    """Packets that are drawn as `pint.accuracy` draws them, given to a collector."""
    switches, trials, seed = 12, 25, 3
    (here / "paths.toml").write_text(
        PATHS.replace("ids = 3", "ids = 12").replace("maximal = 5", "maximal = 12")
    )
    nodes = "".join(f"node [ id {n} ]\n" for n in range(switches))
    edges = "".join(f"edge [ source {n} target {n + 1} ]\n" for n in range(switches - 1))
    (here / "chain.gml").write_text(f"graph [\n{nodes}{edges}]\n")
    plan = pint.Plan.open("paths.toml")
    tried = {"hops": [switches], "trials": trials, "seed": seed, "topology": "chain.gml"}
    known, pairs, linked = (
        pint.accuracy(plan, **tried, ids_only=ids_only, decoder=decoder)["queries"][0]["lengths"][0]
        for ids_only, decoder in ((True, None), (True, "collector"), (False, None))
    )
    assert [found["decoder"] for found in (known, pairs, linked)] == ["peeling", "collector", "collector"]
    assert [found["wrong"] for found in (known, pairs, linked)] == [0, 0, 0]

    def packets_of_a_collector(ids_only):
        draws, counts = Draws(seed), []
        for _ in range(trials):
            path = list(range(switches, 2 * switches))  # the nodes after the hosts, one a switch
            if draws.word() >> 63:  # which of the two ends comes first
                path.reverse()
            for _ in path[1:]:
                draws.word()  # a draw for each step back
            collector, packets, events = pint.Collector(plan, topology="chain.gml", ids_only=ids_only), 0, []
            while not events:
                packets += 1
                packet = draws.word()
                digest = plan.encode(packet_id=packet, hops=[{"switch-id": hop} for hop in path])[-1]
                assert collector.take(packet_id=packet, digest=digest, hops=switches, flow_id=1) is None
                events = collector.drain()["events"]
            counts.append(packets)
        return sum(counts) / trials

    assert linked["mean_packets"] == pytest.approx(packets_of_a_collector(False), rel=1e-12)
    assert pairs["mean_packets"] == pytest.approx(packets_of_a_collector(True), rel=1e-12)
    assert pairs["mean_packets"] < known["mean_packets"]
    assert pint.accuracy(plan, **tried, ids_only=True, decoder="peeling")["queries"][0]["lengths"] == [known]
    assert pint.accuracy(plan, **tried, decoder="collector")["queries"][0]["lengths"] == [linked]
    assert pint.accuracy(plan, hops=[3], trials=2)["queries"][0]["lengths"][0]["decoder"] == "peeling"


def test_a_collector_is_tried_on_random_paths_without_a_topology(here):
    """Paths that are drawn as `pint.accuracy` draws them, given to a collector that knows the ids."""
    hops, ids, trials, seed = 5, 40, 20, 7
    (here / "paths.toml").write_text(PATHS.replace("ids = 3", f"ids = {ids}"))
    links = [*itertools.combinations(range(ids), 2), (ids, 0), (ids + 1, 0)]
    lines = [f"{ids + 2} {ids} {len(links)}", " ".join(map(str, range(ids)))]
    (here / "pairs.txt").write_text("\n".join([*lines, *(f"{a} {b} 100Gbps 1us 0" for a, b in links)]) + "\n")
    plan = pint.Plan.open("paths.toml")
    (found,) = pint.accuracy(plan, hops=[hops], trials=trials, seed=seed, decoder="collector")["queries"]
    draws, counts = Draws(seed), []
    for _ in range(trials):
        path = []
        while len(path) < hops:
            if (number := draws.word() * ids >> 64) not in path:
                path.append(number)
        collector, packets, events = pint.Collector(plan, topology="pairs.txt"), 0, []
        while not events:
            packets += 1
            packet = draws.word()
            digest = plan.encode(packet_id=packet, hops=[{"switch-id": hop} for hop in path])[-1]
            collector.take(packet_id=packet, digest=digest, hops=hops, flow_id=1)
            events = collector.drain()["events"]
        counts.append(packets)
    (length,) = found["lengths"]
    assert length["decoder"] == "collector" and length["wrong"] == 0
    assert length["mean_packets"] == pytest.approx(sum(counts) / trials, rel=1e-12)


def test_a_choice_of_decoder_is_checked(here, capsys):
    (here / "paths.toml").write_text(PATHS)
    tried = ["pint", "accuracy", "paths.toml", "--trials", "2"]
    error = output_of(capsys, *tried, "--decoder", "colector", status=2).err
    assert 'unknown decoder "colector": did you mean "collector"? (known: peeling, collector)' in error
    error = output_of(capsys, *tried, "--topology", "line.gml", "--decoder", "peeling", status=2).err
    assert "decoder peeling: it uses no links of a topology" in error
    error = output_of(capsys, *tried, "--hops", "5", "--decoder", "collector", status=2).err
    assert "expected as many ids in the query as hops, found 3 ids and 5 hops" in error
    assert "collector decoder" in output_of(capsys, *tried, "--hops", "3", "--decoder", "collector").out


def test_a_layout_says_how_many_stages_are_needed(here, capsys):
    assert "8 of 12 stages" in output_of(capsys, "pint", "layout", "queries.toml").out
    assert (
        "load does not fit"
        in output_of(capsys, "pint", "layout", "queries.toml", "--stages", "4", status=1).out
    )
    layout = json.loads(
        output_of(capsys, "pint", "layout", "queries.toml", "--stages", "4", "--json", status=1).out
    )
    assert layout["needed"] == 8 and layout["misfits"] == ["load"]


def test_vectors_are_written(here, capsys):
    output_of(capsys, "pint", "vectors", "--out", "vectors")
    functions = json.loads((here / "vectors" / "functions.json").read_text())
    assert functions == pint.vectors()["functions"]
    assert ["0x0", "0x0"] in functions["mix"]["cases"]


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
    from weftline.cli.pint import report_rows

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
    from weftline.cli.pint import report_rows

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
    from weftline.cli.pint import _repeated

    assert _repeated({"digests": 10, "repeated": 5}) == []
    [warning] = _repeated({"digests": 3_000, "repeated": 2_999})
    assert warning.startswith("2,999 of 3,000 digests have a packet_id that their record has used")
