"""`weftline bench`: rounds, medians, the file it writes and the comparison with one."""

import json
from pathlib import Path

import commands
import pytest

from weftline import _native
from weftline.cli import baseline, bench
from weftline.cli.main import main

needs_native = pytest.mark.skipif(not hasattr(_native, "workloads"), reason="the native module is not built")


def run(**changes):
    measured = {
        "threads": 1,
        "packet_hops": 1000,
        "events": 1300,
        "flows": 10,
        "fingerprint": "f",
        "setup_seconds": 0.1,
        "cpu_seconds": 2.0,
        "wall_seconds": 4.0,
        "peak_memory_bytes": 100,
        "instructions_per_hop": None,
    }
    return measured | changes


def stored(folder, name="old.json", **changes):
    """Write a measurement of p8 and pod with the stand-in's speed, 5 M packet-hops a CPU second."""
    assert main(["bench", "--repeats", "1", "--json", "--out", str(folder / name)]) == 0
    document = json.loads((folder / name).read_text())
    document |= changes
    (folder / name).write_text(json.dumps(document))
    return document


def test_every_workload_has_its_turn_in_every_round(engine):
    assert main(["bench", "--repeats", "2", "--json"]) == 0
    assert engine.benched == ["p8", "pod", "p8", "pod"]


def test_a_workload_named_twice_runs_once(engine):
    assert main(["bench", "pod", "pod", "--repeats", "1", "--json"]) == 0
    assert engine.benched == ["pod"]


def test_median_minimum_and_maximum_are_of_each_measure_by_itself():
    runs = [run(cpu_seconds=cpu, wall_seconds=wall) for cpu, wall in ((1.0, 8.0), (4.0, 5.0), (2.0, 10.0))]
    found = bench.summary("p8", "what it is", runs)
    assert [found[of]["cpu_seconds"] for of in ("min", "median", "max")] == [1.0, 2.0, 4.0]
    rates = [found[of]["packet_hops_per_cpu_second"] for of in ("min", "median", "max")]
    assert rates == [250.0, 500.0, 1000.0]
    assert found["median"]["packet_hops_per_wall_second"] == 125.0
    assert found["median"]["instructions_per_hop"] is None
    assert [r["cpu_seconds"] for r in found["runs"]] == [1.0, 4.0, 2.0]


def test_runs_that_differ_in_their_result_are_a_failure():
    with pytest.raises(_native.RunFailed, match="p8: its runs differ in fingerprint: f, g"):
        bench.summary("p8", "", [run(), run(fingerprint="g")])


def test_the_file_holds_what_was_measured_and_where_without_the_name_of_the_host(engine, tmp_path):
    document = stored(tmp_path)
    assert (document["format"], document["version"], document["weftline"]) == ("weftline bench", 1, "0.1.0")
    assert document["machine"].keys() == {"cpu", "cores", "kernel"}
    assert [w["workload"] for w in document["workloads"]] == ["p8", "pod"]
    assert document["workloads"][0]["median"]["packet_hops_per_cpu_second"] == 5e6
    assert document["workloads"][0]["fingerprint"] == "0123456789abcdef"


def test_json_on_standard_output_is_the_file(engine, tmp_path, capsys):
    document = stored(tmp_path)
    assert json.loads(capsys.readouterr().out) == document


def test_against_itself_all_is_the_same(engine, tmp_path, capsys):
    stored(tmp_path)
    capsys.readouterr()
    assert main(["bench", "p8", "--against", "old.json", "--repeats", "1"]) == 0
    printed = capsys.readouterr().out
    assert "ratio" in printed and "1.000" in printed and "same" in printed
    assert "other work" not in printed and "another machine" not in printed


