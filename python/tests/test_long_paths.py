"""Runs over paths of seconds, and files with quantities that are written in other ways."""

from __future__ import annotations

import pytest

import weftline
from weftline import _native
from weftline.errors import InputError

pytestmark = pytest.mark.skipif(
    not getattr(_native, "__file__", None), reason="the native module is not built (maturin develop)"
)


def _over(delay: str, **more: object) -> dict[str, object]:
    return {
        "topology": {
            "kind": "dumbbell",
            "left": 1,
            "right": 1,
            "host_link": {"rate": "1Gbps", "delay": "10us"},
            "bottleneck_link": {"rate": "1Gbps", "delay": delay},
        },
        "transport": {"kind": "tcp"},
        "workload": [{"kind": "flows", "flows": [{"src": 0, "dst": 1, "size": "100KB"}]}],
        **more,
    }


def test_a_handshake_of_ten_seconds_is_no_stall(tmp_path):
    run = weftline.run(_over("5s"), out=tmp_path / "run")
    assert run.summary["status"] == "done"
    # The second SYN of RFC 6298 leaves after a second, so that the first window is one segment: the handshake
    # and windows of 1, 2, 4, ... segments for 69 of them take eight round trips.
    assert run.completion()["fct_ns"]["max"] == pytest.approx(80e9, rel=1e-3)


def test_either_sign_of_micro_is_read():
    delays = [
        weftline.Scenario(_over(f"20{sign}s")).check()["topology"] for sign in ("u", "\u00b5", "\u03bc")
    ]
    assert delays[0] == delays[1] == delays[2]


def test_a_table_that_was_cut_at_its_one_percent_row_is_refused(tmp_path):
    table = tmp_path / "cut.cdf"
    table.write_text("1000 0.5%\n2000 1%\n")
    scenario = _over("1ms")
    scenario["workload"] = [{"kind": "poisson", "sizes": str(table), "load": 0.3, "count": 10}]
    with pytest.raises(InputError, match=r"cut\.cdf:2: the last cumulative share is 1%: expected 100%"):
        weftline.Scenario(scenario).check()


def test_a_quantity_has_a_unit_of_its_size():
    with pytest.raises(InputError, match=r"the ports of s1 need 46\.314862MB of headroom"):
        weftline.Scenario(_over("123456789ns", transport={"kind": "rdma"})).check()
