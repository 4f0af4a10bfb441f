"""Runs points into a store: one run a core, in threads of this process.

The engine lets go of the interpreter's lock while it runs, so threads use every core. A thread takes the
next point, holds it in the store, runs it into a folder of its own and moves that to its place. A point
begins only when the memory it is expected to need is free, or when nothing else runs.

An error of one point is recorded and the others continue. A full disk ends everything, since no point could
continue.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import errno
import math
import os
import shutil
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weftline import quantities
from weftline.errors import InputError, RunFailed, WeftlineWarning, warn
from weftline.sweeps.states import state_of
from weftline.sweeps.store import Point, Store, Unread
from weftline.terminal import share_done

MIN_FREE_BYTES = 4 << 20
"""With less room on the disk a failed run is taken for one that found no room."""
NO_ROOM = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the quota of the disk is used up",
    errno.EFBIG: "a file is larger than allowed (ulimit -f)",
    errno.EROFS: "the file system can only be read",
}
"""Errors of the place where runs are stored, whatever is run, and what they mean."""
AROUND_SECONDS = 0.004
"""Time of a run outside its simulation: read the scenario, write the folder (10 000 runs of 20 flows)."""
_LET_GO_SECONDS = 1.0
"""How long runs have to end after an interrupt, before controllers in Python are interrupted themselves."""
_WAIT_SECONDS = 0.5
"""How often a point that another sweep runs is looked after."""
_PATIENCE_SECONDS = 10.0
"""After this time in which only other processes run points, a warning names them."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What `weftline check` expects of one run."""

    seconds: float
    memory_bytes: float
    """Beyond the program itself."""


@dataclass(kw_only=True)
class Outcome:
    """How a call of `run` ended."""

    failed: list[tuple[Point, str]] = field(default_factory=list)
    """Points without results and why, those that failed earlier and were not tried again included."""
    ran: int = 0
    interrupted: bool = False
    stopped: str = ""
    """Why no point could continue, if so."""
    unwritten: bool = False
    """Nothing was left to run, and nothing can be written into the store: a remark states why."""
    remarks: list[str] = field(default_factory=list)


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cost_of(point: Point, *, max_flows: int | None = None) -> Cost:
    """Return what a point is expected to need, where `max_flows` is given by its first flows alone."""
    found = point.scenario().estimate(max_flows=max_flows)
    memory = found["memory_bytes"] - found.get("memory", {}).get("program_bytes", 0)
    return Cost(seconds=AROUND_SECONDS + float(found["seconds"]), memory_bytes=max(0.0, float(memory)))


def free_memory() -> float:
    """Return how many bytes this process may still take, infinite where the system does not say."""
    found = float("inf")
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found = 1024.0 * int(line.split()[1])
        group = Path("/sys/fs/cgroup")
        highest = (group / "memory.max").read_text().strip()
        if highest != "max":
            found = min(found, float(highest) - float((group / "memory.current").read_text()))
    except (OSError, ValueError, IndexError):
        pass
    return found


def weights(points: Sequence[Point], costs: Mapping[str, Cost]) -> dict[str, float]:
    """Return the time that each point is expected to take, in any unit, by key."""
    known = [costs[point.key].seconds for point in points if point.key in costs]
    usual = sum(known) / len(known) if known else 1.0
    return {p.key: max(1e-6, costs[p.key].seconds if p.key in costs else usual) for p in points}


def waiting(
    points: Sequence[Point], store: Store, *, retry: bool, touch: bool = True
) -> tuple[list[Point], Outcome]:
    """Return the points to be run, each once, and what is known of the others.

    What killed processes left is cleared, and damaged folders are put aside, so that nothing is lost and they
    run again; unless `touch` is False.
    """
    wanted: list[Point] = []
    outcome = Outcome()
    if touch:
        store.clear_up()
        outcome.remarks += store.remarks
        store.remarks = []
    by_key = {point.key: point for point in points}
    finished = store.finished(list(by_key), note=touch)
    older = sum(not entry.covered for entry in finished.values())
    if touch and older:
        outcome.remarks.append(
            f"an earlier version of weftline wrote {older} of the runs, without digests.json: damage to "
            "them would not be noticed"
        )
    for key, point in by_key.items():
        if key in finished:
            continue
        if touch and point.folder.exists():
            aside = store.put_aside_point(key)
            if aside and key in store.damaged:
                remark = f"{point.name}, seed {point.seed}: damaged results are now in {aside}"
                outcome.remarks.append(f"{remark} ({store.damaged[key]})")
        why = None if retry else store.failure(point.key, of_run=True)
        if why is None:
            wanted.append(point)
        else:
            outcome.failed.append((point, why))
    return wanted, outcome


