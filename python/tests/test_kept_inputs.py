"""Results never take the place of what their run reads."""

import json
import tomllib

import pytest
import texts

import weftline
from weftline import _native, integrity
from weftline.cli.main import main
from weftline.errors import InputError

pytestmark = pytest.mark.skipif(not hasattr(_native, "Table"), reason="the native module is not built")

SCENARIO = "# mine\n" + texts.star("small", hosts=4, sizes='size = "20KB"', load=0.5, duration="100us")


def replay(folder):
    return {
        "topology": {"kind": "star", "hosts": 4},
        "workload": [{"kind": "trace", "file": str(folder / "flows.parquet")}],
    }


def test_a_scenario_of_ones_own_is_not_replaced_by_the_stored_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    assert main(["run", "scenario.toml", "--out", ".", "--force", "--quiet"]) == 2
    assert "scenario.toml in it is what this run reads" in capsys.readouterr().err
    assert (tmp_path / "scenario.toml").read_text() == SCENARIO
    assert not (tmp_path / "run.lock").exists()


def test_a_trace_is_not_replaced_by_the_flows_of_its_replay(tmp_path):
    run = weftline.run(tomllib.loads(SCENARIO), out=tmp_path / "r")
    before = (run.out / "flows.parquet").read_bytes()
    with pytest.raises(InputError, match=r"flows\.parquet in it is what this run reads"):
        weftline.run(replay(run.out), out=tmp_path / "r", force=True)
    assert (run.out / "flows.parquet").read_bytes() == before
    again = weftline.run(replay(run.out), out=tmp_path / "again")
    assert again.summary["status"] == "done"


def test_a_stored_scenario_is_run_again_in_its_own_folder(tmp_path):
    run = weftline.run(tomllib.loads(SCENARIO), out=tmp_path / "r")
    again = weftline.run(run.out / "scenario.toml", seed=2, out=run.out, force=True)
    assert again.summary["seed"] == 2


def test_every_file_of_a_run_is_one_that_may_not_be_read(tmp_path):
    measure = {"queues": {"ports": "*"}, "queue_histogram": {"ports": "*"}, "pcap": "*"}
    workload = [{"kind": "collective", "bytes": "10KB"}]
    transport = {"controller": {"kind": "hpcc-pint"}}
    scenario = {"topology": {"kind": "star", "hosts": 4}, "workload": workload, "measure": measure}
    pint = {"transport": transport, "telemetry": {"record": 1.0}}
    run = weftline.run({**scenario, **pint}, out=tmp_path / "r")
    listed = json.loads((run.out / "digests.json").read_text())["files"]
    assert {*listed, "digests.json", "report.html"} == {*integrity.WRITTEN}


def test_a_link_to_a_trace_is_as_good_as_the_trace(tmp_path):
    run = weftline.run(tomllib.loads(SCENARIO), out=tmp_path / "r")
    before = (run.out / "flows.parquet").read_bytes()
    (tmp_path / "mine.parquet").symlink_to(run.out / "flows.parquet")
    through_link = replay(run.out)
    through_link["workload"][0]["file"] = str(tmp_path / "mine.parquet")
    with pytest.raises(InputError, match=r"flows\.parquet in it is what this run reads"):
        weftline.run(through_link, out=tmp_path / "r", force=True)
    assert (run.out / "flows.parquet").read_bytes() == before


def test_a_run_of_the_lab_does_not_replace_the_trace_that_it_replays(tmp_path):
    from weftline.lab import runs

    run = weftline.run(tomllib.loads(SCENARIO), out=tmp_path / "r")
    with pytest.raises(InputError, match=r"flows\.parquet in it is what this run reads"):
        runs.run(weftline.Scenario(replay(run.out)), str(run.out), force=True)
