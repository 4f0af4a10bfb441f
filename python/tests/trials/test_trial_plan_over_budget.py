"""Queries that do not fit a digest: what the refusal advises helps, and can be entered as it is printed."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from weftline import pint
from weftline.cli import main
from weftline.scenarios import to_toml

HEAD = "bits = 8\nhops = { expected = 3, maximal = 5 }\n[[query]]\n"
QUERIES = Path(__file__).parents[3] / "trials" / "plan_over_budget.toml"


def refusal(path, capsys) -> str:
    assert main.main(["pint", "plan", str(path)]) == 2
    return capsys.readouterr().err


def entered(line: str) -> dict:
    """Return the file of queries with one line of advice in it."""
    file = tomllib.loads(QUERIES.read_text())
    queries = {query["name"]: query for query in file["query"]}
    if found := re.fullmatch(r"bits = (\d+)", line):
        file["bits"] = int(found[1])
    elif found := re.fullmatch(r"without the query (\S+)", line):
        file["query"].remove(queries[found[1]])
    elif found := re.fullmatch(r"all frequencies times [\d.]+: (.*)", line):
        for part in found[1].split(", "):
            name, frequency = part.split()
            queries[name]["frequency"] = float(frequency)
    else:
        found = re.fullmatch(r"(\S+): frequency ([\d.]+) instead of [\d.]+", line)
        assert found, line
        queries[found[1]]["frequency"] = float(found[2])
    return file


def test_every_piece_of_advice_gives_a_plan_when_it_is_entered(tmp_path, capsys):
    lines = [line.strip() for line in refusal(QUERIES, capsys).splitlines()[1:]]
    assert len(lines) >= 3
    for number, line in enumerate(lines):
        path = tmp_path / f"{number}.toml"
        path.write_text(to_toml(entered(line)))
        assert main.main(["pint", "plan", str(path)]) == 0, line
        capsys.readouterr()


def test_flow_0_is_named_in_findings_and_flows_without_numbers_are_not(tmp_path):
    (tmp_path / "q.toml").write_text(
        HEAD + 'name = "load"\nvalue = "utilisation"\naggregation = "max"\nbits = 8\n'
        "approximation = { epsilon = 0.025 }\n"
    )
    plan = pint.Plan.open(tmp_path / "q.toml")
    digest = plan.encode(packet_id=1, hops=[{"utilisation": 100}] * 3)[-1]
    for given, expected in [({"flow_id": 0}, {"flow_id": 0}), ({"flow_id": 7}, {"flow_id": 7}), ({}, {})]:
        collector = pint.Collector(plan)
        assert collector.take(packet_id=1, digest=digest, hops=3, **given) is None
        (report,) = collector.reports()
        assert report["flow"] == expected
    rows = f"packet_id,digest,hops,plan_version,time_ns,flow_id\n1,{digest},3,{plan.version},5,0\n"
    (tmp_path / "d.csv").write_text(rows)
    files = [
        "--plan",
        str(tmp_path / "q.toml"),
        "--findings",
        str(tmp_path / "f.jsonl"),
        str(tmp_path / "d.csv"),
    ]
    assert main.main(["pint", "decode", "--quiet", *files]) == 0
    (line,) = (tmp_path / "f.jsonl").read_text().splitlines()
    assert json.loads(line)["flow"] == {"flow_id": 0}


def test_a_host_that_the_topology_lacks_is_named_where_ends_are_to_follow_from_it(tmp_path):
    (tmp_path / "t.toml").write_text(
        '[topology]\nkind = "leaf-spine"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2\n'
        '[[workload]]\nkind = "permutation"\nsize = "1KB"\n'
    )
    (tmp_path / "q.toml").write_text(
        HEAD + 'name = "path"\nvalue = "switch-id"\naggregation = "path"\nbits = 8\n'
    )
    plan = pint.Plan.open(tmp_path / "q.toml")

    def take(ends, **flow):
        collector = pint.Collector(plan, topology=tmp_path / "t.toml", ends=ends)
        return collector.take(packet_id=1, digest=0, hops=3, **flow)

    take(True, src=0, dst=3)
    take(True)
    take(False, src=0, dst=99)
    for flow, named in [
        ({"src": 0, "dst": 99}, "dst: .* no host 99"),
        ({"src": "10.0.0.1"}, "src: .* no host 10.0.0.1"),
    ]:
        with pytest.raises(pint.InputError, match=named):
            take(True, **flow)
