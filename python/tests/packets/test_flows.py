"""What was seen of five-tuples, put together to flows."""

import itertools
from fractions import Fraction

import pytest

from weftline.packets.flows import Seen, gather


def test_what_belongs_together_is_one_flow_whatever_lies_between():
    def seen(start, end, ports=(1, 2)):
        return Seen("a", "b", 6, ports, start, end, 10)

    found = gather([seen(0, 50), seen(5, 6, (3, 4)), seen(60, 70), seen(81, 81)], idle_ns=10)
    assert [(flow.start_ns, flow.end_ns, flow.size_bytes) for flow in found] == [
        (0, 70, 20),
        (5, 6, 10),
        (81, 81, 10),
    ]


@pytest.mark.parametrize("order", itertools.permutations(range(4)))
def test_flows_are_the_same_whatever_the_order_in_which_packets_come(order):
    packets = [
        Seen("a", "b", 17, (1, 2), start, start, 10, point)
        for start, point in ((0, 0), (8, 1), (16, 0), (40, 0))
    ]
    found = gather([packets[n] for n in order], idle_ns=10)
    assert [(flow.start_ns, flow.end_ns, flow.size_bytes, flow.points) for flow in found] == [
        (0, 16, 20, 2),
        (40, 40, 10, 1),
    ]


def test_of_points_that_sampled_the_mean_counts_unless_one_saw_all_packets():
    def size(*points):
        seen = [
            Seen("a", "b", 6, (1, 2), 0, 9, size, n, factor=Fraction(of))
            for n, (size, of) in enumerate(points)
        ]
        (flow,) = gather(seen, idle_ns=10)
        return flow.size_bytes, flow.is_mean

    assert size((300, 100), (100, 100)) == (200, True)
    assert size((300, 100), (100, 100), (800, 1000)) == (200, True)
    assert size((150, 1), (900, 100), (140, 1)) == (150, False)
    assert size((300, 100)) == (300, False)
