"""PINT on real packets: digests of the switches' programs, against the library; runs that are killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.lab.test_lab import lab, nothing_left, ours, wait_for_flows
from weftline import pint
from weftline.lab import programs as switch_programs
from weftline.lab import stamps

__all__ = ["nothing_left"]

QUERIES = """
bits = 16
hops = { expected = 2, maximal = 10 }
[[query]]
name = "path"
value = "switch-id"
aggregation = "path"
bits = 16
copies = 2
"""
PINT = '\n[telemetry]\nkind = "pint"\nqueries = "queries.toml"\npaths = true\n'


@pytest.fixture
def programs(machine: None) -> None:
    """Skip, or fail under `make lab`, where the programs cannot be loaded."""
    wrong = [] if shutil.which("bpftool") else ["no bpftool"]
    wrong += [] if any(path.exists() for path in stamps.objects()) else ["no objects: make lab-objects"]
    if wrong:
        (pytest.fail if os.environ.get("WEFTLINE_LAB") else pytest.skip)(", ".join(wrong))


@pytest.fixture
def stamped(dumbbell: Path) -> Path:
    """The dumbbell with digests of the path on all packets."""
    (dumbbell.parent / "queries.toml").write_text(QUERIES)
    dumbbell.write_text(dumbbell.read_text().replace("[transport]", PINT + "[transport]"))
    return dumbbell


def program_ids() -> set[int]:
    """Return the numbers of our programs that the kernel holds."""
    found = json.loads(subprocess.check_output(["bpftool", "-j", "prog", "show"]))
    return {one["id"] for one in found if one.get("name", "").startswith("pint_")}


def wait_for_programs_to_go(before: set[int]) -> None:
    """The kernel removes programs and namespaces a moment after the last holder ends."""
    for _ in range(100):
        if not program_ids() - before:
            return
        time.sleep(0.1)
    raise AssertionError(program_ids() - before)


@pytest.mark.usefixtures("programs", "nothing_left")
def test_every_digest_of_a_real_packet_is_the_librarys(stamped: Path, tmp_path: Path) -> None:
    before = program_ids()
    done = lab("run", stamped, "--out", tmp_path / "lab", "--json")
    out, err = done.communicate(timeout=120)
    assert done.returncode == 0, err
    counts = json.loads(out)["lab"]["pint"]
    programs = counts["programs"]
    assert programs["lost"] == programs["unstamped"] == programs["hop_limit"] == counts["strangers"] == 0
    assert programs["sink"] == counts["recorded"] + counts["of_receivers"]
    assert programs["switch"] == programs["source"] + programs["sink"]
    rows = pq.read_table(tmp_path / "lab/telemetry.parquet").to_pylist()
    # 2072 segments of each of two flows.
    assert len(rows) == counts["recorded"] >= 4144
    plan = pint.Plan.open(stamped.parent / "queries.toml")
    for row in rows:
        assert row["path"] == "s0 s1" and row["hops"] == 2
        hops = [{"switch-id": 4}, {"switch-id": 5}]
        assert plan.encode(packet_id=row["packet_id"], hops=hops)[-1] == row["digest"]
    decode = [sys.executable, "-m", "weftline", "pint", "decode", tmp_path / "lab/telemetry.parquet"]
    known = ["--plan", stamped.parent / "queries.toml", "--topology", tmp_path / "lab/scenario.toml"]
    decoded = subprocess.check_output([*decode, *known], text=True)
    assert decoded.count("s0 s1") == 2 and "inconsistent" not in decoded
    wait_for_programs_to_go(before)


@pytest.mark.usefixtures("programs")
def test_programs_go_with_a_killed_run(stamped: Path, tmp_path: Path, nothing_left: set[str]) -> None:
    before = program_ids()
    process = lab("run", stamped, "--out", tmp_path / "lab")
    wait_for_flows(process, nothing_left)
    assert program_ids() - before
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(0.2)
    clean = lab("clean")
    clean.communicate(timeout=30)
    assert clean.returncode == 0 and not ours() - nothing_left
    wait_for_programs_to_go(before)


def test_what_cannot_be_stamped_is_said_before_anything_is_changed(
    stamped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFTLINE_BPF", str(tmp_path / "none"))
    monkeypatch.setattr(switch_programs, "bpftool", lambda: None)
    monkeypatch.setattr(stamps, "objects", lambda: [tmp_path / "none/pint.bpf.o"])
    telemetry = {"kind": "pint", "queries": str(stamped.parent / "queries.toml")}
    found = "\n".join(stamps.problems({"telemetry": telemetry, "transport": {"kind": "rdma"}}))
    for part in ("apt install bpftool", "make lab-objects", 'transport.kind = "tcp" and "mptcp"'):
        assert part in found
    values = {"telemetry": telemetry, "transport": {"kind": "mptcp"}}
    assert "--ports kernel" not in "\n".join(stamps.problems(values, engine=True))
    with_latency = QUERIES.replace("switch-id", "hop-latency").replace('"path"', '"quantiles"')
    (stamped.parent / "queries.toml").write_text(with_latency.replace("copies = 2", "quantiles = [0.5]"))
    assert "telemetry.queries: hop-latency follow" in "\n".join(stamps.problems(values, engine=True))
    assert "hop-latency" not in "\n".join(stamps.problems(values))
    assert "telemetry.queries" in stamps.problems({"telemetry": {"kind": "pint"}})[0]
    assert 'kind = "int"' in stamps.problems({"telemetry": {"kind": "int"}})[0]
