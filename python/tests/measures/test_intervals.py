"""Numbers of series cover the time that they claim, whatever the interval at which they were measured."""

import pytest

import weftline
from weftline.errors import InputError, RunFailed
from weftline.figures import goodput_figures, network_view, time_figures
from weftline.measures import curves, evidence, judgements, over_time, readings, recovery
from weftline.measures.lines import lines_of
from weftline.measures.metrics import METRICS, Flows, metric
from weftline.report import answer_text, run_page
from weftline.reproduce.experiments import FigureDefinition
from weftline.reproduce.panels import Panel
from weftline.sweeps import sweepfile

ENDLESS = {
    "topology": {"kind": "star", "hosts": 3},
    "workload": [
        {"kind": "flows", "flows": [{"src": n, "dst": 2, "size": "100MB", "start": "0us"} for n in (0, 1)]}
    ],
    "run": {"until": "190us"},
}


def value(name, run):
    return metric(name).read(run)


def test_means_until_a_time_are_over_the_whole_intervals_that_end_by_then(tmp_path):
    measure = {"utilisation": {"ports": ["s0->host2", "s0->host1"], "every": "30us"}}
    run = weftline.run({**ENDLESS, "measure": measure}, out=tmp_path / "run")
    of_port = over_time.intervals(run, "utilisation")
    for last, count in ((29e3, 0), (30e3, 1), (100e3, 3), (190e3, 6)):
        found = over_time.means_until(run, "utilisation", last)
        expected = {
            port: sum(one.value for one in of[:count]) / count for port, of in of_port.items() if count
        }
        assert found == pytest.approx(expected), last


@pytest.mark.parametrize("every", ["100us", "70us", "1ms"])
def test_goodput_counts_to_the_end_of_a_run_that_ends_inside_of_an_interval(tmp_path, every):
    def run(every):
        measure = {
            "goodput": {"by": "flow", "flows": [0, 1], "every": every},
            "utilisation": {"ports": "s0->host2", "every": every},
            "port_events": {"ports": "s0->host2", "every": every},
        }
        return weftline.run({**ENDLESS, "measure": measure}, out=tmp_path / every)

    fine, coarse = run("10us"), run(every)
    assert value("goodput_total", fine) > 80e9
    for name in ("goodput_total", "jain", "first_share", "mean of goodput_bps", "mean of utilisation"):
        assert value(name, coarse) == pytest.approx(value(name, fine), rel=1e-9), name
    for name in ("goodput_bps", "utilisation"):
        ours, theirs = (
            [points[0] for points in run.over_time(name, max_points=1).values()] for run in (coarse, fine)
        )
        assert [time for time, _ in ours] == [190e3] * len(ours)
        assert [mean for _, mean in ours] == pytest.approx([mean for _, mean in theirs])
    marks = [
        sum(count for _, count in run.over_time("ecn_marks", max_points=0)["s0.p2"]) for run in (coarse, fine)
    ]
    assert marks[0] == marks[1] == coarse.summary["ecn_marks"]


@pytest.mark.parametrize("end", ["200us", "200100ns"])
def test_a_last_interval_of_less_than_a_packet_changes_no_figure_and_no_mean(tmp_path, end):
    every = {"every": "50us"}
    measure = {
        "goodput": {"by": "flow", "flows": [0, 1], **every},
        "utilisation": {"ports": "s0->host2", **every},
        "port_events": {"ports": "s0->host2", **every},
    }
    run = weftline.run({**ENDLESS, "measure": measure}, set={"run.until": end}, out=tmp_path / end)
    assert len(run.over_time("utilisation")["s0.p2"]) == (4 if end == "200us" else 5)
    assert [time for time, _ in time_figures.jain_over_time(run)] == [5e4, 1e5, 1.5e5, 2e5]
    shown = network_view.view(lines_of([run])).data["runs"][0]["measures"]
    used = next(one for one in shown if one["title"] == "utilisation")
    assert len(used["values"]) == 4 and 95 < used["most"] < 101
    assert value("mean of ecn_marks", run) == pytest.approx(run.summary["ecn_marks"] / 4, rel=1e-3)
    assert value("max of utilisation", run) < 1.01
    for name in ("goodput_bps", "utilisation", "ecn_marks"):
        points = run.plot.over_time(name).spec["data"]["values"]
        assert {row["x"] for row in points} == {50, 100, 150, 200}, name
    definition = FigureDefinition(name="g", title="G", kind="groups", lines="scheme", options={})
    panel = Panel(figure=definition, choice=(), lines=lines_of([run]), published=[], title="")
    (figure,) = goodput_figures.draw_groups(panel, "G")
    times = {row["x"] for row in figure.spec["data"]["values"]}
    assert times == {5e-5, 1e-4, 1.5e-4, 2e-4}


