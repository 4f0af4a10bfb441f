"""Shares of flows that join a link."""

import math

import pytest

import weftline
from weftline.errors import InputError
from weftline.measures import evidence, sharing
from weftline.measures.over_time import Interval


def test_jains_index_of_equal_shares_is_one_and_of_one_user_is_one_over_n():
    assert sharing.jain([5, 5, 5, 5]) == pytest.approx(1)
    assert sharing.jain([8, 0, 0, 0]) == pytest.approx(0.25)
    # (3 + 1)^2 / (2 (9 + 1))
    assert sharing.jain([3, 1]) == pytest.approx(0.8)
    assert sharing.jain([0, 0]) is None


def spans(*rates):
    """Goodputs over spans of 1 that follow each other."""
    return [Interval(n, n + 1, rate, 1.0) for n, rate in enumerate(rates)]


def test_spans_count_from_the_last_start_to_the_first_end():
    one, other = spans(8, 8, 6, 4, 0), spans(0, 1, 2, 4, 8)
    # Both are active from 1.5 to 4.5, in which the spans that end at 3 and at 4 lie.
    lives = {"a": (0, 4.5), "b": (1.5, 5)}
    found = [(1.5, pytest.approx(0.8)), (2.5, pytest.approx(1))]
    assert sharing.indices({"a": one, "b": other}, lives) == found
    assert sharing.indices({"a": one, "b": other, "late": [Interval(4, 5, 0, 1.0)]}, lives) == found
    assert sharing.indices({"a": one, "b": other}, {}) == []
    assert sharing.indices({}, {}) == []


def test_a_flow_that_gets_nothing_counts_until_its_end():
    found = sharing.indices({"a": spans(8, 8), "b": spans(8, 0)}, {"a": (0, 2), "b": (0, 2)})
    assert found == [(1, pytest.approx(1)), (2, pytest.approx(0.5))]


class Joined:
    """A run of two flows, the second of which joins at 1 ms and gets its share slowly."""

    def __init__(self):
        self.scenario = {}
        self.summary = {"end_ns": 1e7}
        self.share = [0, 1, 2, 3, 4, 5, 5, 5, 5, 5]

    def over_time(self, metric, *, every_ns, max_points):
        assert metric == "goodput_bps" and every_ns == 1e6 and max_points == 0
        return {
            "flow0": [[(i + 1) * 1e6, 10 - s] for i, s in enumerate(self.share)],
            "flow1": [[(i + 1) * 1e6, s] for i, s in enumerate(self.share)],
        }


def test_shares_converge_when_the_index_first_passes_its_bound(monkeypatch):
    monkeypatch.setattr(sharing, "lifetimes", lambda run: {"flow0": (0, 1e7), "flow1": (1e6, 1e7)})
    # 4 to 6 has 100 / 104 = 0.96, 3 to 7 has 100 / 116 = 0.86.
    assert sharing.convergence_ns(Joined()) == 4e6
    assert sharing.final_fairness(Joined()) == pytest.approx(1)


@pytest.mark.parametrize("unequal", [0, 5])
def test_a_last_span_that_the_end_of_the_run_cuts_short_decides_nothing(monkeypatch, unequal):
    monkeypatch.setattr(sharing, "lifetimes", lambda run: {"flow0": (0, 1.0001e7), "flow1": (1e6, 1.0001e7)})
    run = Joined()
    run.summary["end_ns"] = 1.0001e7
    run.share = [*(5 - unequal for _ in range(10)), unequal]
    index = sharing.jain([5 + unequal, 5 - unequal])
    assert sharing.final_fairness(run) == pytest.approx(index)
    assert sharing.convergence_ns(run) == (1e6 if index == 1 else None)


def test_water_filling_gives_the_parking_lots_of_the_cebinae_authors():
    # Four flows over three links of 100, and two, eight and one over each of them.
    paths = [[0, 1, 2]] * 4 + [[0]] * 2 + [[1]] * 8 + [[2]]
    rates = sharing.max_min([100, 100, 100], paths)
    assert rates[:4] == pytest.approx([100 / 12] * 4)
    assert rates[4:6] == pytest.approx([(100 - 4 * 100 / 12) / 2] * 2)
    assert rates[6:14] == pytest.approx([100 / 12] * 8)
    assert rates[14] == pytest.approx(100 - 4 * 100 / 12)


def test_a_flow_that_asks_for_less_leaves_the_rest_to_the_others():
    assert sharing.max_min([90], [[0], [0], [0]], demands=[10, 1000, 1000]) == pytest.approx([10, 40, 40])
    assert sharing.max_min([90], [[0]], demands=[10]) == pytest.approx([10])
    assert sharing.max_min([], []) == []


@pytest.mark.parametrize(
    "capacities, paths, demands, named",
    [
        ([float("nan")], [[0]], None, "capacities: expected a rate from 0 for link 0, found nan"),
        ([-1], [[0]], None, "capacities: expected a rate from 0 for link 0, found -1"),
        ([10], [[0], [5]], None, "paths: flow 1 crosses link 5 of 1 links"),
        ([10], [[0]], [float("nan")], "demands: expected a rate from 0 for flow 0, found nan"),
        ([10], [[0]], [], "demands: expected one for each of 1 flows, found 0"),
    ],
)
def test_rates_that_cannot_be_are_named(capacities, paths, demands, named):
    with pytest.raises(InputError, match=f"^{named}$"):
        sharing.max_min(capacities, paths, demands)


