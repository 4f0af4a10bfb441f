"""The command line: what it prints, and its exit status."""

import json
import subprocess
import sys

import pytest

from weftline import _native
from weftline.cli.main import main


def test_run_writes_to_a_folder_named_by_scenario_and_content(engine, scenario, capsys):
    assert main(["run", str(scenario)]) == 0
    (folder,) = engine.runs
    assert (
        folder.parts[0] == "out"
        and folder.name.startswith("small-")
        and len(folder.name) == len("small-") + 8
    )
    printed = capsys.readouterr()
    assert "2,000 of 2,000 done" in printed.out and str(folder) in printed.out
    assert printed.err == ""


def test_a_changed_value_gets_another_folder(engine, scenario):
    main(["run", str(scenario), "--quiet"])
    main(["run", str(scenario), "--quiet", "--set", "workload.0.load=0.7"])
    main(["run", str(scenario), "--quiet", "--seed", "2"])
    assert len(set(engine.runs)) == 3


def test_run_as_json_prints_the_summary_and_nothing_else(engine, scenario, capsys):
    assert main(["run", str(scenario), "--json", "--seed", "7"]) == 0
    assert json.loads(capsys.readouterr().out)["seed"] == 7


def test_results_of_another_run_are_not_replaced_without_force(engine, scenario, capsys):
    assert main(["run", str(scenario), "--quiet", "--out", "here"]) == 0
    assert main(["run", str(scenario), "--quiet", "--out", "here", "--seed", "2"]) == 2
    error = capsys.readouterr().err
    assert "--force" in error and "its scenario, its settings or its seed differ" in error
    assert main(["run", str(scenario), "--quiet", "--out", "here", "--seed", "2", "--force"]) == 0
    assert len(engine.runs) == 2


