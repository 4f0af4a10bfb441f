"""Warnings that weftline gives to Python: look at this before you trust a result."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path

_PACKAGE = str(Path(__file__).parent) + os.sep


class WeftlineWarning(UserWarning):
    """Something to look at before a result is trusted."""


class DeterminismWarning(WeftlineWarning):
    """Two runs of one scenario, seed and build have different results."""


class Conflict(str):
    """The text of a warning that is as grave as an error; `warn` gives it as a `DeterminismWarning`."""


def warn(texts: Iterable[str]) -> None:
    """Give each text as a Python warning, at the line of the user's code that called weftline."""
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    for text in texts:
        kind = DeterminismWarning if isinstance(text, Conflict) else WeftlineWarning
        warnings.warn(text, kind, stacklevel=level)
