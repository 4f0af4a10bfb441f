"""No verdict ignores a reason against it: over random intervals, reasons and sweeps."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from types import SimpleNamespace

import pytest
import texts

import weftline
from weftline import _native
from weftline.cli import sweep as cli_sweep
from weftline.cli.main import main
from weftline.measures import comparison, evidence, failing, ideals, judgements, separations, stats, steady
from weftline.measures.flow_choice import FlowChoice
from weftline.measures.judgements import KINDS, Reason, Verdict, judged, leader, reasons_text, separated
from weftline.measures.lines import Line, Mean
from weftline.measures.metrics import Flows
from weftline.report import answer_text, sweep_page
from weftline.reproduce import claims
from weftline.sweeps import tables

SWEEP = texts.WHICH_SCHEME.replace("goodput", "queue_p99")
BOUND = 'answer = "slowdown_p99 < 3.5"\n'


def some_estimate(draw: random.Random) -> stats.Estimate | None:
    values = [draw.choice([None, *[draw.gauss(0, 0.3)] * 4]) for _ in range(draw.randrange(7))]
    return stats.estimate(values)


def some_reasons(draw: random.Random) -> list[Reason]:
    return [Reason(kind, f"fact {draw.randrange(3)}") for kind in KINDS if draw.random() < 2 / len(KINDS)]


def test_a_verdict_is_yes_or_no_only_where_the_interval_says_so_and_no_reason_is_present():
    draw = random.Random(1)
    answers = {"yes": 0, "no": 0, "open": 0}
    for _ in range(5000):
        found, reasons, sign = some_estimate(draw), some_reasons(draw), draw.choice("<>")
        limit = draw.gauss(0, 2)
        verdict = judged(found, sign, limit, reasons)
        answers[verdict.answer] += 1
        assert set(reasons) <= set(verdict.reasons)
        assert bool(verdict.reasons) == (verdict.answer == "open")
        if verdict.answer != "open":
            kept = found.high < limit if sign == "<" else found.low > limit
            missed = found.low >= limit if sign == "<" else found.high <= limit
            assert (kept, missed) == (verdict.answer == "yes", verdict.answer == "no")
    assert min(answers.values()) > 100, "all three were tried"


@pytest.mark.parametrize("kind", KINDS)
def test_every_reason_alone_forces_open(kind):
    sure = stats.Estimate(1.0, 0.9, 1.1, 5)
    assert judged(sure, "<", 2.0).answer == "yes" and judged(sure, ">", 2.0).answer == "no"
    reason = Reason(kind, "a fact")
    for sign in "<>":
        assert judged(sure, sign, 2.0, [reason]) == Verdict("open", (reason,))
    apart = stats.Difference(sure, True, 1.0)
    assert separated(apart).order == 1
    assert separated(apart, [reason]).word == "not separated"
    assert reasons_text([reason]) == f"{KINDS[kind]} (a fact)"


def test_one_value_and_an_interval_on_the_bound_are_open():
    assert [r.kind for r in judged(stats.Estimate(1.0), "<", 9.0).reasons] == ["seeds"]
    assert [r.kind for r in judged(None, "<", 9.0).reasons] == ["measured"]
    assert [r.kind for r in judged(stats.Estimate(1, 0.5, 1.5, 3), "<", 1.0).reasons] == ["interval"]
    assert judged(stats.Estimate(1.0, 1.0, 1.0, 3), "<", 1.0).answer == "no", "the bound is not below itself"


def test_a_bound_or_a_difference_within_a_bin_is_open():
    """The p99 of five runs lies in the bin from 1,000 to 2,000 B: nothing inside of it can be decided."""
    found = stats.estimate([1000.0] * 5, bin_width=1000.0)
    assert (found.low, found.high, Mean.of_estimate(found).high) == (1000, 2000, 2000)
    answers = {
        (sign, limit): judged(found, sign, limit)
        for sign in "<>"
        for limit in (999.0, 1000.0, 1050.0, 1999.0, 2000.0)
    }
    decided = {key: verdict.answer for key, verdict in answers.items() if verdict.answer != "open"}
    # A value is at least the lower edge, and less than the upper one.
    assert decided == {
        ("<", 999.0): "no",
        ("<", 1000.0): "no",
        ("<", 2000.0): "yes",
        (">", 999.0): "yes",
        (">", 2000.0): "no",
    }
    assert {r.kind for v in answers.values() for r in v.reasons} == {"bin"}
    wide = stats.estimate([1000.0, 3000.0, 5000.0], bin_width=1000.0)
    assert [r.kind for r in judged(wide, "<", 3000.0).reasons] == ["interval"]
    one_bin, two_bins = (
        stats.difference(dict.fromkeys("abc", by), dict.fromkeys("abc", 1000.0), bin_width=1000.0)
        for by in (2000.0, 3000.0)
    )
    assert [r.kind for r in separated(one_bin).reasons] == ["bin"] and separated(two_bins).order == 1


def test_a_claim_on_a_percentile_of_queues_counts_the_bins_of_both_sides(swept):
    lines = [
        Line(label, list(cell.runs.values()))
        for label, cell in zip(("HPCC", "DCTCP"), weftline.load(swept).cells[::2], strict=True)
    ]
    claim = {"text": "shorter", "kind": "metric", "metric": "queue_p99", "line": "HPCC"}
    # The stand-in's p99 is in the bin from 20 to 21 KB: a ratio of two may be 20/21 to 21/20.
    for bounds, word in (({"below": 20_500}, "OPEN"), ({"below": 22_000}, "PASS")):
        verdict = claims.check(claim | bounds, lines, [])
        assert verdict.word == word and [r.kind for r in verdict.reasons] == ["bin"] * (word == "OPEN")
    for bound, word in ((1.04, "OPEN"), (1.06, "PASS")):
        assert claims.check(claim | {"against": "DCTCP", "below": bound}, lines, []).word == word
        than = claim | {"than": {"line": "DCTCP"}, "below": bound}
        assert claims.check(than, lines, [], than=(lines, [])).word == word


def test_a_claim_on_a_ratio_of_two_panels_is_open_where_both_have_the_same_runs(swept, monkeypatch):
    lines = [
        Line(label, list(cell.runs.values()))
        for label, cell in zip(("HPCC", "DCTCP"), weftline.load(swept).cells[::2], strict=True)
    ]
    claim = {"text": "shorter", "kind": "metric", "metric": "fct_mean", "line": "HPCC", "below": 2}
    monkeypatch.setattr(claims.pooling, "are_same_bits", lambda runs, others: True)
    monkeypatch.setattr(
        claims.numbers, "of_line", lambda line, name: claims.numbers.of_values(line, [1.0] * 3)
    )
    for more, kinds in (({"line": "DCTCP"}, ["same runs"]), ({"metric": "fct_p99"}, [])):
        verdict = claims.check(claim | {"than": more}, lines, [], than=(lines, []), steady=False)
        assert [reason.kind for reason in verdict.reasons if reason.kind != "short"] == kinds, more


def test_a_bootstrap_of_fewer_than_ten_seeds_gives_no_star_and_no_verdict(engine, tmp_path, scenario):
    path = tmp_path / "which.toml"
    text = SWEEP.replace("seeds = 3", "seeds = 9") + BOUND.replace("3.5", "3.2") + 'interval = "bootstrap"\n'
    path.write_text(text)
    assert main(["sweep", str(path), "--quiet"]) == 0
    result = weftline.load(tmp_path / "out/sweeps/which")
    assert {reason.kind for cell in result.cells for reason in result.judgement(cell).reasons} == {
        "bootstrap"
    }
    assert not any(result.separation("slowdown_p99", cell).order for cell in result.cells)
    few = [text for text in result.warnings if text.startswith("9 seeds: a bootstrap interval")]
    assert len(few) == 1 and not any("normal distribution" in text for text in result.warnings)
    path.write_text(text.replace("seeds = 9", "seeds = 10"))
    assert main(["sweep", str(path), "--quiet"]) == 0
    result = weftline.load(tmp_path / "out/sweeps/which")
    assert "open" not in {result.verdict(cell) for cell in result.cells}
    assert any(result.separation("slowdown_p99", cell).order for cell in result.cells)


def test_a_first_one_is_named_only_where_it_is_separated_from_all_others():
    draw = random.Random(2)
    named = 0
    for _ in range(1500):
        seeds = range(draw.randrange(1, 6))
        true = {name: draw.choice([0, 0, 2, 8]) for name in "abc"}
        values = {name: {seed: level + draw.gauss(0, 0.5) for seed in seeds} for name, level in true.items()}
        paired, reasons = draw.random() < 0.8, some_reasons(draw) if draw.random() < 0.3 else []
        highest = draw.random() < 0.5
        means = {name: sum(of.values()) / len(of) for name, of in values.items()}

        def apart(a, b, values=values, paired=paired):
            return stats.difference(values[a], values[b], paired=paired)

        def between(a, b, apart=apart, reasons=reasons):
            return separated(apart(a, b), reasons)

        standing = leader(list("abc"), means, between, highest=highest)
        first = standing.first
        assert (first is None) == bool(standing.reasons)
        assert {standing.best, *standing.beaten, *standing.level} == set("abc")
        for names, order in ((standing.beaten, {1 if highest else -1}), (standing.level, {0})):
            assert {between(standing.best, name).order for name in names} <= order
        if first is None:
            continue
        named += 1
        assert paired and not reasons and len(seeds) > 1
        for other in set("abc") - {first}:
            found = apart(first, other).estimate
            assert found.low > 0 if highest else found.high < 0
    assert named > 100


@pytest.fixture
def swept(engine, tmp_path, scenario):
    """The stand-in's sweep: 2.38 to 3.0 times for HPCC and 3.6 to 3.9 for DCTCP, with three seeds."""
    path = tmp_path / "which.toml"
    path.write_text(SWEEP + BOUND)
    assert main(["sweep", str(path), "--quiet"]) == 0
    return tmp_path / "out/sweeps/which"


