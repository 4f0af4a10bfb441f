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
from weftline import InputError, Scenario, provenance
from weftline.lab import experiment, repeats, transported

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


def with_queue(mean_ms: float, waits: list[int]) -> Any:
    """Return a run whose port had these bytes waiting, and more when its flows were done."""
    found = one(mean_ms)
    found.flows = pa.Table.from_pylist([{"fct_ns": mean_ms * 1e6, "finish_ns": mean_ms * 1e6}])
    entities = [(n, "s0.p0", value) for n, value in enumerate(waits)]
    entities += [(n, "s0.p1", 10**9) for n in range(3)] + [(int(2e6 * mean_ms), "s0.p0", 10**9)]
    rows = [
        {"time_ns": float(at), "entity": port, "metric": "queue_bytes", "value": float(value)}
        for at, port, value in entities
    ]
    found.series = pa.Table.from_pylist(rows)
    return found


def test_an_experiment_with_a_port_is_ordered_by_what_waits_there() -> None:
    found = experiment.read("lab-hpcc")
    assert isinstance(found, transported.Experiment) and found.port == "s0.p0"
    waits = {"HPCC": [2000, 4000], "PowerTCP": [1000, 1000], "DCTCP": [30_000, 34_000]}
    waits["PowerTCP-engine-ports"] = waits["PowerTCP"]
    for name, waiting in waits.items():
        mean = 100.0 if name == "DCTCP" else 120.0
        pair = transported.Pair(with_queue(mean, waiting), with_queue(mean, waiting))
        found.pairs[name] = [pair] * 3
    # Of PowerTCP at ports of the kernel it is not asked.
    found.pairs["PowerTCP"] = [transported.Pair(with_queue(100.0, [1]), with_queue(200.0, [1]))] * 3
    assert found.verdict("PowerTCP")[0] == "different"
    # Its flows take longer and its queue is shorter.
    assert found.order() == "same order" and found.holds()
    text = str(found.table())
    assert "mean queue in KB" in text and "32.0 (32.0 to 32.0)" in text and "3.0 (3.0 to 3.0)" in text
    worse = with_queue(100.0, [1000, 1000])
    found.pairs["DCTCP"] = [transported.Pair(with_queue(100.0, waits["DCTCP"]), worse)] * 3
    assert found.order() == "different order" and not found.holds()
    shown = found.as_json()["transports"]["HPCC"]["repeats"][0]["queue_kb"][1]
    assert shown == {"mean": 3.0, "p95": 4.0, "max": 4.0}


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
    found.run(tmp_path, count=1)
    (pair,) = found.pairs["pHost"]
    assert [run.summary["flows_done"] for run in pair.each()] == [80, 80]
    assert [run.summary["drops"] for run in pair.each()] == [0, 0]


def test_runs_of_another_build_or_scenario_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = '[topology]\nkind = "star"\nhosts = 2\n[[workload]]\nkind = "flows"\n'
    file = tmp_path / "x.toml"
    file.write_text(text + 'flows = [{ src = 0, dst = 1, size = "1KB" }]\n')
    place = tmp_path / "sim"
    assert not repeats.kept(place, Scenario(file))
    Scenario(file).start(out=place, force=True, sync=False)
    assert repeats.kept(place, Scenario(file)) and not repeats.kept(place, Scenario(file, seed=2))
    monkeypatch.setattr(provenance, "build", lambda: "0123456789ab")
    assert not repeats.kept(place, Scenario(file))
