"""A file of Python that is executed again for every run, with the modules of the user that it imports.

What code keeps in classes and modules would pass from one run to the next in a process, and the results of a
run would depend on which ran before it. All texts are read once, when the file is: editing one of them does
not change runs that begin later. Libraries are shared, and so are packages with extension modules and modules
that code loads by a name which it computes.
"""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import importlib.abc
import importlib.util
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from weftline import code_digest

_IMPORTS = threading.RLock()
"""Held while `sys.modules` has the modules of one execution."""


@dataclass(frozen=True)
class _Text:
    """The text of a module."""

    file: str
    data: bytes
    folders: list[str] | None = None
    """Where its submodules are, of a package."""

    @cached_property
    def code(self) -> CodeType:
        return compile(self.data, self.file, "exec", dont_inherit=True)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Text, (self.file, self.data, self.folders)


class File:
    """A file and the modules of the user that it imports, as they were when it was read.

    Attributes
    ----------
    path : Path
        The file.
    name : str
        The name of its module.
    texts : dict of path to bytes
        What the files of the imported modules held.

    Raises
    ------
    OSError, ValueError, SyntaxError
        If it cannot be read, or is not Python.
    """

    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        self.path = path
        self.main = _Text(str(path), data)
        _ = self.main.code
        digest = hashlib.sha256(str(path.resolve()).encode() + b"\n" + data).hexdigest()[:16]
        self.name = f"{path.stem}_{digest}"
        self.folder = str(path.resolve().parent)
        self.modules = self._gathered(data)
        """Modules of the user by name; None: one without a text, such as a namespace package."""
        self.texts = {text.file: text.data for text in self.modules.values() if text}

    def _gathered(self, data: bytes) -> dict[str, _Text | None]:
        """Read the modules of the user that a text imports, and those that these import."""
        found: dict[str, _Text | None] = {}
        shared: set[str] = set()
        left = [(data, {"__file__": str(self.path), "__package__": ""})]
        while left:
            for name, spec in code_digest.imported(*left.pop(), str(self.path)):
                if name in found:
                    continue
                if spec.origin and not spec.origin.endswith(".py"):
                    shared.add(_top(name))  # an extension module cannot be loaded twice
                text = found[name] = _text_of(spec)
                if text:
                    left.append((text.data, {"__file__": text.file, "__package__": spec.parent or ""}))
        return {name: text for name, text in found.items() if _top(name) not in shared}

    def execute(self) -> Execution:
        """Return its module, executed now."""
        return Execution(self)


def _top(name: str) -> str:
    return name.partition(".")[0]


def _text_of(spec: ModuleSpec) -> _Text | None:
    if not spec.origin or not spec.origin.endswith(".py"):
        return None
    folders = spec.submodule_search_locations
    try:
        text = _Text(spec.origin, Path(spec.origin).read_bytes(), None if folders is None else list(folders))
        _ = text.code
    except (OSError, SyntaxError, ValueError):
        return None  # its import raises the error again
    return text


class Execution(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """One execution of a file: its module, and its own copies of the modules that it imports.

    Its code has an `__import__` of its own, so that what it imports later, inside of functions, is its own
    copy too.
    """

    def __init__(self, file: File) -> None:
        self._file = file
        self._names = [*file.modules, file.name]
        self._tops = {_top(name) for name in file.modules}
        self._builtins = {**vars(builtins), "__import__": self._import}
        spec = importlib.util.spec_from_file_location(file.name, file.path)
        self.module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
        vars(self.module)["__builtins__"] = self._builtins
        self._modules = {file.name: self.module}
        self._is_current = False
        with self.current():
            exec(file.main.code, vars(self.module))
        # For what looks the module of a class up.
        sys.modules.setdefault(file.name, self.module)

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Let `sys.modules` have the modules of this execution meanwhile."""
        with _IMPORTS:
            if self._is_current:
                yield
                return
            others = {name: sys.modules.pop(name) for name in self._names if name in sys.modules}
            sys.modules.update(self._modules)
            sys.meta_path.insert(0, self)
            sys.path.insert(0, self._file.folder)
            self._is_current = True
            try:
                yield
            finally:
                self._is_current = False
                sys.path.remove(self._file.folder)
                sys.meta_path.remove(self)
                self._modules = {name: sys.modules.pop(name) for name in self._names if name in sys.modules}
                sys.modules.update(others)

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> ModuleType:
        if not level and _top(name) not in self._tops:
            return builtins.__import__(name, globals, locals, fromlist, level)
        with self.current():
            return builtins.__import__(name, globals, locals, fromlist, level)

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        """Return where a module of the user is."""
        text = self._file.modules.get(name)
        if text is None:
            return None
        return importlib.util.spec_from_file_location(
            name, text.file, loader=self, submodule_search_locations=text.folders
        )

    def exec_module(self, module: ModuleType) -> None:
        """Execute a module of the user."""
        text = self._file.modules[module.__name__]
        assert text is not None, "find_spec finds no others"
        vars(module)["__builtins__"] = self._builtins
        exec(text.code, vars(module))
