"""Path tracing as an auditor: flowlets, decoded paths against true ones, subflows that share links."""

from types import SimpleNamespace

import pytest

from weftline.measures import audit
from weftline.measures.audit import Flowlet

A, B, C = (("leaf0", spine, "leaf1") for spine in ("spine0", "spine1", "spine2"))


def flowlet(truth, decoded=(), *, flow=0, subflow=0, spans=(0,)):
    return Flowlet(flow=flow, subflow=subflow, truth=truth, decoded=list(decoded), spans=set(spans))


def test_a_flowlet_ends_with_a_pause_of_its_own_subflow():
    rows = [(0, 1, 0), (10, 1, 1), (40, 1, 0), (60, 1, 1), (100, 1, 0), (100, 2, 0)]
    numbers = [number for number, _ in audit.cut(rows, 45)]
    assert numbers == [0, 1, 0, 2, 3, 4], "50 ns and 60 ns are pauses, 40 ns is none"
    assert [begins for _, begins in audit.cut(rows, 45)] == [True, True, False, True, True, True]


def test_a_path_is_right_if_every_packet_took_it_and_wrong_if_none_did():
    found = audit.numbers(
        [
            flowlet({A: 30}, [A]),
            flowlet({A: 20, B: 20}, [A, B]),
            flowlet({A: 20, B: 20}, [A, C]),
            flowlet({A: 30}, [B]),
            flowlet({B: 25}),
            flowlet({B: 5}),
        ]
    )
    # Five flowlets are long enough, four of them decoded: two exactly; one of them, and one
    # of those on two paths, is decoded to a path that no packet took.
    assert found["flowlets"] == 6
    assert found["known"] == pytest.approx(4 / 5)
    assert found["right"] == pytest.approx(2 / 4)
    assert (found["wrong"], found["blended"]) == (1, 1)
    assert found["mixed"] == pytest.approx(2 / 6)


def test_disjointness_is_one_without_a_common_link_and_a_share_with_one_way_for_all():
    assert audit.disjointness([A, B]) == 1.0
    assert audit.disjointness([A, A]) == 0.5
    assert audit.disjointness([A, A, A, A]) == 0.25
    # Three distinct links of four: the first is shared.
    assert audit.disjointness([A, ("leaf0", "spine0", "leaf2")]) == pytest.approx(3 / 4)
    assert audit.disjointness([("leaf0",), ("leaf0",)]) is None, (
        "a path of one switch has no link between switches"
    )


def test_subflows_are_held_together_within_a_span_of_their_connection():
    found = audit.numbers(
        [
            flowlet({A: 30}, [A], flow=1, subflow=0, spans=[0, 1]),
            flowlet({B: 30}, [A], flow=1, subflow=1, spans=[0]),
            flowlet({A: 30}, [A], flow=1, subflow=2, spans=[1]),
            flowlet({A: 30}, [A], flow=2, subflow=0, spans=[0]),
        ]
    )
    # True: disjoint in span 0, one path in span 1; the digests showed one path in both.
    assert (found["true disjointness"], found["true paths"]) == (0.75, 1.5)
    assert (found["audited disjointness"], found["audited paths"]) == (0.5, 1.0)


def test_a_run_without_digests_has_no_audit(tmp_path):
    bare = SimpleNamespace(out=tmp_path, folder=tmp_path, scenario={"telemetry": {"kind": "none"}})
    assert audit.number(bare, "right") is None
