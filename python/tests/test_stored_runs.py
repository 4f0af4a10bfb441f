"""Folders that earlier versions wrote still read: tables, numbers, and the scenario as it stands."""

from pathlib import Path

import pytest

weftline = pytest.importorskip("weftline")
native = pytest.importorskip("weftline._native")

from weftline import columns  # noqa: E402
from weftline.measures import comparison, lines, metrics  # noqa: E402

DATA = Path(__file__).resolve().parent / "data"
RUNS = sorted(path for path in DATA.iterdir() if path.name.startswith("run-"))
FLOWS = [
    *("flow_id", "src", "dst", "size_bytes", "start_ns", "finish_ns", "fct_ns", "ideal_fct_ns", "slowdown"),
    *("packets_sent", "packets_retransmitted", "group", "transport", "controller", "deadline_ns"),
]


@pytest.fixture(params=RUNS, ids=lambda path: path.name)
def stored(request):
    return weftline.Run.open(request.param)


def test_every_column_of_a_stored_run_reads(stored):
    flows = columns.read(stored.flows, FLOWS)
    assert len(flows["flow_id"]) == stored.summary["flows"]
    finished = [fct for fct in flows["fct_ns"] if fct is not None]
    assert len(finished) == stored.summary["flows_done"]
    series = columns.read(stored.series, ("time_ns", "entity", "metric", "value"))
    assert series["value"]


def test_every_metric_of_a_stored_run_is_computed_or_absent(stored):
    found = {name: metrics.metric(name).value(stored, metrics.Flows()) for name in metrics.METRICS}
    assert found["slowdown_p99"] >= found["slowdown_p50"] >= 1
    assert found["drops"] == stored.summary["drops"]


def test_a_stored_run_is_a_line_of_a_comparison(stored):
    table = comparison.Comparison(lines.lines_of([stored])).table()
    assert "slowdown" in table.text()


def test_the_resolved_scenario_of_a_stored_run_is_still_understood(stored, tmp_path):
    text = (stored.out / "scenario.toml").read_text("utf-8")
    resolved = native.Scenario(text, "scenario.toml", tmp_path).resolved
    assert resolved.startswith('name = "')