def test_the_same_run_again_returns_the_stored_results_and_says_so(engine, scenario, capsys):
    assert main(["run", str(scenario)]) == 0
    first = capsys.readouterr().out
    assert main(["run", str(scenario)]) == 0
    again = capsys.readouterr()
    assert again.out == first and "has the results of this run already; --force runs it again" in again.err
    assert main(["run", str(scenario), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reused"] is True
    assert len(engine.runs) == 1
    assert main(["run", str(scenario), "--json", "--force"]) == 0
    assert json.loads(capsys.readouterr().out)["reused"] is False


def test_an_interrupted_folder_of_the_default_name_is_run_again(engine, scenario):
    engine.outcome = "interrupted"
    assert main(["run", str(scenario), "--quiet"]) == 1
    engine.outcome = "done"
    assert main(["run", str(scenario), "--quiet"]) == 0
    assert len(engine.runs) == 2


def test_ctrl_c_ends_with_one_line_and_status_1(engine, scenario, capsys):
    engine.outcome = KeyboardInterrupt()
    assert main(["run", str(scenario), "--out", "here"]) == 1
    assert capsys.readouterr().err == "interrupted; what was computed is in here\n"


def test_a_failed_run_ends_with_its_message_and_status_1(engine, scenario, capsys):
    engine.outcome = _native.RunFailed("no space left on device: here/flows.parquet")
    assert main(["run", str(scenario), "--out", "here"]) == 1
    assert capsys.readouterr().err == "failed: no space left on device: here/flows.parquet\n"


def test_a_stalled_run_says_so(engine, scenario, capsys):
    engine.outcome = "stalled"
    assert main(["run", str(scenario), "--quiet"]) == 1
    assert "unfinished" in capsys.readouterr().err


def test_a_run_beyond_its_memory_limit_says_what_it_held_and_what_to_do(engine, scenario, capsys):
    engine.outcome = "memory-limit"
    assert main(["run", str(scenario), "--quiet", "--out", "here", "--memory", "8GB"]) == 1
    output = capsys.readouterr().err
    assert output.startswith("failed: the process used 8.012 GB, more than its memory limit of 8 GB: ")
    assert "ended at 2 ms of simulated time with 700 flows done" in output
    assert "is in here. Raise --memory" in output


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: None, "no such file"),
        (lambda p: p.mkdir(), "is a directory"),
        (lambda p: p.write_bytes(b"PAR1\xff\xfe"), "not UTF-8 text (byte 4)"),
        (lambda p: p.write_text("name = "), "bad.toml"),
    ],
)
def test_a_scenario_that_cannot_be_read_is_named_with_what_is_wrong(engine, tmp_path, capsys, make, message):
    path = tmp_path / "bad.toml"
    make(path)
    assert main(["run", str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("error: ") and message in printed.err and "Traceback" not in printed.err


def test_a_missing_scenario_names_the_nearest_file(engine, scenario, capsys):
    assert main(["check", str(scenario.with_name("smal.toml"))]) == 2
    assert 'did you mean "small.toml"?' in capsys.readouterr().err


def test_a_set_without_value_says_what_was_expected(engine, scenario, capsys):
    assert main(["run", str(scenario), "--set", "workload"]) == 2
    assert "PATH=VALUE" in capsys.readouterr().err


@pytest.mark.parametrize("threads", ["0", "1", "2", "8"])
def test_threads_are_handed_on_and_the_balance_is_shown_where_there_are_several(
    engine, scenario, capsys, threads, tmp_path
):
    assert main(["run", str(scenario), "--threads", threads, "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr()
    assert ("busiest region 1.02 of mean" in printed.out) == (threads != "1")
    assert ("17% of hops between regions" in printed.out) == (threads != "1")
    assert ("warning: threads: so few" in printed.err) == (threads == "8")


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["nonsense"],
        ["run", "x", "--seed", "-1"],
        ["run", "x", "--threads", "a"],
        ["run", "x", "--threads", "-1"],
        ["run", "x", "--threads", "1025"],
    ],
)
def test_wrong_arguments_have_status_2(engine, arguments):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2


def test_check_prints_what_follows_from_the_scenario(engine, scenario, capsys):
    assert main(["check", str(scenario)]) == 0
    printed = capsys.readouterr().out
    assert "base rtt  8.2 us" in printed and "12,345" in printed
    assert "memory limit  none" in printed and "until         flows-done" in printed
    estimate = printed[printed.index("estimate:") :].splitlines()
    assert estimate == [
        "estimate:",
        "  packet hops  12.3 M",
        "  ends at      about 5 ms of simulated time",
        "  in flight    at most about 1.2 k flows and 57 k packets",
        "  time         about 1:23 min on one core, 45 s on 2",
        "  memory       about 1.2 GB (packets 1 GB, program 24 MB)",
        "warnings  look here",
    ]
    assert main(["check", str(scenario), "--resolved"]) == 0
    assert 'name = "small"' in capsys.readouterr().out


def test_list_names_controllers_and_experiments(engine, capsys):
    assert main(["list", "controllers"]) == 0
    assert "hpcc  control from per-hop telemetry" in capsys.readouterr().out
    assert main(["list", "experiments"]) == 0
    assert "hpcc-fct" in capsys.readouterr().out
    assert main(["list", "tcp-controllers"]) == 0
    listed = capsys.readouterr().out
    assert "dctcp  shares of marks [rdma as tcp.dctcp, tcp]" in listed
    assert main(["list", "controler"]) == 2
    assert 'did you mean "controllers"?' in capsys.readouterr().err


def test_explain_prints_text_and_parameters(engine, capsys):
    assert main(["explain", "hpcc"]) == 0
    assert "eta" in capsys.readouterr().out
    assert main(["explain", "hpc"]) == 2


def test_compare_prints_a_table_and_writes_a_page(engine, scenario, capsys):
    main(["run", str(scenario), "--quiet", "--out", "a"])
    main(["run", str(scenario), "--quiet", "--out", "b", "--set", "transport.controller.kind=dctcp"])
    assert main(["compare", "a", "b"]) == 0
    printed = capsys.readouterr().out
    assert "hpcc" in printed and "dctcp" in printed and "queue p99" in printed
    assert main(["compare", "a", "b", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [line["label"] for line in found["lines"]] == ["hpcc", "dctcp"]


def test_a_folder_that_is_no_run_is_named(engine, tmp_path, capsys):
    assert main(["report", str(tmp_path)]) == 2
    assert "summary.json" in capsys.readouterr().err
    (tmp_path / "summary.json").write_text("[1]")
    assert main(["report", str(tmp_path)]) == 2


def test_bench_prints_one_row_a_workload(engine, capsys):
    assert main(["bench", "pod"]) == 0
    assert "5 M" in capsys.readouterr().out
    assert main(["bench", "pot"]) == 2


def test_a_reader_that_goes_away_is_no_error():
    code = (
        "import sys, types\n"
        "import weftline\n"
        "n = types.ModuleType('weftline._native')\n"
        "n.InputError = n.DamagedError = n.RunFailed = ZeroDivisionError\n"
        "n.schema = lambda: 'x' * 10_000_000\n"
        "sys.modules['weftline._native'] = weftline._native = n\n"
        "from weftline.cli.main import main\n"
        "sys.exit(main(['schema']))\n"
    )
    from pathlib import Path

    package = Path(__file__).resolve().parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=package
    )
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 0
