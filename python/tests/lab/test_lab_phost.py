"""The experiment of the lab on transports: its file, its verdicts, a repeat on real packets."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from tests.lab.test_lab import nothing_left
from weftline import InputError
from weftline.lab import experiment, transported

_ = nothing_left


def one(mean_ms: float, *, unfinished: int = 0, contaminated: bool = False) -> Any:
    """Return a run whose two flows take 80 and 120 % of a mean."""
    rows = [{"fct_ns": share * mean_ms * 1e6} for share in (0.8, 1.2)]
    summary = {
        "flows_unfinished": unfinished,
        "drops": 7,
        "lab": {"contaminated": ["late"] if contaminated else []},
    }
    return SimpleNamespace(flows=pa.Table.from_pylist(rows), summary=summary)


def read() -> transported.Experiment:
    found = experiment.read("lab-phost")
    assert isinstance(found, transported.Experiment)
    return found


def filled(ratio: float, *, spoilt: int = 0, unfinished: int = 0) -> transported.Experiment:
    found = read()
    for name, mean in (("pHost", 100.0), ("TCP", 200.0)):
        found.pairs[name] = [
            transported.Pair(
                one(mean + repeat),
                one((mean + repeat) * ratio, unfinished=unfinished, contaminated=repeat < spoilt),
            )
            for repeat in range(5)
        ]
    return found


def test_equal_is_what_lies_within_the_margin_and_only_where_enough_runs_count() -> None:
    word, interval = filled(1.05).verdict("pHost")
    assert word == "equal" and interval is not None and math.isclose(interval[0], 1.05)
    assert filled(1.4).verdict("pHost")[0] == "different"
    assert filled(1.05, spoilt=1).verdict("pHost")[0] == "equal"
    assert filled(1.05, spoilt=2).verdict("pHost") == ("open", None)
    assert filled(1.05, unfinished=1).verdict("pHost") == ("open", None)
    assert filled(1.05).order() == "same order" and filled(1.05).holds()
    assert filled(1.05, spoilt=2).order() == "open" and not filled(1.05, spoilt=2).holds()


def test_the_table_shows_what_was_dropped_and_what_did_not_count(tmp_path: Path) -> None:
    found = filled(1.05, spoilt=2, unfinished=3)
    text = str(found.table())
    assert "2 of 5" in text and "15" in text and "open" in text
    found.write(tmp_path)
    assert json.loads((tmp_path / "experiment.json").read_text())["holds"] is False


def test_a_transport_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    folder = experiment.named()["lab-phost"]
    for old, new, expected in (
        ('faster = "pHost"', 'faster = "pHots"', "there is no transport pHots: it has pHost, TCP"),
        ("margin = 0.15", 'margin = "x"', "is not an experiment on transports"),
    ):
        (tmp_path / "lab.toml").write_text((folder / "lab.toml").read_text().replace(old, new))
        with pytest.raises(InputError, match=expected):
            transported.Experiment.read(tmp_path / "lab.toml", ())


@pytest.mark.usefixtures("machine", "nothing_left")
def test_a_repeat_of_phost_completes_on_real_packets_without_a_drop(tmp_path: Path) -> None:
    found = read()
    found.transports = {"pHost": found.transports["pHost"]}
    found.run(tmp_path, repeats=1)
    (pair,) = found.pairs["pHost"]
    assert [run.summary["flows_done"] for run in pair.each()] == [80, 80]
    assert [run.summary["drops"] for run in pair.each()] == [0, 0]