def disturbed(folder, monkeypatch, kinds, draw):
    """Load a sweep with what the kinds stand for in one run of each combination; nothing on disk changes."""
    completion, summaries = _native.completion, {}

    def few(directory, min_size=0, max_size=None, group=None):
        found = json.loads(engine_completion(directory, min_size, max_size, group))
        return json.dumps(found | {"count": 63} if "flows" in kinds else found)

    engine_completion = getattr(completion, "whole", completion)
    few.whole = engine_completion
    monkeypatch.setattr(_native, "completion", few)
    growing = [1.0, 2.0, 9.0, 30.0] if "steady" in kinds else [5.0] * 4
    monkeypatch.setattr(steady, "under_way", lambda run, of, warmup="": growing)
    result = weftline.load(folder)
    for cell in result.cells:
        seeds = list(cell.runs)
        if "seeds" in kinds:
            for seed in seeds[1:]:
                del cell.runs._folders[seed]
            result.seeds = seeds[:1]
        elif "missing" in kinds:
            del cell.runs._folders[draw.choice(seeds)]
        summary = cell.runs[next(iter(cell.runs))].summary
        summaries[cell.choice] = summary
        if "ended" in kinds:
            summary["status"] = draw.choice(["stalled", "interrupted", "memory-limit"])
        if "unfinished" in kinds:
            summary["flows_done"] = summary["flows"] - draw.randrange(1, 900)
    return result


