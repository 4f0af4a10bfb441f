"""MP-HULA on real packets: subflows of kernel MPTCP on different uplinks, tokens, verdicts."""

from __future__ import annotations

import json
import os
import select
import shutil
import socket
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.lab.test_lab import lab, nothing_left
from weftline import InputError, Scenario, _native, scenarios
from weftline.lab import agent, balanced, balancers, experiment, mphula, mphula_tokens, plan, subflows
from weftline.lab import programs as switch_programs

__all__ = ["nothing_left"]

FABRIC = """
name = "subflows"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 3
hosts_per_leaf = 1
# A subflow joins a round trip, 160 ms, after the packet with the keys: the process that hashes them has that
# long. On a busy machine it can be late by more than 16 ms; switches then do not know the subflow.
host_link = { rate = "100Mbps", delay = "20ms" }
fabric_link = { rate = "10Mbps", delay = "20ms" }
[switch]
queue = { kind = "fifo", packets = 50 }
[switch.balancer]
kind = "mp-hula"
ranks = 3
mark = "12B"
probe_interval = "10ms"
time_constant = "40ms"
gap = "100ms"
[transport]
kind = "mptcp"
subflows = 3
controller = { kind = "cubic" }
[[workload]]
kind = "flows"
flows = [{ src = 0, dst = 1, size = "6MB", start = "0ms" }]
"""


@pytest.fixture
def programs(machine: None) -> None:
    """Skip, or fail under `make lab`, where the programs cannot be loaded."""
    wrong = [] if shutil.which("bpftool") else ["no bpftool"]
    wrong += [] if any(path.exists() for path in mphula.objects()) else ["no objects: make lab-objects"]
    wrong += [] if plan.has_mptcp() else ["no MPTCP in this kernel"]
    if wrong:
        (pytest.fail if os.environ.get("WEFTLINE_LAB") else pytest.skip)(", ".join(wrong))


@pytest.fixture
def fabric(tmp_path: Path) -> Path:
    """Two leaves, three spines, one connection of three subflows."""
    file = tmp_path / "fabric.toml"
    file.write_text(FABRIC)
    return file


def changed(file: Path, key: str, value: Any) -> Scenario:
    """Return the scenario with another value."""
    return Scenario.of(scenarios.load(str(file)), scenarios.settings({key: value}), seed=None)


@pytest.mark.usefixtures("programs", "nothing_left")
def test_subflows_of_a_connection_take_different_uplinks(fabric: Path, tmp_path: Path) -> None:
    for _ in range(3):
        done = lab("run", fabric, "--out", tmp_path / "lab", "--json", "--force")
        out, err = done.communicate(timeout=120)
        assert done.returncode == 0, err
        summary = json.loads(out)
        assert summary["flows_done"] == 1
        # Else the machine may have decided it.
        if not summary["lab"]["contaminated"]:
            break
    found = summary["lab"]["balancer"]["by_switch"]
    for leaf in ("leaf0", "leaf1"):
        # Two subflows join the first; the receiver opens none.
        assert found[leaf]["joined"] == 2 and found[leaf]["strangers"] == 0, found[leaf]
        assert found[leaf]["keys"] >= 1 and found[leaf]["missed"] == found[leaf]["forged"] == 0
        assert found[leaf]["marked"] > 100
    assert found["leaf1"]["cleared"] <= found["leaf0"]["marked"]
    assert found["leaf1"]["cleared"] > 0.9 * found["leaf0"]["marked"]
    nodes, links = (Scenario(fabric).network()[part] for part in ("nodes", "links"))
    names = [node["name"] for node in nodes]
    up = [link["a_port"] for link in links if names[link["a"]] == "leaf0" and "spine" in names[link["b"]]]
    uplinks = [summary["lab"]["ports"][name]["bytes_sent"] for name in up]
    assert len(uplinks) == 3 and min(uplinks) > 0.1 * sum(uplinks) and sum(uplinks) > 6e6, uplinks


