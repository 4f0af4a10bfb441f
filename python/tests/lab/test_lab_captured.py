"""`measure.pcap` in the lab: frames of real packets by link, as the simulator's file has them."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from tests.lab.conftest import dumbbell_text
from tests.lab.test_lab import lab, nothing_left
from weftline import Scenario
from weftline.lab import captured, plan
from weftline.packets import captures

_ = nothing_left
SIZE = 200_000
TCP_HEADERS = 14 + 20 + 32
"""Ethernet, IPv4, TCP with time stamps."""


def scenario(tmp_path: Path, links: str) -> Path:
    """Two flows over a dumbbell, and the links that are captured."""
    file = tmp_path / "captured.toml"
    text = dumbbell_text("cubic", size=f"{SIZE // 1000}KB", limit="100KB")
    file.write_text(text.replace("[measure]", f"[measure]\npcap = {links}\n"))
    return file


@pytest.mark.usefixtures("machine", "nothing_left")
@pytest.mark.parametrize("ports", ["kernel", "engine"])
def test_what_passes_a_link_passes_the_next_one_later(ports: str, tmp_path: Path) -> None:
    file = scenario(tmp_path, '["host*->s0", "s0->s1", "s1->host*"]')
    done = lab("run", file, "--ports", ports, "--out", tmp_path / "lab", "--json")
    out, err = done.communicate(timeout=60)
    assert done.returncode == 0, out + err
    summary = json.loads((tmp_path / "lab/summary.json").read_text())
    assert summary["capture"]["lost"] == 0 and summary["capture"]["stopped_ns"] is None
    times: dict[str, list[int]] = defaultdict(list)
    payload: dict[str, int] = defaultdict(int)
    for packet in captures.read(tmp_path / "lab/capture.pcapng"):
        times[packet.interface].append(packet.time_ns)
        payload[packet.interface] += max(packet.length - TCP_HEADERS, 0)
    assert sum(map(len, times.values())) == summary["capture"]["packets"]
    before, shared, after = (
        sorted(time for link, found in times.items() if link in links for time in found)
        for links in (["host0->s0", "host1->s0"], ["s0->s1"], ["s1->host2", "s1->host3"])
    )
    # Of what is sent, ports drop some.
    assert len(before) >= len(shared) == len(after)
    assert all(payload[f"s1->host{host}"] >= SIZE for host in (2, 3))
    # In order, the bottleneck's link and delay later.
    assert all(late >= early for early, late in zip(shared, after, strict=True))
    assert times["s0->s1"] == sorted(times["s0->s1"])


def test_of_an_engines_port_to_its_host_no_namespace_sees_a_frame(tmp_path: Path) -> None:
    asked = Scenario(scenario(tmp_path, '["s0->s1", "s1->host2", "host0->s0"]'))
    made = plan.make(asked, ["cubic"], [], engine=True)
    found = captured.asked(asked, made)
    assert found is not None and found.unseen == [] and set(found.tasks) == {"host0", "host2", "s1"}
    made.engine_hosts = True
    found = captured.asked(asked, made)
    assert found is not None and found.unseen == ["s1->host2"] and set(found.tasks) == {"s0", "s1"}
    assert any("s1->host2 lead from ports of the engine" in text for text in found.differs())
    plain = scenario(tmp_path, "").read_text().replace("pcap = ", "")
    (tmp_path / "plain.toml").write_text(plain)
    assert captured.asked(Scenario(tmp_path / "plain.toml"), made) is None
