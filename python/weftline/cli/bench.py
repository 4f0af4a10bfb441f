"""`weftline bench`: packet-hops per CPU second on the workloads that all work on speed is measured by, or on
any scenario.

Every run has a process of its own, so that its peak memory is its own. Runs go in rounds, each workload once
a round, so that a noisy minute of the machine hits all alike.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from weftline import _native, quantities, scenarios
from weftline.cli import baseline
from weftline.errors import InputError, RunFailed, nearest
from weftline.outputs import whole_file
from weftline.terminal import ProgressLine, Table

MEASURES = (
    "packet_hops_per_cpu_second",
    "packet_hops_per_wall_second",
    "cpu_seconds",
    "wall_seconds",
    "setup_seconds",
    "peak_memory_bytes",
    "instructions_per_hop",
)
"""What differs between the runs of one workload."""
CHANCE = 0.05
"""Up to this share of cases in which ranges of one speed do not meet, it is not written of."""
SURE = 5
"""With this number of runs, here and in the file to compare with, these are under one case in a hundred."""


def command(options: argparse.Namespace) -> int:
    """Measure the requested workloads; print a table or JSON, write and compare."""
    changes = scenarios.parse_sets(options.set)
    if options.one is not None:
        print(_once(options.one, options.threads, changes))
        return 0
    described = {entry["name"]: entry["description"] for entry in json.loads(_native.workloads())}
    names = _chosen(options.workloads, list(described))
    stored = _stored(options, names)
    if options.out is not None:
        _check_writable(Path(options.out))
        _check_keeps_baseline(options)
    line = ProgressLine(quiet=options.json)
    try:
        runs = rounds(
            names,
            options.repeats,
            options.threads,
            changes,
            show=lambda text: line.show(text, at_once=True),
        )
    finally:
        line.clear()
    results = [summary(name, described.get(name, "A scenario."), runs[name]) for name in names]
    document = _document(results, options)
    compared = {
        name: baseline.compare(result, stored.workloads[name])
        for name, result in zip(names, results, strict=True)
        if stored and name in stored.workloads
    }
    if options.json:
        shown = {name: vars(found) for name, found in compared.items()}
        extra = {"against": options.against, "comparison": shown} if stored else {}
        print(json.dumps(document | extra, indent=2))
    else:
        notes = _notes(document, stored, compared, options.against)
        print(table(results, compared if stored else None, notes).text())
    if options.out is not None:
        with whole_file(options.out) as file:
            file.write_text(json.dumps(document, indent=2) + "\n")
    slow = [] if options.fail_above is None else baseline.beyond(compared, options.fail_above)
    if slow:
        beyond = f"more than {options.fail_above:g} % slower than {options.against}"
        print(f"failed: {beyond}: {', '.join(slow)}", file=sys.stderr)
    return 1 if slow else 0


def _once(name: str, threads: int, changes: list[tuple[str, str]]) -> str:
    """Run a workload, or the scenario of a file, in this process and return what it cost, as JSON."""
    if not _is_file(name):
        return _native.bench(name, threads, changes)
    source = scenarios.load(name)
    return _native.bench_scenario(source.text, source.file, source.base_dir, changes, threads)


def _is_file(name: str) -> bool:
    """Return whether what stands for a workload is the name of a scenario's file."""
    return name.endswith(".toml") or os.sep in name


def _chosen(asked: Sequence[str], known: list[str]) -> list[str]:
    """Return the workloads and scenario files to run, each once, in the requested order."""
    for name in asked:
        if _is_file(name):
            scenarios.load(name)
        elif name not in known:
            raise InputError(f'unknown workload "{name}": {nearest(name, known)}known: {", ".join(known)}')
    return list(dict.fromkeys(asked or known))


def _stored(options: argparse.Namespace, names: Sequence[str]) -> baseline.Stored | None:
    """Return the measurement to compare with, None without one."""
    if options.against is None:
        if options.fail_above is not None:
            raise InputError("--fail-above: requires --against FILE, the measurement to compare with")
        return None
    stored = baseline.read(Path(options.against))
    if not stored.workloads.keys() & set(names):
        has = ", ".join(stored.workloads) or "none"
        raise InputError(f"{options.against}: none of the workloads to run is in it; it has {has}")
    return stored


