"""The files of a result store that are not of a run, and what is done about those that are damaged.

    store.json, sweep.json, failed/KEY.json   bear a seal
    index.jsonl                               bears one on each line
    points.csv, table.csv, report.html        are listed in the store's own digests.json

All can be rebuilt from the runs, so a damaged one is moved to ``damaged/`` with a message.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from weftline import _native, integrity
from weftline.errors import DamagedError
from weftline.outputs import write_whole

if TYPE_CHECKING:
    from weftline.sweeps.store import Store

DIGESTS = "digests.json"
SWEEP = "sweep.json"
POINTS, ESTIMATES = "points.csv", "table.csv"
"""The tables that a sweep writes when it ends."""
KIND = "xxh3-128"
WRITING = "tables"
"""What a process claims that writes the tables of a store and their digests."""


def repair(store: Store) -> list[str]:
    """Move damaged files of a store aside and rebuild what can be rebuilt; return a sentence on each."""
    found = _sealed(store, store.path / "store.json")
    vouched = _vouched(store.path)
    found += _sealed(store, store.path / SWEEP)
    for record in sorted((store.path / "failed").glob("*.json")):
        found += _sealed(store, record)
    found += _digests(store, missed=vouched and not (store.path / DIGESTS).exists())
    found += _index(store)
    return found


def begin(path: Path) -> None:
    """Make the digests.json of a store, which lists nothing yet."""
    write_whole(path / DIGESTS, integrity.sealed({"kind": KIND, "files": {}}))


def check(path: Path, name: str) -> None:
    """Check a file of the store at `path` before it is read.

    Raises
    ------
    DamagedError
        If it is not what was written, or nothing vouches for it in a store where something should.
    """
    _native.check_file(str(path / name))
    if not (path / DIGESTS).exists() and _vouched(path):
        raise DamagedError(f"{path / DIGESTS}: no such file, so the digest is unknown of {name}")


def _vouched(path: Path) -> bool:
    """Return whether the store at `path` has a digests.json, or should have."""
    try:
        return integrity.unsealed((path / "store.json").read_bytes())[1]
    except (OSError, ValueError):
        return False


def _aside(store: Store, path: Path, what: str) -> str:
    try:
        aside = integrity.put_aside(path, store.damaged_path)
    except FileNotFoundError:
        return f"{path}: the file was damaged, and another process has moved it; {what}"
    return f"{path}: the file was damaged; it is now {aside}; {what}"


def _sealed(store: Store, path: Path) -> list[str]:
    try:
        integrity.unsealed(path.read_bytes())
    except FileNotFoundError:
        # A store has the first from its beginning, and the second before its tables.
        made = [store.path / "points.csv"] if path.name == SWEEP else [store.index.path, store.path / SWEEP]
        return [f"{path}: the file was missing; it is rebuilt"] if any(p.exists() for p in made) else []
    except ValueError:
        what = "the point is run again" if path.parent.name == "failed" else "it is rebuilt"
        return [_aside(store, path, what)]
    return []


def _digests(store: Store, *, missed: bool) -> list[str]:
    path = store.path / DIGESTS
    if missed:
        begin(store.path)
        return [f"{path}: the file was missing; it is rebuilt"]
    if not path.exists():
        return []
    claim = store.claim(WRITING)
    if claim is None:
        return []  # another sweep writes its tables
    try:
        return _tables(store, path)
    finally:
        claim.release()


def _tables(store: Store, path: Path) -> list[str]:
    try:
        listed = integrity.unsealed(path.read_bytes())[0]["files"]
    except (ValueError, KeyError):
        text = _aside(store, path, "it is rebuilt")
        begin(store.path)
        return [text]
    found, lost = [], []
    for name in listed:
        file = store.path / name
        try:
            _native.check_file(str(file))
        except DamagedError:
            lost.append(name)
            what = "`weftline report` writes it again" if name.endswith(".html") else "it is rebuilt"
            found.append(
                _aside(store, file, what) if file.exists() else f"{file}: the file was missing; {what}"
            )
    if lost:
        uncover(store.path, lost)
    return found


def uncover(path: Path, names: Collection[str]) -> None:
    """Take the digests of some files out of the digests.json of the store at `path`."""
    with contextlib.suppress(FileNotFoundError):
        listed = integrity.read_sealed(path / DIGESTS, "`weftline sweep` writes it again")[0]["files"]
        kept = {name: digest for name, digest in listed.items() if name not in names}
        write_whole(path / DIGESTS, integrity.sealed({"kind": KIND, "files": kept}))


def _index(store: Store) -> list[str]:
    path = store.index.path
    with contextlib.suppress(OSError):
        if not path.exists() and any(store.points.iterdir()):
            return [f"{path}: the file was missing; it is rebuilt from the runs"]
    aside = store.index.mend(store.damaged_path)
    if aside is None:
        return []
    return [f"{path}: some of its lines were damaged; it is now {aside}; it is rebuilt from the runs"]