def run(
    points: Sequence[Point],
    store: Store,
    *,
    jobs: int,
    threads: int = 1,
    retry: bool = False,
    name: str = "",
    show: Callable[[str], None] | None = None,
    costs: Mapping[str, Cost] | None = None,
    until: float | None = None,
) -> Outcome:
    """Run what has no results yet, `jobs` at a time, each on `threads` threads.

    Parameters
    ----------
    points : sequence of Point
        What is wanted, in the order in which it is run.
    store : Store
        Where results are kept.
    retry : bool
        Whether points that failed earlier are tried again.
    name : str
        Of the whole, for the line of progress.
    show : callable, optional
        Given the line of progress several times a second.
    costs : mapping of key to Cost, optional
        What points are expected to need; without it memory is not looked after.
    until : float, optional
        Time of `time.monotonic` by which all is to be over: a point that would probably end later is left,
        and so are those after it.
    """
    wanted, outcome = waiting(points, store, retry=retry)
    if not wanted:
        return outcome
    total = len({point.folder for point in points})
    work = _Work(wanted, store, outcome, threads=threads, costs=costs or {}, until=until)
    progress, others = Progress(name, total), Others(store)
    try:
        work.begin(min(jobs, len(wanted)))
        while not work.ended(within=0.2):
            elsewhere = work.only_elsewhere()
            if show:
                show(progress.text(work.left(), work.hops_so_far(), work.share(), waits=bool(elsewhere)))
            warn(others.warnings(elsewhere))
    except KeyboardInterrupt:
        outcome.interrupted = True
        work.stop("")
    except WeftlineWarning as warning:  # a filter of the user makes it an error
        work.stop(str(warning))
    asked = time.monotonic()
    while True:
        # Runs let go within a tenth of a second; a second Ctrl-C has nothing to hasten.
        with contextlib.suppress(KeyboardInterrupt):
            if work.ended(within=0.2):
                return outcome
            passed = time.monotonic() - asked
            if outcome.interrupted and passed > _LET_GO_SECONDS:
                work.interrupt_laws()
            if outcome.interrupted and passed > 2 * _LET_GO_SECONDS and work.is_held_by_laws():
                _end_process_without(work)
                return outcome


def _end_process_without(work: _Work) -> None:
    """Let this process end although threads compute that nothing interrupts: Python would wait, or abort."""

    def end() -> None:
        if not work.ended(within=0.0):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)

    atexit.register(end)


