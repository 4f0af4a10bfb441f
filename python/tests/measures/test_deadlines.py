"""A deadline after the end of a run is neither met nor missed by a flow that had not finished."""

import pytest

import weftline
from weftline import _native
from weftline.measures import deadlines
from weftline.measures.flow_rows import Flows
from weftline.measures.metrics import metric

pytestmark = pytest.mark.skipif(not hasattr(_native, "Table"), reason="the native module is not built")
SCENARIO = {
    "name": "deadlines",
    "topology": {"kind": "star", "hosts": 4},
    "workload": [
        {"kind": "poisson", "sizes": "websearch", "load": 0.6, "duration": "2ms", "deadline_mean": "4ms"}
    ],
    "run": {"until": "1ms"},
}


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    return weftline.sweep(
        SCENARIO,
        {"end": {"cut": {"run.until": "1ms"}, "whole": {"run.until": "flows-done"}}},
        seeds=3,
        report={"metrics": ["deadlines_met"], "answer": "deadlines_met > 99%"},
        out=tmp_path_factory.mktemp("deadlines") / "s",
    )


def rows(run):
    columns = ("fct_ns", "deadline_ns", "met_deadline", "start_ns")
    found = weftline.columns.read(run.flows, columns)
    return [row for row in zip(*(found[key] for key in columns), strict=True) if row[1] is not None]


def test_open_deadlines_are_counted_apart(swept):
    for cell in swept.cells:
        lefts = [deadlines.counts(run)[2] for run in cell.runs.values()]
        assert (sum(lefts) > 0) == (cell.at("end") == "cut")
        for run in cell.runs.values():
            of = rows(run)
            end = run.summary["end_ns"]
            left = sum(fct is None and deadline > end for fct, deadline, *_ in of)
            met = sum(row[2] is True for row in of)
            assert deadlines.counts(run) == (len(of), met, left)
            assert run.deadlines() == (len(of) - left, met)
            assert left == sum(row[2] is None for row in of), "null in the table"
            assert metric("deadlines_met").value(run, Flows()) == met / (len(of) - left)
            some = Flows(first_ns=500_000.0)
            late = [row for row in of if row[3] >= 500_000.0]
            left = sum(fct is None and deadline > end for fct, deadline, *_ in late)
            assert deadlines.counts(run, some) == (len(late), sum(row[2] is True for row in late), left)


def test_the_verdict_is_open_where_open_deadlines_could_change_it(swept, monkeypatch):
    cut, whole = swept.cells
    assert {reason.kind for reason in swept.judgement(cut).reasons} >= {"undecided"}
    assert "undecided" not in {reason.kind for reason in swept.judgement(whole).reasons}
    left = sum(deadlines.counts(run)[2] for run in cut.runs.values())
    assert f"{left} of " in swept.left_text("deadlines_met", cut)
    (row, _) = [row for row in swept.estimates if row["metric"] == "deadlines_met"]
    assert row["unfinished"] == left and "deadlines not decided" in row["reasons"]
    assert not swept.separation("deadlines_met", whole, cut, paired=False).order
    # A bound that all open ones together cannot reach is decided, where nothing else is against it.
    monkeypatch.setattr(swept, "remark", lambda cell, name: "")
    swept.report = type(swept.report)(**{**vars(swept.report), "answer": "deadlines_met > 1%"})
    assert swept.verdict(cut) == "yes"