@pytest.mark.parametrize(
    ("seconds", "verdict"), [(1.0, "faster"), (4.0, "slower"), (1.95, "same"), (2.05, "same")]
)
def test_the_verdict_follows_the_speed(engine, tmp_path, capsys, seconds, verdict):
    stored(tmp_path)
    capsys.readouterr()
    engine.measured = {"cpu_seconds": seconds}
    assert main(["bench", "p8", "--against", "old.json", "--repeats", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["comparison"]["p8"]
    assert (found["verdict"], found["same_work"]) == (verdict, True)
    assert found["ratio"] == pytest.approx(2 / seconds)


def entry(median, lowest, highest, **changes):
    speeds = {"median": median, "min": lowest, "max": highest}
    metrics = ("packet_hops_per_cpu_second", "packet_hops_per_wall_second")
    found = {of: dict.fromkeys(metrics, value) for of, value in speeds.items()}
    return {"threads": 1, "fingerprint": "f"} | found | changes


def test_ranges_that_meet_are_the_same_however_far_the_medians_are():
    assert baseline.compare(entry(12, 9, 13), entry(10, 8, 10.5)).verdict == "same"
    assert baseline.compare(entry(12, 11, 13), entry(10, 8, 10.5)).verdict == "faster"
    assert baseline.compare(entry(10, 8, 10.5), entry(12, 11, 13)).verdict == "slower"


def test_ranges_of_few_runs_say_how_often_they_miss_each_other_by_chance(engine, tmp_path, capsys):
    # Of the 20 orders of three and three runs, two keep them apart; of one and three runs two of four.
    assert [baseline.by_chance(*counts) for counts in ((1, 1), (1, 3), (3, 3))] == [1.0, 0.5, 0.1]
    assert baseline.by_chance(5, 5) == pytest.approx(2 / 252)
    stored(tmp_path)
    capsys.readouterr()
    assert main(["bench", "p8", "--against", "old.json", "--repeats", "1"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert (
        "at one speed, do not meet in 100 % of cases; with --repeats 5, here and for old.json, in under 1 %."
        in printed
    )
    assert main(["bench", "p8", "--against", "old.json", "--repeats", "40"]) == 0
    assert "do not meet in" not in capsys.readouterr().out


def test_several_threads_are_compared_by_wall_time():
    one, two = entry(10, 10, 10), entry(10, 10, 10, threads=2)
    two["median"]["packet_hops_per_wall_second"] = 18
    found = baseline.compare(two, one)
    assert (found.metric, found.ratio) == ("packet_hops_per_wall_second", 1.8)


def test_another_fingerprint_is_reported(engine, tmp_path, capsys):
    stored(tmp_path)
    capsys.readouterr()
    engine.measured = {"fingerprint": "f" * 16}
    assert main(["bench", "--against", "old.json", "--repeats", "1"]) == 0
    printed = capsys.readouterr().out
    assert "same, other work" in printed and "Other work: the fingerprint is another one" in printed


def test_a_workload_that_is_not_stored_and_another_machine_are_reported(engine, tmp_path, capsys):
    document = stored(tmp_path, machine={"cpu": "i386", "cores": 1, "kernel": "Linux 1.0"})
    document["workloads"] = document["workloads"][:1]
    Path("old.json").write_text(json.dumps(document))
    capsys.readouterr()
    assert main(["bench", "--against", "old.json", "--repeats", "1"]) == 0
    printed = capsys.readouterr().out
    assert "not stored" in printed and "another machine" in printed


@pytest.mark.parametrize(("percent", "status"), [("20", 1), ("24.9", 1), ("25", 0), ("30", 0)])
def test_fail_above_decides_the_status_by_the_time_of_a_packet_hop(engine, tmp_path, capsys, percent, status):
    stored(tmp_path)
    engine.measured = {"cpu_seconds": 2.5}
    arguments = ["bench", "p8", "--against", "old.json", "--repeats", "1", "--fail-above", percent]
    assert main(arguments) == status
    assert ("p8 (25.0 % longer)" in capsys.readouterr().err) == (status == 1)


def test_what_was_slower_is_still_written(engine, tmp_path):
    stored(tmp_path)
    engine.measured = {"cpu_seconds": 9.0}
    arguments = ["bench", "p8", "--against", "old.json", "--fail-above", "3", "--out", "new.json"]
    assert main(arguments) == 1
    assert json.loads(Path("new.json").read_text())["workloads"][0]["median"]["cpu_seconds"] == 9.0


@pytest.mark.parametrize("out", ["old.json", "./old.json", "link.json"])
def test_the_file_to_compare_with_is_not_replaced(engine, tmp_path, capsys, out):
    before = stored(tmp_path)
    Path("link.json").symlink_to("old.json")
    engine.benched.clear()
    engine.measured = {"cpu_seconds": 9.0}
    arguments = ["bench", "p8", "--against", "old.json", "--fail-above", "3", "--out", out]
    assert main(arguments) == 2
    assert f"--out {out}: is the file of --against" in capsys.readouterr().err
    assert json.loads(Path("old.json").read_text()) == before
    assert engine.benched == []


def test_threads_are_handed_on_and_a_note_is_shown(engine, capsys):
    engine.measured = {"threads": 1, "note": "2 threads were asked for; the engine used 1"}
    assert main(["bench", "pod", "--threads", "2"]) == 0
    assert "2 threads were asked for" in capsys.readouterr().out
    engine.measured = {}
    assert main(["bench", "pod", "--threads", "2"]) == 0
    assert "packet-hops/wall s" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "old.json:1: not JSON"),
        ("[" * 100_000, "old.json: not JSON"),
        ("[]", "old.json: expected what `weftline bench --out` writes"),
        ('{"format": "other"}', "old.json: expected what `weftline bench --out` writes"),
        ('{"format": "weftline bench", "version": 2}', "old.json: version: expected 1, found 2"),
        ('{"format": "weftline bench", "version": 1}', "old.json: workloads: expected a list"),
        (
            '{"format": "weftline bench", "version": 1, "workloads": [{"workload": "p8"}]}',
            "old.json: workloads.0.fingerprint: missing, expected",
        ),
        (
            '{"format": "weftline bench", "version": 1, "workloads": []}',
            "none of the workloads to run is in it",
        ),
        (b"\xff\xfe", "not UTF-8 text (byte 0)"),
    ],
)
def test_a_file_to_compare_with_that_cannot_be_used_is_named_before_anything_runs(
    engine, tmp_path, capsys, text, message
):
    Path("old.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert main(["bench", "--against", "old.json"]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("error: ") and message in printed
    assert engine.benched == []


@pytest.mark.parametrize("value", ["0", "-1", "true", '"5"', "null", "NaN", "1e999", "1" + "0" * 400])
def test_a_speed_that_is_none_is_named(engine, tmp_path, capsys, value):
    text = json.dumps(stored(tmp_path)).replace(
        '"packet_hops_per_cpu_second": 5000000.0', f'"packet_hops_per_cpu_second": {value}'
    )
    Path("old.json").write_text(text)
    assert main(["bench", "--against", "old.json"]) == 2
    assert "workloads.0.median.packet_hops_per_cpu_second: found" in capsys.readouterr().err


def test_a_missing_file_names_the_nearest(engine, tmp_path, capsys):
    stored(tmp_path)
    assert main(["bench", "--against", "odl.json"]) == 2
    assert 'did you mean "old.json"?' in capsys.readouterr().err
    assert main(["bench", "--against", "."]) == 2
    assert "cannot be read: Is a directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "."], "expected the name of a file"),
        (["--out", "nowhere/new.json"], "no such folder: nowhere"),
        (["--fail-above", "3"], "requires --against FILE"),
        (["pot"], 'did you mean "pod"?'),
    ],
)
def test_wrong_options_are_reported_before_anything_runs(engine, capsys, arguments, message):
    assert main(["bench", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert engine.benched == []


@pytest.mark.parametrize("percent", ["-1", "nan", "x", "1_0", ""])
def test_a_percentage_that_is_none_is_refused(engine, percent):
    with pytest.raises(SystemExit) as stop:
        main(["bench", "--fail-above", percent])
    assert stop.value.code == 2


@needs_native
def test_every_scenario_in_benches_is_a_workload_with_a_description():
    listed = {entry["name"]: entry["description"] for entry in json.loads(_native.workloads())}
    files = Path(__file__).resolve().parents[3].glob("benches/*.toml")
    # Those of PINT's library and of the collector have no scenario.
    alone = {"pint-encode", "pint-decode-5", "pint-decode-59"}
    alone |= {"collect-parse-reports", "collect-parse-ioam", "collect-reports", "collect-ioam"}
    assert sorted(listed) == sorted({path.stem for path in files} | alone)
    assert all(len(text) > 20 and "\n" not in text and not text.startswith("#") for text in listed.values())


@needs_native
def test_a_run_in_a_process_of_its_own_reports_its_cost(tmp_path, monkeypatch):
    (tmp_path / "weftline.py").write_text("raise SystemExit('the wrong package')")
    monkeypatch.chdir(tmp_path)
    found = bench.in_own_process("i64", 1)
    assert found["packet_hops"] > 400_000 and found["cpu_seconds"] > 0 and found["threads"] == 1
    assert len(found["fingerprint"]) == 16


@needs_native
def test_what_pint_costs_alone_is_a_workload_without_a_scenario():
    found = bench.in_own_process("pint-encode", 1)
    assert found["packet_hops"] == 20_000_000 and found["cpu_seconds"] > 0
    assert found["note"] == "pint-encode counts hops encoded"
    with pytest.raises(_native.RunFailed, match="--set seed: pint-encode has no scenario"):
        bench.in_own_process("pint-encode", 1, [("seed", "2")])


@needs_native
def test_a_run_that_ends_badly_fails_with_its_message():
    with pytest.raises(_native.RunFailed, match='p9: unknown workload "p9": did you mean "p8"'):
        bench.in_own_process("p9", 1)


@needs_native
def test_one_run_prints_json_alone():
    done = commands.run("bench", "--one", "i64")
    assert done.returncode == 0 and json.loads(done.stdout)["fingerprint"]
