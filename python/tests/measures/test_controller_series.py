"""Every series of `measure.controllers` is explained, and nothing is that no scheme records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import weftline
from weftline.cli import explain, glossary

RDMA = ["hpcc", "hpcc-pint", "dcqcn", "timely", "dctcp", "powertcp", "theta-powertcp", "none"]
WINDOWS = ["newreno", "cubic", "bic", "vegas", "bbr", "bbr3", "swift"]
TRANSPORTS: list[dict[str, Any]] = [
    *({"kind": "rdma", "controller": {"kind": kind}} for kind in [*RDMA, *WINDOWS]),
    {"kind": "rdma", "controller": {"kind": "dcqcn"}, "plb": "delay"},
    *({"kind": "tcp", "controller": {"kind": kind}} for kind in WINDOWS),
    {"kind": "tcp", "controller": {"kind": "dctcp"}, "ecn": "exact"},
    *({"kind": "mptcp", "controller": {"kind": kind}, "subflows": 2} for kind in ["lia", "olia", "balia"]),
    *({"kind": kind} for kind in ["phost", "pfabric", "fastpass", "ndp", "homa"]),
]


def recorded(transport: dict[str, Any], out: Path) -> set[str]:
    scenario = {
        "topology": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2},
        "host": {"packet_time": "100ns"} if transport.get("controller") == {"kind": "swift"} else {},
        "transport": transport,
        "workload": [{"kind": "flows", "flows": [{"src": 0, "dst": 2, "size": "200KB"}]}],
        "measure": {"controllers": {"flows": [0], "every": "1us"}},
    }
    weftline.run(scenario, threads=1, out=out, force=True)
    return set(pq.read_table(out / "series.parquet")["metric"].to_pylist())


@pytest.mark.filterwarnings("ignore::weftline.WeftlineWarning")
def test_every_series_of_controllers_is_explained_and_recorded_by_some_scheme(tmp_path: Path) -> None:
    found: set[str] = set()
    for number, transport in enumerate(TRANSPORTS):
        found |= recorded(transport, tmp_path / str(number))
    windows = {f"subflow{number}_cwnd_bytes" for number in range(32)}
    assert {"subflow0_alpha", "subflow1_alpha", "subflow1_between_losses_bytes", "subflow1_a"} < found
    of_laws = {name for name in found - windows if name.startswith("subflow") and name != "subflows"}
    shown = found - of_laws | {name.partition("_")[2] for name in of_laws}
    assert shown - {"rate_bps", "cwnd_bytes"} - glossary.OF_SCHEMES.keys() == set()
    assert glossary.OF_SCHEMES.keys() - shown - windows == set()
    for name in found:
        assert explain.entry(name)["text"]