class _Work:
    """The points that are left, shared by the threads that run them."""

    def __init__(
        self,
        wanted: Sequence[Point],
        store: Store,
        outcome: Outcome,
        *,
        threads: int,
        costs: Mapping[str, Cost],
        until: float | None = None,
    ) -> None:
        self._until = until
        self._states: dict[str, dict[str, Any]] = {}
        """The progress of the points under way."""
        self._hops = 0
        """Packet-hops of the points that ended."""
        self._weights = weights(wanted, costs)
        self._ended = 0.0
        """Weight of the points that ended."""
        self._queue = deque(wanted)
        self._elsewhere: deque[Point] = deque()
        """Points that another process runs."""
        self._met: set[str] = set()
        """Keys of points that were there once."""
        self._others: dict[str, Point] = {}
        """Points that another process ran when they were looked after last."""
        self._claimed = 0
        """How many points this process runs."""
        self._store, self._outcome, self._threads, self._costs = store, outcome, threads, costs
        self._memory = 0.9 * free_memory()
        self._held = 0.0
        self._running = 0
        self._stopping = False
        self._crew = 0
        self._in_laws: set[int] = set()
        """Threads whose run calls a controller in Python, which may not return."""
        self._interrupted: set[int] = set()
        """Those of them that were interrupted."""
        self._all_home = threading.Event()
        self._changed = threading.Condition()

    def begin(self, jobs: int) -> None:
        """Start the threads."""
        for number in range(jobs):
            with self._changed:
                self._crew += 1
                self._all_home.clear()
            threading.Thread(target=self._go, name=f"weftline-{number}", daemon=True).start()

    def ended(self, *, within: float) -> bool:
        """Wait at most this number of seconds for the threads to end, and return whether they have.

        Not by joining them: Python 3.11 takes a thread for dead when Ctrl-C comes into a join.
        """
        return self._all_home.wait(within)

    def left(self) -> int:
        """Return how many points have not ended."""
        return len(self._queue) + len(self._elsewhere) + self._running

    def only_elsewhere(self) -> list[Point]:
        """Return the points that other processes run, where nothing else is left."""
        with self._changed:
            idle = not self._queue and not self._claimed and not self._stopping
            return list(self._others.values()) if idle else []

    def hops_so_far(self) -> float:
        """Return the packet-hops of the points that ended and of those under way."""
        return self._hops + sum(state.get("packet_hops", 0) for state in list(self._states.values()))

    def share(self) -> float:
        """Return how much of the work is done, 0 to 1, each point weighed by its expected time."""
        under_way = [self._weights[key] * share_done(state) for key, state in list(self._states.items())]
        return (self._ended + sum(under_way)) / sum(self._weights.values())

    def stop(self, why: str) -> None:
        """End as soon as the runs under way let go."""
        with self._changed:
            self._stopping = True
            self._outcome.stopped = self._outcome.stopped or why
            self._changed.notify_all()

    def interrupt_laws(self) -> None:
        """Raise KeyboardInterrupt, once, in every thread whose run calls a controller in Python."""
        with self._changed:
            for thread in self._in_laws - self._interrupted:
                _raise_in(thread, KeyboardInterrupt)
            self._interrupted |= self._in_laws

    def is_held_by_laws(self) -> bool:
        """Return whether all threads that have not ended were interrupted, and still compute."""
        with self._changed:
            return len(self._in_laws & self._interrupted) == self._crew

    @contextlib.contextmanager
    def _interruptible(self, point: Point) -> Iterator[None]:
        """Let `interrupt_laws` reach this thread meanwhile, if the point has controllers in Python."""
        thread = threading.get_ident()
        if point.source.controllers:
            self._in_laws.add(thread)
        try:
            yield
        finally:
            with self._changed:
                self._in_laws.discard(thread)
                # What came too late for the law must not come into the storing of results.
                _raise_in(thread, None)

    def _go(self) -> None:
        try:
            self._work_off()
        finally:
            with self._changed:
                self._crew -= 1
                if not self._crew:
                    self._all_home.set()

    def _work_off(self) -> None:
        """Run points until none is left."""
        while (point := self._next()) is not None:
            try:
                taken = self._attempt(point)
            except OSError as error:
                taken = True
                self.stop(error_text(error, self._store))
            with self._changed:
                self._running -= 1
                self._held -= self._need(point)
                if taken:
                    self._ended += self._weights[point.key]
                    self._changed.notify_all()
                else:
                    self._elsewhere.append(point)

    def _need(self, point: Point) -> float:
        cost = self._costs.get(point.key)
        return cost.memory_bytes if cost else 0.0

    def _next(self) -> Point | None:
        with self._changed:
            while not self._stopping:
                if self._queue:
                    if self._is_too_late_for(self._queue[0]):
                        return None
                    if not self._running or self._held + self._need(self._queue[0]) <= self._memory:
                        return self._take(self._queue)
                    self._changed.wait()
                elif self._elsewhere:
                    self._changed.wait(_WAIT_SECONDS)
                    if self._elsewhere and not self._stopping:
                        return self._take(self._elsewhere)
                else:
                    return None
        return None

    def _is_too_late_for(self, point: Point) -> bool:
        cost = self._costs.get(point.key)
        return self._until is not None and time.monotonic() + (cost.seconds if cost else 0.0) > self._until

    def _take(self, queue: deque[Point]) -> Point:
        point = queue.popleft()
        self._running += 1
        self._held += self._need(point)
        return point

    def _attempt(self, point: Point) -> bool:
        """Run one point; return False if another process is at it."""
        claim = self._store.claim(point.key)
        with self._changed:
            if claim is None:
                self._met.add(point.key)
                self._others[point.key] = point
                return False
            self._others.pop(point.key, None)
            self._claimed += 1
        try:
            # Another one may have finished it, or tried, meanwhile.
            why = self._store.failure(point.key) if point.key in self._met else None
            if why is not None:
                self._lost(point, why)
            elif state_of(point.folder) != "finished":
                self._one(point, self._store.begin(point.key, claim))
        finally:
            claim.release()
            with self._changed:
                self._claimed -= 1
        return True

    def _lost(self, point: Point, why: str) -> None:
        with self._changed:
            self._outcome.failed.append((point, why))

    def _one(self, point: Point, part: Path) -> None:
        """Run one point into `part`; its results go to their place, or its error on record."""
        why = self._run(point, part)
        if why is None and self._stopping and state_of(part) != "finished":
            shutil.rmtree(part, ignore_errors=True)
            return
        if why is None:
            self._store.keep(point, part)
            with self._changed:
                self._outcome.ran += 1
            return
        if room := no_room(why, self._store.path):
            shutil.rmtree(part, ignore_errors=True)
            self.stop(f"{self._store.path}: {room} ({why})")
            return
        self._lost(point, self._store.fail(point, why, part))

    def _run(self, point: Point, part: Path) -> str | None:
        """Run one point; return why it has no results, None if it has or was interrupted."""

        def progress(state: dict[str, Any]) -> None:
            self._states[point.key] = state
            if self._stopping:
                raise KeyboardInterrupt

        try:
            try:
                scenario = point.scenario()
            except (InputError, RunFailed) as error:
                return Unread(error)
            with self._interruptible(point):
                found = scenario.start(threads=self._threads, out=part, force=True, progress=progress)
        except KeyboardInterrupt:
            return None
        except (InputError, RunFailed) as error:
            return str(error)
        except OSError:
            raise
        except BaseException as error:  # a panic of the engine is none of Python's ordinary exceptions
            return f"internal error of weftline, please report it: {error}"
        finally:
            self._states.pop(point.key, None)
        self._hops += found.summary.get("packet_hops") or 0
        if found.summary.get("status") == "memory-limit":
            return found.summary.get("reason") or "the memory limit was reached"
        return None


