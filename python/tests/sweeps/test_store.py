"""The result store and the executor: whole results or none, nothing run twice, whatever ends the process."""

import os
import subprocess
import sys
import threading
import time
import warnings
from dataclasses import replace

import commands
import pytest

from weftline import _native, scenarios
from weftline.errors import InputError, ResultsWarning, RunFailed, WeftlineWarning
from weftline.sweeps import executor, store


@pytest.fixture
def kept(engine, tmp_path):
    return store.Store.create(tmp_path / "kept")


def points_of(kept, scenario, *, loads=(0.3, 0.5), seeds=(1, 2)):
    source = scenarios.load(scenario)
    return [
        store.point(
            kept.path,
            source,
            {"workload.0.load": load},
            seed,
            name=f"load {load}",
            choice=(("load", f"{load}"),),
        )
        for load in loads
        for seed in seeds
    ]


def run(points, kept, **options):
    return executor.run(points, kept, **{"jobs": 2, **options})


def test_points_run_once_and_leave_nothing_but_results(engine, kept, scenario):
    points = points_of(kept, scenario)
    assert run(points + points, kept).ran == 4
    assert run(points, kept).ran == 0
    assert sorted(os.listdir(kept.points)) == sorted(point.key for point in points)
    assert os.listdir(kept.path / "parts") == []


def test_the_index_knows_what_was_run_and_with_which_choice(engine, kept, scenario):
    points = points_of(kept, scenario)
    run(points, kept)
    found = {entry.key: entry for entry in kept.entries()}
    assert found[points[0].key].choice == {"load": "0.3"} and found[points[0].key].version == "0.1.0"
    assert found[points[3].key].seed == 2 and found[points[3].key].numbers["flows"] == 2000


def test_an_index_of_an_earlier_version_gets_its_slowdowns_without_hashing_runs(
    engine, kept, scenario, monkeypatch
):
    run(points_of(kept, scenario), kept)
    # Files that were written just now have no stamp yet.
    monkeypatch.setattr(store._native, "stamps", lambda folder, keys: ["unchanged"] * len(keys))
    entries = kept.entries()
    assert all(entry.has_slowdowns for entry in entries)
    kept.index.path.unlink()
    for entry in entries:
        numbers = {name: value for name, value in entry.numbers.items() if "slowdown" not in name}
        kept.index.note(replace(entry, numbers=numbers))
    monkeypatch.setattr(store, "examined", None)
    assert kept.entries() == entries
    assert list(kept.index.read()[0].values()) == entries


@pytest.mark.parametrize("harm", ["", '{"key": "x"}\n', '{"key": "abc", "na'])
def test_an_index_that_is_lost_or_torn_is_made_again(engine, kept, scenario, harm):
    points = points_of(kept, scenario)
    run(points, kept)
    index = kept.path / "index.jsonl"
    lines = index.read_text().splitlines()
    index.write_text("\n".join(lines[:2]) + "\n" + harm)
    assert {entry.key for entry in kept.entries()} == {point.key for point in points}
    assert {entry.key for entry in kept.entries()} == {point.key for point in points}
    run(points_of(kept, scenario, loads=(0.9,)), kept)
    assert len(kept.entries()) == 6


def test_a_failed_point_is_recorded_and_the_rest_goes_on(engine, kept, scenario, monkeypatch):
    points = points_of(kept, scenario)
    good = engine.run

    def bad(text, file, base_dir, sets, seed, out, **options):
        if seed == 2:
            raise RunFailed("the controller broke")
        return good(text, file, base_dir, sets, seed, out, **options)

    monkeypatch.setattr(engine, "run", bad)
    outcome = run(points, kept)
    assert outcome.ran == 2 and sorted(p.seed for p, _ in outcome.failed) == [2, 2]
    assert kept.failure(points[1].key) == "the controller broke"
    monkeypatch.setattr(engine, "run", good)
    again = run(points, kept)
    assert again.ran == 0 and len(again.failed) == 2, "a failed point waits until it is asked for"
    assert run(points, kept, retry=True).ran == 2
    assert kept.failure(points[1].key) is None


def test_a_panic_of_the_engine_is_an_error_of_that_point(engine, kept, scenario):
    class Panic(BaseException):
        pass

    engine.outcome = Panic("index out of bounds")
    outcome = run(points_of(kept, scenario), kept)
    assert len(outcome.failed) == 4 and "please report it: index out of bounds" in outcome.failed[0][1]


