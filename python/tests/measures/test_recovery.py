"""What a failure costs goodput, and for how long."""

import pytest

import weftline
from weftline.measures import recovery


class Failing:
    """Goodput of two groups every 100 us; a link fails at 1 ms and comes back at 2 ms."""

    def __init__(self, after):
        self.scenario = {}
        self.summary = {"end_ns": 3e6, "failures": [{"at_ns": 1e6}, {"at_ns": 2e6}]}
        # Until half of the first millisecond flows begin: that does not count.
        before = [0.0] * 5 + [8e9] * 5
        self.rates = [*before, *after, *([8e9] * 10)]

    def over_time(self, name, *, every_ns, max_points):
        assert (name, every_ns, max_points) == ("goodput_bps", 1e5, 0)
        halves = [[1e5 * (n + 1), rate / 2] for n, rate in enumerate(self.rates)]
        return {"a": halves, "b": halves}


def test_recovered_is_when_goodput_is_below_nine_tenths_for_the_last_time():
    run = Failing([0.0, 4e9, 8e9, 7e9, 7.5e9, 8e9, 8e9, 8e9, 8e9, 8e9])
    assert recovery.recovery_ns(run) == pytest.approx(4e5)
    # 8, 4, 1 and 0.5 Gb/s less for 100 us each.
    assert recovery.deficit_bytes(run) == pytest.approx(13.5e9 * 1e5 / 8e9)


def test_a_network_that_notices_nothing_recovers_at_once():
    assert recovery.recovery_ns(Failing([8e9] * 10)) == 0
    assert recovery.deficit_bytes(Failing([9e9] * 10)) == 0


def test_goodput_that_stays_low_until_the_link_is_back_counts_until_then_as_a_lower_bound():
    run = Failing([4e9] * 10)
    assert recovery.recovery_ns(run) == pytest.approx(1e6)
    assert recovery.has_recovered(run) is False
    back = Failing([4e9] * 9 + [8e9])
    assert recovery.recovery_ns(back) == pytest.approx(9e5)
    assert recovery.has_recovered(back) is True
    assert recovery.unrecovered_text([run, back, run]) == "2 of 3 runs had not recovered"
    assert recovery.unrecovered_text([back]) == ""


def test_the_last_interval_ends_with_the_run():
    run = Failing([4e9] * 5)
    run.rates = run.rates[:15]
    run.summary = {"end_ns": 1.45e6, "failures": [{"at_ns": 1e6}]}
    # Only the deficit counts the last interval, which has half the length of the others.
    assert recovery.recovery_ns(run) == pytest.approx(4e5)
    assert recovery.deficit_bytes(run) == pytest.approx(4e9 * 4.5e5 / 8e9)


@pytest.mark.parametrize(("last", "recovered"), [(0.0, True), (8e9, False)])
def test_an_interval_that_the_end_of_the_run_cuts_short_does_not_decide(last, recovered):
    run = Failing([8e9 if recovered else 4e9] * 5)
    run.rates = [*run.rates[:15], last]
    run.summary = {"end_ns": 1.5001e6, "failures": [{"at_ns": 1e6}]}
    assert recovery.has_recovered(run) is recovered
    assert recovery.recovery_ns(run) == pytest.approx(0 if recovered else 5e5)
    run.summary["end_ns"] = 1.0001e6
    run.rates = [*run.rates[:10], last]
    assert recovery.recovery_ns(run) is recovery.has_recovered(run) is None


def test_the_deficit_counts_the_intervals_in_which_changes_lie_by_their_lengths():
    run = Failing([6e9, *[4e9] * 9])
    run.rates[20] = 6e9
    # 4 Gb/s less from 1.05 to 2.05 ms.
    run.summary["failures"] = [{"at_ns": 1.05e6}, {"at_ns": 2.05e6}]
    assert recovery.deficit_bytes(run) == pytest.approx(4e9 * 1e6 / 8e9)
    assert recovery.recovery_ns(run) == pytest.approx(0.95e6)


def test_failures_that_overlap_are_one_and_changes_are_those_that_happened(tmp_path):
    scenario = {
        "topology": {"kind": "star", "hosts": 2},
        "transport": {"kind": "rdma", "controller": {"kind": "none"}},
        "workload": [{"kind": "bulk", "hosts": "0", "to": "1", "group": "g"}],
        "run": {"until": "4ms"},
        "measure": {"goodput": {"by": "group", "every": "100us"}},
        "failures": {
            "event": [
                {"at": "1050us", "link": ["host0", "s0"], "lasts": "500us"},
                {"at": "1500us", "link": ["host0", "s0"], "lasts": "600us"},
            ]
        },
    }
    run = weftline.run(scenario, out=tmp_path / "run")
    assert recovery.changes_ns(run) == [1.05e6, 2.1e6]
    assert recovery.recovery_ns(run) == pytest.approx(1.05e6)
    assert recovery.deficit_bytes(run) == pytest.approx(1.05e6 * recovery._after(run).usual / 8e9, rel=0.01)


def test_goodput_that_was_measured_less_often_counts_for_its_whole_interval():
    run = Failing([])
    run.scenario = {"measure": {"goodput": {"every": "500us"}}}
    run.over_time = lambda *_, **options: {"a": [[5e5, 0], [1e6, 8e9], [1.5e6, 6e9], [2e6, 7e9]]}
    assert recovery.deficit_bytes(run) == pytest.approx(3e9 * 5e5 / 8e9)


def test_intervals_that_are_longer_than_what_was_before_do_not_tell_what_it_was():
    run = Failing([])
    run.scenario = {"measure": {"goodput": {"every": "1ms"}}}
    run.over_time = lambda *_, **options: {"a": [[1e6, 8e9], [2e6, 6e9], [3e6, 8e9]]}
    assert recovery.recovery_ns(run) is recovery.deficit_bytes(run) is recovery.has_recovered(run) is None


class Silenced:
    """Goodput of two flows by 1 ms; a link fails at 3 ms, after which one of them delivers nothing."""

    def __init__(self, every="1ms", end_ns=12e6):
        self.scenario = {"measure": {"goodput": {"by": "flow", "every": every}}}
        self.summary = {"end_ns": end_ns, "failures": [{"at_ns": 3e6}]}

    def over_time(self, name, *, every_ns, max_points):
        # What is under way arrives within 1.5 ms.
        lost = [[1e6 * n, 8e9 * (n < 6)] for n in range(1, 13)]
        return {"flow0": lost, "flow1": [[time, 8e9] for time, _ in lost]}


def test_a_flow_is_silenced_if_whole_intervals_after_the_failure_are_empty():
    assert recovery.silenced(Silenced()) == 0.5
    assert recovery.silenced(Silenced(every="10ms")) is None, "no interval lies in the time looked at"
    assert recovery.silenced(Silenced(end_ns=9e6)) is None, "the run ends before that time does"


def test_without_a_failure_nothing_recovers():
    run = Failing([8e9] * 10)
    for changes in ([], [{"at_ns": 4e6}]):
        run.summary["failures"] = changes
        assert recovery.recovery_ns(run) is recovery.deficit_bytes(run) is None
