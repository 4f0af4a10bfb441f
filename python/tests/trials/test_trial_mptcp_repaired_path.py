"""trials/mptcp_repaired_path.toml: MPTCP uses a repaired path again, whatever failed and for how long."""

import itertools
import os
from pathlib import Path

import pytest

import weftline
from weftline import _native

pytestmark = pytest.mark.skipif(
    not getattr(_native, "__file__", None), reason="the native module is not built"
)
FULL = "WEFTLINE_TRIALS" in os.environ
TRIAL = Path(__file__).parents[3] / "trials" / "mptcp_repaired_path.toml"
PATH, OTHER, SENDERS, RECEIVERS = ["s0", "s1"], ["s2", "s3"], ["A", "s0"], ["s1", "B"]
UNKNOWN, KNOWN = "1000s", "100us"

CASES = [
    # What fails, from when to when, when routes know, subflows, controller; after this number of seconds both
    # paths are in use again.
    (PATH, 10, 13, UNKNOWN, 2, "lia", 4),
    (SENDERS, 10, 20, KNOWN, 2, "lia", 2),
    (SENDERS, 10, 20, KNOWN, 4, "lia", 2),
]
if FULL:
    CASES += [
        (SENDERS, 10, 20, KNOWN, 8, "lia", 2),
        (PATH, 10, 10.5, UNKNOWN, 2, "lia", 2),
        (PATH, 10, 20, UNKNOWN, 4, "lia", 4),
        (PATH, 10, 70, UNKNOWN, 2, "lia", 4),
        (PATH, 10, 70, UNKNOWN, 8, "lia", 4),
        (OTHER, 10, 20, UNKNOWN, 2, "lia", 4),
        (OTHER, 10, 70, UNKNOWN, 4, "lia", 4),
        (SENDERS, 10, 70, KNOWN, 2, "lia", 2),
        (SENDERS, 10, 10.5, KNOWN, 4, "lia", 2),
        (SENDERS, 10, 20, UNKNOWN, 2, "lia", 2),
        (RECEIVERS, 10, 20, KNOWN, 2, "lia", 2),
        (RECEIVERS, 10, 20, UNKNOWN, 4, "lia", 4),
        ("s0", 10, 20, KNOWN, 2, "lia", 2),
        ("s1", 10, 20, UNKNOWN, 4, "lia", 4),
        (["A", "s2"], 0, 10, KNOWN, 4, "lia", 2),
        *((PATH, 10, 13, UNKNOWN, 2, controller, 4) for controller in ("olia", "balia", "newreno", "cubic")),
        *((SENDERS, 10, 20, KNOWN, 4, controller, 3) for controller in ("olia", "balia", "newreno", "cubic")),
    ]


def rates(tmp_path, changes):
    """Goodput in Mb/s, second by second."""
    run = weftline.run(TRIAL, out=tmp_path / "run", set=changes)
    (line,) = run.over_time("goodput_bps").values()
    return [value / 1e6 for _, value in line]


def outage(what, down, up):
    where = {"switch": what} if isinstance(what, str) else {"link": what}
    return [
        {"at": f"{int(1000 * at)}ms", "change": change, **where}
        for at, change in ((down, "down"), (up, "up"))
    ]


@pytest.mark.parametrize(("what", "down", "up", "detection", "subflows", "controller", "within"), CASES)
def test_both_paths_carry_data_again_some_seconds_after_the_repair(
    tmp_path, what, down, up, detection, subflows, controller, within
):
    changes = {
        "failures.event": outage(what, down, up),
        "failures.detection": detection,
        "transport.subflows": subflows,
        "transport.controller": {"kind": controller},
        "run.until": f"{int(up) + 20}s",
    }
    found = rates(tmp_path, changes)
    if up - down >= 3:
        assert all(rate < 50 for rate in found[down + 1 : up]), "one path carries no more"
    # A second alone may have what two subflows bring late.
    after = found[int(up) + within : -1]
    assert min(sum(pair) / 2 for pair in itertools.pairwise(after)) > 88, found
    assert sum(after) / len(after) > 92, found


@pytest.mark.skipif(not FULL, reason="takes a while; set WEFTLINE_TRIALS")
@pytest.mark.parametrize("lasts", [0.5, 3, 10, 60])
def test_one_tcp_flow_goes_on_within_one_timeout_that_was_backed_off(tmp_path, lasts):
    """Timeouts double up to 60 s, so the one that is running was begun no earlier than half-way."""
    found = {}
    for name, path in (("path", PATH), ("other", OTHER)):
        changes = {
            "transport": {"kind": "tcp", "controller": {"kind": "newreno"}},
            "measure.subflows": False,
            "failures.event": outage(path, 10, 10 + lasts),
            "run.until": f"{int(2 * lasts) + 20}s",
        }
        found[name] = rates(tmp_path / name, changes)
    back = 10 + lasts + min(lasts, 60) + 2
    for series in found.values():
        assert min(series[int(back) : -1]) > 40, found
