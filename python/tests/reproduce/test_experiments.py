"""Experiments: their files, the runner, claims and the page."""

import copy
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import weftline
from weftline import runs
from weftline.cli.main import main
from weftline.errors import InputError
from weftline.measures import lines, steady
from weftline.reproduce import checks, claims, experiments, panels, runner
from weftline.sweeps import store
from weftline.toml_lines import Where

pytest.importorskip("vl_convert", reason="the page needs vl-convert-python")

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("name", list(experiments.names()))
def test_every_shipped_experiment_is_consistent(name):
    """That the engine accepts its scenarios is in test_engine.py and test_trials.py."""
    experiment = experiments.load(name)
    assert experiment.title and experiment.source
    for figure in experiment.figures:
        labels = set(experiment.named(figure, figure.lines))
        panels = [dict(choice) for choice in experiment.panels(figure, asked=experiment.axes)]
        for entry in experiment.published(figure):
            assert entry["line"] in labels or (experiment.tries and entry["line"] == "paper")
            assert any(entry.get("panel", {}).items() <= panel.items() for panel in panels)


def test_the_page_of_experiments_lists_every_one():
    table = (ROOT / "docs/experiments.md").read_text("utf-8").partition("## What there is")[2]
    first_cells = re.findall(r"^\| (`[^|]+) \|", table, re.M)
    listed = [name for cell in first_cells for name in re.findall("`([a-z0-9-]+)`", cell)]
    assert sorted(listed) == sorted(experiments.names())


def test_an_experiment_is_found_by_its_name_its_paper_and_figure_and_its_folder():
    named = experiments.load("hpcc-fct")
    assert named.name == "hpcc-fct" and named.folder.parts[-2:] == ("hpcc", "fct")
    assert experiments.load("hpcc/fct").name == experiments.load(str(named.folder)).name == "hpcc-fct"
    assert experiments.load("own/demo").name == experiments.load("demo").name == "demo"


def test_the_experiments_of_the_first_release_are_there():
    expected = {"demo", "hpcc-fct", "hpcc-queue", "hpcc-incast", "hpcc-fig11", "hpcc-testbed", "hpcc-eta"}
    assert expected | {"hpcc-asymmetry"} <= set(experiments.names())


def test_demo_prints_one_table_and_writes_its_page(engine, capsys, tmp_path):
    assert main(["reproduce", "demo"]) == 0
    printed = capsys.readouterr().out
    assert all(scheme in printed for scheme in ("HPCC", "DCQCN+w", "TIMELY+w", "DCTCP"))
    page = (tmp_path / "out/demo/report.html").read_text()
    assert page.count("data-figure=") == 4 and "vegaEmbed" in page
    assert not re.search(r'(src|href)="http', page), "the page works offline"
    for spec in json.loads(re.search(r'id="figures">(.*?)</script>', page)[1]):
        assert spec["data"]["values"]


def test_finished_points_are_not_run_again(engine):
    main(["reproduce", "demo", "--quiet"])
    assert len(engine.runs) == 20, "four schemes, five seeds"
    main(["reproduce", "demo", "--quiet"])
    assert len(engine.runs) == 20
    main(["reproduce", "demo", "--quiet", "--duration", "1ms"])
    assert len(engine.runs) == 40


def test_a_part_of_an_experiment_can_be_run(engine, tmp_path):
    experiment = experiments.load("hpcc-fct")
    size = runner.chosen_size(experiment, full=True, seeds=[1])
    only = runner.chosen_variants(experiment, ["load=50", "traffic=web", "scheme=HPCC, eta 99"])
    plan = runner.plan_points(experiment, size, tmp_path, only=only)
    assert [(dict(choice), label) for _, choice, label, _ in plan] == [
        ({"traffic": "web search", "load": "50 %"}, "HPCC, eta 99 %")
    ]
    assert (
        main(
            [
                "reproduce",
                "hpcc-fct",
                "--only",
                "load=30",
                "--only",
                "scheme=DCTCP",
                "--quiet",
                "--seeds",
                "1",
            ]
        )
        == 0
    )
    assert len(engine.runs) == 2


