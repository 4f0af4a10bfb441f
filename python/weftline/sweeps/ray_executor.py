"""Runs points into a store on a Ray cluster: the one that is there (RAY_ADDRESS, or on this machine), or its
own.

Points are handed over in groups that take a second or more, since a task of Ray costs about a millisecond.
Results come back as bytes, so that nodes need no file system in common, and only this process writes into the
store: what is finished is kept whatever happens to the cluster.

The points of a group whose worker or node dies are run again, each in a group of its own, so that one that
kills its worker takes no others with it; Ray runs nothing again by itself. When cores are free at the end,
the points of a group that is late are started a second time elsewhere: the same bits, so the first answer
counts. Before the first run every node reports what it would compute with (`ray_nodes`), and every answer
does; a node that would compute other bits ends the sweep.

Ray is used by a process of its own (`ray_driver`), whose output goes to ``ray.log`` in the store.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from weftline import _native, scenarios
from weftline.controllers import Law
from weftline.errors import InputError, RunFailed, WeftlineWarning, warn
from weftline.sweeps import executor, ray_nodes, ray_worker
from weftline.sweeps.executor import Cost, Others, Outcome, Progress
from weftline.sweeps.states import state_of
from weftline.sweeps.store import Claim, Point, Store

DRIVER = "weftline.sweeps.ray_driver"
GROUP_SECONDS = 2.0
"""How long a group should take."""
MAX_IN_GROUP = 500
MIN_MEMORY = 100e6
"""Below this, the memory of a run is not reported to Ray."""
MAX_LOST = 4
"""A point whose worker or node died this often has failed."""
LATE_FACTOR, LATE_SECONDS = 3.0, 10.0
"""A group is late when it takes this factor of its expected time, and this time more."""
_WRITERS = 8
"""Results that are written at a time: a disk takes milliseconds to confirm one, but many in parallel."""
_START_SECONDS = 240.0
"""Longer than the driver may take to connect, to find a node and to ask all nodes."""
_END_SECONDS = 15.0


def run(
    points: Sequence[Point],
    kept: Store,
    *,
    jobs: int,
    threads: int = 1,
    retry: bool = False,
    name: str = "",
    show: Callable[[str], None] | None = None,
    costs: Mapping[str, Cost] | None = None,
) -> Outcome:
    """Run what has no results yet; see `executor.run`, whose arguments these are.

    `jobs` is for a cluster that is started here; one that is there is used with all the cores it has.

    Raises
    ------
    InputError
        If Ray is not installed.
    """
    wanted, outcome = executor.waiting(points, kept, retry=retry)
    if not wanted:
        return outcome
    _check_installed()
    total = len({point.folder for point in points})
    work = _Work(wanted, kept, outcome, threads=threads, costs=costs or {})
    progress, others = Progress(name, total), Others(kept)

    def look() -> None:
        elsewhere = work.only_elsewhere()
        if show:
            show(progress.text(work.left(), work.hops, work.share(), waits=bool(elsewhere)))
        warn(others.warnings(elsewhere))

    ours, theirs = Pipe()
    log = kept.path / "ray.log"
    child = _start(theirs, log, jobs=jobs, threads=threads)
    theirs.close()
    try:
        _work_off(work, ours, look)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        outcome.stopped = outcome.stopped or f"Lost the connection to Ray; see {log}"
    except OSError as error:
        outcome.stopped = executor.error_text(error, kept)
    except KeyboardInterrupt:
        outcome.interrupted = True
    except WeftlineWarning as warning:  # a filter of the user makes it an error
        outcome.stopped = str(warning)
    finally:
        work.release()
        ours.close()
        _end(child)
    outcome.remarks += work.remarks()
    return outcome


@cache
def _law_as_bytes(law: Law) -> tuple[str, bytes]:
    """Return a controller in Python with all the user's code that it needs, which workers do not have."""
    from ray import cloudpickle

    modules = law.modules.values()
    with law.own_modules():
        for module in modules:
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
        try:
            data = cloudpickle.dumps(law.make)  # type: ignore[no-untyped-call]
        except Exception as error:
            text = f'--on ray: controller "{law.name}" cannot be sent to a worker: {error}'
            raise InputError(text) from None
        finally:
            for module in modules:
                cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return hashlib.sha256(data).hexdigest(), data


