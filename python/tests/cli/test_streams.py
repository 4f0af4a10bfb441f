"""Closed and broken standard streams, and bytes that are not text: commands do not change what they do."""

import os
import shlex
import subprocess
import sys

import pytest
import texts

from weftline import _native

pytestmark = pytest.mark.skipif(
    not hasattr(_native, "Table") or os.name != "posix", reason="needs a build, a shell"
)
SCENARIO = texts.star("small", hosts=4, sizes='size = "20KB"', load=0.5, duration="100us")


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "small.toml").write_text(SCENARIO)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shell(command, **options):
    weftline = f"{shlex.quote(sys.executable)} -m weftline"
    command = ["bash", "-c", command.replace("WL", weftline)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


@pytest.mark.parametrize("streams", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    "command", ["run small.toml --out x", "run small.toml --out x --json", "check small.toml"]
)
def test_a_command_does_the_same_with_closed_streams(here, streams, command):
    done = shell(f"WL {command} {streams}")
    assert (done.returncode, done.stderr) == (0, "")
    if command.startswith("run"):
        found = shell("WL compare x")
        assert found.returncode == 0 and "slowdown" in found.stdout


def test_errors_keep_their_exit_status_with_closed_streams(here):
    for streams in (">&-", "2>&-", "2>/dev/full", ">&- 2>&-"):
        assert shell(f"WL check nosuch.toml {streams}").returncode == 2


def test_a_reader_that_leaves_does_not_change_the_exit_status(here):
    (here / "stalled.toml").write_text(SCENARIO + '[run]\nuntil = "100us"\n')
    for pipe in ("| true", "2> >(true) | true"):
        done = shell(f"WL run small.toml --out x --force {pipe}; echo ${{PIPESTATUS[0]}}")
        assert done.stdout.strip() == "0"
    assert shell("WL compare nosuch 2> >(true) | true; echo ${PIPESTATUS[0]}").stdout.strip() == "2"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("run $'\\xfels.toml'", r"argument 2: expected text in UTF-8, found \xfels.toml"),
        ("run small.toml --set $'name=\\xff'", r"--set: expected text in UTF-8, found name=\xff"),
        ("run small.toml --out $'z\\xff'", r"--out: expected text in UTF-8, found z\xff"),
        ("explain $'\\xff'", r"argument 2: expected text in UTF-8, found \xff"),
        ("report x --title=$'\\xff'", r"--title: expected text in UTF-8, found \xff"),
        ("report x --out $'\\xff.html'", r"--out: expected text in UTF-8, found \xff.html"),
    ],
)
def test_bytes_that_are_no_text_are_wrong_input_and_nothing_is_written(here, arguments, named):
    (here / os.fsdecode(b"\xfels.toml")).write_text(SCENARIO)
    before = sorted(os.listdir(os.fsencode(here)))
    done = shell(f"WL {arguments}")
    assert (done.returncode, done.stderr) == (2, f"error: {named}\n")
    assert sorted(os.listdir(os.fsencode(here))) == before


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs /dev/zero")
def test_a_file_without_an_end_is_no_scenario(here):
    done = shell("ulimit -v 4000000; WL check /dev/zero")
    assert done.returncode == 2
    assert done.stderr.startswith("error: /dev/zero: has more than 100 MB, expected a scenario (TOML)")
    assert shell("WL check <(cat small.toml)").returncode == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is looked at on Linux")
def test_a_run_ends_in_order_under_a_limit_of_the_address_space(here):
    text = (
        'name = "full"\n[topology]\nkind = "star"\nhosts = 4\n[[workload]]\nkind = "incast"\nsize = "1KB"\n'
    )
    text += 'senders = 3\narrivals = "periodic"\nevery = "1ps"\nduration = "1000s"\n'
    (here / "full.toml").write_text(text)
    done = shell("ulimit -v 900000; WL run full.toml --out full --quiet")
    assert done.returncode == 1, done.stderr
    assert (
        "limit of its address space (ulimit -v)" in done.stderr
        and "what was computed is in full" in done.stderr
    )
    assert '"status": "memory-limit"' in (here / "full/summary.json").read_text()


def test_a_second_key_is_named_with_its_line(here):
    (here / "twice.toml").write_text('name = "a"\n[topology]\nkind = "star"\nkind = "star"\n')
    assert "twice.toml:4: duplicate key kind" in shell("WL check twice.toml").stderr
    (here / "deep.toml").write_text('name = "a"\n[' + ".".join("a" * 1000) + "]\n")
    assert (
        "deep.toml:2: keys, tables and lists are nested deeper than 80" in shell("WL check deep.toml").stderr
    )


def test_a_collector_without_a_place_for_its_checkpoint_does_not_start(here):
    listen = "collect --listen udp:0 --duration 2s --interval 500ms --checkpoint"
    done = shell(f"WL {listen} nosuch/x")
    assert done.returncode == 2 and "Collecting" not in done.stderr
    assert "checkpoint: nosuch/x: it cannot be written: No such file" in done.stderr
    done = shell(f"WL {listen} .")
    assert done.returncode == 2 and "is a folder, expected the name of a file" in done.stderr