WARNED = ("seeds", "missing", "ended", "unfinished", "flows", "steady")
OF_KIND = {"missing": "runs", "ended": "runs"}


def test_the_verdicts_of_a_sweep_are_open_for_every_warning_wherever_they_are_printed(
    swept, monkeypatch, capsys
):
    draw = random.Random(3)
    trials = [{kind} for kind in WARNED] + [set()]
    trials += [{kind for kind in WARNED if draw.random() < 0.3} for _ in range(25)]
    for kinds in trials:
        result = disturbed(swept, monkeypatch, kinds, draw)
        if "seeds" in kinds:
            kinds = kinds - {"missing"}
        expected = {OF_KIND.get(kind, kind) for kind in kinds}
        answers = [result.judgement(cell) for cell in result.cells]
        for verdict in answers:
            assert {reason.kind for reason in verdict.reasons} == expected, kinds
            assert (verdict.answer == "open") == bool(kinds)
        assert {v.answer for v in answers} == ({"open"} if kinds else {"yes", "no"})
        # The same in the table, in CSV, as JSON and on the page.
        text = result.tables()[0].text()
        body, _, notes = text.partition("\n[")
        assert bool(notes) == bool(kinds) and ("yes" in body) == ("no\n" in f"{body}\n") == (not kinds)
        assert all(KINDS[kind] in text for kind in expected)
        rows = [row for row in result.estimates if row["metric"] == "slowdown_p99"]
        assert [row["answer"] for row in rows] == [v.answer for v in answers]
        assert all(KINDS[kind] in row["reasons"] for row in rows for kind in expected)
        found = cli_sweep.as_json(result)
        assert [len(entry["reasons"]) for entry in found["answer"]] == [len(v.reasons) for v in answers]
        page = " ".join(sweep_page.answer(result))
        assert ("Kept" in page) == (not kinds) and ("Why open" in page) == bool(kinds)
        # The bar between the schemes is real in the stand-in; a warning takes the star and the word away.
        stars = [row["separated"] for row in rows if row["against"] and row["scheme"] != "HPCC"]
        assert set(stars) == ({"not separated"} if kinds else {"higher"})
        difference = next(table for table in result.tables() if "minus" in table.title).text()
        assert ("*" in difference.partition("Differences")[0]) == (not kinds)


