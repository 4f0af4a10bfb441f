"""`weftline doctor`: what is here, what is missing, and what the missing thing would be good for."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weftline import quantities

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line of the diagnosis."""

    name: str
    state: str
    """``ok``, ``missing`` (an extra does without it) or ``problem``."""
    text: str
    """What was found; of something missing, what needs it and how to get it."""


def findings() -> list[Finding]:
    """Look at this machine and return what concerns weftline."""
    return [*_program(), *_machine(), *_packages(), *_tools(), _folder()]


def cores() -> int:
    """Return the cores that this process may use: fewer than the machine has, in a container."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()[:2]
        return max(1, min(usable, int(int(quota) / int(period))))
    except (OSError, ValueError):
        return usable


def memory_bytes() -> tuple[int, int] | None:
    """Return the machine's memory and how much of it is free for a run, None where that cannot be read."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if ":" in line}
        return sizes["MemTotal"], sizes["MemAvailable"]
    except (OSError, ValueError, KeyError, IndexError):
        return None


def browser() -> str | None:
    """Return the path of a Chromium, if there is one: WEFTLINE_CHROMIUM, or on PATH."""
    named = os.environ.get("WEFTLINE_CHROMIUM")
    return named or next((path for name in BROWSERS if (path := shutil.which(name))), None)


def _program() -> list[Finding]:
    from weftline import _native
    from weftline.cli import start
    from weftline.reproduce import experiments

    built = Finding(name="weftline", state="ok", text=_native.version())
    # A wheel whose data was left out would fail only when a template or an experiment is used.
    missing = [] if start.TEMPLATES.is_dir() else ["templates"]
    missing += [] if experiments.names() else ["experiments"]
    if missing:
        text = f"{_native.version()}, without its {' and '.join(missing)}: install it again"
        built = Finding(name="weftline", state="problem", text=text)
    python = Finding(name="python", state="ok", text=platform.python_version())
    return [built, python, Finding(name="platform", state="ok", text=platform.platform())]


def _machine() -> list[Finding]:
    found = [Finding(name="cores", state="ok", text=f"{cores()} usable of {os.cpu_count()}")]
    memory = memory_bytes()
    if memory:
        total, free = memory
        low = free < 500_000_000
        text = f"{quantities.bytes_text(total)}, {quantities.bytes_text(free)} free"
        if low:
            text += "; large runs may not fit: set --memory; `weftline check` estimates the memory of a run"
        found.append(Finding(name="memory", state="problem" if low else "ok", text=text))
    return found


def _packages() -> list[Finding]:
    from importlib import metadata

    wanted = [
        ("vl-convert-python", "figures as files"),
        ("duckdb", "SQL over runs: `weftline query` and `weftline view`"),
        ("pyarrow", "tables for pandas, and reading Parquet from Python"),
        ("polars", "tables as polars frames"),
        ("pandas", "tables as pandas frames"),
        ("ray", "sweeps on a cluster: `weftline sweep --on ray`"),
    ]
    found = []
    for package, purpose in wanted:
        try:
            found.append(Finding(name=package, state="ok", text=metadata.version(package)))
        except metadata.PackageNotFoundError:
            text = f"for {purpose}; pip install {package}"
            found.append(Finding(name=package, state="missing", text=text))
    return found


def _tools() -> list[Finding]:
    chromium, tshark = browser(), shutil.which("tshark")
    return [
        _tool("chromium", chromium, ["--version"], "the tests of the page; apt install chromium"),
        _tool("tshark", tshark, ["--version"], "reading packet captures; apt install tshark"),
    ]


def _tool(name: str, path: str | None, arguments: Sequence[str], purpose: str) -> Finding:
    if path is None:
        return Finding(name=name, state="missing", text=f"for {purpose}")
    try:
        text = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return Finding(name=name, state="problem", text=f"{path} does not start: {error}")
    return Finding(name=name, state="ok", text=f"{text.stdout.strip().partition(chr(10))[0]}, {path}")


def _folder() -> Finding:
    free = shutil.disk_usage(".").free
    text = f"{quantities.bytes_text(free)} free"
    if not os.access(".", os.W_OK):
        return Finding(name="this folder", state="problem", text=f"{text}, but not writable: set --out")
    return Finding(name="this folder", state="problem" if free < 10**8 else "ok", text=text)
