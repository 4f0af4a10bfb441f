"""Tells whether two pieces of Python would do the same: a digest of code and of all that it refers to.

It follows a class or function to its bases, methods, defaults, attributes, closures and the globals that it
reads, by what they are now. Libraries (the standard library, what pip installed, weftline itself) count by
name and version, modules of the user by the text of their files and of those that these import, inside of
functions too, and by what those of their globals are now that code names as attributes. Comments and
formatting of functions do not count; the minor version of Python does, because its bytecode is what is looked
at. A module that code loads by a name which it computes is not found.
"""

from __future__ import annotations

import ast
import contextlib
import copyreg
import dis
import functools
import hashlib
import importlib.util
import marshal
import os
import random
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
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
    """Something whose content has no digest, such as an open file or a lock.

    Attributes
    ----------
    place : str
        The name by which code reads it, and the place of that code.
    """

    place = ""

    def __str__(self) -> str:
        return self.place + super().__str__()


class Reader:
    """Describes objects by their content.

    Parameters
    ----------
    texts : dict of path to bytes, optional
        What files of modules hold, in place of what is on the disk.

    Attributes
    ----------
    modules : dict of name to module
        Those of the user that were met.
    """

    def __init__(self, texts: Mapping[str, bytes] | None = None) -> None:
        self.modules: dict[str, ModuleType] = {}
        self._texts = texts or {}
        self._met: dict[int, int] = {}
        self._described: set[str] = set()
        """Modules of the user whose text counts already."""
        self._loaded: dict[str, ModuleType] = {}
        """Those that were loaded before the code that was met, which holds them."""
        self._late: dict[str, ModuleType] = {}
        """Those that functions import when they run: a process may have loaded them or not."""
        self._attributes: set[str] = set()
        """Names of attributes in the code that was met."""
        self._is_lenient = False
        """Whether what has no digest counts by its type."""
        self._held: list[object] = []
        """What was met, so that no address is used twice."""

    def digest(self, thing: object) -> str:
        """Return 64 hexadecimal digits.

        Raises
        ------
        UnreadableError
            If it depends on something whose content has no digest.
        """
        content = self._content(thing)
        return hashlib.sha256(f"{sys.version_info[:2]} {content}{self._globals_named()}".encode()).hexdigest()

    def _globals_named(self) -> str:
        """Describe the globals of the user's modules that code names, in any module that it may mean.

        The text of a module tells what its globals were at first; code may have set them since. Modules that
        functions import are described by what differs from their text, so that a digest does not depend on
        what has run before.
        """
        self._is_lenient = True  # the text counts in any case
        found: dict[tuple[str, str], str] = {}
        while left := [
            (module, name)
            for _, module in sorted(self._loaded.items())
            for name in sorted(self._attributes & vars(module).keys())
            if (module.__name__, name) not in found
        ]:
            for module, name in left:
                value = vars(module)[name]
                found[module.__name__, name] = f",{module.__name__}.{self._named({name: value}, '')}"
        changed = [
            f",{module}.{name} {content}"
            for module in sorted(self._late.keys() - self._loaded.keys())
            for name, content in self._changed(self._late[module])
        ]
        return "".join([*found.values(), *changed])

    def _changed(self, module: ModuleType) -> Iterable[tuple[str, str]]:
        """Yield those globals, and attributes of classes, whose text gives a constant that they are not now.

        Only what code names counts, and what the functions of the module that code names read.
        """
        file = getattr(module, "__file__", None)
        constants = _constants(self._bytes(file)) if file and file.endswith(".py") else {}
        left, met = sorted(self._attributes), set(self._attributes)
        for name in left:
            value = vars(module).get(name)
            values = {name: value} if name in vars(module) else {}
            if isinstance(value, type):
                values = {f"{name}.{key}": part for key, part in vars(value).items()}
            if isinstance(value, FunctionType) and value.__globals__ is vars(module):
                read = [other for other in _globals_of(value.__code__) if other not in met]
                met.update(read)
                left += read
            for place, part in values.items():
                if place in constants and (now := _content_or_type(part)) != _content_or_type(
                    constants[place]
                ):
                    yield place, now

    def _content(self, thing: Any) -> str:
        if type(thing) in _PLAIN:
            return f"{type(thing).__name__} {thing!r}"
        if isinstance(thing, ModuleType):
            if not _is_library(thing.__name__):
                self._loaded[thing.__name__] = thing
            return f"module({self._module(thing)})"
        if id(thing) in self._met:
            return f"#{self._met[id(thing)]}"
        if type(thing) not in _CONSTANTS:
            self._met[id(thing)] = len(self._met)
            self._held.append(thing)
        return f"{type(thing).__name__}({self._inside(thing)})"

    def _inside(self, thing: Any) -> str:
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
        reader = Reader(self._texts)
        reader._is_lenient = self._is_lenient
        text = reader._content(part)
        self.modules.update(reader.modules)
        self._loaded.update(reader._loaded)
        self._late.update(reader._late)
        self._attributes.update(reader._attributes)
        return text

    def _all(self, parts: Iterable[Any]) -> str:
        return ",".join(self._content(part) for part in parts)

    def _pairs(self, pairs: Mapping[str, Any]) -> str:
        return ",".join(f"{self._content(key)}:{self._content(value)}" for key, value in pairs.items())

    def _named(self, values: Mapping[str, Any], place: str) -> str:
        """Describe values by name; `place` is where an error states that one is, with ``{}`` for its name."""
        found = []
        for name, value in values.items():
            try:
                found.append(f"{self._content(name)}:{self._content(value)}")
            except UnreadableError as error:
                if not self._is_lenient:
                    error.place = error.place or place.format(name)
                    raise
                found.append(f"{self._content(name)}:{type(value).__name__}")
        return ",".join(found)

    def _function(self, function: FunctionType) -> str:
        self._note(function.__module__)
        cells = function.__closure__ or ()
        held = [cell.cell_contents if _is_filled(cell) else None for cell in cells]
        around = function.__globals__
        read = {name: around[name] for name in _globals_of(function.__code__) if name in around}
        parts = self._all((function.__defaults__, function.__kwdefaults__, held))
        code = function.__code__
        reader = f"which {function.__qualname__} reads ({Path(code.co_filename).name}:{code.co_firstlineno})"
        globals_read = self._named(read, "{}, " + reader + ": ")
        imports = _imports_of(code)
        imported = self._imported(imports, around)
        late = {name: sys.modules[name] for name in _names(imports, around) if name in sys.modules}
        self._late |= {name: module for name, module in late.items() if not _is_library(name)}
        self._attributes |= _attributes_of(code)
        attributes = self._pairs(vars(function)) if vars(function) else ""
        return f"{self._code(code)},{parts},{globals_read}{attributes}{imported}"

    def _code(self, code: CodeType) -> str:
        shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        return f"{shape}{names}{code.co_code.hex()} {code.co_exceptiontable.hex()}{self._all(code.co_consts)}"

    def _class(self, cls: type) -> str:
        self._note(cls.__module__)
        own = {name: value for name, value in sorted(vars(cls).items()) if name not in _OF_EVERY_CLASS}
        attributes = self._named(own, cls.__name__ + ".{}: ")
        return f"{cls.__name__},{self._all((type(cls), *cls.__bases__))},{attributes}"

    def _instance(self, thing: object) -> str:
        """Describe an object as pickle would take it apart."""
        try:
            reduce = copyreg.dispatch_table.get(type(thing))
            found = reduce(thing) if reduce else thing.__reduce_ex__(4)
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
        if name in self._described:
            return name
        self._described.add(name)
        text = f"{name},{self._file(getattr(module, '__file__', None), vars(module))}"
        used = {self._name_of(value) for value in vars(module).values()} - self._described
        others = [sys.modules[other] for other in sorted(used - {""}) if other in sys.modules]
        return f"{text},{self._all(m for m in others if not _is_library(m.__name__))}"

    def _file(self, file: str | None, around: Mapping[str, Any]) -> str:
        """Describe a module by the text of its file and by the modules of the user that it imports.

        Loaded or not, it is described alike, so that a digest does not depend on what has run before.
        """
        if not file:
            return ""
        try:
            data = self._bytes(file)
        except OSError as error:
            raise UnreadableError(f"module {around.get('__name__')}: {error}") from None
        digest = hashlib.sha256(data).hexdigest()
        try:
            found = _imports_in(ast.parse(data)) if file.endswith(".py") else []
        except (SyntaxError, ValueError):
            return digest
        return digest + self._imported(found, around)

    def _bytes(self, file: str) -> bytes:
        return self._texts[file] if file in self._texts else Path(file).read_bytes()

    def _imported(self, imports: Iterable[Import], around: Mapping[str, Any]) -> str:
        """Describe the modules of the user that code with these globals imports."""
        return "".join(
            f",{text}" for name in _names(imports, around) if (text := self._by_name(name, around))
        )

    def _by_name(self, name: str, around: Mapping[str, Any]) -> str:
        if name in sys.modules:
            return "" if _is_library(name) else self._module(sys.modules[name])
        spec = _spec(name, around.get("__file__"))
        if spec is None or _is_of_library(name, spec.origin):
            return ""
        if name in self._described:
            return name
        self._described.add(name)
        inside = {"__name__": name, "__file__": spec.origin, "__package__": spec.parent}
        return f"{name},{self._file(spec.origin, inside)},"

    @staticmethod
    def _name_of(value: object) -> str:
        found = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
        return found if isinstance(found, str) else ""

    def _note(self, name: str | None) -> None:
        if name in sys.modules and name != "__main__":
            self.modules[name] = sys.modules[name]