def test_a_sweep_without_a_bound_ranks_within_a_load_and_only_what_is_separated(swept, monkeypatch):
    draw = random.Random(4)
    for kinds in [set(), *({kind} for kind in WARNED)]:
        result = disturbed(swept, monkeypatch, kinds, draw)
        result.report = type(result.report)(**{**vars(result.report), "answer": ""})
        result.__dict__.pop("metrics", None)
        output = sweep_page.answer(result)[:2]
        assert [load in text for load, text in zip(("load 0.3", "load 0.5"), output, strict=True)] == [
            True
        ] * 2
        for text in output:
            assert len(re.findall(r"(?:HPCC|DCTCP) \d", text)) == 2, "one value of each scheme"
            assert ("lowest with HPCC" in text) == (not kinds)
            assert ("not separated" in text) == bool(kinds)


def test_of_metrics_of_which_more_is_wanted_the_highest_is_named(swept, monkeypatch):
    result = disturbed(swept, monkeypatch, set(), random.Random(5))
    result.report = type(result.report)(**{**vars(result.report), "answer": "", "metrics": ("goodput",)})
    result.__dict__.pop("metrics", None)
    assert sweep_page.answer(result)[0].startswith("Goodput of a flow, mean, load 0.3: highest with HPCC")


def test_fewer_runs_than_requested_and_unfinished_flows_are_stated_with_each_mean(swept, monkeypatch):
    result = disturbed(swept, monkeypatch, {"unfinished"}, random.Random(6))
    last = result.cells[-1]
    for seed in list(last.runs)[1:]:
        del last.runs._folders[seed]
    note = tables.notes(result)[0]
    assert note.startswith("Means over 1 to 3 of the 3 seeds") and "±" in note
    means = result.tables()[1].text()
    left = [result.unfinished(cell) for cell in result.cells]
    assert all(f"{count} unfinished" in means for count in left)
    assert means.count("1 of 3 runs") == 1
    queues = next(table for table in result.tables() if table.title == "queue p99").text()
    assert "unfinished" not in queues, "a queue's percentile leaves no flow out"
    assert any("favours schemes" in warning for warning in tables.warnings(result))
    # A combination without any run is not an empty cell.
    del last.runs._folders[next(iter(last.runs))]
    result.cells.remove(last)
    verdicts, means, *_ = result.tables()
    assert "3 of 3 runs missing" in verdicts.text() and "no run" in means.text()


