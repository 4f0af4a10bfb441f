"""A path that an object keeps, which names the same place after the working directory has changed."""

from __future__ import annotations

import os
from pathlib import Path


class KeptPath:
    """A path as it was given, and the working directory in which it was."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._given = Path(path)
        self._directory = None if self._given.is_absolute() else _working_directory()

    @property
    def path(self) -> Path:
        """The path as it was given; the absolute one in another working directory."""
        if self._directory is None or self._directory == _working_directory():
            return self._given
        return Path(os.path.normpath(os.path.join(self._directory, self._given)))


def _working_directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None  # it was deleted