@pytest.mark.parametrize(
    "text, message",
    [
        ("laod=50", 'did you mean "load"'),
        ("load=60", 'no "60" on it: "30 %", "50 %", "70 %"'),
        ("scheme=HPCC", "several begin so"),
        ("load", 'no "" on it'),
    ],
)
def test_a_part_that_there_is_not_is_named(engine, capsys, text, message):
    assert main(["reproduce", "hpcc-fct", "--only", text]) == 2
    assert message in capsys.readouterr().err


def test_figures_share_their_points(engine, tmp_path, monkeypatch):
    experiment = experiments.load("hpcc-fct")
    checked, point = [], store.point
    monkeypatch.setattr(store, "point", lambda *of, **more: checked.append(of) or point(*of, **more))
    plan = runner.plan_points(experiment, runner.chosen_size(experiment, seeds=[1]), tmp_path)
    folders = [point.folder for _, _, _, found in plan for point in found]
    # 30 of the page and 7 of Fig 11c, of which DCQCN+w, TIMELY+w and DCTCP are on the page too.
    assert len(folders) == 45 and len(set(folders)) == 36
    assert len(checked) == 36, "a scenario of two figures is read and checked once"


def test_the_page_says_which_size_was_run(engine, tmp_path):
    main(["reproduce", "hpcc-testbed", "--quiet", "--duration", "3ms", "--seeds", "1-3"])
    page = (tmp_path / "out/experiments/hpcc-testbed/report.html").read_text()
    assert "claims that hold" in page[page.index('<div class="keys">') : page.index("<section")]
    assert "Small size: 32 hosts at 25 Gb/s, 3 ms of arrivals, 3 seeds" in page


def test_a_failing_point_is_named_and_the_others_are_shown(engine, capsys, monkeypatch):
    from weftline import _native

    real = engine.run

    def fail_dctcp(text, file, base_dir, sets, *rest, **options):
        if any("dctcp" in value for _, value in sets):
            raise _native.RunFailed("no space left")
        return real(text, file, base_dir, sets, *rest, **options)

    monkeypatch.setattr(engine, "run", fail_dctcp)
    assert main(["reproduce", "demo"]) == 1
    printed = capsys.readouterr()
    assert "failed: DCTCP, seed 5: no space left" in printed.err and "HPCC" in printed.out
    assert "runs failed: DCTCP (0 of 5 seeds)" in printed.out


def test_each_failed_seed_is_named(engine, capsys, monkeypatch):
    from weftline import _native

    def fail(*_, **__):
        raise _native.RunFailed("no space left")

    monkeypatch.setattr(engine, "run", fail)
    assert main(["reproduce", "demo", "--seeds", "1-3", "--only", "scheme=HPCC", "--json"]) == 1
    names = json.loads(capsys.readouterr().out)["failed"]
    assert sorted(names) == ["HPCC, seed 1", "HPCC, seed 2", "HPCC, seed 3"]


def test_the_page_of_another_experiment_is_not_replaced(engine, tmp_path, capsys):
    command = ["reproduce", "demo", "--only", "scheme=HPCC", "--seeds", "1", "--quiet", "--out", "mine"]
    page = tmp_path / "mine/report.html"
    assert main(command) == 0
    written = page.read_text()
    assert "<dt>experiment</dt><dd>demo</dd>" in written and main(command) == 0
    page.write_text(written.replace("<dd>demo</dd>", "<dd>a &amp; b</dd>", 1))
    before = len(engine.runs)
    assert main([*command, "--seeds", "2"]) == 2
    error = capsys.readouterr().err
    assert "mine/report.html: this is the page of a & b, which that of demo would replace" in error
    assert "--out mine/demo" in error and len(engine.runs) == before
    assert "<dd>a &amp; b</dd>" in page.read_text()


def test_wrong_choices_name_the_right_ones(engine, capsys):
    assert main(["reproduce", "hpcc-fcd"]) == 2
    assert 'did you mean "hpcc-fct"?' in capsys.readouterr().err
    assert main(["reproduce", "hpcc-fct", "--hosts", "31"]) == 2
    assert "known: 32, 64" in capsys.readouterr().err
    assert main(["reproduce", "hpcc-incast", "--duration", "1ms"]) == 2
    assert main(["reproduce", "demo", "--seeds", "5-1"]) == 2


