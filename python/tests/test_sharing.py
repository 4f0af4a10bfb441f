"""Shares of flows that join a link."""

import pytest

from weftline import sharing


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
