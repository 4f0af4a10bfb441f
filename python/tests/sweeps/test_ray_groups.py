"""What is handed to Ray and what becomes of its answers; Ray itself is not needed."""

from __future__ import annotations

from itertools import chain

import pytest

from weftline import _native, scenarios
from weftline.cli.main import main
from weftline.sweeps import executor, ray_executor, ray_worker, store
from weftline.sweeps.executor import Cost, Outcome


@pytest.fixture
def work(engine, tmp_path, scenario):
    """Twenty points of half a second each."""
    kept = store.Store.create(tmp_path / "s")
    source = scenarios.load(scenario)
    points = [store.point(kept.path, source, {}, seed, name="all") for seed in range(20)]
    return made(kept, points, seconds=0.5)


def made(kept, points, *, seconds):
    costs = {point.key: Cost(seconds=seconds, memory_bytes=0) for point in points}
    found = ray_executor._Work(points, kept, Outcome(), threads=1, costs=costs)
    found.points = points
    found.kept = kept
    return found


def groups(work, slots=2):
    return {number: [s["key"] for s in specs] for _, number, specs, _ in work.messages(slots)}


def answer(keys, **more):
    files = {"summary.json": b'{"status": "done"}', "flows.parquet": b"PAR1", "scenario.toml": b""}
    results = [{"key": key, "seconds": 0.5, "hops": 7, "files": files} | more for key in keys]
    return {"identity": ray_worker.identity(), "node": "10.0.0.7 (seven, id 77)", "results": results}


def answer_all(work, found):
    """Answer these groups, and all that are handed over after them."""
    while found:
        for number, keys in found.items():
            work.take(number, answer(keys))
        found = groups(work)


def test_groups_take_two_seconds_and_every_slot_has_two(work):
    found = groups(work)
    assert [len(keys) for keys in found.values()] == [4, 4, 3, 2], (
        "4 of 0.5 s; then the others keep their share"
    )
    assert groups(work) == {}, "no more until an answer comes"
    work.take(1, answer(found[1]))
    assert len(groups(work)) == 1 and work.outcome.ran == 4 and work.hops == 28


def test_runs_that_take_longer_than_expected_come_in_smaller_groups(work):
    found = groups(work)
    work.take(1, answer(found[1], seconds=5.0))
    assert [len(keys) for keys in groups(work).values()] == [1]


def test_finished_results_are_kept_and_errors_recorded(work):
    found = groups(work)
    good, bad = found[1][:2], found[1][2:]
    results = answer(good)["results"] + [
        {"key": key, "seconds": 1, "hops": 0, "error": "it broke"} for key in bad
    ]
    work.take(1, {**answer([]), "results": results})
    assert {entry.key for entry in work.kept.entries()} == set(good)
    assert [why for _, why in work.outcome.failed] == ["it broke"] * 2
    assert work.kept.failure(bad[0]) == "it broke"
    assert work.left() == 16


def test_a_node_without_room_ends_the_sweep_and_blames_no_point(work):
    found = groups(work)
    why = "/tmp/x/out/flows.parquet: No space left on device (os error 28)"
    results = answer(found[1][:1])["results"] + [
        {"key": found[1][1], "seconds": 1, "hops": 0, "error": why, "files": {}}
    ]
    work.take(1, {**answer([]), "results": results})
    assert work.outcome.stopped == f"node 10.0.0.7 (seven, id 77): {why}"
    assert work.outcome.ran == 1 and not work.outcome.failed
    work.release()
    assert not list((work.kept.path / "failed").iterdir()) and not list((work.kept.path / "parts").iterdir())