@pytest.mark.parametrize("code", executor.NO_ROOM)
def test_a_place_where_no_run_can_be_stored_ends_the_sweep_and_blames_no_point(engine, kept, scenario, code):
    engine.outcome = RunFailed(f"flows.parquet: {os.strerror(code)} (os error {code})")
    outcome = run(points_of(kept, scenario), kept)
    assert executor.NO_ROOM[code] in outcome.stopped and not outcome.failed
    assert not list((kept.path / "failed").iterdir())


def test_damaged_results_are_put_aside_and_run_again(engine, kept, scenario):
    points = points_of(kept, scenario)
    run(points, kept)
    (points[0].folder / "summary.json").write_text('{"status": "done"')
    (points[1].folder / "flows.parquet").write_bytes(b"PAR1 cut of")
    (points[2].folder / "summary.json").unlink()
    outcome = run(points, kept)
    assert outcome.ran == 3 and len(outcome.remarks) == 3
    assert "damaged results are now in" in outcome.remarks[0]
    assert len(list((kept.path / "damaged").iterdir())) == 3
    assert all(store.state_of(point.folder) == "finished" for point in points)


def test_a_point_that_another_one_runs_is_waited_for(engine, kept, scenario, monkeypatch):
    monkeypatch.setattr(executor, "_WAIT_SECONDS", 0.05)
    points = points_of(kept, scenario)
    claim = kept.claim(points[0].key)
    threading.Timer(0.3, claim.release).start()
    began = time.monotonic()
    assert run(points, kept).ran == 4
    assert time.monotonic() - began > 0.25


def test_a_sweep_that_only_waits_names_the_process_that_it_waits_for(engine, kept, scenario, monkeypatch):
    monkeypatch.setattr(executor, "_WAIT_SECONDS", 0.05)
    monkeypatch.setattr(executor, "_PATIENCE_SECONDS", 0.5)
    points, shown = points_of(kept, scenario), []
    claim = kept.claim(points[0].key)
    (kept.path / "parts" / f"{points[0].key}.run.node.example.325").mkdir()
    threading.Timer(1.5, claim.release).start()
    with pytest.warns(WeftlineWarning) as warned:
        assert run(points, kept, show=shown.append).ran == 4
    [text] = [str(one.message) for one in warned]
    name = f"{points[0].name}, seed {points[0].seed}"
    assert text.startswith(f"{kept.path}: process 325 on node.example runs all that is left: {name}. ")
    assert any(line.endswith("  waiting for another process") for line in shown)
    # Where the filter of the user makes warnings errors, the sweep ends, with what is finished kept.
    other = points_of(kept, scenario, seeds=[9])
    claim = kept.claim(other[0].key)
    with warnings.catch_warnings():
        warnings.simplefilter("error", WeftlineWarning)
        assert "another process runs all that is left" in run(other, kept).stopped
    claim.release()


