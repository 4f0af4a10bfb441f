#!/usr/bin/env python3
"""Guards the packet loop: instructions per packet-hop, against what `benches/instructions.json` allows.

    python3 benches/instructions.py             # fails when a workload costs 3 % more than what is stored
    python3 benches/instructions.py --accept    # stores what is measured now

Each workload runs twice under callgrind, for a shorter and a longer time; the difference of their
instructions over the difference of their packet-hops is the cost of a packet-hop, without set-up. Unlike
seconds, instructions do not depend on how busy the machine is. They do depend on the compiler, so with
another one than the stored numbers were made with it only warns.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STORED = ROOT / "benches" / "instructions.json"
ACCEPT = "python3 benches/instructions.py --accept"
TOLERANCE = 0.03
"""What a change may add before someone has to look at it and say that it is worth it."""

ARRIVALS = "workload.0.duration"
LENGTHS = {
    "fat320-hpcc": (ARRIVALS, "30us", "60us"),
    "fat320-hpcc-pint": (ARRIVALS, "30us", "60us"),
    "fat320-dctcp": (ARRIVALS, "30us", "60us"),
    "pod": (ARRIVALS, "600us", "800us"),
    "w8-0.5": (ARRIVALS, "100us", "200us"),
    "imc10-phost": (ARRIVALS, "500us", "1ms"),
    "imc10-pfabric": (ARRIVALS, "500us", "1ms"),
    "row11-cebinae": ("run.until", "300ms", "600ms"),
    "row11-fq": ("run.until", "300ms", "600ms"),
    "pods-hula": (ARRIVALS, "2ms", "4ms"),
    "pods-mphula-mptcp": (ARRIVALS, "2ms", "4ms"),
    "leafspine-hpcc": (ARRIVALS, "50us", "100us"),
    "leafspine-powertcp": (ARRIVALS, "50us", "100us"),
    "leafspine-swift": (ARRIVALS, "50us", "100us"),
    "leafspine-ndp": (ARRIVALS, "50us", "100us"),
    "leafspine-homa": (ARRIVALS, "50us", "100us"),
}
"""The key that sets the length of a workload, its shorter and its longer value: enough packets to be like the
whole, few enough for seconds. Together they run every kind of transport, queue and switch that has a loop of
its own. The 320 hosts have hardly any queues so early; those of the pod are as they stay."""


class MeasureError(Exception):
    """A tool failed; the text says which and how."""


@dataclass(frozen=True, kw_only=True)
class Count:
    """One run under callgrind."""

    instructions: int
    packet_hops: int


def main(arguments: list[str] | None = None) -> int:
    """Measure, compare or store; return the exit status."""
    parser = argparse.ArgumentParser(description="Instructions per packet-hop, against the stored ones.")
    parser.add_argument("--accept", action="store_true", help=f"store what is measured in {STORED.name}")
    options = parser.parse_args(arguments)
    missing = [tool for tool in ("valgrind", "cargo") if shutil.which(tool) is None]
    if missing:
        print(f"instructions: skipped, {' and '.join(missing)} not found; such as: apt install valgrind")
        return 1 if options.accept else 0
    try:
        measured = {"compiler": compiler(), "workloads": measure()}
        if options.accept:
            STORED.write_text(json.dumps(measured, indent=2) + "\n")
            costs = (
                f"{name} {found['instructions_per_hop']:.1f}" for name, found in measured["workloads"].items()
            )
            print(f"instructions: {', '.join(costs)} a packet-hop, stored in {STORED.relative_to(ROOT)}")
            return 0
        lines, status = verdict(measured, stored())
    except MeasureError as error:
        print(f"instructions: {error}", file=sys.stderr)
        return 1
    print("\n".join(lines), file=sys.stderr if status else sys.stdout)
    return status


def compiler() -> dict:
    """Return what the count depends on except the source: the compiler's version and the architecture."""
    return {"rustc": _output(["rustc", "--version"]).strip(), "architecture": platform.machine()}


def measure() -> dict[str, dict]:
    """Build the example `hops` and return the cost of every workload."""
    program = build()
    return {
        name: cost(*(count(program, name, f"{key}={length}") for length in lengths))
        for name, (key, *lengths) in LENGTHS.items()
    }


