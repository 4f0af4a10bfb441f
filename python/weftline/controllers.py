"""Controllers in Python that a scenario may name as ``python:NAME``: found in files, identified by code.

Which code a controller has is part of what a run is, so the store of a sweep counts it (`code_digest`).
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from weftline import scenarios
from weftline.controller import Controller
from weftline.errors import InputError, nearest

_NAME = r"[A-Za-z0-9_.+-]+"
_NAMED_IN_TEXT = re.compile(rf"""["']python:({_NAME})["']""")


@dataclass(frozen=True, eq=False)
class Law:
    """A controller in Python: what makes the object of a flow, and which code that is."""

    name: str
    make: Callable[[Any], Any]
    """A subclass of `Controller`, or anything that returns such an object for a flow."""
    origin: str = ""
    """``FILE.py:CLASS``, where it came from a file."""

    @cached_property
    def _content(self) -> tuple[str, Mapping[str, ModuleType]]:
        from weftline import code_digest

        reader = code_digest.Reader()
        try:
            return reader.digest(self.make), reader.modules
        except code_digest.UnreadableError as error:
            raise InputError(
                f'controller "{self.name}" depends on something whose content has no digest, so its '
                f"runs cannot be kept: {error}"
            ) from None
        except RecursionError:
            raise InputError(f'controller "{self.name}": what it depends on is nested too deeply') from None

    @property
    def digest(self) -> str:
        """The digest of its code.

        Raises
        ------
        InputError
            If it depends on something whose content has no digest.
        """
        return self._content[0]

    @property
    def modules(self) -> Mapping[str, ModuleType]:
        """The user's modules that its code is in."""
        return self._content[1]


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
            found[name] = Law(name, from_file(what, Path(base_dir), name), what)
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
        found[name.strip()] = what.strip()
    return of(found)


def stand_ins(text: str) -> dict[str, type]:
    """Return something for each controller in Python that a scenario names, to read it without them."""
    return dict.fromkeys(_NAMED_IN_TEXT.findall(text), Controller)


def named_in(resolved: object, laws: Laws) -> list[Law]:
    """Return those that a parsed scenario names as a ``kind``, in order of names."""
    texts = scenarios.texts_in(resolved)
    kinds = {text.removeprefix("python:") for key, text in texts if key == "kind"}
    return [laws[name] for name in sorted(laws) if name in kinds]


def from_file(what: str, base_dir: Path, name: str) -> type:
    """Return the class of ``"FILE.py:CLASS"``; the file is executed, as Python would by its name."""
    file, colon, wanted = what.rpartition(":")
    if not colon or not file.endswith(".py") or not wanted.isidentifier():
        raise InputError(f'controllers: {name}: expected "FILE.py:CLASS", found "{what}"')
    path = base_dir / file
    module = _loaded(path, name)
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


def _loaded(path: Path, name: str) -> ModuleType:
    """Return the module of a file, executed once for what is in it now."""
    import ast
    import importlib.util
    import traceback

    try:
        data = path.read_bytes()
        ast.parse(data, str(path))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"controllers: {name}: {path}: cannot be read: {why}") from None
    except SyntaxError as error:
        raise InputError(f"controllers: {name}: {path}:{error.lineno}: {error.msg}") from None
    digest = hashlib.sha256(str(path.resolve()).encode() + b"\n" + data).hexdigest()[:16]
    known = f"{path.stem}_{digest}"
    if known in sys.modules:
        return sys.modules[known]
    spec = importlib.util.spec_from_file_location(known, path)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules[known] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        exec(compile(data, str(path), "exec", dont_inherit=True), vars(module))
    except Exception as error:
        del sys.modules[known]
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
        at = f":{lines[-1]}" if lines else ""
        raise InputError(f"controllers: {name}: {path}{at}: {type(error).__name__}: {error}") from None
    finally:
        sys.path.remove(str(path.resolve().parent))
    return module