def test_what_cannot_be_had_is_an_error_before_anything_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(switch_programs, "bpftool", lambda: None)
    monkeypatch.setattr(mphula, "objects", lambda: [tmp_path / "none/mphula.bpf.o"])
    values: dict[str, Any] = {"switch": {"balancer": {"kind": "mp-hula"}}, "transport": {"kind": "mptcp"}}
    found = balancers.problems(values)
    for part in ("apt install bpftool", "make lab-objects"):
        assert part in "\n".join(found)
    assert all(text.startswith('switch.balancer.kind = "mp-hula"') for text in found)
    monkeypatch.setattr(plan, "has_mptcp", lambda: False)
    found = plan.problems(values, ["cubic"])
    assert any("CONFIG_MPTCP" in text and "--hosts engine" in text for text in found)


def test_what_is_not_alike_is_listed(fabric: Path) -> None:
    values = Scenario(fabric).values
    found = "\n".join(balancers.differs(values))
    assert "16384 subflows" in found and "a process has hashed its keys" in found
    assert "bytes longer" not in found
    values = changed(fabric, "switch.balancer.mark", "9B").values
    assert "12 bytes longer; in the simulator 9" in "\n".join(balancers.differs(values))


def test_links_between_switches_have_room_for_a_mark(fabric: Path) -> None:
    made = plan.make(Scenario(fabric), ["cubic"], [])
    mtus = {link.mtu for link in made.links if link.a.port.is_switch and link.b.port.is_switch}
    hosts = {link.mtu for link in made.links if not (link.a.port.is_switch and link.b.port.is_switch)}
    # Of the simulated length: payload, and what MPTCP adds to a packet.
    assert hosts == {plan.MTU} and mtus == {plan.MTU + mphula.MARK_BYTES}
    assert any("scheduler of MPTCP" in text for text in made.differs)


def test_switches_of_a_scenario_begin_with_its_ranks(fabric: Path) -> None:
    switches, own, tor_of, interval_ns = _native.mphula_switches(Scenario(fabric).loaded)
    assert (tor_of, interval_ns, len(switches)) == ([0, 1], 10_000_000, 5)
    # Ranks, flags (subflows apart, on ports of their own), divisor, tier: leaves first, then spines.
    assert [struct.unpack("=4I", config[:16]) for config in own] == [(3, 3, 1, 0)] * 2 + [(3, 3, 3, 1)] * 3
    with pytest.raises(InputError, match="mp-hula"):
        _native.mphula_switches(changed(fabric, "switch.balancer", {"kind": "hula"}).loaded)


class Maps:
    """Maps of a switch that are in memory."""

    def __init__(self) -> None:
        self.maps: dict[str, dict[bytes, bytes]] = {}

    def get(self, name: str, key: bytes, size: int) -> bytes | None:
        found = self.maps.get(name, {}).get(key)
        assert found is None or len(found) == size
        return found

    def put(self, name: str, key: bytes, value: bytes) -> None:
        self.maps.setdefault(name, {})[key] = value


# Keys and tokens of a handshake of Linux.
KEYS = 0xC6E4DBD38C69E6ED, 0xEFFBBBC667119FCB
TOKENS = 0xE9D62DFF, 0xE7C76F1D


def test_tokens_are_those_of_linux() -> None:
    assert [mphula_tokens.token(key, 1) for key in KEYS] == list(TOKENS)
    assert mphula_tokens.token(KEYS[1], 0) == 0x8955FE03


def test_two_keys_make_a_connection_known_once() -> None:
    maps = Maps()
    learner = mphula_tokens.Learner(maps)
    first, second = (bytes([n]) * mphula_tokens.ENDS for n in (1, 2))
    record = mphula_tokens.KEYS.pack(first, *KEYS, 1, 0)
    assert len(record) == mphula.RECORD_BYTES
    learner.take(record)
    learner.take(record)
    connection = struct.pack("=Q", TOKENS[0] << 32 | TOKENS[1])
    assert maps.maps == {
        "mphula_connections": {connection: struct.pack("=II", 1, 1)},
        "mphula_tokens": {struct.pack("=I", token): connection for token in TOKENS},
        "mphula_subflows": {first: connection + struct.pack("=II", 0, 0)},
    }
    # The same keys from other ends: one more subflow.
    learner.take(mphula_tokens.KEYS.pack(second, *KEYS, 1, 0))
    assert maps.maps["mphula_subflows"][second] == connection + struct.pack("=II", 1, 0)
    assert maps.maps["mphula_connections"] == {connection: struct.pack("=II", 2, 2)}


