"""A result store: a folder of run folders, each named by the content of what was run.

    store.json          the format of the store, and the version that began it
    points/KEY/         the folder of a finished run, as `weftline run` writes it
    failed/KEY.json     why a point failed
    index.jsonl         a line for each finished run, so that thousands are listed without opening each
    parts/              runs under way: KEY.lock, held by who runs the point, and their folders

KEY is the hash of the resolved scenario, of the files and the code in Python that it names, and of weftline's
version: what was run is never run again, and two sweeps that share a point share its results. A run's folder
is written below `parts` and moved to its place when it is complete, so `points` holds whole results whatever
happens; a process that is killed loses the points that it was at. The index can be lost too: it is made anew
from the folders.

Several processes, on several machines, may work on one store. Each holds a lock (flock) on the point that
it runs, which the system takes back when the process ends, however it ends. Where a file system has no
locks, two may run the same point: the results are the same, and the first to finish keeps its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import socket
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weftline import _native, runs, scenarios
from weftline.errors import InputError

try:
    import fcntl
except ImportError:  # not on Windows: see above
    fcntl = None  # type: ignore[assignment]

FORMAT = 1
FINISHED = ("done", "stalled")
"""A stalled run ended too, and would end so again."""
_FILE_KEYS = frozenset({"file", "sizes", "queries"})
"""Keys of a scenario whose value may be the name of a file."""
INDEXED = (
    "flows", "flows_done", "end_ns", "packet_hops", "cpu_seconds", "wall_seconds", "drops", "pauses",
    "ecn_marks", "bytes_on_wire", "fingerprint",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Point:
    """One run that is wanted."""

    name: str
    """What tells it from the others, for people."""
    source: scenarios.Scenario
    settings: tuple[tuple[str, str], ...]
    seed: int
    folder: Path
    """Where its results are when it is finished; the last part is its key."""
    place: str = ""
    """Its variant of the axis of x, in a figure that has one."""
    choice: tuple[tuple[str, str], ...] = ()
    """Its variant of each axis of a sweep."""

    @property
    def key(self) -> str:
        """The hash of what it is."""
        return self.folder.name


def point(
    root: Path,
    source: scenarios.Scenario,
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
    resolved = runs.resolve(source, list(settings), seed=seed)
    folder = root / "points" / content_key(resolved, source)
    return Point(
        name=name, source=source, settings=settings, seed=seed, folder=folder, place=place, choice=choice
    )


def content_key(resolved: str, source: scenarios.Scenario) -> str:
    """Return the key of a resolved scenario; files and code in Python count by their content."""
    laws: list = []
    if source.controllers:
        from weftline import controllers

        laws = controllers.named_in(tomllib.loads(resolved), source.controllers)
    for path in named_files(resolved, source.base_dir):
        digest = hashlib.sha256((Path(source.base_dir) / path).read_bytes()).hexdigest()
        resolved = resolved.replace(scenarios.value_to_toml(path), f'"sha256 {digest}"')
    return runs.content_hash(resolved + "".join(f"# {law.name} is {law.digest}\n" for law in laws))


def named_files(resolved: str, base_dir: str) -> list[str]:
    """Return the files that a resolved scenario names, as it writes them: traces, sizes, topologies, ..."""
    found: dict[str, None] = {}
    for key, text in scenarios.texts_in(tomllib.loads(resolved)):
        if key in _FILE_KEYS:
            with contextlib.suppress(OSError, ValueError):
                if (Path(base_dir) / text).is_file():
                    found[text] = None
    return list(found)


def state_of(folder: Path) -> str:
    """Return ``"finished"``, ``"damaged"`` or ``"absent"``: what a point's folder holds.

    Absent are results that never were complete too. Damaged is what cannot come from a run that ended: a
    summary that cannot be read, or a table of flows without its end.
    """
    try:
        summary = json.loads((folder / "summary.json").read_bytes())
    except FileNotFoundError:
        return "damaged" if (folder / "flows.parquet").exists() else "absent"
    except (OSError, ValueError):
        return "damaged"
    if not isinstance(summary, dict):
        return "damaged"
    if summary.get("status") not in FINISHED:
        return "absent"
    try:
        with (folder / "flows.parquet").open("rb") as file:
            file.seek(-4, os.SEEK_END)
            whole = file.read(4) == b"PAR1"
    except OSError:
        whole = False
    return "finished" if whole and (folder / "scenario.toml").is_file() else "damaged"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A finished run, as the index has it."""

    key: str
    name: str
    seed: int | None
    status: str
    version: str
    choice: Mapping[str, str]
    numbers: Mapping[str, Any]
    """What the summary says of flows, drops, seconds and so on."""


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
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.points = path / "points"
        self._parts = path / "parts"
        self._failed = path / "failed"
        self._index = path / "index.jsonl"

    @classmethod
    def create(cls, path: str | os.PathLike) -> Store:
        """Return the store in a folder, which is made where there is none.

        Raises
        ------
        InputError
            If it cannot be a folder, or holds a store of a later format.
        """
        found = cls(Path(path))
        for folder in (found.points, found._parts, found._failed):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"{folder}: the folder cannot be made: {error.strerror or error}") from None
        found._check_format()
        if not (found.path / "store.json").exists():
            about = {"format": FORMAT, "begun_by": f"weftline {_native.version()}"}
            write_whole(found.path / "store.json", json.dumps(about) + "\n")
        return found

    @classmethod
    def open(cls, path: str | os.PathLike) -> Store:
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
    def is_at(path: str | os.PathLike) -> bool:
        """Return whether a folder holds a store."""
        return (Path(path) / "points").is_dir()

    def _check_format(self) -> None:
        path = self.path / "store.json"
        try:
            about = json.loads(path.read_text("utf-8"))
            form = about["format"]
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(
                f"{path}: cannot be read as a store's description: remove this file and it is made anew; "
                f"the runs in {self.points} are not touched"
            ) from None
        if form != FORMAT:
            raise InputError(
                f"{path}: format {form!r}, begun by {about.get('begun_by', 'another version')}; weftline "
                f"{_native.version()} knows format {FORMAT}: choose another folder, or use that version"
            )

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
        self._note(entry_of(of.folder, dict(of.choice)))
        self.forget_failure(of.key)

    def put_aside(self, folder: Path) -> Path:
        """Move a damaged or incomplete folder below ``damaged/`` and return where it is now."""
        number = 1
        while (aside := self.path / "damaged" / f"{folder.name}-{number}").exists():
            number += 1
        aside.parent.mkdir(exist_ok=True)
        os.rename(folder, aside)
        return aside

    def fail(self, of: Point, why: str) -> None:
        """Record why a point failed."""
        about = {
            "name": of.name,
            "choice": dict(of.choice),
            "seed": of.seed,
            "error": why,
            "weftline": _native.version(),
        }
        self._failed.mkdir(parents=True, exist_ok=True)
        write_whole(self._failed / f"{of.key}.json", json.dumps(about, ensure_ascii=False, indent=2) + "\n")

    def failure(self, key: str) -> str | None:
        """Return why a point failed when it was last tried, None if it did not."""
        try:
            return str(json.loads((self._failed / f"{key}.json").read_text("utf-8"))["error"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            return "its record cannot be read"

    def forget_failure(self, key: str) -> None:
        """Remove the record of a failure."""
        with contextlib.suppress(FileNotFoundError):
            (self._failed / f"{key}.json").unlink()

    def entries(self) -> list[Entry]:
        """Return every finished run, in order of keys; what the index does not know yet is read and added."""
        there = {item.name for item in _scan(self.points)}
        known = {key: entry for key, entry in self._indexed() if key in there}
        for key in sorted(there - known.keys()):
            if state_of(self.points / key) == "finished":
                known[key] = entry_of(self.points / key, {})
                with contextlib.suppress(OSError):  # a store that may only be read
                    self._note(known[key])
        return [known[key] for key in sorted(known)]

    def _indexed(self) -> Iterator[tuple[str, Entry]]:
        try:
            data = self._index.read_bytes()
        except OSError:
            return
        for line in data.splitlines():
            # What is no entry is the work of a killed process; its run is found by its folder.
            with contextlib.suppress(ValueError, TypeError):
                fields = json.loads(line)
                yield fields["key"], Entry(**fields)

    def _note(self, entry: Entry) -> None:
        line = json.dumps(vars(entry), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        descriptor = os.open(self._index, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                line = b"\n" + line
            os.write(descriptor, line)
        finally:
            os.close(descriptor)


def _scan(folder: Path) -> list[os.DirEntry]:
    try:
        with os.scandir(folder) as items:
            return list(items)
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror or error}") from None


def entry_of(folder: Path, choice: Mapping[str, str]) -> Entry:
    """Return what the index says of the run in a folder."""
    summary = json.loads((folder / "summary.json").read_bytes())
    versions = summary.get("versions")
    return Entry(
        key=folder.name,
        name=str(summary.get("name", "")),
        seed=summary.get("seed"),
        status=str(summary.get("status")),
        version=str(versions.get("weftline", "")) if isinstance(versions, dict) else "",
        choice=choice,
        numbers={name: summary[name] for name in INDEXED if name in summary},
    )


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it is there as a whole or not at all."""
    part = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.part")
    try:
        part.write_text(text, "utf-8")
        os.replace(part, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            part.unlink()
