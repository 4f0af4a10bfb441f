"""The ledger of claims: its rows, what they come to, `weftline reproduce --all`, the documentation's page."""

import importlib.util
import json
from pathlib import Path

import pytest
from texts import TWO_SCHEMES

from weftline import _native, provenance
from weftline.cli.main import main
from weftline.errors import InputError
from weftline.measures import pooling
from weftline.measures.lines import Line, Mean
from weftline.reproduce import claims, experiments, ledger, published
from weftline.reproduce import verdicts as rules
from weftline.reproduce.all_experiments import content_key
from weftline.reproduce.runner import chosen_size
from weftline.runs import Run

ROOT = Path(__file__).resolve().parents[3]

HERE = TWO_SCHEMES.replace("fabric.toml", "scenario.toml")
SMALL = HERE.replace("seeds = [1, 2, 3]", 'says = "as few as decide"\nseeds = [1, 2, 3]')
EXPERIMENT = (
    SMALL
    + """
[[claim]]
text = "HPCC is ten times faster"
figure = "bars"
line = "HPCC"
against = "DCTCP"
metric = "slowdown_p95"
below = 0.1
"""
)
LEDGER = """
[[source]]
name = "Own"
title = "Nobody, nowhere, 2026"
[[source.row]]
id = "faster"
at = "Fig 1"
claim = "One is faster"
experiment = "{first}"
claims = ["HPCC is faster"]
[[source.row]]
id = "much-faster"
at = "Fig 2 | 3"
claim = "It is much faster"
published = "10"
experiment = "second"
claims = ["HPCC is faster", "HPCC is ten times faster"]
[[source.row]]
id = "heat"
at = "§9"
claim = "It is cooler"
not_tried = "Heat is not modelled."
"""


@pytest.fixture
def book(engine, scenario, tmp_path, monkeypatch):
    """A folder with two experiments and a ledger; runs are those of the stand-in."""
    pytest.importorskip("vl_convert", reason="the page needs vl-convert-python")
    folder = tmp_path / "experiments"
    for name in ("first", "second"):
        (folder / name).mkdir(parents=True)
        (folder / name / "experiment.toml").write_text(EXPERIMENT)
        text = scenario.read_text().replace('"small"', f'"{name}"')
        (folder / name / "scenario.toml").write_text(text)
    (folder / "ledger.toml").write_text(LEDGER.format(first="first"))
    monkeypatch.setenv("WEFTLINE_EXPERIMENTS", str(folder))
    return folder


def verdicts(out="out"):
    found = json.loads(Path(out, "ledger/ledger.json").read_text())
    return {row["id"]: row["direction"] for row in found["rows"]}


def test_ratios_have_an_interval_over_their_seeds(engine, scenario):
    found = []
    for kind in ("hpcc", "dctcp"):
        for seed in ("1", "2", "3"):
            scheme = f"transport.controller.kind={kind}"
            out = kind + seed
            main(["run", str(scenario), "--quiet", "--seed", seed, "--out", out, "--set", scheme])
        found.append(Line(kind, [Run.open(kind + seed) for seed in ("1", "2", "3")]))
    claim = {"text": "t", "kind": "curve", "line": "hpcc", "against": "dctcp", "below": 1}
    verdict = claims.check(claim, found, [])
    low, high = verdict.interval
    assert low < verdict.measured < high and high - low < 0.1
    # A run has one number for all bins, so the ratio of a seed is that of its slowdowns.
    slowdowns = [[run.slowdown(bins=1)["overall"]["p95"] for run in line.runs] for line in found]
    mean = Mean.of([a / b for a, b in zip(*slowdowns, strict=True)])
    assert high - low == pytest.approx(2 * mean.interval)
    assert verdict.measured == pytest.approx(mean.value)


CURVE = {"text": "t", "kind": "curve", "line": "a", "against": "b", "below": 1}
METRIC = {"text": "t", "line": "a", "metric": "goodput", "against": "b", "below": 1}


