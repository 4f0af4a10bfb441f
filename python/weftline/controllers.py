"""Controllers in Python that a scenario may name as ``python:NAME``: found in files, identified by code.

Which code a controller has is part of what a run is, so the store of a sweep counts it (`code_digest`).
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from weftline import scenarios
from weftline.controller import Controller
from weftline.errors import InputError, nearest

if TYPE_CHECKING:
    from weftline.fresh_modules import Execution, File

PREFIX = "python:"
"""Begins the kind of a controller in Python; a kind without it is that of a built-in one."""
_NAME = r"[A-Za-z0-9_.+-]+"
_NAMED_IN_TEXT = re.compile(rf"""["']{PREFIX}({_NAME})["']""")


@dataclass(frozen=True, eq=False)
class Law:
    """A controller in Python: what makes the object of a flow, and which code that is."""

    name: str
    make: Callable[[Any], Any]
    """A subclass of `Controller`, or anything that returns such an object for a flow."""
    origin: str = ""
    """``FILE.py:CLASS``, where it came from a file."""
    is_of_one_run: bool = False
    """Whether no other run has this object and the state of its module."""
    _file: File | None = None
    _execution: Execution | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        if self._file is None:
            return Law, (self.name, self.make, self.origin, self.is_of_one_run)
        return Law._executed, (self.name, self.origin, self._file)

    @classmethod
    def of_file(cls, name: str, origin: str, base_dir: Path) -> Law:
        """Return the controller of ``"FILE.py:CLASS"``; the file is executed."""
        file, colon, wanted = origin.rpartition(":")
        if not colon or not file.endswith(".py") or not wanted.isidentifier():
            raise InputError(f'controllers: {name}: expected "FILE.py:CLASS", found "{origin}"')
        return cls._executed(name, origin, _read(base_dir / file, name))

    @classmethod
    def _executed(cls, name: str, origin: str, file: File, is_of_one_run: bool = False) -> Law:
        execution = _execute(file, name)
        make = _class_of(execution.module, origin.rpartition(":")[2], file.path, name)
        return cls(name, make, origin, is_of_one_run, file, execution)

    def of_next_run(self) -> Law:
        """Return the controller for one run: its file is executed again. A given object stays itself.

        Raises
        ------
        InputError
            If the file, executed again, has another content.
        """
        from weftline import code_digest

        if self._file is None:
            return self
        found = Law._executed(self.name, self.origin, self._file, True)
        if self.known_digest != found.known_digest:
            then, now = code_digest.state(self.make), code_digest.state(found.make)
            differ = [name for name in then | now if then.get(name) != now.get(name)]
            raise InputError(
                f'controller "{self.name}": executing {self._file.path} again gave another content of '
                f"{', '.join(differ) or 'its code'}, so nothing identifies its runs; expected a file that "
                "gives the same content each time, such as random.Random(seed) with a seed"
            )
        return found

    def as_it_is_now(self) -> Law:
        """Return it with the digest of its code now: values that a given object uses may have changed."""
        return Law(self.name, self.make, self.origin, self.is_of_one_run) if self._file is None else self

    def own_modules(self) -> contextlib.AbstractContextManager[None]:
        """Let `sys.modules` have the user's modules that its file imported meanwhile."""
        return self._execution.current() if self._execution else contextlib.nullcontext()

    @cached_property
    def _content(self) -> tuple[str, Mapping[str, ModuleType]] | Exception:
        from weftline import code_digest

        reader = code_digest.Reader(self._file.texts if self._file else None)
        try:
            with self.own_modules():
                found = reader.digest(self.make), reader.modules
        except code_digest.UnreadableError as error:
            return error
        except RecursionError:
            raise InputError(f'controller "{self.name}": what it depends on is nested too deeply') from None
        for module in () if self._file else reader.modules.values():
            if changed := code_digest.changed_file(module):
                raise InputError(
                    f'controller "{self.name}": {changed} has changed since it was imported, and this '
                    "process has the code from before: start Python again, or "
                    f"importlib.reload({module.__name__}) and import its names again; a controller that is "
                    'given as "FILE.py:CLASS" is always read again'
                )
        return found

    @property
    def digest(self) -> str:
        """The digest of its code.

        Raises
        ------
        InputError
            If it depends on something whose content has no digest, or that has changed since it was loaded.
        """
        return self._readable[0]

    @property
    def known_digest(self) -> str | None:
        """The digest of its code, None if it depends on something whose content has no digest."""
        return None if isinstance(self._content, Exception) else self._content[0]

    @property
    def why_unknown(self) -> str:
        """What it depends on whose content has no digest; empty if everything has one."""
        return str(self._content) if isinstance(self._content, Exception) else ""

    @property
    def modules(self) -> Mapping[str, ModuleType]:
        """The user's modules that its code is in."""
        return self._readable[1]

    @property
    def _readable(self) -> tuple[str, Mapping[str, ModuleType]]:
        if isinstance(self._content, Exception):
            raise InputError(
                f'controller "{self.name}" depends on something whose content has no digest, so its '
                f"runs cannot be kept: {self._content}"
            )
        return self._content


Laws = Mapping[str, Law]


def of(given: Mapping[str, Any] | None, base_dir: str | os.PathLike[str] = ".") -> dict[str, Law]:
    """Return controllers by name; each is given as a class, or as ``"FILE.py:CLASS"`` relative to `base_dir`.

    Raises
    ------
    InputError
        If one cannot be had.
    """
    if given is not None and not isinstance(given, Mapping):
        raise InputError(
            f'controllers: expected a table such as {{ aimd = "aimd.py:Aimd" }}, found {given!r}'
        )
    found = {}
    for name, what in (given or {}).items():
        if not isinstance(name, str) or not re.fullmatch(_NAME, name):
            raise InputError(
                f"controllers: {name!r}: expected a name of letters, digits, '-', '_', '+' and '.'"
            )
        if isinstance(what, str):
            found[name] = Law.of_file(name, what, Path(base_dir))
        elif callable(what):
            found[name] = Law(name, what)
        else:
            raise InputError(
                f'controllers: "{name}" is {what!r}, expected a class with on_ack(self, ack), '
                'or where it is: "FILE.py:CLASS"'
            )
    return found


def parse(arguments: Sequence[str]) -> dict[str, Law]:
    """Return the controllers of the command line, each as ``NAME=FILE.py:CLASS``."""
    found = {}
    for argument in arguments:
        name, equals, what = argument.partition("=")
        if not equals:
            raise InputError(
                f"--controller {argument}: expected NAME=FILE.py:CLASS, such as aimd=aimd.py:Aimd"
            )
        if (name := name.strip()) in found:
            raise InputError(f'--controller {argument}: "{name}" is given twice')
        found[name] = what.strip()
    return of(found)


def stand_ins(text: str) -> dict[str, type]:
    """Return something for each controller in Python that a scenario names, to read it without them."""
    return dict.fromkeys(_NAMED_IN_TEXT.findall(text), Controller)


def named_in(resolved: object, laws: Laws) -> list[Law]:
    """Return those that a parsed scenario names as a ``kind``, in order of names."""
    texts = scenarios.texts_in(resolved)
    kinds = {text.removeprefix(PREFIX) for key, text in texts if key == "kind" and text.startswith(PREFIX)}
    return [laws[name] for name in sorted(laws) if name in kinds]


def unused_text(name: str, of: str) -> str:
    """Return the sentence on a controller in Python that was given and that nothing names."""
    return (
        f'controller "{name}" was given and is not used: no controller of {of} is "{PREFIX}{name}"; set '
        f'transport.controller.kind to "{PREFIX}{name}"'
    )


def _class_of(module: ModuleType, wanted: str, path: Path, name: str) -> Any:
    found = getattr(module, wanted, None)
    if found is None or not callable(found):
        known = [
            n for n, v in vars(module).items() if isinstance(v, type) and v.__module__ == module.__name__
        ]
        raise InputError(
            f'controllers: {name}: {path} has no class "{wanted}": {nearest(wanted, known)}'
            f"it has: {', '.join(known) or 'no class'}"
        )
    if isinstance(found, type) and not callable(getattr(found, "on_ack", None)):
        raise InputError(f"controllers: {name}: {path}: {wanted} has no method on_ack(self, ack)")
    return found


def _read(path: Path, name: str) -> File:
    from weftline.fresh_modules import File

    try:
        return File(path)
    except SyntaxError as error:
        raise InputError(f"controllers: {name}: {path}:{error.lineno}: {error.msg}") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"controllers: {name}: {path}: cannot be read: {why}") from None


def _execute(file: File, name: str) -> Execution:
    import traceback

    try:
        return file.execute()
    except (Exception, SystemExit) as error:
        text = str(file.path)
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == text]
        at = f":{lines[-1]}" if lines else ""
        what = f"{type(error).__name__}: {error}"
        if isinstance(error, SystemExit):
            what = f"it ends the program (SystemExit: {error}) when it is loaded"
        raise InputError(f"controllers: {name}: {text}{at}: {what}") from None
