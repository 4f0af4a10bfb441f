"""Spraying over go-back-N: a warning states why the tail is a thousand times too long."""

import json
from pathlib import Path

import weftline
from weftline.report import run_page

TRIAL = Path(__file__).parents[3] / "trials" / "spray_default.toml"


def check(scenario, changes=None):
    return weftline.Scenario(scenario, set=changes).check()


def test_spraying_over_go_back_n_is_warned_of_before_and_after_the_run(tmp_path):
    pair = [warning for warning in check(TRIAL)["warnings"] if "overtake" in warning]
    assert len(pair) == 1
    assert 'switch.balancer: "spray"' in pair[0]
    assert "go-back-N" in pair[0]

    run = weftline.run(TRIAL, out=tmp_path / "run")
    warnings = run.summary["warnings"]
    assert pair[0] in warnings
    again = [warning for warning in warnings if "of the data packets were retransmitted" in warning]
    assert len(again) == 1
    losses = run.summary["losses"]
    assert losses["retransmitted"] > 0.1 * losses["data_sent"]
    # No packet was lost: all of it is overtaking, and the sentence says that and no more.
    lost = ("data_dropped", "data_lost_on_dead_links", "data_lost_at_random", "data_stranded")
    assert not any(losses[key] for key in lost)
    assert "overtook each other" in again[0]
    assert losses["retransmitted"] == losses["retransmitted_needed"] + losses["retransmitted_spurious"]
    written = json.loads((run.out / "summary.json").read_text())
    assert written["warnings"] == warnings

    page = run_page.of_folders([str(run.out)], str(tmp_path / "page.html")).read_text()
    assert "of the data packets were retransmitted" in page


def test_the_advice_for_spraying_ends_the_warning_and_the_retransmissions(tmp_path):
    changes = {"host.resequencing.enabled": True}
    assert not [w for w in check(TRIAL, changes)["warnings"] if "overtake" in w]
    run = weftline.run(TRIAL, set=changes, out=tmp_path / "run")
    losses = run.summary["losses"]
    assert losses["retransmitted"] <= 0.01 * losses["data_sent"]
    assert not [w for w in run.summary["warnings"] if "retransmitted" in w]
