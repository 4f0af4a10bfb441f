"""Packets that a failed link lost or stranded are losses wherever losses are reported."""

from pathlib import Path

import weftline
from weftline.measures import losses, run_facts
from weftline.measures.metrics import METRICS, Flows
from weftline.report import run_page

TRIAL = Path(__file__).parents[3] / "trials" / "link_failure.toml"
TEMPLATE = Path(weftline.__file__).parent / "templates" / "link-failure" / "link-failure.toml"


def test_no_place_says_that_nothing_was_lost(tmp_path):
    run = weftline.run(TRIAL, out=tmp_path / "run")
    summary = run.summary
    assert summary["drops"] == 0
    lost, stranded = summary["packets_lost"], summary["packets_stranded"]
    assert lost > 0
    assert stranded > 0

    counted = summary["losses"]
    assert 0 < counted["data_lost_on_dead_links"] <= lost
    assert 0 < counted["data_stranded"] <= stranded
    assert counted["data_lost_at_random"] == summary["packets_lost_at_random"] == 0
    missing = counted["data_dropped"] + counted["data_lost_on_dead_links"] + counted["data_stranded"]
    assert counted["data_sent"] == counted["data_received"] + missing + counted["data_in_flight"]
    # Whatever the engine counts is a metric, of all groups and of one.
    for found in losses.declared():
        metric = METRICS[found["key"]]
        assert metric.read(run) == counted[found["key"]]
        assert metric.value(run, Flows(group="poisson")) == counted["by_group"]["poisson"][found["key"]]

    rows = dict(run_facts.facts(run))
    assert rows["lost on dead links"] == str(lost)
    assert rows["stranded"] == str(stranded)
    assert "packets lost" not in rows
    table = weftline.compare(run).table().text()
    assert "lost on dead links" in table
    assert "stranded" in table

    page = run_page.of_folders([str(run.out)], str(tmp_path / "page.html")).read_text()
    assert "o dropped packets" not in page
    assert "o lost packets" not in page
    assert f"{lost} lost on dead links" in page
    assert f"{stranded} stranded" in page

    columns = run.flows.columns
    assert {"packets_retransmitted", "timeouts"} <= set(columns)


def test_the_trial_is_the_template():
    def kept(path):
        return [line for line in path.read_text().splitlines() if line and not line.startswith("#")]

    assert kept(TRIAL) == kept(TEMPLATE)


def test_a_run_without_any_loss_says_so(tmp_path):
    scenario = {
        "topology": {"kind": "star", "hosts": 4},
        "workload": [{"kind": "permutation", "size": "10KB"}],
    }
    run = weftline.run(scenario, out=tmp_path / "run")
    assert dict(run_facts.facts(run))["packets lost"] == "none"
    page = run_page.of_folders([str(run.out)], str(tmp_path / "page.html")).read_text()
    assert "o lost packets" in page
    assert "Lost packets</b>" not in page and "Warning</b>" not in page
