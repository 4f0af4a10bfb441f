"""Numbers out of a run, by name, on runs small enough to know them beforehand."""

from __future__ import annotations

import pytest

import weftline
from weftline import _native
from weftline.cli.main import main
from weftline.errors import InputError
from weftline.measures import sharing, slowdown_table
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


def test_deadlines_and_the_smallest_flows_are_of_the_flows_that_count(tmp_path):
    flows = [
        {"src": 0, "dst": 1, "size": "10KB", "deadline": "1ms", "group": "a"},
        {"src": 2, "dst": 3, "size": "50KB", "deadline": "101us", "group": "b", "start": "100us"},
        {"src": 2, "dst": 3, "size": "100MB", "deadline": "201us", "group": "b", "start": "200us"},
    ]
    found = run(tmp_path / "run", workload=[{"kind": "flows", "flows": flows}], run={"until": "1ms"})
    assert found.summary["flows_unfinished"] == 1
    by_size = [value(found, "deadlines_met", max_size=20_000), value(found, "deadlines_met", min_size=20_000)]
    by_start = [value(found, "deadlines_met", last_ns=5e4), value(found, "deadlines_met", first_ns=5e4)]
    assert by_size == by_start == [1, 0]
    # A flow that did not finish did not meet its deadline.
    assert value(found, "deadlines_met", first_ns=0) == value(found, "deadlines_met") == pytest.approx(1 / 3)
    assert value(found, "deadlines_met", min_size=20_000, group="a") is None
    of_a, of_b = (value(found, "slowdown_p95", group=group) for group in "ab")
    assert value(found, "small_p95") == value(found, "small_p95", last_ns=5e4) == of_a != of_b
    assert value(found, "small_p95", group="b") == value(found, "small_p95", first_ns=5e4) == of_b
    assert value(found, "small_p95", min_size=20_000) == value(found, "small_p95 of b") == of_b


def test_requests_are_of_the_group_and_the_starts_that_count(tmp_path):
    incast = {"kind": "incast", "receiver": "0", "arrivals": "periodic", "every": "1ms", "count": 2}
    fast, slow = incast | {"request": "30KB", "group": "fast"}, incast | {"request": "60KB", "group": "slow"}
    workload = [fast, slow | {"start": "500us"}]
    found = run(tmp_path / "run", workload=workload, transport={"controller": {"kind": "none"}})
    # Thirty and sixty packets of 1048 B in a row at 10 Gb/s, the first over two links of 1 us.
    of_fast, of_slow = 2 * 1000 + 31 * 838.4, 2 * 1000 + 61 * 838.4
    assert value(found, "request_mean", group="fast") == pytest.approx(of_fast)
    assert value(found, "request_p99 of slow") == pytest.approx(of_slow)
    assert value(found, "request_mean", first_ns=4e5) == pytest.approx((of_fast + 2 * of_slow) / 3)
    assert value(found, "request_mean", group="fast", last_ns=-1) is None


def test_a_starved_group_has_no_share_and_counts_in_fairness(tmp_path):
    flows = [
        {"src": 0, "dst": 1, "size": "100MB", "group": "a"},
        {"src": 2, "dst": 3, "size": "100MB", "group": "b"},
        {"src": 0, "dst": 1, "size": "1KB", "group": "a", "start": "2ms"},
    ]
    parts = {"workload": [{"kind": "flows", "flows": flows}], "run": {"until": "6ms"}}
    failures = {"event": [{"at": "1ns", "link": ["host2", "s0"], "lasts": "1s"}]}
    by_group = {"goodput": {"by": "group", "every": "1ms"}}
    found = run(tmp_path / "group", **parts, failures=failures, measure=by_group)
    assert (value(found, "share a"), value(found, "share b"), value(found, "share nobody")) == (1, 0, None)
    assert value(found, "fairness") == pytest.approx(0.5) and value(found, "convergence") is None
    assert {*sharing.lifetimes(found)} == {"a", "b"} and sharing.lifetimes(found)["b"] == (0, 6e6)
    # Both have their links until 2 ms; the spans that end at 3 to 6 ms have a flow of two.
    failures["event"][0]["at"] = "2ms"
    by_flow = {"goodput": {"by": "flow", "flows": [0, 1], "every": "1ms"}}
    found = run(tmp_path / "flow", **parts, failures=failures, measure=by_flow)
    assert value(found, "fairness") == pytest.approx(0.5) and value(found, "convergence") == 1e6


def test_a_group_lasts_from_its_first_start_to_its_last_end(tmp_path):
    flows = [{"src": 0, "dst": 1, "size": "1KB", "start": start} for start in ("1us", "2ms")]
    workload = [{"kind": "flows", "flows": flows, "group": "a"}]
    found = run(tmp_path / "run", workload=workload, transport={"controller": {"kind": "none"}})
    # A packet of 1048 B and its acknowledgement of 60 B, each over two links of 1 us and 10 Gb/s.
    first, last = sharing.lifetimes(found)["a"]
    assert (first, last) == (1e3, pytest.approx(2e6 + 4 * 1000 + 2 * 838.4 + 2 * 48))


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


def test_groups_of_flows_without_an_end_have_shares(tmp_path):
    bulk = {"kind": "bulk", "to": "2"}
    workload = [{**bulk, "hosts": "0", "group": "a"}, {**bulk, "hosts": "1", "group": "b", "start": "1ms"}]
    measure = {"goodput": {"by": "group", "every": "100us"}}
    found = run(tmp_path / "run", workload=workload, measure=measure, run={"until": "2ms"})
    assert (value(found, "share a"), value(found, "share b")) == (1, 0)


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
        def __init__(self, means, doubts=(), unlike=()):
            self.means, self.doubts, self.unlike = means, doubts, unlike

        def mean(self, line):
            return self.means[line]

        def reasons(self, line):
            return self.doubts

        def differ(self, line, other):
            return self.unlike

    def best(*means, **more):
        highest = more.pop("highest", False)
        return slowdown_table._best(range(len(means)), Subject(means, **more), highest=highest)

    low, near, far = Mean(1.0, 0.2), Mean(1.3, 0.2), Mean(2.0, 0.3)
    assert best(low, far) == 0 and best(far, low) == 1 and best(low, far, highest=True) == 1
    assert best(low, near) is None and best(low, near, far) is None and best(far, low, Mean(3.0, 0.1)) == 1
    assert best(low, Mean(9.0)) is None and best(low, None) is None and best(low) is None
    assert best(low, far, doubts=["unfinished"]) is None
    assert best(low, far, unlike=["not measured alike"]) is None
