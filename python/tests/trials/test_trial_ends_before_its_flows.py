"""Runs that end before their flows: which flows count is the same in summary, table and check."""

from __future__ import annotations

import json
import random

import pyarrow
import pytest

import weftline
from weftline import _native
from weftline.scenarios import to_toml


def scenario(rng: random.Random) -> dict:
    """Return flows of which some are due after the end, and some wait for others that do not end."""
    flows = [
        {"src": 0, "dst": 1, "size": f"{rng.randint(1, 2000)}KB", "start": f"{rng.randint(0, 200)}us"}
        for _ in range(rng.randint(1, 30))
    ]
    if rng.random() < 0.5:
        flows.append({"src": 1, "dst": 0, "size": "1KB", "after": [0]})
    return {
        "topology": {"kind": "star", "hosts": 4},
        "workload": [{"kind": "flows", "flows": flows}],
        "run": {"until": f"{rng.randint(50, 220)}us"},
    }


@pytest.mark.parametrize("seed", range(20))
def test_flows_are_those_in_the_table_whenever_the_run_ends(tmp_path, seed):
    rng = random.Random(seed)
    file = scenario(rng)
    until = int(file["run"]["until"].removesuffix("us"))
    listed = file["workload"][0]["flows"]
    # A flow that waits for the first may start no sooner than that one.
    starts = [flow.get("start", listed[0]["start"]) for flow in listed]
    due = sum(int(start.removesuffix("us")) <= until for start in starts)
    run = weftline.run(file, out=tmp_path / "run")
    rows = pyarrow.table(run.flows).num_rows
    summary = run.summary
    assert (summary["flows"], rows, summary["flows_not_due"]) == (due, due, len(listed) - due)
    assert summary["flows_done"] + summary["flows_unfinished"] == due
    assert summary["slowdown"]["count"] == summary["flows_done"] and summary["slowdown"]["without"] == 0
    if all("after" not in flow for flow in listed):
        found = json.loads(_native.Scenario(to_toml(file), "s.toml", tmp_path).check())
        assert found["traffic"]["flows_not_due"] == len(listed) - due
