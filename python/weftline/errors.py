"""The exceptions that weftline raises, and the warnings that it gives.

`InputError`: what the user wrote cannot be run; the text says where and what to write instead (exit status
2). `DamagedError`, an `InputError`: results are not what a run wrote. `RunFailed`: the input was good and the
run did not end well (exit status 1). `WeftlineWarning`: look at this before you trust the result;
`DeterminismWarning`: two runs that must be the same to the bit are not; `ResultsWarning`: results are damaged
or cannot be verified.
"""

from __future__ import annotations

import os
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
    "path_text",
    "utf8",
    "warn",
]

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
    import difflib

    found = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f'did you mean "{found[0]}"? ' if found else ""
