"""Links of the lab: the time that packets take on them, where the kernel has the ports."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from tests.lab.test_lab import KERNEL, nothing_left
from weftline import Scenario
from weftline.lab import engine_hosts, plan, runs

_ = nothing_left
SHORT = """
name = "short"
seed = 1
[topology]
kind = "dumbbell"
left = 1
right = 1
host_link = { rate = "2Mbps", delay = "2ms" }
bottleneck_link = { rate = "2Mbps", delay = "2ms" }
[switch]
queue = { kind = "fifo", limit = "60KB" }
[transport]
kind = "tcp"
[[workload]]
kind = "flows"
flows = [
    { src = 0, dst = 1, size = "1400B", start = "0ms" },
    { src = 0, dst = 1, size = "2800B", start = "200ms" },
    { src = 0, dst = 1, size = "10KB", start = "400ms" },
]
"""
TIMES = {"rate_bps": 2_000_000, "burst_bytes": 2 * 1514}


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """Short flows over slow links, one after the other."""
    file = tmp_path / "short.toml"
    file.write_text(SHORT)
    return file


def test_the_links_of_the_kernels_ports_have_a_rate_and_a_burst(short: Path) -> None:
    scenario = Scenario(short)
    kernel = json.loads(plan.make(scenario, KERNEL, []).port_task)["directions"]
    assert len(kernel) == 6 and all(TIMES.items() <= one.items() for one in kernel)
    assert {one["delay_ns"] for one in kernel} == {2_000_000}
    engine = json.loads(plan.make(scenario, KERNEL, [], engine=True).port_task)["directions"]
    # Hosts keep the kernel's ports.
    assert {one["entity"]: one.get("rate_bps") for one in engine} == {
        **{f"host{n}.p0": 2_000_000 for n in (0, 1)},
        **{f"s{n}.p{port}": None for n in (0, 1) for port in (0, 1)},
    }
    hosts = plan.make(scenario, KERNEL, [], hosts=True)
    for link in json.loads(engine_hosts.task(scenario, hosts, {}))["links"]:
        assert link["rate_bps"] == 2_000_000 and "delayed" not in link


def test_links_on_which_a_packet_takes_no_time_are_named_with_the_time(short: Path) -> None:
    scenario = Scenario(short, set={"topology.bottleneck_link.delay": "0.1ns"})
    made = plan.make(scenario, KERNEL, [])
    assert any("1 links without a delay" in text and "up to 6.06 ms a link" in text for text in made.differs)
    assert not any("without a delay" in text for text in plan.make(Scenario(short), KERNEL, []).differs)


def test_a_limit_that_each_band_has_is_named_with_the_sum(short: Path) -> None:
    scenario = runs.scenario_of(str(short), ['switch.queue={ kind = "fifo", packets = 60 }'], None)
    for made, expected in (
        (plan.make(scenario, KERNEL, [], hosts=True), True),
        (plan.make(scenario, KERNEL, [], hosts=True, engine=True), False),
        (plan.make(scenario, KERNEL, []), False),
        (plan.make(Scenario(short), KERNEL, [], hosts=True), False),
    ):
        assert any("up to 180 packets wait" in text for text in made.differs) is expected


@pytest.mark.parametrize("whose", [{}, {"ports": "engine"}, {"hosts": "engine"}], ids=str)
@pytest.mark.usefixtures("machine", "nothing_left")
def test_no_packet_is_faster_than_its_length_over_the_rate(
    whose: dict[str, str], short: Path, tmp_path: Path
) -> None:
    scenario = runs.scenario_of(str(short), [], None)
    simulated = scenario.run(out=tmp_path / "simulated")
    (real,) = runs.run(scenario, str(tmp_path / "lab"), **whose)  # type: ignore[arg-type]
    expected, found = (
        {row["flow_id"]: row for row in pa.table(one.flows).to_pylist()} for one in (simulated, real)
    )
    for flow, row in found.items():
        assert row["slowdown"] >= 1
        assert row["fct_ns"] > 0.98 * expected[flow]["fct_ns"]