def test_after_an_interrupt_the_tables_say_how_many_runs_a_mean_has(
    engine, tmp_path, scenario, capsys, monkeypatch
):
    from weftline.sweeps import executor

    path, real = tmp_path / "which.toml", executor.run
    path.write_text(SWEEP + BOUND)

    def cut(points, *rest, **options):
        outcome = real(points[:5], *rest, **options)
        outcome.interrupted = True
        return outcome

    monkeypatch.setattr(executor, "run", cut)
    assert main(["sweep", str(path)]) == 1
    printed = capsys.readouterr().out
    counts = [len(cell.runs) for cell in weftline.load(tmp_path / "out/sweeps/which").cells]
    assert sum(counts) == 5 and min(counts) < 3
    assert f"Means over {min(counts)} to {max(counts)} of the 3 seeds" in printed
    assert "Means over 3 seeds" not in printed and f"({min(counts)} of 3 runs)" in printed
    answer = printed[printed.index("slowdown_p99 < 3.5?") :].partition("\n[")[0]
    assert answer.count("open [") == sum(count < 3 for count in counts)


def test_one_seed_has_no_footnote_on_intervals(engine, tmp_path, scenario, capsys):
    path = tmp_path / "which.toml"
    path.write_text(SWEEP.replace("seeds = 3", "seeds = 1"))
    main(["sweep", str(path)])
    printed = capsys.readouterr().out
    assert "minus HPCC" in printed and "There are no intervals" in printed
    assert "zero is not in" not in printed and "±" not in printed and "*" not in printed
    folders = [str(run.out) for run in weftline.load(tmp_path / "out/sweeps/which").runs[::2]]
    main(["compare", *folders])
    printed = capsys.readouterr().out
    assert "There are no intervals" in printed and "zero is not in" not in printed and "±" not in printed


def test_a_comparison_separates_lines_on_the_same_grounds(swept, monkeypatch):
    draw = random.Random(7)
    monkeypatch.setattr(evidence, "_open_flows", lambda folder, modified: [(5000, "poisson")])
    for kinds in [set(), *({kind} for kind in WARNED if kind != "missing")]:
        result = disturbed(swept, monkeypatch, kinds, draw)
        lines = [
            Line(label, list(cell.runs.values()))
            for label, cell in zip(("HPCC", "DCTCP"), (result.cells[0], result.cells[2]), strict=True)
        ]
        compared = comparison.Comparison(lines)
        separation = compared.separation("slowdown_p99", lines[1])
        assert (separation.order, {r.kind for r in separation.reasons}) == (
            0 if kinds else 1,
            kinds and {OF_KIND.get(kind, kind) for kind in kinds},
        )
        if compared.base_of(lines[1]) is None:
            assert "not done: " in " ".join(compared.notes)
        else:
            of = compared.as_json()["differences"]["DCTCP"]["slowdown_p99"]
            assert of["separated"] == separation.word and bool(of["reasons"]) == bool(kinds)
        output = answer_text.standing_of(lines, separations.of_metric("slowdown_p99"))
        assert output[1] == (None if kinds else "HPCC")
        if kinds == {"unfinished"}:
            assert re.search(r"\d ±\S+ \(\d+ unfinished\)", compared.table().text())
            assert "favours schemes" in " ".join(answer_text.answer(lines))