_LOADED: dict[str, tuple[ModuleSpec, str]] = {}
"""What the files of the user's modules held when they were loaded, as far as it is known, by name."""


def changed_file(module: ModuleType) -> str | None:
    """Return the file of a module if it has other code than when the module was loaded; None if it has not.

    What it had then is known from the compiled file that Python kept, else from the first call.
    """
    spec, file = module.__spec__, getattr(module, "__file__", None)
    if spec is None or not file or not file.endswith(".py") or module.__name__ == "__main__":
        return None
    try:
        now = _text_digest(compile(Path(file).read_bytes(), file, "exec", dont_inherit=True))
    except OSError:
        return None
    except (SyntaxError, ValueError):
        return file
    known = _LOADED.get(module.__name__)
    if known is None or known[0] is not spec:  # loaded for the first time, or again
        known = _LOADED[module.__name__] = (spec, _compiled_digest(spec) or now)
    return None if known[1] == now else file


def _compiled_digest(spec: ModuleSpec) -> str | None:
    """Return the digest of the code that Python kept of a module; it writes that when it loads a text."""
    kept = spec.cached if type(spec.loader) is SourceFileLoader and not sys.dont_write_bytecode else None
    if not kept or not os.access(os.path.dirname(kept), os.W_OK):
        return None
    try:
        return _text_digest(marshal.loads(Path(kept).read_bytes()[16:]))
    except (OSError, EOFError, ValueError, TypeError):
        return None


