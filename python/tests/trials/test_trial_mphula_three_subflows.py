"""trials/mphula_three_subflows.toml: under MP-HULA every subflow has a hop of its own, and fills it."""

import os
from pathlib import Path

import pytest

import weftline
from weftline import _native

pytestmark = pytest.mark.skipif(
    not getattr(_native, "__file__", None), reason="the native module is not built"
)
FULL = "WEFTLINE_TRIALS" in os.environ
TRIAL = Path(__file__).parents[3] / "trials" / "mphula_three_subflows.toml"
SEEDS = range(1, 9) if FULL else (2, 4)
SUBFLOWS = 3


def carried(tmp_path, seed, changes):
    """Gb/s of the connection in the last 5 ms, and the share of their rate that the spines carry then."""
    run = weftline.run(TRIAL, out=tmp_path / "run", seed=seed, set=changes)
    (line,) = run.over_time("goodput_bps").values()
    late = [value for time, value in line if time > 15e6]
    uplinks = []
    for series in run.over_time("utilisation").values():
        of = [value for time, value in series if time > 15e6]
        uplinks.append(sum(of) / len(of) if of else 0.0)
    return sum(late) / len(late) / 1e9, sorted(uplinks, reverse=True)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "queue", [{"kind": "fifo", "packets": 1000}, {"kind": "fifo"}], ids=["limit", "none"]
)
def test_every_subflow_has_a_hop_of_its_own_and_together_they_fill_them(tmp_path, seed, queue):
    rate, uplinks = carried(tmp_path, seed, {"switch.queue": queue})
    assert rate > 27, (rate, uplinks)
    assert sum(share > 0.9 for share in uplinks) == SUBFLOWS, uplinks


def test_ranks_alone_can_still_be_asked_for_and_bring_two_subflows_together_more_often_than_not(tmp_path):
    changes = {"switch.balancer.disjoint": False, "switch.queue": {"kind": "fifo"}}
    found = [carried(tmp_path / str(seed), seed, changes) for seed in range(1, 13)]
    together = [rate for rate, uplinks in found if sum(share > 0.9 for share in uplinks) < SUBFLOWS]
    assert len(together) > len(found) / 2 and max(together) < 22, found
