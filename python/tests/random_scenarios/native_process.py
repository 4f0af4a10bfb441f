"""The native module as a process: a request in JSON on each line of stdin, its answer on a line of stdout."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import outputs

from weftline import _native


def answer(request: dict, base: str, folder: Path) -> dict:
    """Do what was asked; errors about the input are part of the answer."""
    text, file = request["text"], "s.toml"
    try:
        if request["operation"] == "check":
            return json.loads(_native.Scenario(text, file, base).check())
        if request["operation"] == "network":
            return json.loads(_native.Scenario(text, file, base).network())
        return run(text, file, base, folder)
    except _native.InputError as error:
        return {"input_error": str(error)}


def run(text: str, file: str, base: str, folder: Path) -> dict:
    """Run, and check what the run wrote."""
    scenario = _native.Scenario(text, file, base)
    report = json.loads(scenario.check())
    out = folder / "run"
    shutil.rmtree(out, ignore_errors=True)
    summary = json.loads(scenario.run(str(out), threads=1, sync=False))
    _native.check_files(str(out))
    wrong = list(dict.fromkeys(outputs.wrong(out, report)))[:5]
    resolved = (out / "scenario.toml").read_text()
    if _native.Scenario(resolved, file, base).resolved != resolved:
        wrong.append("the resolved scenario does not resolve to itself")
    _native.slowdown(str(out), 10, "equal-count")
    _native.completion(str(out))
    wanted = ("cpu_seconds", "packet_hops", "fingerprint", "status", "end_ns")
    return {"wrong": wrong, **{key: summary[key] for key in wanted}}


def main() -> None:
    """Answer until stdin ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory(prefix="weftline-random-") as folder:
        for line in sys.stdin:
            print(json.dumps(answer(json.loads(line), sys.argv[1], Path(folder))), file=answers, flush=True)


if __name__ == "__main__":
    main()