def _text_digest(code: CodeType) -> str:
    return hashlib.sha256(Reader()._content(code).encode()).hexdigest()


def state(thing: object) -> dict[str, str]:
    """Return digests of what a class or function keeps outside of its objects, by names for people.

    ``Aimd.alive`` is an attribute of a class, ``TABLE`` a global, ``steps.TABLE`` one of a module. Of two
    answers those are different that code has changed meanwhile.
    """
    found: dict[str, str] = {}
    met: set[int] = set()
    left: list[tuple[str, Any]] = [("", thing)]
    while left:
        name, value = left.pop()
        if id(value) in met and (not name or isinstance(value, type | FunctionType | ModuleType)):
            continue
        met.add(id(value))
        if isinstance(value, type | FunctionType | BuiltinFunctionType) and _is_known(value):
            continue
        if isinstance(value, staticmethod | classmethod | MethodType):
            left.append(("", value.__func__))
        elif isinstance(value, property):
            left += [("", part) for part in (value.fget, value.fset, value.fdel) if part]
        elif isinstance(value, functools.partial):
            left += [("", value.func), *((f"argument of {_name(value.func)}", part) for part in value.args)]
            left += [(f"{_name(value.func)}({key}=)", part) for key, part in value.keywords.items()]
        elif isinstance(value, type):
            left += [("", base) for base in value.__bases__]
            own = {key: part for key, part in vars(value).items() if key not in _OF_EVERY_CLASS}
            left += [(f"{value.__name__}.{key}", part) for key, part in own.items()]
        elif isinstance(value, FunctionType):
            left += _kept_by(value)
        elif isinstance(value, ModuleType):
            if not _is_library(value.__name__):
                shown = [(key, part) for key, part in vars(value).items() if not key.startswith("__")]
                left += [(f"{value.__name__}.{key}", part) for key, part in shown if _is_state(part)]
        else:
            found[name or type(value).__name__] = _digest_or_type(value)
    return found