def test_a_curve_of_many_intervals_is_thinned_to_means_and_ends_with_the_last_whole_one(tmp_path):
    measure = {"goodput": {"by": "flow", "flows": [0, 1], "every": "1us"}}
    run = weftline.run({**ENDLESS, "measure": measure}, set={"run.until": "100500ns"}, out=tmp_path / "run")
    all_points = curves.of_run(run, "goodput_bps").points["flow0"]
    assert [time for time, _ in all_points] == [1e3 * n for n in range(1, 101)]
    span = curves.span_ns([run], "goodput_bps", max_points=25)
    few = curves.of_run(run, "goodput_bps", span=span).points["flow0"]
    assert [time for time, _ in few] == [5e3 * n for n in range(1, 21)]
    assert few[1][1] == pytest.approx(sum(rate for _, rate in all_points[5:10]) / 5)


def test_a_run_that_ends_on_the_grid_has_no_more_rows(tmp_path):
    measure = {"goodput": {"by": "flow", "flows": [0], "every": "95us"}}
    run = weftline.run({**ENDLESS, "measure": measure}, out=tmp_path / "run")
    assert [time for time, _ in run.over_time("goodput_bps")["flow0"]] == [95e3, 190e3]


def test_loads_do_not_depend_on_whether_goodput_was_measured_and_coarse_intervals_give_none(tmp_path):
    def run(name, **measure):
        scenario = {
            "topology": {"kind": "star", "hosts": 8},
            "workload": [{"kind": "poisson", "size": "20KB", "load": 0.5, "duration": "200us"}],
            "run": {"until": "1ms"},
            "measure": measure,
        }
        return weftline.run(scenario, out=tmp_path / name)

    ports = {"ports": "*", "every": "10us"}
    alone = run("alone", utilisation=ports)
    both = run("both", utilisation=ports, goodput={"by": "group", "every": "10us"})
    names = ("utilisation_mean", "utilisation_max", "imbalance", "sent_share", "received_share")
    assert {name: value(name, alone) for name in names} == {name: value(name, both) for name in names}
    assert value("sent_share", both) > 0.4
    assert abs(value("backlog_growth", both)) < 0.1
    assert value("share poisson", both) == 1
    every = {"every": "1ms"}
    coarse = run("coarse", utilisation={**ports, **every}, goodput={"by": "group", **every})
    for name in (*names, "backlog_growth", "share poisson"):
        assert value(name, coarse) is None, name
    assert coarse.backlog()["half_bytes"] is None


def test_paused_counts_by_the_time_for_which_it_lasts(tmp_path):
    scenario = {
        "topology": {"kind": "star", "hosts": 9},
        "switch": {"buffer": "500KB"},
        "transport": {"controller": {"kind": "none"}},
        "workload": [{"kind": "incast", "size": "60KB"}],
        "measure": {"pauses": True},
    }
    run = weftline.run(scenario, out=tmp_path / "run")
    series, end = run.over_time("paused", max_points=0), run.summary["end_ns"]
    share = run.summary["paused_ns"] / (len(series) * end)
    assert 0 < share < 1 and any(len(points) > 2 for points in series.values())
    assert value("mean of paused", run) == value("share of paused = 1", run) == pytest.approx(share)
    for few in (
        run.over_time("paused", max_points=3),
        run.over_time("paused", every_ns=end / 3, max_points=0),
    ):
        assert [time for time, _ in few["host0.p0"]] == pytest.approx([end / 3, 2 * end / 3, end])
        total = sum(end / 3 * mean for points in few.values() for _, mean in points)
        assert total == pytest.approx(run.summary["paused_ns"])


