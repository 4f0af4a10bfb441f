"""Tells whether two pieces of Python would do the same: a digest of code and of all that it refers to.

It follows a class or function to its bases, methods, defaults, attributes, closures and the globals that it
reads, by what they are now. Libraries (the standard library, what pip installed, weftline itself) count by
name and version, modules of the user by the text of their files. Comments and formatting do not count; the
minor version of Python does, because its bytecode is what is looked at.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented))
_CONSTANTS = (tuple, frozenset, CodeType)
"""Equal ones are one object or two as the compiler likes, so it does not count which."""
_OF_EVERY_CLASS = frozenset(
    {
        "__dict__",
        "__weakref__",
        "__module__",
        "__qualname__",
        "__doc__",
        "__firstlineno__",
        "__static_attributes__",
        "__annotations__",
        "__annotate__",
        "__annotate_func__",
        "__annotations_cache__",
        "__abstractmethods__",
        "_abc_impl",
    }
)
"""Attributes that do not affect what a class does."""


class UnreadableError(ValueError):
    """Something whose content has no digest, such as an open file or a lock."""


class Reader:
    """Describes objects by their content.

    Attributes
    ----------
    modules : dict of name to module
        Those of the user that were met.
    """

    def __init__(self) -> None:
        self.modules: dict[str, ModuleType] = {}
        self._met: dict[int, int] = {}
        self._held: list[object] = []
        """What was met, so that no address is used twice."""

    def digest(self, thing: object) -> str:
        """Return 64 hexadecimal digits.

        Raises
        ------
        UnreadableError
            If it depends on something whose content has no digest.
        """
        return hashlib.sha256(f"{sys.version_info[:2]} {self._content(thing)}".encode()).hexdigest()

    def _content(self, thing: Any) -> str:
        if type(thing) in _PLAIN:
            return f"{type(thing).__name__} {thing!r}"
        if id(thing) in self._met:
            return f"#{self._met[id(thing)]}"
        if type(thing) not in _CONSTANTS:
            self._met[id(thing)] = len(self._met)
            self._held.append(thing)
        return f"{type(thing).__name__}({self._inside(thing)})"

    def _inside(self, thing: Any) -> str:
        if isinstance(thing, ModuleType):
            return self._module(thing)
        if isinstance(thing, CodeType):
            return self._code(thing)
        if _is_known(thing):
            return f"{thing.__module__}.{thing.__qualname__} {_version(thing.__module__)}"
        if isinstance(thing, FunctionType):
            return self._function(thing)
        if isinstance(thing, type):
            return self._class(thing)
        if type(thing) in (list, tuple):
            return self._all(thing)
        if type(thing) in (dict, MappingProxyType):
            return self._pairs(thing)
        if type(thing) in (set, frozenset):
            return ",".join(sorted(self._fresh(part) for part in thing))
        if isinstance(thing, staticmethod | classmethod):
            return self._content(thing.__func__)
        if isinstance(thing, property):
            return self._all((thing.fget, thing.fset, thing.fdel))
        if isinstance(thing, functools.partial):
            return self._all((thing.func, thing.args, thing.keywords))
        if isinstance(thing, MethodType):
            return self._all((thing.__func__, thing.__self__))
        if hasattr(thing, "__objclass__"):  # a slot: its class lists it
            return str(getattr(thing, "__name__", ""))
        return self._instance(thing)

    def _fresh(self, part: object) -> str:
        """Describe a part of a set as if nothing had been met: the parts come in no order."""
        reader = Reader()
        text = reader._content(part)
        self.modules.update(reader.modules)
        return text

    def _all(self, parts: Iterable[Any]) -> str:
        return ",".join(self._content(part) for part in parts)

    def _pairs(self, pairs: Mapping[str, Any]) -> str:
        return ",".join(f"{self._content(key)}:{self._content(value)}" for key, value in pairs.items())

    def _function(self, function: FunctionType) -> str:
        self._note(function.__module__)
        cells = function.__closure__ or ()
        held = [cell.cell_contents if _is_filled(cell) else None for cell in cells]
        around = function.__globals__
        read = {name: around[name] for name in _globals_of(function.__code__) if name in around}
        parts = (function.__defaults__, function.__kwdefaults__, held, read)
        return f"{self._code(function.__code__)},{self._all(parts)}"

    def _code(self, code: CodeType) -> str:
        shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        return f"{shape}{names}{code.co_code.hex()} {code.co_exceptiontable.hex()}{self._all(code.co_consts)}"

    def _class(self, cls: type) -> str:
        self._note(cls.__module__)
        own = {name: value for name, value in sorted(vars(cls).items()) if name not in _OF_EVERY_CLASS}
        return f"{cls.__name__},{self._all((type(cls), *cls.__bases__))},{self._pairs(own)}"

    def _instance(self, thing: object) -> str:
        """Describe an object as pickle would take it apart."""
        try:
            found = thing.__reduce_ex__(4)
        except Exception as error:
            raise UnreadableError(f"{thing!r}, of type {type(thing).__name__}: {error}") from None
        if isinstance(found, str):
            return f"{type(thing).__module__}.{found},{self._content(getattr(thing, '__wrapped__', None))}"
        made_by, arguments, *more = found
        state, items, pairs = [*more, None, None, None][:3]
        return self._all((made_by, arguments, state, list(items or ()), list(pairs or ())))

    def _module(self, module: ModuleType) -> str:
        name = module.__name__
        if _is_library(name):
            return f"{name} {_version(name)}"
        self.modules[name] = module
        used = {self._name_of(value) for value in vars(module).values()}
        others = [sys.modules[other] for other in sorted(used - {name, ""}) if other in sys.modules]
        return f"{name},{_text_of(module)},{self._all(m for m in others if not _is_library(m.__name__))}"

    @staticmethod
    def _name_of(value: object) -> str:
        found = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
        return found if isinstance(found, str) else ""

    def _note(self, name: str | None) -> None:
        if name in sys.modules and name != "__main__":
            self.modules[name] = sys.modules[name]


def _is_known(thing: Any) -> bool:
    """Return whether it is a class or function of a library, which its name and version tell."""
    if isinstance(thing, BuiltinFunctionType):
        return thing.__self__ is None or isinstance(thing.__self__, ModuleType | str)
    name = getattr(thing, "__module__", None)
    return isinstance(thing, type | FunctionType) and isinstance(name, str) and _is_library(name)


def _is_filled(cell: Any) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _globals_of(code: CodeType) -> list[str]:
    """Return the names of globals that code reads, that of functions inside it too."""
    found = dict.fromkeys(
        one.argval for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    )
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found.update(dict.fromkeys(_globals_of(constant)))
    return list(found)


def _is_library(name: str) -> bool:
    top = name.partition(".")[0]
    if top == "__main__":
        return False
    if top in sys.stdlib_module_names or top == "weftline":
        return True
    file = getattr(sys.modules.get(top), "__file__", None)
    if not file:
        return False
    places = {Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")}
    path = Path(file)
    return any(place in path.parents for place in places) or "site-packages" in path.parts


def _version(name: str | None) -> str:
    """Return the version of the package that a module is of; the standard library has Python's."""
    return str(getattr(sys.modules.get(str(name).partition(".")[0]), "__version__", ""))


def _text_of(module: ModuleType) -> str:
    file = getattr(module, "__file__", None)
    if not file:
        return ""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError as error:
        raise UnreadableError(f"module {module.__name__}: {error}") from None