def test_seeds_are_read_from_lists_and_ranges():
    assert runner.parse_seeds("1-3,7,2") == [1, 2, 3, 7]
    with pytest.raises(InputError):
        runner.parse_seeds("1-")


def test_an_unknown_key_in_an_experiment_is_named(engine, tmp_path, capsys):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "experiment.toml").write_text('titel = "x"\n')
    assert main(["reproduce", str(folder)]) == 2
    assert 'did you mean "title"?' in capsys.readouterr().err


CURVE = {
    "text": "t",
    "kind": "curve",
    "line": "hpcc",
    "against": "dctcp",
    "percentile": "p99",
    "below": 1,
}


def two_lines(engine, scenario):
    for kind in ("hpcc", "dctcp"):
        main(["run", str(scenario), "--quiet", "--out", kind, "--set", f"transport.controller.kind={kind}"])
    return [lines.Line(kind, [runs.Run.open(kind)]) for kind in ("hpcc", "dctcp")]


def test_a_curve_claim_is_the_geometric_mean_of_the_ratio(engine, scenario):
    found = two_lines(engine, scenario)
    claim = dict(CURVE)
    verdict = claims.check(claim, found, [], seeded=False)
    p99 = [line.curve(20)[0]["p99"].value for line in found]
    assert verdict.measured == pytest.approx(p99[0] / p99[1]) and verdict.word == "PASS"
    assert claims.check(claim | {"below": 0.5}, found, [], seeded=False).word == "DIFFERS"


def test_a_claim_on_runs_without_a_steady_state_is_open_unless_the_experiment_says_so(
    engine, scenario, monkeypatch
):
    found = two_lines(engine, scenario)
    monkeypatch.setattr(steady, "remark", lambda runs, *, warmup, group: "" if warmup else steady.GROWING)
    for claim in (CURVE, {**CURVE, "kind": "metric", "metric": "slowdown_p99"}):
        growing = claims.check(claim, found, [], seeded=False)
        assert (growing.word, [reason.kind for reason in growing.reasons]) == ("OPEN", ["steady"])
        asked = claims.check(claim, found, [], seeded=False, steady=False)
        assert (asked.word, claims.UNSTEADY in claims.table([asked]).text()) == ("PASS", True)
        assert claims.as_json(asked)["unsteady"] and "unsteady" not in claims.as_json(growing)


def test_seeds_that_change_nothing_are_one_observation_and_ratios_need_equal_measures(tmp_path):
    def of(label, ports="*"):
        scenario = {
            "topology": {"kind": "star", "hosts": 4},
            "workload": {"kind": "incast", "senders": 3, "receiver": 0, "size": "100KB"},
            "measure": {"queue_histogram": {"ports": ports}},
        }
        seeds = (1, 2, 3)
        found = [weftline.run({**scenario, "seed": n}, out=tmp_path / f"{label}{n}") for n in seeds]
        return lines.Line(label, found, asked=seeds)

    claim = {"text": "t", "figure": "f", "line": "a", "metric": "queue_max", "above": 0}
    found = [of("a"), of("b", "s0.*")]
    same = claims.check(claim, found, [])
    assert (same.word, [reason.kind for reason in same.reasons]) == ("OPEN", ["same"])
    alone = claims.check(claim, found, [], seeded=False)
    assert (alone.word, alone.interval) == ("PASS", None)
    ratio = claims.check(claim | {"against": "b"}, found, [], seeded=False)
    kinds = {reason.kind for reason in ratio.reasons}
    assert (ratio.word, kinds) == ("OPEN", {"same runs", "measures differ"})


