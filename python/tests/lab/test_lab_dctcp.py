"""DCTCP where the kernel lacks it: programs of the run, their law, their removal."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.lab.conftest import dumbbell_text
from tests.lab.test_lab import lab, nothing_left, ours, wait_for_flows
from weftline import Scenario
from weftline.lab import dctcp, doctor, network, plan, programs, runs
from weftline.runs import Run

_ = nothing_left
KERNEL = ["reno", "cubic", "bbr"]
CHANGES = """
[switch.ecn]
enabled = true
kmin = "30KB"
kmax = "30KB"
pmax = 1
[transport.controller]
kind = "dctcp"
[measure.controllers]
flows = [0, 1]
every = "10ms"
"""
GARBAGE = 0x81104110
ROUNDING = 2 / dctcp.ONE
WITHIN_ALPHA, WITHIN_QUEUE = 0.1, 0.3
"""Of the simulated: mean alpha, plus or minus; mean queue, a share of it."""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """Two flows that share 20 Mb/s for six seconds, over a port that marks beyond 30 KB."""
    file = tmp_path / "dctcp.toml"
    file.write_text(dumbbell_text("dctcp", size="8MB", limit="300KB") + CHANGES)
    return file


@pytest.fixture
def lacking(machine: None) -> None:
    """Skip where the kernel has its own, or the programs cannot be loaded."""
    if dctcp.KIND in doctor.congestion_controls():
        pytest.skip("this kernel has DCTCP")
    if wrong := dctcp.problems({}, [], multipath=False):
        (pytest.fail if os.environ.get("WEFTLINE_LAB") else pytest.skip)("; ".join(wrong))


def mean_queue(run: Run) -> float:
    """Return the mean length of the longest queue."""
    series = run.over_time("queue_bytes", max_points=0).values()
    return max(sum(size for _, size in points) / len(points) for points in series)


@pytest.mark.usefixtures("lacking", "nothing_left")
@pytest.mark.parametrize("returned", [0, GARBAGE])
def test_alpha_follows_its_law_and_holds_the_queue_as_simulated(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, returned: int
) -> None:
    # Also where the kernel skips the program that it asks for a threshold, and takes what lies on its stack.
    monkeypatch.setattr(dctcp.Control, "of", lambda _: dctcp.Control(1 / 16, 1.0, returned))
    asked = runs.scenario_of(str(scenario), [], None)
    simulated = asked.run(out=tmp_path / "sim")
    (real,) = runs.run(asked, str(tmp_path / "lab"))
    found = real.summary["lab"]["dctcp"]
    assert real.summary["status"] == "done" and found["windows"] > 100 and found["with_marks"] > 20
    assert found["furthest_from_law"] <= ROUNDING
    assert simulated.summary["drops"] == 0
    assert found["windows_mended"] == 0
    alphas = [value for points in simulated.over_time("alpha", max_points=0).values() for _, value in points]
    expected = sum(alphas) / len(alphas)
    assert abs(found["mean_alpha"] - expected) <= WITHIN_ALPHA, (found, expected)
    queue = mean_queue(real), mean_queue(simulated)
    assert abs(queue[0] / queue[1] - 1) <= WITHIN_QUEUE, queue
    assert dctcp.registered() == []


@pytest.mark.usefixtures("lacking", "nothing_left")
def test_clean_removes_what_a_killed_run_registered(scenario: Path, tmp_path: Path) -> None:
    before = ours()
    process = lab("run", scenario, "--out", tmp_path / "lab")
    wait_for_flows(process, before)
    for _ in range(400):
        if found := dctcp.registered():
            break
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    (run,) = found
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert dctcp.registered() == [run]
    done = lab("clean", "--json")
    removed = json.loads(done.communicate(timeout=30)[0])["removed"]
    assert dctcp.name(run) in removed and dctcp.registered() == []


@pytest.mark.usefixtures("lacking", "nothing_left")
def test_two_runs_at_once_have_names_of_their_own_and_their_settings() -> None:
    control = dctcp.Control.of({"g": 0.25, "initial_alpha": 0.5})
    try:
        for run in ("0000a1", "0000a2"):
            control.register(run)
        assert set(dctcp.registered()) >= {"0000a1", "0000a2"}
        dctcp.unregister("0000a1")
        assert "0000a1" not in dctcp.registered() and "0000a2" in dctcp.registered()
        # Neither has a record.
        assert network.clean_unrecorded() == ["wl_0000a2_dctcp"]
    finally:
        for run in ("0000a1", "0000a2"):
            dctcp.unregister(run)


def test_what_cannot_be_had_is_an_error_before_anything_is_changed(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = Scenario(scenario).values

    def problems(changed: dict[str, Any]) -> str:
        return "\n".join(plan.problems({**values, **changed}, KERNEL, engine=True))

    monkeypatch.setattr(dctcp.programs, "problems", lambda key, lie: [])
    assert problems({}) == ""
    multipath = {"transport": {**values["transport"], "kind": "mptcp"}}
    assert 'the programs are for transport.kind = "tcp"' in problems(multipath)
    own = {"transport": {"controller": {"kind": "dctcp", "g": 0.5}}, "kind": "flows", "group": "other"}
    assert "one g and one initial_alpha" in problems({"workload": [own]})
    # A kernel that has it needs none of this.
    assert plan.problems({**values, "workload": [own]}, [*KERNEL, "dctcp"], engine=True) == []
    monkeypatch.undo()
    monkeypatch.setattr(programs, "bpftool", lambda: None)
    monkeypatch.setattr(dctcp, "objects", lambda: [tmp_path / "dctcp.bpf.o"])
    found = problems({})
    assert "apt install bpftool" in found and "make lab-objects" in found


def test_receivers_of_such_flows_listen_at_a_port_of_their_own(scenario: Path) -> None:
    flows = [{"flow_id": 0, "src": 0, "dst": 2, "group": "flows", "start_ns": 0}]
    made = plan.make(Scenario(scenario), KERNEL, flows, engine=True)
    assert made.dctcp == dctcp.Control(1 / 16, 1.0)
    assert (made.listens("cubic"), made.listens("dctcp")) == (plan.PORT, plan.PORT + 1)
    assert any("shares of marks are of packets" in text for text in made.differs)
    assert plan.make(Scenario(scenario), [*KERNEL, "dctcp"], flows, engine=True).dctcp is None


def test_facts_hold_every_window_against_the_law() -> None:
    control = dctcp.Control(1 / 16, 1.0)
    right = dctcp.Window(16, 4, 1.0, 15 / 16 + 1 / 64)
    found = dctcp.facts(control, [right, dctcp.Window(0, 0, 0.5, 0.5)], 2)
    assert found["windows_mended"] == 2
    assert found["windows"] == 2 and found["with_marks"] == 1 and found["furthest_from_law"] == 0
    assert dctcp.facts(control, [dctcp.Window(16, 4, 1.0, 0.9)])["furthest_from_law"] > 0.05
    assert dctcp.facts(control, [])["mean_alpha"] is None