def test_nothing_limits_a_flow_without_links():
    assert sharing.max_min([10], [[0], []]) == [10, math.inf]
    assert sharing.max_min([10], [[0], []], demands=[20, 30]) == pytest.approx([10, 30])


class Bulk:
    """A run of three seconds of which two flows were measured."""

    def __init__(self):
        self.summary = {"end_ns": 4e9}
        self.until_ns = 4e9

    def shares(self, from_ns=0, to_ns=None):
        last = {None: (3e9, 1.5e9), 3e9: (2e9, 1e9)}[to_ns]
        named = zip(("reno", "cubic"), last, strict=True)
        times = {"start_ns": 1e9, "until_ns": self.until_ns}
        return [{"flow": i, "group": g, "bytes": b, **times} for i, (g, b) in enumerate(named)]


def test_goodputs_are_means_from_the_first_start_to_the_end():
    run = Bulk()
    assert sharing.goodputs(run) == [("reno", 8e9), ("cubic", 4e9)]
    assert sharing.total_goodput(run, ns3=True) == pytest.approx(12e9 * 98 / 99)
    assert sharing.index(run) == pytest.approx(0.9)
    assert sharing.normalised_index(run, [2, 1]) == pytest.approx(1)


def test_goodputs_to_the_end_of_the_run_decide_nothing_where_a_flow_ended_before_it(tmp_path):
    """DCTCP against TIMELY, 1 MB each: their goodputs to the end are alike, and their shares are not."""
    link = {"rate": "10Gbps", "delay": "1us"}
    bulk = [
        {"kind": "bulk", "group": "a", "hosts": "0", "to": "2", "size": "1MB"},
        {"kind": "bulk", "group": "b", "hosts": "1", "to": "3", "size": "1MB"},
    ]
    scenario = {
        "topology": {"kind": "dumbbell", "left": 2, "right": 2, "host_link": link, "bottleneck_link": link},
        "transport": {"controller": {"kind": "dctcp", "min_rate": "auto"}},
        "workload": [bulk[0], {**bulk[1], "transport": {"controller": {"kind": "timely"}}}],
        "measure": {"goodput": {"by": "flow", "flows": ["0-1"], "every": "100us"}},
    }
    run = weftline.run(scenario, out=tmp_path / "ended")
    assert sharing.index(run) == pytest.approx(1, rel=1e-3) and sharing.ended(run) == (1, 2)
    assert [reason.kind for reason in evidence.against([run], "jain") if reason.kind != "seeds"] == ["ended"]
    assert "ended" not in {reason.kind for reason in evidence.against([run], "fairness")}
    cut = weftline.run({**scenario, "run": {"until": "500us"}}, out=tmp_path / "cut")
    assert sharing.ended(cut) == (0, 2) and not evidence.ended_text("jain", [cut])


def test_a_run_of_no_more_than_a_second_has_nothing_without_its_last_second():
    run = Bulk()
    run.summary = {"end_ns": 2e9}
    assert sharing.index(run) == pytest.approx(0.9)
    assert sharing.goodputs(run, ns3=True) == [] and sharing.group_means(run, ns3=True) == {}
    assert sharing.total_goodput(run, ns3=True) is None and sharing.index(run, ns3=True) is None
    assert sharing.normalised_index(run, [2, 1]) is None


def test_goodputs_are_over_the_time_that_was_measured():
    run = Bulk()
    run.until_ns = 3e9  # a folder of an earlier build, which took no sample at the end
    assert sharing.goodputs(run) == [("reno", 1.2e10), ("cubic", 6e9)]
    run.until_ns = 1e9
    assert sharing.goodputs(run) == [] and sharing.index(run) is None


class Bottleneck(Bulk):
    """The same over a bottleneck of 8 Gb/s that is half used from the first start, sampled every 100 ms."""

    def __init__(self):
        super().__init__()
        self.scenario = {
            "topology": {"bottleneck_link": {"rate": "8Gbps"}},
            "measure": {"utilisation": {"every": "100ms"}},
        }

    def over_time(self, metric, *, every_ns, max_points):
        assert (metric, every_ns, max_points) == ("utilisation", 0, 0)
        return {"s0.p0": [[n * 1e8, 0.5 * (n > 10)] for n in range(1, 41)]}


def test_the_throughput_of_a_bottleneck_is_that_of_its_samples():
    run = Bottleneck()
    assert sharing.bottleneck_throughput(run) == pytest.approx(4e9 * 98 / 99)
    run.summary = {"end_ns": 3.55e9}  # without its last second it ends inside of an interval
    assert sharing.bottleneck_throughput(run) == pytest.approx(4e9 * 98 / 99)
    run.summary = {"end_ns": 2e9}
    assert sharing.bottleneck_throughput(run) is None