def test_runs_that_are_the_same_decide_no_bound_on_their_ratio(engine, scenario):
    hpcc, _ = two_lines(engine, scenario)
    found = [hpcc, lines.Line("dctcp", hpcc.runs)]
    for claim in (CURVE, {**CURVE, "kind": "metric", "metric": "slowdown_p99"}):
        verdict = claims.check(claim | {"below": 1.1}, found, [], seeded=False)
        text = "hpcc and dctcp gave the same results under every seed: what differs has no effect"
        assert (verdict.word, [reason.text for reason in verdict.reasons]) == ("OPEN", [text])
        assert claims.check(claim | {"above": 0.9, "below": 1.1}, found, [], seeded=False).word == "PASS"


def test_a_curve_claim_computes_the_published_number_from_the_published_curves(engine, scenario):
    found = two_lines(engine, scenario)
    published = [
        {"line": "hpcc", "percentile": "p99", "values": [1.0] * 20},
        {"line": "dctcp", "percentile": "p99", "values": [2.0] * 10 + [0.5] * 10},
    ]
    claim = dict(CURVE)
    assert claims.check(claim | {"sizes": {"max": "100KB"}}, found, published).published == pytest.approx(0.5)
    assert claims.check(claim | {"sizes": {"min": "200KB"}}, found, published).published == pytest.approx(2.0)
    assert claims.check(claim | {"published": 0.3}, found, published).published == 0.3, (
        "what the claim states"
    )


@pytest.mark.parametrize(
    ("a_bin", "more", "few"),
    [
        (10, {}, False),
        (9, {}, True),
        (9, {"percentile": "p95"}, False),
        (10, {"sizes": {"max": "100KB"}}, True),
        (9, {"percentile": "p50", "than": {"percentile": "p99"}}, True),
    ],
)
def test_a_curve_claim_needs_two_flows_of_its_bins_beyond_its_percentile(
    engine, scenario, monkeypatch, a_bin, more, few
):
    real = type(engine)._bin
    monkeypatch.setattr(type(engine), "_bin", lambda *given: real(*given) | {"count": a_bin})
    found = two_lines(engine, scenario)
    than = (found, []) if "than" in more else None
    verdict = claims.check({**CURVE, "below": 9, **more}, found, [], than=than, seeded=False)
    counted = 10 * a_bin if "sizes" in more else 20 * a_bin
    text = f"{counted} flows that count in a run; p99 needs 200"
    assert [reason.text for reason in verdict.reasons] == [text] * few
    assert verdict.word == ("OPEN" if few else "PASS")


def test_a_claim_may_compare_its_number_with_that_of_another_panel(engine, scenario):
    found = two_lines(engine, scenario)
    here = [
        {"line": label, "percentile": "p99", "values": [v] * 20} for label, v in (("hpcc", 1), ("dctcp", 4))
    ]
    there = [
        {"line": label, "percentile": "p99", "values": [v] * 20} for label, v in (("hpcc", 1), ("dctcp", 2))
    ]
    claim = dict(CURVE)
    claim |= {"panel": {"load": "70 %", "traffic": "web"}, "than": {"panel": {"load": "50 %"}}}
    assert claims.than_panel(claim) == {"load": "50 %", "traffic": "web"}
    # The same runs in both panels: their number is 1, which is not below it; drawn, the lead doubles.
    verdict = claims.check(claim, found, here, than=(found, there), seeded=False)
    assert verdict.measured == pytest.approx(1.0) and verdict.published == pytest.approx(0.5)
    assert verdict.word == "DIFFERS" and verdict.ratio
    # Against itself with lines exchanged, the number is the square of the ratio.
    claim["than"] = {"line": "dctcp", "against": "hpcc"}
    alone = claims.check({**claim, "below": 9}, found, [], seeded=False).measured
    assert claims.check(claim, found, [], than=(found, []), seeded=False).measured == pytest.approx(alone**2)


