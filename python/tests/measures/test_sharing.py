"""Shares of flows that join a link."""

import pytest

from weftline.measures import sharing


def test_jains_index_of_equal_shares_is_one_and_of_one_user_is_one_over_n():
    assert sharing.jain([5, 5, 5, 5]) == pytest.approx(1)
    assert sharing.jain([8, 0, 0, 0]) == pytest.approx(0.25)
    # (3 + 1)^2 / (2 (9 + 1))
    assert sharing.jain([3, 1]) == pytest.approx(0.8)
    assert sharing.jain([0, 0]) is None


def test_spans_count_from_the_last_start_to_the_first_end():
    one = [[0, 8], [1, 8], [2, 6], [3, 4], [4, 0]]
    other = [[0, 0], [1, 1], [2, 2], [3, 4], [4, 8]]
    # Both are active in 1 to 3, whose ends are theirs in part.
    assert sharing.indices({"a": one, "b": other}) == [(1, pytest.approx(0.8))]
    assert sharing.indices({"a": one, "b": [[0, 0]]}) == []
    assert sharing.indices({}) == []


class Joined:
    """A run of two flows, the second of which joins at 1 ms and gets its share slowly."""

    def over_time(self, metric, *, every_ns, max_points):
        assert metric == "goodput_bps" and every_ns == 1e6 and max_points == 0
        share = [0, 1, 2, 3, 4, 5, 5, 5, 5, 5]
        return {
            "flow0": [[i * 1e6, 10 - s] for i, s in enumerate(share)],
            "flow1": [[i * 1e6, s] for i, s in enumerate(share)],
        }


def test_shares_converge_when_the_index_first_passes_its_bound():
    # 4 to 6 has 100 / 104 = 0.96, 3 to 7 has 100 / 116 = 0.86.
    assert sharing.convergence_ns(Joined()) == 3e6
    assert sharing.final_fairness(Joined()) == pytest.approx(1)


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


class Bulk:
    """A run of three seconds of which two flows were measured."""

    def __init__(self):
        self.summary = {"end_ns": 4e9}

    def shares(self, from_ns=0, to_ns=None):
        last = {None: (3e9, 1.5e9), 3e9: (2e9, 1e9)}[to_ns]
        named = zip(("reno", "cubic"), last, strict=True)
        return [{"flow": i, "group": g, "start_ns": 1e9, "bytes": b} for i, (g, b) in enumerate(named)]


def test_goodputs_are_means_from_the_first_start_to_the_end():
    run = Bulk()
    assert sharing.goodputs(run) == [("reno", 8e9), ("cubic", 4e9)]
    assert sharing.total_goodput(run, ns3=True) == pytest.approx(12e9 * 98 / 99)
    assert sharing.index(run) == pytest.approx(0.9)
    assert sharing.normalised_index(run, [2, 1]) == pytest.approx(1)
