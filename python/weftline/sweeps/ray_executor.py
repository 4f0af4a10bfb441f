"""Runs points into a store on a Ray cluster: the one that is there (RAY_ADDRESS, or on this machine), or its
own.

Points are handed over in groups that take a second or more, since a task of Ray costs about a millisecond. A
group whose node dies is run elsewhere. Results come back as bytes, so that nodes need no file system in
common, and only this process writes into the store: what is finished is kept whatever happens to the cluster.

Ray is used by a process of its own (`ray_driver`), whose output goes to ``ray.log`` in the store.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from weftline import _native, own_schemes, runs, scenarios
from weftline.controllers import Law
from weftline.errors import InputError, RunFailed
from weftline.sweeps import executor
from weftline.sweeps.executor import Cost, Outcome, Progress
from weftline.sweeps.store import Claim, Point, Store, state_of

DRIVER = "weftline.sweeps.ray_driver"
GROUP_SECONDS = 2.0
"""How long a group should take."""
MAX_IN_GROUP = 500
MIN_MEMORY = 100e6
"""Below this, the memory of a run is not reported to Ray."""
_START_SECONDS = 120.0
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
    progress = Progress(name, total)
    ours, theirs = Pipe()
    log = kept.path / "ray.log"
    child = _start(theirs, log, jobs=jobs, threads=threads)
    theirs.close()
    try:
        _work_off(
            work, ours, lambda: show(progress.text(work.left(), work.hops, work.share())) if show else None
        )
    except (EOFError, BrokenPipeError, ConnectionResetError):
        outcome.stopped = outcome.stopped or f"Lost the connection to Ray; see {log}"
    except OSError as error:
        outcome.stopped = executor.error_text(error, kept)
    except KeyboardInterrupt:
        outcome.interrupted = True
    finally:
        work.release()
        ours.close()
        _end(child)
    return outcome


@cache
def _law_as_bytes(law: Law) -> tuple[str, bytes]:
    """Return a controller in Python with all the user's code that it needs, which workers do not have."""
    from ray import cloudpickle

    for module in law.modules.values():
        cloudpickle.register_pickle_by_value(module)
    try:
        data = cloudpickle.dumps(law.make)
    except Exception as error:
        raise InputError(f'--on ray: controller "{law.name}" cannot be sent to a worker: {error}') from None
    finally:
        for module in law.modules.values():
            cloudpickle.unregister_pickle_by_value(module)
    return hashlib.sha256(data).hexdigest(), data


def _check_installed() -> None:
    from importlib.util import find_spec

    if find_spec("ray") is None:
        raise InputError("--on ray: Ray is not installed: pip install 'weftline[ray]'")


def _start(theirs: Connection, log: Path, *, jobs: int, threads: int) -> subprocess.Popen:
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


