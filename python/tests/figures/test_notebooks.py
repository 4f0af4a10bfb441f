"""The notebooks of examples/: every cell runs, and what the last line of a cell is can be shown.

`notebooks.py` runs them, without a kernel.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import types
from pathlib import Path

import pytest
from notebooks import NOTEBOOKS, run_cell, shown

import weftline
from weftline import _native
from weftline.figures import notebook

pytestmark = pytest.mark.skipif(
    not getattr(_native, "__file__", None), reason="the native module is not built (maturin develop)"
)


def cells(path: Path, kind: str) -> list[str]:
    found = json.loads(path.read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in found if cell["cell_type"] == kind]


def test_there_are_five_notebooks_for_the_five_questions():
    names = {"first-run", "own-controller", "path-tracing", "fairness", "load-sweep"}
    assert {path.stem for path in NOTEBOOKS} == names


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_of_a_notebook_runs_and_shows_what_is_stored(path, tmp_path, monkeypatch):
    for package in ("polars", "vl_convert"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    figures = 0
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        value = run_cell("".join(cell["source"]), names)
        stored = [output["data"] for output in cell["outputs"] if output["output_type"] == "execute_result"]
        assert len(stored) == (value is not None), "make notebooks"
        if value is None:
            continue
        found = shown(value)
        assert found.keys() == stored[0].keys(), "make notebooks"
        figures += found.get("image/svg+xml", "").startswith("<svg")
        if isinstance(value, dict | tuple | list):
            assert found["text/plain"] == "".join(stored[0]["text/plain"]), "make notebooks"
    assert figures >= 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_with_its_outputs_and_explains_itself(path):
    document = json.loads(path.read_text("utf-8"))
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in document["cells"]}) == len(document["cells"])
    code = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert cells(path, "markdown")[0].startswith("# ")
    for text in cells(path, "code"):
        assert max(map(len, text.split("\n"))) <= 110, text


class Cell:
    """What IPython's display gives back, and what it was given."""

    def __init__(self):
        self.shown = []

    def update(self, line):
        self.shown.append(line)


@pytest.fixture
def ipython(monkeypatch):
    """A stand-in for a kernel's shell."""
    cell = Cell()
    shell = type("ZMQInteractiveShell", (), {})()
    module = types.ModuleType("IPython")
    module.get_ipython = lambda: shell
    display = types.ModuleType("IPython.display")
    display.display = lambda line, display_id: cell
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return cell


def test_a_run_in_a_cell_shows_its_progress_and_takes_it_away(ipython, tmp_path):
    scenario = {
        "name": "<b>",
        "topology": {"kind": "star", "hosts": 8},
        "workload": [{"kind": "poisson", "load": 0.6, "duration": "20ms"}],
    }
    weftline.run({**scenario, "name": "shown"}, out=tmp_path / "r")
    assert ipython.shown and ipython.shown[-1]._repr_html_() == ""
    if len(ipython.shown) > 1:
        assert "<progress" in ipython.shown[0]._repr_html_() and "packet-hops/s" in repr(ipython.shown[0])


def test_outside_of_a_notebook_nothing_is_shown():
    assert not notebook.shown()


def test_names_in_the_progress_of_a_cell_are_escaped():
    assert "&lt;b&gt;" in notebook._Line("<b>", 0.5)._repr_html_()


def test_interrupting_a_cell_ends_the_run_and_leaves_its_folder(ipython, tmp_path):
    scenario = {
        "name": "endless",
        "topology": {"kind": "star", "hosts": 8},
        "workload": [{"kind": "poisson", "load": 0.8, "duration": "10s"}],
    }

    def interrupt_once_it_shows_progress():
        late = time.monotonic() + 60
        while not ipython.shown and time.monotonic() < late:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    # It may be ignored where tests run in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=interrupt_once_it_shows_progress, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        weftline.run(scenario, out=tmp_path / "r")
    assert weftline.Run.open(tmp_path / "r").summary["status"] == "interrupted"
    assert ipython.shown[-1]._repr_html_() == ""
