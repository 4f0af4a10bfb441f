"""Laws in Python that are not what their authors meant: errors with their place, and warnings of the run."""

from __future__ import annotations

import functools
import re

import pytest

pytest.importorskip("weftline._native")

import weftline
from weftline.errors import RunFailed

SCENARIO = {
    "topology": {"kind": "star", "hosts": 2, "host_link": {"rate": "10Gbps", "delay": "1us"}},
    "workload": [{"kind": "flows", "flows": [{"src": 0, "dst": 1, "size": "20KB"}]}],
    "transport": {"controller": {"kind": "python:x"}},
    "run": {"until": "1ms"},
}


class Law(weftline.Controller):
    def on_ack(self, ack):
        pass


class Int(Law):
    needs_int = True

    def __init__(self, flow, limit=20_000):
        super().__init__(flow)
        self.limit = limit


@pytest.fixture
def run(tmp_path):
    return lambda law: weftline.run(SCENARIO, controllers={"x": law}, out=tmp_path / "run", force=True)


def warnings_of(found):
    return [text for text in found.warnings if text.startswith('controller "x"')]


def test_what_makes_an_object_asks_for_the_telemetry_of_its_class(run):
    def make(flow):
        return Int(flow)

    def asks(flow):
        return Int(flow)

    asks.needs_int = True
    bytes_of_class = run(Int).summary["telemetry_bytes"]
    assert bytes_of_class > 0
    for law in (functools.partial(Int, limit=1), functools.partial(functools.partial(Int), limit=1), asks):
        assert run(law).summary["telemetry_bytes"] == bytes_of_class
    for law in (make, lambda flow: Int(flow), functools.partial(make)):
        with pytest.raises(RunFailed, match=r"objects of Int have needs_int = True, but .* no telemetry"):
            run(law)


def test_an_error_of_a_value_names_method_class_line_flow_and_time(run):
    class Nan(Law):
        def on_ack(self, ack):
            self.rate_bps = float("nan")

    line = Nan.on_ack.__code__.co_firstlineno
    place = rf"in on_ack of \S*Nan, \S*test_law_mistakes.py:{line}, flow 0, at \d+\.\d{{3}} us"
    with pytest.raises(RunFailed, match=rf"rate_bps is nan: expected a number of bit/s \({place}\)"):
        run(Nan)

    class Raises(Law):
        def on_ack(self, ack):
            raise ValueError("here")

    with pytest.raises(RunFailed, match=r"raised an exception in on_ack of \S*Raises, \S*, flow 0, at \d+"):
        run(Raises)
    with pytest.raises(RunFailed, match=r"none \(\S*:\d+\) made None: expected .* \(while .* of flow 0 was"):
        run(none)


def none(flow):
    return None


def law(name, value):
    """Return a law that sets one attribute after every acknowledgement."""
    return type("Sets", (Law,), {"on_ack": lambda self, ack: setattr(self, name, value)})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("rate_bps", -5e9, "rate_bps was -5000000000 in on_ack of Sets, .*: the flow sends at 1 bit/s"),
        ("rate_bps", 5, "rate_bps was 5 in on_ack of Sets, .*, flow 0, at .* us: a packet takes seconds"),
        ("cwnd_bytes", -3000, "cwnd_bytes was -3000 in on_ack of Sets, .*: it counts as 1 byte"),
        ("cwnd_bytes", 10, "cwnd_bytes was never more than 10: below one packet of 1000 bytes"),
        ("cwnd", 3000, "rate_bps and cwnd_bytes did not change in this run, .* attribute cwnd: "),
        ("rate_bsp", 1e9, "rate_bps and cwnd_bytes did not change in this run, .* attribute rate_bsp: "),
    ],
)
def test_what_a_law_probably_did_not_mean_is_a_warning(run, name, value, message):
    found = warnings_of(run(law(name, value)))
    assert len(found) == 1 and re.search(f'controller "x": {message}', found[0])


@pytest.mark.parametrize(
    ("name", "value"), [("rate_bps", 1e9), ("rate_bps", 20e9), ("cwnd_bytes", 1000), ("limit", 3000)]
)
def test_a_law_that_steers_has_no_warning_and_neither_has_one_that_does_nothing(run, name, value):
    assert not warnings_of(run(law(name, value)))