def _end(child: subprocess.Popen) -> None:
    try:
        child.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _work_off(work: _Work, ours: Connection, show: Callable[[], None]) -> None:
    """Hand over groups and take answers until no point is left, or none can continue."""
    slots = 0
    until = time.monotonic() + _START_SECONDS
    while work.left() and not work.outcome.stopped:
        for message in work.messages(slots):
            ours.send(message)
        show()
        if not ours.poll(0.2):
            if not slots and time.monotonic() > until:
                work.outcome.stopped = (
                    f"Ray did not start within {_START_SECONDS:.0f} s; see ray.log in the store"
                )
            continue
        what, *rest = ours.recv()
        if what == "ready":
            slots = rest[0]
        elif what == "done":
            work.take(*rest)
        elif what == "lost":
            work.lost(*rest)
        else:
            work.outcome.stopped = f"Ray: {rest[0]}"


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
        self._alone: set[str] = set()
        """Points whose group was lost: each is tried by itself."""
        self._groups: dict[int, list[Point]] = {}
        self._claims: dict[str, Claim] = {}
        self._number = 0
        self._sent: set[str] = set()
        """Digests of the files that Ray has."""
        self._later = 0.0
        """When the points are looked after again that another process runs."""
        self._expected = self._took = 0.0
        """Seconds of the points that ended: as estimated, and as they were."""

    def left(self) -> int:
        """Return how many points have not ended."""
        return len(self._queue) + sum(map(len, self._groups.values()))

    def share(self) -> float:
        """Return how much of the work is done, 0 to 1, each point weighed by its expected time."""
        return self._ended / sum(self._weights.values())

    def release(self) -> None:
        """Give back every claim."""
        for claim in self._claims.values():
            claim.release()
        self._claims.clear()

    def messages(self, slots: int) -> list[tuple]:
        """Return what is to be sent so that every slot has a group at work and one in line."""
        found: list[tuple] = []
        while len(self._groups) < 2 * slots and self._queue and time.monotonic() >= self._later:
            group = self._group(slots)
            if not group:
                break
            self._number += 1
            self._groups[self._number] = group
            specs = []
            for point in group:
                spec, files = self._spec(point)
                found += [("file", digest, data) for digest, data in files.items()]
                specs.append(spec)
            memory = max((self._costs[p.key].memory_bytes for p in group if p.key in self._costs), default=0)
            found.append(("group", self._number, specs, int(memory) if memory > MIN_MEMORY else 0))
        return found

    def _group(self, slots: int) -> list[Point]:
        """Take points that together run long enough, but leave the others their share of them."""
        highest = max(1, min(MAX_IN_GROUP, len(self._queue) // (2 * slots)))
        group: list[Point] = []
        seconds, looked_at = 0.0, len(self._queue)
        while self._queue and looked_at and len(group) < highest and seconds < GROUP_SECONDS:
            point = self._queue.popleft()
            looked_at -= 1
            if group and point.key in self._alone:
                self._queue.append(point)
                continue
            if not self._hold(point):
                continue
            group.append(point)
            seconds += self._seconds(point)
            if point.key in self._alone:
                break
        if not group:
            self._later = time.monotonic() + 0.5
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
        text = runs.resolve(point.source, list(point.settings), seed=point.seed)
        names, files = {}, {}
        for path in scenarios.named_files(text, point.source.base_dir):
            data = (Path(point.source.base_dir) / path).read_bytes()
            digest = hashlib.sha256(data).hexdigest()
            names[path] = digest
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
            "files": names,
            "controllers": {name: digest for name, (digest, _) in laws.items()},
        }
        return spec, files

    def take(self, number: int, answer: Mapping[str, Any]) -> None:
        """Keep what a group found."""
        if answer["version"] != _native.version():
            theirs, ours = answer["version"], _native.version()
            self.outcome.stopped = f"the workers have weftline {theirs}, this is {ours}: install one version"
            return
        if answer["schemes"] != own_schemes.identity():
            theirs, ours = answer["schemes"] or "none", own_schemes.identity() or "none"
            self.outcome.stopped = (
                f"the schemes of another crate are {theirs} on the workers, and {ours} here: install the "
                "same wheel on every node"
            )
            return
        points = {point.key: point for point in self._groups.pop(number)}
        for result in answer["results"]:
            point = points[result["key"]]
            if "error" in result:
                self._fail(point, result["error"])
            else:
                self._keep(point, result["files"])
                self.hops += result["hops"]
            self._ended += self._weights[point.key]
            if point.key in self._costs:
                self._expected += self._costs[point.key].seconds
                self._took += result["seconds"]
            self._claims.pop(point.key).release()

    def lost(self, number: int, why: str) -> None:
        """Try the points of a lost group one at a time; a lost group of one point has failed."""
        points = self._groups.pop(number)
        for point in points:
            if len(points) == 1 and point.key in self._alone:
                self._fail(point, f"lost by Ray: {why}")
            else:
                self._alone.add(point.key)
                self._queue.append(point)
            self._claims.pop(point.key).release()

    def _keep(self, point: Point, files: Mapping[str, bytes]) -> None:
        part = self._kept.begin(point.key, self._claims[point.key])
        try:
            part.mkdir(parents=True)
            for name, data in files.items():
                (part / name).write_bytes(data)
            _native.check_files(str(part))
            _native.sync_files(str(part))
        except InputError as error:
            shutil.rmtree(part, ignore_errors=True)
            self._fail(point, f"the results were damaged during the transfer from the worker: {error}")
            return
        except (OSError, RunFailed):
            shutil.rmtree(part, ignore_errors=True)
            raise
        self._kept.keep(point, part)
        self.outcome.ran += 1

    def _fail(self, point: Point, why: str) -> None:
        self._kept.fail(point, why)
        self.outcome.failed.append((point, why))
