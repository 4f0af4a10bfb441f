"""Whether what is read is what was written: digests of a run's files, seals of the files of a store.

A run ends with ``digests.json``, which has size and digest of every other file. The native module hashes each
table before it decodes it; `check` here is for what Python reads itself. A file of JSON that is written more
than once (the description of a sweep, a line of a store's index) bears a seal: its own digest as its last
member. What does not hold raises `DamagedError`.

Results that an earlier version wrote have neither. They are read, with a `ResultsWarning`.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weftline import _native
from weftline.errors import DamagedError, InputError, ResultsWarning
from weftline.outputs import write_whole

SMALL = ("summary.json", "scenario.toml")
"""Files of a run that Python reads itself."""
FILE = "digests.json"
"""Lists the others of a run, with their digests."""
WRITTEN = (
    *SMALL,
    *(f"{name}.parquet" for name in ("flows", "series", "queues", "jobs", "ranks", "telemetry")),
    "capture.pcapng",
    FILE,
    "report.html",
)
"""Files that a run writes into its folder, or removes from it."""


def check(folder: Path, names: Sequence[str] = SMALL) -> dict[str, str] | None:
    """Check the run in a folder: every file by presence and size, those of `names` by digest.

    Returns the digests of its files by name, None where an earlier version wrote none.

    Raises
    ------
    DamagedError
        If a file is not what the run wrote.
    """
    return _native.check_files(str(folder), list(names))


def mark_of(folder: Path, digests: Mapping[str, str] | None) -> Mapping[str, str] | bytes:
    """Return what tells the results in a folder from others: the digests of tables and scenario.

    The summary where an earlier version wrote no digests.
    """
    if digests is None:
        return (folder / "summary.json").read_bytes()
    return {name: digest for name, digest in digests.items() if name.endswith((".parquet", ".toml"))}


def check_mark(folder: Path, mark: Mapping[str, str] | bytes) -> None:
    """Check that a folder holds the results of which `mark_of` returned this mark; no table is read.

    Raises
    ------
    DamagedError
        If it holds those of another run, or none.
    """
    if isinstance(mark, bytes):
        with contextlib.suppress(OSError):
            if (folder / "summary.json").read_bytes() == mark:
                return
    elif (found := check(folder, ())) is not None and mark.items() <= found.items():
        return
    if (folder / "summary.json").exists():
        raise DamagedError(
            f"{folder}: holds the results of another run now than when it was opened; open it again"
        )
    raise DamagedError(f"{folder}: the results that were opened are no longer there")


def warn(text: str) -> None:
    """Warn of what should be known about results before they are trusted."""
    warnings.warn(text, ResultsWarning, stacklevel=3)


def warn_unverified(folder: Path) -> None:
    """Warn that the run in a folder has no digests; for runs of a store, the store has warned."""
    if folder.parent.name == "points" and (folder.parent.parent / "store.json").exists():
        return
    warn(
        f"{folder}: an earlier version of weftline wrote these results, without digests.json: damage to them "
        "would not be noticed"
    )


OF_RUNS = ("run.lock", "flows.parquet")
"""Files of which one shows that a folder holds a run, next to a digests.json that lists a summary."""


def is_run(folder: Path) -> bool:
    """Return whether a folder holds a run, finished or not."""
    if any((folder / name).exists() for name in OF_RUNS) and (folder / "scenario.toml").exists():
        return True
    return lists_run(folder / "digests.json")


def lists_run(digests: Path) -> bool:
    """Return whether a digests.json is that of a run."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        return "summary.json" in unsealed(digests.read_bytes())[0].get("files", ())
    return False


def refuse_results(folder: Path) -> None:
    """Raise if a folder holds a run, whose files others would replace.

    Raises
    ------
    InputError
        If it does.
    """
    if is_run(folder):
        raise InputError(
            f"{folder}: holds the results of a run (weftline run), which need their folder for themselves: "
            "choose another folder with --out (in Python: out=)"
        )


def refuse_result(path: Path) -> None:
    """Raise if a file that is to be written would replace one of the results of a run or a store.

    Pages may be replaced.

    Raises
    ------
    InputError
        If it would.
    """
    place = path.resolve()
    folder = place.parent
    if place.suffix == ".html" or not place.is_file():
        return
    if is_run(folder):
        results = set(WRITTEN)
    elif (folder / "points").is_dir():
        results = {FILE, "store.json", "sweep.json", "index.jsonl"}
    else:
        return
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        results |= set(unsealed((folder / FILE).read_bytes())[0]["files"])
    if place.name in results:
        raise InputError(f"{path}: is one of the results in its folder: choose another file with --out")


def sealed(fields: Mapping[str, Any]) -> str:
    """Return a line of JSON with its seal."""
    return _native.sealed(json.dumps(fields, ensure_ascii=False, separators=(",", ":")))


def unsealed(data: bytes) -> tuple[dict[str, Any], bool]:
    """Return what a text of JSON holds, and whether a seal vouches for it.

    Raises
    ------
    ValueError
        If it is not as it was sealed, or no object of JSON.
    """
    whole = _native.seal_is_whole(data)
    if whole is False:
        raise ValueError("it is not as weftline wrote it: its digest does not match")
    fields = json.loads(data)
    if not isinstance(fields, dict):
        raise ValueError("expected an object")
    fields.pop("digest", None)
    return fields, whole is True


def read_sealed(path: Path, remedy: str) -> tuple[dict[str, Any], bool]:
    """Return what a file of JSON holds, and whether a seal vouches for it.

    Raises
    ------
    DamagedError
        If it is damaged; `remedy` states what to do.
    """
    try:
        return unsealed(path.read_bytes())
    except ValueError as error:
        raise DamagedError(f"{path}: the file is damaged: {error}; {remedy}") from None


def put_aside(path: Path, below: Path) -> Path:
    """Move a file or folder into `below`, under a numbered name that nothing has; return where it is."""
    below.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        aside = below / f"{path.name}-{number}"
        number += 1
        try:
            if path.is_dir():
                if aside.exists():
                    continue
                os.rename(path, aside)
            else:
                os.link(path, aside)
                path.unlink()
            return aside
        except FileExistsError:
            continue
        except OSError as error:
            if error.errno == errno.ENOTEMPTY:
                continue
            if path.is_dir() or error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
                raise
            # No links on this file system.
            if not aside.exists():
                os.rename(path, aside)
                return aside


def numbers_kept(file: Path, source: str) -> dict[str, Any] | None:
    """Return what `keep_numbers` wrote, None if it is damaged, or of other contents of `source`."""
    with contextlib.suppress(OSError, ValueError):
        fields, whole = unsealed(file.read_bytes())
        if whole and fields.get("of") == _digest_of(file.parent, source):
            return fields["numbers"]
    return None


def keep_numbers(file: Path, source: str, found: Mapping[str, Any]) -> None:
    """Keep numbers computed from the file `source` of a run, in its folder, if that can be written."""
    with contextlib.suppress(OSError):
        write_whole(file, sealed({"of": _digest_of(file.parent, source), "numbers": found}))


def _digest_of(folder: Path, name: str) -> str:
    return (check(folder, ()) or {}).get(name, "")
