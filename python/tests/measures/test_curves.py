"""Curves of a series over time: entities are combined exactly, then thinned on one grid of spans."""

import itertools
import math

import pytest

from weftline.figures import plots, specs
from weftline.measures import curves, over_time
from weftline.measures.lines import Line
from weftline.report import sparks

EVERY = {"every": "10ns"}


class Measured:
    """A run of 40 000 ns that has one series, which it thins as the engine does: by means."""

    def __init__(self, series):
        self.series, self.summary = series, {"end_ns": 40000.0}
        keys = ("queues", "port_events", "controllers", "utilisation")
        self.scenario = {"measure": dict.fromkeys(keys, EVERY)}

    def recorded(self, metric, *, every_ns=0, max_points=400):
        if max_points == 1:
            return {name: points[:1] for name, points in self.series.items()}
        if over_time.series(metric).kind == "state":
            return {name: self.state(points, every_ns) for name, points in self.series.items()}
        if every_ns <= 10:
            return self.series
        return {name: means(points, every_ns) for name, points in self.series.items()}

    def state(self, changes, every_ns):
        found = []
        for end in range(1, round(40000 / every_ns) + 1):
            begin, end = (end - 1) * every_ns, end * every_ns
            spells = [*changes, [40000.0, 0]]
            lasts = sum(
                value * max(0, min(end, until) - max(begin, since))
                for (since, value), (until, _) in itertools.pairwise(spells)
            )
            found.append([end, lasts / every_ns])
        return found


def means(points, every_ns):
    spans = {}
    for time, value in points:
        spans.setdefault(math.ceil(time / every_ns - 1e-9), []).append(value)
    return [[number * every_ns, sum(of) / len(of)] for number, of in spans.items()]


def samples(value, first=1, last=4000):
    """Values every 10 ns, by the number of the sample."""
    return [[10.0 * n, value(n)] for n in range(first, last + 1)]


def test_the_longest_queue_of_a_span_is_its_longest_sample():
    """One sample in a thousand has a queue, at the one port or the other."""
    run = Measured({f"p{at}": samples(lambda n, at=at: 900.0 * (n % 1000 == at)) for at in (3, 7)})
    found = curves.of_run(run, "queue_bytes", combine="max")
    assert (found.span_ns, found.thinned, len(found.points[""])) == (100, "max", 400)
    assert [(time, value) for time, value in found.points[""] if value] == [
        (100.0 + 10000 * n, 900.0) for n in range(4)
    ]
    drawn = plots.Plots([Line("A", [run])]).over_time("queue_bytes")
    assert max(row["y"] for row in drawn.spec["data"]["values"]) == 0.9
    assert drawn.caption == "Values are the largest samples in spans of 100 ns."
    assert max(length for _, length in sparks._longest(run)) == 900


def test_flows_of_different_lengths_are_combined_at_common_times():
    """One flow has all of the rate, nine have little of it for a tenth of its time."""
    long, short = samples(lambda _: 10.0), samples(lambda _: 1.0, first=1000, last=1399)
    run = Measured({"flow0": long} | {f"flow{n}": short for n in range(1, 10)})
    largest = curves.of_run(run, "rate_bps", combine="max").points[""]
    assert len(largest) == 400 and {value for _, value in largest} == {10.0}
    total = dict(curves.of_run(run, "rate_bps", combine="sum").points[""])
    assert (total[9900.0], total[10100.0], total[13900.0], total[14100.0]) == (10, 19, 19, 10)


def test_internals_of_controllers_are_never_summed():
    run = Measured({f"flow{n}": samples(lambda _: 0.5) for n in range(9)})
    for lines in ([Line("A", [run])], [Line("A", [run]), Line("B", [run])]):
        figure = plots.Plots(lines).over_time("alpha")
        assert {row["y"] for row in figure.spec["data"]["values"]} == {0.5}
        assert figure.caption.startswith("Each line is the largest value of its flows, groups or ports")


def test_a_state_is_held_until_its_next_change_before_it_is_added():
    run = Measured({"a": [[0.0, 1.0]], "b": [[100.0, 1.0], [20050.0, 0.0]], "c": [[39000.0, 1.0]]})
    found = curves.of_run(run, "paused", combine="sum")
    total = dict(found.points[""])
    assert found.span_ns == 100 and found.is_combined
    assert [total[at] for at in (100, 200, 20000, 20100, 20200, 39000, 39100)] == [1, 2, 2, 1.5, 1, 1, 2]


def test_counts_are_summed_over_spans_whose_length_the_axis_names():
    run = Measured({"p0": samples(lambda n: float(n % 5 == 0)), "p1": samples(lambda _: 1.0)})
    found = curves.of_run(run, "drops", combine="sum")
    assert found.points[""][0] == (100.0, 12.0) and sum(value for _, value in found.points[""]) == 4800
    figure = specs.over_time("D", [Line("A", [run])], metric_name="drops", axis="drops in {span}")
    assert figure.spec["layer"][0]["encoding"]["y"]["title"] == "drops in 100 ns"


def test_of_too_many_samples_means_are_read_and_the_caption_names_them():
    run = Measured({"p0": samples(lambda n: float(n % 2))})
    found = curves.of_run(run, "queue_bytes", combine="max", max_samples=1500)
    assert found.read_ns == 50 and curves.notes([found], "max") == [
        "Values are the largest means over 50 ns in spans of 100 ns."
    ]


def test_lines_with_different_intervals_have_their_spans_in_common():
    ten, fifteen = Measured({}), Measured({})
    fifteen.scenario = {"measure": {"queues": {"every": "15ns"}}}
    assert curves.span_ns([ten, fifteen], "queue_bytes") == 120
    assert curves.span_ns([fifteen], "queue_bytes") == 105
    # The common multiple of 10 and 9.99 is 9990, a quarter of the run; that of 10 and 330 is short enough.
    close, long = Measured({}), Measured({})
    close.scenario = {"measure": {"queues": {"every": "9.99ns"}}}
    long.scenario = {"measure": {"queues": {"every": "330ns"}}}
    assert curves.span_ns([ten, close], "queue_bytes") == 100
    assert curves.span_ns([ten, long], "queue_bytes") == 330


def test_an_infinite_value_is_a_gap_in_a_curve_and_no_number():
    run = Measured({"flow0": samples(lambda n: None if n <= 15 else 2.0)})
    found = curves.of_run(Measured({"flow0": samples(lambda n: None, last=20)}), "ssthresh_bytes", span=10)
    assert {value for _, value in found.points["flow0"]} == {None}
    largest = curves.of_run(run, "ssthresh_bytes", combine="max").points[""]
    assert [value for _, value in largest[:4]] == [None, None, 2, 2]
    assert curves.notes([found], "each") == ["A line has a gap where its value is infinite."]
    numbers = [over_time.reader(f"{of} of ssthresh_bytes")(run) for of in ("mean", "max", "min", "median")]
    assert numbers == [None, None, 2, 2] and over_time.has_infinite(run, "mean of ssthresh_bytes")
    assert over_time.reader("share of ssthresh_bytes = 2")(run) == pytest.approx(3985 / 4000)
