"""A result store: a folder of run folders, each named by the content of what was run.

    store.json          the format of the store, and the version that began it
    points/KEY/         the folder of a finished run, as `weftline run` writes it
    failed/KEY.json     why a point failed
    failed/KEY/         what its run recorded until then, if it began
    index.jsonl         a line for each finished run, see `index`
    parts/              runs under way: KEY.lock, held by who runs the point, and their folders
    damaged/            runs and files that were not as written, numbered; nothing is ever deleted there
    digests.json        of the files of the store itself, see `store_files`

KEY is the hash of the resolved scenario, of the files and the code in Python that it names, and of weftline's
version: what was run is never run again, and two sweeps that share a point share its results. A run's folder
is written below `parts` and moved to its place when it is complete, so `points` holds whole results whatever
happens; a process that is killed loses the points that it was at. The index can be lost too: it is rebuilt
from the folders.

Every file of a run is checked against the run's digests.json when its folder is new to the index or was
touched since (its stamp, see `index`), and every table once more when it is first read. A damaged run is
moved to ``damaged/`` by a sweep, which runs it again; what else reads a store leaves it out with a warning.

Several processes, on several machines, may work on one store. Each holds a lock (flock) on the point that
it runs, which the system takes back when the process ends, however it ends. Where a file system has no
locks, two may run the same point: the results are the same, and the first to finish keeps its own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import time
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from weftline import _native, integrity, scenarios
from weftline.errors import InputError
from weftline.outputs import write_whole
from weftline.scenario import Scenario, content_hash
from weftline.sweeps import store_files
from weftline.sweeps.index import Entry, Index, entry_of
from weftline.sweeps.states import examined, state_of

if TYPE_CHECKING:
    from weftline.controllers import Law

try:
    import fcntl
except ImportError:  # not on Windows: see above
    fcntl = None  # type: ignore[assignment]

FORMAT = 1
_SUSPECT: set[Path] = set()
"""Runs whose damage showed when they were read, though their stamps were as before: these do not count."""


class Unread(str):
    """Why the scenario of a point could not be read any more: a file has changed since the sweep began.

    A later sweep has such a point only if its files are as they were, and so runs it.
    """


@dataclass(frozen=True, kw_only=True)
class Point:
    """One run that is wanted."""

    name: str
    """What tells it from the others, for people."""
    source: scenarios.Source
    settings: tuple[tuple[str, str], ...]
    seed: int
    folder: Path
    """Where its results are when it is finished; the last part is its key."""
    place: str = ""
    """Its variant of the axis of x, in a figure that has one."""
    choice: tuple[tuple[str, str], ...] = ()
    """Its variant of each axis of a sweep."""
    laws: frozenset[str] = frozenset()
    """The names of the controllers in Python that its scenario names."""

    @property
    def key(self) -> str:
        """The hash of what it is."""
        return self.folder.name

    def scenario(self) -> Scenario:
        """Return the scenario of the point, read again.

        Raises
        ------
        InputError
            If it cannot be read any more, or a file that it names is another than when the point was made.
        """
        found = Scenario.of(self.source, list(self.settings), seed=self.seed)
        files = scenarios.named_files(found.resolved, self.source.base_dir)
        if files and content_key(found.resolved, self.source) != self.key:
            raise InputError(
                f"{' or '.join(files)}: the content has changed since the sweep began; earlier runs have "
                "that of then: start the sweep again for runs of what the file holds now"
            )
        return found


def point(
    root: Path,
    source: scenarios.Source,
    changes: Mapping[str, object],
    seed: int,
    *,
    name: str,
    place: str = "",
    choice: tuple[tuple[str, str], ...] = (),
) -> Point:
    """Return the point of a scenario with changes and a seed, in the store below `root`; it is checked.

    Raises
    ------
    InputError
        If the scenario cannot be run so.
    """
    settings = tuple(scenarios.settings(changes))
    resolved = Scenario.of(source, list(settings), seed=seed).resolved
    return Point(
        name=name,
        source=source,
        settings=settings,
        seed=seed,
        folder=root / "points" / content_key(resolved, source),
        place=place,
        choice=choice,
        laws=frozenset(law.name for law in _laws_in(resolved, source)),
    )


def content_key(resolved: str, source: scenarios.Source) -> str:
    """Return the key of a resolved scenario; files and code in Python count by their content."""
    laws = _laws_in(resolved, source)
    for path in scenarios.named_files(resolved, source.base_dir):
        digest = scenarios.digest_of(source.base_dir, path)
        resolved = resolved.replace(scenarios.value_to_toml(path), f'"sha256 {digest}"')
    return content_hash(resolved + "".join(f"# {law.name} is {law.digest}\n" for law in laws))


def _laws_in(resolved: str, source: scenarios.Source) -> list[Law]:
    """Return the controllers in Python that a resolved scenario names."""
    if not source.controllers:
        return []
    from weftline import controllers

    return controllers.named_in(tomllib.loads(resolved), source.controllers)


class Claim:
    """The right to run a point, until `release`."""

    def __init__(self, descriptor: int, path: Path, *, exclusive: bool) -> None:
        self.exclusive = exclusive
        """Whether the file system vouches for it."""
        self._descriptor = descriptor
        self._path = path

    def release(self) -> None:
        """Give it back."""
        with contextlib.suppress(OSError):
            self._path.unlink()
        os.close(self._descriptor)


class Store:
    """A folder of finished runs.

    Attributes
    ----------
    path : Path
        The folder.
    index : Index
        What is known of the finished runs.
    damaged : dict of key to str
        The damaged runs that were met, and why they are.
    remarks : list of str
        What was done about damaged files of the store itself.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.points = path / "points"
        self.damaged_path = path / "damaged"
        self.index = Index(path / "index.jsonl")
        self.damaged: dict[str, str] = {}
        self.remarks: list[str] = []
        self._parts = path / "parts"
        self._failed = path / "failed"

    @classmethod
    def planned(cls, path: str | os.PathLike[str]) -> Store:
        """Return the store that `create` would return; nothing is made.

        Raises
        ------
        InputError
            If it cannot be a folder, or holds a run, or a store of a later format.
        """
        found = cls(Path(path))
        # A store to which an earlier version wrote a run has digests of the run, which are not damaged.
        if not cls.is_at(path) or integrity.lists_run(found.path / store_files.DIGESTS):
            integrity.refuse_results(found.path)
        there = next((one for one in (found.points, *found.points.parents) if os.path.lexists(one)), Path())
        if not there.is_dir():
            raise InputError(f"{found.points}: the folder cannot be made: {there} is not a folder")
        return found

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> Store:
        """Return the store in a folder, which is made where there is none; its damaged files are rebuilt.

        Raises
        ------
        InputError
            If it cannot be a folder, or holds a run, or a store of a later format.
        OSError
            If its files cannot be written.
        """
        found = cls.planned(path)
        try:
            found.points.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"{found.points}: the folder cannot be made: {error.strerror or error}"
            ) from None
        for folder in (found._parts, found._failed):
            folder.mkdir(exist_ok=True)
        found.remarks = store_files.repair(found)
        if not found._check_format():
            if not (found.path / store_files.DIGESTS).exists():
                store_files.begin(found.path)
            about = {"format": FORMAT, "begun_by": f"weftline {_native.version()}"}
            write_whole(found.path / "store.json", integrity.sealed(about))
        return found

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Store:
        """Return the store that is in a folder.

        Raises
        ------
        InputError
            If there is none, or one of a later format.
        """
        found = cls(Path(path))
        if not found.points.is_dir():
            what = "no such folder" if not found.path.exists() else "not a result store (it has no points/)"
            raise InputError(f"{path}: {what}; expected the folder that `weftline sweep` printed")
        found._check_format()
        return found

    @staticmethod
    def is_at(path: str | os.PathLike[str]) -> bool:
        """Return whether a folder holds a store."""
        return (Path(path) / "points").is_dir()

    def _check_format(self) -> bool:
        """Return whether store.json is as this version writes it; raise if it is of a later one."""
        path = self.path / "store.json"
        try:
            about, whole = integrity.unsealed(path.read_bytes())
            form = about.get("format")
        except FileNotFoundError:
            return False
        except (OSError, ValueError) as error:
            integrity.warn(f"{path}: the file is damaged ({error}); `weftline sweep` writes it again")
            return False
        if form != FORMAT:
            raise InputError(
                f"{path}: format {form!r}, begun by {about.get('begun_by', 'another version')}; weftline "
                f"{_native.version()} knows format {FORMAT}: choose another folder, or use that version"
            )
        return whole

    def claim(self, key: str) -> Claim | None:
        """Return the right to run a point, None while another process or thread has it."""
        path = self._parts / f"{key}.lock"
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            exclusive = fcntl is not None
            try:
                if fcntl:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return None
            except OSError:
                exclusive = False  # no locks here: see the head
            with contextlib.suppress(FileNotFoundError):
                if os.stat(path).st_ino == os.fstat(descriptor).st_ino:
                    return Claim(descriptor, path, exclusive=exclusive)
            # Its holder removed the file in between: what we hold is a lock on nothing.
            os.close(descriptor)

    def begin(self, key: str, claim: Claim) -> Path:
        """Return a new folder's path for a run under way, and clear what a killed one left of this point."""
        own = self._parts / f"{key}.run.{socket.gethostname()}.{os.getpid()}"
        for path in self._parts.glob(f"{key}.run.*") if claim.exclusive else [own]:
            shutil.rmtree(path, ignore_errors=True)
        return own

    def holder(self, key: str) -> str:
        """Return which process runs a point, "" where its folder does not show it."""
        for path in self._parts.glob(f"{key}.run.*"):
            host, _, process = path.name.removeprefix(f"{key}.run.").rpartition(".")
            return f"process {process} on {host}"
        return ""

    def clear_up(self) -> None:
        """Remove what killed processes left under way; what others are at stays."""
        for key in {item.name.split(".")[0] for item in _scan(self._parts)}:
            claim = self.claim(key)
            if claim is not None:
                if claim.exclusive:
                    self.begin(key, claim)
                claim.release()

    def keep(self, of: Point, part: Path) -> None:
        """Move a finished run to its place and note it; a place that is taken by the same results stays."""
        of.folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.rename(part, of.folder)
        except OSError:
            if state_of(of.folder) == "finished":
                shutil.rmtree(part, ignore_errors=True)
            else:
                self.put_aside(of.folder)
                os.rename(part, of.folder)
        self.index.note(entry_of(of.folder, dict(of.choice)))
        self.forget_failure(of.key)

    def put_aside(self, folder: Path) -> Path:
        """Move a damaged or incomplete folder below ``damaged/`` and return where it is now."""
        return integrity.put_aside(folder, self.damaged_path)

    def put_aside_point(self, key: str) -> Path | None:
        """Do so with the folder of a point, unless another process is at it or it is finished by now."""
        claim = self.claim(key)
        if claim is None:
            return None
        try:
            folder = self.points / key
            if not folder.exists() or examined(folder, thorough=folder in _SUSPECT)[0] == "finished":
                return None
            _SUSPECT.discard(folder)
            return self.put_aside(folder)
        finally:
            claim.release()

    def write(self, files: Mapping[str, str]) -> None:
        """Write files of the store itself, given by name, and their digests."""
        with self._writing():
            for name, text in files.items():
                write_whole(self.path / name, text)
            if (self.path / store_files.DIGESTS).exists():
                for name in files:
                    _native.cover_file(str(self.path / name))

    def remove(self, names: Collection[str]) -> None:
        """Remove files of the store itself, and their digests."""
        with self._writing():
            store_files.uncover(self.path, names)
            for name in names:
                (self.path / name).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the right to write files of the store itself."""
        while (claim := self.claim(store_files.WRITING)) is None:
            time.sleep(0.01)
        try:
            yield
        finally:
            claim.release()

    def fail(self, of: Point, why: str, part: Path | None = None, *, named: str = "") -> str:
        """Record why a point failed, keep what its run recorded, and return the error as it is recorded.

        Parameters
        ----------
        part : Path, optional
            The folder of the failed run, which is moved to ``failed/KEY``.
        named : str, optional
            What the error calls this folder; `part` without it.
        """
        folder, is_unread = self._failed / of.key, isinstance(why, Unread)
        shutil.rmtree(folder, ignore_errors=True)
        self._failed.mkdir(parents=True, exist_ok=True)
        if part is not None and part.is_dir():
            os.rename(part, folder)
            why = why.replace(named or str(part), str(folder))
            if str(folder) not in why:
                why = f"{why}\n{folder}: what the run recorded until then"
        about = {
            "name": of.name,
            "choice": dict(of.choice),
            "seed": of.seed,
            "error": why,
            "weftline": _native.version(),
            **({"unread": True} if is_unread else {}),
        }
        write_whole(self._failed / f"{of.key}.json", integrity.sealed(about))
        return why

    def failure(self, key: str, *, of_run: bool = False) -> str | None:
        """Return why a point failed when it was last tried, None if it did not; `of_run`: not `Unread`."""
        try:
            found = integrity.unsealed((self._failed / f"{key}.json").read_bytes())[0]
            return None if of_run and found.get("unread") else str(found["error"])
        except (FileNotFoundError, ValueError, KeyError):
            return None  # a damaged record is none: the point is run again
        except OSError as error:
            return f"its record cannot be read: {error.strerror or error}"

    def forget_failure(self, key: str) -> None:
        """Remove the record of a failure, and what the failed run recorded."""
        with contextlib.suppress(FileNotFoundError):
            (self._failed / f"{key}.json").unlink()
            shutil.rmtree(self._failed / key, ignore_errors=True)

    def entries(self) -> list[Entry]:
        """Return every finished run, in order of keys; what the index does not know yet is read and added.

        Damaged runs are left out, with a `ResultsWarning`, and runs without digests are reported.
        """
        keys = sorted(item.name for item in _scan(self.points))
        found = self.finished(keys)
        if self.damaged:
            named = [f"points/{key}" for key in sorted(self.damaged)]
            more = f" and {len(named) - 3} more" if len(named) > 3 else ""
            integrity.warn(
                f"{self.path}: {len(named)} of {len(keys)} runs damaged and left out: "
                f"{', '.join(named[:3])}{more} ({self.damaged[min(self.damaged)]}); `weftline sweep` moves "
                "them to damaged/ and runs them again"
            )
        if older := sum(not entry.covered for entry in found.values()):
            integrity.warn(
                f"{self.path}: an earlier version of weftline wrote {older} of {len(found)} runs, without "
                "digests.json: damage to them would not be noticed"
            )
        return list(found.values())

    def finished(self, keys: Sequence[str], *, note: bool = True) -> dict[str, Entry]:
        """Return those of the runs that are finished and whole, by key; `damaged` has the others."""
        known, choices, _ = self.index.read()
        found: dict[str, Entry] = {}
        self.damaged = {}
        for key, stamp in zip(keys, _native.stamps(str(self.points), list(keys)), strict=True):
            folder, entry = self.points / key, known.get(key)
            suspect = folder in _SUSPECT
            if entry is not None and entry.stamp and entry.stamp == stamp and not suspect:
                found[key] = entry if entry.has_slowdowns else entry_of(folder, entry.choice, stamp)
                if note and found[key] is not entry:
                    with contextlib.suppress(OSError):
                        self.index.note(found[key])
            else:
                state, why = examined(folder, scenario=entry.scenario if entry else "", thorough=suspect)
                if state == "finished":
                    found[key] = entry_of(
                        folder, entry.choice if entry else choices.get(key, {}), stamp or ""
                    )
                    # Without a stamp it came just now, and who ran it notes it.
                    if note and stamp and found[key] != entry:
                        with contextlib.suppress(OSError):  # a store that may only be read
                            self.index.note(found[key])
                elif state == "damaged":
                    self.damaged[key] = why
        return found

    def suspect_damaged(self) -> bool:
        """Read every run to its end; return whether that shows damage that `finished` did not find."""
        before = len(_SUSPECT)
        folders = [self.points / item.name for item in _scan(self.points)]
        _SUSPECT.update(f for f in folders if examined(f, thorough=True)[0] == "damaged")
        return len(_SUSPECT) > before


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as items:
            return list(items)
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror or error}") from None
