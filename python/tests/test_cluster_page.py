"""docs/cluster.md works when copied: its scripts, its YAML, and its commands on a Ray of two nodes here."""

from __future__ import annotations

import importlib.util
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import commands
import pytest
from snippets import ROOT, SMALL, blocks, lines

from weftline import _native

PAGE = ROOT / "docs" / "cluster.md"
BUILT = pytest.mark.skipif(not hasattr(_native, "Table"), reason="the native module is not built")
RAY = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None and not os.environ.get("CI"),
    reason="Ray is not installed: pip install ray",
)
LONG = pytest.mark.skipif(
    os.environ.get("WEFTLINE_CLUSTERS") != "1", reason="starts Ray: WEFTLINE_CLUSTERS=1 (make clusters)"
)

SWEEP = """
scenario = "mine.toml"
seeds = 8
[[axis]]
key = "workload.0.load"
values = [0.3, 0.4, 0.5, 0.6, 0.7]
"""
SRUN = """#!/bin/bash
# Runs as many processes of a step as it asks for, on this machine.
tasks=1
while [[ $1 == --* ]]; do
  [[ $1 == --ntasks=* ]] && tasks=${1#--ntasks=}
  echo "$1" >> "$SRUN_LOG"
  shift
done
for _ in $(seq "$tasks"); do "$@" & done
wait
"""
JOB = {
    "SLURM_JOB_ID": "77",
    "SLURM_CPUS_PER_TASK": "1",
    "SLURM_JOB_NUM_NODES": "3",
    "SLURMD_NODENAME": "first-node",
}
"""What Slurm sets in a job; its name of a node need not be that of `hostname`."""
FIELDS = {
    "RayJob": "apiVersion kind metadata spec",
    "spec": "entrypoint rayClusterSpec shutdownAfterJobFinishes ttlSecondsAfterFinished backoffLimit "
    "activeDeadlineSeconds submissionMode runtimeEnvYAML clusterSelector suspend entrypointNumCpus",
    "rayClusterSpec": "rayVersion headGroupSpec workerGroupSpecs enableInTreeAutoscaling autoscalerOptions",
    "headGroupSpec": "rayStartParams template serviceType headService enableIngress",
    "workerGroup": "groupName replicas minReplicas maxReplicas numOfHosts rayStartParams template",
    "podSpec": "containers volumes",
    "container": "name image resources volumeMounts env",
}
"""The fields of KubeRay's types of ray.io/v1, and of pods, that the page may use."""


def script(name: str) -> str:
    """The shell script that is saved as `name`."""
    (found,) = [b.text for b in blocks(PAGE) if b.language == "shell" and f"`{name}`" in b.before]
    return found


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder with the sweep of the page, and weftline and ray of this Python on PATH."""
    (tmp_path / "mine.toml").write_text(SMALL)
    (tmp_path / "which.toml").write_text(SWEEP)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "weftline").write_text(f'#!/bin/sh\nexec {sys.executable} -m weftline "$@"\n')
    (programs / "srun").write_text(SRUN)
    for program in programs.iterdir():
        program.chmod(0o755)
    path = [str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(path))
    monkeypatch.setenv("PYTHONPATH", commands.environment()["PYTHONPATH"])
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("SRUN_LOG", str(tmp_path / "srun.log"))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def apart(monkeypatch):
    """A folder of Ray's own, short because of its sockets, so that no other Ray of this machine is met."""
    place = tempfile.mkdtemp(prefix="wr-", dir="/tmp")
    monkeypatch.setenv("RAY_TMPDIR", place)
    # A token of these tests alone: whether the user has one must not matter.
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
    yield place
    shutil.rmtree(place, ignore_errors=True)


