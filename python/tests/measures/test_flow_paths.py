"""The links that flows took, and the max-min fair rates of flows over them."""

import pytest

native = pytest.importorskip("weftline._native")

from weftline.measures import flow_paths, networks, sharing  # noqa: E402

WORKLOAD = '[[workload]]\nkind = "permutation"\nsize = "1MB"\n'
LEAF_SPINE = """
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 4
host_link = { rate = "1Gbps", delay = "1us" }
fabric_link = { rate = "100Mbps", delay = "1us" }
"""
PARKING_LOT = """
[topology]
kind = "parking-lot"
bottlenecks = 3
long_hosts = 4
hosts_by_hop = [2, 8, 1]
bottleneck_link = { rate = "100Mbps", delay = "1us" }
"""
DUMBBELL = """
[topology]
kind = "dumbbell"
left = 2
right = 2
bottleneck_link = { rate = "10Mbps", delay = "1us" }
"""
BY_SPINE0, BY_SPINE1 = ("leaf0", "spine0", "leaf1"), ("leaf0", "spine1", "leaf1")
TAKEN = {0: BY_SPINE0, 1: BY_SPINE0, 2: BY_SPINE1}
ENDS = [(0, 4), (1, 5), (2, 6), (2, 3)]
"""Four flows of two leaves: two go by spine0, one by spine1, one stays at its leaf."""


class Flows:
    """A run whose folder has a scenario, of flows between given hosts, each with its goodput."""

    def __init__(self, out, topology, ends, goodputs=None):
        (out / "scenario.toml").write_text(topology + WORKLOAD)
        self.out = self.folder = out
        self.scenario = {"topology": {"kind": topology.split('"')[1]}}
        self.summary = {"end_ns": 3e9}
        self.ends, self.goodputs = ends, goodputs or [1] * len(ends)

    def shares(self, *_):
        each, times = zip(self.ends, self.goodputs, strict=True), {"start_ns": 0, "until_ns": 3e9}
        return [
            {"flow": n, "src": src, "dst": dst, "group": "", "bytes": rate, **times}
            for n, ((src, dst), rate) in enumerate(each)
        ]


def test_flows_that_meet_on_a_link_share_it_and_the_others_fill_theirs(tmp_path, monkeypatch):
    monkeypatch.setattr(flow_paths, "recorded", lambda run: {**TAKEN, 3: ("leaf0",)})
    # Host 2 sends 100 Mb/s by spine1, and what is left of its link to its neighbour.
    found = sharing.ideal(Flows(tmp_path, LEAF_SPINE, ENDS))
    assert found == pytest.approx([50e6, 50e6, 100e6, 900e6])


def test_without_the_path_of_every_flow_there_is_no_ideal(tmp_path, monkeypatch):
    monkeypatch.setattr(flow_paths, "recorded", lambda run: TAKEN)
    run = Flows(tmp_path, LEAF_SPINE, ENDS)
    assert sharing.ideal(run) is None
    monkeypatch.setattr(flow_paths, "recorded", lambda run: {})
    assert sharing.ideal(run) is None


def test_max_min_fair_goodputs_of_a_parking_lot_are_those_of_the_paper(tmp_path):
    ends = [(n, n + 4) for n in range(4)] + [(8, 10), (9, 11)]
    ends += [(n, n + 8) for n in range(12, 20)] + [(28, 29)]
    ideal = sharing.ideal(Flows(tmp_path, PARKING_LOT, ends))
    expected = [25 / 3] * 4 + [100 / 3] * 2 + [25 / 3] * 8 + [200 / 3]
    assert ideal == pytest.approx([1e6 * rate for rate in expected])
    assert sharing.index_against_ideal(Flows(tmp_path, PARKING_LOT, ends, ideal)) == pytest.approx(1)


def test_flows_of_a_dumbbell_share_the_link_between_its_switches(tmp_path):
    assert sharing.ideal(Flows(tmp_path, DUMBBELL, [(0, 2), (1, 3)])) == pytest.approx([5e6, 5e6])
    # A flow between two hosts of one switch crosses no such link.
    assert sharing.ideal(Flows(tmp_path, DUMBBELL, [(0, 1)])) is None


def test_the_path_of_a_tree_is_the_only_one(tmp_path):
    network = networks.built(Flows(tmp_path, PARKING_LOT, []))
    assert networks.is_tree(network) and not networks.has_parallel_links(network)
    assert networks.tree_path(network, "host0", "host4") == ["host0", "s0", "s1", "s2", "s3", "host4"]
    assert networks.rates(network)["s0", "s1"] == networks.rates(network)["s1", "s0"] == 100e6
