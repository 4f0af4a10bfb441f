"""Experiments on what runs cost: their plan, the rounds, what is kept, claims and the page."""

import json
import re

import pytest

from weftline import _native
from weftline.cli import bench
from weftline.cli.main import main
from weftline.measures import stats
from weftline.reproduce import cost, experiments, runner

pytest.importorskip("vl_convert", reason="the page needs vl-convert-python")

EXPERIMENT = """
title = "Two sizes"
source = "own"
scenario = "scenario.toml"
repeats = 2
[full]
says = "longer"
[[axis]]
name = "hosts"
variants = [
  { name = "32", set = { "topology.hosts" = 32 }, full = { "workload.0.duration" = "2ms" } },
  { name = "1 024", set = { "topology.hosts" = 1024 } },
  { name = "10 240", size = "full", set = { "topology.hosts" = 10240 } },
]
[[axis]]
name = "threads"
variants = [{ name = "one" }, { name = "two", threads = 2 }]
[[figure]]
name = "hosts"
title = "Hosts"
kind = "cost"
lines = "threads"
along = "hosts"
"""


@pytest.fixture
def folder(engine, tmp_path, scenario, monkeypatch):
    """The folder of a small experiment on cost; threads never wait while it is measured."""
    once = bench.in_own_process

    def without_waiting(name, threads, changes):
        found = once(name, threads, changes)
        return {**found, "cpu_seconds": found["wall_seconds"] * found["threads"]} | engine.measured

    monkeypatch.setattr(bench, "in_own_process", without_waiting)
    found = tmp_path / "sizes"
    found.mkdir()
    (found / "scenario.toml").write_text(scenario.read_text())
    (found / "experiment.toml").write_text(EXPERIMENT)
    return found


def plan(folder, *, full=False):
    experiment = experiments.load(str(folder))
    size = runner.chosen_size(experiment, full=full)
    return cost.plan(experiment, size, folder / "out")[0]


def test_a_point_is_a_place_on_a_line_and_some_are_of_the_full_size_alone(engine, folder):
    found = [(p.line, p.place, p.threads, p.x) for p in plan(folder).points]
    assert found == [
        ("one", "32", 1, 32),
        ("one", "1 024", 1, 1024),
        ("two", "32", 2, 32),
        ("two", "1 024", 2, 1024),
    ]
    full = plan(folder, full=True).points
    assert [p.place for p in full] == ["32", "1 024", "10 240"] * 2
    assert dict(full[0].settings)["workload.0.duration"] == '"2ms"'
    assert "workload.0.duration" not in dict(plan(folder).points[0].settings)


def test_points_are_measured_in_rounds_and_kept(engine, folder, monkeypatch):
    asked = []
    measure = bench.in_own_process

    def note(name, threads, changes):
        asked.append((dict(changes)["topology.hosts"], threads))
        return measure(name, threads, changes)

    monkeypatch.setattr(bench, "in_own_process", note)
    assert main(["reproduce", str(folder), "--quiet"]) == 0
    once = [("32", 1), ("1024", 1), ("32", 2), ("1024", 2)]
    assert asked == once * 2
    assert main(["reproduce", str(folder), "--quiet"]) == 0
    assert asked == once * 2, "the second time nothing is left to measure"


def test_a_measurement_that_was_cut_short_goes_on_where_it_was(engine, folder):
    points = plan(folder).points
    cost.measure(points, 1, show=lambda text: None)
    points[0].file.write_text('{"runs": [')
    cost.measure(points, 2, show=lambda text: None)
    assert [len(json.loads(point.file.read_text())["runs"]) for point in points] == [2, 2, 2, 2]
    assert len(engine.benched) == 4 + 5


