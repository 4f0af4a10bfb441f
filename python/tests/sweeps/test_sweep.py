"""Sweeps from the file to the tables, with the stand-in for the engine."""

import csv
import json
import shutil
from pathlib import Path

import pytest
import texts

import weftline
from weftline import _native, integrity
from weftline.cli.main import main
from weftline.errors import InputError, RunFailed
from weftline.sweeps import executor, store, tables


@pytest.fixture
def file(engine, tmp_path, scenario):
    """A sweep of twelve points, of which the stand-in has no series over time."""
    path = tmp_path / "which.toml"
    path.write_text(texts.WHICH_SCHEME)
    return path


def rows(path):
    with path.open() as lines:
        return list(csv.DictReader(lines))


def test_a_sweep_runs_once_and_shows_estimates_and_differences(file, engine, capsys):
    assert main(["sweep", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "Which scheme?" in printed and "12 runs: scheme (2) x load (2), 3 seeds" in printed
    assert "slowdown, p99, minus HPCC" in printed and "seed by seed on the same flows" in printed
    assert len(engine.runs) == 12
    assert main(["sweep", str(file), "--resume"]) == 0
    assert "12 are finished already" in capsys.readouterr().out and len(engine.runs) == 12


def test_tables_hold_every_run_and_every_estimate(file, tmp_path):
    main(["sweep", str(file), "--quiet"])
    folder = tmp_path / "out/sweeps/which"
    points, table = rows(folder / "points.csv"), rows(folder / "table.csv")
    assert len(points) == 12 and points[0]["scheme"] == "HPCC" and points[0]["seed"] == "1"
    assert len(table) == 8
    of_goodput = [row for row in table if row["metric"] == "goodput"]
    assert float(of_goodput[0]["mean"]) == pytest.approx(1e11 * 0.7)
    # DCTCP is half as fast in the stand-in, whatever the seed.
    assert float(of_goodput[2]["difference"]) == pytest.approx(-0.5e11 * 0.7)
    assert of_goodput[2]["paired"] == "True" and of_goodput[0]["against"] == ""


def test_what_is_loaded_is_what_was_run(file, tmp_path):
    main(["sweep", str(file), "--quiet"])
    found = weftline.load(tmp_path / "out/sweeps/which")
    assert found.question == "Which scheme?" and [axis.name for axis in found.axes] == ["scheme", "load"]
    assert found.axes[1].numbers == [0.3, 0.5] and found.against == "HPCC"
    assert len(found.rows) == 12 and found.rows[0]["slowdown_p99"] > 1
    assert "<table>" in found._repr_html_() and "12 runs" in repr(found)


def test_a_sweep_from_python_is_that_of_the_file(file, engine, scenario, tmp_path):
    main(["sweep", str(file), "--quiet"])
    kinds = {"HPCC": {"transport.controller.kind": "hpcc"}, "DCTCP": {"transport.controller.kind": "dctcp"}}
    found = weftline.sweep(
        scenario,
        {"scheme": kinds, "workload.0.load": [0.3, 0.5]},
        seeds=3,
        report={"metrics": ["goodput"]},
        out=tmp_path / "out/sweeps/which",
    )
    assert len(engine.runs) == 12, "the store knows all of them"
    assert {row["metric"] for row in found.estimates} == {"goodput"}
    assert weftline.sweep(file, out=tmp_path / "out/sweeps/which").question == "Which scheme?"
    with pytest.raises(InputError, match="seeds: set this in the file of the sweep"):
        weftline.sweep(file, seeds=2)


def test_the_bound_of_an_answer_is_kept_missed_or_open(file, engine, tmp_path):
    file.write_text(texts.WHICH_SCHEME + 'answer = "goodput > 50Gbps"\n')
    main(["sweep", str(file), "--quiet"])
    found = weftline.load(tmp_path / "out/sweeps/which")
    # 70, 50, 35 and 25 Gb/s with no spread at all: 50 is not above 50.
    assert [found.verdict(cell) for cell in found.cells] == ["yes", "no", "no", "no"]
    assert found.tables()[0].title == "goodput > 50Gbps?"


def test_a_failed_point_is_shown_and_tried_again_only_when_asked(file, engine, capsys, monkeypatch):
    good = engine.run

    def bad(text, file, base_dir, sets, seed, out, **options):
        if seed == 2 and ("workload.0.load", "0.5") in sets:
            raise RunFailed("it broke")
        return good(text, file, base_dir, sets, seed, out, **options)

    monkeypatch.setattr(engine, "run", bad)
    assert main(["sweep", str(file)]) == 1
    output = capsys.readouterr()
    assert "failed: scheme HPCC, load 0.5, seed 2: it broke" in output.err and "--retry" in output.err
    assert "slowdown, p99" in output.out, "what there is is shown"
    monkeypatch.setattr(engine, "run", good)
    assert main(["sweep", str(file), "--quiet"]) == 1 and len(engine.runs) == 10
    assert main(["sweep", str(file), "--quiet", "--retry"]) == 0 and len(engine.runs) == 12


def test_what_a_failed_run_recorded_stays_where_the_error_names_it(
    file, engine, capsys, monkeypatch, tmp_path
):
    good = engine.run

    def bad(text, file, base_dir, sets, seed, out, **options):
        if seed != 2 or ("workload.0.load", "0.5") not in sets:
            return good(text, file, base_dir, sets, seed, out, **options)
        Path(out).mkdir(parents=True)
        (Path(out) / "flows.parquet").write_text("the flows")
        raise RunFailed(f"it broke\n{out}: 7 flows recorded until then are readable")

    monkeypatch.setattr(engine, "run", bad)
    assert main(["sweep", str(file)]) == 1
    errors, kept = capsys.readouterr().err, tmp_path / "out/sweeps/which"
    for record in (kept / "failed").glob("*.json"):
        folder = Path("out/sweeps/which/failed") / record.stem
        assert (
            f"{folder}: 7 flows recorded until then are readable" in json.loads(record.read_text())["error"]
        )
        assert f"{folder}: 7 flows" in errors and (folder / "flows.parquet").read_text() == "the flows"
    assert len(list((kept / "failed").glob("*.json"))) == 2 and not list((kept / "parts").iterdir())
    monkeypatch.setattr(engine, "run", good)
    assert main(["sweep", str(file), "--quiet", "--retry"]) == 0
    assert not list((kept / "failed").iterdir()), "what failed once is there now"


def test_a_combination_whose_every_run_failed_is_in_every_table(file, engine, capsys, monkeypatch, tmp_path):
    good = engine.run

    def bad(text, file, base_dir, sets, seed, out, **options):
        if ("workload.0.load", "0.5") in sets and "hpcc" in str(sets):
            raise RunFailed("it broke")
        return good(text, file, base_dir, sets, seed, out, **options)

    monkeypatch.setattr(engine, "run", bad)
    for along in (True, False):
        text = texts.WHICH_SCHEME if along else texts.WHICH_SCHEME.replace('along = "load"\n', "")
        file.write_text(text + 'answer = "goodput > 50Gbps"\n')
        assert main(["sweep", str(file)]) == 1
        printed = capsys.readouterr().out
        assert "open [1" in printed and "3 of 3 runs missing" in printed and "no run" in printed
    assert main(["sweep", str(file), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    (answer,) = [one for one in found["answer"] if one["scheme"] == "HPCC" and one["load"] == 0.5]
    assert answer["answer"] == "open" and answer["reasons"][0]["text"] == "3 of 3 runs missing"
    assert len(found["answer"]) == 4 and len(found["estimates"]) == 8 and len(found["runs"]) == 9
    lost = [row for row in rows(tmp_path / "out/sweeps/which/table.csv") if row["runs"] == "0"]
    assert [(row["scheme"], row["load"], row["metric"]) for row in lost] == [
        ("HPCC", "0.5", "goodput"),
        ("HPCC", "0.5", "slowdown_p99"),
    ]
    assert lost[0]["answer"] == "open" and lost[0]["mean"] == ""


def test_the_page_names_combinations_without_results_among_the_open_ones(file, engine, monkeypatch, tmp_path):
    from weftline.report import sweep_page

    good = engine.run

    def bad(text, file, base_dir, sets, seed, out, **options):
        if "dctcp" in str(sets):
            raise RunFailed("it broke")
        return good(text, file, base_dir, sets, seed, out, **options)

    monkeypatch.setattr(engine, "run", bad)
    file.write_text(texts.WHICH_SCHEME + 'answer = "goodput > 50Gbps"\n')
    main(["sweep", str(file), "--quiet"])
    answer = sweep_page.answer(weftline.load(tmp_path / "out/sweeps/which"))
    assert "Open: DCTCP, load 0.3; DCTCP, load 0.5." in answer


def test_axes_of_numbers_have_numbers_in_rows_and_their_text_in_tables(engine, scenario, tmp_path):
    over = {"workload.0.load": [0.3, 1], "transport.controller.kind": ["hpcc", "dctcp"]}
    found = weftline.sweep(scenario, {**over, "switch.buffer": ["5KB"]}, out=tmp_path / "s")
    assert [row["load"] for row in found.rows] == [0.3, 0.3, 1.0, 1.0]
    assert found.rows[0]["kind"] == "hpcc" and found.rows[0]["buffer"] == "5KB"
    assert {row["load"] for row in found.estimates} == {0.3, 1.0}
    tables.write(found)
    assert [row["load"] for row in rows(tmp_path / "s/points.csv")] == ["0.3", "0.3", "1", "1"]
    found = weftline.sweep(scenario, {"topology.hosts": [2, 3], "run.x": [True]}, out=tmp_path / "s")
    assert [(row["hosts"], row["x"]) for row in found.rows] == [(2, True), (3, True)]


def test_notes_say_what_brackets_are_where_intervals_are_bootstrapped(file, capsys):
    main(["sweep", str(file)])
    assert "± is half of the 95 % interval (Student's, over the seeds)" in capsys.readouterr().out
    file.write_text(texts.WHICH_SCHEME + 'interval = "bootstrap"\n')
    main(["sweep", str(file)])
    printed = " ".join(capsys.readouterr().out.split())
    assert "brackets hold both ends of the 95 % interval (by bootstrap, over the seeds)" in printed


def test_a_dry_run_runs_nothing(file, engine, capsys, tmp_path):
    assert main(["sweep", str(file), "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert "the rest takes about" in printed and "load: 0.3, 0.5" in printed
    assert not engine.runs and not (tmp_path / "out").exists()
    assert main(["sweep", str(file), "--dry-run", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["points"]) == 12


def test_a_task_of_an_array_runs_its_own_points(file, engine, capsys, monkeypatch):
    assert main(["sweep", str(file), "--array"]) == 0
    assert "sbatch --array=0-11" in capsys.readouterr().out and not engine.runs
    assert main(["sweep", str(file), "--array", "--index", "3"]) == 0
    assert len(engine.runs) == 1
    printed = capsys.readouterr().out
    assert "; 1 of them here; the rest takes" in printed and "finished already" not in printed
    for key, value in {"ID": "6", "MIN": "2", "STEP": "2", "COUNT": "5"}.items():
        monkeypatch.setenv(f"SLURM_ARRAY_TASK_{key}", value)
    # The third of five tasks: points 2, 7.
    assert main(["sweep", str(file), "--array"]) == 0
    assert len(engine.runs) == 3
    # Some indices again: 3 and 9 of an array with gaps, then 5 alone. Point 3 is there.
    for index, first, last, count, runs in ((3, 3, 9, 2, 3), (9, 3, 9, 2, 4), (5, 5, 5, 1, 5)):
        for key, value in {"ID": index, "MIN": first, "MAX": last, "STEP": 1, "COUNT": count}.items():
            monkeypatch.setenv(f"SLURM_ARRAY_TASK_{key}", str(value))
        assert main(["sweep", str(file), "--array"]) == 0
        assert len(engine.runs) == runs
    assert main(["sweep", str(file), "--array", "--index", "99"]) == 2
    assert "expected 0 to 11" in capsys.readouterr().err
    assert main(["sweep", str(file), "--quiet"]) == 0 and len(engine.runs) == 12


def test_few_seeds_and_few_flows_are_warned_of(file, capsys):
    main(["sweep", str(file)])
    assert "3 seeds: an interval over few seeds assumes a normal distribution" in capsys.readouterr().err
    file.write_text(texts.WHICH_SCHEME.replace("seeds = 3", "seeds = 1"))
    main(["sweep", str(file)])
    assert "one seed: no interval" in capsys.readouterr().err


def test_what_was_not_measured_says_which_key_it_needs(file, engine, scenario, capsys):
    scenario.write_text(scenario.read_text() + 'group = "web"\n')
    _native.queues = lambda directory: "null"
    file.write_text(texts.WHICH_SCHEME.replace('"goodput"', '"queue_p99"'))
    main(["sweep", str(file)])
    assert "queue_p99 was not measured: it needs measure.queue_histogram" in capsys.readouterr().err
    file.write_text(texts.WHICH_SCHEME.replace('"goodput"', '"flow web"'))
    main(["sweep", str(file)])
    errors = " ".join(capsys.readouterr().err.split())
    assert (
        "flow web was not measured: it needs measure.goodput by flow in the scenario, and a run of" in errors
    )
    file.write_text(texts.WHICH_SCHEME.replace('"goodput"', '"busbw of web"'))
    main(["sweep", str(file)])
    errors = " ".join(capsys.readouterr().err.split())
    assert "busbw of web was not measured: it needs collective operations of one kind" in errors


def test_unlike_flows_are_not_paired(file, tmp_path, capsys):
    file.write_text(
        texts.WHICH_SCHEME.replace('rows = "scheme"\nalong = "load"', 'rows = "load"\nalong = "scheme"')
    )
    main(["sweep", str(file)])
    assert "as of independent runs: flows or seeds are not the same" in capsys.readouterr().out


@pytest.mark.parametrize("why", [store.Unread("t.csv: changed"), "out of range"])
def test_retry_is_named_for_points_that_need_it(file, monkeypatch, capsys, why):
    def run(points, kept, **options):
        return executor.Outcome(failed=[(points[0], why)])

    monkeypatch.setattr(executor, "run", run)
    assert main(["sweep", str(file)]) == 1
    assert ("without --retry" in capsys.readouterr().err) == (type(why) is str)


def test_unlike_seeds_are_not_paired(file, tmp_path):
    main(["sweep", str(file), "--quiet"])
    found = weftline.load(tmp_path / "out/sweeps/which")
    for cell in found.cells:
        for seed in (1, 2) if cell.at("scheme") == "DCTCP" else (3,):
            shutil.rmtree(cell.runs.folder(seed))
    left = weftline.load(found.path)
    assert not any(estimate["paired"] for estimate in left.estimates)
    assert "as of independent runs: flows or seeds are not the same" in left.tables()[-1].note


def test_the_json_has_it_all(file, capsys):
    main(["sweep", str(file), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert len(found["runs"]) == 12 and len(found["estimates"]) == 8 and not found["failed"]


def test_a_store_without_sweep_and_a_broken_description_are_reported(engine, tmp_path):
    store.Store.create(tmp_path / "s")
    with pytest.raises(InputError, match="not of a sweep"):
        weftline.load(tmp_path / "s")
    (tmp_path / "s/sweep.json").write_text('{"name": 3}')
    with pytest.raises(InputError, match="not the description of a sweep"):
        weftline.load(tmp_path / "s")
    with pytest.raises(InputError, match="not the folder of a finished run"):
        weftline.load(tmp_path)


def test_an_interrupt_keeps_what_is_finished(file, engine, capsys, monkeypatch):
    from weftline.sweeps import executor

    real = executor.run

    def half(points, *rest, **options):
        outcome = real(points[:5], *rest, **options)
        outcome.interrupted = True
        return outcome

    monkeypatch.setattr(executor, "run", half)
    assert main(["sweep", str(file)]) == 1
    assert "interrupted; finished runs are kept" in capsys.readouterr().err
    monkeypatch.setattr(executor, "run", real)
    assert main(["sweep", str(file)]) == 0 and len(engine.runs) == 12


def test_an_uneven_interval_shows_both_ends():
    from weftline.measures.stats import Estimate
    from weftline.quantities import digits

    assert tables.estimate_text(Estimate(2.0, 1.0, 3.0, 5), digits) == "2.00 ±1.00"
    assert tables.estimate_text(Estimate(2.0, 1.5, 3.5, 5), digits) == "2.00 [1.50, 3.50]"


def test_a_difference_below_one_per_cent_is_not_written_as_zero():
    from weftline.measures.judgements import Footnotes, Separation
    from weftline.measures.stats import Difference, Estimate
    from weftline.quantities import digits

    def text(mean: float) -> str:
        found = Difference(Estimate(mean, mean - 0.5, mean + 0.5, 5), paired=True, base=1000.0)
        return tables.difference_text(found, digits, Separation(-1), Footnotes())

    assert text(-2.6) == "-2.60 ±0.500 (-0.3 %) *"
    assert text(26.0).endswith("(+3 %) *") and text(0.0).endswith("(+0 %) *")


def test_progress_goes_to_whom_it_is_given(file, monkeypatch):
    received = []
    weftline.sweep(file, progress=received.append)
    assert all("/12 runs" in text for text in received)
    from weftline.figures import notebook

    class Cell:
        def __init__(self, name):
            self.shown = []
            cells.append(self)

        def say(self, text):
            self.shown.append(text)

        def clear(self):
            self.shown.append("")

    cells: list[Cell] = []
    monkeypatch.setattr(notebook, "shown", lambda: True)
    monkeypatch.setattr(notebook, "ProgressCell", Cell)
    weftline.sweep(file)
    weftline.sweep(file, progress=False)
    assert len(cells) == 1 and cells[0].shown[-1] == ""


def test_a_dry_run_refuses_a_store_that_the_sweep_would_refuse(file, engine, tmp_path, capsys):
    (tmp_path / "taken").write_text("")
    for out in (tmp_path / "taken", tmp_path / "taken" / "below"):
        assert main(["sweep", str(file), "--dry-run", "--out", str(out)]) == 2
        assert f"{tmp_path / 'taken'} is not a folder" in capsys.readouterr().err
    assert main(["sweep", str(file), "--dry-run", "--out", str(tmp_path / "free")]) == 0
    assert not (tmp_path / "free").exists() and not engine.runs


def test_points_that_failed_earlier_are_not_announced_as_finished(file, engine, tmp_path, capsys):
    main(["sweep", str(file), "--quiet"])
    folder = tmp_path / "out/sweeps/which"
    key = next((folder / "points").iterdir()).name
    shutil.rmtree(folder / "points" / key)
    (folder / "failed" / f"{key}.json").write_text(integrity.sealed({"error": "no room"}))
    for options in (["--dry-run"], []):
        main(["sweep", str(file), *options])
        printed = capsys.readouterr().out
        assert "11 are finished already; 1 failed earlier, and without --retry is not run again" in printed
