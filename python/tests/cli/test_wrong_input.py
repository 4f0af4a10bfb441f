"""What a hostile user tries: every command ends soon, with one clear message and the right exit status."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from functools import partial
from pathlib import Path

import commands
import pytest
import texts

from weftline import _native
from weftline.cli.main import main

SCENARIO = texts.star("small", hosts=4, sizes='size = "20KB"', load=0.5, duration="100us")
# Seconds of work in one phase of a run.
LONG_TO_READ = ["workload.0.duration=1000000s"]
LONG_TO_RUN = ["workload.0.duration=3s"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "small.toml").write_text(SCENARIO)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    (folder / "small.toml").write_text(SCENARIO)
    assert weftline("run", "small.toml", "--out", "run", "--quiet", cwd=folder).returncode == 0
    return folder / "run"


def weftline(*arguments, **options):
    return commands.run(*arguments, **{"timeout": 60, **options})


def sets(changes):
    return [part for change in changes for part in ("--set", change)]


# A second on a machine that has one to spare; a busy one shares its seconds out.
BUSY = "CI" in os.environ or os.getloadavg()[0] > len(os.sched_getaffinity(0)) / 2
PROMPTLY = 10 if BUSY else 1


def cpu_seconds(process):
    """What a process has computed so far; where that is unknown, as if it had a core of its own."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        time.sleep(1)
        return 1
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def interrupted(arguments, number, *, once=None):
    """Signal a command when it has computed for a second, or for a second after `once()`.

    One that waits has a second, on a busy machine five. Return status, errors, seconds to its end.
    """
    # The parent process may ignore these signals, and children inherit that.
    heed = partial(signal.signal, number, signal.SIG_DFL)
    process = subprocess.Popen(
        commands.program(*arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed,
    )
    before = 0.0
    if once:
        deadline = time.monotonic() + 30
        while not once() and time.monotonic() < deadline:
            time.sleep(0.02)
        before = cpu_seconds(process)
    deadline = time.monotonic() + ((5 if BUSY else 1) if once else 30)
    while cpu_seconds(process) < before + 1 and time.monotonic() < deadline:
        time.sleep(0.02)
    began = time.monotonic()
    process.send_signal(number)
    try:
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    return process.returncode, errors, time.monotonic() - began


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_a_run_within_a_second_and_its_results_are_readable(here, name):
    number = getattr(signal, name, None) or pytest.skip("not on this system")
    pyarrow = pytest.importorskip("pyarrow.parquet")
    arguments = ["run", "small.toml", "--out", "cut", *sets(LONG_TO_RUN)]
    status, errors, seconds = interrupted(arguments, number, once=(here / "cut/flows.parquet").exists)
    assert (status, errors) == (1, "interrupted; what was computed is in cut\n")
    assert seconds < PROMPTLY
    summary = json.loads((here / "cut/summary.json").read_text())
    assert summary["status"] == "interrupted"
    assert pyarrow.read_table(here / "cut/flows.parquet").num_rows >= summary["flows_done"] > 0


def test_ctrl_c_while_the_network_is_built_leaves_a_folder_that_says_so(here):
    arguments = ["run", "small.toml", "--out", "cut", *sets(LONG_TO_READ)]
    status, errors, seconds = interrupted(arguments, signal.SIGINT, once=(here / "cut/flows.parquet").exists)
    # The flows need more memory than a machine has.
    foreseen, _, last = errors.removesuffix("\n").rpartition("\n")
    assert (status, last) == (1, "interrupted; what was computed is in cut")
    assert foreseen.startswith("warning: run.memory = none: ") and foreseen.count("warning") == 1
    assert seconds < PROMPTLY
    assert json.loads((here / "cut/summary.json").read_text())["status"] == "interrupted"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["list"], ["schema"], ["check", "small.toml"]])
def test_output_that_cannot_be_written_is_reported_in_one_line(here, arguments):
    with open("/dev/full", "w") as full:
        done = weftline(*arguments, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr == "failed: the output cannot be written: No space left on device\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_trace_that_never_comes_can_be_given_up(here):
    os.mkfifo(here / "flows.csv")
    text = SCENARIO[: SCENARIO.index("[[workload]]")] + '[[workload]]\nkind = "trace"\nfile = "flows.csv"\n'
    (here / "replay.toml").write_text(text)
    status, errors, seconds = interrupted(["check", "replay.toml"], signal.SIGINT, once=lambda: True)
    assert (status, errors.strip()) == (1, "interrupted")
    assert seconds < PROMPTLY


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("summary.json", '{"flows": "x"}', 'flows: expected a number, found "x"'),
        ("summary.json", '{"status": "done", "end_ns": true}', "end_ns: expected a number, found true"),
        ("summary.json", "[]", "expected an object"),
        ("summary.json", '{"a": 1}', 'not the summary of a run: expected an object with the key "status"'),
        ("summary.json", "[" * 100_000, "not the summary of a run"),
        ("summary.json", '{"status": "done", "end_ns": NaN}', "end_ns: expected a finite number, found nan"),
        ("summary.json", "", "not the summary of a run"),
        ("scenario.toml", "topology = 4\n", "scenario.toml: topology: expected a table, found 4"),
        ("scenario.toml", "[transport]\ncontroller = 1\n", "transport.controller: expected a table"),
        ("scenario.toml", "[[[", "scenario.toml: cannot be read"),
        ("scenario.toml", None, "scenario.toml: cannot be read: No such file"),
        ("flows.parquet", "PAR1", "flows.parquet: not a complete Parquet file"),
        ("flows.parquet", None, "flows.parquet"),
    ],
)
@pytest.mark.parametrize("do", [["compare"], ["compare", "--json"], ["report"]])
def test_a_spoiled_folder_is_refused_with_its_file(finished, tmp_path, capsys, name, content, expected, do):
    folder = shutil.copytree(finished, tmp_path / "spoiled")

    def spoil():
        if content is None:
            (folder / name).unlink(missing_ok=True)
        else:
            (folder / name).write_text(content)
        assert main([do[0], str(folder), *do[1:]]) == 2
        return capsys.readouterr().err

    error = spoil()
    assert error.startswith("error: ") and error.count("\n") == 1
    assert f"{name}: the results are damaged" in error
    # Results of an earlier version, for which nothing vouches.
    (folder / "digests.json").unlink()
    summary = json.loads((finished / "summary.json").read_text())
    del summary["file_digests"]
    (folder / "summary.json").write_text(json.dumps(summary))
    *warnings, error = spoil().splitlines()
    assert expected in error and all("an earlier version" in warning for warning in warnings)


