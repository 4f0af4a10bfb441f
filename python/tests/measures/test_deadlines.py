"""A deadline after the end of a run is neither met nor missed by a flow that had not finished."""

import pytest

import weftline
from weftline import _native
from weftline.measures import deadlines, stats
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


def compared(out, workload, **schemes):
    """Return a sweep over schemes, of which the first is compared with the others."""
    return weftline.sweep(
        {
            "name": "least",
            "topology": {"kind": "star", "hosts": 8},
            "transport": {"controller": {"kind": "dctcp"}},
            "workload": [{"kind": "poisson", "size": "20KB", "load": 0.3, "duration": "300us"} | workload],
        },
        {"scheme": schemes},
        seeds=5,
        report={"metrics": ["deadlines_met"]},
        out=out,
        jobs=1,
    )


def met_by(cell, other):
    """Return the share of the deadlines of `other` that the flows of a combination meet, by seed."""
    found = {}
    for seed, run in cell.runs.items():
        ours = run.flows.to_dicts()
        theirs = {row["flow_id"]: row for row in other.runs[seed].flows.to_dicts()}
        met = [row["finish_ns"] <= theirs[row["flow_id"]]["deadline_ns"] for row in ours]
        found[seed] = sum(met) / len(met)
    return found


def test_deadlines_that_are_later_under_one_scheme_do_not_rank_it(tmp_path):
    # Nearly all deadlines are at the minimum, 1.25 ideal times after the start.
    packets = {"small": {}, "large": {"transport.mtu": "4KB"}}
    found = compared(tmp_path / "s", {"deadline_mean": "1ns"}, **packets)
    small, large = found.cells
    own = found.difference("deadlines_met", large).estimate
    assert own.is_apart_from_zero, "each scheme by its own deadlines"
    for of in (small, large):
        assert met_by(of, of) == pytest.approx(found.values("deadlines_met", of))
    alike = [
        stats.difference(met_by(large, of), met_by(small, of)).estimate.is_apart_from_zero
        for of in (small, large)
    ]
    assert not all(alike)
    separation = found.separation("deadlines_met", large)
    assert not separation.order and {one.kind for one in separation.reasons} == {"deadlines differ"}
    assert "with the deadlines of one of the two" in separation.reasons[0].text
    assert not weftline.compare(found.path).separation("deadlines_met", "large").order


def test_deadlines_that_are_the_same_or_far_from_the_minimum_rank(tmp_path):
    drawn = {"deadline_mean": "20us", "deadline_least": 0.001}
    slow = {"transport.controller": {"kind": "hpcc", "eta": 0.5}}
    found = compared(tmp_path / "s", drawn, fast={}, slow=slow)
    assert found.separation("deadlines_met", found.cells[1]).word == "lower"


def test_deadlines_far_apart_are_not_compared_whatever_the_interval(tmp_path):
    far = {"topology.host_link.delay": "20us"}
    found = compared(tmp_path / "s", {"deadline_mean": "1ns"}, near={}, far=far)
    reasons = found.separation("deadlines_met", found.cells[1]).reasons
    (text,) = [one.text for one in reasons if one.kind == "deadlines differ"]
    assert "after the start in the mean" in text