def test_a_claim_may_compare_its_number_with_that_of_another_figure():
    loaded = experiments.load("phost-percentiles")
    (claim,) = (one for one in loaded.claims if one["text"].startswith("IMC10: short flows make the mean"))
    figures = {figure.name: figure for figure in loaded.figures}

    def panels(name, value):
        run = SimpleNamespace(scenario={"seed": 1}, summary={})
        line = SimpleNamespace(label="pHost", place="", runs=[run], asked=(1,), values=lambda _: [value])
        choice = (("workload", "IMC10"),)
        return [SimpleNamespace(figure=figures[name], choice=choice, asked_lines=[line], published=[])]

    loaded.claims, loaded.seeded = [claim], False
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims, "_reasons", lambda *given, **named: [])
        (verdict,) = runner.check_claims(loaded, [panels("short", 3.0), panels("all", 2.0)])
    assert verdict.measured == pytest.approx(1.5) and verdict.ratio
    claim["than"] = {"figure": "al"}
    with pytest.raises(InputError, match='unknown figure "al": did you mean "all"'):
        checks.references(loaded, Where("", ""))


def test_between_two_bounds_the_number_farthest_from_one_counts():
    curves = {name: [(1.0, 1000.0, value)] for name, value in (("a", 1.0), ("b", 0.5), ("c", 1.5))}
    claim = {"line": "a", "above": 0.9, "below": 1.1}
    assert claims._worst_ratio(claim, curves, ["b", "c"]) == pytest.approx(2.0)
    assert claims._worst_ratio({"line": "a", "below": 1}, curves, ["b", "c"]) == pytest.approx(2.0)
    assert claims._worst_ratio({"line": "a", "above": 1}, curves, ["b", "c"]) == pytest.approx(1 / 1.5)


def test_a_metric_claim_without_number_is_left_open(engine, scenario):
    found = two_lines(engine, scenario)
    del found[0].runs[0].summary["pauses"]
    verdict = claims.check({"text": "t", "line": "hpcc", "metric": "pauses", "below": 1}, found, [])
    assert verdict.word == "–"


def test_an_interval_over_three_seeds_is_students():
    mean = lines.Mean.of([1.0, 2.0, 3.0])
    assert mean.value == 2.0 and mean.interval == pytest.approx(4.303 / 3**0.5, rel=1e-3)


def _keys(data, at=()):
    """Paths of all that a file says, each once, whatever its number in a list; settings excepted."""
    found = {}
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        here = (*at, key)
        found.setdefault(tuple("#" if isinstance(part, int) else part for part in here), here)
        if isinstance(value, dict | list) and key not in ("set", "full"):
            for path, of in _keys(value, here).items():
                found.setdefault(path, of)
    return found


@pytest.mark.parametrize("name", ["hpcc-fct", "hpcc-asymmetry", "cebinae-rtt", "laws", "pint-fig10", "scale"])
@pytest.mark.parametrize("instead", [None, 7, "x", True, [], {}, [3], {"a": 1}], ids=repr)
def test_a_key_that_is_missing_or_of_another_type_is_an_error_that_names_the_file(name, instead, monkeypatch):
    """Also in claims, which are looked at once all has run."""
    folder = experiments.names()[name]
    data = experiments._parsed(folder / "experiment.toml")
    for path in _keys(data).values():
        changed = copy.deepcopy(data)
        table = changed
        for key in path[:-1]:
            table = table[key]
        if instead is None:
            del table[path[-1]]
        else:
            table[path[-1]] = instead
        monkeypatch.setattr(experiments, "_parsed", lambda path, changed=changed: changed)
        try:
            experiments.load(name)
        except InputError as error:
            assert str(folder) in str(error), path
        monkeypatch.undo()


@pytest.mark.parametrize(
    ("claim", "says"),
    [
        ({"kind": "trnd"}, 'experiment.toml:14: claim "c": kind: unknown "trnd": did you mean "trend"?'),
        ({"metric": None}, 'claim "c": expected the key "metric"'),
        ({"metric": "fct_men"}, 'did you mean "fct_mean"?'),
        ({"kind": "trend", "at": "1"}, 'a figure of kind "bars" has claims of kind metric, not trend'),
        ({"above": None}, 'claim "c": expected "below", "above" or "at_most"'),
        ({"panel": "HPCC"}, "claim \"c\": panel: expected table of texts, found 'HPCC'"),
        ({"above": "2"}, "experiment.toml:19: claim \"c\": above: expected number, found '2'"),
    ],
)
def test_what_is_wrong_with_a_claim_is_reported_before_anything_runs(claim, says, tmp_path):
    bounds = {"text": "c", "figure": "f", "line": "one", "metric": "fct_mean", "above": 1, **claim}
    lines = [f"{key} = {json.dumps(value)}" for key, value in bounds.items() if value is not None]
    (tmp_path / "experiment.toml").write_text(
        'title = "t"\nscenario = "s.toml"\n[small]\n[full]\n'
        '[[axis]]\nname = "a"\nvariants = [{ name = "one" }]\n'
        '[[figure]]\nname = "f"\ntitle = ""\nkind = "bars"\nlines = "a"\nmetric = "fct_mean"\n'
        "[[claim]]\n" + "\n".join(lines)
    )
    with pytest.raises(InputError, match=re.escape(says)):
        experiments.load(str(tmp_path))


