"""Files that commands write: never over what they read, and whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from weftline.errors import InputError

Name: TypeAlias = "str | os.PathLike[str] | None"


def refuse_inputs(outputs: Mapping[str, Name], inputs: Iterable[Name]) -> None:
    """Raise if a file that is to be written is one that is read, or if two outputs are one file.

    Parameters
    ----------
    outputs
        By the option that names them; None: nothing is written.
    inputs
        Files that are read; None: no file.

    Raises
    ------
    InputError
        If one of the outputs would replace an input or another output.
    """
    read = {_identity(Path(name)): name for name in inputs if name is not None}
    written: dict[object, str] = {}
    for option, name in outputs.items():
        if name is None or _is_stream(path := Path(name)):
            continue
        file = _identity(path)
        if file in read:
            raise InputError(
                f"{option}: {path} is read by this command, and would be replaced: choose another file"
            )
        first = written.setdefault(file, option)
        if first != option:
            raise InputError(f"{option}: {path} is also the file of {first}: choose another file")


@contextlib.contextmanager
def whole_file(name: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a file to write into, which takes its place when all is written: until then the earlier one stays.

    Raises
    ------
    InputError
        If the file cannot be written, or would replace a result of a run or a store; an earlier one that may
        not be written is not replaced.
    """
    from weftline.integrity import refuse_result

    path = Path(name)
    refuse_result(path)
    try:
        if path.is_file():
            os.close(os.open(path, os.O_WRONLY))
        with replaced(path) as part:
            yield part
    except OSError as error:
        if error.filename != str(path):  # of another file
            raise
        raise InputError(f"{name}: {error.strerror or error}") from None


def write_whole(path: Path, text: str) -> None:
    """Write a text to a new file and move it to its place: the file is as before, or has all of the text.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    with replaced(path) as file:
        file.write_text(text, "utf-8")


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Give a new file to write into that then takes the place of `path`; a device or a pipe is itself given.

    It has the permissions of the earlier file.

    Raises
    ------
    OSError
        If the file cannot be written, with the name of `path`.
    """
    if _is_stream(path):
        yield path
        return
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    place = path.resolve() if path.is_symlink() else path
    # Processes on several machines may write into one folder.
    host = os.uname().nodename if hasattr(os, "uname") else ""
    part = place.with_name(f".{host}-{os.getpid()}-{next(_NUMBERS)}.part")
    try:
        part.touch()
        with contextlib.suppress(OSError):
            part.chmod(place.stat().st_mode & 0o777)
        yield part
        os.replace(part, place)
    except OSError as error:
        # An error of a write, as on a full disk, has no file name.
        if error.filename in (None, str(part), part):
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


_NUMBERS = itertools.count()
"""So that no two files of a process are written under one name."""


def _is_stream(path: Path) -> bool:
    """Return whether it is a device or a pipe, which has no earlier content to keep."""
    return path.exists() and not (path.is_file() or path.is_dir())


def _identity(path: Path) -> object:
    """Return what is equal for two names of one file, whether it exists or not."""
    with contextlib.suppress(OSError):
        status = path.stat()
        return status.st_dev, status.st_ino
    return path.resolve()