class Series:
    """A run of 100 ns with one series."""

    def __init__(self, points):
        self.points, self.summary = points, {"end_ns": 100.0}
        every = {"every": "40ns"}
        keys = ("utilisation", "port_events", "disciplines", "queues")
        self.scenario = {"measure": dict.fromkeys(keys, every) | {"pauses": True}}

    def recorded(self, metric, *, max_points):
        return {"one": self.points}


def test_the_last_interval_counts_by_its_length():
    run = Series([[40.0, 1.0], [80.0, 2.0], [100.0, 9.0]])

    def of(text):
        return over_time.reader(text)(run)

    assert of("mean of utilisation") == pytest.approx((40 + 80 + 180) / 100)
    assert of("share of utilisation = 9") == pytest.approx(0.2)
    assert (of("max of utilisation"), of("min of utilisation"), of("median of utilisation")) == (2, 1, 1.5)
    assert of("floor of utilisation in 100ns") == 1
    assert of("max of queue_bytes") == 9 and of("mean of queue_bytes") == 4
    # Counts are of intervals of 40 ns: 12 in 2.5 of them.
    for name in ("drops", "ecn_marks", "pauses", "drops_buffer", "trimmed"):
        assert of(f"mean of {name}") == pytest.approx(12 / 2.5), name
        assert (of(f"max of {name}"), of(f"min of {name}"), of(f"median of {name}")) == (2, 1, 1.5)
        assert of(f"share of {name} = 9") == pytest.approx(0.2)
    assert of("mean of saturated_share") == of("mean of rate_top_bps") == of("mean of utilisation")


def test_of_intervals_those_count_that_begin_at_the_time_or_later():
    run = Series([[40.0, 1.0], [80.0, 2.0], [100.0, 9.0]])

    def of(text):
        return over_time.reader(text)(run)

    assert of("mean of utilisation after 80ns") == 9
    assert of("mean of utilisation after 40ns") == pytest.approx((2 * 40 + 9 * 20) / 60)
    assert of("mean of utilisation after 90ns") is of("mean of drops after 100ns") is None
    assert of("mean of queue_bytes after 80ns") == 5.5


@pytest.mark.parametrize("by", ["group", "flow"])
def test_goodputs_are_of_what_has_flows(by, tmp_path):
    def goodput(name, *starts):
        flows = [{"src": n, "dst": 2, "size": "100MB"} for n in (0, 1)]
        # The third group starts within the run, and delivers nothing by its end.
        late = [{"src": 3, "dst": 4, "size": "1KB", "start": start, "group": start} for start in starts]
        measure = {
            "by": by,
            "every": "10us",
            **({"flows": list(range(2 + len(late)))} if by == "flow" else {}),
        }
        scenario = {
            "topology": {"kind": "star", "hosts": 5},
            "workload": [{"kind": "flows", "flows": flows}, {"kind": "flows", "flows": late}][
                : 1 + bool(late)
            ],
            "run": {"until": "200us"},
            "measure": {"goodput": measure},
        }
        run = weftline.run(scenario, out=tmp_path / name)
        return value("mean of goodput_bps", run), value("min of goodput_bps after 100us", run)

    alone = goodput("alone")
    assert alone[1] > 0 and goodput("not due", "1s") == alone
    count = 1 if by == "group" else 2
    assert goodput("due", "199.9us") == (pytest.approx(alone[0] * count / (count + 1)), 0)


def test_series_have_the_units_of_their_tables():
    units = {
        "mean of utilisation": "share",
        "mean of paused": "share",
        "max of goodput_bps": "bit/s",
        "mean of drops_buffer": "number",
        "mean of rate_top_bps": "bit/s",
        "max of target_bps": "bit/s",
        "mean of queue_bytes": "bytes",
        "median of u": "number",
        "period of mode = 3": "ns",
    }
    assert {name: over_time.unit(name) for name in units} == units
    assert sweepfile._number_of("mean of utilisation", "60%") == pytest.approx(0.6)
    assert metric("mean of paused").text(0.05) == "5 %"


