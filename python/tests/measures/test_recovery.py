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


def test_goodput_that_stays_low_until_the_link_is_back_counts_until_then():
    assert recovery.recovery_ns(Failing([4e9] * 10)) == pytest.approx(1e6)


def test_the_end_of_an_event_that_lasts_is_a_change():
    run = Failing([4e9] * 10)
    run.rates[20:] = [0.0] * 10  # the flows have ended
    run.scenario = {"failures": {"event": [{"at": "1ms", "lasts": "1ms"}]}}
    assert recovery.recovery_ns(run) == pytest.approx(1e6)
    assert recovery.deficit_bytes(run) == pytest.approx(4e9 * 1e6 / 8e9)


def test_goodput_that_was_measured_less_often_counts_for_its_whole_interval():
    run = Failing([])
    run.scenario["measure"] = {"goodput": {"every": "1ms"}}
    run.over_time = lambda *_, **options: {"a": [[1e6, 8e9], [2e6, 6e9], [3e6, 8e9]]}
    assert recovery.deficit_bytes(run) == pytest.approx(2e9 * 1e6 / 8e9)


def test_without_a_failure_nothing_recovers():
    run = Failing([8e9] * 10)
    run.scenario = {}
    assert recovery.recovery_ns(run) is None
    assert recovery.deficit_bytes(run) is None
