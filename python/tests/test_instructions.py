"""The guard on instructions per packet-hop: its arithmetic and what it says, on invented counts."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benches" / "instructions.py"
COMPILER = {"rustc": "rustc 1.95.0", "architecture": "x86_64"}


@pytest.fixture
def guard(monkeypatch):
    spec = importlib.util.spec_from_file_location("instructions", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "instructions", module)
    spec.loader.exec_module(module)
    return module


def measured(*, compiler=COMPILER, hops=1000, **costs):
    workloads = {name: {"instructions_per_hop": cost, "packet_hops": hops} for name, cost in costs.items()}
    return {"compiler": compiler, "workloads": workloads}


def test_setup_cancels_in_the_difference_of_two_lengths(guard):
    setup, each = 5_000_000, 250
    short, long = (
        guard.Count(instructions=setup + each * hops, packet_hops=hops) for hops in (10_000, 30_000)
    )
    assert guard.cost(short, long) == {"instructions_per_hop": 250.0, "packet_hops": 20_000}


def test_a_longer_run_that_is_not_more_work_cannot_be_measured(guard):
    with pytest.raises(guard.MeasureError, match="5 packet-hops fewer"):
        guard.cost(guard.Count(instructions=10, packet_hops=15), guard.Count(instructions=20, packet_hops=10))


@pytest.mark.parametrize(("cost", "status"), [(500.0, 0), (515.0, 0), (515.1, 1), (485.0, 0), (100.0, 0)])
def test_more_than_three_percent_above_fails(guard, cost, status):
    lines, found = guard.verdict(measured(a=cost), measured(a=500.0))
    assert found == status
    assert any("failed" in line and "--accept" in line for line in lines) == (status == 1)


def test_a_failure_names_the_numbers(guard):
    lines, _ = guard.verdict(measured(a=500.0, b=550.0), measured(a=500.0, b=500.0))
    assert "instructions: b: 550.0 a packet-hop, stored 500.0 (+10.0%)" in lines


def test_more_than_three_percent_below_asks_to_keep_it(guard):
    lines, status = guard.verdict(measured(a=480.0), measured(a=500.0))
    assert status == 0
    assert "better by more than 3%" in lines[-1] and "--accept" in lines[-1]


def test_a_better_workload_does_not_hide_a_worse_one(guard):
    assert guard.verdict(measured(a=100.0, b=600.0), measured(a=500.0, b=500.0))[1] == 1


def test_another_compiler_warns_and_does_not_fail(guard):
    then = measured(a=500.0, compiler={"rustc": "rustc 1.90.0", "architecture": "x86_64"})
    lines, status = guard.verdict(measured(a=900.0), then)
    assert status == 0
    assert "warning" in lines[-1] and "rustc 1.90.0" in lines[-1]


def test_other_work_and_a_workload_without_a_number_are_reported(guard):
    lines, status = guard.verdict(measured(a=500.0, b=1.0, hops=1001), measured(a=500.0))
    assert status == 0
    assert "other work: 1001 packet-hops, not 1000" in lines[0]
    assert "b: nothing stored yet" in lines[1]


def test_totals_and_packet_hops_are_read_from_what_the_programs_write(guard):
    assert guard.total("version: 1\nevents: Ir\nsummary: 12\n\nfn=(1)\n3 4\ntotals: 123456\n") == 123_456
    assert guard.packet_hops("packet_hops 788272\n") == 788_272
    with pytest.raises(guard.MeasureError):
        guard.total("events: Ir\n")
    with pytest.raises(guard.MeasureError):
        guard.packet_hops("packet_hops many\n")


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"workloads": {"a": 5}, "compiler": {}}']
    + [
        json.dumps({"workloads": {"a": {"instructions_per_hop": cost}}, "compiler": {}})
        for cost in (0, -1, "x", None)
    ],
)
def test_a_spoiled_store_says_how_to_make_it_again(guard, monkeypatch, tmp_path, text):
    monkeypatch.setattr(guard, "ROOT", tmp_path)
    monkeypatch.setattr(guard, "STORED", tmp_path / "instructions.json")
    (tmp_path / "instructions.json").write_text(text)
    with pytest.raises(guard.MeasureError, match="--accept"):
        guard.stored()


def test_without_valgrind_it_is_skipped_with_the_reason(guard, monkeypatch, capsys):
    monkeypatch.setattr(guard.shutil, "which", lambda tool: None if tool == "valgrind" else tool)
    assert guard.main([]) == 0
    assert "skipped, valgrind not found" in capsys.readouterr().out
    assert guard.main(["--accept"]) == 1


def test_the_stored_numbers_are_those_of_the_workloads_that_are_measured(guard):
    assert guard.stored()["workloads"].keys() == guard.LENGTHS.keys()
