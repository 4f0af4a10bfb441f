"""Standard streams of a command: closed or broken ones never change what it does.

A daemon or a shell may start a command with a closed standard output or standard error, or close its pipe.
Python then sets the stream to None, and the next file that is opened gets the number of its descriptor: a
library would print into a file of results.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO


@contextlib.contextmanager
def usable() -> Iterator[None]:
    """Let both streams be there and take any text; afterwards they are as they were."""
    _occupy_descriptors()
    before = sys.stdout, sys.stderr
    sys.stdout = _Stream(before[0] or _nowhere(), (BrokenPipeError,))
    sys.stderr = _Stream(before[1] or _nowhere(), (OSError,))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def drop(stream: TextIO) -> None:
    """Send what is left to print nowhere; at exit Python would complain that it cannot be written."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class _Stream:
    """A stream that ignores some errors: what was to be printed is lost, and the command continues.

    Of standard output this is a pipe that its reader closed: a full disk is an error there, which the
    command reports. Of standard error it is every error.
    """

    def __init__(self, stream: TextIO, ignored: tuple[type[OSError], ...]) -> None:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
        self._stream = stream
        self._ignored = ignored

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except self._ignored:
            drop(self._stream)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except self._ignored:
            drop(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")


def _occupy_descriptors() -> None:
    """Open the null device at each standard descriptor that is closed."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            nowhere = os.open(os.devnull, os.O_RDONLY if number == 0 else os.O_WRONLY)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            os.set_inheritable(number, True)