class Fake(balanced.Pair):
    """A repeat of which the numbers are given."""

    def __init__(
        self, real: list[float], goodput: tuple[float, float], simulated: tuple[float, ...] = (5, 5, 5, 5)
    ) -> None:
        self.real_bytes, self.goodput, self.simulated_bytes = real, goodput, simulated

    @property
    def contaminated(self) -> list[str]:
        return []

    def bytes(self) -> dict[str, tuple[float, float]]:
        both = zip(self.simulated_bytes, self.real_bytes, strict=True)
        return {f"leaf0 -> spine{n}": pair for n, pair in enumerate(both)}


def test_verdicts_on_uplinks_and_goodput(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subflows, "_goodputs", lambda pair: pair.goodput)
    found = experiment.read("lab-mphula")
    assert isinstance(found, subflows.Experiment)
    # A few bytes of a handshake do not count.
    found.pairs = {
        "MP-HULA": [Fake([5, 5, 5, 6], (36, 35.9)), Fake([5, 6, 5, 5], (36, 36))],
        "ECMP": [Fake([9, 9, 0.1, 0], (20, 18), (9, 9, 1, 0)), Fake([9, 0, 8, 3], (20, 18.2), (9, 9, 1, 0))],
    }
    assert [found.uplinks(pair) for pair in found.pairs["ECMP"]] == [(3, 2), (3, 3)]
    assert found.verdicts("MP-HULA")["uplinks"] == ("equal", (0, 0))
    assert found.verdicts("MP-HULA")["goodput"][0] == "equal"
    assert found.verdicts("ECMP")["uplinks"][0] == "open"
    assert found.order() == "same order" and found.holds()
    assert [line[-1] for line in found.table().rows] == ["equal", "equal", "open", "different", "same order"]
    found.pairs["MP-HULA"] = [Fake([5, 5, 5, 0], (36, 19)), Fake([5, 6, 5, 0], (36, 19.5))]
    assert found.verdicts("MP-HULA")["uplinks"][0] == found.verdicts("MP-HULA")["goodput"][0] == "different"
    assert not found.holds()
    # In one engine alone.
    found.pairs["MP-HULA"] = [Fake([5, 5, 5, 0], (36, 18)), Fake([5, 6, 5, 0], (36, 18.1))]
    assert found.order() == "open"
    found.pairs["MP-HULA"] = [Fake([5, 5, 5, 0], (36, 9)), Fake([5, 6, 5, 0], (36, 9.1))]
    assert found.order() == "different order"


@pytest.mark.skipif(not plan.has_mptcp(), reason="this kernel has no MPTCP")
def test_a_connection_that_the_kernel_continues_as_plain_tcp_is_named_and_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # A server without MPTCP, as where the first packets with its options are lost.
    with socket.create_server(("127.0.0.1", 0)) as server:
        host = agent.Agent({"address": "127.0.0.1", "listens": [], "multipath": True, "subflows": 4})
        port = server.getsockname()[1]
        task = {
            "id": 7,
            "size": 1000,
            "multipath": True,
            "congestion": "reno",
            "to": "127.0.0.1",
            "port": port,
        }
        host._start({**task, "to": "127.0.0.1", "port": port}, 0)
        (flow,) = host.flows.values()
        receiver, _ = server.accept()
        with receiver:
            host._send(flow, select.EPOLLOUT)
            assert flow.sent == len(receiver.recv(2000)) == 1000
            host._tell_subflows(flow)
            host._tell_subflows(flow)
            host._report(0)
            flow.sock.close()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line for line in lines if "plain" in line] == [{"flow": 7, "plain": True}]
    assert lines[-1]["acknowledged"][0][0] == 7 and lines[-1]["acknowledged"][0][1] >= 1000