def _raise_in(thread: int, what: type[BaseException] | None) -> None:
    """Let a thread raise an exception where it next runs Python; None: not raise one that is waiting."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), None if what is None else ctypes.py_object(what)
    )


def no_room(why: str, path: Path | None = None) -> str:
    """Return which error of the place where runs are stored a run failed with, "" if with another one.

    With a path, little room on its disk is taken for the reason of any error.
    """
    for code, text in NO_ROOM.items():
        if f"os error {code})" in why or os.strerror(code) in why:
            return text
    with contextlib.suppress(OSError):
        if path is not None and shutil.disk_usage(path).free < MIN_FREE_BYTES:
            return NO_ROOM[errno.ENOSPC]
    return ""


def error_text(error: OSError, store: Store) -> str:
    """Return what an error of the file system means for a store."""
    what = NO_ROOM.get(error.errno or 0) or error.strerror or str(error)
    return f"{error.filename or store.path}: {what}"


class Others:
    """Warns, once, that a sweep has waited for other processes for a while: one of them may never end."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._since = math.inf
        self._has_warned = False

    def warnings(self, points: Sequence[Point]) -> list[str]:
        """Return the warning when it is due; `points` are what others run, where nothing else is left."""
        if not points or self._has_warned:
            self._since = math.inf
            return []
        self._since = min(self._since, time.monotonic())
        if time.monotonic() - self._since < _PATIENCE_SECONDS:
            return []
        self._has_warned = True
        first, more = points[0], len(points) - 1
        holder = self._store.holder(first.key)
        named = f"{first.name}, seed {first.seed}" + (f" and {more} more" if more else "")
        return [
            f"{self._store.path}: {holder or 'another process'} runs all that is left: {named}. This sweep "
            "waits for its results; if that process is stuck, end it, and this sweep runs what it held"
        ]


class Progress:
    """Progress of a running sweep: points, packet-hops a second, time left."""

    def __init__(self, name: str, total: int) -> None:
        self._name, self._total = name, total
        self._began = time.monotonic()

    def text(self, left: int, hops: float, share: float, *, waits: bool = False) -> str:
        """Return the line: `left` points have not ended; packet-hops and share of the work that are done.

        `waits`: other processes run all that is left.
        """
        seconds = max(1e-3, time.monotonic() - self._began)
        parts = [f"{self._name}  {self._total - left}/{self._total} runs"]
        if hops:
            parts.append(f"{quantities.count_text(hops / seconds)} packet-hops/s")
        if share > 0.02:
            parts.append(f"{quantities.seconds_text(round(seconds * (1 - share) / share))} left")
        if waits:
            parts.append("waiting for another process")
        return "  ".join(parts)