def test_what_a_failed_run_recorded_on_a_node_is_kept(work):
    (key, *_), *_ = groups(work).values()
    files = {"flows.parquet": b"the flows"}
    result = {"key": key, "seconds": 1, "hops": 0, "error": "it broke\n/tmp/x/out: 7 flows", "files": files}
    work.take(1, {**answer([]), "results": [{**result, "folder": "/tmp/x/out"}]})
    folder = work.kept.path / "failed" / key
    assert work.outcome.failed[0][1] == work.kept.failure(key) == f"it broke\n{folder}: 7 flows"
    assert (folder / "flows.parquet").read_bytes() == b"the flows"


def test_a_lost_group_is_tried_point_by_point_and_then_given_up(work):
    found = groups(work)
    work.lost(1, "WorkerCrashedError: it died", True)
    for number, keys in list(found.items())[1:]:
        work.take(number, answer(keys))
    alone = []
    while again := groups(work):
        for number, keys in again.items():
            if set(keys) & set(found[1]):
                assert len(keys) == 1
                alone += keys
                work.lost(number, "WorkerCrashedError: it died", True)
            else:
                work.take(number, answer(keys))
    assert sorted(alone) == sorted((ray_executor.MAX_LOST - 1) * found[1]) and work.left() == 0
    assert work.outcome.ran == 16 and len(work.outcome.failed) == 4
    assert "lost by Ray 4 times with its worker or node: WorkerCrashedError" in work.outcome.failed[0][1]
    assert work.remarks() == [], "what failed is reported as that"


def test_points_lost_with_a_node_run_again_and_are_counted_once(work):
    found = groups(work)
    work.lost(1, "NodeDiedError: it died", True)
    assert work.left() == 20
    answer_all(work, {number: keys for number, keys in found.items() if number != 1})
    assert work.left() == 0 and work.outcome.ran == 20 and not work.outcome.failed
    assert work.remarks()[0].startswith(
        "4 runs were started again, because Ray lost a worker or a node (NodeD"
    )


def test_what_ray_cannot_run_is_not_tried_often(work):
    found = groups(work)
    work.lost(1, "TypeError: no", False)
    for number, keys in list(found.items())[1:]:
        work.take(number, answer(keys))
    while again := groups(work):
        for number, keys in again.items():
            if keys[0] in found[1]:
                work.lost(number, "TypeError: no", False)
            else:
                work.take(number, answer(keys))
    assert len(work.outcome.failed) == 4 and work.left() == 0


def test_late_points_are_started_again_when_cores_are_free_and_the_first_answer_counts(work, monkeypatch):
    found = groups(work)
    answer_all(work, {number: keys for number, keys in found.items() if number != 1})
    assert work.left() == 4 and groups(work) == {}, "not late yet"
    now = ray_executor.time.monotonic()
    monkeypatch.setattr(ray_executor.time, "monotonic", lambda: now + 60)
    again = groups(work)
    assert [len(keys) for keys in again.values()] == [1], "one of two cores is free"
    ((number, (key,)),) = again.items()
    assert groups(work) == {}, "no point is started a third time"
    work.take(number, answer([key]))
    assert work.outcome.ran == 17 and work.left() == 3
    work.take(1, answer(found[1]))
    assert work.outcome.ran == 20 and work.left() == 0 and work.share() == pytest.approx(1.0)
    assert "late and started a second time" in work.remarks()[0]


def test_a_late_group_that_is_lost_leaves_its_points_to_the_second_start(work, monkeypatch):
    found = groups(work)
    answer_all(work, {number: keys for number, keys in found.items() if number != 1})
    now = ray_executor.time.monotonic()
    monkeypatch.setattr(ray_executor.time, "monotonic", lambda: now + 60)
    again = groups(work, slots=5)
    assert len(again) == 4
    work.lost(1, "NodeDiedError: it died", True)
    assert groups(work, slots=5) == {} and work.left() == 4, "each is at work once more already"
    for number, keys in again.items():
        work.take(number, answer(keys))
    assert work.left() == 0 and work.outcome.ran == 20