def _check_installed() -> None:
    from importlib.util import find_spec

    if find_spec("ray") is None:
        raise InputError("--on ray: Ray is not installed: pip install ray")


def _start(theirs: Connection, log: Path, *, jobs: int, threads: int) -> subprocess.Popen[Any]:
    """Start the process that is connected to Ray; signals of the terminal do not reach it."""
    home = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(part for part in (home, os.environ.get("PYTHONPATH", "")) if part)
    with log.open("wb") as out:
        return subprocess.Popen(
            [sys.executable, "-m", DRIVER, str(theirs.fileno()), str(jobs), str(threads)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": path, "RAY_USAGE_STATS_ENABLED": "0"},
        )


def _end(child: subprocess.Popen[Any]) -> None:
    try:
        child.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _work_off(work: _Work, ours: Connection, look: Callable[[], None]) -> None:
    """Hand over groups and take answers until no point is left, or none can continue."""
    slots = 0
    until = time.monotonic() + _START_SECONDS
    while work.left() and not work.outcome.stopped:
        for message in work.messages(slots):
            ours.send(message)
        look()
        if not ours.poll(0.2):
            if not slots and time.monotonic() > until:
                where = os.environ.get("RAY_ADDRESS")
                what = f"the Ray at {where} (RAY_ADDRESS) did not answer" if where else "Ray did not start"
                work.outcome.stopped = f"{what} within {_START_SECONDS:.0f} s; see ray.log in the store"
            continue
        what, *rest = ours.recv()
        if what in ("ready", "slots"):
            slots = rest[0]
        elif what == "done":
            work.take(*rest)
        elif what == "lost":
            work.lost(*rest)
        else:
            work.outcome.stopped = f"Ray: {rest[0]}"


@dataclass(frozen=True)
class _Group:
    """Points that are with Ray together."""

    points: list[Point]
    sent: float
    """When, on the monotonic clock."""


class _Work:
    """The points that are left, and the groups that are with Ray."""

    def __init__(
        self,
        wanted: Sequence[Point],
        kept: Store,
        outcome: Outcome,
        *,
        threads: int,
        costs: Mapping[str, Cost],
    ) -> None:
        self.outcome = outcome
        self.hops = 0
        self._weights = executor.weights(wanted, costs)
        self._ended = 0.0
        """Weight of the points that ended."""
        self._queue = deque(wanted)
        self._kept, self._threads, self._costs = kept, threads, costs
        self._lost: Counter[str] = Counter()
        """How often the group of a point was lost; such a point is tried by itself."""
        self._late: dict[str, str] = {}
        """Points that were started a second time, and their names."""
        self._why = ""
        """Why the last group was lost."""
        self._groups: dict[int, _Group] = {}
        self._claims: dict[str, Claim] = {}
        """Of the points that are with Ray."""
        self._number = 0
        self._sent: set[str] = set()
        """Digests of the files that Ray has."""
        self._later = 0.0
        """When the points are looked after again that another process runs; 0: others do not run all."""
        self._expected = self._took = 0.0
        """Seconds of the points that ended: as estimated, and as they were."""

    def left(self) -> int:
        """Return how many points have not ended."""
        return len(self._queue) + len(self._claims)

    def only_elsewhere(self) -> list[Point]:
        """Return the points that other processes run, where nothing else is left."""
        return list(self._queue) if not self._groups and self._later else []

    def share(self) -> float:
        """Return how much of the work is done, 0 to 1, each point weighed by its expected time."""
        return self._ended / sum(self._weights.values())

    def release(self) -> None:
        """Give back every claim."""
        for claim in self._claims.values():
            claim.release()
        self._claims.clear()

    def messages(self, slots: int) -> list[tuple[Any, ...]]:
        """Return what is to be sent so that every slot has a group at work and one in line."""
        found: list[tuple[Any, ...]] = []
        while len(self._groups) < 2 * slots and self._queue and time.monotonic() >= self._later:
            group = self._group(slots)
            if not group:
                break
            found += self._sent_as_group(group)
        for point in self._late_points(slots - len(self._groups)):
            self._late[point.key] = f"{point.name}, seed {point.seed}"
            found += self._sent_as_group([point])
        return found

    def _sent_as_group(self, group: list[Point]) -> Iterator[tuple[Any, ...]]:
        self._number += 1
        self._groups[self._number] = _Group(group, time.monotonic())
        specs = []
        for point in group:
            spec, files = self._spec(point)
            yield from (("file", digest, data) for digest, data in files.items())
            specs.append(spec)
        memory = max((self._costs[p.key].memory_bytes for p in group if p.key in self._costs), default=0)
        yield ("group", self._number, specs, int(memory) if memory > MIN_MEMORY else 0)

    def _late_points(self, free: int) -> list[Point]:
        """Return at most `free` points of late groups, each once; slots beyond the groups have no work."""
        now, found = time.monotonic(), []
        for group in self._groups.values():
            expected = sum(self._seconds(point) for point in group.points)
            if now - group.sent > LATE_FACTOR * expected + LATE_SECONDS:
                found += [p for p in group.points if p.key in self._claims and p.key not in self._late]
        return found[: max(0, free)]

    def _group(self, slots: int) -> list[Point]:
        """Take points that together run long enough, but leave the others their share of them."""
        highest = max(1, min(MAX_IN_GROUP, len(self._queue) // (2 * slots)))
        group: list[Point] = []
        seconds, looked_at = 0.0, len(self._queue)
        while self._queue and looked_at and len(group) < highest and seconds < GROUP_SECONDS:
            point = self._queue.popleft()
            looked_at -= 1
            if group and self._lost[point.key]:
                self._queue.append(point)
                continue
            if not self._hold(point):
                continue
            group.append(point)
            seconds += self._seconds(point)
            if self._lost[point.key]:
                break
        self._later = 0.0 if group else time.monotonic() + 0.5
        return group

    def _hold(self, point: Point) -> bool:
        """Claim a point; False if another process is at it, or was and has finished."""
        claim = self._kept.claim(point.key)
        if claim is None:
            self._queue.append(point)
            return False
        if state_of(point.folder) == "finished":
            claim.release()
            return False
        self._claims[point.key] = claim
        return True

    def _seconds(self, point: Point) -> float:
        cost = self._costs.get(point.key)
        expected = cost.seconds if cost else GROUP_SECONDS
        return expected * (self._took / self._expected if self._expected else 1.0)

    def _spec(self, point: Point) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Return what a worker needs for a point, and the files that Ray does not have yet."""
        text = point.scenario().resolved
        base_dir, names, files = point.source.base_dir, {}, {}
        named = {name: scenarios.files_of(base_dir, name) for name in scenarios.named_files(text, base_dir)}
        for path in (path for paths in named.values() for path in paths):
            data = path.read_bytes()
            digest = hashlib.sha256(data).hexdigest()
            names[str(path)] = digest
            if digest not in self._sent:
                self._sent.add(digest)
                files[digest] = data
        laws = {name: _law_as_bytes(law) for name, law in point.source.controllers.items()}
        for digest, data in laws.values():
            if digest not in self._sent:
                self._sent.add(digest)
                files[digest] = data
        spec = {
            "key": point.key,
            "text": text,
            "file": point.source.file,
            "base_dir": point.source.base_dir,
            "threads": self._threads,
            "named": {name: [str(path) for path in paths] for name, paths in named.items()},
            "files": names,
            "controllers": {name: digest for name, (digest, _) in laws.items()},
        }
        return spec, files

    def take(self, number: int, answer: Mapping[str, Any]) -> None:
        """Keep what a group found."""
        if why := ray_nodes.difference(answer["identity"], ray_worker.identity()):
            self.outcome.stopped = f"node {answer['node']} {why}"
            return
        points = {point.key: point for point in self._groups.pop(number).points}
        # What was late and has an answer is not open any more.
        found = [(points[r["key"]], r) for r in answer["results"] if r["key"] in self._claims]
        whole = [(point, result["files"]) for point, result in found if "error" not in result]
        with ThreadPoolExecutor(_WRITERS) as writers:
            reported = writers.map(lambda one: self._keep(*one), whole)
            damage = {point.key: why for (point, _), why in zip(whole, reported, strict=True)}
        for point, result in found:
            if executor.no_room(result.get("error", "")):
                self.outcome.stopped = f"node {answer['node']}: {result['error']}"
                continue
            if "error" in result:
                part = self._written(point, result.get("files") or {})
                self._fail(point, result["error"], part, named=result.get("folder", ""))
            elif why := damage.get(point.key):
                self._fail(point, why)
            else:
                self.outcome.ran += 1
                self.hops += result["hops"]
            self._ended += self._weights[point.key]
            if point.key in self._costs:
                self._expected += self._costs[point.key].seconds
                self._took += result["seconds"]
            self._claims.pop(point.key).release()

    def lost(self, number: int, why: str, again: bool) -> None:
        """Try the points of a lost group one at a time; give up what cannot be run, or was lost often."""
        points = self._groups.pop(number).points
        running = {point.key for group in self._groups.values() for point in group.points}
        self._why = why
        for point in points:
            if point.key not in self._claims or point.key in running:
                continue
            self._lost[point.key] += 1
            times = self._lost[point.key]
            if times >= MAX_LOST or (len(points) == 1 and not again):
                count = f"{times} times " if times > 1 else ""
                self._fail(point, f"lost by Ray {count}with its worker or node: {why}")
                self._ended += self._weights[point.key]
            else:
                self._queue.append(point)
            self._claims.pop(point.key).release()

    def remarks(self) -> list[str]:
        """Return sentences on what was run more than once."""
        found = []
        failed = {point.key for point, _ in self.outcome.failed}
        if again := len([key for key in self._lost if key not in failed]):
            runs_were = "1 run was" if again == 1 else f"{again} runs were"
            why = f"because Ray lost a worker or a node ({self._why})"
            found.append(f"{runs_were} started again, {why}; each result is stored once")
        if late := len(self._late):
            runs_were = "1 run was" if late == 1 else f"{late} runs were"
            which = next(iter(self._late.values())) + (", ..." if late > 1 else "")
            found.append(f"{runs_were} late and started a second time ({which}); the first answer counts")
        return found

    def _keep(self, point: Point, files: Mapping[str, bytes]) -> str | None:
        """Write the results of a point into the store; return why they are damaged, if so."""
        part = self._kept.begin(point.key, self._claims[point.key])
        try:
            self._write(part, files)
            _native.check_files(str(part))
            _native.sync_files(str(part))
        except InputError as error:
            shutil.rmtree(part, ignore_errors=True)
            return f"the results were damaged during the transfer from the worker: {error}"
        except (OSError, RunFailed):
            shutil.rmtree(part, ignore_errors=True)
            raise
        self._kept.keep(point, part)
        return None

    def _written(self, point: Point, files: Mapping[str, bytes]) -> Path | None:
        """Write what a failed run recorded into a folder and return it; None if it recorded nothing."""
        if not files:
            return None
        part = self._kept.begin(point.key, self._claims[point.key])
        self._write(part, files)
        return part

    @staticmethod
    def _write(part: Path, files: Mapping[str, bytes]) -> None:
        part.mkdir(parents=True)
        for name, data in files.items():
            (part / name).write_bytes(data)

    def _fail(self, point: Point, why: str, part: Path | None = None, *, named: str = "") -> None:
        self.outcome.failed.append((point, self._kept.fail(point, why, part, named=named)))