def test_a_figure_of_what_no_run_measured_says_so(engine, scenario):
    found = two_lines(engine, scenario)
    figure = experiments.FigureDefinition(
        name="o", title="O", kind="over-time", lines="scheme", options={"metric": "queue_bites"}
    )
    panel = panels.Panel(figure=figure, choice=(), lines=found, published=[], title="50 %")
    (section,) = panels.sections_of([panel])
    assert section.figures == [] and section.text == "50 %: nothing is drawn, as no run has measured it"


def test_tables_of_slowdowns_name_lines_without_finished_flows_and_percentiles_of_few(engine, scenario):
    class Unfinished(lines.Line):
        has_flows = False

    found = two_lines(engine, scenario)
    figure = experiments.FigureDefinition(name="s", title="S", kind="slowdown", lines="scheme")
    panel = panels.Panel(
        figure=figure, choice=(), lines=[*found, Unfinished("cut", found[0].runs)], published=[], title=""
    )
    (table,) = panels.tables_of([panel])
    assert table.rows[-1] == ["cut", *["–"] * 7]
    fewest = min(row["count"] for line in found for row in line.slowdown(line.runs[0])["bins"])
    needed = {"p50": 4, "p95": 40, "p99": 200}
    few = ", ".join(f"{name} needs {count}" for name, count in needed.items() if fewest < count)
    assert few and f"Too few flows: {fewest} in a bin; {few}." in table.note


def test_a_table_of_slowdowns_has_a_column_for_each_bin():
    """All flows of one size are one bin: six columns of one number would look like six sizes."""
    one = [{"share": 1.0}]
    assert panels._of_other_bins([one]) == [1.0]
    halves = [{"share": 0.5}, {"share": 1.0}]
    assert panels._of_other_bins([one, halves]) == [0.5, 1.0]
    many = [{"share": n / 20} for n in range(1, 21)]
    assert panels._of_other_bins([many]) == list(panels.SHOWN_SHARES) == panels._of_other_bins([])


def test_an_option_that_a_variant_overrides_has_no_effect_and_says_so(tmp_path, capsys):
    (tmp_path / "scenario.toml").write_text(
        '[topology]\nkind = "star"\nhosts = 4\n[[workload]]\nkind = "poisson"\nduration = "1ms"\n'
    )
    (tmp_path / "experiment.toml").write_text(
        'title = "t"\nscenario = "scenario.toml"\nduration_keys = ["workload.0.duration"]\n'
        '[small]\nsays = "s"\n[full]\nsays = "the published size"\n[[axis]]\nname = "mix"\nvariants = [\n'
        '  { name = "web", set = {} },\n'
        '  { name = "rpc", set = { workload = [{ kind = "poisson", duration = "4ms" }] } },\n'
        ']\n[[figure]]\nname = "f"\ntitle = "F"\nkind = "bars"\nlines = "mix"\nmetric = "fct_mean"\n'
    )
    found = experiments.load(str(tmp_path))
    size = runner.chosen_size(found, full=True, duration="2ms")
    assert size.says == "Chosen part of the full size: 2 ms of arrivals, seed 1"
    runner.plan_points(found, size, tmp_path / "out")
    warning = "warning: --duration has no effect on lines that set workload (f: rpc)\n"
    assert capsys.readouterr().err == warning
    runner.plan_points(found, runner.chosen_size(found), tmp_path / "out")
    assert capsys.readouterr().err == ""
