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


def need(*tools: str | Path) -> None:
    """Skip the test without these programs; in continuous integration they must be there."""
    for tool in tools:
        if not shutil.which(tool) and not os.environ.get("CI"):
            pytest.skip(f"{Path(tool).name} is not installed")


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


def built(crate: Path) -> Path:
    """Build the wheel of a crate, without optimisation; return the folder that it is installed in."""
    need(MATURIN, "cargo")
    # The versions and settings with which the repository is built: what is compiled for one serves the other.
    shutil.copy(ROOT / "Cargo.lock", crate / "Cargo.lock")
    profile = crate / "profile.toml"
    profile.write_text(_tables("profile", {"dev": tomllib.loads((ROOT / "Cargo.toml").read_text())["profile"]["dev"]}))
    site = Path(tempfile.mkdtemp(prefix="site-", dir=crate))
    build = [MATURIN, "build", "--profile", "dev", "--offline", "--config", profile, "-o", site / "wheel"]
    _done(build, crate)
    (wheel,) = (site / "wheel").glob("*.whl")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", site]
    _done([*pip, wheel], crate)
    return site


def _done(command: list, folder: Path) -> None:
    environment = {**os.environ, "CARGO_TARGET_DIR": str(TARGET), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def _tables(path: str, table: dict) -> str:
    """Write tables of a manifest as cargo's configuration has them."""
    text = ""
    for name, inner in table.items():
        below = f'{path}."{name}"'
        plain = {key: value for key, value in inner.items() if not isinstance(value, dict)}
        text += f"[{below}]\n"
        text += "".join(f"{key} = {str(value).lower() if isinstance(value, bool) else repr(value)}\n" for key, value in plain.items())
        for key, value in inner.items():
            if isinstance(value, dict):
                text += _tables(f"{below}.{key}", value)
    return text


def call(
    program: list, site: Path, folder: Path, *arguments: str, status: int = 0, stdin: str = "", **environment: str
) -> subprocess.CompletedProcess:
    """Run a program with the packages of `site` and the repository's on its path, and check its exit status."""
    path = os.pathsep.join([str(site), str(ROOT / "python")])
    inherited = {key: value for key, value in os.environ.items() if key != "WEFTLINE_ENGINE"}
    done = subprocess.run(
        [*program, *arguments],
        cwd=folder,
        env={**inherited, "PYTHONPATH": path, **environment},
        input=stdin,
        capture_output=True,
        text=True,
    )
    assert done.returncode == status, f"{arguments}\n{done.stdout}{done.stderr}"
    return done
