"""Numbers out of a run, by name, on runs small enough to know them beforehand."""

from __future__ import annotations

import pytest

import weftline
from weftline import _native
from weftline.cli.main import main
from weftline.errors import InputError
from weftline.measures import slowdown_table
from weftline.measures.lines import Line, Mean
from weftline.measures.metrics import Flows, metric

pytestmark = pytest.mark.skipif(
    not getattr(_native, "__file__", None), reason="the native module is not built (maturin develop)"
)

STAR = {"kind": "star", "hosts": 4, "host_link": {"rate": "10Gbps", "delay": "1us"}}


def run(folder, **parts):
    return weftline.run({"name": "measures", "topology": STAR, **parts}, out=folder)


def value(found, name, **flows):
    return metric(name).value(found, Flows(**flows))


def test_a_lone_flow_has_a_normalised_completion_time_of_one(tmp_path):
    flow = {"kind": "flows", "flows": [{"src": 0, "dst": 1, "size": "10KB"}]}
    found = run(tmp_path / "run", workload=[flow], transport={"controller": {"kind": "none"}})
    assert value(found, "nfct") == pytest.approx(1)
    assert value(found, "slowdown_mean") == pytest.approx(1)
    assert value(found, "nfct", min_size=20_000) is None


def test_requests_complete_with_their_last_byte(tmp_path):
    incast = {"kind": "incast", "receiver": "0", "request": "30KB"}
    incast |= {"arrivals": "periodic", "every": "1ms", "count": 2}
    found = run(tmp_path / "run", workload=[incast], transport={"controller": {"kind": "none"}})
    # Thirty packets of 1048 B in a row at 10 Gb/s, the first over two links of 1 us.
    by_hand = 2 * 1000 + 31 * 838.4
    assert value(found, "request_mean") == pytest.approx(by_hand)
    assert value(found, "request_p99") == pytest.approx(by_hand)
    assert found.summary["links"]["s -> host"]["packets_sent"] >= 60
    assert (value(found, "drops host -> s"), value(found, "drop_rate")) == (0, 0)
    assert value(found, "drops leaf -> host") is None


def test_deadlines_that_were_met_are_counted(tmp_path):
    flows = [
        {"src": 0, "dst": 1, "size": "10KB", "deadline": "1ms", "group": "easy"},
        {"src": 2, "dst": 1, "size": "10KB", "deadline": "1us", "group": "hard"},
        {"src": 3, "dst": 2, "size": "10KB"},
    ]
    found = run(tmp_path / "run", workload=[{"kind": "flows", "flows": flows}])
    assert found.deadlines() == (2, 1)
    assert value(found, "deadlines_met") == 0.5
    assert (found.deadlines(group="easy"), found.deadlines(group="hard")) == ((1, 1), (1, 0))
    assert value(found, "deadlines_met", group="flows") is None


def test_what_starts_and_does_not_arrive_is_a_backlog(tmp_path):
    # Two senders at full rate into one link: half of what starts is not delivered.
    poisson = {"kind": "poisson", "hosts": "0-1", "to": "2", "size": "50KB", "load": 1.0, "duration": "20ms"}
    measure = {"goodput": {"by": "group", "every": "100us"}}
    measure["utilisation"] = {"ports": ["host0", "host1", "s0->host2"], "every": "100us"}
    found = run(tmp_path / "run", workload=[poisson], measure=measure)
    assert value(found, "backlog_growth") == pytest.approx(0.5, abs=0.08)
    assert value(found, "received_share") > 0.9
    assert value(found, "share poisson") == pytest.approx(1)
    assert value(found, "share nobody") is None
    assert found.backlog()["last_bytes"] > found.backlog()["half_bytes"] > 0


def test_without_goodput_there_is_no_backlog(tmp_path):
    flow = {"kind": "flows", "flows": [{"src": 0, "dst": 1, "size": "1KB"}]}
    found = run(tmp_path / "run", workload=[flow])
    assert found.backlog() is None
    names = ("backlog_growth", "sent_share", "received_share", "deadlines_met", "request_mean", "share flows")
    assert [Line("a", [found]).metric_text(name) for name in names] == ["–"] * 6


def test_a_metric_that_does_not_exist_is_reported_with_the_nearest_one():
    with pytest.raises(InputError, match='did you mean "deadlines_met"'):
        metric("deadline_met")


def test_an_experiment_whose_flows_never_end_draws_what_was_measured(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    only = ["--only", "row=3", "--only", "discipline=FIFO"]
    assert main(["reproduce", "cebinae-table", "--duration", "4s", "--quiet", *only]) == 0
    page = (tmp_path / "out/experiments/cebinae-table/report.html").read_text()
    assert page.count("data-figure=") == 3


def test_the_best_of_a_column_is_marked_only_where_its_interval_overlaps_no_other():
    class Subject:
        def __init__(self, means, doubts=()):
            self.means, self.doubts = means, doubts

        def mean(self, line):
            return self.means[line]

        def reasons(self, line):
            return self.doubts

    def best(*means, **more):
        highest = more.pop("highest", False)
        return slowdown_table._best(range(len(means)), Subject(means, **more), highest=highest)

    low, near, far = Mean(1.0, 0.2), Mean(1.3, 0.2), Mean(2.0, 0.3)
    assert best(low, far) == 0 and best(far, low) == 1 and best(low, far, highest=True) == 1
    assert best(low, near) is None and best(low, near, far) is None and best(far, low, Mean(3.0, 0.1)) == 1
    assert best(low, Mean(9.0)) is None and best(low, None) is None and best(low) is None
    assert best(low, far, doubts=["unfinished"]) is None
