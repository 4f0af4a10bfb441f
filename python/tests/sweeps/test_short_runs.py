"""Percentiles of short runs: a p99 of a busy period or two decides nothing, however many seeds there are."""

from __future__ import annotations

import pytest

import weftline
from weftline import _native
from weftline.measures import evidence, flow_rows, steady
from weftline.measures.flow_rows import Flows

pytestmark = pytest.mark.skipif(not hasattr(_native, "Table"), reason="the native module is not built")

STAR = {
    "topology": {"kind": "star", "hosts": 8, "host_link": {"rate": "10Gbps", "delay": "1us"}},
    "transport": {"controller": {"kind": "dctcp"}},
    "workload": [{"kind": "poisson", "size": "20KB", "load": 0.7, "duration": "1.2ms"}],
}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """The p99 of runs of 35,000 flows of this scenario is 22.6."""
    return weftline.sweep(
        STAR,
        seeds=20,
        report={"metrics": ["slowdown_p99"], "warmup": "0.2ms", "answer": "slowdown_p99 < 20"},
        out=tmp_path_factory.mktemp("short") / "sweep",
    )


def test_a_bound_on_the_p99_of_short_runs_is_open_and_both_reasons_are_given(swept):
    (cell,) = swept.cells
    assert swept.estimate("slowdown_p99", cell).high < 20, "the interval alone would say yes"
    assert swept.counted("slowdown_p99", cell) >= 200
    judged = swept.judgement(cell)
    assert judged.answer == "open" and {"short", "pooled"} <= {reason.kind for reason in judged.reasons}
    warned = " ".join(swept.warnings)
    assert "too few for an interval of that percentile, which needs 2,000" in warned
    assert "slowdown_p99 of all runs together is not in the interval of the mean" in warned


def test_the_percentile_of_all_runs_together_is_that_of_all_their_flows_that_count(swept):
    (cell,) = swept.cells
    runs = list(cell.runs.values())
    each = [swept.choice.of_run(run) for run in runs]
    values = [
        flow_rows.read(run)["slowdown"][row]
        for run, flows in zip(runs, each, strict=True)
        for row in flow_rows.chosen(run, flows)
    ]
    for percentile in (50, 95, 99):
        found = evidence.pooled_percentile(f"slowdown_p{percentile}", runs, each, 300)
        assert found == flow_rows.number(values, f"p{percentile}")
    assert evidence.pooled_percentile("slowdown_p99 of nobody", runs, each, 300) is None
    assert evidence.pooled_percentile("slowdown_mean", runs, each, 300) is None
    assert evidence.pooled_percentile("slowdown_p99", runs[:1], [Flows()], 300) is None
    assert evidence.pooled_percentile("slowdown_p99", runs, each, 100_000) is None, "long enough"


def test_a_comparison_names_the_percentiles_that_have_no_interval_to_rely_on(swept):
    with pytest.warns(weftline.WeftlineWarning):
        compared = weftline.compare(swept.path)
    assert any("slowdown, p99" in text and "needs 2,000" in text for text in compared.warnings)


def test_a_run_that_is_short_for_its_long_flows_is_not_steady_and_a_long_one_is(tmp_path):
    """In 3 ms at 10 Gb/s no flow of 10 MB ends: the median slowdown is 1.48 in the long run, not 1.1."""
    long_tail = {"kind": "poisson", "sizes": "fb-hadoop", "load": 0.4}
    kept = {"kind": "bulk", "size": "20MB", "group": "kept"}
    named = {}
    for duration, also in (("3ms", []), ("30ms", []), ("30ms", [kept])):
        result = weftline.sweep(
            STAR | {"workload": [long_tail | {"duration": duration}, *also]},
            seeds=5,
            report={"metrics": ["slowdown_p50"], "warmup": "20%", "group": "poisson"},
            out=tmp_path / f"{duration}{len(also)}",
        )
        named[duration, len(also)] = result.remark(result.cells[0])
    assert named == {("3ms", 0): steady.TOO_SHORT, ("30ms", 0): "", ("30ms", 1): ""}
