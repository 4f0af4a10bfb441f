"""Numbers of recorded digests: packets until paths are known, errors of latency quantiles."""

import pytest

from weftline.measures import decoded

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


def test_a_network_of_neighbours_has_all_pairs_of_switches():
    assert decoded.all_neighbours([2, 3, 4]).splitlines() == [
        "5 3 5",
        "2 3 4",
        "2 3 100Gbps 1us 0",
        "2 4 100Gbps 1us 0",
        "3 4 100Gbps 1us 0",
        "0 2 100Gbps 1us 0",
        "1 2 100Gbps 1us 0",
    ]