@pytest.mark.parametrize(
    ("part", "value", "text"),
    [
        ("weftline", "9.9.9", "has weftline 9.9.9, this is {weftline}: install weftline {weftline} on every"),
        ("python", "3.99", "has Python 3.99, this is {python}: use one version of Python"),
        (
            "schemes",
            "own 0.1.0, build 0123",
            "schemes of another crate own 0.1.0, build 0123, here it is none",
        ),
        ("build", "abcdef012345", "with another engine (abcdef012345, here {build}): install the same wheel"),
        (
            "code",
            "0123456789ab",
            "with another state of its Python files (0123456789ab, here {code}): install the same",
        ),
        ("arithmetic", "0123456789ab", "rounds log and pow in another way"),
        ("error", "ModuleNotFoundError: No module named 'weftline'", "cannot use weftline (ModuleNotFound"),
    ],
)
def test_a_node_that_computes_something_else_stops_the_sweep_and_is_named(work, part, value, text):
    found, ours = groups(work), ray_worker.identity()
    work.take(1, {**answer(found[1]), "identity": {**ours, part: value}})
    assert work.outcome.stopped.startswith("node 10.0.0.7 (seven, id 77) ")
    assert text.format_map(ours) in work.outcome.stopped
    assert not list(work.kept.points.iterdir()), "none of its results is kept"


def test_a_point_that_another_sweep_runs_is_left_to_it(work):
    claim = work.kept.claim(work.points[0].key)
    first = groups(work)
    assert work.points[0].key not in list(chain(*first.values())) and work.left() == 20
    claim.release()
    for number, keys in first.items():
        work.take(number, answer(keys))
    assert work.points[0].key in list(chain(*groups(work, slots=4).values()))


def test_points_that_others_run_are_known_once_nothing_else_is_left(work):
    claim = work.kept.claim(work.points[0].key)
    assert not work.only_elsewhere(), "nothing has been looked after yet"
    found = groups(work)
    while found:
        assert not work.only_elsewhere(), "groups are with Ray"
        for number, keys in found.items():
            work.take(number, answer(keys))
        found = groups(work)
    assert [point.key for point in work.only_elsewhere()] == [work.points[0].key]
    claim.release()
    work._later = 0.1
    assert groups(work) and not work.only_elsewhere()


def test_without_ray_the_error_states_how_to_install_it(engine, scenario, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (tmp_path / "sweep.toml").write_text('scenario = "small.toml"\n')
    assert main(["sweep", str(tmp_path / "sweep.toml"), "--on", "ray"]) == 2
    assert "pip install ray" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(_native, "Table"), reason="the native module is not built")
def test_a_worker_gives_back_what_a_run_here_would_leave(tmp_path):
    (tmp_path / "flows.csv").write_text("src,dst,size_bytes,start_ns\n0,2,200000,1000\n")
    text = '[topology]\nkind = "star"\nhosts = 3\n[[workload]]\nkind = "trace"\nfile = "flows.csv"\n'
    (tmp_path / "traced.toml").write_text(text)
    kept = store.Store.create(tmp_path / "s")
    point = store.point(kept.path, scenarios.load(tmp_path / "traced.toml"), {}, 5, name="traced")
    work = made(kept, [point], seconds=1)
    (_, digest, data), (_, _, specs, _) = work.messages(1)
    # On the other machine the file is not where it was.
    (tmp_path / "flows.csv").rename(tmp_path / "gone.csv")
    found = ray_worker.run_group(specs, {digest: data})
    assert "error" not in found["results"][0], found["results"][0]
    work.take(1, found)
    by_ray = {path.name: path.read_bytes() for path in point.folder.iterdir()}
    (tmp_path / "gone.csv").rename(tmp_path / "flows.csv")
    here = store.Store.create(tmp_path / "here")
    again = store.point(here.path, point.source, {}, 5, name="traced")
    assert again.key == point.key and executor.run([again], here, jobs=1).ran == 1
    for name in ("scenario.toml", "flows.parquet"):
        assert (again.folder / name).read_bytes() == by_ray[name]
