"""The exceptions that weftline raises, and the warnings that it gives.

`InputError`: what the user wrote cannot be run; the text says where and what to write instead (exit status
2). `DamagedError`, an `InputError`: results are not what a run wrote. `RunFailed`: the input was good and the
run did not end well (exit status 1). `WeftlineWarning`: look at this before you trust the result;
`DeterminismWarning`: two runs that must be the same to the bit are not; `ResultsWarning`: results are damaged
or cannot be verified.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from types import FrameType

from weftline._native import DamagedError, InputError, RunFailed

__all__ = [
    "DamagedError",
    "DeterminismWarning",
    "InputError",
    "ResultsWarning",
    "RunFailed",
    "WeftlineWarning",
    "nearest",
    "nearest_key",
    "nearest_of",
    "path_text",
    "utf8",
    "warn",
]

_COMPARED = 64
"""Letters of a name that are compared."""
_PACKAGE = str(Path(__file__).parent) + os.sep


class WeftlineWarning(UserWarning):
    """Something to look at before a result is trusted."""


class DeterminismWarning(WeftlineWarning):
    """Two runs of one scenario, seed and build have different results."""


class ResultsWarning(WeftlineWarning):
    """Something about results that should be known before they are trusted."""


class Conflict(str):
    """The text of a warning that is as grave as an error; `warn` gives it as a `DeterminismWarning`."""


def warn(texts: Iterable[str]) -> None:
    """Give each text as a Python warning, at the line of the user's code that called weftline."""
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    for text in texts:
        kind = DeterminismWarning if isinstance(text, Conflict) else WeftlineWarning
        warnings.warn(text, kind, stacklevel=level)


def utf8(argument: str, text: str) -> str:
    """Return a text, or raise an error that names the argument if it cannot be written as UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        shown = text.encode("utf-8", "surrogateescape" if _is_of_bytes(text) else "backslashreplace")
        readable = shown.decode("utf-8", "backslashreplace")
        raise InputError(f"{argument}: expected text in UTF-8, found {readable}") from None
    return text


def _is_of_bytes(text: str) -> bool:
    """Return whether a text is what Python makes of bytes that are not UTF-8."""
    return all(not "\ud800" <= char <= "\udfff" or "\udc80" <= char <= "\udcff" for char in text)


def path_text(argument: str, path: object) -> str:
    """Return a path as text, or raise an error that names the argument."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"{argument}: expected a path, found {path!r}")
    text = os.fspath(path)
    if not isinstance(text, str):
        raise InputError(f"{argument}: expected a path of text, found {path!r}")
    if "\0" in text:
        raise InputError(f"{argument}: expected a path, found {text!r}, which holds a zero character")
    return utf8(argument, text)


def nearest(name: str, known: list[str]) -> str:
    """Return ``did you mean "x"? `` when a known name is close to `name`, else an empty text."""
    found = nearest_key(name, known)
    return f'did you mean "{found}"? ' if found is not None else ""


def nearest_of(name: str, known: Iterable[str]) -> str | None:
    """Return the known name with the smallest edit distance, by the engine's rule, if it is similar enough.

    The rule is that of `nearest` in crates/pint/src/nearest.rs: similar names differ in a third of the
    letters of the longer one at most, and short ones in no more than two.
    """
    found: tuple[int, str] | None = None
    for other in known:
        limit = min((max(len(name), len(other)) + 1) // 3, max(len(name) // 3, 2))
        # Each letter that only the longer name has is an edit.
        if abs(min(len(name), _COMPARED) - min(len(other), _COMPARED)) > limit:
            continue
        distance = _edits(name, other)
        if distance <= limit and (found is None or distance < found[0]):
            found = distance, other
    return None if found is None else found[1]


def nearest_key(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is meant, by the rule of the same name in the engine: names may have words.

    It differs in one letter, or else in words that are left out (of ``link``, ``host_link``), or is the
    nearest.
    """
    known = list(known)
    near = nearest_of(name, known)
    if near is not None and _edits(name, near) <= 1:
        return near
    longer = [other for other in known if _is_part(name, other)]
    return min(longer, key=lambda other: _edits(name, other), default=near)


def _is_part(name: str, other: str) -> bool:
    """Return whether a name is one or several of the words of another in a row."""
    part, words = (re.split("[_-]", text.lower()) for text in (name, other))
    places = range(len(words) - len(part) + 1)
    return len(name) > 2 and any(words[at : at + len(part)] == part for at in places)


def _edits(a: str, b: str) -> int:
    """Return the edit distance (insert, delete, replace, swap two neighbours), case ignored."""
    a, b = a.lower()[:_COMPARED], b.lower()[:_COMPARED]
    # Distances of what is read of `a`, without and with its last letter, from each beginning of `b`.
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        following = [i + 1]
        for j, y in enumerate(b):
            distance = min(row[j] + (x != y), row[j + 1] + 1, following[j] + 1)
            if i > 0 and j > 0 and x == b[j - 1] and y == a[i - 1]:
                distance = min(distance, before[j - 1] + 1)
            following.append(distance)
        before, row = row, following
    return row[len(b)]