@pytest.mark.parametrize(
    "claim",
    [
        CURVE,
        METRIC,
        {**CURVE, "than": {"percentile": "p50"}},
        {**METRIC, "than": {"metric": "fct_mean"}},
        {**METRIC, "kind": "trend", "at": ""},
    ],
)
def test_a_ratio_and_its_interval_are_of_the_ratios_of_the_seeds(engine, scenario, monkeypatch, claim):
    """Of 1/1, 1/2 and 8/1 the mean is 3.17; that of the ratios of means would be 2.5."""
    for seed in "123":
        main(["run", str(scenario), "--quiet", "--seed", seed, "--out", seed])
    found = [Line(name, [Run.open(seed) for seed in "123"]) for name in "ab"]
    runs = [run for line in found for run in line.runs]
    numbers = {id(run): number for run, number in zip(runs, (1, 1, 8, 1, 2, 1), strict=True)}

    def curve(line, bins):
        mean = Mean.of([numbers[id(run)] for run in line.runs])
        other = Mean(1.0)
        return [{"share": 1.0, "size_bytes": 1000.0, "p50": other, "p95": mean, "p99": mean}]

    def values(line, name):
        return [1.0 if name == "fct_mean" else numbers[id(run)] for run in line.runs]

    monkeypatch.setattr(Line, "curve", curve)
    monkeypatch.setattr(Line, "values", values)
    sides = (found, []) if "than" in claim else None
    verdict = claims.check(claim, found, [], than=sides)
    assert verdict.by_seed == pytest.approx((1.0, 0.5, 8.0))
    mean = Mean.of(verdict.by_seed)
    assert verdict.measured == pytest.approx(mean.value) == pytest.approx(19 / 6)
    assert verdict.interval == pytest.approx((mean.low, mean.high))


def test_all_experiments_run_once_and_the_ledger_is_written(book, engine, capsys):
    assert main(["reproduce", "--all"]) == 0
    printed = capsys.readouterr().out
    assert "2 experiments of the ledger; left: 12 runs" in printed and "[2 of 2] second" in printed
    assert len(engine.runs) == 12
    assert verdicts() == {"faster": "confirmed", "much-faster": "partly", "heat": "not tried"}
    page = Path("out/ledger/ledger.md").read_text()
    assert "Fig 2 \\| 3" in page and "Heat is not modelled." in page
    assert "It is much faster" in Path("out/ledger/ledger.html").read_text()
    assert main(["reproduce", "--all", "--quiet"]) == 0
    assert len(engine.runs) == 12


def test_a_finished_experiment_is_not_even_looked_at_again(book, engine, monkeypatch):
    from weftline.reproduce import runner

    main(["reproduce", "--all", "--quiet"])
    carried = []
    real = runner.carry_out
    monkeypatch.setattr(runner, "carry_out", lambda e, *rest: carried.append(e.name) or real(e, *rest))
    (book / "second/experiment.toml").write_text(EXPERIMENT.replace("below = 0.1", "below = 0.2"))
    assert main(["reproduce", "--all", "--quiet"]) == 0
    assert carried == ["second"] and len(engine.runs) == 12


def test_points_are_shared_with_the_experiment_alone(book, engine):
    main(["reproduce", "first", "--quiet"])
    assert len(engine.runs) == 6
    main(["reproduce", "--all", "--quiet"])
    assert len(engine.runs) == 12


