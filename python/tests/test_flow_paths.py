"""Max-min fair rates over the ways that flows took."""

import pytest

from weftline.measures import flow_paths, sharing

BY_SPINE0, BY_SPINE1 = ("leaf0", "spine0", "leaf1"), ("leaf0", "spine1", "leaf1")
TAKEN = {0: BY_SPINE0, 1: BY_SPINE0, 2: BY_SPINE1}


class Spread:
    """Four flows of two leaves: two go by spine0, one by spine1, one stays at its leaf."""

    def __init__(self):
        self.scenario = {
            "topology": {
                "kind": "leaf-spine",
                "host_link": {"rate": "1Gbps"},
                "fabric_link": {"rate": "100Mbps"},
            }
        }

    def shares(self):
        ends = [(0, 4), (1, 5), (2, 6), (2, 3)]
        return [{"flow": n, "src": src, "dst": dst} for n, (src, dst) in enumerate(ends)]


def test_flows_that_meet_on_a_link_share_it_and_the_others_fill_theirs(monkeypatch):
    monkeypatch.setattr(flow_paths, "paths", lambda run: {**TAKEN, 3: ("leaf0",)})
    # Host 2 sends 100 Mb/s by spine1, and what is left of its link to its neighbour.
    assert sharing.ideal(Spread()) == pytest.approx([50e6, 50e6, 100e6, 900e6])


def test_without_the_way_of_every_flow_there_is_no_ideal(monkeypatch):
    monkeypatch.setattr(flow_paths, "paths", lambda run: TAKEN)
    assert sharing.ideal(Spread()) is None
    monkeypatch.setattr(flow_paths, "paths", lambda run: {})
    assert sharing.ideal(Spread()) is None
