"""Builds crates outside the workspace against those of this repository, and reuses compiled dependencies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
MATURIN = Path(sys.executable).parent / "maturin"

SCENARIO = """
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 4
host_link = { rate = "25Gbps", delay = "1us" }
fabric_link = { rate = "25Gbps", delay = "1us" }
[[workload]]
kind = "poisson"
sizes = "google-rpc"
load = 0.5
duration = "200us"
[transport]
"""
"""A small fabric; what follows is the transport."""

INSTALLS = {"maturin": "make .venv/.dev", "cargo": "https://rustup.rs", "git": "the system's package git"}
"""What installs each program that tests need."""


def need(*tools: str | Path) -> None:
    """Skip the test without these programs; in continuous integration they must be there."""
    for tool in tools:
        name = Path(tool).name
        if shutil.which(tool):
            continue
        why = (
            f"the test builds a crate with {name}, which is not installed (install it with {INSTALLS[name]})"
        )
        if os.environ.get("CI"):
            pytest.fail(f"{why}; under CI it must be there")
        pytest.skip(why)


def copied(example: Path, name: str) -> Path:
    """Copy a crate of the repository to where it can be changed; return its folder.

    The place is always the same, so that cargo knows it again.
    """
    there = TARGET / "own-crates" / name
    shutil.rmtree(there, ignore_errors=True)
    shutil.copytree(example, there, ignore=shutil.ignore_patterns("target", "Cargo.lock"))
    manifest = there / "Cargo.toml"
    text = manifest.read_text("utf-8").replace('path = "../../', f'path = "{ROOT}/')
    manifest.write_text(text, "utf-8")
    return there


def built(crate: Path, *settings: str) -> Path:
    """Build the wheel of a crate, without optimisation; return the folder that it is installed in.

    `settings` are those of cargo's `--config`.
    """
    need(MATURIN, "cargo")
    # The versions and settings with which the repository is built: what is compiled for one serves the other.
    if not (crate / "Cargo.lock").exists():
        shutil.copy(ROOT / "Cargo.lock", crate / "Cargo.lock")
    profile = crate / "profile.toml"
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))
    profile.write_text(_tables("profile", {"dev": manifest["profile"]["dev"]}))
    site = Path(tempfile.mkdtemp(prefix="site-", dir=crate))
    given = [word for setting in (str(profile), *settings) for word in ("--config", setting)]
    run([MATURIN, "build", "--profile", "dev", "--offline", *given, "-o", site / "wheel"], crate)
    (wheel,) = (site / "wheel").glob("*.whl")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", site]
    run([*pip, wheel], crate)
    return site


def run(command: list, folder: Path) -> str:
    """Run a program that builds; return its output."""
    environment = {**os.environ, "CARGO_TARGET_DIR": str(TARGET), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout[-8000:]}{done.stderr[-8000:]}"
    return done.stdout


def _tables(path: str, table: dict) -> str:
    """Write tables of a manifest as cargo's configuration has them."""
    text = ""
    for name, inner in table.items():
        below = f'{path}."{name}"'
        text += f"[{below}]\n"
        for key, value in inner.items():
            if not isinstance(value, dict):
                text += f"{key} = {str(value).lower() if isinstance(value, bool) else repr(value)}\n"
        text += "".join(
            _tables(f"{below}.{key}", value) for key, value in inner.items() if isinstance(value, dict)
        )
    return text


def call(
    program: list,
    path: list[Path],
    folder: Path,
    *arguments: str,
    status: int = 0,
    stdin: str = "",
    **environment: str,
) -> subprocess.CompletedProcess:
    """Run a program with packages on its path, in a folder, and check its exit status."""
    inherited = {key: value for key, value in os.environ.items() if key != "WEFTLINE_ENGINE"}
    done = subprocess.run(
        [*program, *arguments],
        cwd=folder,
        env={**inherited, "PYTHONPATH": os.pathsep.join(map(str, path)), **environment},
        input=stdin,
        capture_output=True,
        text=True,
    )
    assert done.returncode == status, f"{arguments}\n{done.stdout}{done.stderr}"
    return done
