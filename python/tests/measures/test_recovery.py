"""What a failure costs goodput, and for how long."""

import pytest

from weftline.measures import recovery


class Failing:
    """Goodput of two groups every 100 us; a link fails at 1 ms and comes back at 2 ms."""

    def __init__(self, after):
        self.scenario = {"failures": {"event": [{"at": "1ms"}, {"at": "2ms", "change": "up"}]}}
        self.summary = {"end_ns": 3e6}
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
    run.scenario["failures"]["event"] = [{"at": "1ms"}]
    run.summary = {"end_ns": 1.45e6}
    assert recovery.recovery_ns(run) == pytest.approx(4.5e5)
    assert recovery.deficit_bytes(run) == pytest.approx(4e9 * 4.5e5 / 8e9)


def test_the_end_of_an_event_that_lasts_is_a_change():
    run = Failing([4e9] * 10)
    run.rates[20:] = [0.0] * 10  # the flows have ended
    run.scenario = {"failures": {"event": [{"at": "1ms", "lasts": "1ms"}]}}
    assert recovery.recovery_ns(run) == pytest.approx(1e6)
    assert recovery.deficit_bytes(run) == pytest.approx(4e9 * 1e6 / 8e9)


def test_goodput_that_was_measured_less_often_counts_for_its_whole_interval():
    run = Failing([])
    run.scenario["measure"] = {"goodput": {"every": "500us"}}
    run.over_time = lambda *_, **options: {"a": [[5e5, 0], [1e6, 8e9], [1.5e6, 6e9], [2e6, 7e9]]}
    assert recovery.deficit_bytes(run) == pytest.approx(3e9 * 5e5 / 8e9)


def test_intervals_that_are_longer_than_what_was_before_do_not_tell_what_it_was():
    run = Failing([])
    run.scenario["measure"] = {"goodput": {"every": "1ms"}}
    run.over_time = lambda *_, **options: {"a": [[1e6, 8e9], [2e6, 6e9], [3e6, 8e9]]}
    assert recovery.recovery_ns(run) is recovery.deficit_bytes(run) is recovery.has_recovered(run) is None


class Silenced:
    """Goodput of two flows by 1 ms; a link fails at 3 ms, after which one of them delivers nothing."""

    def __init__(self, every="1ms", end_ns=12e6):
        event = [{"at": "3ms"}]
        measure = {"goodput": {"by": "flow", "every": every}}
        self.scenario = {"failures": {"event": event}, "measure": measure}
        self.summary = {"end_ns": end_ns}

    def over_time(self, name, *, max_points):
        # What is under way arrives within 1.5 ms.
        lost = [[1e6 * n, 8e9 * (n < 6)] for n in range(1, 13)]
        return {"flow0": lost, "flow1": [[time, 8e9] for time, _ in lost]}


def test_a_flow_is_silenced_if_whole_intervals_after_the_failure_are_empty():
    assert recovery.silenced(Silenced()) == 0.5
    assert recovery.silenced(Silenced(every="10ms")) is None, "no interval lies in the time looked at"
    assert recovery.silenced(Silenced(end_ns=9e6)) is None, "the run ends before that time does"


def test_without_a_failure_nothing_recovers():
    run = Failing([8e9] * 10)
    run.scenario = {}
    assert recovery.recovery_ns(run) is None
    assert recovery.deficit_bytes(run) is None
