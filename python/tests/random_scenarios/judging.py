"""Runs one scenario in every way and states what is wrong with it.

The native module works in a process of its own, so that a crash or a hang ends that process and not the
search. A scenario is checked, run through the module with its results read from the files, then run with 1, 2
and 4 threads by the engine alone, in a release build and in a debug build with all its assertions: every run
must have the same bits.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from drawing import MAX_SECONDS, without_numbers

ROOT = Path(__file__).resolve().parents[3]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
THREADS = ("1", "2", "4")
FACTOR, GRACE_SECONDS = 10, 0.05
"""A run may take this many times its estimate, and this on top."""
RELEASE_SECONDS, DEBUG_SECONDS = 20, 120
"""Deadlines of all runs of a build; a scenario is estimated at a tenth of a second."""
STALLED = {"release": 10, "debug": 100}
"""What a run of a build may take of the estimate for flows that stall, in addition to these."""
PATIENCE = 2
"""How often a deadline must pass before a run counts as one that hangs. Where all processes were stopped for
a while (a suspended machine, SIGSTOP), the first passes as soon as they continue; a deadlock passes each."""
BUSY = 10
"""The same for a process that has had less CPU time than its deadline, as on a busy machine."""
MEMORY = 6 << 30
BEYOND_THE_CLOCK = "the limit of the clock"
"""What the error of a run contains that would last longer than the engine counts. Losses and repeats decide
that, so that only the run can tell."""


@dataclass(frozen=True)
class Failure:
    """What is wrong with a scenario. ``kind``: the stage that failed; ``text``: what was found, in full."""

    kind: str
    text: str

    @property
    def name(self) -> str:
        """What stays the same when the scenario is made smaller."""
        return f"{self.kind}: {without_numbers(self.text.splitlines()[0])[:120]}"


class GoneError(Exception):
    """The process of the native module has crashed or was stopped at its deadline."""


class Native:
    """The native module in a process of its own, which is started again when it has ended."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.process: subprocess.Popen | None = None

    def ask(self, operation: str, text: str, seconds: float = RELEASE_SECONDS, **arguments: object) -> dict:
        """Return the answer; raise ``ValueError`` if it is an error about the input, else ``GoneError``."""
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, str(Path(__file__).parent / "native_process.py"), str(self.base)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                preexec_fn=limit_memory,
            )
        process = self.process
        answered, late = threading.Event(), threading.Event()

        def watch() -> None:
            if is_late(answered.wait, process.pid, seconds):
                late.set()
                process.kill()

        threading.Thread(target=watch, daemon=True).start()
        try:
            process.stdin.write(json.dumps({"operation": operation, "text": text, **arguments}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        answered.set()
        if not line or late.is_set():
            process.kill()
            message = process.communicate()[1]
            self.process = None
            raise GoneError(
                f"no answer to {operation} in {seconds} s"
                if late.is_set()
                else f"{operation} ended it: {last(message)}"
            )
        answer = json.loads(line)
        if "input_error" in answer:
            raise ValueError(answer["input_error"])
        return answer

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait(timeout=10)


class Judge:
    """Judges scenarios, in a folder from which the files that they name are found."""

    def __init__(self, folder: Path) -> None:
        self.base = folder / "trials" / "random"
        self.base.mkdir(parents=True, exist_ok=True)
        if not (folder / "crates").exists():
            (folder / "crates").symlink_to(ROOT / "crates")
        self.native = Native(self.base)
        self.seconds = 0.0
        """CPU time of the runs through the module, over all scenarios."""
        self.hops = 0
        self.longer = 0
        """Runs that took more than ten times their estimate because they lasted longer in simulated time, or
        that reached the end of the clock."""

    def judge(self, text: str) -> Failure | None:
        """Return the first thing that is wrong with a scenario; of one that would take too long, nothing."""
        try:
            report = self.native.ask("check", text)
        except ValueError as error:
            return Failure("check", str(error))
        except GoneError as error:
            return Failure("check", str(error))
        seconds = report["estimate"]["seconds"]
        if seconds > MAX_SECONDS * report["estimate"]["machine_factor"]:
            return None
        try:
            answer = self.run(text, seconds)
        except ValueError as error:
            if BEYOND_THE_CLOCK in str(error):
                self.longer += 1
                return None
            return Failure("refused after check accepted it", str(error))
        except GoneError as error:
            return Failure("run", str(error))
        if answer["wrong"]:
            return Failure("results", "\n".join(answer["wrong"]))
        self.seconds += answer["cpu_seconds"]
        self.hops += answer["packet_hops"]
        # Nothing predicts what timeouts add to the simulated time; measures continue through it.
        longer = max(answer["end_ns"] / max(report["estimate"]["end_ns"], 1), 1)
        if answer["cpu_seconds"] > FACTOR * seconds + GRACE_SECONDS:
            self.longer += longer > 1
        limit = FACTOR * seconds * longer + GRACE_SECONDS
        if answer["cpu_seconds"] > limit:
            try:
                fastest = min(self.run(text, seconds)["cpu_seconds"] for _ in range(3))
            except GoneError as error:
                return Failure("run again", str(error))
            if fastest > limit:
                return Failure("time", f"took {fastest:.3f} s of CPU time, estimated at {seconds:.4f} s")
        stalled = (report["estimate"].get("if_stalled") or {}).get("seconds", 0)
        return self.same_bits(text, answer["fingerprint"], stalled)

    def run(self, text: str, seconds: float) -> dict:
        """Run through the native module, and check the files."""
        return self.native.ask("run", text, RELEASE_SECONDS + 100 * seconds)

    def same_bits(self, text: str, fingerprint: str, stalled: float) -> Failure | None:
        """Run with several threads, in both builds; ``stalled``: estimated seconds where flows stall."""
        first: dict | None = None
        for build, seconds in (("release", RELEASE_SECONDS), ("debug", DEBUG_SECONDS)):
            seconds += len(THREADS) * STALLED[build] * stalled
            with tempfile.NamedTemporaryFile("w", suffix=".toml", dir=self.base) as file:
                file.write(text)
                file.flush()
                command = [TARGET / build / "examples" / "same_bits", file.name, *THREADS]
                process = subprocess.Popen(
                    command,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    preexec_fn=limit_memory,
                )
                if is_late(lambda wait, process=process: ended(process, wait), process.pid, seconds):
                    state = threads_of(process.pid)
                    process.kill()
                    threads = THREADS[process.communicate()[0].count("\n")]
                    return Failure(
                        f"{build} build", f"did not end in {seconds} s with {threads} threads ({state})"
                    )
                out, message = process.communicate()
            lines = [json.loads(line) for line in out.splitlines()]
            if process.returncode:
                threads = THREADS[min(len(lines), len(THREADS) - 1)]
                return Failure(f"{build} build", f"{last(message)} (with {threads} threads)")
            for line in lines:
                line.pop("seconds")
                first = first or {**line, "fingerprint": fingerprint}
                differ = [key for key in line if key != "threads" and line[key] != first[key]]
                if differ:
                    threads = line["threads"]
                    kind = f"{build} build" if threads == 1 else f"{build} build, several threads"
                    return Failure(
                        kind, f"other bits than the module's: {', '.join(differ)} ({threads} threads)"
                    )
        return None

    def close(self) -> None:
        """End the processes."""
        self.native.close()


def build() -> None:
    """Build what runs a scenario without Python, in both builds."""
    for flags in ([], ["--release"]):
        # Of the whole workspace: with the features of its dependencies nothing is compiled a second time.
        command = ["cargo", "build", "--quiet", "--workspace", "--example", "same_bits", *flags]
        subprocess.run(command, cwd=ROOT, check=True)


def limit_memory() -> None:
    """Let a process fail that would take the machine's memory."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def is_late(ended: Callable[[float], bool], process: int, seconds: float) -> bool:
    """Return whether a process works for longer than its deadline; ``ended`` waits for its end."""
    began = cpu_seconds(process)
    for times in range(1, BUSY + 1):
        if ended(seconds):
            return False
        if times >= PATIENCE and cpu_seconds(process) - began >= seconds:
            break
    return True


def ended(process: subprocess.Popen, seconds: float) -> bool:
    """Wait for the end of a process that writes little; return whether it came within this time."""
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def cpu_seconds(process: int) -> float:
    """Return the CPU time that a process has used; 0 after its end."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def threads_of(process: int) -> str:
    """Return whether each thread of a process waits (S) or works (R), and its CPU time."""
    found = []
    for path in sorted(Path(f"/proc/{process}/task").glob("*/stat")):
        fields = path.read_text().rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])
        found.append(f"{fields[0]} {ticks / os.sysconf('SC_CLK_TCK'):.2f} s")
    return "threads: " + ", ".join(found)


def last(message: str) -> str:
    """Return the message of a panic or an error, without the place of the process."""
    panic = re.search(r"panicked at (.*?):\d+:\d+:\n(.*)", message)
    if panic:
        return f"panic in {panic[1]}: {panic[2]}"
    memory = re.search(r"memory allocation of \d+ bytes failed", message)
    if memory:
        return memory[0]
    lines = [line for line in message.splitlines() if line.strip()]
    return lines[-1] if lines else "without a word"