@pytest.mark.parametrize("error", [_native.RunFailed("no way"), ValueError("a bug"), BaseException("panic")])
def test_an_experiment_that_fails_is_recorded_and_tried_again(book, engine, monkeypatch, capsys, error):
    from weftline.reproduce import runner

    real = runner.carry_out

    def fail(experiment, *rest):
        if experiment.name == "first":
            raise error
        return real(experiment, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(runner, "carry_out", fail)
        assert main(["reproduce", "--all"]) == 1
    assert f"failed: first: {error if isinstance(error, _native.RunFailed) else repr(error)}" in (
        capsys.readouterr().err
    )
    assert verdicts() == {"faster": "open", "much-faster": "partly", "heat": "not tried"}
    assert "What failed" in Path("out/ledger/ledger.md").read_text()
    assert main(["reproduce", "--all", "--quiet"]) == 0
    assert verdicts()["faster"] == "confirmed"


def test_an_interrupt_keeps_what_is_done(book, engine, monkeypatch, capsys):
    from weftline.reproduce import runner

    real = runner.carry_out

    def interrupted(experiment, *rest):
        if experiment.name == "second":
            raise KeyboardInterrupt
        return real(experiment, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(runner, "carry_out", interrupted)
        assert main(["reproduce", "--all"]) == 1
    assert "finished experiments are kept" in capsys.readouterr().err
    assert verdicts() == {"faster": "confirmed", "much-faster": "not run", "heat": "not tried"}
    assert main(["reproduce", "--all", "--quiet"]) == 0
    assert len(engine.runs) == 12


def test_half_a_file_of_results_is_made_again(book, engine):
    main(["reproduce", "--all", "--quiet"])
    (path,) = Path("out/ledger/results").glob("first-*.json")
    path.write_text(path.read_text()[:50])
    assert main(["reproduce", "--all", "--quiet"]) == 0
    assert verdicts()["faster"] == "confirmed"


def test_a_dry_run_says_what_is_left_and_runs_nothing(book, engine, capsys):
    assert main(["reproduce", "--all", "--dry-run", "--jobs", "2"]) == 0
    # 12 runs of 83.4 s each by the stand-in's estimate, two at a time.
    assert "12 runs, about 8:20 min with 2 at a time" in capsys.readouterr().out
    assert main(["reproduce", "--all", "--dry-run", "--json", "--skip", "first"]) == 0
    assert json.loads(capsys.readouterr().out)["experiments"] == ["second"]
    assert engine.runs == [] and not Path("out/ledger/ledger.json").exists()


def test_a_dry_run_plans_one_seed_where_nothing_was_run_and_counts_all(book, engine, monkeypatch, capsys):
    from weftline.reproduce import runner

    planned = []
    plan = runner.plan_points

    def counted(*given, **more):
        found = plan(*given, **more)
        planned.append(sum(len(points) for *_, points in found))
        return found

    monkeypatch.setattr(runner, "plan_points", counted)
    command = ["reproduce", "--all", "--dry-run", "--seeds", "1-5", "--json"]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == 5 * sum(planned)


def test_chosen_seeds_are_those_of_figures_with_their_own(book, engine, capsys):
    file = book / "first" / "experiment.toml"
    file.write_text(file.read_text().replace("[[figure]]", "[[figure]]\nseeds = [7]", 1))
    command = ["reproduce", "--all", "--json", "--skip", "second", "--dry-run"]
    for seeds, runs in (["--seeds", "1-5"], 10), (["--seeds", "1-3"], 6), ([], 2):
        assert main([*command, *seeds]) == 0
        assert json.loads(capsys.readouterr().out)["runs"] == runs
    first = experiments.load("first")
    default, chosen = chosen_size(first), chosen_size(first, seeds=[1, 2, 3])
    assert (
        default.seeds == chosen.seeds and len({content_key(first, size) for size in (default, chosen)}) == 2
    )


def test_claims_that_were_not_checked_are_counted(book, engine, capsys):
    file = book / "first" / "experiment.toml"
    alone = file.read_text().rsplit('against = "DCTCP"\n', 1)
    file.write_text("".join(alone))
    for only, says in (("HPCC", "1 of 2"), ("DCTCP", "2 of 2"), ("", "")):
        assert main(["reproduce", "first", *([f"--only=scheme={only}"] if only else [])]) == 0
        printed = capsys.readouterr().out
        page = Path("out/experiments/first/report.html").read_text()
        sentence = f"{says} claims were not checked: not all that they need was run."
        for text in (printed, page):
            assert sentence in text if says else "not checked" not in text


def test_an_estimate_that_takes_long_says_what_it_left_out(book, engine, monkeypatch, capsys):
    from weftline.reproduce import all_experiments

    monkeypatch.setattr(all_experiments, "LONGEST_LOOK_SECONDS", -1.0)
    assert main(["reproduce", "--all"]) == 0
    assert "left: 2 experiments more (--dry-run looks at all)" in capsys.readouterr().out


def test_what_is_skipped_is_marked_unless_it_is_there_already(book, engine):
    main(["reproduce", "--all", "--quiet", "--skip", "first"])
    assert verdicts()["faster"] == "not run" and len(engine.runs) == 6
    main(["reproduce", "--all", "--quiet"])
    main(["reproduce", "--all", "--quiet", "--skip", "first"])
    assert verdicts()["faster"] == "confirmed"


def test_seeds_are_those_of_all_experiments_and_results_of_others_stay(book, engine):
    main(["reproduce", "--all", "--quiet"])
    main(["reproduce", "--all", "--quiet", "--seeds", "1-4"])
    assert len(engine.runs) == 16
    found = json.loads(Path("out/ledger/ledger.json").read_text())
    assert "4 seeds" in found["experiments"]["first"]["size"]
    main(["reproduce", "--all", "--quiet"])
    found = json.loads(Path("out/ledger/ledger.json").read_text())
    assert "3 seeds" in found["experiments"]["first"]["size"] and len(engine.runs) == 16


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--all", "first"], "--all and first"),
        ([], "expected an experiment, or --all"),
        (["--all", "--hosts", "32"], "--hosts: is about one experiment"),
        (["--all", "--seeds", "3-1"], "--seeds 3-1"),
        (["--all", "--seeds", ""], "--seeds : expected seeds such as"),
        (["first", "--seeds", ""], "--seeds : expected seeds such as"),
        (["first", "--rows", ""], 'first has no axis "row"'),
        (["first", "--seeds", "9223372036854775808"], "expected seeds from 0 to 2^63 - 1"),
        (["--all", "--skip", "fist"], 'did you mean "first"?'),
        (["first", "--sitting", "1h"], "--sitting: only with --published"),
        (["first", "--skip", "second"], "--skip: only with --all"),
    ],
)
def test_options_that_do_not_go_together_are_refused(book, engine, capsys, arguments, message):
    assert main(["reproduce", *arguments]) == 2
    assert message in capsys.readouterr().err and engine.runs == []


