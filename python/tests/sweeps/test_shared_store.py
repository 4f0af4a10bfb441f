"""Sweeps that share a store at the same time, and a store that cannot be written."""

import csv
import errno
import os

import pytest
import texts

import weftline
from weftline.cli.main import main
from weftline.errors import RunFailed
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
