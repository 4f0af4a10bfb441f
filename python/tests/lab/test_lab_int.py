"""INT and ECN of real switches: HPCC, PowerTCP and DCTCP in hosts of the engine."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.lab.test_lab import nothing_left
from weftline import InputError, Scenario
from weftline.lab import ecn_switches, engine_ports, int_switches, plan, runs

_ = nothing_left
KERNEL = ["reno", "cubic"]
STAR = """
name = "star"
seed = 1
topology = { kind = "star", hosts = 4, host_link = { rate = "20Mbps", delay = "4ms" } }
telemetry = { kind = "auto" }
[switch]
queue = { kind = "fifo", limit = "300KB" }
pfc = { enabled = false }
ecn = [{ rate = "20Mbps", kmin = "30KB", kmax = "30KB", pmax = 1, at = "arrival" }]
[transport]
kind = "rdma"
controller = { kind = "hpcc", rai = "50kbps", min_rate = "50kbps" }
rto = "1s"
nack_interval = "250ms"
[[workload]]
kind = "flows"
flows = [
    { src = 1, dst = 0, size = "300KB", start = "0ms" },
    { src = 2, dst = 0, size = "300KB", start = "0ms" },
    { src = 3, dst = 0, size = "300KB", start = "100ms" },
]
[measure]
queues = { every = "5ms" }
"""


@pytest.fixture
def star(tmp_path: Path) -> Path:
    file = tmp_path / "star.toml"
    file.write_text(STAR, encoding="utf-8")
    return file


@pytest.fixture
def objects() -> None:
    """Skip where the programs were not built."""
    wrong = [*int_switches.problems(engine=False, hosts=True), *ecn_switches.problems()]
    if wrong:
        pytest.skip("; ".join(wrong))


def test_marks_need_ports_of_the_engine_only_where_hosts_are_the_kernels() -> None:
    values = {"switch": {"queue": {"kind": "fifo"}, "ecn": [{"kmin": "30KB"}]}}
    assert engine_ports.wanted(values, "auto") and not engine_ports.wanted(values, "auto", hosts=True)
    assert not engine_ports.wanted(values, "kernel")
    assert ecn_switches.wanted(values)
    assert not ecn_switches.wanted({"switch": {"ecn": {"enabled": False}}})


def test_who_cannot_read_int_or_write_it_is_named(star: Path) -> None:
    values = Scenario(star).values
    assert int_switches.wanted(values)
    # Ports of the engine write it without a program.
    assert plan.problems(values, KERNEL, engine=True, hosts=True) == []
    found = "\n".join(int_switches.problems(engine=False, hosts=False))
    assert "the kernel's transports do not read it" in found


@pytest.mark.usefixtures("machine")
def test_a_packet_that_grows_beyond_the_links_is_refused(star: Path) -> None:
    scenario = runs.scenario_of(str(star), ["telemetry.max_hops=12", "transport.mtu=1200B"], None)
    with pytest.raises(InputError, match="the links carry 1338"):
        # Ports of the engine need no program.
        runs.planned(scenario, "engine")


@pytest.mark.usefixtures("machine", "objects", "nothing_left")
@pytest.mark.parametrize(
    ("controller", "int_is_carried"),
    [
        ('{ kind = "hpcc", rai = "50kbps", min_rate = "50kbps" }', True),
        ('{ kind = "powertcp", additive = "200kbps", min_rate = "50kbps" }', True),
        ('{ kind = "dctcp", min_rate = "50kbps" }', False),
    ],
)
def test_flows_are_steered_by_what_real_switches_write(
    star: Path, tmp_path: Path, controller: str, int_is_carried: bool
) -> None:
    scenario = runs.scenario_of(str(star), [f"transport.controller={controller}"], None)
    simulated = scenario.run(out=tmp_path / "simulated")
    (real,) = runs.run(scenario, str(tmp_path / "lab"))
    assert real.summary["status"] == "done" and real.summary["drops"] == 0
    lab = real.summary["lab"]
    assert (lab["engine_hosts"]["foreign"], lab["engine_hosts"]["refused"]) == (0, 0)
    assert ("int" in lab) is int_is_carried
    if int_is_carried:
        packets = sum(row["packets_sent"] for row in pa.table(real.flows).to_pylist())
        # One switch, and a value in every data packet.
        assert lab["int"]["transit"] == packets
        assert not any(lab["int"][name] for name in int_switches.UNWRITTEN)
        assert not [text for text in real.summary["warnings"] if text.startswith("INT")]
    else:
        assert lab["ecn"]["marked"] > 0 and real.summary["ecn_marks"] == lab["ecn"]["marked"]
    # Senders that read nothing would keep two thirds of the bandwidth-delay products of all in the queue.
    for run in (simulated, real):
        rows = [row for row in pa.table(run.series).to_pylist() if row["entity"] == "s0.p0"]
        late = sorted(row["value"] for row in rows if row["time_ns"] > 2e8)
        assert late and late[len(late) // 2] < 45_000
