"""How busy cores are while flows run, and runs without delays that this contaminates."""

from __future__ import annotations

import os

import pytest

from tests.lab.test_lab import outcome
from weftline.lab import cores, folder, lateness, priority


def looks(*busy: tuple[int, int]) -> list[cores.Look]:
    """Return looks 50 ms apart; of each time between two the busy ticks of two cores, of five."""
    totals, found = [0, 0], [(0, 0)]
    for each in busy:
        totals = [total + one for total, one in zip(totals, each, strict=True)]
        found.append((totals[0], totals[1]))
    return [
        cores.Look(
            at_ns=at * 50_000_000,
            cores={f"cpu{core}": (ticks, 5 * at) for core, ticks in enumerate(one)},
            waited_us=at * 10_000,
        )
        for at, one in enumerate(found)
    ]


def test_cores_count_while_flows_run() -> None:
    seen = looks((1, 5), (0, 5), (0, 0), (5, 4))
    # Two flows until 110 ms and one after 150 ms: the time between them does not count.
    found = cores.busy(seen, [(0, 60_000_000), (50_000_000, 110_000_000), (150_000_000, 200_000_000)])
    assert found.busiest == pytest.approx(100 * 14 / 15)
    assert found.waited == pytest.approx(20)
    # A flow that is shorter than the time between two looks.
    assert cores.busy(seen, [(160_000_000, 170_000_000)]).busiest == 100
    assert cores.busy(seen, []) == cores.busy([], [(0, 1)]) == cores.Busy()


def test_the_cores_of_this_machine_are_found() -> None:
    own = os.sched_getaffinity(0)
    found = cores.look(own)
    assert found.cores.keys() == {f"cpu{core}" for core in own}
    assert all(0 < part < whole for part, whole in found.cores.values())


@pytest.mark.parametrize(
    ("busiest", "waited", "expected"),
    [
        (99.5, 80.0, "a core was busy in 99.5 % of the time"),
        (70.0, 42.0, "processes waited for a core in 42 % of the time"),
        (70.0, 5.0, None),
        (None, None, None),
    ],
)
def test_a_run_without_delays_that_had_no_core_to_spare_is_contaminated_at_any_priority(
    busiest: float | None, waited: float | None, expected: str | None
) -> None:
    busy = cores.Busy(busiest=busiest, waited=waited)
    for kind in (priority.REAL_TIME, priority.NORMAL):
        run = outcome(busy=busy, priority=kind)
        found = folder.contamination(lateness.Histogram(), None, run)
        assert len(found) == (expected is not None) and all(expected in text for text in found if expected)
        # Where links have delays, lateness decides.
        assert not folder.contamination(lateness.Histogram(), 2_000_000, run)