def _check_writable(path: Path) -> None:
    """Refuse, before anything runs, a file that cannot be written after it."""
    if not path.name or path.is_dir():
        raise InputError(f"--out {path}: expected the name of a file, found a folder")
    if not path.parent.is_dir():
        raise InputError(f"--out {path}: no such folder: {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"--out {path}: cannot be written: permission denied")


def _check_keeps_baseline(options: argparse.Namespace) -> None:
    """Refuse to replace the measurement to compare with, as the next one would be compared with this one."""
    if options.against is not None and os.path.realpath(options.out) == os.path.realpath(options.against):
        raise InputError(
            f"--out {options.out}: is the file of --against, which would be replaced by what is compared "
            "with it; write to another file"
        )


def rounds(
    names: Sequence[str],
    repeats: int,
    threads: int,
    changes: Sequence[tuple[str, str]] = (),
    *,
    show: Callable[[str], None] = lambda text: None,
) -> dict[str, list[dict[str, Any]]]:
    """Run every workload `repeats` times, round by round; return the runs of each."""
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for number in range(1, repeats + 1):
        for name in names:
            show(f"{name}, run {number} of {repeats}")
            runs[name].append(in_own_process(name, threads, changes))
    return runs


def in_own_process(name: str, threads: int, changes: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
    """Run a workload once in a new process of this Python, with this package.

    Parameters
    ----------
    name : str
        A standard workload, or the path of a scenario's file.
    threads : int
        Requested threads; the result has the number that was used.
    changes : sequence of (path, value)
        What replaces values of the scenario, as `--set` has it.

    Returns
    -------
    dict
        ``packet_hops``, ``events``, ``flows``, ``fingerprint``, ``threads``, the seconds ``cpu_seconds``,
        ``wall_seconds`` and ``setup_seconds``, ``peak_memory_bytes``, ``memory_before_bytes`` (of the process
        before it built anything), ``instructions_per_hop`` or None, and a ``note`` where there is one.

    Raises
    ------
    RunFailed
        If it ends badly, with its message.
    """
    package = str(Path(__file__).resolve().parents[2])
    paths = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-P", "-m", "weftline", "bench", "--one", name, "--threads", str(threads)]
    command += [f"--set={path}={value}" for path, value in changes]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    if done.returncode < 0:
        why = "; the machine may have run out of memory" if done.returncode == -9 else ""
        raise RunFailed(f"{name}: its process was ended by signal {-done.returncode}{why}")
    if done.returncode != 0:
        text = done.stderr.strip().removeprefix("failed: ").removeprefix("error: ")
        raise RunFailed(f"{name}: {text or f'its process ended with status {done.returncode}'}")
    return json.loads(done.stdout)


def summary(name: str, description: str, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the runs of one workload were, with the median, minimum and maximum of each measure.

    Raises
    ------
    RunFailed
        If they differ in what they simulated.
    """
    same = ("threads", "packet_hops", "events", "flows", "fingerprint", "note")
    for key in same:
        if len({run.get(key) for run in runs}) > 1:
            raise RunFailed(
                f"{name}: its runs differ in {key}: {', '.join(str(run.get(key)) for run in runs)}"
            )
    each = [_with_rates(run) for run in runs]
    result: dict[str, Any] = {"workload": name, "description": description}
    result |= {key: runs[0][key] for key in same if key in runs[0]}
    for of, choose in (("median", statistics.median), ("min", min), ("max", max)):
        result[of] = {key: _over(choose, [run.get(key) for run in each]) for key in MEASURES}
    return result | {"runs": [{key: run.get(key) for key in MEASURES} for run in each]}


def _with_rates(run: Mapping[str, Any]) -> dict[str, Any]:
    rates = {
        f"packet_hops_per_{clock}_second": run["packet_hops"] / run[f"{clock}_seconds"]
        for clock in ("cpu", "wall")
    }
    return {**run, **rates}


def _over(choose: Callable[..., Any], values: Sequence[float | None]) -> float | None:
    """Return the chosen value, None where one is not known."""
    return None if None in values else choose(values)


def _document(results: Sequence[Mapping[str, Any]], options: argparse.Namespace) -> dict[str, Any]:
    """Return what `--out` writes and `--against` reads."""
    return {
        "format": baseline.FORMAT,
        "version": baseline.VERSION,
        "weftline": _native.version(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "repeats": options.repeats,
        "threads": options.threads,
        "set": options.set,
        "workloads": results,
    }


def machine() -> dict[str, Any]:
    """Return what matters of this machine for speed: CPU model, cores that we may use, kernel."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"cpu": _cpu_model(), "cores": cores, "kernel": f"{platform.system()} {platform.release()}"}


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or platform.machine())


def table(
    results: Sequence[Mapping[str, Any]],
    compared: Mapping[str, baseline.Comparison] | None,
    notes: Sequence[str],
) -> Table:
    """Return the results, one row a workload; with what a comparison found, if there was one."""
    clocks = ["CPU"] if all(result["threads"] == 1 for result in results) else ["CPU", "wall"]
    rates = [f"packet_hops_per_{clock.lower()}_second" for clock in clocks]
    counted = any(result["median"]["instructions_per_hop"] is not None for result in results)
    columns = ["workload", "packet-hops", "CPU s", *(f"packet-hops/{clock} s" for clock in clocks)]
    columns += ["min to max", *["instructions/hop"] * counted, "peak memory"]
    columns += [] if compared is None else ["ratio", "verdict"]
    rows = []
    for result in results:
        median = result["median"]
        row = [result["workload"], quantities.count_text(result["packet_hops"])]
        row += [quantities.digits(median["cpu_seconds"])]
        row += [quantities.count_text(median[rate]) for rate in rates]
        row += [" to ".join(quantities.count_text(result[of][rates[-1]]) for of in ("min", "max"))]
        row += [quantities.digits(median["instructions_per_hop"])] * counted
        row += [quantities.bytes_text(median["peak_memory_bytes"])]
        row += [] if compared is None else _verdict(compared.get(result["workload"]))
        rows.append(row)
    return Table(columns, rows, note="\n".join(notes))


def _verdict(found: baseline.Comparison | None) -> list[str]:
    if found is None:
        return ["–", "not stored"]
    return [f"{found.ratio:.3f}", found.verdict + ("" if found.same_work else ", other work")]


def _notes(
    document: Mapping[str, Any],
    stored: baseline.Stored | None,
    compared: Mapping[str, baseline.Comparison],
    against: str | None,
) -> list[str]:
    """Return what a reader of the table has to know."""
    repeats = document["repeats"]
    runs = f"Median of {repeats} runs, each in a process of its own" if repeats > 1 else "One run"
    notes = [f"{runs}; set-up is not counted."]
    notes += dict.fromkeys(f"{result['note']}." for result in document["workloads"] if "note" in result)
    if stored is None:
        return notes
    floor = quantities.share_text(baseline.NOISE_FLOOR)
    notes.append(f"Ratio: speed over that in {against}; above 1 is faster.")
    notes.append(f"Same: the ranges of both meet, or the medians differ by at most {floor}.")
    if (chance := max((found.by_chance for found in compared.values()), default=0.0)) > CHANCE:
        notes.append(
            f"The ranges of these few runs, at one speed, do not meet in {quantities.share_text(chance)} of "
            f"cases; with --repeats {SURE}, here and for {against}, in under 1 %."
        )
    if any(found.metric == "packet_hops_per_wall_second" for found in compared.values()):
        notes.append("Where either used several threads, wall time is compared, else CPU time.")
    if any(not found.same_work for found in compared.values()):
        notes.append("Other work: the fingerprint is another one, so the runs compared are not the same.")
    if stored.machine != document["machine"]:
        notes.append(f"{against} was measured on another machine, or under another kernel.")
    return notes