def test_results_that_are_not_as_they_were_written_are_made_again(book, engine):
    main(["reproduce", "--all", "--quiet"])
    (file,) = Path("out/ledger/results").glob("first-*.json")
    whole, runs = file.read_bytes(), len(engine.runs)
    for damaged in (
        whole.replace(b'"seeds":3', b'"seeds":9'),
        whole[: len(whole) // 2],
        b"",
        b"[]",
        b'{"failed":false}',
    ):
        assert damaged != whole
        file.write_bytes(damaged)
        assert main(["reproduce", "--all", "--quiet"]) == 0
        assert file.read_bytes() == whole and len(engine.runs) == runs, "finished runs are kept"


def test_results_of_another_build_are_read_again_and_noted(book, engine, monkeypatch):
    main(["reproduce", "--all", "--quiet"])
    runs = len(engine.runs)
    monkeypatch.setattr(provenance, "build", lambda: "another")
    monkeypatch.setattr(pooling, "of_other_builds", lambda found: ["6 of 6 runs are of another build"])
    assert main(["reproduce", "--all", "--quiet"]) == 0
    assert len(engine.runs) == runs
    assert (
        "## Notes\n\n- `first`: 6 of 6 runs are of another build" in Path("out/ledger/ledger.md").read_text()
    )


def test_a_folder_that_cannot_be_made_is_named(book, engine, capsys):
    Path("taken").write_text("a file")
    assert main(["reproduce", "--all", "--out", "taken"]) == 2
    assert "the folder cannot be made" in capsys.readouterr().err and engine.runs == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('experiment = "first"', 'experiment = "frist"', 'row "faster": unknown experiment "frist": did you'),
        (
            'claims = ["HPCC is faster"]',
            'claims = ["HPCC is fast"]',
            'first has no claim "HPCC is fast": did',
        ),
        ('id = "heat"', 'id = "faster"', 'two rows have the id "faster"'),
        ('at = "§9"', 'att = "§9"', 'unknown key "att": did you mean "at"?'),
        ("not_tried", "experiment", "claims: expected a list"),
        ('claims = ["HPCC is faster"]\n', "", "claims: expected a list"),
        (
            'not_tried = "Heat is not modelled."',
            "",
            "expected either an experiment with claims, or not_tried",
        ),
        ('claim = "One is faster"', "claim = 3", "claim: expected a text, found 3"),
        ('published = "10"', 'published = "10"\nat_most = "confirmed"', 'at_most: expected "partly"'),
        ('name = "Own"', "", "a source: name: expected a text"),
        ("[[source]]", "[[sources]]", 'unknown key "sources": did you mean "source"?'),
        ('name = "Own"', "name = ", "ledger.toml"),
    ],
)
def test_a_wrong_ledger_is_refused_with_the_row_and_the_nearest_name(book, engine, capsys, old, new, message):
    path = book / "ledger.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    assert main(["reproduce", "--all"]) == 2
    assert message in capsys.readouterr().err and engine.runs == []


def test_claims_are_listed(book, capsys):
    assert main(["list", "claims"]) == 0
    assert "much-faster  It is much faster" in capsys.readouterr().out


def shipped():
    return ledger.load(ROOT / "experiments" / ledger.FILE)


def test_every_row_names_an_experiment_and_claims_that_there_are():
    book = shipped()
    assert len(list(book.rows)) > 100
    assert set(book.experiments) <= set(experiments.names())


