"""How soon the command line answers, and what it does not load for that."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from weftline import _native

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(
        not getattr(_native, "__file__", None), reason="the native module is not built (maturin develop)"
    ),
]

HEAVY = ("numpy", "pandas", "polars", "pyarrow", "duckdb", "vl_convert", "ray", "IPython", "asyncio", "http")
LIGHT = (
    ["--version"],
    ["--help"],
    ["explain", "hpcc"],
    ["list", "controllers"],
    ["new", "--list"],
    ["schema"],
)


def loaded(arguments: list[str]) -> set[str]:
    """Return the packages that a command imports."""
    program = [sys.executable, "-X", "importtime", "-m", "weftline", *arguments]
    output = subprocess.run(program, capture_output=True, text=True, check=True).stderr
    return {name.strip().partition(".")[0] for name in re.findall(r"^import time:.*\|(.*)$", output, re.M)}


@pytest.mark.parametrize("arguments", LIGHT, ids=" ".join)
def test_a_command_that_runs_nothing_loads_nothing_heavy(arguments):
    assert not loaded(arguments) & {*HEAVY}


def test_importing_weftline_loads_nothing_else_of_it():
    code = "import sys, weftline; print([m for m in sys.modules if m.startswith('weftline')])"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "['weftline']"


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="needs the processor time of a child")
def test_the_command_starts_within_150_milliseconds_of_processor_time():
    """Of the processor, not of the wall: a busy machine is not the command's fault. The best of five.

    On a slow machine it may take five times as long as a Python that imports little.
    """
    little = best_of_five("-c", "import argparse, json, pathlib, re")
    taken = best_of_five("-m", "weftline", "--version")
    assert taken < max(0.150, 5 * little), (taken, little)


def best_of_five(*arguments: str) -> float:
    """Return the smallest processor time of five runs of Python, in seconds."""
    taken = []
    for _ in range(5):
        process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        taken.append(used.ru_utime + used.ru_stime)
    return min(taken)
