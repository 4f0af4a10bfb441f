"""The table of groups: none is left out because its flows did not finish."""

import pytest

pytest.importorskip("weftline._native")

import weftline
from weftline.measures import groups
from weftline.measures.lines import lines_of

SCENARIO = {
    "topology": {"kind": "star", "hosts": 8},
    "run": {"until": "100us"},
    "workload": [
        {"kind": "permutation", "size": "10KB", "group": "short", "hosts": "0-3"},
        {"kind": "permutation", "size": "100MB", "group": "long", "hosts": "4-7"},
    ],
}


@pytest.mark.filterwarnings("ignore::weftline.WeftlineWarning")
def test_a_group_of_which_no_flow_finished_has_a_row(tmp_path):
    run = weftline.run(SCENARIO, out=tmp_path / "run")
    table = groups.table(lines_of([run]))
    assert table is not None
    assert [row[:2] for row in table.rows] == [["long", "0, 4 unfinished"], ["short", "4"]]
    assert set(table.rows[0][2:]) == {"–"}
