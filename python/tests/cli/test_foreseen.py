"""What a run will probably come to is a warning before it starts, and many errors or failures are counted."""

import commands
import pytest

import weftline
from weftline.cli import facts
from weftline.measures import run_facts

SLOW = """
[topology]
kind = "star"
hosts = 2
host_link = { rate = "1bps", delay = "10s" }
[[workload]]
kind = "bulk"
size = "2MB"
"""
REASON = (
    "the slowest link (host0 - s0) has a rate of 1bps, at which the 2MB of all flows take about 16000000s"
)


def test_a_run_beyond_the_clock_is_warned_of_by_check_and_before_it_fails(tmp_path):
    (tmp_path / "slow.toml").write_text(SLOW)
    checked = " ".join(commands.run("check", "slow.toml", cwd=tmp_path).stdout.split())
    assert "run.until = flows-done: the run would end after more than 107 days" in checked
    assert REASON in checked
    assert "ends at beyond the limit of the clock" in checked
    ran = commands.run("run", "slow.toml", "--out", "run", cwd=tmp_path)
    printed = " ".join(ran.stderr.split())
    assert ran.returncode == 1
    before, _, after = printed.partition("simulated time exceeded 107 days, the limit of the clock: ")
    assert before.startswith("warning: run.until = flows-done: ") and before.count("warning:") == 1
    assert after.startswith(REASON)
    assert "think" not in printed


def test_python_warns_before_the_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slow.toml").write_text(SLOW)
    with (
        pytest.warns(weftline.WeftlineWarning, match="after more than 107 days"),
        pytest.raises(weftline.RunFailed, match="simulated time exceeded 107 days"),
    ):
        weftline.run("slow.toml", out="run")


def test_many_changes_are_a_number_and_the_first_ones():
    changes = [f"leaf0 - spine0 {('down', 'up')[i % 2]} at {i} us" for i in range(1000)]
    text = run_facts._changes_text(changes)
    assert text.startswith("1,000 changes: leaf0 - spine0 down at 0 us; ")
    assert text.endswith("leaf0 - spine0 down at 2 us and 997 more")
    assert run_facts._changes_text(changes[:2]) == "; ".join(changes[:2])


def test_an_end_beyond_the_clock_is_no_number():
    estimate = {
        "packet_hops": 1,
        "end_ns": 18_446_744_000_000_000,
        "end_is_beyond_clock": True,
        "flows_in_flight": 1,
        "packets_in_flight": 1,
        "seconds": 1,
        "memory_bytes": 1,
        "memory": {},
    }
    assert facts._estimate_texts(estimate, 1)["ends at"] == "beyond the limit of the clock"


def test_an_end_with_collisions_has_the_one_without_next_to_it():
    estimate = {
        "packet_hops": 1,
        "end_ns": 1_354_000,
        "end_without_collisions_ns": 355_200,
        "flows_in_flight": 1,
        "packets_in_flight": 1,
        "seconds": 1,
        "memory_bytes": 1,
        "memory": {},
    }
    text = "about 1.4 ms of simulated time"
    assert facts._estimate_texts(estimate, 1)["ends at"] == f"{text} (355 us if no flows collide on a path)"
    estimate["end_without_collisions_ns"] = None
    assert facts._estimate_texts(estimate, 1)["ends at"] == text