def _kept_by(function: FunctionType) -> list[tuple[str, Any]]:
    code, around = function.__code__, function.__globals__
    read = {name: around[name] for name in _globals_of(code) if name in around}
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    read |= {name: cell.cell_contents for name, cell in cells if _is_filled(cell)}
    read |= {f"{function.__name__}.{name}": value for name, value in vars(function).items()}
    read |= {f"{function.__name__}({name}=)": part for name, part in (function.__kwdefaults__ or {}).items()}
    defaults = function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount][code.co_argcount - len(defaults) :]
    read |= {f"{function.__name__}({name}=)": part for name, part in zip(names, defaults, strict=True)}
    return list(read.items())


def _is_state(value: object) -> bool:
    """Return whether a module may keep in this what changes; objects of libraries do not count."""
    kind = type(value)
    if isinstance(value, type):
        return not _is_known(value)
    return kind in (*_PLAIN, list, dict, set, tuple, random.Random) or not _is_library(kind.__module__)


def _digest_or_type(value: object) -> str:
    return hashlib.sha256(_content_or_type(value).encode()).hexdigest()


def _content_or_type(value: object) -> str:
    try:
        return Reader()._content(value)
    except (UnreadableError, RecursionError):
        return f"{type(value).__name__} without a digest"


def _name(thing: object) -> str:
    return str(getattr(thing, "__name__", type(thing).__name__))


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


def _attributes_of(code: CodeType) -> set[str]:
    """Return the names that code reads of objects, or holds as text, with the functions inside it."""
    found = {
        one.argval
        for one in dis.get_instructions(code)
        if one.opname in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM")
    }
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _attributes_of(constant)
        else:
            found |= {
                text
                for text in (constant if isinstance(constant, tuple) else (constant,))
                if isinstance(text, str)
            }
    return {name for name in found if name.isidentifier() and not name.startswith("__")}


def _constants(data: bytes) -> dict[str, Any]:
    """Return what the text of a module sets its globals and the attributes of its classes to, if constant.

    ``Params.GAIN`` is an attribute of a class.
    """
    try:
        left: list[tuple[str, ast.stmt]] = [("", node) for node in ast.parse(data).body]
    except (SyntaxError, ValueError):
        return {}
    found: dict[str, Any] = {}
    for place, node in left:
        if isinstance(node, ast.ClassDef) and not place:
            left += [(f"{node.name}.", inside) for inside in node.body]
        if not isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [f"{place}{target.id}" for target in targets if isinstance(target, ast.Name)]
        for name in names:
            found.pop(name, None)
        if not isinstance(node, ast.AugAssign):
            with contextlib.suppress(ValueError, TypeError, RecursionError):
                found |= dict.fromkeys(names, ast.literal_eval(node.value))
    return found