def test_a_percentile_needs_two_flows_beyond_it_and_its_interval_twenty():
    assert evidence.short_runs("slowdown_p99", 1999)[0].text == (
        "1,999 flows that count in a run; an interval of p99 needs 2,000"
    )
    assert not evidence.short_runs("slowdown_p99", 2000) and not evidence.short_runs("fct_mean", 2)
    assert [evidence.needed(f"slowdown_{p}") for p in ("p50", "p95", "p99", "mean")] == [4, 40, 200, 0]
    assert evidence.needed("queue_p99") == 0 and evidence.needed("request_p99") == 200
    assert evidence.few_flows("fct_p99", 199)[0].text == "199 flows that count in a run; p99 needs 200"
    assert evidence.few_flows("fct_p99", 1)[0].text == "1 flow that counts in a run; p99 needs 200"
    (reason,) = evidence.few_flows("request_p99", 4)
    assert reason == Reason("requests", "4 requests that count in a run; p99 needs 200")
    assert not evidence.few_flows("fct_p99", 200)


def test_the_stored_table_says_why(swept):
    rows = list(csv.DictReader(io.StringIO((swept / "table.csv").read_text())))
    assert {"answer", "reasons", "separated", "separated_reasons", "asked", "unfinished"} <= set(rows[0])
    assert {row["answer"] for row in rows if row["metric"] == "slowdown_p99"} == {"yes", "no"}
    assert {row["answer"] for row in rows if row["metric"] != "slowdown_p99"} == {""}


def test_a_claim_is_open_for_runs_that_did_not_end_and_flows_that_are_left_out(swept, monkeypatch):
    draw = random.Random(8)
    claim = {"text": "HPCC keeps the tail short", "kind": "metric", "metric": "slowdown_p99"}
    claim |= {"line": "HPCC", "against": "DCTCP", "below": 1}
    for kinds in [set(), {"ended"}, {"unfinished"}, {"flows"}, {"ended", "flows"}]:
        result = disturbed(swept, monkeypatch, kinds, draw)
        lines = [
            Line(label, list(cell.runs.values()))
            for label, cell in zip(("HPCC", "DCTCP"), (result.cells[0], result.cells[2]), strict=True)
        ]
        verdict = claims.check(claim, lines, [])
        assert {r.kind for r in verdict.reasons} == {OF_KIND.get(kind, kind) for kind in kinds}
        assert verdict.word == ("OPEN" if kinds else "PASS")
        assert (verdict.decided is None) == bool(kinds) == ("reasons" in claims.as_json(verdict))
        table = claims.table([verdict]).text()
        assert all(KINDS[OF_KIND.get(kind, kind)] in table for kind in kinds)
    alone = [Line(line.label, line.runs[:1]) for line in lines]
    assert "1 seed; a verdict needs 3" in claims.table([claims.check(claim, alone, [])]).text()


def test_slowdowns_over_other_ideal_times_do_not_rank_schemes(tmp_path):
    """A flow by all NICs of its host has half the ideal time: the lower slowdown is of the slower one."""
    topology = {"kind": "hpn", "segments": 1, "nodes_per_segment": 4, "gpus": 2, "spines": 2}
    job = {"kind": "bulk", "size": "200KB", "jitter": "50us"}
    result = weftline.sweep(
        {"topology": topology, "workload": [job]},
        {"nics": {name: {"host.nic_policy": name} for name in ("all", "round-robin")}},
        seeds=3,
        report={"metrics": ["slowdown_mean", "fct_mean", "nfct"]},
        out=tmp_path / "sweep",
    )
    first, second = result.cells
    kinds = {
        name: {reason.kind for reason in result.separation(name, second, first).reasons}
        for name in result.report.metrics
    }
    assert "ideals differ" in kinds["slowdown_mean"], kinds
    assert "ideals differ" not in kinds["fct_mean"]
    both = weftline.compare(*(run for cell in result.cells for run in cell.runs.values()))
    assert "other ideal times" in both.text() + both.differences().text()