def in_group(command: list[str], **more: str) -> subprocess.Popen:
    return subprocess.Popen(
        command,
        env={**os.environ, **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def end(child: subprocess.Popen) -> None:
    """End a process with all that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
            child.wait(timeout=15)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def ip() -> str:
    """This machine's address, as the job of Slurm finds it."""
    return subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=True).stdout.split()[0]


def free_port() -> int:
    with socket.create_server(("", 0)) as held:
        return held.getsockname()[1]


@pytest.mark.parametrize("name", ["array.sh", "ray.sh"])
def test_the_scripts_of_the_page_are_scripts(folder, name):
    (folder / name).write_text(script(name))
    subprocess.run(["bash", "-n", name], check=True)
    asked = re.findall(r"^#SBATCH --([a-z-]+)(?:=\S+)?$", script(name), re.M)
    assert len(asked) == script(name).count("#SBATCH") >= 5
    assert set(asked) <= {
        "job-name",
        "array",
        "cpus-per-task",
        "time",
        "output",
        "nodes",
        "ntasks-per-node",
        "no-kill",
    }


@BUILT
def test_the_tasks_of_the_array_run_every_point_once(folder):
    (folder / "array.sh").write_text(script("array.sh"))
    first, last = map(int, re.search(r"--array=(\d+)-(\d+)", script("array.sh")).groups())
    for index in range(first, last + 1):
        array = {"ID": index, "MIN": first, "MAX": last, "STEP": 1, "COUNT": last - first + 1}
        asked = {f"SLURM_ARRAY_TASK_{key}": str(value) for key, value in array.items()}
        subprocess.run(["bash", "array.sh"], check=True, env={**os.environ, **asked})
        done = len(list((folder / "out/sweeps/which/points").iterdir()))
        assert done == 4 * (index - first + 1)
    printed = subprocess.run(["weftline", "sweep", "which.toml"], check=True, capture_output=True, text=True)
    assert "40 are finished already" in printed.stdout and (folder / "out/sweeps/which/table.csv").exists()


def test_the_job_of_slurm_ends_when_its_head_cannot_start(folder):
    (folder / "bin" / "ray").write_text('#!/bin/sh\necho "the port is in use" >&2\nexit 1\n')
    (folder / "bin" / "ray").chmod(0o755)
    (folder / "ray.sh").write_text(script("ray.sh"))
    child = in_group(["bash", "ray.sh"], **JOB)
    try:
        printed = child.communicate(timeout=30)[0]
    finally:
        end(child)
    assert child.returncode != 0 and "the port is in use" in printed
    assert f"--nodelist={JOB['SLURMD_NODENAME']}" in (folder / "srun.log").read_text().split()
    assert not (folder / "out").exists()


def test_the_job_of_kuberay_has_the_fields_of_its_api():
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with Ray")
    (text,) = [block.text for block in blocks(PAGE) if block.language == "yaml"]
    job = yaml.safe_load(text)
    spec = job["spec"]["rayClusterSpec"]
    found = {
        "RayJob": [job],
        "spec": [job["spec"]],
        "rayClusterSpec": [spec],
        "headGroupSpec": [spec["headGroupSpec"]],
        "workerGroup": spec["workerGroupSpecs"],
    }
    groups = [spec["headGroupSpec"], *spec["workerGroupSpecs"]]
    found["podSpec"] = [group["template"]["spec"] for group in groups]
    found["container"] = [one for pod in found["podSpec"] for one in pod["containers"]]
    for kind, ones in found.items():
        for one in ones:
            assert set(one) <= set(FIELDS[kind].split()), kind
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob") and job["metadata"]["name"]
    for group in groups:
        assert all(type(value) is str for value in group["rayStartParams"].values()), "ray start's options"
    for group in spec["workerGroupSpecs"]:
        assert {"groupName", "minReplicas", "maxReplicas", "template"} <= set(group)
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
    for pod in found["podSpec"]:
        volumes = {volume["name"] for volume in pod.get("volumes", [])}
        assert {
            mount["name"] for one in pod["containers"] for mount in one.get("volumeMounts", [])
        } <= volumes
    (dockerfile,) = [block.text for block in blocks(PAGE) if block.language == "dockerfile"]
    assert f"ray:{spec['rayVersion']}-py3" in dockerfile
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())
    version = cargo.get("workspace", cargo)["package"]["version"]
    assert all(one["image"].endswith(f":{version}") for one in found["container"])
    mounts = [mount["mountPath"] for one in found["container"] for mount in one.get("volumeMounts", [])]
    assert any(f"--out {mount}/" in job["spec"]["entrypoint"] for mount in mounts)


@BUILT
@RAY
@LONG
def test_the_commands_of_the_page_make_a_ray_of_two_nodes_that_runs_the_sweep(folder, apart):
    port = str(free_port())
    given = [words for block in blocks(PAGE) for words in lines(block)]
    starts = [words for words in given if words[:2] == ["ray", "start"]]
    assert len(starts) == 2
    nodes = []
    try:
        for words in starts:
            here = [word.replace("192.0.2.1", ip()).replace("6379", port) for word in words]
            nodes.append(in_group([*here, "--num-cpus", "1", "--block"]))
            wait_for_node(port, len(nodes))
        asked = {"RAY_ADDRESS": f"{ip()}:{port}"}
        sweep = ["weftline", "sweep", "which.toml", "--on", "ray"]
        assert sweep in given
        done = subprocess.run(
            sweep, env={**os.environ, **asked}, capture_output=True, text=True, timeout=120, check=False
        )
    finally:
        for node in reversed(nodes):
            end(node)
    assert done.returncode == 0, done.stderr
    log = (folder / "out/sweeps/which/ray.log").read_text()
    assert len(set(re.findall(r", id (\w+)\)$", log, re.M))) == 2, log


def wait_for_node(port: str, count: int) -> None:
    code = (
        "import ray, sys, time\n"
        f"ray.init('{ip()}:{port}', logging_level='ERROR')\n"
        f"while sum(node['Alive'] for node in ray.nodes()) < {count}: time.sleep(0.2)\n"
    )
    health = ["ray", "health-check", "--address", f"{ip()}:{port}"]
    for _ in range(60):
        if subprocess.run(health, capture_output=True, check=False).returncode == 0:
            break
    subprocess.run([sys.executable, "-c", code], check=True, timeout=90, capture_output=True)


@BUILT
@RAY
@LONG
def test_the_job_of_slurm_starts_a_ray_and_runs_the_sweep_on_it(folder, apart):
    (folder / "ray.sh").write_text(script("ray.sh"))
    port = free_port()
    text = script("ray.sh").replace("$((20000 + SLURM_JOB_ID % 10000))", str(port))
    assert text != script("ray.sh")
    (folder / "ray.sh").write_text(text)
    child = in_group(["bash", "ray.sh"], **JOB)
    try:
        child.wait(timeout=90)
    finally:
        status = child.returncode
        end(child)
    assert status == 0, child.stdout.read()
    assert (folder / "out/sweeps/which/table.csv").exists()
    options = (folder / "srun.log").read_text().split()
    assert "--ntasks=2" in options and f"--exclude={JOB['SLURMD_NODENAME']}" in options