def test_the_claim_of_a_killed_process_is_free(kept, scenario):
    code = (
        "import sys, time; from pathlib import Path; from weftline.sweeps import store\n"
        f"claim = store.Store(Path({str(kept.path)!r})).claim('abc')\n"
        "print('held', flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=commands.environment())
    child.stdout.readline()
    assert kept.claim("abc") is None
    child.kill()
    child.wait()
    claim = kept.claim("abc")
    assert claim is not None
    claim.release()


def test_what_a_killed_process_left_is_cleared_and_what_another_is_at_stays(engine, kept, scenario):
    parts = kept.path / "parts"
    (parts / "dead.run.here.1").mkdir()
    (parts / "dead.lock").touch()
    (parts / "alive.run.here.2").mkdir()
    claim = kept.claim("alive")
    run(points_of(kept, scenario), kept)
    assert sorted(path.name for path in parts.iterdir()) == ["alive.lock", "alive.run.here.2"]
    claim.release()


def test_two_sweeps_on_one_store_share_the_work(engine, kept, scenario):
    points = points_of(kept, scenario, seeds=range(1, 11))
    found = []
    both = [threading.Thread(target=lambda: found.append(run(points, kept))) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert sum(outcome.ran for outcome in found) == 20 == len(engine.runs)


def test_a_point_begins_when_its_memory_is_free(engine, kept, scenario, monkeypatch):
    monkeypatch.setattr(executor, "free_memory", lambda: 10e9)
    running, highest = [], []
    good = engine.run

    def slow(*arguments, **options):
        running.append(1)
        highest.append(len(running))
        time.sleep(0.03)
        running.pop()
        return good(*arguments, **options)

    monkeypatch.setattr(engine, "run", slow)
    points = points_of(kept, scenario)
    costs = {point.key: executor.Cost(seconds=1, memory_bytes=6e9) for point in points}
    assert run(points, kept, costs=costs).ran == 4 and max(highest) == 1
    more = points_of(kept, scenario, loads=(0.7, 0.8))
    costs = {point.key: executor.Cost(seconds=1, memory_bytes=20e9) for point in more}
    assert run(more, kept, costs=costs).ran == 4, "what never fits runs alone"
    assert max(highest) == 1


def test_a_file_counts_by_what_is_in_it(engine, tmp_path):
    def key(folder, text):
        (tmp_path / folder).mkdir(exist_ok=True)
        trace = tmp_path / folder / "flows.csv"
        trace.write_text(text)
        resolved = f'[[workload]]\nkind = "trace"\nfile = "{trace}"\n'
        return store.content_key(resolved, scenarios.Source(text=resolved, file="s.toml", base_dir="."))

    assert key("a", "one") == key("b", "one") != key("a", "two")


def test_a_store_of_another_format_is_refused(kept):
    (kept.path / "store.json").write_text('{"format": 9, "begun_by": "weftline 7.0"}')
    for make in (store.Store.open, store.Store.create):
        with pytest.raises(InputError, match="begun by weftline 7"):
            make(kept.path)


@pytest.mark.parametrize("text", ["{", "[]", "", '{"format": 3, "begun_by": "weftline","digest":"00"}'])
def test_a_damaged_description_of_a_store_blocks_nothing(kept, text):
    (kept.path / "store.json").write_text(text)
    with pytest.warns(ResultsWarning, match="writes it again"):
        store.Store.open(kept.path)
    again = store.Store.create(kept.path)
    assert "damaged/store.json-1" in again.remarks[0]
    assert (kept.path / "damaged/store.json-1").read_text() == text
    assert store.Store.create(kept.path).remarks == []


def test_what_is_no_store_is_named(engine, tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        store.Store.open(tmp_path / "nothing")
    with pytest.raises(InputError, match="not a result store"):
        store.Store.open(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        store.Store.create(tmp_path / "file")


def test_a_run_that_another_version_made_is_listed_with_its_version(engine, kept, scenario):
    points = points_of(kept, scenario)
    run(points, kept)
    engine.version = lambda: "9.9.9"
    store._native.version = engine.version
    later = points_of(kept, scenario)
    assert not {p.key for p in later} & {p.key for p in points}
    assert {entry.version for entry in kept.entries()} == {"0.1.0"}


def test_the_progress_tells_points_speed_and_time_left():
    progress = executor.Progress("mine", 20)
    progress._began -= 10
    assert progress.text(5, 1e8, 0.5) == "mine  15/20 runs  10 M packet-hops/s  10 s left"
    assert progress.text(5, 0, 0.0) == "mine  15/20 runs"


@pytest.mark.alone
def test_a_store_of_ten_thousand_runs_opens_within_two_seconds(kept):
    first = kept.points / f"{0:012x}"
    first.mkdir()
    (first / "summary.json").write_text('{"status": "done", "seed": 1, "name": "many", "flows": 5}')
    (first / "scenario.toml").write_text("")
    (first / "flows.parquet").write_bytes(b"PAR1PAR1")
    for number in range(1, 10_000):
        folder = kept.points / f"{number:012x}"
        folder.mkdir()
        for name in ("summary.json", "scenario.toml", "flows.parquet"):
            os.link(first / name, folder / name)
    # The index keeps what was not written a moment ago.
    while _native.stamps(str(kept.points), [first.name]) == [None]:
        time.sleep(0.1)
    assert len(kept.entries()) == 10_000
    # The time of the processor: the machine may have others to serve.
    began = time.process_time()
    assert len(store.Store.open(kept.path).entries()) == 10_000
    assert time.process_time() - began < 2
