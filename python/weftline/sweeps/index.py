"""The index of a result store: a line for each finished run, so that a list of thousands opens none.

Each line is an object of JSON with a seal. A later line of a run takes the place of an earlier one. The
stamp of a line is what the system reported on the run's files (names, sizes, times, inodes) when all their
digests held: while it is the same they are not hashed again for a list. What is computed of a table
never rests on that: a table is hashed whenever it is first read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weftline import integrity

INDEXED = (
    "flows", "flows_done", "end_ns", "packet_hops", "cpu_seconds", "wall_seconds", "drops", "pauses",
    "ecn_marks", "bytes_on_wire", "fingerprint",
)  # fmt: skip
"""Numbers of the summary; columns of the SQL table runs too."""
SLOWDOWNS = ("slowdown_p50", "slowdown_p95", "slowdown_p99")
"""Percentiles over all flows of a run, for lists of runs; in SQL they have the names of columns of points."""


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
    """Flows, drops, seconds and so on of the summary."""
    covered: bool = False
    """Whether a digests.json vouches for it."""
    scenario: str = ""
    """Digest of its scenario.toml, which tells it from the run of another key."""
    stamp: str = ""
    """Of its files when they were checked; empty where that is unknown."""

    @property
    def has_slowdowns(self) -> bool:
        """Whether it has what indexes of earlier versions lack."""
        return all(name in self.numbers for name in SLOWDOWNS)


def entry_of(folder: Path, choice: Mapping[str, str], stamp: str = "") -> Entry:
    """Return the index's entry of the run in a folder."""
    digests = integrity.check(folder, ())
    summary = json.loads((folder / "summary.json").read_bytes())
    versions, slowdown = summary.get("versions"), summary.get("slowdown")
    slowdowns = slowdown if isinstance(slowdown, dict) else {}
    return Entry(
        key=folder.name,
        name=str(summary.get("name", "")),
        seed=summary.get("seed"),
        status=str(summary.get("status")),
        version=str(versions.get("weftline", "")) if isinstance(versions, dict) else "",
        choice=choice,
        numbers={
            **{name: summary[name] for name in INDEXED if name in summary},
            **{name: slowdowns.get(name.removeprefix("slowdown_")) for name in SLOWDOWNS},
        },
        covered=digests is not None,
        scenario=(digests or {}).get("scenario.toml", ""),
        stamp=stamp,
    )


class Index:
    """The lines of ``index.jsonl``.

    Attributes
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> tuple[dict[str, Entry], dict[str, Mapping[str, str]], list[bytes]]:
        """Return the entries by key, the choices that earlier versions noted, and the damaged lines."""
        entries: dict[str, Entry] = {}
        choices: dict[str, Mapping[str, str]] = {}
        broken: list[bytes] = []
        for line in self._lines():
            try:
                fields, whole = integrity.unsealed(line)
                if whole:
                    entries[fields["key"]] = Entry(**fields)
                else:
                    choices[fields["key"]] = dict(fields["choice"])
            except (ValueError, TypeError, KeyError):
                broken.append(line)
        return entries, choices, broken

    def note(self, entry: Entry) -> None:
        """Add the line of a run.

        Another process may be in the middle of its own line when this one looks at the end of the file; then
        an empty line stands between them, which readers pass over.
        """
        line = integrity.sealed(vars(entry)).encode()
        descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                line = b"\n" + line
            os.write(descriptor, line)
        finally:
            os.close(descriptor)

    def mend(self, below: Path) -> Path | None:
        """Move an index with damaged lines into `below`, keep the others, and return where it is; else None.

        The runs of the lines that are lost are found by their folders.
        """
        broken = set(self.read()[2])
        if not broken:
            return None
        good = [line for line in self._lines() if line not in broken]
        try:
            aside = integrity.put_aside(self.path, below)
        except FileNotFoundError:
            return None  # another process was first
        for line in good:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            os.write(descriptor, line)
            os.close(descriptor)
        return aside

    def _lines(self) -> list[bytes]:
        try:
            data = self.path.read_bytes()
        except OSError:
            return []
        return [line for line in data.splitlines(keepends=True) if line.strip()]
