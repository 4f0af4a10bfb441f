"""`weftline compare` and the page of a sweep agree with the sweep itself, on the same flows."""

import shutil

import pytest

import weftline
from weftline import _native, columns
from weftline.cli.main import main
from weftline.errors import InputError
from weftline.measures import comparison, given, steady
from weftline.measures.flow_choice import FlowChoice, slowdown_of
from weftline.measures.flow_rows import Flows
from weftline.report import headline, sweep_page

pytestmark = pytest.mark.skipif(not hasattr(_native, "Table"), reason="the native module is not built")
SCENARIO = {
    "name": "two-racks",
    "topology": {"kind": "leaf-spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 4},
    "workload": [{"kind": "poisson", "sizes": "fb-hadoop", "load": 0.5, "duration": "600us"}],
}
REPORT = {
    "metrics": ["slowdown_p50", "fct_mean"],
    "warmup": "30%",
    "drain": "50us",
    "sizes": {"min": "200B", "max": "100KB"},
    "interval": "bootstrap",
}
SCHEMES = {name: {"transport.controller.kind": name} for name in ("hpcc", "dctcp")}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    out = tmp_path_factory.mktemp("compared") / "s"
    weftline.sweep(SCENARIO, {"scheme": SCHEMES}, seeds=3, report=REPORT, out=out)
    return out


def test_slowdowns_by_size_of_chosen_flows_follow_the_rules_of_the_engine(store):
    run = weftline.load(store).runs[0]
    for scheme, bins in (("decades", 20), ("equal-count", 7), ("equal-count", 20), ("equal-count", 1)):
        theirs = run.slowdown(bins=bins, scheme=scheme)
        ours = slowdown_of(run, Flows(), bins=bins, scheme=scheme)
        assert ours == theirs
    choice = FlowChoice(min_size=10**12)
    none = choice.slowdown(run)
    assert (none["bins"], none["overall"]["count"]) == ([], 0) and not choice.counts_any([run])


def test_compare_has_the_numbers_intervals_and_verdicts_of_the_sweep(store, capsys):
    result = weftline.load(store)
    compared = comparison.comparison_of([store])
    for line, cell in zip(compared.lines, result.cells, strict=True):
        for name in REPORT["metrics"]:
            assert line.values(name) == list(result.values(name, cell).values())
            assert line.metric(name).interval == result.estimate(name, cell).half
            assert line.left_text(name) == result.left_text(name, cell)
        assert line.flows_counted == result.counted("slowdown_p50", cell) < cell.runs[1].summary["flows"]
        table = line.overall()["p50"]
        assert table.value == pytest.approx(result.estimate("slowdown_p50", cell).mean)
    for name in REPORT["metrics"]:
        ours, theirs = compared.difference(name, compared.lines[1]), result.difference(name, result.cells[1])
        assert ours == theirs
        found = compared.separation(name, compared.lines[1])
        assert found.order == result.separation(name, result.cells[1], paired=False).order
    assert main(["compare", str(store)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert (
        "of at least 200B of at most 100KB count, except those that start in the first 30% or the last"
        in text
    )


def test_the_cards_of_a_page_are_of_the_flows_of_the_sweeps_answer(store, tmp_path):
    result = weftline.load(store)
    lines = [given.result_line(result, cell.at("scheme"), cell) for cell in result.cells]
    cards = {card.title: card.values for card in headline.key_numbers(lines, result.metrics)}
    for (label, text, *_), cell in zip(cards["slowdown, median"], result.cells, strict=True):
        assert label == cell.at("scheme")
        assert text.startswith(f"{result.estimate('slowdown_p50', cell).mean:.3g}"[:4])
    page = sweep_page.write(result, tmp_path / "page.html").read_text()
    assert (
        "except those that start in the first 30% or the last 50us of the arrivals, in every number" in page
    )


def test_options_choose_flows_of_runs_and_replace_those_of_a_report(store, capsys):
    folders = [str(run.out) for run in weftline.load(store).runs]
    whole, chosen = (
        comparison.comparison_of(folders),
        weftline.compare(*folders, warmup="30%", max_size="10KB"),
    )
    assert whole.notes == [] and "All flows of at most 10KB count, except" in chosen.notes[0]
    assert chosen.lines[0].flows_counted < whole.lines[0].flows_counted
    run = chosen.lines[0].runs[0]
    of = columns.read(run.flows, ("size_bytes", "start_ns"))
    low = min(of["start_ns"]) + 0.3 * (max(of["start_ns"]) - min(of["start_ns"]))
    kept = sum(s <= 10_000 and t >= low for s, t in zip(of["size_bytes"], of["start_ns"], strict=True))
    assert chosen.lines[0].slowdown(run, bins=1)["overall"]["count"] == kept
    of_all = weftline.compare(store, warmup="", drain="", min_size=0, max_size="1GB")
    assert of_all.lines[0].values("slowdown_p50") == whole.lines[0].values("slowdown_p50")
    assert main(["compare", *folders, "--warmup", "soon"]) == 2
    assert (
        '--warmup: expected a time such as "1ms", or a share such as "20%", found' in capsys.readouterr().err
    )
    for wrong, message in (
        ({"min_size": "1MB", "max_size": "1KB"}, "expected min_size at most max_size"),
        ({"min_size": "1GB"}, "no flow counts. All flows of at least 1GB count"),
        ({"min_size": "1GB", "group": "poisson"}, "no flow counts. All flows of group poisson of at least"),
        ({"max_size": 0}, "no flow counts. All flows of at most 0B count"),
        ({"group": "nobody"}, 'no group "nobody"'),
        ({"warmup": "-5%"}, 'warmup: expected a time such as "1ms"'),
        ({"warmup": 5}, "warmup: expected a time such as"),
        ({"warmup": "60%", "drain": "40%"}, 'no flow counts with warmup = "60%" and drain = "40%"'),
    ):
        with pytest.raises(InputError) as error:
            weftline.compare(*folders, **wrong)
        assert message in str(error.value)
    # With other stores the report of a sweep does not apply, which is stated.
    several = comparison.comparison_of([store, folders[0]])
    assert "does not apply to these lines, in which all flows count" in " ".join(several.notes)


def test_lines_of_which_other_flows_count_are_not_ranked(store):
    result = weftline.load(store)
    runs = list(result.cells[0].runs.values())
    all_flows = comparison.Line("all", runs)
    early = comparison.Line("late", runs, chosen=FlowChoice(warmup="60%"))
    compared = comparison.Comparison([all_flows, early])
    found = compared.separation("slowdown_mean", early)
    assert not found.order and "flows differ" in {reason.kind for reason in found.reasons}


def test_compare_says_which_line_lacks_which_seeds_and_leaves_its_star_out(store, tmp_path, capsys):
    copy = tmp_path / "copy"
    shutil.copytree(store, copy)
    before = comparison.comparison_of([copy])
    assert before.warnings == comparison.comparison_of([store]).warnings
    cell = weftline.load(copy).cells[1]
    shutil.rmtree(cell.runs.folder(2))
    compared = comparison.comparison_of([copy])
    (warning,) = [text for text in compared.warnings if "runs:" in text]
    assert warning.startswith("dctcp: 2 of 3 runs: seed 2 has no result in the store")
    found = compared.separation("fct_mean", compared.lines[1])
    assert not found.order and "1 of 3 runs missing" in [reason.text for reason in found.reasons]
    assert "(2 of 3 runs)" in compared.table().text()
    for seed in (1, 3):
        shutil.rmtree(weftline.load(copy).cells[1].runs.folder(seed))
    for given_as in (copy, {"Mine": weftline.load(copy)}, {"Mine": [copy]}):
        warnings = comparison.comparison_of([given_as]).warnings
        assert "dctcp has no results: seeds 1, 2 and 3 have no result" in warnings[0]


def test_compare_names_runs_that_failed(tmp_path):
    class Bad(weftline.Controller):
        def on_ack(self, ack):
            if ack.now_ns > 40_000:
                raise RuntimeError("boom")

    swept = weftline.sweep(
        SCENARIO,
        {
            "load": {"low": {"workload.0.load": 0.1}},
            "scheme": {"own": {"transport.controller.kind": "python:bad"}, **SCHEMES},
        },
        controllers={"bad": Bad},
        out=tmp_path / "s",
    )
    assert len(swept.failed) == 1
    warnings = comparison.comparison_of([swept]).warnings
    assert any(text.startswith("low, own has no results: seed 1 failed (controller") for text in warnings)
    assert "Traceback" not in " ".join(warnings)


def test_a_comparison_counts_the_flows_under_way_once_a_run(store, monkeypatch):
    counted = []
    read = steady.columns.read
    monkeypatch.setattr(steady.columns, "read", lambda of, names: counted.append(names) or read(of, names))
    steady._under_way.cache_clear()
    folders = [run.out for run in weftline.load(store).runs]
    str(weftline.compare(*folders))
    assert counted.count(("start_ns", "finish_ns", "group")) == len(folders)


def test_differences_over_few_seeds_and_over_seeds_of_one_line_alone_are_warned_of(tmp_path):
    star = {
        "topology": {"kind": "star", "hosts": 4},
        "workload": [{"kind": "poisson", "size": "20KB", "load": 0.4, "duration": "0.2ms"}],
    }

    def runs(kind, seeds):
        settings = {"transport.controller.kind": kind}
        return [weftline.run(star, set=settings, seed=seed, out=tmp_path / f"{kind}{seed}") for seed in seeds]

    few = "differences over 2 seeds: an interval over few seeds assumes a normal distribution"
    lines = {"A": runs("dctcp", range(1, 8)), "B": runs("hpcc", (6, 7, 8))}
    with pytest.warns(weftline.WeftlineWarning):
        found = weftline.compare(lines).warnings
    assert any(text.startswith(few) for text in found)
    assert (
        "B has 3 seeds, A 7: their differences are over the 2 that both have, their means over all"
    ) in found
    alike = weftline.compare({"A": lines["A"], "C": runs("timely", range(1, 8))}).warnings
    assert not any("seeds" in text for text in alike)
