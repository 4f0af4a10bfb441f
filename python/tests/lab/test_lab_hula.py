"""HULA on real packets: uplinks, a failed link, and what the lab cannot do with it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.test_lab import lab, nothing_left, ours, wait_for_flows
from weftline import InputError, Scenario, _native
from weftline.lab import balanced, balancers, experiment, hula, runs
from weftline.lab import programs as switch_programs

__all__ = ["nothing_left"]

FOLDER = Path(__file__).parents[3] / "experiments/hula/lab"
FABRIC = """
name = "fabric"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
host_link = { rate = "100Mbps", delay = "1ms" }
fabric_link = { rate = "20Mbps", delay = "1ms" }
[switch]
queue = { kind = "fifo", packets = 100 }
balancer = { kind = "hula", probe_interval = "10ms", time_constant = "40ms", gap = "20ms" }
[transport]
kind = "tcp"
[[workload]]
kind = "flows"
flows = [
    { src = 0, dst = 2, size = "3MB", start = "0ms" },
    { src = 1, dst = 3, size = "3MB", start = "100ms" },
]
"""
QUERIES = """
bits = 16
hops = { expected = 3, maximal = 10 }
[[query]]
name = "path"
value = "switch-id"
aggregation = "path"
bits = 16
copies = 2
"""


@pytest.fixture
def programs(machine: None) -> None:
    """Skip, or fail under `make lab`, where the programs cannot be loaded."""
    wrong = [] if shutil.which("bpftool") else ["no bpftool"]
    wrong += [] if any(path.exists() for path in hula.objects()) else ["no objects: make lab-objects"]
    if wrong:
        (pytest.fail if os.environ.get("WEFTLINE_LAB") else pytest.skip)(", ".join(wrong))


@pytest.fixture
def fabric(tmp_path: Path) -> Path:
    """Two leaves, two spines, a flow from each host of one leaf."""
    file = tmp_path / "fabric.toml"
    file.write_text(FABRIC)
    return file


@pytest.mark.usefixtures("programs", "nothing_left")
def test_two_flows_use_both_uplinks_and_probes_reach_every_switch(fabric: Path, tmp_path: Path) -> None:
    done = lab("run", fabric, "--out", tmp_path / "lab", "--json")
    out, _ = done.communicate(timeout=120)
    assert done.returncode == 0, out
    summary = json.loads(out)
    assert summary["flows_done"] == 2
    found = summary["lab"]["balancer"]
    assert set(found["by_switch"]) == {"leaf0", "leaf1", "spine0", "spine1"}
    for name, counts in found["by_switch"].items():
        assert counts["probes"] > 0 and counts["refused"] == 0, name
        # Leaves keep probes, spines pass them on.
        assert (counts["passed"] > 0) == name.startswith("spine")
    nodes, links = (Scenario(fabric).network()[part] for part in ("nodes", "links"))
    names = [node["name"] for node in nodes]
    up = [link["a_port"] for link in links if names[link["a"]] == "leaf0" and "spine" in names[link["b"]]]
    ports = [summary["lab"]["ports"][name] for name in up]
    uplinks = [port["bytes_sent"] for port in ports]
    assert len(uplinks) == 2
    # 6 MB in all; the second flow begins while the first one loads an uplink.
    assert min(uplinks) > 1e6 and sum(uplinks) > 6e6, uplinks
    sent = sum(port["packets_sent"] for port in ports)
    probers = found["probers"]
    assert set(probers) == {"leaf0", "leaf1"} and all(one["sent"] > 0 for one in probers.values())
    # What the program forwarded is what the ports sent, probes and drops apart. Probers end a moment after
    # the counters of the ports are read.
    drops = sum(port["drops"] for port in ports)
    forwarded = found["by_switch"]["leaf0"]["data"]
    assert sent <= forwarded + probers["leaf0"]["sent"] <= sent + drops + 100


@pytest.mark.usefixtures("programs", "nothing_left")
def test_hula_and_pint_work_on_the_same_packets(fabric: Path, tmp_path: Path) -> None:
    (tmp_path / "queries.toml").write_text(QUERIES)
    pint = '[telemetry]\nkind = "pint"\nqueries = "queries.toml"\n[transport]'
    fabric.write_text(fabric.read_text().replace("[transport]", pint))
    done = lab("run", fabric, "--out", tmp_path / "lab", "--json")
    out, _ = done.communicate(timeout=120)
    assert done.returncode == 0, out
    found = json.loads(out)["lab"]
    stamped, forwarded = found["pint"]["programs"], found["balancer"]["programs"]["data"]
    assert stamped["sink"] == found["pint"]["recorded"] + found["pint"]["of_receivers"]
    assert stamped["lost"] == found["pint"]["strangers"] == 0
    # Three switches to a host of the other leaf; HULA forwards at the first two, the third one delivers.
    drops = sum(port["drops"] for port in found["ports"].values())
    assert 2 * stamped["sink"] <= forwarded <= 2 * (stamped["sink"] + drops)
    assert 3 * stamped["sink"] <= stamped["switch"] <= 3 * (stamped["sink"] + drops)


@pytest.mark.usefixtures("programs", "nothing_left")
def test_pings_leave_a_failed_link(fabric: Path) -> None:
    made, _ = runs.planned(runs.scenario_of(str(fabric), [], None), "kernel")
    lost = balanced.fail_over(made, balanced.Failover("host0", "host2", 200, 10, 50, 5))
    # With the kernel's ECMP all 150 after the failure are lost. A busy machine delays probes.
    assert lost < 40


def test_without_ping_an_experiment_with_a_failover_does_not_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failover = balanced.Failover("host0", "host2", 200, 10, 50, 5)
    own = balanced.Experiment("", tmp_path / "none.toml", 0.1, "hula", "ecmp", {"ecmp": {}}, failover)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(InputError, match="iputils-ping"):
        own.run(tmp_path, count=1)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("programs")
def test_a_killed_run_leaves_no_process(fabric: Path, tmp_path: Path, nothing_left: set[str]) -> None:
    process = lab("run", fabric, "--out", tmp_path / "lab", "--set", "workload.0.flows.0.size=200MB")
    wait_for_flows(process, nothing_left)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    clean = lab("clean")
    clean.communicate(timeout=30)
    assert clean.returncode == 0 and not ours() - nothing_left


@pytest.mark.usefixtures("programs")
def test_a_prober_that_ends_by_itself_ends_the_run(
    fabric: Path, tmp_path: Path, nothing_left: set[str]
) -> None:
    process = lab("run", fabric, "--out", tmp_path / "lab", "--set", "workload.0.flows.0.size=200MB")
    wait_for_flows(process, nothing_left)
    deadline = time.monotonic() + 20
    while not (probers := list(probers_of(process.pid))):
        assert time.monotonic() < deadline, "no prober was started"
        time.sleep(0.1)
    os.kill(probers[0], signal.SIGKILL)
    _, errors = process.communicate(timeout=30)
    assert process.returncode != 0 and "next to leaf" in errors
    assert not ours() - nothing_left


def probers_of(parent: int) -> Iterator[int]:
    """Yield the processes that send probes for a run."""
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            sends = folder.name.isdecimal() and b"prober.py" in (folder / "cmdline").read_bytes()
            if sends and f"PPid:\t{parent}\n" in (folder / "status").read_text():
                yield int(folder.name)


def test_what_cannot_be_balanced_is_an_error_before_anything_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switch_programs, "bpftool", lambda: None)
    monkeypatch.setattr(hula, "objects", lambda: [tmp_path / "none/hula.bpf.o"])
    values: dict[str, Any] = {"switch": {"balancer": {"kind": "hula"}}, "transport": {"kind": "mptcp"}}
    found = "\n".join(balancers.problems(values))
    for part in ("apt install bpftool", "make lab-objects"):
        assert part in found
    values = {"switch": {"balancer": {"kind": "letflow"}}}
    has = '"ecmp", "hula", "mp-hula"'
    assert balancers.problems(values) == [f'switch.balancer.kind = "letflow": the lab has {has}']
    assert balancers.problems({"switch": {}}) == []


def test_probes_pass_by_all_data_at_ports_of_the_simulator_whatever_the_limit() -> None:
    queue = {"kind": "fifo", "limit": "100KB"}
    values: dict[str, Any] = {"switch": {"balancer": {"kind": "hula"}, "queue": queue}}
    waits = "probes wait in the data's queue"
    assert waits in "\n".join(balancers.differs(values))
    assert waits not in "\n".join(balancers.differs(values, engine=True))


def test_probes_of_the_lab_are_those_of_the_simulators_captures(fabric: Path, tmp_path: Path) -> None:
    measure = '[measure]\npcap = ["leaf*->spine*"]\npcap_snaplen = "65535B"\n[[workload]]'
    fabric.write_text(fabric.read_text().replace("[[workload]]", measure))
    scenario = Scenario(fabric)
    scenario.run(out=tmp_path / "sim")
    capture = (tmp_path / "sim/capture.pcapng").read_bytes()
    switches, tor_of, interval_ns = _native.hula_switches(scenario.loaded)
    assert (tor_of, interval_ns) == ([0, 0, 1, 1], 10_000_000)
    leaves = [switch.probe[12:] for switch in switches if switch.probe]
    # Without addresses: EtherType, tag, padding to 64 B. Every leaf's first probes are in the capture.
    assert [len(frame) for frame in leaves] == [52, 52]
    assert [capture.count(frame) > 10 for frame in leaves] == [True, True]
    assert sum(capture.count(frame) for frame in leaves) == capture.count(b"\x88\xb5\x00\x0c\x04")
    assert [switch.probe for switch in switches[2:]] == [None, None]


class Fake(balanced.Pair):
    """A repeat of which the numbers are given."""

    def __init__(self, real: float, fct: tuple[float, float], spoilt: bool = False) -> None:
        self.real_bytes, self.fct, self.spoilt = real, fct, spoilt

    @property
    def contaminated(self) -> list[str]:
        return ["late"] if self.spoilt else []

    def bytes(self) -> dict[str, tuple[float, float]]:
        return {"leaf0 -> spine0": (100.0, self.real_bytes)}

    def mean_fct_ms(self) -> tuple[float, float]:
        return self.fct


def test_verdicts_are_of_clean_runs_and_of_their_interval() -> None:
    found = experiment.read("lab-hula")
    assert isinstance(found, balanced.Experiment)
    found.pairs = {
        "HULA": [Fake(101, (10, 11)), Fake(103, (10, 12)), Fake(102, (9, 10))],
        "ECMP": [Fake(120, (20, 22)), Fake(122, (20, 21)), Fake(121, (20, 9))],
    }
    assert found.verdict("HULA", "leaf0 -> spine0")[0] == "equal"
    assert found.verdict("ECMP", "leaf0 -> spine0")[0] == "different"
    assert found.order() == "open"
    found.pairs["ECMP"][2] = Fake(160, (20, 23))
    assert found.order() == "same order"
    assert found.verdict("ECMP", "leaf0 -> spine0")[0] == "open"
    found.failover.lost = {"HULA": [3, 5], "ECMP": [150, 150]}
    assert (found.failover.verdict("HULA"), found.failover.verdict("ECMP")) == ("holds", "fails")
    found.pairs["HULA"][0] = Fake(101, (10, 11), spoilt=True)
    assert found.verdict("HULA", "leaf0 -> spine0") == ("open", None)
    assert found.order() == "open" and not found.holds()


def test_an_experiment_names_what_is_wrong_with_it(tmp_path: Path) -> None:
    text = (FOLDER / "lab.toml").read_text()
    (tmp_path / "lab.toml").write_text(text.replace('faster = "HULA"', 'faster = "HUL"'))
    with pytest.raises(InputError, match="there is no balancer HUL: it has ECMP, HULA"):
        experiment.read(tmp_path)
    (tmp_path / "lab.toml").write_text(text.replace("[failover]", "[fail]"))
    with pytest.raises(InputError, match="is not an experiment on balancers"):
        experiment.read(tmp_path)
    with pytest.raises(InputError, match="leave --rows out"):
        experiment.read("lab-hula", ["1"])
