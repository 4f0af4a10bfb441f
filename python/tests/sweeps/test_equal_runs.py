"""Seeds that change nothing are one observation; combinations that are the same run are named."""

from __future__ import annotations

import pytest

import weftline
from weftline import _native, integrity
from weftline.measures import stats
from weftline.sweeps.result import SweepResult

pytestmark = pytest.mark.skipif(not hasattr(_native, "Table"), reason="the native module is not built")

INCAST = {
    "topology": {"kind": "star", "hosts": 4},
    "workload": [{"kind": "incast", "hosts": "0-2", "receiver": "3", "size": "500KB"}],
}
KIND = "transport.controller.kind"


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """An incast that draws nothing; TIMELY reads no marks, but switches draw them."""
    scheme = {"dctcp": {KIND: "dctcp"}, "again": {KIND: "dctcp"}, "timely": {KIND: "timely"}}
    return weftline.sweep(
        INCAST,
        {"scheme": scheme},
        seeds=3,
        report={"metrics": ["fct_mean", "ecn_marks"], "answer": "fct_mean < 1s"},
        out=tmp_path_factory.mktemp("equal") / "sweep",
    )


def test_seeds_that_change_no_flow_are_one_observation(swept):
    timely = swept.cells[-1]
    assert len({run.summary["fingerprint"] for run in timely.runs.values()}) == 3, "marks are drawn"
    for cell in swept.cells:
        estimate = swept.estimate("fct_mean", cell)
        assert (estimate.low, estimate.count) == (None, 3)
        judged = swept.judgement(cell)
        assert judged.answer == "open" and [reason.kind for reason in judged.reasons] == ["same"]
    assert swept.estimate("ecn_marks", timely).low is not None, "what does differ is three observations"
    assert swept.separation("fct_mean", timely).reasons[0].kind == "same"
    text = str(swept)
    assert "±" not in text.partition("ECN")[0] and "3 seeds gave the same flows, bit by bit" in text
    assert "all 3 seeds gave the same flows" in " ".join(swept.warnings)


def test_combinations_of_the_same_settings_are_named_wherever_they_are_read(swept):
    named = "dctcp and again are the same run: what differs in their settings has no effect"
    assert named in swept.warnings and named in weftline.load(swept.path).warnings
    with pytest.warns(weftline.WeftlineWarning, match="are the same run"):
        compared = weftline.compare(swept.path)
    assert named in compared.warnings
    assert any("timely: all 3 seeds gave the same flows" in text for text in compared.warnings)
    assert compared.separation("fct_mean", "timely").order == 0
    assert "±" not in compared.table().text().partition("queue")[0]


def test_runs_that_are_partly_equal_count_as_many_observations_as_there_are_different_ones():
    values = [1.0, 1.0, 1.0, 4.0, 7.0]
    found = stats.estimate(values, keys=["a", "a", "a", "b", "c"])
    low, high = stats.interval_t(values, count=3)
    assert (found.mean, found.low, found.high, found.count) == (2.8, low, high, 5)
    assert high - low > 1.5 * (stats.estimate(values).high - stats.estimate(values).low)
    keys = (dict.fromkeys(range(5), "a"), dict(enumerate("pqrst")))
    base = dict.fromkeys(range(5), 0.0)
    assert stats.difference(dict(enumerate(values)), base, keys=keys).estimate.low is not None
    same = (dict.fromkeys(range(5), "a"), dict.fromkeys(range(5), "b"))
    equal = stats.difference(dict.fromkeys(range(5), 2.0), base, keys=same)
    assert (equal.estimate.mean, equal.estimate.low) == (2.0, None)


def test_a_stored_sweep_whose_answer_decides_nothing_opens_with_a_warning(swept, tmp_path):
    file = swept.path / "sweep.json"
    about, _ = integrity.read_sealed(file, "")
    about["report"]["answer"] = "fct_mean < 0ns"
    before = file.read_text()
    try:
        file.write_text(integrity.sealed(about))
        found = SweepResult.open(swept.path)
        assert found.report.bound is None and len(found.rows) == 9
        warnings = [
            text for text in found.warnings if text.startswith("report.answer: fct_mean is never below")
        ]
        assert len(warnings) == 1 and "fct_mean < 0ns" not in str(found.tables()[0].text())
    finally:
        file.write_text(before)


def test_tables_for_programs_state_what_is_odd_and_how_many_seeds_differ(tmp_path):
    star = {
        "topology": {"kind": "star", "hosts": 8, "host_link": {"rate": "10Gbps"}},
        "switch": {"buffer": "300KB"},
        "workload": [{"kind": "poisson", "sizes": "websearch", "load": 0.5, "duration": "2ms"}],
    }
    cubic = {"transport": {"kind": "tcp", "controller": {"kind": "cubic"}}}
    larger = {**cubic, "switch.buffer": "20MB"}
    found = weftline.sweep(
        star,
        {"a": {"small": cubic, "large": larger}},
        seeds=5,
        report={"metrics": ["drops"]},
        out=tmp_path / "s",
    )
    rows = {row["a"]: row for row in found.estimates if row["metric"] == "drops"}
    drops = list(found.values("drops", found.cells[0]).values())
    zeros = drops.count(0)
    assert 3 <= zeros < 5, "the scenario is to drop packets under one seed or two"
    assert (rows["small"]["odd"], rows["small"]["differ"]) == (f"0 in {zeros} of 5 seeds", None)
    assert (rows["large"]["odd"], rows["large"]["differ"]) == (None, 5 - zeros)
    head, first, *_ = (found.path / "table.csv").read_text().splitlines()
    assert dict(zip(head.split(","), first.split(","), strict=False))["odd"] == rows["small"]["odd"]
    assert f"{5 - zeros} of 5 seeds differ" in str(found) and f"(0 in {zeros} of 5 seeds)" in str(found)