def test_a_method_that_nothing_calls_has_a_warning(run):
    class Cnp(Law):
        def on_cnp(self, now):
            self.rate_bps = 1e9

    class Misspelt(Law):
        def on_time_out(self, now):
            self.rate_bps = 1e9

    class Own(Law):
        def on_ack(self, ack):
            self.on_round(ack)

        def on_round(self, ack):
            self.rate_bps = 5e9

        def on_timeout(self, now):
            self.on_loss(now)

        def on_loss(self, now):
            self.rate_bps = 1e9

    (found,) = warnings_of(run(Cnp))
    assert re.fullmatch(
        'controller "x" has on_cnp, which nothing calls: .*the transport calls on_ack and on_timeout alone',
        found,
    )
    (found,) = warnings_of(run(functools.partial(Misspelt)))
    assert 'has on_time_out, which nothing calls: did you mean "on_timeout"? ' in found
    assert not warnings_of(run(Own)) and not warnings_of(run(Law))


def test_a_law_that_reads_telemetry_which_packets_do_not_have_has_a_warning(run):
    def on_ack(self, ack):
        self.rate_bps = 1e9 if ack.hops and ack.hops[0].queue_bytes > 10**9 else 5e9

    (found,) = warnings_of(run(type("Blind", (Law,), {"on_ack": on_ack})))
    assert found.startswith('controller "x": hops was empty whenever it was read: ')
    assert not warnings_of(run(type("Sees", (Int,), {"on_ack": on_ack})))


def test_an_attribute_like_an_output_is_the_laws_own_where_it_steers(run):
    class Own(Law):
        def on_ack(self, ack):
            self.rate = self.rate_bps * 0.9
            self.rate_bps = max(self.rate, 1e9)

    assert not warnings_of(run(Own))


def test_a_value_that_a_method_returns_is_ignored_with_a_warning_and_a_generator_is_an_error(run):
    class Returns(Law):
        def on_ack(self, ack):
            return 5e9

    class Yields(Law):
        def on_ack(self, ack):
            self.rate_bps = 1e9
            yield

    found = warnings_of(run(Returns))
    assert len(found) == 1
    assert re.search(r"on_ack returned 5000000000.0 in on_ack of \S*Returns, .*: it is ignored", found[0])
    with pytest.raises(RunFailed, match="on_ack returned a generator, so its body did not run"):
        run(Yields)


@pytest.mark.parametrize("name", ["rate_bps", "cwnd_bytes"])
def test_an_attribute_that_is_missing_within_a_property_is_an_error_of_the_property(run, name):
    class Computed(Law):
        rate_bps, cwnd_bytes = 1e9, None

        def __init__(self, flow):
            self.flow = flow

    setattr(Computed, name, property(lambda self: self.no_such_name))
    with pytest.raises(RunFailed, match="has no attribute 'no_such_name'"):
        run(Computed)

    class Slots:
        __slots__ = ("cwnd_bytes", "rate_bps")

        def __init__(self, flow):
            pass

        def on_ack(self, ack):
            pass

    assert not warnings_of(run(Slots))


def test_a_law_that_reads_marks_has_a_warning_where_switches_do_not_mark():
    class Reads(Law):
        def on_ack(self, ack):
            self.halve(ack)

        def halve(self, ack):
            self.rate_bps = self.rate_bps / 2 if ack.marked else 5e9

    def warns(law):
        off = {"switch.ecn.enabled": False}
        found = weftline.Scenario(SCENARIO, set=off, controllers={"x": law}).check()["warnings"]
        return any('the controller "x" of rdma reacts to marks' in text for text in found)

    assert warns(Reads) and warns(functools.partial(Reads)) and not warns(Law)


@pytest.mark.parametrize("name", ["rate_bps", "cwnd_bytes"])
def test_true_is_neither_a_rate_nor_a_window(run, name):
    with pytest.raises(RunFailed, match=f"{name} is True: expected a number of"):
        run(law(name, True))


def test_a_window_holds_its_bytes_in_packets_rounded_up(run):
    """A packet leaves while fewer bytes than the window are in flight, as in the HPCC authors' simulator."""

    def time_with(window):
        made = type("Sets", (Law,), {"__init__": lambda self, flow: set_window(self, flow, window)})
        return run(made).flows.to_dicts()[0]["fct_ns"]

    def set_window(law, flow, window):
        Law.__init__(law, flow)
        law.cwnd_bytes = window

    assert time_with(1000) == time_with(10) > time_with(1500) == time_with(2000)
