"""Numbers of recorded digests: packets until paths are known, errors of latency quantiles."""

from types import SimpleNamespace

import pytest

from weftline import integrity
from weftline.measures import decoded, evidence, judgements, line_notes, stats
from weftline.measures.judgements import Reason
from weftline.measures.lines import Line

QUERIES = [
    {"name": "path", "aggregation": "path"},
    {"name": "latency", "aggregation": "quantiles"},
    {"name": "reference", "aggregation": "quantiles"},
]


def hop(samples, median, tail):
    quantiles = [{"quantile": 0.5, "value": median}, {"quantile": 0.99, "value": tail}]
    return {"samples": samples, "quantiles": quantiles}


def report(packets, after, hops, latency=(), reference=()):
    path = {"hops": [7] * hops, "decoded_after": after}
    queries = {"path": path, "latency": {"hops": latency}, "reference": {"hops": reference}}
    return {"digests": packets, "queries": queries}


def test_packets_are_counted_over_long_flows_on_the_longest_paths():
    flows = [
        report(300, 8, 5),
        report(300, 12, 5),
        report(300, None, 5),
        report(300, 2, 3),
        report(100, 1, 5),
    ]
    found = decoded.numbers(flows, QUERIES)
    assert found == {"path_hops": 5, "path_flows": 2, "path_open": 1, "path_packets": 10.0}


def run_with(folder, seed, left, known):
    """A run whose decoded paths were counted before."""
    folder.mkdir()
    (folder / "telemetry.parquet").write_bytes(b"digests")
    found = {"path_hops": 5, "path_flows": known, "path_open": left, "path_packets": 10.0}
    for what in decoded.KNOWN.values():
        integrity.keep_numbers(folder / f"decoded-{what}.json", "telemetry.parquet", found)
    return SimpleNamespace(out=folder, folder=folder, summary={"seed": seed, "status": "done"}, scenario={})


@pytest.mark.parametrize("name", decoded.KNOWN)
def test_paths_that_never_became_known_stand_next_to_the_mean_and_leave_bounds_open(tmp_path, name):
    whole = run_with(tmp_path / "whole", 1, 0, 50)
    few, many = run_with(tmp_path / "few", 1, 5, 45), run_with(tmp_path / "many", 2, 1200, 800)
    assert evidence.left_text(name, [whole]) == ""
    assert evidence.left_text(name, [few, many]) == "1,205 of 2,050 paths never known"
    assert Line("PINT", [few]).metric_text(name) == "10.0 (5 of 50 paths never known)"
    doubts = evidence.against([few, many], name, remark="")
    assert [doubt.kind for doubt in doubts] == ["paths"]
    assert judgements.judged(stats.Estimate(10, 9, 11, 2), "<", 20, doubts).answer == "open"
    assert line_notes.unknown_paths([Line("a", [whole]), Line("b", [few])], name) == (
        "Left out: 5 of 50 paths never known of b."
    )


@pytest.mark.parametrize("name", decoded.KNOWN)
def test_means_that_leave_other_shares_of_paths_out_are_not_compared(tmp_path, name):
    runs = [run_with(tmp_path / f"{left}-{known}", 1, left, known) for left, known in ((0, 50), (5, 45))]
    (why,) = evidence.paths_differ(name, runs[:1], runs[1:])
    assert why == Reason("paths differ", "0 of 50 and 5 of 50 never known under seed 1")
    sure = stats.Difference(stats.Estimate(-5, -6, -4, 5), True, 1.0)
    assert judgements.separated(sure).word == "lower"
    assert judgements.separated(sure, [why]).word == "not separated"
    same_share = run_with(tmp_path / "same", 1, 10, 90)
    assert evidence.paths_differ(name, runs[1:], [same_share]) == []
    assert evidence.paths_differ("fct_mean", runs[:1], runs[1:]) == []


def test_errors_are_relative_to_the_reference_where_there_is_latency():
    estimated = [hop(150, 110, 1000), hop(150, 5, 900), hop(50, 400, 400)]
    # The second hop's median is below one packet's time, the third has too few samples.
    reference = [hop(900, 100, 2000), hop(900, 1, 1000), hop(900, 200, 200)]
    found = decoded.numbers([report(300, 8, 3, estimated, reference)], QUERIES)["latency_errors"]
    assert found["0.5"] == {"mean": pytest.approx(0.1), "hops": 1}
    assert found["0.99"] == {"mean": pytest.approx((0.5 + 0.1) / 2), "hops": 2}


def test_nothing_is_reported_that_is_not_requested():
    assert decoded.numbers([], QUERIES) == {}
    assert decoded.numbers([report(300, 8, 5)], []) == {}
