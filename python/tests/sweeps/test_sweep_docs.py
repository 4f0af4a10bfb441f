"""What docs/sweeps.md shows works as printed."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from weftline import _native
from weftline.cli.main import main
from weftline.sweeps import runner, sweepfile

pytestmark = pytest.mark.skipif(not hasattr(_native, "Table"), reason="the native module is not built")

DOCS = Path(__file__).resolve().parents[3] / "docs/sweeps.md"
MINE = """
[topology]
kind = "leaf-spine"
leaves = 4
spines = 2
hosts_per_leaf = 2
[[workload]]
kind = "poisson"
sizes = "websearch"
load = 0.5
duration = "200us"
"""


@pytest.fixture
def text(tmp_path, monkeypatch) -> str:
    """The page; its scenario is in the working directory, short."""
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(MINE)
    return DOCS.read_text("utf-8")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_question_of_twenty_lines_is_answered(text, capsys):
    question = blocks(text, "toml")[0]
    Path("which.toml").write_text(question)
    pytest.importorskip("duckdb", reason="SQL needs DuckDB")
    for line in blocks(text, "console")[0].splitlines():
        command = shlex.split(line.removeprefix("$ "), comments=True)
        assert main(command[1:]) == 0, line
    printed = capsys.readouterr().out
    assert "slowdown_p99 < 5?" in printed and "minus HPCC" in printed
    assert len(list(Path("out/sweeps/which/points").iterdir())) == 40
    (sql,) = blocks(text, "sql")
    assert main(["query", "out/sweeps/which", sql]) == 0


def test_every_form_of_an_axis_is_one(text):
    axes = blocks(text, "toml")[1]
    Path("axes.toml").write_text('scenario = "mine.toml"\n' + axes)
    sweep = sweepfile.load("axes.toml")
    assert [len(axis.variants) for axis in sweep.axes] == [3, 3, 4, 2, 2]
    assert list(sweep.axes[1].variants) == ["1us", "5us", "9us"]
    assert list(sweep.axes[2].variants) == ["8MB", "16MB", "32MB", "64MB"]
    assert len(runner.plan(sweep, Path("s")).points) == 144


def test_an_array_does_what_the_page_says(text, capsys, monkeypatch):
    Path("which.toml").write_text(blocks(text, "toml")[0])
    assert main(["sweep", "which.toml", "--array"]) == 0
    assert "sbatch --array=0-39" in capsys.readouterr().out
    monkeypatch.setitem(os.environ, "SLURM_ARRAY_TASK_ID", "39")
    assert main(["sweep", "which.toml", "--array"]) == 0
    assert len(list(Path("out/sweeps/which/points").iterdir())) == 1


def test_the_python_of_the_page_runs(text, capsys):
    (code,) = blocks(text, "python")
    exec(compile(code, str(DOCS), "exec"), {})
    assert "slowdown, p99, minus HPCC" in capsys.readouterr().out
