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


def nearest(name: str, known: list[str]) -> str:
    """Return ``did you mean "x"? `` when a known name is close to `name`, else an empty text."""
    import difflib

    found = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f'did you mean "{found[0]}"? ' if found else ""
