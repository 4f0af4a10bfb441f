"""Sweeps that share a store at the same time, and a store that cannot be written."""

import csv
import errno
import os

import pytest
import texts

import weftline
from weftline.cli.main import main
from weftline.errors import InputError, RunFailed
from weftline.sweeps import executor, runner, sweepfile


@pytest.fixture
def two(engine, tmp_path, scenario):
    """Two sweeps with other axes, seeds and metrics over one scenario."""
    one, other = tmp_path / "one.toml", tmp_path / "other.toml"
    one.write_text(texts.WHICH_SCHEME)
    other.write_text(
        'scenario = "small.toml"\n[[axis]]\nkey = "workload.0.duration"\nvalues = ["1ms"]\n'
        '[report]\nmetrics = ["fct_mean"]\n'
    )
    return one, other


def meanwhile(monkeypatch, done):
    """Do something, once, when the runs of the next sweep have ended."""
    run = executor.run

    def run_and(*given, **options):
        outcome = run(*given, **options)
        monkeypatch.setattr(executor, "run", run)
        done()
        return outcome

    monkeypatch.setattr(executor, "run", run_and)


def test_a_sweep_answers_for_itself_whatever_sweep_used_its_store_meanwhile(two, tmp_path, monkeypatch):
    one, other = two
    meanwhile(monkeypatch, lambda: weftline.sweep(other, out=tmp_path / "s"))
    found = weftline.sweep(one, out=tmp_path / "s")
    assert [axis.name for axis in found.axes] == ["scheme", "load"] and len(found.rows) == 12
    with (tmp_path / "s/points.csv").open() as lines:
        assert csv.DictReader(lines).fieldnames[:2] == ["scheme", "load"]
    again = weftline.load(tmp_path / "s")
    assert again.rows == found.rows, "the store is that of the sweep whose tables it has"


def test_the_command_line_shows_its_own_sweep(two, tmp_path, monkeypatch, capsys):
    one, other = two
    plan = runner.plan(sweepfile.load(other), tmp_path / "s")
    meanwhile(monkeypatch, lambda: runner.write_description(plan))
    assert main(["sweep", str(one), "--out", str(tmp_path / "s")]) == 0
    printed = capsys.readouterr().out
    assert "slowdown, p99, minus HPCC" in printed and "FCT" not in printed


def test_a_store_that_cannot_be_written_is_named_when_a_sweep_begins(two, tmp_path, monkeypatch, capsys):
    def full(part, path):
        os.unlink(part)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("weftline.sweeps.store.os.replace", full)
    with pytest.raises(RunFailed, match=r"s/(store|digests)\.json: the disk is full"):
        weftline.sweep(two[0], out=tmp_path / "s")
    assert main(["sweep", str(two[0]), "--out", str(tmp_path / "s")]) == 1
    assert "json: the disk is full" in capsys.readouterr().err


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_finished_sweep_is_shown_where_its_store_cannot_be_written(
    two, tmp_path, monkeypatch, capsys, code
):
    def refuse(part, path):
        os.unlink(part)
        raise OSError(code, os.strerror(code))

    folder = tmp_path / "s"
    found = weftline.sweep(two[0], out=folder)
    assert main(["sweep", str(two[0]), "--out", str(folder)]) == 0
    whole = capsys.readouterr().out
    # Copies may lack folders that are empty, and these cannot be made.
    (folder / "parts").rmdir()
    (folder / "failed").rmdir()
    made = os.mkdir

    def refuse_folder(path, *mode):
        if str(path).startswith(str(folder)):
            raise OSError(code, os.strerror(code), str(path))
        made(path, *mode)

    monkeypatch.setattr("os.mkdir", refuse_folder)
    monkeypatch.setattr("os.replace", refuse)
    with pytest.warns(weftline.WeftlineWarning, match="the tables are not written into the store"):
        assert weftline.sweep(two[0], out=folder).rows == found.rows
    assert main(["sweep", str(two[0]), "--out", str(folder)]) == 0
    printed = capsys.readouterr()
    assert printed.out == whole.replace(", tables in points.csv and table.csv", "")
    assert "note: " in printed.err and "the tables are not written into the store" in printed.err
    # What is left to run cannot be stored.
    monkeypatch.setattr("os.mkdir", made)
    two[1].write_text(two[1].read_text().replace("1ms", "3ms"))
    with pytest.raises(RunFailed, match=r"s/digests\.json: "):
        weftline.sweep(two[1], out=folder)


def test_sweeps_of_other_names_do_not_share_a_folder_by_default(engine, scenario, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def sweep(name, **options):
        return weftline.sweep(scenario, {"workload.0.load": [0.3]}, name=name, **options)

    assert str(sweep("a b").path) == str(sweep("a b").path) == "out/sweeps/a-b"
    with pytest.raises(InputError, match='out/sweeps/a-b: has the results of the sweep "a b"'):
        sweep("a-b")
    assert sweep("a-b", out="out/sweeps/a-b").name == "a-b", "a folder that is given may be shared"
