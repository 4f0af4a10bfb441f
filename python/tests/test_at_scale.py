"""The guard on what grows with the network: what it says, on invented figures."""

import importlib.util
import sys
from pathlib import Path

import pytest

BENCHES = Path(__file__).resolve().parents[2] / "benches"
COMPILER = {"rustc": "rustc 1.95.0", "architecture": "x86_64"}


@pytest.fixture
def guard(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHES))
    spec = importlib.util.spec_from_file_location("at_scale", BENCHES / "at_scale.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "at_scale", module)
    spec.loader.exec_module(module)
    return module


def measured(setup, growth, ratio, compiler=COMPILER):
    figures = {"setup_instructions_per_host": setup, "setup_growth": growth, "hop_time_ratio": ratio}
    return {"compiler": compiler, "figures": figures}


@pytest.mark.parametrize(
    ("now", "status"),
    [
        ((1000, 1.0, 3.0), 0),
        ((1029, 1.02, 3.9), 0),
        ((1031, 1.0, 3.0), 1),
        ((1000, 1.04, 3.0), 1),
        ((1000, 1.0, 4.2), 1),
        ((500, 0.5, 1.0), 0),
    ],
)
def test_growth_beyond_its_tolerance_fails(guard, now, status):
    lines, found = guard.verdict(measured(*now), measured(1000, 1.0, 3.0))
    assert found == status
    assert any("failed" in line and "--accept" in line for line in lines) == (status == 1)


def test_another_compiler_warns_and_does_not_fail(guard):
    then = measured(1000, 1.0, 3.0, compiler={"rustc": "rustc 1.90.0", "architecture": "x86_64"})
    lines, status = guard.verdict(measured(9000, 9.0, 9.0), then)
    assert status == 0
    assert "rustc 1.90.0" in lines[-1]


def test_setup_and_the_whole_are_measured_apart(guard, monkeypatch):
    runs = {guard.ENDS_AT_ONCE: (0.5, 10), "long": (2.5, 1_000_000)}
    monkeypatch.setattr(guard, "timed", lambda program, name, setting: runs[setting])
    assert guard.hop_time(Path("hops"), "k32", "long") == pytest.approx(2e-6)
    runs["long"] = (0.4, 1_000_000)
    with pytest.raises(guard.MeasureError, match="k32"):
        guard.hop_time(Path("hops"), "k32", "long")


def test_the_stored_figures_are_those_that_are_judged(guard):
    assert guard.stored()["figures"].keys() == guard.TOLERANCES.keys()
