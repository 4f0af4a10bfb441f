"""A controller that steers by marks together with a transport whose switches mark nothing."""

import re
import tomllib
from pathlib import Path

import pytest

import weftline

TRIAL = Path(__file__).parents[3] / "trials" / "phost_beside_dctcp.toml"


def check(scenario, changes=None):
    return weftline.Scenario(scenario, set=changes).check()


def of_marks(found):
    return [warning for warning in found["warnings"] if warning.startswith("switch.ecn")]


@pytest.mark.parametrize("first", ["phost", "pfabric", "fastpass"])
@pytest.mark.parametrize(
    "second",
    [
        {"kind": "tcp", "controller": {"kind": "dctcp"}},
        {"kind": "rdma", "controller": {"kind": "dcqcn"}, "recovery": "selective-repeat"},
    ],
)
def test_a_controller_without_marks_is_warned_of_and_the_advice_makes_switches_mark(first, second):
    scenario = tomllib.loads(TRIAL.read_text())
    scenario["transport"]["kind"] = first
    scenario["workload"][1]["transport"] = second
    (output,) = of_marks(check(scenario))
    assert second["controller"]["kind"] in output
    assert first in output
    advice = re.search(r"Set switch\.ecn = ([\[{].*[\]}])", output)[1]
    mended = {**scenario, "switch": tomllib.loads(f"ecn = {advice}")}
    assert of_marks(check(mended)) == []


def test_dctcp_with_phost_is_marked_once_the_advice_is_followed(tmp_path):
    output = of_marks(check(TRIAL))
    advice = re.search(r"Set switch\.ecn = ([\[{].*[\]}])", output[0])[1]
    without = weftline.run(TRIAL, out=tmp_path / "without")
    assert without.summary["ecn_marks"] == 0
    assert output[0] in without.summary["warnings"]
    scenario = tomllib.loads(TRIAL.read_text())
    scenario["switch"] = tomllib.loads(f"ecn = {advice}")
    marked = weftline.run(scenario, out=tmp_path / "with")
    assert marked.summary["ecn_marks"] > 0
    assert not of_marks(marked.summary)
