"""PINT, MP-HULA and Cebinae in one scenario on real packets: digests, kills, wrong inputs, verdicts."""

from __future__ import annotations

import math
import os
import shutil
import signal
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.lab.test_lab import lab, nothing_left, ours, wait_for_flows
from tests.lab.test_lab_pint import program_ids, wait_for_programs_to_go
from weftline import InputError, pint
from weftline.lab import experiment, ioam, mphula, plan, runs, stamps, together
from weftline.lab import programs as switch_programs
from weftline.runs import Run

_ = nothing_left
KERNEL = ["reno", "cubic"]
FOLDER = experiment.named()["lab-together"]
SECONDS = 6
CEBINAE = '[{ match = "leaf1->sink", queue = { kind = "cebinae", packets = 60, cache_key = "hosts" } }]'


@pytest.fixture
def programs(machine: None) -> None:
    """Skip, or fail under `make lab`, where the programs cannot be loaded."""
    wrong = [] if shutil.which("bpftool") else ["no bpftool"]
    for paths in (mphula.objects(), stamps.objects()):
        wrong += [] if any(path.exists() for path in paths) else ["no objects: make lab-objects"]
    wrong += [] if plan.has_mptcp() else ["no MPTCP in this kernel"]
    if wrong:
        (pytest.fail if os.environ.get("WEFTLINE_LAB") else pytest.skip)(", ".join(wrong))


@pytest.mark.usefixtures("programs", "nothing_left")
def test_every_digest_is_the_librarys_for_the_path_on_which_its_packet_was_captured(tmp_path: Path) -> None:
    found = experiment.read("lab-together")
    assert isinstance(found, together.Experiment)
    found.queues = {"Cebinae": found.queues["Cebinae"]}
    found.run(tmp_path, count=1, seconds=SECONDS)
    (pair,) = found.pairs["Cebinae"]
    simulated, real = pair.paths
    assert real.digests > 1000 and real.equal == real.digests and real.unmatched == 0
    assert real.contradictions == 0 and real.subflows == simulated.subflows == 8
    one = pair.real.summary["lab"]
    assert one["engine_ports"]["conserved"] and one["pint"]["strangers"] == 0
    leaf = one["balancer"]["by_switch"]["leaf0"]
    # Three subflows join each of two connections; probes come by four links, forty times a second.
    assert leaf["joined"] == 6 and leaf["strangers"] == leaf["forged"] == 0
    assert leaf["probes"] > 0.9 * 4 * 40 * SECONDS


@pytest.mark.usefixtures("programs")
def test_a_killed_run_leaves_nothing_after_clean(tmp_path: Path, nothing_left: set[str]) -> None:
    before = program_ids()
    process = lab(
        "run", FOLDER / "scenario.toml", "--out", tmp_path / "lab", "--set", f"switch.port={CEBINAE}"
    )
    wait_for_flows(process, nothing_left)
    assert program_ids() - before
    process.send_signal(signal.SIGKILL)
    process.wait()
    clean = lab("clean")
    clean.communicate(timeout=60)
    # Queueing disciplines and interfaces are in the namespaces.
    assert clean.returncode == 0 and not ours() - nothing_left
    wait_for_programs_to_go(before)
    mounts = {line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()}
    assert "/run/weftline-lab" not in mounts


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ('telemetry.kind="none"', None),
        ("switch.balancer.kind=conga", 'the lab has "ecmp", "hula", "mp-hula"'),
        ("switch.pfc.enabled=true", "cannot pause each other"),
        ("transport.controller.kind=lia", "this kernel has"),
        ("transport.subflows=9", "has up to 8"),
    ],
)
def test_what_cannot_be_had_together_is_one_error_before_anything_is_changed(
    change: str, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switch_programs, "problems", lambda key, lie: [])
    monkeypatch.setattr(plan, "has_mptcp", lambda: True)
    changes = [f"switch.port={CEBINAE}", change]
    try:
        scenario = runs.scenario_of(str(FOLDER / "scenario.toml"), changes, None)
    except InputError:
        pytest.skip("the simulator refuses it first")
    found = plan.problems(scenario.values, KERNEL, engine=True)
    assert found == [] if expected is None else len(found) == 1 and expected in found[0], found


def test_queries_for_queues_need_ports_of_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switch_programs, "problems", lambda key, lie: [])
    monkeypatch.setattr(plan, "has_mptcp", lambda: True)
    text = (FOLDER / "queries.toml").read_text()
    text = text.replace('"switch-id"', '"queue-bytes"').replace('"path"', '"quantiles"')
    queries = tmp_path / "queries.toml"
    queries.write_text(text.replace("copies = 2\nids = 64", "quantiles = [0.5]"))
    scenario = runs.scenario_of(str(FOLDER / "scenario.toml"), [f'telemetry.queries="{queries}"'], None)
    (found,) = plan.problems(scenario.values, KERNEL, engine=True)
    assert found.startswith("telemetry.queries: queue-bytes") and "--ports kernel" in found
    assert plan.problems(scenario.values, KERNEL) == []


