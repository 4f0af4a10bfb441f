"""The first minutes: templates, completions, explain and doctor."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import weftline
from weftline import _native
from weftline.cli import completions, doctor, explain, start
from weftline.cli.main import main, parser
from weftline.errors import InputError
from weftline.measures import counted, metrics
from weftline.measures.metrics import METRICS

built = pytest.mark.skipif(
    not getattr(_native, "__file__", None), reason="the native module is not built (maturin develop)"
)
PACKAGE = Path(weftline.__file__).parent


@built
@pytest.mark.parametrize("name", start.names())
def test_a_template_is_checked_without_a_warning_and_runs(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["new", name]) == 0
    assert f"next: weftline run {name}.toml" in capsys.readouterr().out
    assert main(["check", f"{name}.toml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == []
    run = weftline.run(f"{name}.toml", out=tmp_path / "out")
    assert run.summary["status"] == "done" and run.summary["packet_hops"] > 1000


@built
def test_a_template_without_its_schema_is_the_file_of_the_package(tmp_path):
    written = start.write("wan", tmp_path / "mine.toml", schema=False)
    assert [path.name for path in written] == ["mine.toml", "wan-cities.gml"]
    assert (tmp_path / "mine.toml").read_text() == (start.TEMPLATES / "wan" / "wan.toml").read_text()


@built
def test_the_schema_next_to_a_template_is_named_in_its_first_line_and_is_of_this_version(tmp_path):
    scenario, schema = start.write("incast", tmp_path / "incast.toml")
    assert scenario.read_text().startswith("#:schema ./weftline.schema.json\n")
    assert json.loads(schema.read_text()) == json.loads(_native.schema())
    start.write("incast", tmp_path / "another.toml")  # the schema of ours may be replaced
    schema.write_text('{"title": "mine"}')
    assert start.write("incast", tmp_path / "third.toml") == [tmp_path / "third.toml"]
    assert schema.read_text() == '{"title": "mine"}'


def test_new_replaces_nothing_without_force(engine, tmp_path, capsys):
    (tmp_path / "wan-cities.gml").write_text("mine")
    assert main(["new", "wan"]) == 2
    assert "wan-cities.gml: exists" in capsys.readouterr().err
    assert main(["new", "wan", "--force"]) == 0
    assert (tmp_path / "wan-cities.gml").read_text() != "mine"


def test_an_unknown_template_gets_the_nearest(engine, capsys):
    assert main(["new", "incats"]) == 2
    assert 'did you mean "incast"?' in capsys.readouterr().err


def test_new_lists_every_template_with_what_it_is_for(engine, capsys):
    assert main(["new", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(start.names()) and lines[0].startswith("leaf-spine")
    assert all(len(line.split(maxsplit=1)[1]) > 20 for line in lines)


@pytest.mark.parametrize("shell", completions.SHELLS)
def test_completions_know_every_command_and_its_options(engine, capsys, shell):
    assert main(["completions", shell]) == 0
    script = capsys.readouterr().out
    for command in completions.commands(parser()):
        assert command.name in script
    assert "incast" in script and "tcp-controllers" in script
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed: its script was made, not read by it")
    assert subprocess.run([program, "-n"], input=script, text=True).returncode == 0


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["rep"], {"report", "reproduce"}),
        (["new", "in"], {"incast"}),
        (["run", "--th"], {"--threads"}),
        (["list", "to"], {"topologies"}),
        (["run", "sce"], {"scenario.toml"}),
    ],
)
def test_bash_completes_what_has_been_typed(engine, tmp_path, words, offered):
    (tmp_path / "scenario.toml").touch()
    script = completions.script("bash", parser())
    typed = " ".join(["weftline", *words])
    asked = (
        f"\nCOMP_WORDS=({typed}); COMP_CWORD={len(words)}; _weftline\nprintf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    found = subprocess.run(["bash", "-c", script + asked], capture_output=True, text=True, check=True)
    assert set(found.stdout.split()) == offered


def test_an_unknown_shell_gets_the_nearest(engine, capsys):
    assert main(["completions", "zhs"]) == 2
    assert 'did you mean "zsh"?' in capsys.readouterr().err


@built
def test_every_scheme_key_metric_and_column_is_explained():
    for name in explain.names():
        if name in ("auto", "none"):
            continue
        found = explain.entry(name)
        assert found["title"], name
        assert found["text"] or found["parameters"] or found["source"], name


@built
def test_paths_are_explained_as_set_takes_them():
    assert explain.entry("workload.0.load") == explain.entry("workload.load")


@built
def test_what_the_law_of_a_subflow_shows_is_explained_as_that_of_the_laws_of_subflows():
    text = explain.entry("subflow7_w_max_segments")["text"]
    assert text.startswith("Of the law of subflow 7, while it is up: ") and "(cubic)" in text
    assert "(dcqcn)" not in explain.entry("subflow0_alpha")["text"], "not one of TCP's"
    with pytest.raises(InputError, match="unknown name"):
        explain.entry("subflow0_u")


def test_a_simulator_that_is_repeated_says_its_rules(capsys):
    assert "departure_events" in [rule["rule"] for rule in explain.entry("ns3-3.35")["rules"]]
    assert main(["explain", "hpcc-ns3"]) == 0
    assert "murmur_ecmp" in capsys.readouterr().out


@built
def test_every_metric_of_the_table_is_read_and_described_nowhere_else():
    table = {row["name"]: row for row in counted.declarations()["metrics"]}
    assert set(METRICS) == {name for name, row in table.items() if row["of_run"]}
    assert set(metrics._READERS) == {name for name, row in table.items() if row["of_run"] and not row["from"]}
    assert all(row["title"] and row["text"] and row["unit"] for row in table.values())
    assert explain.entry("goodput")["text"].startswith(METRICS["goodput"].about)


@built
def test_a_number_of_a_group_is_better_where_the_metric_is():
    assert metrics.metric("goodput of web").higher_is_better
    assert not metrics.metric("slowdown_p99 of web").higher_is_better


@built
def test_every_column_and_key_that_the_documentation_names_is_explained():
    text = (PACKAGE.parent.parent / "docs" / "results.md").read_text()
    tables = text.partition("## flows.parquet")[2]
    named = [
        name for row in re.findall(r"^\| (`[^|]*) \|", tables, re.M) for name in re.findall(r"`(\w+)`", row)
    ]
    assert len(named) > 180
    known = set(explain.names())
    assert sorted(name for name in named if name not in known and not explain.entry(name)) == []
    for name in ("sink", "loop", "bytes_dropped", "ssthresh_bytes", "receiving"):
        assert name in known


@built
def test_what_has_no_name_gets_the_nearest_of_all_names():
    with pytest.raises(InputError, match='did you mean "slowdown_p99"'):
        explain.entry("slowdwn_p99")
    with pytest.raises(InputError, match='did you mean "hpcc"'):
        explain.entry("hpc")


def test_doctor_says_what_is_missing_and_how_to_get_it(engine, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert main(["doctor"]) == 0
    output = capsys.readouterr().out
    assert re.search(r"^- tshark +for reading packet captures; apt install tshark", output, re.M)
    assert re.search(r"^  python +3", output, re.M)
    assert main(["doctor", "--json"]) == 0
    names = [finding["name"] for finding in json.loads(capsys.readouterr().out)]
    assert {"weftline", "cores", "memory", "duckdb", "ray", "chromium"} <= {*names}


def test_doctor_fails_where_something_is_broken(engine, capsys, monkeypatch, tmp_path):
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("WEFTLINE_CHROMIUM", str(broken))
    assert main(["doctor"]) == 1
    assert "! chromium" in capsys.readouterr().out


def test_doctor_counts_the_cores_that_the_process_may_use():
    assert 1 <= doctor.cores() <= (os.cpu_count() or 1)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_doctor_knows_the_memory():
    total, free = doctor.memory_bytes()
    assert 0 < free <= total


@pytest.mark.parametrize(
    ("value", "key", "what"),
    [
        ("nccl", "workload.algorithm", "as NCCL estimates them"),
        ("zero3", "workload.sharding", "ZeRO 3"),
        ("strided", "workload.placement", "a host of each rack in turn"),
    ],
)
def test_a_value_of_a_key_is_explained_with_its_keys(value, key, what):
    found = explain.entry(value)
    assert (found["name"], found["title"]) == (value, f"a value of {key}")
    assert what in found["text"]
    assert all(parameter["key"].startswith(key) for parameter in found["parameters"])


def test_a_value_of_several_keys_is_explained_for_each():
    found = explain.entry("by-rail")
    assert found["title"] == "a value of host.nic_policy, workload.placement"
    assert "host.nic_policy: a job's GPUs" in found["text"] and "workload.placement: in the" in found["text"]
    with pytest.raises(InputError, match='did you mean "hierarchical"'):
        explain.entry("heirarchical")
