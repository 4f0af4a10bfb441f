"""Two threads on a machine whose cores are taken: about as fast as one, with the same results."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

FULL = bool(os.environ.get("WEFTLINE_TRIALS"))
SCENARIO = """
[topology]
kind = "fat-tree"
k = 8
[[workload]]
kind = "permutation"
size = "{size}"
"""


def run(folder, name: str, threads: int) -> dict:
    command = [
        sys.executable,
        "-m",
        "weftline",
        "run",
        "s.toml",
        "--quiet",
        "--threads",
        str(threads),
        "--out",
        name,
    ]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    return json.loads((folder / name / "summary.json").read_text())


@pytest.mark.alone
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core: runs have one thread")
def test_two_threads_cost_little_while_something_else_burns_the_cores(tmp_path):
    (tmp_path / "s.toml").write_text(SCENARIO.format(size="10MB" if FULL else "1MB"))
    burners = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)
    ]
    try:
        one, two = (run(tmp_path, f"t{threads}", threads) for threads in (1, 2))
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    assert one["fingerprint"] == two["fingerprint"]
    assert {"share_alone", "threads_ratio"} <= two.keys()
    if FULL:
        # Other processes on the machine slow one of them: a bound, not a measurement.
        assert two["wall_seconds"] < 2.5 * one["wall_seconds"] + 1
        if two["share_alone"] > 0.2:
            assert any("times as fast as one" in warning for warning in two["warnings"])