def frame(words: int, payload: bytes = b"") -> bytes:
    """Return a TCP frame with an IPv4 header of this many words."""
    ip = struct.pack(">BBHHHBBH4s4s", 0x40 | words, 0, 0, 0, 0, 62, 6, 0, b"\x0a\0\0\1", b"\x0a\0\0\2")
    tcp = struct.pack(">HHIIHHHH", 4000, 5002, 7, 9, 0x5010, 100, 0xBEEF, 0)
    return bytes(12) + b"\x08\x00" + ip + bytes(4 * words - 20) + tcp + payload


def test_a_captured_packet_has_the_number_that_programs_give_it_with_or_without_a_mark() -> None:
    ends = [0xFFFF << 32 | address for address in (0x0A000001, 0x0A000002)]
    expected = ioam.packet_id(*ends, 4000 << 48 | 5002 << 32 | 7, 9, 0xBEEF)
    assert together.packet_of(frame(5)) == together.packet_of(frame(8, b"data")) == expected
    for length in range(len(frame(8))):
        assert together.packet_of(frame(8)[:length]) is None
    assert together.packet_of(frame(5).replace(b"\x08\x00", b"\x86\xdd", 1)) is None


def test_ways_are_all_shortest_paths() -> None:
    ends = [(0, 2), (1, 5), (2, 3), (2, 4), (3, 5), (4, 5), (3, 4)]
    kinds = ["host", "host", "switch", "switch", "switch", "switch"]
    graph = {"nodes": [{"kind": kind} for kind in kinds], "links": [{"a": a, "b": b} for a, b in ends]}
    assert sorted(together._ways(graph, 0, 1)) == [(2, 3, 5), (2, 4, 5)]


class Fake(together.Pair):
    """A repeat of which the numbers are given."""

    def __init__(self, jain: tuple[float, float], spoilt: bool = False, **real: Any) -> None:
        whole = {"digests": 9, "equal": 9, "subflows": 8, "known": 8, "uplinks": 4.0}
        self.__dict__["paths"] = together.Paths(**whole), together.Paths(**(whole | real))
        self.__dict__["jain"], self.__dict__["goodput_mbps"] = jain, (8.0, 7.9)
        self.spoilt = spoilt

    @property
    def contaminated(self) -> list[str]:
        return ["late"] if self.spoilt else []


def test_verdicts() -> None:
    found = experiment.read("lab-together")
    assert isinstance(found, together.Experiment)
    fair, unfair = [(0.95, 0.96), (0.95, 0.95)], [(0.80, 0.79), (0.80, 0.80)]

    def words(name: str) -> list[str]:
        return [word for word, _ in found.verdicts(name).values()]

    found.pairs = {"Cebinae": [Fake(jain) for jain in fair], "FIFO": [Fake(jain) for jain in unfair]}
    assert words("Cebinae") == ["equal"] * 5 and found.order() == "same order" and found.holds()
    assert [line[-1] for line in found.table().rows][-1] == "same order"
    # One wrong digest, one path that was never taken, one that is not known, one packet without a capture.
    for changes, expected in (
        ({"equal": 8}, ["different", "equal"]),
        ({"contradictions": 1}, ["equal", "different"]),
        ({"known": 7}, ["equal", "open"]),
        ({"unmatched": 1}, ["open", "equal"]),
    ):
        found.pairs["Cebinae"] = [Fake(fair[0]), Fake(fair[1], **changes)]
        assert words("Cebinae")[:2] == expected and not found.holds()
    # Contaminated runs count for what does not depend on time alone.
    found.pairs["Cebinae"] = [Fake(jain, spoilt=True) for jain in fair]
    assert words("Cebinae") == ["equal", "equal", "open", "open", "open"] and found.order() == "open"
    found.pairs["Cebinae"] = [Fake((0.95, 0.70)), Fake((0.95, 0.72))]
    assert words("Cebinae")[3] == "different" and found.order() in ("open", "different order")


def test_digests_of_a_simulated_run_are_decoded_the_same_way(tmp_path: Path) -> None:
    # SYNs of a subflow that joins a full queue may be lost; they are sent again after one second and three.
    scenario = runs.scenario_of(str(FOLDER / "scenario.toml"), ["run.until=8s"], None)
    run: Run = scenario.run(out=tmp_path / "sim")
    found = together.paths(run, pint.Plan.open(FOLDER / "queries.toml"), None)
    assert found.subflows == 8 and found.digests == 0 and not math.isnan(found.uplinks)