Import = tuple[int, str, Sequence[str]]
"""How many packages up it begins, the module, and what is taken from it."""


def _imports_of(code: CodeType) -> list[Import]:
    """Return what code imports when it runs, with the functions inside it."""
    found: list[Import] = []
    before: list[Any] = [0, None]
    for one in dis.get_instructions(code):
        if one.opname == "IMPORT_NAME":
            level, names = before
            found.append((level, one.argval or "", names or ()))
        before = [before[1], one.argval] if one.opname != "EXTENDED_ARG" else before
    for constant in code.co_consts:
        found += _imports_of(constant) if isinstance(constant, CodeType) else []
    return found


def _imports_in(tree: ast.AST) -> list[Import]:
    """Return what the text of a module imports, inside of functions too."""
    found: list[Import] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(0, one.name, ()) for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append((node.level, node.module or "", [one.name for one in node.names]))
    return found


def _names(imports: Iterable[Import], around: Mapping[str, Any]) -> list[str]:
    """Return the full names of modules that imports may load, packages first."""
    found = []
    for level, module, names in imports:
        if level:
            try:
                module = importlib.util.resolve_name("." * level + module, around.get("__package__") or "")
            except ImportError:
                continue
        for name in (module, *(f"{module}.{part}" for part in names)):
            parts = name.split(".")
            found += [".".join(parts[: end + 1]) for end in range(len(parts))]
    return list(dict.fromkeys(found))


def imported(text: bytes, around: Mapping[str, Any], first: str) -> Iterable[tuple[str, ModuleSpec]]:
    """Yield the modules of the user that the text of a module imports, and where they are.

    `around` has its ``__file__`` and ``__package__``; `first` is the file that was executed first, whose
    folder is searched before Python's path.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for name in _names(_imports_in(tree), around):
        spec = None if name.partition(".")[0] == "weftline" else _spec(name, first)
        if spec is None:
            continue
        folders = spec.submodule_search_locations or ()
        places = [spec.origin] if spec.origin else [f"{folder}/__init__.py" for folder in folders]
        if places and not any(_is_of_library(name, place) for place in places):
            yield name, spec


def _spec(name: str, file: str | None) -> ModuleSpec | None:
    """Return where a module that is not loaded is: in the folder of its importer, or on Python's path."""
    top, *parts = name.split(".")
    if top in sys.stdlib_module_names:
        return None
    try:
        folder = [str(Path(file).resolve().parent)] if file else []
        found = PathFinder.find_spec(top, folder + sys.path) or importlib.util.find_spec(top)
        whole = top
        for part in parts:
            if found is None or found.submodule_search_locations is None:
                return None
            whole = f"{whole}.{part}"
            found = PathFinder.find_spec(whole, list(found.submodule_search_locations))
    except (ImportError, ValueError):
        return None
    return found


def _is_library(name: str) -> bool:
    top = name.partition(".")[0]
    if top == "__main__":
        return False
    if top in sys.stdlib_module_names or top == "weftline":
        return True
    return _is_of_library(name, getattr(sys.modules.get(top), "__file__", None))


def _is_of_library(name: str, file: str | None) -> bool:
    """Return whether a module, whose package is in a file, is what pip installed or part of weftline."""
    if name.partition(".")[0] == "weftline":
        return True
    if not file:
        return False
    places = {Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib")}
    path = Path(file)
    return any(place in path.parents for place in places) or "site-packages" in path.parts


def _version(name: str | None) -> str:
    """Return the version of the package that a module is of; the standard library has Python's."""
    return str(getattr(sys.modules.get(str(name).partition(".")[0]), "__version__", ""))
