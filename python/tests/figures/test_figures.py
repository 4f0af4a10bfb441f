"""Figures as objects: what they draw, what they say when nothing can be drawn, how they become files."""

from __future__ import annotations

import json
import re

import pytest

import weftline
from weftline import _native
from weftline.errors import InputError
from weftline.figures import export, load_figures, marks, notebook, specs, time_figures
from weftline.figures.plots import Plots
from weftline.measures import sharing
from weftline.measures.lines import Line, Mean, lines_of
from weftline.measures.over_seeds import cumulative, queue_cdf
from weftline.measures.over_time import Interval
from weftline.report import answer_text, headline, run_page, sweep_page, why_page
from weftline.reproduce import panels
from weftline.reproduce.experiments import FigureDefinition

pytestmark = pytest.mark.skipif(
    not getattr(_native, "__file__", None), reason="the native module is not built (maturin develop)"
)

SCENARIO = {
    "name": "drawn",
    "topology": {"kind": "leaf-spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 4},
    "workload": [
        {"kind": "poisson", "sizes": "google-rpc", "load": 0.6, "duration": "200us"},
        {"kind": "flows", "flows": [{"src": n, "dst": 4, "size": "500KB", "start": "0us"} for n in (0, 1)]},
    ],
    "measure": {
        "queues": {"ports": "*", "every": "5us"},
        "queue_histogram": {"ports": "leaf*.*"},
        "utilisation": {"ports": "*", "every": "5us"},
        "goodput": {"by": "flow", "flows": ["0-3"], "every": "5us"},
    },
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return weftline.run(SCENARIO, out=tmp_path_factory.mktemp("run") / "r")


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A run that measured nothing and finished nothing."""
    endless = {"kind": "bulk", "hosts": "0", "to": "1"}
    scenario = {"topology": {"kind": "star", "hosts": 2}, "workload": [endless], "run": {"until": "50us"}}
    return weftline.run(scenario, out=tmp_path_factory.mktemp("bare") / "r")


def values(figure):
    return figure.spec["data"]["values"]


def drawn_without_warnings(figure, capfd):
    vl_convert = pytest.importorskip("vl_convert", reason="vl-convert-python is not installed")
    svg = vl_convert.vegalite_to_svg(figure.spec, show_warnings=True)
    assert "WARN" not in "".join(capfd.readouterr())
    return svg


FIGURES = {
    "slowdown": lambda plot: plot.fct_slowdown(),
    "decades": lambda plot: plot.fct_slowdown(bins="decades"),
    "cdf": lambda plot: plot.cdf(),
    "fct": lambda plot: plot.cdf("fct_ns"),
    "goodput of flows": lambda plot: plot.cdf("goodput_bps"),
    "queues": lambda plot: plot.queues(),
    "heat": lambda plot: plot.queue_heat(),
    "goodput": lambda plot: plot.goodput(),
    "utilisation": lambda plot: plot.over_time("utilisation"),
    "fairness": lambda plot: plot.fairness(),
    "network": lambda plot: plot.network(),
}


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_without_a_warning_and_names_its_axes_with_units(name, run, capfd):
    svg = drawn_without_warnings(FIGURES[name](run.plot), capfd)
    output = " ".join(re.findall(r">([^<>]+)</text>", svg))
    units = r"\((KB|us|ms|%|Gb/s|bytes)\)|slowdown|flow size"
    assert re.search(units, output), output


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_in_grey_has_no_colour_left(name, run):
    spec = export.for_print(FIGURES[name](run.plot), width="column", grey=True)
    colours = re.findall(r"#[0-9A-Fa-f]{6}", json.dumps(spec))
    assert all(len({c[1:3].lower(), c[3:5].lower(), c[5:7].lower()}) == 1 for c in colours), colours
    assert "yellow" not in json.dumps(spec)


@pytest.mark.parametrize("kind", ["svg", "pdf", "png", "json"])
def test_a_figure_is_saved_by_its_extension(kind, run, tmp_path):
    pytest.importorskip("vl_convert", reason="vl-convert-python is not installed")
    path = run.plot.cdf().save(tmp_path / "deep" / f"f.{kind}", width="column")
    begin = {"svg": b"<svg", "pdf": b"%PDF", "png": b"\x89PNG", "json": b"{"}
    assert path.read_bytes().startswith(begin[kind])


@pytest.mark.parametrize(("width", "points"), [("column", 241), ("ieee-page", 516), (400, 400)])
@pytest.mark.parametrize("name", ["slowdown", "cdf", "heat", "network"])
def test_a_figure_for_a_paper_is_as_wide_as_its_column(name, width, points, run):
    vl_convert = pytest.importorskip("vl_convert", reason="vl-convert-python is not installed")
    svg = vl_convert.vegalite_to_svg(export.for_print(FIGURES[name](run.plot), width=width))
    drawn = float(re.search(r'width="([\d.]+)"', svg)[1])
    assert 0.8 * points < drawn < 1.1 * points, drawn


@pytest.mark.parametrize("bins", ["equal-count", "decades"])
def test_percentiles_of_too_few_flows_are_left_out_of_curves_and_their_tables(bins, tmp_path):
    """380 flows are ten bins of 38: a p95 needs 40 flows, a p99 200."""
    traffic = [{"src": n % 4, "dst": 4, "size": "1KB", "start": f"{n}us"} for n in range(380)]
    if bins == "equal-count":
        traffic = [flow | {"size": f"{1000 + n}B"} for n, flow in enumerate(traffic)]
    else:
        traffic = [flow | {"size": "1KB" if n < 150 else "50KB"} for n, flow in enumerate(traffic)]
    scenario = {"topology": {"kind": "star", "hosts": 5}, "workload": [{"kind": "flows", "flows": traffic}]}
    figure = weftline.run(scenario, out=tmp_path / "r").plot.fct_slowdown(bins=bins)
    expected = {"p50"} if bins == "equal-count" else {"p50", "p95", "p99"}
    assert {row["panel"] for row in values(figure)} == expected
    few = "p99 of bins with fewer than 200" if bins == "equal-count" else "p99 of sizes with fewer than 200"
    assert few in figure.caption
    assert figure.tables[0].rows[0][3] == "–" and figure.tables[0].rows[0][1] != "–"


def test_wrong_names_get_the_nearest(run, tmp_path):
    with pytest.raises(InputError, match='did you mean "column"'):
        run.plot.cdf().save(tmp_path / "f.svg", width="colum")
    with pytest.raises(InputError, match=r"expected a file that ends in \.svg"):
        run.plot.cdf().save(tmp_path / "f.gif")
    with pytest.raises(InputError, match='expected "equal-count" or "decades"'):
        run.plot.fct_slowdown(bins="sizes")
    with pytest.raises(InputError, match="expected one of slowdown, fct_ns"):
        run.plot.cdf("size")


def test_what_was_not_measured_names_the_key_that_asks_for_it(bare):
    for draw, output in (
        (bare.plot.queues, "measure.queue_histogram"),
        (bare.plot.queue_heat, "measure.queues"),
        (bare.plot.goodput, "measure"),
        (bare.plot.fairness, "measure.goodput"),
        (bare.plot.fct_slowdown, "no flow of these runs finished"),
    ):
        with pytest.raises(InputError, match=output):
            draw()
    assert bare.plot.network().spec["layer"]


def shares(found):
    """Return the cumulative curve of some values, each counted by itself."""
    return [(value, sum(v <= value for v in found) / len(found)) for value in sorted(set(found))]


def test_a_cumulative_curve_has_the_share_at_or_below_each_distinct_value(run):
    points = [tuple(point) for point in run.distribution("slowdown", max_points=0)]
    assert points == shares([row["slowdown"] for row in run.flows.to_dicts() if row["slowdown"] is not None])
    p99 = next(value for value, share in points if share > 0.99)
    assert p99 == pytest.approx(run.summary["slowdown"]["p99"])
    thin = [tuple(point) for point in run.distribution("slowdown", max_points=6)]
    assert len(thin) <= 6 and set(thin) <= set(points)
    assert (thin[0], thin[-1]) == (points[0], points[-1])


def test_a_drawn_curve_begins_at_zero_and_its_caption_has_what_is_left_out(tmp_path):
    cut = weftline.run(SCENARIO | {"run": {"until": "60us"}}, out=tmp_path / "r")
    left = cut.summary["flows"] - cut.summary["flows_done"]
    figure, (value, share) = cut.plot.cdf(), cut.distribution("slowdown")[0]
    start, first = values(figure)[:2]
    assert start["x"] == first["x"] == pytest.approx(value, rel=1e-4)
    assert start["y"] == 0 and first["y"] == pytest.approx(100 * share, rel=1e-5)
    assert left and figure.caption.startswith(f"Flows that finished. Left out: {left} of ")


def test_a_line_of_which_no_flow_finished_is_in_the_captions(run, bare):
    left = bare.summary["flows"]
    figures = weftline.plot({"A": run, "B": bare})
    for figure in (figures.cdf(), figures.fct_slowdown(), figures.fct_slowdown(bins="decades")):
        assert {row["line"] for row in values(figure)} == {"A"}
        assert f"Left out: {left} of {left} flows unfinished of B" in figure.caption


def test_a_line_without_the_series_is_in_the_caption(run, bare):
    caption = weftline.plot({"A": run, "B": bare}).over_time("goodput_bps").caption
    assert caption.startswith("Not measured in B.")


def test_a_heat_map_holds_the_longest_sample_of_each_span(run):
    rows = values(run.plot.queue_heat())
    series = run.over_time("queue_bytes", max_points=0)
    port = max(series, key=lambda name: max(v for _, v in series[name]))
    longest = max(value for _, value in series[port])
    assert max(row["y"] for row in rows if row["port"] == port) == pytest.approx(longest / 1000, rel=1e-4)
    assert all(row["y"] > 0 and row["x"] < row["to"] for row in rows)


def test_cells_of_a_heat_map_are_as_long_as_the_time_between_its_samples():
    class Measured:
        scenario, summary = {"measure": {"queues": {"ports": "*", "every": "100ns"}}}, {}

        def over_time(self, metric, max_points):
            return {"p0": [[100.0 * n, 5e3] for n in range(1, 34)]}

    (drawn,) = time_figures.queue_heats("Queues", [Line("A", [Measured()])])
    cells = [(row["x"], row["to"]) for row in values(drawn)]
    assert cells == [(100 * n, 100 * (n + 1)) for n in range(33)]


def test_heat_maps_side_by_side_have_one_scale():
    class Measured:
        def __init__(self, longest):
            self.longest = longest
            events = [{"at": "1us", "switch": "s0"}, {"at": "3us", "switch": "s0"}]
            self.scenario, self.summary = {"failures": {"event": events}}, {}

        def over_time(self, metric, max_points):
            return {"p0": [[1000.0, 0.0], [2000.0, self.longest]], "p1": [[1000.0, 0.0]]}

    lines = [Line("low", [Measured(5e3)]), Line("high", [Measured(80e3)])]
    drawn = time_figures.queue_heats("Queues", lines)
    heats, *failures = (figure.spec["layer"][0] for figure in drawn), drawn[0].spec["layer"][1:]
    assert [layer["encoding"]["color"]["scale"]["domainMax"] for layer in heats] == [80, 80]
    # The failure after the last sample is not drawn.
    assert failures[0][0]["mark"]["type"] == "rule" and len(failures[0][0]["data"]["values"]) == 1
    assert "1 port never had one." in drawn[0].caption and "seed" not in drawn[0].caption


def test_what_a_run_planned_and_did_not_reach_is_no_failure_of_it():
    class Recorded:
        def __init__(self, summary):
            self.scenario = {"failures": {"event": [{"at": "1ms", "switch": "s0"}]}}
            self.summary = summary

    assert [one.text for one in marks.failure_events(Recorded({}))] == ["s0 down"]
    assert marks.failure_events(Recorded({"failures": []})) == []


def test_fairness_of_equal_shares_is_one_and_of_one_among_four_a_quarter(monkeypatch):
    class Measured:
        def __init__(self, series):
            self.series = series

            self.scenario, self.summary = {}, {"end_ns": 100.0}

        def over_time(self, metric, *, every_ns=0, max_points):
            return self.series

    names = ["flow0", "flow1", "flow2", "flow3"]
    monkeypatch.setattr(sharing, "under_way", lambda run: {name: [(0.0, 100.0)] for name in names})
    times = [float(t) for t in range(1, 101)]
    equal = Measured({name: [[t, 5.0] for t in times] for name in names})
    assert {index for _, index in time_figures.jain_over_time(equal)} == {1.0}
    alone = Measured({n: [[t, 5.0 if n == names[0] else 0.0] for t in times] for n in names})
    assert {index for _, index in time_figures.jain_over_time(alone)} == {0.25}


def test_flows_that_have_not_started_or_have_ended_do_not_count_as_unfair_shares():
    """Four flows start at 0, 10, 20 and 30 ns, and the last two end at 60 ns; all shares are equal."""
    lives = {f"flow{n}": (10.0 * n, 60.0 if n > 1 else 100.0) for n in range(4)}

    def share(name, time):
        alive = [one for one, (start, end) in lives.items() if start < time <= end]
        return 12.0 / len(alive) if name in alive else 0.0

    times = range(1, 101)
    series = {name: [Interval(t - 1.0, float(t), share(name, t), 1.0) for t in times] for name in lives}
    found = sharing.of_living(series, {name: [life] for name, life in lives.items()})
    assert {index for _, index in found} == {1.0}
    assert [time for time, _ in found] == [float(t) for t in range(11, 101)]


def test_a_group_does_not_count_as_unfair_while_it_has_nothing_under_way():
    """One group rests from 20.5 to 40.5 ns, and for 0.5 ns at 60; both have equal shares otherwise."""
    times = {"a": [(0.0, 20.5), (40.5, 60.0), (60.5, 100.0)], "b": [(0.0, 100.0)]}
    ends = range(1, 101)
    rates = {"a": [0.0 if 21 <= t <= 40 else 5.0 for t in ends], "b": [5.0] * 100}
    series = {name: [Interval(t - 1.0, float(t), of[t - 1], 1.0) for t in ends] for name, of in rates.items()}
    found = sharing.of_living(series, times)
    assert {index for _, index in found} == {1.0}
    assert [time for time, _ in found] == [float(t) for t in ends if not 21 <= t <= 41]
    broken = list(time_figures._broken([(1.0, 1.0), (2.0, 0.5), (5.0, 1.0)]))
    assert broken == [(1.0, 1.0), (2.0, 0.5), (4.0, None), (5.0, 1.0)]


def test_a_load_curve_has_a_band_for_the_interval_where_there_is_one(capfd):
    points = [("A", 0.3, Mean(2.0, 0.25)), ("A", 0.5, Mean(3.0, 0.5)), ("B", 0.3, Mean(4.0))]
    figure = load_figures.curve("c", points, axes=("load", "slowdown"))
    assert [(r.get("low"), r.get("high")) for r in values(figure)] == [(1.75, 2.25), (2.5, 3.5), (None, None)]
    assert "95 % interval" in figure.caption
    drawn_without_warnings(figure, capfd)


def test_a_figure_shows_itself_in_a_notebook_and_its_specification_is_valid_json(run):
    found = run.plot.cdf()._repr_mimebundle_()
    assert found["text/plain"].startswith("Slowdown of all flows") or "slowdown" in found["text/plain"]
    json.dumps(found[notebook.VEGA_LITE], allow_nan=False)
    assert found["image/svg+xml"].startswith("<svg")


def test_runs_side_by_side_are_drawn_as_lines(run, tmp_path):
    other = weftline.run(SCENARIO, set={"transport.controller.kind": "dctcp"}, out=tmp_path / "d")
    figure = weftline.plot(run, other).cdf()
    assert {row["line"] for row in values(figure)} == {"hpcc", "dctcp"}
    with pytest.raises(InputError, match="at least one run"):
        weftline.plot()


def test_paths_known_rises_to_all_flows(tmp_path):
    from weftline.cli import start

    scenario, *_ = start.write("path-tracing", tmp_path / "p.toml")
    run = weftline.run(scenario, out=tmp_path / "r")
    figure = run.plot.paths_known()
    rows = values(figure)
    assert max(row["y"] for row in rows) == 100.0
    assert {row["line"] for row in rows} <= {"1 switch", "3 switches", "5 switches"}
    both = weftline.figures.plots.Plots([Line("A", [run, run])]).paths_known()
    assert both.caption == "Flows of all seeds together." and figure.caption == ""
    assert [int(row[1]) for row in both.tables[0].rows] == [2 * int(row[1]) for row in figure.tables[0].rows]


def test_the_scenario_in_words_says_what_differs(run, tmp_path):
    other = weftline.run(SCENARIO, set={"transport.controller.kind": "dctcp"}, out=tmp_path / "d")
    output = answer_text.scenario(lines_of([run, other]), None)
    assert output[0] == "Network: leaf-spine."
    assert any("RDMA with hpcc; packets carry INT (hpcc); RDMA with dctcp (dctcp)" in text for text in output)
    assert sum(text.startswith("Traffic") for text in output) == 1


def test_the_answer_of_one_seed_names_nobody(run, bare, tmp_path):
    other = weftline.run(SCENARIO, set={"transport.controller.kind": "dctcp"}, out=tmp_path / "d")
    found = lines_of([run, other])
    output = [text for text in answer_text.answer(found) if "lowdown" in text and "separated" in text]
    assert output and all("one seed" in text for text in output if "hpcc" in text)
    assert not any("lowest with" in text for text in answer_text.answer(found))
    assert answer_text.answer(lines_of([run]))[0].startswith("Half of the flows that finished take at most ")
    assert answer_text.answer(lines_of([bare])) == ["No flow finished, so there is no completion time."]


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    over = {
        "scheme": {name: {"transport.controller.kind": name} for name in ("hpcc", "dctcp")},
        "workload.0.load": [0.3, 0.6],
    }
    asked = {"metrics": ["slowdown_p50"], "answer": "slowdown_p50 < 1000", "along": "load"}
    folder = tmp_path_factory.mktemp("sweep") / "s"
    return weftline.sweep(SCENARIO, over, seeds=2, report=asked, name="both", out=folder)


def test_a_sweep_is_drawn_over_its_numbers_with_the_intervals_that_its_table_has(swept):
    figure = swept.plot()
    rows = values(figure)
    assert {(row["line"], row["x"]) for row in rows} == {
        (scheme, load) for scheme in ("hpcc", "dctcp") for load in (0.3, 0.6)
    }
    output = {(e["scheme"], float(e["load"])): e for e in swept.estimates}
    for row in rows:
        estimate = output[row["line"], row["x"]]
        assert row["y"] == pytest.approx(estimate["mean"], rel=1e-3)
        assert row["high"] == pytest.approx(estimate["high"], rel=1e-3)
    with pytest.raises(InputError, match="not an axis of numbers"):
        swept.plot(along="scheme")
    with pytest.raises(InputError, match="recovery has no value in any combination of this sweep"):
        swept.plot("recovery")


def test_a_sweep_names_the_unit_of_its_axis_and_the_points_and_lines_that_are_not_drawn(tmp_path):
    class Fails(weftline.Controller):
        def on_ack(self, ack):
            assert self.flow.line_rate_bps != 20e9

    class Window(weftline.Controller):
        def on_ack(self, ack):
            self.cwnd_bytes = 5000

    laws = {"fails": Fails, **{f"w{i}": Window for i in range(sweep_page.MAX_LINES)}}
    scenario = {
        "topology": {"kind": "star", "hosts": 2},
        "workload": [{"kind": "flows", "flows": [{"src": 0, "dst": 1, "size": "2KB"}]}],
    }
    over = {
        "law": {name: {"transport.controller.kind": f"python:{name}"} for name in laws},
        "topology.host_link.rate": ["10Gbps", "20Gbps", "40Gbps"],
    }
    found = weftline.sweep(scenario, over, controllers=laws, seeds=1, out=tmp_path / "s")
    figure = found.plot("slowdown_p50")
    assert "rate (Gbps)" in json.dumps(figure.spec)
    assert "Without a value: fails, 20Gbps." in figure.caption
    lines = sweep_page.MAX_LINES
    assert f"The first {lines} of {lines + 1} lines are drawn." in figure.caption
    assert sweep_page.write(found, str(tmp_path / "page.html")).is_file()


def test_the_page_of_a_sweep_begins_with_who_keeps_the_bound(swept, capsys):
    from weftline.cli.main import main

    assert main(["report", str(swept.path), "--question", "Who?"]) == 0
    text = (swept.path / "report.html").read_text()
    assert capsys.readouterr().out.strip().endswith("report.html")
    assert ">Who?<" in text and re.search(r"Kept: [^<]*hpcc, load 0\.3", text)
    assert "Slowdown, median over load" in text and "How to run it again" in text


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("seeds")
    return [weftline.run(SCENARIO | {"seed": seed}, out=folder / str(seed)) for seed in (1, 2, 3)]


def panel_of(kind, runs):
    options = {"metric": "queue_bytes"} if kind == "over-time" else {"metric": "fct_mean"}
    definition = FigureDefinition(name="f", title="F", kind=kind, lines="scheme", options=options)
    return panels.Panel(figure=definition, choice=(), lines=[Line("A", runs)], published=[], title="")


OF_ALL_SEEDS = ("slowdown", "queue-cdf", "bars", "cdf", "groups", "comparison")


@pytest.mark.parametrize("kind", OF_ALL_SEEDS)
def test_the_order_of_seeds_changes_no_number_of_a_table(kind, seeds):
    one, other = panels.tables_of([panel_of(kind, seeds)]), panels.tables_of([panel_of(kind, seeds[::-1])])
    assert one and one == other


@pytest.mark.parametrize("name", ["slowdown", "decades", "cdf", "fct", "goodput of flows", "queues"])
def test_curves_of_shares_are_of_all_seeds_in_any_order(name, seeds):
    draw = FIGURES[name]
    one, other = (draw(weftline.figures.plots.Plots([Line("A", runs)])) for runs in (seeds, seeds[::-1]))
    assert (one.spec, one.caption, one.tables) == (other.spec, other.caption, other.tables)
    assert one.spec != draw(seeds[0].plot).spec


def test_curves_over_time_name_the_seed_that_is_drawn(seeds):
    for kind in ("over-time", "groups"):
        (section,) = panels.sections_of([panel_of(kind, seeds[::-1])])
        assert section.figures[0].caption.startswith("Only the run of seed 3 is shown.")
        (section,) = panels.sections_of([panel_of(kind, seeds[:1])])
        assert "seed" not in section.figures[0].caption


def test_whatever_a_page_shows_of_one_run_of_several_names_its_seed(seeds):
    def texts(runs):
        lines = [Line("A", runs)]
        (view,) = run_page.network_sections(lines, None)[0].networks
        (slowest,) = why_page.slowest_section(lines)
        figures = [figure for section in run_page.figure_sections(lines) for figure in section.figures]
        of_page = {figure.title: figure.caption for figure in figures}
        names = ("Queues by port and time", "Goodput over time", "Fairness over time")
        plot = weftline.figures.plots.Plots(lines)
        drawn = [plot.queue_heat(), plot.fairness(), plot.network()]
        captions = [figure.caption for figure in drawn]
        return [" ".join(view.notes), slowest.text, *captions, *(of_page[name] for name in names)]

    one = "Only the run of seed 3 is shown."
    assert [text for text in texts(seeds[::-1]) if one not in text] == []
    assert not any("seed" in text for text in texts(seeds[:1]))


def test_queues_of_several_seeds_are_pooled_and_their_percentiles_averaged(seeds):
    of = [run.queues for run in seeds]
    samples = [found["percentiles"]["samples"] for found in of]
    shorter = sum(round(found["cdf"][0][1] * n) for found, n in zip(of, samples, strict=True))
    line = Line("A", seeds)
    assert all(found["cdf"][0][0] == 1000 for found in of)
    assert queue_cdf(line)[0] == (1000, shorter / sum(samples))
    assert queue_cdf(line)[-1][1] == 1
    (table,) = panels.tables_of([panel_of("queue-cdf", seeds)])
    assert table.rows[0][3] == line.metric_text("queue_p99") and "[" in table.rows[0][3]
    assert "means over the seeds" in table.note


def test_ports_of_hosts_are_not_drawn_with_those_of_switches(tmp_path):
    every = SCENARIO | {"measure": {"queue_histogram": {"ports": "*", "every": "1us"}}}
    switches = SCENARIO | {"measure": {"queue_histogram": {"ports": ["leaf*.*", "spine*.*"], "every": "1us"}}}
    hosts = SCENARIO | {"measure": {"queue_histogram": {"ports": "host*.*", "every": "1us"}}}
    runs = [
        weftline.run(one, out=tmp_path / str(number)) for number, one in enumerate((every, switches, hosts))
    ]
    figures = [Plots([Line("A", [run])]).queues() for run in runs]
    assert values(figures[0]) == values(figures[1]) != values(figures[2])
    titles = [figure.title for figure in figures]
    assert titles == ["Queue length of switch ports"] * 2 + ["Queue length of host ports"]
    assert "12 ports of switches together" in figures[0].caption
    assert "The 8 ports of hosts that were sampled too are not drawn" in figures[0].caption
    drawn, whole = figures[0].tables[0].rows
    assert drawn == figures[1].tables[0].rows[0] and drawn[1] == "12 switch ports"
    assert whole[1] == "12 switch ports and 8 host ports" and drawn[4] != whole[4]
    line = Line("A", runs[:1])
    assert whole[4] == line.metric_text("queue_p99")
    titles = [card.title for card in headline.key_numbers([line])]
    assert "queue p99 (12 switch ports and 8 host ports)" in titles


def test_no_two_of_64_lines_have_colour_dash_and_marker_in_common():
    labels = [str(number) for number in range(64)]
    channels = marks.distinct_rows([], labels, marks=True)["encoding"]
    found = [[str(mark) for mark in channels[name]["scale"]["range"]] for name in ("color", "strokeDash")]
    assert len(set(zip(*found, strict=True))) == 64
    assert found[0] == list(marks.COLOURS) * 8 and found[1][:8] == [str(dash) for dash in marks.DASHES]


def test_a_network_is_coloured_by_a_series_that_it_knows_and_that_was_measured(run):
    assert run.plot.network().spec == run.plot.network("utilisation").spec
    assert run.plot.network("queue_bytes").spec != run.plot.network().spec
    with pytest.raises(InputError, match='no series "queue": did you mean "queue_bytes"'):
        run.plot.network("queue")
    with pytest.raises(InputError, match=r"ask for it by measure\.port_events"):
        run.plot.network("drops")
    with pytest.raises(InputError, match='no series "queue_byts": did you mean "queue_bytes"'):
        run.plot.over_time("queue_byts")


def test_a_line_keeps_its_colour_in_figures_that_lack_others(run, bare):
    def marks_of(figure):
        channels = dict(marks._channels_of_lines(figure.spec))
        return {name: dict(zip(one["domain"], one["range"], strict=True)) for name, one in channels.items()}

    lines = [Line("bare", [bare]), Line("run", [run])]
    figures = [figure for section in run_page.figure_sections(lines) for figure in section.figures]
    found = {figure.title: marks_of(figure) for figure in figures}
    lacking = [one for one in found.values() if list(one.get("color", {})) == ["run"]]
    assert lacking and all(one["color"]["run"] == marks.COLOURS[1] for one in lacking)
    assert all(one["strokeDash"]["run"] == marks.DASHES[1] for one in lacking)
    assert found["FCT slowdown by flow size"]["shape"]["run"] == marks.SHAPES[1]
    assert marks_of(Plots(lines).cdf())["color"] == {"run": marks.COLOURS[1]}
    spec = marks.distinct_rows([], ["run, 3 switches", "run, 5 switches"], marks=False)
    marks.keep_marks(spec, ["bare", "run"])
    assert spec["encoding"]["color"]["scale"]["range"] == [marks.COLOURS[1]] * 2
    assert spec["encoding"]["strokeDash"]["scale"]["range"] == list(marks.DASHES[:2])


def test_flows_of_several_lines_are_drawn_each_or_the_caption_names_what_is(run):
    def drawn(*labels):
        lines = [Line(label, [run]) for label in labels]
        asked = {"metric_name": "goodput_bps", "axis": "goodput (b/s)", "combine": "each"}
        figure = specs.over_time("F", lines, **asked)
        return list(dict.fromkeys(row["line"] for row in values(figure))), figure.caption

    flows = list(run.over_time("goodput_bps"))
    assert len(flows) == 4
    means = "Values are means over 5 us."
    assert drawn("A", "B") == ([f"{label}, {flow}" for label in "AB" for flow in flows], means)
    largest = f"Each line is the largest value of its flows, groups or ports at each time. {means}"
    assert drawn("A", "B", "C") == (["A", "B", "C"], largest)


def test_flows_of_several_seeds_are_pooled(seeds):
    found = [row["slowdown"] for run in seeds for row in run.flows.to_dicts() if row["slowdown"] is not None]
    curve = cumulative(Line("A", seeds), "slowdown", max_points=0)
    assert curve == shares(found)
    for limit in (1, 2, 7, 20):
        thin = cumulative(Line("A", seeds), "slowdown", max_points=limit)
        assert len(thin) <= limit and set(thin) <= set(curve) and thin[-1] == curve[-1]
        assert limit == 1 or thin[0] == curve[0]


def test_a_figure_of_steps_states_how_many_had_not_ended(tmp_path):
    job = {"kind": "collective", "operation": "ring-all-reduce", "bytes": "1MB", "repeat": 3}
    scenario = {"topology": {"kind": "star", "hosts": 4}, "workload": [job]}
    whole = weftline.run(scenario, out=tmp_path / "whole")
    assert "ended" not in whole.plot.jobs().caption
    second = whole.steps[1]["finish_ns"]
    cut = weftline.run(scenario, set={"run.until": f"{second + 1000:.0f}ns"}, out=tmp_path / "cut")
    assert cut.plot.jobs().caption.endswith("Left out: 1 of 3 steps, which had not ended.")
    none = weftline.run(scenario, set={"run.until": "1us"}, out=tmp_path / "none")
    with pytest.raises(InputError, match="no step of these runs has one"):
        none.plot.jobs()
    with pytest.raises(InputError, match="no digests of a query for paths were recorded"):
        whole.plot.paths_known()