def test_a_state_lasts_until_it_changes():
    run = Series([[10.0, 1.0], [20.0, 0.0], [60.0, 1.0], [95.0, 0.0]])

    def of(text):
        return over_time.reader(text)(run)

    assert of("mean of paused") == pytest.approx(0.45)
    assert of("mean of paused after 50ns") == pytest.approx(0.7)
    assert of("share of paused = 0") == pytest.approx(0.55)
    assert (of("median of paused"), of("min of paused"), of("max of paused")) == (0, 0, 1)
    assert of("median of paused after 50ns") == 1
    # Of the spans of 10 ns only the second, and those from 60 to 90 ns, are paused throughout.
    assert of("floor of paused in 10ns") == pytest.approx(0.4)
    assert of("period of paused = 1") == 50


def test_a_time_to_recover_that_is_a_lower_bound_opens_every_verdict(monkeypatch):
    class Run:
        def __init__(self):
            self.summary, self.scenario = {"status": "done"}, {}

    monkeypatch.setattr(recovery, "has_recovered", lambda run: run is not runs[0])
    runs = [Run(), Run()]
    found = evidence.against(runs, "recovery", remark="")
    assert found == [judgements.Reason("recovered", "1 of 2 runs had not recovered")]
    assert evidence.left_text("recovery", runs) == "1 of 2 runs had not recovered"
    assert (
        evidence.against(runs, "deficit", remark="")
        == evidence.against(runs[1:] * 2, "recovery", remark="")
        == []
    )


def test_percentiles_of_queues_are_bins(tmp_path):
    scenario = {
        "topology": {"kind": "star", "hosts": 5},
        "workload": [{"kind": "poisson", "size": "700B", "load": 0.5, "duration": "200us"}],
        "measure": {
            "queue_histogram": {"ports": "s*->host*", "every": "1us"},
            "queues": {"ports": "s*->host*", "every": "1us"},
        },
    }
    run = weftline.run(scenario, out=tmp_path / "run")
    samples = [size for points in run.over_time("queue_bytes", max_points=0).values() for _, size in points]
    for edge, share in run.queues["cdf"]:
        assert sum(size < edge for size in samples) / len(samples) == pytest.approx(share)
    lower = value("queue_p99", run)
    assert sum(size < lower + 1000 for size in samples) >= 0.99 * len(samples)
    assert sum(size < lower for size in samples) < 0.99 * len(samples)
    below = f"{lower / 1000 + 1:g} KB"
    assert f"99 % of the samples find less than {below} in a queue" in answer_text.answer(lines_of([run]))[-1]
    assert readings.queue_bin_text(lower) == f"{lower / 1000:g} KB to {below}"


def test_a_run_that_failed_has_the_page_and_the_numbers_of_what_it_recorded(tmp_path):
    class Broken(weftline.Controller):
        def on_ack(self, ack):
            raise ValueError("broken")

    every = {"ports": "*", "every": "20us"}
    measure = {"goodput": {"by": "group", "every": "20us"}, "utilisation": every, "port_events": every}
    scenario = ENDLESS | {"measure": measure, "transport": {"controller": {"kind": "python:broken"}}}
    with pytest.raises(RunFailed):
        weftline.run(scenario, controllers={"broken": Broken}, out=tmp_path / "run")
    run = weftline.Run.read(tmp_path / "run")
    assert run.summary["status"] == "failed" and "end_ns" not in run.summary
    last = max(time for points in run.over_time("utilisation").values() for time, _ in points)
    assert over_time.end_ns(run) == last > 0
    assert "failed" in run_page.html(lines_of([run]))
    for name in METRICS:
        metric(name).value(run, Flows())


def test_numbers_of_series_refuse_spans_of_no_time_and_what_is_no_number():
    with pytest.raises(InputError, match="expected a span above 0, found 0us"):
        over_time.reader("floor of queue_bytes in 0us")
    with pytest.raises(InputError, match=r"expected a number, found 1\.2\.3"):
        over_time.reader("share of drops = 1.2.3")
