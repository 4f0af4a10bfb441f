"""Verdicts of the lab against the simulation, on runs whose numbers are known; and the lateness histogram."""

from __future__ import annotations

import pytest

from weftline.lab import agreement, lateness


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


def test_bytes_that_are_the_same_are_equal() -> None:
    found = verdict("bytes of finished flows", [1e6, 2e6])
    assert (found.word, found.low, found.high) == ("equal", 0, 0)


def test_a_p99_of_few_flows_has_no_verdict() -> None:
    quantity = next(one for one in agreement.QUANTITIES if one.name == "p99 FCT")
    assert agreement._verdict(quantity, [(flows(1e6), flows(1e6))], "") is None


def test_contaminated_runs_make_everything_open() -> None:
    quantity = agreement.QUANTITIES[1]
    found = agreement._verdict(quantity, [(flows(1e6), flows(1e6))] * 5, "too many are contaminated")
    assert found is not None and (found.word, found.reason) == ("open", "too many are contaminated")


def test_quantiles_of_lateness_are_upper_ends() -> None:
    late = lateness.Histogram()
    for _ in range(99):
        late.add(1_500)
    late.add(900_000)
    assert late.quantile_ns(0.5) == 2_000
    assert late.quantile_ns(0.99) == 2_000
    assert late.quantile_ns(1.0) == 1_024_000
    assert lateness.Histogram().quantile_ns(0.5) is None
    assert lateness.Histogram.of(late.counts).as_json() == late.as_json()


def test_a_scale_makes_lateness_small_and_packets_few() -> None:
    assert lateness.scale_for(1_000_000, 50_000, 0) == 1
    assert lateness.scale_for(10_000, 50_000, 0) == 50
    assert lateness.scale_for(10_000, 51_000, 0) == 100
    assert lateness.scale_for(None, 51_000, 20 * lateness.MOST_HOPS) == 20
