"""The command line as tests run it: in a process of its own, or in this one with its output captured."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import weftline
from weftline.cli.main import main


def program(*arguments: str) -> list[str]:
    """Return the arguments of a process that runs a command."""
    return [sys.executable, "-m", "weftline", *arguments]


def environment(**more: str) -> dict[str, str]:
    """Return an environment in which a process imports the weftline under test."""
    path = os.pathsep.join([str(Path(weftline.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, **more}


def run(*arguments: str, **options) -> subprocess.CompletedProcess:
    """Run a command in a process of its own and capture its output as text."""
    options = {"capture_output": True, "text": True, "env": environment(), **options}
    return subprocess.run(program(*arguments), **options)


def start(*arguments: str, **options) -> subprocess.Popen:
    """Start a command with its output in pipes; Ctrl-C (SIGINT) ends it.

    A process in the background may ignore SIGINT, and its children inherit that.
    """
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment(), **options}
    return subprocess.Popen(
        program(*arguments), preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **options
    )


def captured(*arguments: str) -> tuple[int, str, str]:
    """Run a command in this process; return its exit status, output and errors."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(list(arguments))
    return status, out.getvalue(), err.getvalue()