def test_a_damaged_table_ends_its_stream_with_an_error(finished, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    folder = shutil.copytree(finished, tmp_path / "damaged")
    whole = (folder / "flows.parquet").read_bytes()
    for place in range(4, len(whole) - 8, 7):
        bytes_ = bytearray(whole)
        bytes_[place] ^= 0xFF
        (folder / "flows.parquet").write_bytes(bytes_)
        with contextlib.suppress(_native.InputError, pyarrow.ArrowException, OSError):
            pyarrow.RecordBatchReader.from_stream(_native.table(str(folder), "flows")).read_all()


def test_a_page_where_none_can_be_is_wrong_input(finished, tmp_path):
    done = weftline("report", str(finished), "--out", str(tmp_path))
    assert done.returncode == 2
    assert "no page can be there" in done.stderr and done.stderr.count("\n") == 1


def test_an_empty_name_of_a_folder_is_wrong_input(here):
    done = weftline("run", "small.toml", "--out", "")
    assert (done.returncode, done.stderr) == (
        2,
        "error: --out: expected the name of a folder, found nothing\n",
    )


@pytest.mark.parametrize("name", ["../x", "a b", ".", "os", "weftline.runs", "not_there"])
def test_a_variable_that_names_no_engine_is_refused(name):
    done = commands.run("list", env=commands.environment(WEFTLINE_ENGINE=name))
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith(f"error: WEFTLINE_ENGINE is {name!r}") and "Traceback" not in done.stderr


@pytest.mark.parametrize("out", [".", "/"])
def test_a_folder_in_place_of_a_file_to_write_is_an_error(here, finished, out):
    page = weftline("report", finished, "--out", out, cwd=here)
    assert page.returncode == 2 and f"{out}: no page can be there: Is a directory" in page.stderr
    scenario = weftline("new", "--out", out, cwd=here)
    assert scenario.returncode == 2 and f"{out}: exists" in scenario.stderr
    scenario = weftline("new", "--out", out, "--force", "--no-schema", cwd=here)
    assert scenario.returncode == 2 and "cannot be written: Is a directory" in scenario.stderr


def test_a_named_pipe_is_read_and_named_as_what_is_waited_for(here):
    os.mkfifo(here / "pipe.toml")
    writer = subprocess.Popen(["cp", "small.toml", "pipe.toml"], cwd=here)
    done = weftline("check", "pipe.toml", cwd=here)
    assert writer.wait() == 0 and done.returncode == 0 and "flows" in done.stdout
    assert done.stderr.startswith("note: pipe.toml is a named pipe: waits until another process opens it\n")
    assert "named pipe" not in weftline("check", "small.toml", cwd=here).stderr


def test_what_a_command_reads_is_not_replaced_by_what_it_writes(here, finished):
    shutil.copytree(finished, here / "run")
    for out in ("flows.parquet", "summary.json", "digests.json"):
        before = (here / "run" / out).read_bytes()
        done = weftline("report", "run", "--out", f"run/{out}", cwd=here)
        assert done.returncode == 2 and f"run/{out}: is one of the results in its folder" in done.stderr
        assert (here / "run" / out).read_bytes() == before
    for _ in range(2):
        assert weftline("report", "run", "--out", "run/page.html", cwd=here).returncode == 0
    records = "src,dst,start_ns,bytes,packets\n10.0.0.1,10.0.0.2,5,600,1\n"
    (here / "records.csv").write_text(records)
    done = weftline("import", "records.csv", "--out", "records.csv", cwd=here)
    assert done.returncode == 2 and "--out: records.csv is read by this command" in done.stderr
    assert (here / "records.csv").read_text() == records


def test_a_timeline_replaces_no_results(here):
    collective = '\n[[workload]]\nkind = "collective"\nhosts = "0-3"\nbytes = "8KB"\n'
    (here / "job.toml").write_text(SCENARIO.partition("[[workload]]")[0] + collective)
    assert weftline("run", "job.toml", "--out", "run", "--quiet", cwd=here).returncode == 0
    done = weftline("jobs", "run", "--out", "run/flows.parquet", cwd=here)
    assert done.returncode == 2 and "run/flows.parquet: is one of the results in its folder" in done.stderr
    for _ in range(2):
        assert weftline("jobs", "run", "--out", "run/timeline.json", cwd=here).returncode == 0
    assert json.loads((here / "run/timeline.json").read_text())["traceEvents"]
