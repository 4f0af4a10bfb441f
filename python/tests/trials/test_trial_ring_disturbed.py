"""A ring of hosts comes back to its period after a flow has disturbed it."""

import itertools
import os
import tomllib
from pathlib import Path

import pytest

import weftline

TRIAL = Path(__file__).parents[3] / "trials" / "ring_disturbed.toml"
FULL = bool(os.environ.get("WEFTLINE_TRIALS"))
# Operations after which a disturbance must be over.
RECOVERY = 4


def scenario(**changes):
    """The trial; three tenths as large, and shorter, unless the full trial is requested."""
    text = TRIAL.read_text()
    if not FULL:
        for of, to in [
            ("16MB", "4800KB"),
            ("12", "7"),
            ("2MB", "600KB"),
            ("1ms", "300us"),
            ("200us", "60us"),
        ]:
            text = text.replace(f'"{of}"', f'"{to}"').replace(f"repeat = {of}", f"repeat = {to}")
    table = tomllib.loads(text)
    table["transport"].update(changes.pop("transport", {}))
    table["workload"][0].update(changes.pop("collective", {}))
    table.update(changes)
    return table


def periods(table, tmp_path, name):
    run = weftline.run(table, out=tmp_path / name)
    ends = [job["finish_ns"] for job in run.summary["jobs"]]
    assert len(ends) == table["workload"][0]["repeat"]
    return [later - earlier for earlier, later in itertools.pairwise(ends)]


def recovers(table, tmp_path, within=0.01):
    alone = periods(table | {"workload": table["workload"][:1]}, tmp_path, "alone")
    poked = periods(table, tmp_path, "poked")
    # The first period ends an operation after the one that is disturbed.
    late = [abs(period / alone[-1] - 1) for period in poked[RECOVERY:]]
    assert late, "operations after the recovery"
    assert max(late) < within, (alone, poked)
    return alone


def test_a_ring_is_back_at_its_period_four_operations_after_a_disturbance(tmp_path):
    alone = recovers(scenario(), tmp_path)
    if FULL:
        # 30 steps of 1000 packets of 1048 B, and 200 us of computation.
        assert alone[-1] == pytest.approx(2.918e6, rel=1e-3)
    assert max(alone) - min(alone) < 1e-6 * alone[0]


LEAF_SPINE = {"kind": "leaf-spine", "leaves": 4, "spines": 4, "hosts_per_leaf": 4}
POKES = [
    {"src": 3, "dst": 9, "size": "2MB", "start": "1ms"},
    {"src": 5, "dst": 2, "size": "1MB", "start": "1.3ms"},
    {"src": 12, "dst": 13, "size": "500KB", "start": "2ms"},
]


@pytest.mark.skipif(not FULL, reason="WEFTLINE_TRIALS is not set")
@pytest.mark.parametrize("controller", ["none", "dcqcn", "hpcc", "dctcp", "timely"])
@pytest.mark.parametrize("topology", [{"kind": "star", "hosts": 16}, LEAF_SPINE], ids=lambda t: t["kind"])
def test_it_recovers_under_controllers_on_star_and_leaf_spine(controller, topology, tmp_path):
    table = scenario(transport={"controller": {"kind": controller}}, topology=topology)
    table["workload"][1]["flows"] = POKES
    recovers(table, tmp_path)


@pytest.mark.skipif(not FULL, reason="WEFTLINE_TRIALS is not set")
@pytest.mark.parametrize("kind", ["tcp", "phost", "pfabric", "fastpass"])
def test_it_recovers_under_other_transports(kind, tmp_path):
    table = scenario()
    table["transport"] = {"kind": kind}
    recovers(table, tmp_path)


@pytest.mark.skipif(not FULL, reason="WEFTLINE_TRIALS is not set")
@pytest.mark.parametrize("operation", ["tree-all-reduce", "all-to-all"])
@pytest.mark.parametrize("hosts", [8, 32])
def test_other_operations_and_sizes_recover_as_well(operation, hosts, tmp_path):
    table = scenario(collective={"operation": operation, "hosts": f"0-{hosts - 1}", "repeat": 7})
    table["topology"]["hosts"] = hosts
    table["workload"][1]["flows"] = [{"src": 3, "dst": 6, "size": "2MB", "start": "1ms"}]
    recovers(table, tmp_path)
