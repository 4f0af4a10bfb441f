"""Verdicts of the lab against the simulation, on runs whose numbers are known; and the lateness histogram."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from weftline.lab import agreement, folder, lateness, texts
from weftline.measures import stats
from weftline.measures.lines import Line
from weftline.runs import Run


def flows(fct_ns: float, many: int = 4) -> list[agreement.Flow]:
    return [{"flow_id": i, "size_bytes": 1000, "fct_ns": fct_ns} for i in range(many)]


def verdict(name: str, lab: list[float], simulated: float = 1e6) -> agreement.Verdict:
    quantity = next(one for one in agreement.QUANTITIES if one.name == name)
    found = agreement._verdict(quantity, [(flows(one), flows(simulated)) for one in lab], "")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("lab", "word"),
    [
        ([1.01e6, 1.02e6, 0.99e6, 1.0e6, 1.01e6], "equal"),
        # Apart from zero, but inside the margin: equal is asked first.
        ([1.05e6, 1.051e6, 1.049e6, 1.05e6, 1.05e6], "equal"),
        ([1.5e6, 1.52e6, 1.49e6, 1.5e6, 1.51e6], "different"),
        ([0.7e6, 1.5e6, 0.9e6, 1.3e6, 1.0e6], "open"),
        ([1.0e6], "open"),
    ],
)
def test_equal_different_and_open(lab: list[float], word: str) -> None:
    assert verdict("median FCT", lab).word == word


def test_the_interval_of_the_median_ratio_is_students_of_logarithms() -> None:
    # Half of it is 12.706 of two logarithms of -0.1 and 0.1; a bootstrap of two ends at the two themselves.
    assert stats.interval_of_ratios([math.exp(-0.1), math.exp(0.1)]) == pytest.approx(
        (math.exp(-1.2706), math.exp(1.2706)), rel=1e-4
    )


def test_bytes_that_are_the_same_are_equal() -> None:
    found = verdict("bytes of finished flows", [1e6, 2e6])
    assert (found.word, found.low, found.high) == ("equal", 0, 0)


def test_a_p99_of_few_flows_has_no_verdict() -> None:
    quantity = next(one for one in agreement.QUANTITIES if one.name == "p99 FCT")
    assert agreement._verdict(quantity, [(flows(1e6), flows(1e6))], "") is None


def test_a_lab_that_finished_nothing_is_different_and_not_left_out() -> None:
    unfinished: list[agreement.Flow] = [{"flow_id": i, "size_bytes": 1000, "fct_ns": None} for i in range(4)]
    pairs = [(unfinished, flows(1e6))] * 5
    words = {
        one.name: (found.word, found.simulated, found.lab, found.reason)
        for one in agreement.QUANTITIES
        if (found := agreement._verdict(one, pairs, ""))
    }
    assert words["bytes of finished flows"] == ("different", 4000, 0, "")
    few = "a run has too few finished flows for it"
    assert words["median FCT"] == ("open", 1e6, None, few)
    # Five runs, one of which finished nothing.
    some = agreement._verdict(agreement.QUANTITIES[2], [*[(flows(1e6), flows(1e6))] * 4, pairs[0]], "")
    assert some is not None and (some.word, some.reason) == ("open", few)
    none = "the simulated value is 0: no flow finished there"
    nothing = agreement._verdict(agreement.QUANTITIES[0], [(flows(1e6), unfinished)] * 5, "")
    assert nothing is not None and (nothing.word, nothing.reason) == ("open", none)
    # Nothing was compared, so nothing is equal.
    both = agreement._verdict(agreement.QUANTITIES[0], [(unfinished, unfinished)] * 5, "")
    assert both is not None and (both.word, both.reason) == ("open", none)


def test_runs_are_of_one_scenario_only_if_they_end_at_the_same_time() -> None:
    def run(engine: str | None, until: str, seed: int = 1, threads: int = 1) -> Run:
        scenario = {"seed": seed, "run": {"until": until, "threads": threads}, "topology": {"kind": "star"}}
        found = SimpleNamespace(scenario=scenario, summary={"engine": engine}, out=Path("out/x"))
        return cast(Run, found)

    lab = Line("lab", [run("lab", "1s"), run("lab", "1s")])
    assert agreement.without_twins([lab, Line("sim", [run(None, "1s", threads=2)])]) == []
    for other in (run(None, "flows-done"), run(None, "1s", seed=2)):
        found = agreement.without_twins([lab, Line("sim", [other])])
        assert len(found) == 1 and "lab: 2 runs of the lab without a simulated run" in found[0]
        assert not agreement.of([lab, Line("sim", [other])])


def test_contaminated_runs_make_everything_open() -> None:
    quantity = agreement.QUANTITIES[1]
    found = agreement._verdict(quantity, [(flows(1e6), flows(1e6))] * 5, "too many are contaminated")
    assert found is not None and (found.word, found.reason) == ("open", "too many are contaminated")


def test_without_lateness_the_verdict_names_what_contaminated_the_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab = {"lateness": {"links": {"p99_ns": None}}, "contaminated": ["a core was busy"]}
    run = cast(Run, SimpleNamespace(summary={"lab": lab}))
    monkeypatch.setattr(agreement, "_flows", lambda _: flows(1e6))
    found = agreement._agreement([(run, run)])
    assert found.spoilt and "(a core was busy)" in found.note()


def test_quantiles_of_lateness_are_upper_ends() -> None:
    late = lateness.Histogram()
    for _ in range(99):
        late.add(1_500)
    late.add(900_000)
    assert late.quantile_ns(0.5) == 2_000
    assert late.quantile_ns(0.99) == 2_000
    assert late.quantile_ns(1.0) == 1_024_000 and late.quantile_ns(0.995) == 1_024_000
    assert lateness.Histogram().quantile_ns(0.5) is None
    assert lateness.Histogram.of(late.counts).as_json() == late.as_json()
    assert sum((late + late).counts) == 200


def test_buckets_of_lateness_follow_each_other_and_are_narrow() -> None:
    bounds = [lateness.below_ns(bucket) for bucket in range(lateness.BUCKETS)]
    assert bounds[:12] == [1000 * us for us in (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16)]
    for bucket, (low, high) in enumerate(itertools.pairwise(bounds)):
        assert low < high <= 1.25 * low or bucket < 7
        assert lateness.bucket_of(low - 1) == bucket and lateness.bucket_of(low) == bucket + 1
    # As in the test of `buckets_double_in_four_steps` in crates/ports.
    assert [lateness.bucket_of(us * 1000) for us in (0, 7, 8, 9, 10, 15, 16, 1023, 1024)] == [
        *(0, 7, 8, 8, 9, 11, 12, 35, 36)
    ]


def test_every_moment_of_a_pause_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0

    def sleep(seconds: float) -> None:
        nonlocal now
        # One pause of half a second in a second.
        now += round(seconds * 1e9) + (500_000_000 if 300_000_000 < now < 302_000_000 else 10_000)

    monkeypatch.setattr(lateness, "time", SimpleNamespace(sleep=sleep, monotonic_ns=lambda: now))
    found = lateness.measure(1.0, 5_000_000)
    assert sum(found.counts) in (199, 200, 201)
    # Half of the moments were in it.
    assert found.quantile_ns(0.45) == 12_000
    assert (found.quantile_ns(0.75) or 0) > 200_000_000


def test_a_scale_makes_lateness_small_and_packets_few() -> None:
    assert lateness.scale_for(1_000_000, 50_000, 0) == 1
    assert lateness.scale_for(10_000, 50_000, 0) == 50
    assert lateness.scale_for(10_000, 51_000, 0) == 100
    assert lateness.scale_for(None, 51_000, 20 * lateness.MOST_HOPS) == 20


@pytest.mark.parametrize(
    ("many", "shown"), [(2, "– / – / 2.00"), (10, "5.00 / – / 10.0"), (200, "100 / 198 / 200")]
)
def test_percentiles_need_as_many_flows_as_those_of_a_simulated_run(many: int, shown: str) -> None:
    rows = [{"slowdown": float(i + 1), "group": ""} for i in range(many)]
    lab = {
        "lateness": {"links": {"p99_ns": None}},
        "shortest_delay_ns": None,
        "cpu_pressure_percent": None,
        "contaminated": [],
        "differs": [],
    }
    summary = {
        "lab": lab,
        "slowdown": folder.slowdowns(rows),
        "flows_done": many,
        "flows": many,
        "status": "done",
        "end_ns": 1,
        "drops": 0,
        "packet_hops": 1,
    }
    table = texts.facts(cast(Run, SimpleNamespace(summary=summary, name="two", out="out")))
    assert dict(table.rows)["slowdown p50 / p99 / max"] == shown
