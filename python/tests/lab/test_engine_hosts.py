"""Hosts of the engine: transports that no kernel has, on real packets between switches of the kernel."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from tests.lab.test_lab import nothing_left
from weftline import InputError, Run, Scenario
from weftline.lab import engine_hosts, plan, runs

_ = nothing_left
STAR = """
name = "star"
seed = 1
topology = { kind = "star", hosts = 4, host_link = { rate = "20Mbps", delay = "2ms" } }
switch = { queue = { kind = "fifo", packets = 100 }, pfc = { enabled = false }, ecn = { enabled = false } }
transport = { kind = "phost" }
[[workload]]
kind = "flows"
flows = [
    { src = 1, dst = 0, size = "60KB", start = "0ms" },
    { src = 2, dst = 0, size = "40KB", start = "5ms" },
    { src = 0, dst = 3, size = "50KB", start = "7ms" },
]
"""


@pytest.fixture
def star(tmp_path: Path) -> Path:
    file = tmp_path / "star.toml"
    file.write_text(STAR, encoding="utf-8")
    return file


def test_transports_that_no_kernel_has_are_the_engines() -> None:
    for own, expected in (("tcp", False), ("mptcp", False), ("phost", True), ("rdma", True)):
        values = {"transport": {"kind": own}}
        assert engine_hosts.wanted(values, "auto") is expected
        assert engine_hosts.wanted(values, "engine") and not engine_hosts.wanted(values, "kernel")
    mixed = {"transport": {"kind": "tcp"}, "workload": [{"transport": {"kind": "homa"}}]}
    assert engine_hosts.wanted(mixed, "auto")


def test_hosts_have_no_namespaces_and_their_links_lead_to_one_process(star: Path) -> None:
    scenario = Scenario(star)
    made = plan.make(scenario, ["reno"], [], hosts=True)
    assert [node.name for node in made.own_nodes] == ["s0"]
    assert (len(made.host_links), made.wires, made.direct) == (4, [], [])
    assert {end.node for end in made.ends()} == {"s0"}
    macs = {("s0", f"p{port}"): f"02:00:00:00:00:0{port}" for port in range(4)}
    task = json.loads(engine_hosts.task(scenario, made, macs))
    assert len(task["addresses"]) == 4
    assert [(link["interface"], link["local"], link["to"][-1]) for link in task["links"]] == [
        (f"h{port}", port, str(port)) for port in range(4)
    ]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ('transport={ kind = "rdma", controller = { kind = "hpcc-pint" } }', 'telemetry.kind = "pint"'),
        ('switch.balancer={ kind = "drill" }', 'has "ecmp", "label"'),
        ('switch.queue={ kind = "pfabric" }', "share no buffer"),
        ("switch.pfc.enabled=true", "cannot pause each other"),
        ('transport={ kind = "ndp", mtu = "9000B" }', "carry 1600"),
    ],
)
def test_what_the_hosts_cannot_do_is_an_error_before_anything_is_changed(
    star: Path, change: str, expected: str
) -> None:
    with pytest.raises(InputError, match=expected):
        runs.planned(runs.scenario_of(str(star), [change], None))


@pytest.mark.parametrize(
    "changes",
    [
        ['switch.queue={ kind = "fq-codel" }'],
        ['transport={ kind = "rdma", controller = { kind = "hpcc", rai = "50kbps", min_rate = "50kbps" } }'],
    ],
)
@pytest.mark.usefixtures("machine", "nothing_left")
def test_ports_of_the_engine_take_packets_of_its_hosts_for_what_they_are(
    star: Path, tmp_path: Path, changes: list[str]
) -> None:
    scenario = runs.scenario_of(str(star), changes, None)
    simulated = scenario.run(out=tmp_path / "simulated")
    (real,) = runs.run(scenario, str(tmp_path / "lab"), ports="engine")
    lab = real.summary["lab"]
    assert real.summary["status"] == "done" and lab["engine_ports"]["conserved"]
    assert (lab["engine_hosts"]["foreign"], lab["engine_hosts"]["refused"]) == (0, 0)
    both = [pa.table(run.flows).to_pylist() for run in (simulated, real)]
    assert len(both[0]) == len(both[1]) == 3
    # Bytes are the simulated ones, headers and acknowledgements included.
    sent = lab["engine_ports"]["ports"]["s0.p3"]
    packets = next(row["packets_sent"] for row in both[1] if row["dst"] == 3)
    assert sent["sent"] >= packets
    if "rdma" in changes[0]:
        assert packets * 1090 <= sent["bytes_sent"] <= (packets + 200) * 1090


@pytest.mark.parametrize(
    ("changes", "last"),
    # A sender tells the arbiter of Fastpass that it is done, which no flow waits for.
    [([], 0), (['transport={ kind = "fastpass" }', "topology.hosts=5"], 1)],
    ids=["phost", "fastpass"],
)
@pytest.mark.usefixtures("machine", "nothing_left")
def test_they_send_on_real_packets_what_they_send_in_a_simulation(
    star: Path, tmp_path: Path, changes: list[str], last: int
) -> None:
    scenario = runs.scenario_of(str(star), changes, None)
    simulated = scenario.run(out=tmp_path / "simulated")
    (real,) = runs.run(scenario, str(tmp_path / "lab"))
    assert isinstance(real, Run) and real.summary["status"] == "done"
    hosts = real.summary["lab"]["engine_hosts"]
    assert (hosts["foreign"], hosts["refused"], hosts["missed"]) == (0, 0, 0)
    assert hosts["on_links"] <= last
    assert hosts["sent"] >= hosts["received"] > 100
    # What hosts put on their links counts as in the simulator.
    ports = real.summary["lab"]["ports"]
    of_hosts = [one for name, one in ports.items() if name.startswith("host")]
    assert sum(one["packets_sent"] for one in of_hosts) == hosts["sent"]
    assert real.summary["packet_hops"] == sum(one["packets_sent"] for one in ports.values())
    assert real.summary["bytes_on_wire"] > sum(one["bytes_sent"] for one in of_hosts) > 150_000
    both = [{row["flow_id"]: row for row in pa.table(run.flows).to_pylist()} for run in (simulated, real)]
    assert both[0].keys() == both[1].keys() and len(both[0]) == 3
    for flow, one in both[0].items():
        other = both[1][flow]
        assert other["packets_sent"] >= one["packets_sent"] > 0
        assert abs(other["start_ns"] - one["start_ns"]) <= 1
        # Nothing on real links is faster than the simulated ones, by more than the burst of a port.
        assert other["fct_ns"] > 0.95 * one["ideal_fct_ns"]


@pytest.mark.usefixtures("machine", "nothing_left")
def test_a_run_warns_of_what_check_warns_of(
    star: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from weftline.cli.main import main

    warned = Scenario(star, set={"scale.by": 2}).check()["warnings"]
    assert warned
    assert main(["lab", "run", str(star), "--set", "scale.by=2", "--out", str(tmp_path / "lab")]) == 0
    assert Run.read(tmp_path / "lab").warnings[: len(warned)] == warned
    text = capsys.readouterr().err
    assert all(text.count(one) == 1 for one in warned)


@pytest.mark.usefixtures("machine", "nothing_left")
def test_up_names_the_switches_alone_and_says_why(star: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from weftline.cli.main import main

    try:
        assert main(["lab", "up", str(star)]) == 0
    finally:
        main(["lab", "down"])
    printed = capsys.readouterr()
    assert "hosts of the engine exist during" in printed.err
    assert "-s0  switch" in printed.out and "host0" not in printed.out
