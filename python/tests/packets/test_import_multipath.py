"""What `weftline import` makes of multipath TCP."""

from __future__ import annotations

import pytest

import weftline
from weftline import _native
from weftline.cli.main import main

built = pytest.mark.skipif(
    not getattr(_native, "__file__", None), reason="the native module is not built (maturin develop)"
)


@built
@pytest.mark.parametrize(("kind", "joined"), [("tcp", 0), ("mptcp", 2)])
def test_a_warning_counts_the_subflows_that_are_flows_of_their_own(kind, joined, tmp_path, capsys):
    flows = [{"src": 0, "dst": 1, "size": "300KB"}]
    scenario = {
        "topology": {"kind": "star", "hosts": 2, "host_link": {"rate": "10Gbps", "delay": "1us"}},
        "transport": {"kind": kind} | ({"subflows": 3} if kind == "mptcp" else {}),
        "workload": [{"kind": "flows", "flows": flows}],
        "measure": {"pcap": "*"},
    }
    run = weftline.run(scenario, out=tmp_path / "run")
    out = tmp_path / "flows.csv"
    assert main(["import", str(run.out / "capture.pcapng"), "--out", str(out)]) == 0
    warned = capsys.readouterr().err
    assert (f"warning: {joined} subflows joined connections of multipath TCP" in warned) == (joined > 0)
    assert ("subflows" in warned) == (joined > 0)
    assert len(out.read_text().splitlines()) == 2 + joined