def build() -> Path:
    """Build the example in release; return the program."""
    command = ["cargo", "build", "--release", "--workspace", "--example", "hops"]
    messages = _output([*command, "--quiet", "--message-format=json"])
    for line in messages.splitlines():
        message = json.loads(line)
        if message.get("executable") and message.get("target", {}).get("name") == "hops":
            return Path(message["executable"])
    raise MeasureError("cargo built no program called hops")


def count(program: Path, name: str, *settings: str) -> Count:
    """Run a workload with some keys set under callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "callgrind.out"
        tool = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={profile}"]
        scenario = str(ROOT / "benches" / f"{name}.toml")
        sets = [part for setting in settings for part in ("--set", setting)]
        printed = _output([*tool, str(program), scenario, *sets])
        return Count(instructions=total(profile.read_text()), packet_hops=packet_hops(printed))


def total(profile: str) -> int:
    """Return the instructions of a whole program from callgrind's file ("totals: N")."""
    for line in profile.splitlines():
        if line.startswith("totals:"):
            return int(line.split()[1])
    raise MeasureError("callgrind wrote no totals")


def packet_hops(printed: str) -> int:
    """Return the number in what `hops` prints."""
    key, _, number = printed.strip().partition(" ")
    if key != "packet_hops" or not number.isdecimal():
        raise MeasureError(f"expected packet_hops and a number from hops, found {printed[:80]!r}")
    return int(number)


def cost(short: Count, long: Count) -> dict:
    """Return the cost of a packet-hop from two runs; what both have in common, set-up, cancels."""
    hops = long.packet_hops - short.packet_hops
    if hops <= 0:
        raise MeasureError(f"the longer run has {-hops} packet-hops fewer than the shorter one")
    return {
        "instructions_per_hop": round((long.instructions - short.instructions) / hops, 1),
        "packet_hops": hops,
    }


def stored() -> dict:
    """Return what was accepted last."""
    name = STORED.relative_to(ROOT)
    try:
        found = json.loads(STORED.read_text())
    except (OSError, ValueError) as error:
        raise MeasureError(f"{name} cannot be read ({error}); `{ACCEPT}` makes it") from None
    try:
        costs = [float(entry["instructions_per_hop"]) for entry in found["workloads"].values()]
        readable = min(costs, default=1) > 0 and isinstance(found["compiler"], dict)
    except (KeyError, TypeError, ValueError, AttributeError):
        readable = False
    if not readable:
        raise MeasureError(f"{name}: not as this program writes it; `{ACCEPT}` makes it again")
    return found


def verdict(now: Mapping, then: Mapping) -> tuple[list[str], int]:
    """Compare two measurements; return what to say and the exit status, 1 when a workload got dearer."""
    lines, changes = [], []
    for name, found in now["workloads"].items():
        before = then["workloads"].get(name)
        if before is None:
            lines.append(f"{name}: nothing stored yet; `{ACCEPT}` stores it")
            continue
        cost, allowed = found["instructions_per_hop"], before["instructions_per_hop"]
        changes.append((cost - allowed) / allowed)
        lines.append(f"{name}: {cost:.1f} a packet-hop, stored {allowed:.1f} ({changes[-1]:+.1%})")
        if found["packet_hops"] != before.get("packet_hops"):
            lines[-1] += f"; other work: {found['packet_hops']} packet-hops, not {before.get('packet_hops')}"
    status, limit = 0, f"{TOLERANCE:.0%}"
    if now["compiler"] != then["compiler"]:
        made = ", ".join(map(str, then["compiler"].values()))
        lines.append(f"warning: not judged, because stored with {made}; `{ACCEPT}` stores these")
    elif max(changes, default=0) > TOLERANCE:
        status = 1
        lines.append(f"failed: more than {limit} above what is stored; if it is worth it: `{ACCEPT}`")
    elif min(changes, default=0) < -TOLERANCE:
        lines.append(f"better by more than {limit}: keep it so with `{ACCEPT}`")
    return [f"instructions: {line}" for line in lines], status


def _output(command: list[str]) -> str:
    """Run a tool in the repository and return what it prints; its errors go where ours go."""
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise MeasureError(f"`{' '.join(command)}` ended with status {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