@pytest.mark.parametrize("name", shipped().experiments)
def test_an_experiment_runs_as_many_seeds_as_a_verdict_on_its_claims_needs(name):
    experiment = experiments.load(name)
    small, full = (chosen_size(experiment, full=full).seeds for full in (False, True))
    assert not experiment.seeded or (len(small) >= 5 and len(full) >= rules.MIN_SEEDS)


def test_rows_that_are_not_tried_say_why():
    assert all(len(row.not_tried) > 10 for row in shipped().rows if not row.experiment)


def page_maker():
    spec = importlib.util.spec_from_file_location("claims_page", ROOT / "docs/claims.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_the_documentation_is_what_ledger_and_results_say():
    made = page_maker()
    assert made.PAGE.read_text("utf-8") == made.markdown(made.stored()), "run: python docs/claims.py"


def test_the_page_names_the_rows_that_some_of_the_seeds_by_themselves_do_not_keep():
    made, book = page_maker(), shipped()
    bound = {"bounds": {"above": 1.0}, "ratio": True, "published": None, "seeds": 10, "measured": 1.2}
    kept = bound | {"interval": [1.1, 1.3], "by_seed": [1.2] * 9 + [0.9]}
    row = next(row for row in book.rows if len(row.claims) == 2)
    claims = [{"text": row.claims[0], "said": "1.2", **kept}]
    claims.append({"text": row.claims[1], "said": "1.2", **kept, "by_seed": [1.2] * 10})
    found = [(book.sources[0], [ledger.judge(row, {row.experiment: {"claims": claims}})])]
    assert f"{row.claim} (9 of 10 seeds in one bound)" in made.by_a_share_of_the_seeds(found)
    claims[0]["by_seed"] = claims[1]["by_seed"]
    found = [(book.sources[0], [ledger.judge(row, {row.experiment: {"claims": claims}})])]
    assert made.by_a_share_of_the_seeds(found) == "No direction depends on it.\n"


def test_stored_results_are_of_experiments_of_the_ledger():
    stored = page_maker().stored()
    assert set(stored) <= set(shipped().experiments)
    assert all({"weftline", "date", "size"} <= result.keys() for result in stored.values())


def test_a_result_that_no_row_names_is_not_stored(capsys):
    found = page_maker().judged_by_rows({"hpcc-fct": {"size": "small"}, "nobodys": {"size": "small"}})
    assert found == {"hpcc-fct": {"size": "small"}}
    assert "nobodys" in capsys.readouterr().err


def test_rows_that_are_not_wholly_as_stated_say_why():
    found = ledger.judged(shipped(), page_maker().stored())
    missed = ("partly", "contradicted", "open", "other")
    bare = [one for _, rows in found for one in rows if not one.row.why]
    assert [one.row.id for one in bare if {one.direction, one.size} & {*missed}] == []


def test_a_row_names_the_published_numbers_that_its_claims_are_held_against():
    stored = page_maker().stored()
    numbers = {
        (name, c["text"]): c.get("published") for name, found in stored.items() for c in found["claims"]
    }
    unnamed = [
        row.id
        for row in shipped().rows
        if not row.published and any(numbers.get((row.experiment, text)) is not None for text in row.claims)
    ]
    assert unnamed == [], "without `published` the row has no verdict on the size"


def test_no_bound_that_came_out_the_other_way_is_left_out_of_all_rows():
    asked = {(row.experiment, text) for row in shipped().rows for text in row.claims}
    other_way = [
        (name, claim["text"])
        for name, result in page_maker().stored().items()
        for claim in result["claims"]
        if rules.of(claim).direction.word == rules.NO
    ]
    assert [one for one in other_way if one not in asked] == []


def test_stored_results_are_of_the_bounds_and_seeds_that_experiments_state():
    changed, few = [], []
    for name, result in page_maker().stored().items():
        experiment = experiments.load(name)
        stated = {claim["text"]: claim for claim in experiment.claims}
        seeds = len(chosen_size(experiment).seeds)
        for claim in result["claims"]:
            one = stated.get(claim["text"], {})
            if "bounds" in claim and not claim.get("counts"):
                now = {key: one[key] for key in ("above", "below", "at_most") if key in one}
                changed += [(name, claim["text"])] if now != claim["bounds"] else []
            if (
                result["size"].startswith("Small size")
                and not claim.get("unseeded")
                and claim["seeds"] < seeds
            ):
                few.append((name, claim["text"]))
    assert changed == []
    assert few == [], "stored results are of as many seeds as a run of the small size has"


def test_stored_numbers_and_verdicts_are_those_of_the_stored_seeds():
    made = page_maker()
    stored = made.stored()
    assert json.loads(json.dumps(made.judged_again(stored))) == stored


def test_results_are_taken_experiment_by_experiment(book, engine, capsys):
    made = page_maker()
    main(["reproduce", "first", "--json"])
    one = json.loads(capsys.readouterr().out)
    found = made.taken({"second": {"size": "old"}}, one)
    assert list(found) == ["first", "second"] and found["second"] == {"size": "old"}
    assert "points" not in found["first"] and len(found["first"]["claims"]) == 2
    main(["reproduce", "--all", "--json"])
    found = made.taken(found, json.loads(capsys.readouterr().out))
    assert found["second"]["claims"][1]["holds"] is False
    # A result of some of the bounds, as at the published size, leaves the others as they were.
    few = {**one, "size": "Published size", "claims": one["claims"][:1]}
    merged = made.taken(found, few)["first"]
    assert [claim["text"] for claim in merged["claims"]] == [claim["text"] for claim in one["claims"]]
    assert merged["size"] == f"Published size; 1 of 2 bounds: {found['first']['size']}"
    then = {**found["first"], "date": "2026-01-02"}
    assert made.taken({"first": then}, few)["first"]["size"].endswith(f"{then['size']}, 2026-01-02")
    # A bound that the experiment states no more goes, one that is new comes.
    old = {**found["first"]["claims"][0], "text": "no longer stated"}
    found["first"]["claims"].append(old)
    new = {**few, "claims": [*few["claims"], {**few["claims"][0], "text": "new"}]}
    texts = [claim["text"] for claim in made.taken(found, new)["first"]["claims"]]
    assert texts == [*(claim["text"] for claim in one["claims"]), "new"]
    apart = {**one, "claims": one["claims"][1:]}
    both = made.taken({"first": few}, apart)["first"]["claims"]
    assert [claim["text"] for claim in both] == [claim["text"] for claim in one["claims"]], "none is lost"


def test_a_claim_with_too_few_seeds_does_not_take_the_place_of_one_that_has_enough(book, engine, capsys):
    made = page_maker()
    main(["reproduce", "first", "--json"])
    small = json.loads(capsys.readouterr().out)

    def at_size(*seeds):
        measured = [1.0 + seed for seed in seeds]
        claim = {**small["claims"][0], "seeds": len(seeds), "of_seeds": list(seeds), "by_seed": measured}
        claim |= {"measured": measured[0], "measurement": {"claim": "a", "runs": "b"}}
        return {**small, "size": "Published size", "claims": [claim]}

    assert small["claims"][0]["seeds"] >= rules.MIN_SEEDS
    few = made.taken({"first": small}, {"result": at_size(1)})["first"]
    kept = [{key: value for key, value in claim.items() if key != "ran"} for claim in few["claims"]]
    assert kept == small["claims"] and few["claims"][0]["ran"] == small["size"]
    assert few["size"] == f"Published size; 2 of 2 bounds: {small['size']}"
    other = at_size(1)
    other["claims"][0]["bounds"] = {"below": 0.1}
    assert published.merge(small, other)["claims"][0]["bounds"] == {"below": 0.1}, "it answers another bound"
    again = made.taken({"first": few}, at_size(1, 2, 3))["first"]
    assert again["size"] == f"Published size; 1 of 2 bounds: {small['size']}"
    assert published.merge(small, at_size(1, 2))["claims"] == small["claims"]
    # Files of other seeds are joined before they are held against what is stored.
    joined = made.taken({"first": small}, at_size(1), at_size(2), at_size(3))["first"]
    assert (
        joined["claims"][0]["of_seeds"] == [1, 2, 3]
        and joined["claims"][1]["measured"] == kept[1]["measured"]
    )
    assert published.merge(small, at_size(1, 2, 3))["claims"][0] != small["claims"][0]
    assert made.taken({"first": at_size(1)}, at_size(2))["first"]["claims"][0]["of_seeds"] == [1, 2]


def test_a_ledger_that_there_is_not_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(experiments, "directories", lambda: [tmp_path])
    with pytest.raises(InputError, match=r"no ledger\.toml"):
        ledger.load()