def test_a_dry_run_counts_the_points_that_are_still_to_be_measured(engine, folder, capsys):
    def left():
        assert main(["reproduce", str(folder), "--dry-run"]) == 0
        return capsys.readouterr().out.partition("left: ")[2].strip()

    assert left() == "4 points whose cost is measured, in a time that is not known ahead"
    assert main(["reproduce", str(folder), "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["measured"] == 4
    assert main(["reproduce", str(folder), "--quiet"]) == 0
    assert left() == "nothing"


def test_another_build_is_measured_again(engine, folder, monkeypatch):
    before = [point.file for point in plan(folder).points]
    monkeypatch.setattr(cost, "_build", lambda: "another")
    assert not set(before) & {point.file for point in plan(folder).points}


def test_table_and_page_show_time_and_memory(engine, folder, capsys, tmp_path):
    assert main(["reproduce", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert "250 to 250" in printed and "500 to 500" in printed and "50 MB" in printed and "500 ms" in printed
    assert "1.00" in printed, "the speed-up of two threads that take as long as one"
    assert "Median of 2 runs" in printed and "waited" not in printed
    page = (tmp_path / "out/experiments/sizes/report.html").read_text()
    specs = json.loads(re.search(r'id="figures">(.*?)</script>', page)[1])
    titles = [unit["layer"][0]["encoding"]["y"]["title"] for unit in specs[0]["hconcat"]]
    assert titles == ["ns per packet-hop", "peak memory (MB)"]
    values = {(row["line"], row["panel"], row["x"]): row["y"] for row in specs[0]["data"]["values"]}
    assert values["one", "ns per packet-hop", 1024] == 250 and values["two", "ns per packet-hop", 1024] == 250


def test_a_busy_machine_and_an_unused_thread_are_reported(engine, folder, capsys):
    engine.measured = {"cpu_seconds": 2.0, "wall_seconds": 4.0, "threads": 1, "note": "too few to gain"}
    assert main(["reproduce", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert "waited for a core or for each other: one, 32;" in printed
    assert "two, 32: too few to gain." in printed
    assert len(engine.benched) == 4 * 4, "disturbed runs are repeated, but not for ever"


def test_the_minimally_disturbed_runs_count(engine, folder):
    point = plan(folder).points[0]
    for wall in (9.0, 2.0, 2.1):
        engine.measured = {"cpu_seconds": 2.0, "wall_seconds": wall}
        cost._keep(point.file, [*cost._kept(point.file), bench.in_own_process("x.toml", 1, [])])
    found = cost.summary(point, 2)
    assert [run["wall_seconds"] for run in found["runs"]] == [2.0, 2.1]
    assert found["waited"] == pytest.approx(1.025)


def test_a_point_that_fails_is_named_and_the_others_are_shown(engine, folder, capsys, monkeypatch):
    measure = bench.in_own_process

    def fail_large(name, threads, changes):
        if dict(changes)["topology.hosts"] == "1024":
            raise _native.RunFailed("too little memory")
        return measure(name, threads, changes)

    monkeypatch.setattr(bench, "in_own_process", fail_large)
    assert main(["reproduce", str(folder)]) == 1
    printed = capsys.readouterr()
    assert "failed: one, 1 024: too little memory" in printed.err and "250 to 250" in printed.out


def measured(panel, *, times=(1.0, 1.0, 1.0), **changes):
    """Give every point of a panel a run for each of `times`; `changes` may depend on the point."""
    for point in panel.points:
        run = {"threads": point.threads, "packet_hops": 1000, "events": 1300, "flows": 10, "fingerprint": "f"}
        run |= {"setup_seconds": 0.1, "cpu_seconds": 1e-6 * point.x, "wall_seconds": 1e-6 * point.x}
        run |= {"peak_memory_bytes": 20_000_000 + 500 * int(point.x), "instructions_per_hop": None}
        run |= {key: change(point) for key, change in changes.items()}
        each = ("cpu_seconds", "wall_seconds")
        runs = [run | {key: time * run[key] for key in each} for time in times]
        panel.measured[point] = bench.summary(point.line, "", runs)
    return panel


def claim(**keys):
    return {"text": "t", "kind": "cost", "figure": "hosts", "line": "one"} | keys


def test_a_claim_is_about_a_place_or_a_ratio_of_two(engine, folder):
    panels = [measured(plan(folder))]
    alone = cost.check(claim(metric="cpu_time", at="32", at_most=1), panels)
    assert alone.measured == pytest.approx(32e-6 * 1e9 / 1000) and alone.word == "DIFFERS"
    ratio = cost.check(claim(metric="cpu_time", at="1 024", against_at="32", at_most=32.1), panels)
    assert ratio.measured == pytest.approx(32) and ratio.word == "PASS"
    assert cost.check(claim(metric="time", line="two", against="one", at_most=1), panels).measured == 1


def test_a_claim_on_time_is_decided_by_the_interval_over_the_runs_of_its_points(engine, folder):
    panels = [measured(plan(folder), times=(0.9, 1.0, 1.1))]
    half = stats.t_quantile(0.975, 2) * 0.1 / 3**0.5
    alone = cost.check(claim(metric="cpu_time", at="32", below=39), panels)
    assert alone.interval == pytest.approx((32 * (1 - half), 32 * (1 + half))) and alone.word == "OPEN"
    assert cost.check(claim(metric="cpu_time", at="32", below=41), panels).word == "PASS"
    ratio = claim(metric="cpu_time", at="1 024", against_at="32")
    assert cost.check(ratio | {"at_most": 33}, panels).word == "OPEN"
    assert cost.check(ratio | {"at_most": 54}, panels).word == "PASS"
    once = cost.check(ratio | {"at_most": 54}, [measured(plan(folder), times=(1.0,))])
    assert once.word == "OPEN" and once.reasons[0].text.endswith("1 undisturbed of 1 runs; a time needs 3")


def test_growth_is_bytes_a_step_along_x(engine, folder):
    panels = [measured(plan(folder))]
    found = cost.check(claim(metric="growth", at="1 024", against_at="32", below=600), panels)
    assert found.measured == pytest.approx(500) and found.word == "PASS"


def test_differences_count_the_places_where_two_lines_find_other_things(engine, folder):
    same = claim(metric="differences", line="two", against="one", at_most=0)
    assert cost.check(same, [measured(plan(folder))]).word == "PASS"
    odd = measured(plan(folder), fingerprint=lambda p: f"{p.threads}" if p.place == "32" else "f")
    assert cost.check(same, [odd]).measured == 1
    assert cost.check(same | {"at": "1 024"}, [odd]).word == "PASS"


def test_a_claim_about_a_place_of_the_full_size_waits_for_it(engine, folder):
    far = claim(metric="memory", at="10 240", below=1e9)
    assert cost.check(far, [measured(plan(folder))]) is None
    assert cost.check(far, [measured(plan(folder, full=True))]).word == "PASS"


def test_a_claim_on_a_point_that_failed_is_left_open(engine, folder):
    panel = measured(plan(folder))
    del panel.measured[panel.points[0]]
    assert cost.check(claim(metric="memory", at="32", below=1e9), [panel]).word == "–"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('along = "hosts"', 'along = "host"', 'did you mean "hosts"?'),
        ('name = "1 024"', 'name = "many"', 'expected a number such as "1 024", found "many"'),
        ("threads = 2", "threads = 0", "threads: expected 1 to 65535, found 0"),
        ("threads = 2", "threads = true", "threads: expected whole number, found True"),
        ("repeats = 2", "repeats = 0", "repeats: expected a number from 1 to 1000"),
        ('along = "hosts"', 'along = "hosts"\nmetrics = ["memori"]', 'did you mean "memory"?'),
        ('size = "full"', 'size = "ful"', 'size: expected "full" or "asked", found "ful"'),
    ],
)
def test_what_is_wrong_with_an_experiment_on_cost_is_named(engine, folder, capsys, old, new, message):
    file = folder / "experiment.toml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    assert main(["reproduce", str(folder)]) == 2
    assert message in capsys.readouterr().err
    assert engine.benched == []


def test_several_seeds_or_runs_at_a_time_are_refused(engine, folder, capsys):
    assert main(["reproduce", str(folder), "--seeds", "1-2"]) == 2
    assert main(["reproduce", str(folder), "--jobs", "2"]) == 2
    assert "expected one run at a time" in capsys.readouterr().err
    assert main(["reproduce", str(folder), "--on", "ray"]) == 2
    assert "measures time; expected this machine" in capsys.readouterr().err


def test_json_has_every_point_and_claim(engine, folder, capsys):
    assert main(["reproduce", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["machine"].keys() == {"cpu", "cores", "kernel"} and found["claims"] == []
    assert [(p["line"], p["hosts"]) for p in found["points"][:2]] == [("one", 32), ("one", 1024)]
    assert found["points"][0]["measured"]["median"]["cpu_seconds"] == 2.5


def test_a_part_can_be_measured_alone(engine, folder, capsys):
    assert main(["reproduce", str(folder), "--only", "threads=two", "--only", "hosts=32"]) == 0
    assert len(engine.benched) == 2
    assert main(["reproduce", str(folder), "--threads", "2"]) == 2
    assert "the lines of sizes state how many threads they use" in capsys.readouterr().err


def test_the_scale_study_covers_what_it_promises(engine, tmp_path):
    experiment = experiments.load("scale")
    for full, highest in ((False, 3e6), (True, 1e7)):
        panels = cost.plan(experiment, runner.chosen_size(experiment, full=full), tmp_path)
        xs = {panel.figure.name: [point.x for point in panel.points] for panel in panels}
        assert (min(xs["hosts"]), max(xs["hosts"])) == (32, 10240)
        assert (min(xs["fat-tree"]), max(xs["fat-tree"])) == (1024, 101306)
        assert (min(xs["flows"]), max(xs["flows"])) == (1000, highest)
        assert {point.threads for panel in panels for point in panel.points} == {1, 2}
    known = {variant for axis in experiment.axes.values() for variant in axis}
    assert all(claim.get("at", "32") in known for claim in experiment.claims)


@pytest.mark.skipif(not hasattr(_native, "bench_scenario"), reason="the native module is not built")
def test_a_scenario_file_is_benched_in_a_process_of_its_own(tmp_path):
    file = tmp_path / "star.toml"
    file.write_text('[topology]\nkind = "star"\n[[workload]]\nkind = "permutation"\nsize = "10KB"\n')
    found = bench.in_own_process(str(file), 1, [("workload.0.size", '"20KB"')])
    # 16 flows of 20 packets over two links, and as many acknowledgements.
    assert found["packet_hops"] == 16 * 20 * 2 * 2 and found["flows"] == 16
    assert found["peak_memory_bytes"] >= found["memory_before_bytes"] > 1_000_000


def test_a_scenario_file_that_is_not_there_is_reported_before_anything_runs(engine, scenario, capsys):
    assert main(["bench", "p8", "smal.toml"]) == 2
    assert 'did you mean "small.toml"?' in capsys.readouterr().err and engine.benched == []
    assert main(["bench", "small.toml", "--repeats", "1", "--set", "topology.hosts=4", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["set"] == ["topology.hosts=4"]
    assert document["workloads"][0]["workload"] == "small.toml"


CLAIM = '[[claim]]\ntext = "c"\nkind = "cost"\nfigure = "hosts"\nline = "one"\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('metric = "differences"\nat_most = 0', 'differences: expected the key "against"'),
        (
            'metric = "differences"\nagainst = "two"\nagainst_at = "32"\nat_most = 0',
            'against_at has no effect with metric = "differences", which compares with "against"',
        ),
        ('metric = "growth"\nat = "1 024"\nbelow = 1', 'growth: expected the key "against_at"'),
        (
            'metric = "growth"\nat = "32"\nagainst_at = "32"\nbelow = 1',
            'against: "one" would be compared with itself',
        ),
        (
            'metric = "growth"\nat = "32"\nagainst_at = "1 024"\nagainst = "two"\nbelow = 1',
            'against has no effect with metric = "growth"',
        ),
        # The last place of the small size is 1 024: the claim would compare it with itself.
        ('metric = "time"\nagainst_at = "1 024"\nbelow = 2', 'expected the key "at", the place that is'),
        ('metric = "time"\nbelow = 0', "below: time is never negative, so no number is below 0"),
        ('metric = "time"\nagainst = "two"\nabove = -1', "above: a ratio is never negative, so every number"),
        ('metric = "time"\nabove = 2\nbelow = 1', "below: no number is above 2 and below 1"),
        ('metric = "time"\nbelow = nan', "below: expected number, found nan"),
        ('metric = "tim"\nbelow = 1', 'unknown metric "tim": did you mean "time"?'),
    ],
)
def test_a_claim_that_compares_nothing_or_that_no_number_meets_is_refused(engine, folder, capsys, text, says):
    file = folder / "experiment.toml"
    file.write_text(f"{EXPERIMENT}{CLAIM}{text}\n")
    assert main(["reproduce", str(folder)]) == 2
    error = capsys.readouterr().err
    assert f"{file}:" in error and says in error
    assert engine.benched == []


def test_memory_may_shrink_and_numbers_of_differences_are_no_ratios(folder):
    (folder / "experiment.toml").write_text(
        f'{EXPERIMENT}{CLAIM}metric = "growth"\nat = "1 024"\nagainst_at = "32"\nabove = -1\n'
    )
    assert experiments.load(str(folder)).claims
    panel = measured(plan(folder))
    assert not cost.check(claim(metric="differences", against="two", below=1), [panel]).ratio
    assert cost.check(claim(metric="time", against="two", below=9), [panel]).ratio
