#!/usr/bin/env python3
"""Guards what grows with the network, against what `benches/at_scale.json` allows.

    python3 benches/at_scale.py             # fails when one of the three has grown beyond its tolerance
    python3 benches/at_scale.py --accept    # stores what is measured now

- `setup_instructions_per_host`: instructions from the start of the process to the first event for a fat tree
  with k = 32 (8 192 hosts), divided by its hosts, and the same for k = 16 (1 024 hosts). Their ratio is 1 if
  set-up takes time in proportion to the hosts, and 8 if it takes time in proportion to their square.
- `hop_time_ratio`: CPU time of a packet-hop at 8 192 hosts (`k32`) over that at 320 hosts (`fat320-dctcp`).
  Both run in turns, so that other programs slow both. Instructions do not show cache misses; this does.

Without valgrind only the second is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import instructions
from instructions import MeasureError

ROOT = Path(__file__).resolve().parent.parent
STORED = ROOT / "benches" / "at_scale.json"
ACCEPT = "python3 benches/at_scale.py --accept"
ENDS_AT_ONCE = "run.until=1ns"
"""A run with this is its set-up."""

HOSTS = {"k16": 1_024, "k32": 8_192}
TIMED = {"fat320-dctcp": "workload.0.duration=1ms", "k32": "workload.0.size=300KB"}
"""Some 20 million packet-hops each."""
ROUNDS = 3
TOLERANCES = {"setup_instructions_per_host": 0.03, "setup_growth": 0.03, "hop_time_ratio": 0.35}
"""How far each may grow, as a share. The ratio of times is the lowest of three."""


def main(arguments: list[str] | None = None) -> int:
    """Measure, compare or store; return the exit status."""
    parser = argparse.ArgumentParser(
        description="Set-up per host and a hop at size, against the stored ones."
    )
    parser.add_argument("--accept", action="store_true", help=f"store what is measured in {STORED.name}")
    options = parser.parse_args(arguments)
    missing = [tool for tool in ("valgrind", "cargo") if shutil.which(tool) is None]
    if "cargo" in missing or (missing and options.accept):
        print(f"at scale: skipped, {' and '.join(missing)} not found; such as: apt install valgrind")
        return 1 if options.accept else 0
    try:
        program = instructions.build()
        figures = {} if missing else setup(program)
        figures["hop_time_ratio"] = hop_time_ratio(program)
        measured = {"compiler": instructions.compiler(), "figures": figures}
        if options.accept:
            STORED.write_text(json.dumps(measured, indent=2) + "\n")
            print(f"at scale: {figures}, stored in {STORED.relative_to(ROOT)}")
            return 0
        lines, status = verdict(measured, stored())
    except MeasureError as error:
        print(f"at scale: {error}", file=sys.stderr)
        return 1
    print("\n".join(lines), file=sys.stderr if status else sys.stdout)
    return status


def setup(program: Path) -> dict[str, float]:
    """Return the instructions of set-up per host at 8 192 hosts, and their ratio to those at 1 024."""
    per_host = {}
    for name, hosts in HOSTS.items():
        counted = instructions.count(program, "k32", f"topology.k={name[1:]}", ENDS_AT_ONCE)
        per_host[name] = counted.instructions / hosts
    return {
        "setup_instructions_per_host": round(per_host["k32"]),
        "setup_growth": round(per_host["k32"] / per_host["k16"], 3),
    }


def hop_time_ratio(program: Path) -> float:
    """Return how many times the CPU time of a packet-hop at 320 hosts one takes at 8 192."""
    rounds = [
        {name: hop_time(program, name, setting) for name, setting in TIMED.items()} for _ in range(ROUNDS)
    ]
    lowest = {name: min(one[name] for one in rounds) for name in TIMED}
    return round(lowest["k32"] / lowest["fat320-dctcp"], 2)


def hop_time(program: Path, name: str, setting: str) -> float:
    """Return the CPU time in seconds of a packet-hop of a workload, without set-up."""
    (base, _), (whole, hops) = timed(program, name, ENDS_AT_ONCE), timed(program, name, setting)
    if hops == 0 or whole <= base:
        raise MeasureError(f"{name}: {hops} packet-hops in {whole - base:.3f} s of CPU time")
    return (whole - base) / hops


def timed(program: Path, name: str, setting: str) -> tuple[float, int]:
    """Run a workload with one key set; return the CPU time of the process in seconds, and its packet-hops."""
    command = [str(program), str(ROOT / "benches" / f"{name}.toml"), "--set", setting]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    printed, message = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise MeasureError(f"`{' '.join(command)}` ended with status {process.returncode}: {message.strip()}")
    return usage.ru_utime + usage.ru_stime, instructions.packet_hops(printed)


def stored() -> dict:
    """Return what was accepted last."""
    name = STORED.relative_to(ROOT)
    try:
        found = json.loads(STORED.read_text())
        readable = all(float(found["figures"][figure]) > 0 for figure in TOLERANCES) and found["compiler"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise MeasureError(f"{name} cannot be read ({error!r}); `{ACCEPT}` makes it") from None
    if not readable:
        raise MeasureError(f"{name}: not as this program writes it; `{ACCEPT}` makes it again")
    return found


def verdict(now: Mapping, then: Mapping) -> tuple[list[str], int]:
    """Compare two measurements; return what to say and the exit status, 1 when something has grown."""
    lines, status = [], 0
    judged = now["compiler"] == then["compiler"]
    for name, found in now["figures"].items():
        allowed, tolerance = then["figures"][name], TOLERANCES[name]
        change = (found - allowed) / allowed
        lines.append(f"{name}: {found:g}, stored {allowed:g} ({change:+.1%})")
        if change > tolerance and judged:
            status = 1
            lines.append(f"failed: {name} is more than {tolerance:.0%} above; if it is worth it: `{ACCEPT}`")
        elif change < -tolerance and judged:
            lines.append(f"better by more than {tolerance:.0%}: keep it so with `{ACCEPT}`")
    if not judged:
        made = ", ".join(map(str, then["compiler"].values()))
        lines.append(f"warning: not judged, because stored with {made}; `{ACCEPT}` stores these")
    return [f"at scale: {line}" for line in lines], status


if __name__ == "__main__":
    sys.exit(main())
