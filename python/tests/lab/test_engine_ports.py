"""Ports of the engine in the lab: runs, what they count, what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import weftline
from weftline import _native
from weftline.errors import InputError
from weftline.lab import engine_ports, goodput, kernel_hosts, plan, runs
from weftline.lab.experiment import FILE, Experiment

pytestmark = pytest.mark.skipif(
    not getattr(_native, "__file__", None), reason="the native module is not built (maturin develop)"
)
KERNEL = ["reno", "cubic", "bbr"]
CEBINAE = 'switch.queue={ kind = "cebinae", packets = 60, round = "67108864ns" }'


def test_the_engine_has_the_ports_where_the_kernel_has_not(dumbbell: Path) -> None:
    for change, expected in [
        ("seed=1", False),
        ('switch.queue={ kind = "fq-codel" }', True),
        ("switch.ecn.enabled=true", True),
        ("switch.queue.packets=20", True),
        ('switch.queue={ kind = "fifo", packets = 20 }', False),
        ("switch.queue.nic_packets=1", True),
    ]:
        values = runs.scenario_of(str(dumbbell), [change], None).values
        assert engine_ports.wanted(values, "auto") is expected
        assert engine_ports.wanted(values, "engine") and not engine_ports.wanted(values, "kernel")


def test_a_plan_names_every_direction_and_every_host(dumbbell: Path) -> None:
    scenario = runs.scenario_of(str(dumbbell), [CEBINAE], None)
    assert not plan.problems(scenario.values, KERNEL, engine=True)
    made = plan.make(scenario, KERNEL, [], engine=True)
    task = json.loads(made.port_task)
    assert len(task["directions"]) == 2 * len(made.links) == 10
    assert len(task["hosts"]) == 4 and len(made.wires) == 5
    bottleneck = next(one for one in task["directions"] if one["entity"] == "s0.p2")
    assert made.nodes[bottleneck["node"]].name == "s0" and bottleneck["local"] == 2


def test_queues_of_hosts_do_not_follow_from_those_of_switches(dumbbell: Path) -> None:
    for change in ("seed=1", "switch.queue.nic_packets=1", 'switch.queue={ kind = "fifo", packets = 20 }'):
        made = plan.make(runs.scenario_of(str(dumbbell), [change], None), KERNEL, [], engine=True)
        hosts = [end.port for end in made.ends() if not end.port.is_switch]
        assert {(port.queue_bytes, port.queue_packets) for port in hosts} == {(kernel_hosts.NIC_QUEUE, 0)}
        assert any("queues of hosts" in text for text in made.differs)


@pytest.mark.parametrize("queue", ['{ kind = "fifo" }', '{ kind = "pfabric" }'])
def test_a_discipline_without_a_buffer_of_its_own_is_refused(queue: str, dumbbell: Path) -> None:
    scenario = runs.scenario_of(str(dumbbell), [f"switch.queue={queue}"], None)
    with pytest.raises(InputError, match="limit of its own"):
        plan.make(scenario, KERNEL, [], engine=True)


@pytest.mark.parametrize(("policy", "fits"), [("hash", True), ("round-robin", False), ("all", False)])
def test_hosts_of_the_kernel_have_one_way_to_choose_a_nic(policy: str, fits: bool, tmp_path: Path) -> None:
    file = tmp_path / "planes.toml"
    flow = '{ src = 0, dst = 2, size = "1MB" }'
    file.write_text(
        f"""
topology = {{ kind = "hpn", segments = 1, nodes_per_segment = 2, gpus = 2 }}
host.nic_policy = "{policy}"
transport.kind = "tcp"
switch.queue = {{ kind = "fifo", limit = "100KB" }}
workload = [{{ kind = "flows", flows = [{flow}] }}]
"""
    )
    values = runs.scenario_of(str(file), [], None).values
    found = plan.problems(values, KERNEL)
    assert found == [] if fits else "host.nic_policy" in found[0]
    assert plan.problems(values, KERNEL, hosts=True) == []


def test_each_group_has_one_controller_and_settings_are_those_of_all(dumbbell: Path) -> None:
    flow = 'flows = [{ src = 0, dst = 2, size = "1MB" }], kind = "flows"'
    reno = 'transport = { controller = { kind = "newreno" } }'

    def found(second: str) -> list[str]:
        workload = f"workload=[{{ {flow}, group = 'a', {reno} }}, {{ {flow}, {second} }}]"
        return plan.problems(runs.scenario_of(str(dumbbell), [workload], None).values, KERNEL)

    assert not found("group = 'b'")
    assert any("name their groups apart" in text for text in found("group = 'a'"))
    other = "group = 'b', transport = { rto_min = '300ms' }"
    assert any("workload.1.transport.rto_min" in text for text in found(other))


def test_goodput_is_of_the_intervals_of_the_simulator_and_holds_all_bytes_of_a_flow() -> None:
    second = 10**9
    # One flow has ended, one has not, one is known from its start alone.
    flows = {
        0: {"start_ns": 7 * second, "last": (9 * second + second // 2, 9000)},
        1: {"start_ns": 8 * second, "last": None},
        2: {"start_ns": 8 * second + second // 2},
    }
    looks = [(3 * second, 1, 3000), (second, 0, 1000), (2 * second, 0, 5000), (3 * second, 0, 9999)]
    seen = {"zero_ns": 7 * second, "every_ns": second}
    rows = list(goodput.rows(flows, looks, **seen, end_ns=2.5 * second))
    by_flow = {
        name: [(at / second, value) for at, one, _, value in rows if one == name] for _, name, _, _ in rows
    }
    assert by_flow == {
        "flow0": [(1.0, 8000.0), (2.0, 32000.0), (2.5, 64000.0)],
        "flow1": [(1.0, 0.0), (2.0, 12000.0), (2.5, 12000.0)],
        "flow2": [(1.0, 0.0), (2.0, 0.0), (2.5, 0.0)],
    }


def test_the_experiment_on_cebinae_can_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Path(__file__).parents[3] / "experiments/cebinae/lab"
    found = Experiment.read(place / FILE, [])
    assert [(point.row, point.variant) for point in found.points[:2]] == [("1", "FIFO"), ("1", "Cebinae")]
    assert len(found.points) == 8
    for point in found.points:
        scenario = weftline.Scenario(place / "scenario.toml", set=point.changes)
        assert not plan.problems(scenario.values, KERNEL, engine=True)
        plan.make(scenario, KERNEL, [], engine=True)
    with pytest.raises(InputError, match="has no row 2: it has 1, 4, 5, 6"):
        Experiment.read(place / FILE, ["2"])


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize("queue", [CEBINAE, 'switch.queue={ kind = "fq-codel" }'])
def test_every_frame_of_a_run_is_accounted_for(queue: str, dumbbell: Path, tmp_path: Path) -> None:
    scenario = runs.scenario_of(str(dumbbell), [queue], None)
    (run,) = runs.run(scenario, str(tmp_path / "lab"))
    ports = run.summary["lab"]["engine_ports"]
    assert ports["conserved"] and not ports["not_conserved"]
    assert ports["matched"] == run.summary["lab"]["relay"]["frames"]
    own = ports["ports"]["s0.p2"]
    assert own["received"] == own["sent"] + own["dropped"] + own["queued"] and own["sent"] >= 4144
    assert run.summary["drops"] >= own["dropped"]
    # 6 MB at 20 Mb/s take 2.5 s on the wire; the port may not be faster.
    assert run.summary["end_ns"] > 2.4e9
    assert max(value for _, value in run.over_time("queue_bytes")["s0.p2"]) > 3000
