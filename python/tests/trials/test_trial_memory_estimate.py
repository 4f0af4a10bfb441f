"""The memory estimate of `check`: never much less than a run's process holds, whatever the run is made of."""

from __future__ import annotations

import json
import os

import commands
import pytest

FULL = bool(os.environ.get("WEFTLINE_TRIALS"))
FABRIC = '[topology]\nkind = "fat-tree"\nk = {k}\n'
POISSON = '[[workload]]\nkind = "poisson"\nsizes = "google-rpc"\nload = 0.3\ncount = {flows}\n'
SERIES = '[measure]\nqueues = { ports = "*", every = "1us" }\nutilisation = { ports = "*", every = "1us" }\n'
CASES = {
    "one flow": FABRIC.format(k=4)
    + '[[workload]]\nkind = "flows"\nflows = [{ src = 0, dst = 9, size = "1MB" }]\n',
    "few flows": FABRIC.format(k=4) + POISSON.format(flows=20_000 if FULL else 5_000),
    "many ports": FABRIC.format(k=16 if FULL else 8) + '[[workload]]\nkind = "permutation"\nsize = "100KB"\n',
    "series": '[topology]\nkind = "star"\nhosts = 32\n[[workload]]\nkind = "permutation"\nsize = "5MB"\n'
    + SERIES,
    "a trace": None,
    "a collective": FABRIC.format(k=8 if FULL else 4)
    + '[[workload]]\nkind = "collective"\noperation = "ring-all-reduce"\nbytes = "4MB"\n',
}
if FULL:
    CASES["many flows"] = FABRIC.format(k=4) + POISSON.format(flows=500_000)


def trace(folder) -> str:
    rows = 500_000 if FULL else 30_000
    lines = (
        f"{row % 16},{(row + 1 + row // 16 % 15) % 16},{200 + row % 3000},{row * 100}" for row in range(rows)
    )
    (folder / "trace.csv").write_text("\n".join(["src,dst,size_bytes,start_ns", *lines]) + "\n")
    return FABRIC.format(k=4) + '[[workload]]\nkind = "trace"\nfile = "trace.csv"\n'


def weftline(*arguments, folder) -> str:
    return commands.run(*arguments, cwd=folder, check=True).stdout


@pytest.mark.parametrize("case", CASES)
def test_the_estimate_is_no_more_than_a_tenth_below_the_peak(tmp_path, case):
    (tmp_path / "s.toml").write_text(CASES[case] or trace(tmp_path))
    estimate = json.loads(weftline("check", "s.toml", "--json", folder=tmp_path))["estimate"]["memory_bytes"]
    weftline("run", "s.toml", "--out", "run", "--quiet", folder=tmp_path)
    peak = json.loads((tmp_path / "run" / "summary.json").read_text())["peak_memory_bytes"]
    assert 0.9 * peak <= estimate <= 1.5 * peak, (
        f"{estimate / 1e6:.1f} MB estimated, {peak / 1e6:.1f} MB measured"
    )


def test_an_offered_load_next_to_the_requested_one_states_why(tmp_path):
    star = '[topology]\nkind = "star"\nhosts = 8\n'
    file = star + '[[workload]]\nkind = "poisson"\nsizes = "websearch"\nload = 0.5\n'
    within = 0
    for seed in range(20):
        (tmp_path / "s.toml").write_text(f'seed = {seed}\n{file}duration = "2ms"\n')
        status, output, _ = commands.captured("check", str(tmp_path / "s.toml"), "--json")
        assert status == 0
        traffic = json.loads(output)["traffic"]
        assert traffic["offered_load_asked"] == pytest.approx(0.5)
        within += abs(traffic["offered_load"] - 0.5) <= 2 * traffic["offered_load_error"]
    # 19 of 20 where flows are drawn from a normal distribution; sizes are not.
    assert within >= 16
    output = weftline("check", "s.toml", folder=tmp_path)
    assert "configured: load 0.5 of" in output and "19 of 20 seeds" in output