def test_the_sentence_on_a_ranking_names_who_is_not_separated_from_whom():
    means = {"mine": 18.9, "HPCC": 4.75, "DCTCP": 4.9}
    chance = Reason("interval", "the 95 % interval of the difference holds zero")

    def between(one, other):
        assert one == "HPCC"
        return judgements.Separation(-1) if other == "mine" else judgements.Separation(0, (chance,))

    standing = leader(list(means), means, between)
    assert (standing.first, standing.best, standing.beaten) == (None, "HPCC", ("mine",))
    texts = {name: f"{name} {mean}" for name, mean in means.items()}
    assert answer_text.standing("slowdown, p99", "load 0.5", texts, standing) == (
        "Slowdown, p99, load 0.5: the lowest mean, HPCC 4.75, is not separated from that of DCTCP 4.9: "
        "within chance (the 95 % interval of the difference holds zero); it is lower than mine 18.9 (each "
        "paired 95 % interval leaves out zero; of 3 the lowest was picked, so that chance alone brings this "
        "about in a tenth of all cases or more)."
    )


@pytest.mark.parametrize(("slower", "sign_is_of_ideals"), [(1.02, True), (0.98, False)])
def test_a_lower_slowdown_that_longer_ideal_times_decide_is_not_ranked(
    monkeypatch, slower, sign_is_of_ideals
):
    """All flows of one size; ideal times 4 % longer with telemetry, and completion times by 2 %."""

    class Simulated:
        def __init__(self, seed, ideal, factor):
            self.scenario, self.summary = {"seed": seed}, {}
            times = [factor * (30 + seed + n) for n in range(50)]
            self.table = {"fct_ns": times, "ideal_fct_ns": [ideal] * 50, "size_bytes": [20_000] * 50}
            self.table["slowdown"] = [time / ideal for time in times]
            self.mean = sum(self.table["slowdown"]) / 50

    monkeypatch.setattr(ideals, "_ids", lambda run: list(range(50)))
    monkeypatch.setattr(ideals, "of_flows", lambda run, flows: run.table["ideal_fct_ns"][0])
    monkeypatch.setattr(ideals.flow_rows, "read", lambda run: run.table)
    monkeypatch.setattr(ideals.flow_rows, "chosen", lambda run, flows: list(range(50)))
    runs = [Simulated(seed, 10.4, slower) for seed in range(1, 6)]
    others = [Simulated(seed, 10.0, 1.0) for seed in range(1, 6)]
    values, base = ({run.scenario["seed"]: run.mean for run in one} for one in (runs, others))
    for ours, theirs, sides in ((runs, others, (values, base)), (others, runs, (base, values))):
        found = stats.difference(*sides)
        assert found.estimate.is_apart_from_zero
        reasons = evidence.ideals_decide("slowdown_mean", ours, theirs, *sides, chosen=lambda run: Flows())
        assert [reason.kind for reason in reasons] == ["ideals differ"] * sign_is_of_ideals
        assert separated(found, reasons).order == (0 if sign_is_of_ideals else -1 if ours is runs else 1)
        assert not evidence.ideals_decide("fct_mean", ours, theirs, *sides, chosen=lambda run: Flows())


def test_a_group_of_which_no_flow_counts_is_a_reason_against_every_verdict(tmp_path):
    scenario = {
        "topology": {"kind": "star", "hosts": 8},
        "workload": [
            {"kind": "poisson", "group": "web", "size": "10KB", "load": 0.1, "duration": "1ms"},
            {"kind": "incast", "group": "incast", "senders": 3, "receiver": 0, "size": "10KB"},
        ],
    }
    runs = [weftline.run({**scenario, "seed": seed}, out=tmp_path / str(seed)) for seed in (1, 2)]
    choice = FlowChoice(warmup="20%")
    text = "no flow of group incast counts, of 3 in a run: all start in the warm-up or the drain"
    assert choice.left_out(runs, "slowdown_mean") == text
    assert FlowChoice().left_out(runs, "slowdown_mean") == choice.left_out(runs, "utilisation_mean") == ""
    assert FlowChoice(warmup="20%", group="web").left_out(runs, "slowdown_mean") == ""
    line = Line("A", runs, chosen=choice)
    assert Reason("left out", text) in separations.of_metric("slowdown_mean").reasons(line)


