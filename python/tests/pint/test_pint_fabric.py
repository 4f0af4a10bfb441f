"""PINT from switches to paths: a simulated run's digests, decoded."""

import csv
import json

import pytest

from weftline import __main__ as cli
from weftline import runs
from weftline.measures import decoded

QUERIES = """
bits = 16
hops = { expected = 3, maximal = 8 }

[[query]]
name = "path"
value = "switch-id"
aggregation = "path"
code = "paper-evaluation"
bits = 8
copies = 2
ids = 6
frequency = 1.0

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
approximation = { base = 1.05 }
bits = 8
frequency = "1/16"
"""

SCENARIO = """
name = "digests"
[topology]
kind = "leaf-spine"
leaves = 4
spines = 2
hosts_per_leaf = 4
host_link = { rate = "100Gbps", delay = "1us" }
fabric_link = { rate = "100Gbps", delay = "1us" }
[transport]
controller = { kind = "hpcc-pint" }
[telemetry]
kind = "pint"
queries = "queries.toml"
[[workload]]
kind = "poisson"
sizes = "websearch"
load = 0.4
duration = "400us"
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "queries.toml").write_text(QUERIES)
    (tmp_path / "digests.toml").write_text(SCENARIO)
    return tmp_path


def weftline(*arguments):
    return cli.main([str(argument) for argument in arguments])


def test_paths_of_simulated_flows_are_decoded_and_are_those_of_the_network(here, capsys):
    assert weftline("pint", "plan", "queries.toml", "--out", "plan.toml") == 0
    assert weftline("run", "digests.toml", "--out", "one", "--quiet") == 0
    decode = ["pint", "decode", "one/telemetry.parquet", "--plan", "plan.toml"]
    assert weftline(*decode, "--topology", "one/scenario.toml", "--out", "paths.csv") == 0
    capsys.readouterr()
    rows = list(csv.DictReader((here / "paths.csv").read_text().splitlines()))
    known = [row for row in rows if "?" not in row["path"]]
    assert len(known) > 10 and len(known) > 0.6 * len(rows)
    # Nodes: 16 hosts, then the leaves, then the spines.
    for row in known:
        path = [int(switch) for switch in row["path"].split()]
        ends = [16 + int(row[end]) // 4 for end in ("src", "dst")]
        if ends[0] == ends[1]:
            assert path == ends[:1]
        else:
            assert [path[0], path[2]] == ends and path[1] in (20, 21)


def test_what_the_digests_of_a_run_tell_is_a_metric_of_it(here, monkeypatch):
    more = """
[[query]]
name = "reference"
value = "hop-latency"
aggregation = "quantiles"
bits = 48
copies = 4
approximation = { epsilon = 0.0025 }
space = 1000000
"""
    (here / "queries.toml").write_text(QUERIES.replace("bits = 16\n", "bits = 64\n", 1) + more)
    assert weftline("run", "digests.toml", "--out", "one", "--quiet", "--set", 'transport.header="42B"') == 0
    run = runs.Run.open("one")
    # 2 x 4 bits and six switches: three hops take some five packets, never more if their links are known.
    alone, linked = decoded.path_packets(run, "ids"), decoded.path_packets(run, "network")
    assert 1.5 < linked <= alone < 10
    tail = decoded.latency_error(run, "0.99")
    assert 0 < tail < 0.5
    # Computed once.
    monkeypatch.setattr(decoded, "_reports", None)
    assert decoded.latency_error(runs.Run.open("one"), "0.99") == tail


def test_recirculated_packets_are_counted_and_no_more_than_one_is_on_its_way_at_a_port(here):
    changes = ["--set", 'telemetry={ kind = "pint", arithmetic = "recirculated", registers = 1 }']
    assert weftline("run", "digests.toml", "--out", "one", "--quiet", *changes) == 0
    summary = runs.Run.open("one").summary
    # Full packets leave every 84 ns, a second pass takes 1 us: at most every 12th of a busy port.
    assert summary["packets_recirculated"] > 100
    assert 0.01 < summary["recirculated_share"] < 0.3
    assert weftline("run", "digests.toml", "--out", "two", "--quiet") == 0
    assert runs.Run.open("two").summary["recirculated_share"] == 0


def test_digests_do_not_depend_on_threads(here):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    assert weftline("run", "digests.toml", "--out", "one", "--quiet") == 0
    assert weftline("run", "digests.toml", "--out", "two", "--quiet", "--threads", "2") == 0
    tables = [pyarrow.read_table(here / folder / "telemetry.parquet") for folder in ("one", "two")]
    assert tables[0].num_rows > 10_000 and tables[0].equals(tables[1])
    fingerprints = [
        json.loads((here / folder / "summary.json").read_text())["fingerprint"] for folder in ("one", "two")
    ]
    assert fingerprints[0] == fingerprints[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('telemetry.kind="int"', 'needs telemetry of kind "pint", not "int"'),
        ('telemetry.queries="none.toml"', "none.toml"),
        ('telemetry.law="codes"', 'did you mean "code"?'),
        ("telemetry.share=2", "expected a number from"),
    ],
)
def test_wrong_telemetry_is_reported_with_its_key(here, capsys, change, message):
    text = SCENARIO.replace('queries = "queries.toml"\n', "") if "share" in change else SCENARIO
    (here / "digests.toml").write_text(text)
    assert weftline("check", "digests.toml", "--set", change) == 2
    error = capsys.readouterr().err
    assert message in error and "telemetry" in error
