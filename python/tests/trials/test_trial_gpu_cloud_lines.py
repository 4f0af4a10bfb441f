"""trials/gpu_cloud.toml with and without its failure, an interrupted twin, the same seed twice."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

import weftline
from weftline import _native
from weftline.cli.main import main
from weftline.errors import WeftlineWarning
from weftline.measures.comparison import comparison_of

pytestmark = pytest.mark.skipif(
    not getattr(_native, "__file__", None), reason="the native module is not built (maturin develop)"
)

TRIAL = Path(__file__).parents[3] / "trials" / "gpu_cloud.toml"
FULL = bool(os.environ.get("WEFTLINE_TRIALS"))
# The link that fails at 3 ms does so while both workloads send.
SIZE = {} if FULL else {"workload.0.bytes": "4MB", "workload.0.repeat": 2, "workload.1.duration": "4ms"}


def interrupt(state):
    if state["now_ns"] > 1e5:
        raise KeyboardInterrupt


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpu")
    weftline.run(TRIAL, set=SIZE, out=folder / "failing")
    weftline.run(TRIAL, set={**SIZE, "failures.event": []}, out=folder / "whole")
    shutil.copytree(folder / "failing", folder / "copy")
    with pytest.raises(KeyboardInterrupt):
        weftline.run(TRIAL, set=SIZE, out=folder / "cut", progress=interrupt)
    return folder


def test_a_failure_makes_a_line_of_its_own_and_no_interval(made, capsys):
    assert main(["compare", str(made / "failing"), str(made / "whole"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [line["label"] for line in found["lines"]] == ["failures", "no failures"]
    assert all(line["slowdown"]["all"]["p99"]["interval"] is None for line in found["lines"])
    assert found["lines"][0]["slowdown"]["all"] != found["lines"][1]["slowdown"]["all"]
    assert found["warnings"] == [] and found["differences"]["no failures"]["slowdown_p99"]["paired"]


def test_an_interrupted_twin_has_its_own_line_with_the_time_of_its_end(made, capsys):
    assert main(["compare", str(made / "failing"), str(made / "cut")]) == 0
    output = capsys.readouterr()
    assert "dcqcn (interrupted at " in output.out and "±" not in output.out
    assert "is interrupted; what it has is shown" in output.err


def test_the_same_run_twice_counts_once_with_a_warning(made):
    with pytest.warns(WeftlineWarning, match="are the same run with the same seed 1: it counts once"):
        found = weftline.compare(made / "failing", made / "copy")
    assert [len(line.runs) for line in found.lines] == [1]


def test_another_build_is_another_line(made, tmp_path):
    shutil.copytree(made / "failing", tmp_path / "other")
    path = tmp_path / "other" / "summary.json"
    summary = json.loads(path.read_text())
    summary["provenance"]["build"] = "ffffffffffff"
    path.write_text(json.dumps(summary))
    _native.write_digests(str(tmp_path / "other"))
    labels = [line.label for line in comparison_of([made / "failing", tmp_path / "other"]).lines]
    assert labels[1] == "build ffffffff" and labels[0].startswith("build ") and labels[0] != labels[1]