def test_a_failure_in_what_warmup_leaves_out_is_a_reason_and_no_beginning_to_leave_out(tmp_path):
    flap = {"at": "200us", "link": ["leaf0", "spine0"], "lasts": "100us"}
    scenario = {
        "topology": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4},
        "workload": [{"kind": "poisson", "size": "10KB", "load": 0.2, "duration": "2ms"}],
        "failures": {"event": [flap]},
    }
    runs = [weftline.run({**scenario, "seed": seed}, out=tmp_path / str(seed)) for seed in (1, 2)]
    choice = FlowChoice(warmup="20%")
    text = "a failure from 200 us to 400 us lies wholly or partly in the warm-up or the drain"
    assert choice.failed(runs, "slowdown_p99") == text
    assert choice.failed(runs, "utilisation_mean") == FlowChoice().failed(runs, "slowdown_p99") == ""
    assert FlowChoice(warmup="5%", drain="5%").failed(runs, "slowdown_p99") == ""
    line = Line("A", runs, chosen=choice)
    assert Reason("failed", text) in separations.of_metric("slowdown_p99").reasons(line)
    (arrived,) = steady.arrivals(runs[0])
    times = steady.times_of(runs[0], arrived)
    assert failing.concerned(failing.failures(runs[0]), times) == {0, 1}
    assert failing.concerned(failing.failures(runs[0]), steady.times_of(runs[0], arrived, "25%")) == {0}


def test_failures_last_as_long_as_what_changed_in_the_run_says():
    def found(*changes):
        at = [{"at_ns": 1e3 * at, "change": change} for at, change in changes]
        run = SimpleNamespace(scenario={"failures": {"detection": "1us"}}, summary={"failures": at})
        return [(one.begin / 1e3, one.end / 1e3, one.is_lasting) for one in failing.failures(run)]

    assert found((4, "a - b down"), (5, "spine0 down"), (9, "a - b up")) == [(4, 10, False), (5, 6, True)]
    assert found((4, "a - b at 1Gbps"), (6, "a - b at 2Gbps"), (9, "a - b at 10Gbps")) == [(4, 10, False)]
    assert found((0, "a - b down"), (7, "a - c at 1Gbps")) == [(7, 8, True)]
    assert found((0, "a - b down"), (2, "a - b up")) == [(0, 3, False)]


def test_a_failure_in_the_second_half_is_not_taken_for_a_beginning_or_an_overload(monkeypatch):
    scenario = {"workload": [{"kind": "poisson", "group": "web", "duration": "10ms"}]}
    changes = [{"at_ns": 6e6, "change": "a - b down"}, {"at_ns": 6.9e6, "change": "a - b up"}]
    runs = [SimpleNamespace(scenario=scenario, summary={"seed": n, "failures": changes}) for n in (1, 2, 3)]
    monkeypatch.setattr(steady, "late_requests", lambda run: (0, 0))
    monkeypatch.setattr(steady, "long_bytes", lambda run, of: (0.0, 1.0))
    monkeypatch.setattr(steady, "times_of", lambda run, of, warmup="": (0.0, 10e6))
    means = [5.0, 5.0, 9.0, 8.0]
    monkeypatch.setattr(steady, "under_way", lambda run, of, warmup="": means)
    assert steady.remark(runs, warmup="") == ""
    means[:] = [5.0, 5.0, 9.0, 30.0]
    assert steady.remark(runs, warmup="") == steady.GROWING_BY_FAILURE
    for change in changes:
        change["at_ns"] /= 3
    assert steady.remark(runs, warmup="") == steady.GROWING
    means[:] = [5.0, 9.0, 9.0, 9.0]
    assert steady.remark(runs, warmup="") == ""
    changes.clear()
    assert steady.remark(runs, warmup="") == steady.BEGINNING
