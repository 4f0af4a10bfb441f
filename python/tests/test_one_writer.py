"""One run at a time writes into a folder, and a run and a result store refuse each other's."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import pytest
import texts
from commands import start

import weftline
from weftline import _native
from weftline.cli.main import main
from weftline.errors import InputError

pytestmark = pytest.mark.skipif(not hasattr(_native, "Table"), reason="the native module is not built")

QUICK = texts.star("quick", hosts=4, sizes='size = "20KB"', load=0.5, duration="100us")
ENDLESS = QUICK.replace("100us", "10s")
SWEEP = """
scenario = "quick.toml"
seeds = [1]
[[axis]]
key = "workload.0.load"
values = [0.3]
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    for name, text in (("quick", QUICK), ("endless", ENDLESS), ("sweep", SWEEP)):
        (tmp_path / f"{name}.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture
def writing(here):
    """Return how to start a run that ends after the test."""
    begun = []

    def begin(*arguments):
        nowhere = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        begun.append(start("run", *arguments, "--quiet", **nowhere))
        return begun[-1]

    yield begin
    for process in begun:
        process.kill()
        process.wait()


def until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("more", [[], ["--force"], ["--seed", "2", "--force"]])
def test_a_second_process_is_refused_before_it_simulates_and_changes_nothing(here, writing, capsys, more):
    process = writing("endless.toml", "--out", "d")
    until((here / "d/flows.parquet").exists)
    scenario = (here / "d/scenario.toml").read_bytes()
    assert main(["run", "endless.toml", "--out", "d", *more]) == 2
    error = capsys.readouterr().err
    assert f"d: process {process.pid} on " in error and "is writing a run into this folder" in error
    process.send_signal(signal.SIGINT)
    assert process.wait() == 1
    assert (here / "d/scenario.toml").read_bytes() == scenario and not (here / "d/run.lock").exists()
    assert weftline.Run.open("d").verify()


def test_the_same_run_in_the_default_folder_is_neither_damaged_nor_moved(here, writing, capsys):
    process = writing("endless.toml")
    until(
        lambda: list(here.glob("out/endless-*/flows.parquet")) or list(here.glob("out/quick-*/flows.parquet"))
    )
    assert main(["run", "endless.toml"]) == 2
    error = capsys.readouterr().err
    assert f"process {process.pid} on " in error and "damaged" not in error
    assert process.poll() is None and not (here / "out/damaged").exists()


def test_a_killed_run_leaves_a_folder_that_the_next_one_may_use(here, writing):
    process = writing("endless.toml", "--out", "d")
    until((here / "d/flows.parquet").exists)
    process.kill()
    process.wait()
    assert (here / "d/run.lock").exists()
    assert main(["run", "quick.toml", "--out", "d", "--force", "--quiet"]) == 0
    assert not (here / "d/run.lock").exists() and weftline.Run.open("d").verify()


def test_two_threads_do_not_write_one_folder(here):
    found, begun, stop = {}, threading.Event(), threading.Event()

    def until_signalled(_):
        begun.set()
        stop.wait(20)
        raise ZeroDivisionError

    def first():
        try:
            weftline.run("endless.toml", out="d", progress=until_signalled)
        except ZeroDivisionError:
            found["first"] = "ended"

    thread = threading.Thread(target=first)
    thread.start()
    try:
        assert begun.wait(20)
        with pytest.raises(InputError, match="another run of this process is writing"):
            weftline.run("quick.toml", out="d", force=True)
    finally:
        stop.set()
        thread.join()
    assert found == {"first": "ended"}
    assert weftline.Run.read("d").summary["status"] == "interrupted"


def test_runs_that_begin_together_leave_the_results_of_exactly_one(here):
    commands = [
        ["run", "quick.toml", "--out", "d", "--force", "--seed", str(n), "--quiet"] for n in (1, 2, 3)
    ]
    running = [
        subprocess.Popen([sys.executable, "-m", "weftline", *command], stderr=subprocess.PIPE, text=True)
        for command in commands
    ]
    errors = [process.communicate()[1] for process in running]
    statuses = [process.returncode for process in running]
    assert 0 in statuses and set(statuses) <= {0, 2}
    assert all("is writing a run" in error for error, status in zip(errors, statuses, strict=True) if status)
    run = weftline.Run.open("d")
    alone = weftline.run("quick.toml", seed=run.summary["seed"], out="alone")
    assert run.verify() and run.summary["fingerprint"] == alone.summary["fingerprint"]


def test_results_that_are_there_are_reused_without_a_claim(here):
    first = weftline.run("quick.toml")
    claim = _native.FolderClaim(str(first.out))
    assert weftline.run("quick.toml").reused
    claim.release()


def test_what_is_refused_leaves_no_folder(here, capsys):
    with pytest.raises(InputError, match="memory"):
        weftline.run("quick.toml", out="new/d", memory="much")
    assert not (here / "new").exists()


def test_a_sweep_refuses_the_folder_of_a_run_and_leaves_it_as_it_is(here, capsys):
    assert main(["run", "quick.toml", "--out", "victim", "--quiet"]) == 0
    before = files(here / "victim")
    assert main(["sweep", "sweep.toml", "--out", "victim", "--quiet"]) == 2
    assert "victim: holds the results of a run" in capsys.readouterr().err
    assert files(here / "victim") == before and not (here / "victim/points").exists()
    assert weftline.Run.open("victim").verify()


def test_a_run_refuses_the_folder_of_a_sweep_even_with_force(here, capsys):
    assert main(["sweep", "sweep.toml", "--out", "store", "--quiet"]) == 0
    before = files(here / "store")
    assert main(["run", "quick.toml", "--out", "store", "--force", "--quiet"]) == 2
    assert "store holds a result store, as `weftline sweep` writes it" in capsys.readouterr().err
    assert files(here / "store") == before


def test_a_store_with_digests_of_a_run_is_refused_and_nothing_is_called_damaged(here, capsys):
    assert main(["sweep", "sweep.toml", "--out", "store", "--quiet"]) == 0
    assert main(["run", "quick.toml", "--out", "run", "--quiet"]) == 0
    # What `run --force` of an earlier version did.
    os.replace("run/digests.json", "store/digests.json")
    before = files(here / "store")
    capsys.readouterr()
    assert main(["sweep", "sweep.toml", "--out", "store", "--quiet"]) == 2
    error = capsys.readouterr().err
    assert "store: holds the results of a run" in error and "damaged" not in error
    assert files(here / "store") == before


def test_findings_of_a_collector_do_not_replace_the_summary_of_a_run(here):
    weftline.run("quick.toml", out="run")
    found = weftline.Collected(summary={}, paths=[], hops=[], events=[], sources=[], pint=[])
    with pytest.raises(InputError, match="run: holds the results of a run"):
        found.save("run")
    found.save("other")
    assert json.loads((here / "other/summary.json").read_text()) == {}


def test_a_link_to_nothing_is_named(here, capsys):
    (here / "dang").symlink_to("nothing")
    assert main(["run", "quick.toml", "--out", "dang", "--quiet"]) == 2
    assert "dang is a symbolic link to nothing, which does not exist" in capsys.readouterr().err


@pytest.mark.parametrize("after", [0.0, 0.4])
def test_ctrl_c_during_why_is_no_difference_of_results(here, after):
    scenario = QUICK.replace("100us", "30ms")
    (here / "long.toml").write_text(scenario)
    assert main(["run", "long.toml", "--out", "long", "--quiet"]) == 0
    code = "import sys; from weftline.cli.main import main; print('x', flush=True); sys.exit(main())"
    command = [sys.executable, "-c", code, "why", "long"]
    heed = partial(
        signal.signal, signal.SIGINT, signal.SIG_DFL
    )  # which a process in the background may ignore
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed
    )
    process.stdout.readline()
    time.sleep(0.2 + after)
    process.send_signal(signal.SIGINT)
    error = process.communicate()[1]
    assert process.returncode in (0, 1)  # 0: it was done by then
    assert "other results" not in error and (process.returncode == 0 or error.strip() == "interrupted")
