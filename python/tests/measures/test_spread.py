"""How traffic was spread over links, and how long a failure cost packets."""

import pytest

from weftline.measures import flow_rows, networks, readings, spread
from weftline.measures.metrics import METRICS, Flows, metric


@pytest.fixture(autouse=True)
def last_start(monkeypatch):
    """The last flow starts at 3 ms, whether or not goodput was measured."""
    monkeypatch.setattr(flow_rows, "last_start_ns", lambda run: run.last_start_ns)
    # Two uplinks, a port that leads to a host, and one of a host, whose name is not "host0".
    sides = {"leaf0.p1": (False, False), "leaf0.p2": (False, False), "leaf0.p0": (False, True)}
    sides |= {"gpu0.p0": (True, False)}
    known = {port: networks.PortSides(*side) for port, side in sides.items()}
    monkeypatch.setattr(networks, "port_sides", lambda run: known)


class Spread:
    """A run with two uplinks measured at 1 to 4 ms."""

    last_start_ns = 3e6

    def __init__(self):
        self.scenario = {"failures": {}}
        self.summary = {
            "end_ns": 4e6,
            "failures": [{"at_ns": 1.5e6}, {"at_ns": 2e6}],
            "last_loss_ns": 2_100_000.0,
            "probe_bytes": 5,
            "bytes_on_wire": 1000,
            "flowlets": 8,
            "flowlets_moved": 2,
            "receiving": {"reordered_share": 0.25, "paths_per_flow": 1.5},
        }

    def over_time(self, name, *, every_ns, max_points):
        assert name == "utilisation" and every_ns == max_points == 0
        return {
            "leaf0.p1": [[1e6, 0.6], [2e6, 0.0], [3e6, 0.4], [4e6, 0.0]],
            "leaf0.p2": [[1e6, 0.2], [2e6, 0.0], [3e6, 0.4], [4e6, 0.9]],
            "leaf0.p0": [[1e6, 0.5], [2e6, 0.9], [3e6, 0.7], [4e6, 1.0]],
            "gpu0.p0": [[1e6, 1.0], [2e6, 1.0], [3e6, 1.0], [4e6, 1.0]],
        }


def test_imbalance_is_the_spread_over_the_mean_while_flows_start():
    # 1 ms: (0.6 - 0.2) / 0.4 = 1; 2 ms: idle; 3 ms: 0; 4 ms is after the last flow.
    assert spread.imbalance(Spread()) == pytest.approx(0.5)
    assert spread.max_utilisation(Spread()) == pytest.approx(1.0 / 3)
    assert spread.mean_utilisation(Spread()) == pytest.approx((1.0 + 0.6) / 6)


def test_loads_are_over_the_whole_intervals_until_the_last_flow_starts():
    assert readings.throughput(of_hosts=True)(Spread()) == 1
    assert readings.throughput(of_hosts=False)(Spread()) == pytest.approx(0.7)


def test_intervals_that_are_longer_than_the_time_in_which_flows_start_give_no_number():
    run = Spread()
    for run.last_start_ns in (0.0, 0.9e6, None):
        assert spread.imbalance(run) is spread.max_utilisation(run) is spread.mean_utilisation(run) is None
        assert readings.throughput(of_hosts=True)(run) is readings.throughput(of_hosts=False)(run) is None


def test_the_last_loss_counts_from_the_first_failure():
    assert spread.failure_to_last_loss_ns(Spread()) == 600_000
    run = Spread()
    run.summary["last_loss_ns"] = 1_000_000.0
    assert spread.failure_to_last_loss_ns(run) is None, "what was lost before is not the failure's"
    run = Spread()
    run.scenario["failures"]["loss"] = 0.1
    assert spread.failure_to_last_loss_ns(run) is None, "random losses are not the failure's"


def test_the_measures_of_balancers_have_names():
    expected = {
        "probe_share": 0.005,
        "flowlets_moved_share": 0.25,
        "reordered_share": 0.25,
        "paths_per_flow": 1.5,
        "imbalance": 0.5,
    }
    for name, value in expected.items():
        assert metric(name).value(Spread(), Flows()) == pytest.approx(value), name
    assert {"probes", "probe_bytes", "probes_settled", "flowlets", "unfinished"} <= METRICS.keys()
