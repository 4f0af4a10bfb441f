"""Scenarios for the engine: read from a file or written from a Python dict.

Every check of their content is done by the engine, which knows the schema; here is only what concerns files
and the writing of TOML (toml.io, version 1.0).
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftline.errors import InputError, utf8

if TYPE_CHECKING:
    from weftline.controllers import Laws

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")
FILE_KEYS = frozenset({"file", "groups", "sizes", "queries"})
"""Keys of a scenario whose value may be the name of a file, or stand for several."""
_FILE_VALUES = re.compile(rf'\b(?:{"|".join(sorted(FILE_KEYS))}) = ("(?:[^"\\]|\\.)*")')
"""Their texts in a resolved scenario, which writes all of them in one form."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """The text of a scenario and where it is from."""

    text: str
    file: str
    """Name for error messages."""
    base_dir: str
    """Directory that relative file names in the scenario refer to."""
    controllers: Laws = field(default_factory=dict, compare=False)
    """Controllers in Python that it may name."""


def load(scenario: str | os.PathLike[str] | Mapping[str, Any]) -> Source:
    """Return the text of a path or of a dict.

    Raises
    ------
    InputError
        If there is no such file, it cannot be read, it is not text, or this is neither a path nor a dict.
    """
    if isinstance(scenario, Mapping):
        scenario = {"name": "run", **scenario}
        text = utf8("scenario", to_toml(scenario))
        return Source(text=text, file="<scenario from Python>", base_dir=".")
    path = path_of(scenario)
    return Source(text=read_text(path, "a scenario"), file=str(path), base_dir=str(path.parent))


MAX_BYTES = 100_000_000
"""The maximum size of a text that is read whole. A device such as /dev/zero never ends."""


def read_whole(path: Path, what: str) -> bytes:
    """Return the bytes of a file, or raise an error if there are more than `MAX_BYTES`."""
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise InputError(
            f"{path}: has more than {MAX_BYTES // 10**6} MB, expected {what}; is it the right file?"
        )
    return data


def path_of(scenario: object) -> Path:
    """Return the path of a scenario's file, or raise an error if it is something else."""
    if not isinstance(scenario, str | os.PathLike):
        raise InputError(f"scenario: expected the path of a TOML file or a dict, found {scenario!r}")
    text = os.fspath(scenario)
    return Path(utf8("scenario", text) if isinstance(text, str) else text)


def read_text(path: Path, what: str) -> str:
    """Return the text of a file, or raise an error that states what is wrong with the path."""
    try:
        return read_whole(path, f"{what} (TOML)").decode("utf-8-sig")
    except FileNotFoundError:
        folder = path.parent
        known = sorted(p.name for p in folder.glob("*.toml")) if folder.is_dir() else []
        from weftline.errors import nearest

        raise InputError(f"{path}: no such file; {nearest(path.name, known)}expected {what} (TOML)") from None
    except IsADirectoryError:
        inside = path / "scenario.toml"
        hint = f"; did you mean {inside}?" if inside.is_file() else ""
        raise InputError(f"{path}: is a directory, expected {what} (TOML){hint}") from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: not UTF-8 text (byte {error.start}), expected {what} (TOML); is it the right file?"
        ) from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{str(path)!r}: not a path: {error}") from None


def parse_set(argument: str) -> tuple[str, str]:
    """Split a ``--set PATH=VALUE`` of the command line."""
    path, equals, value = argument.partition("=")
    if not equals or not path.strip():
        raise InputError(f"--set {argument}: expected PATH=VALUE, such as --set workload.0.load=0.7")
    return path.strip(), value.strip()


def parse_sets(arguments: Sequence[str]) -> list[tuple[str, str]]:
    """Split the ``--set PATH=VALUE`` of a command line.

    Raises
    ------
    InputError
        If one is not of this form, or replaces a table in which an earlier one sets a key.
    """
    found = [parse_set(argument) for argument in arguments]
    if lost := first_lost(path for path, _ in found):
        raise InputError(lost_text("--set", *lost))
    return found


def first_lost(paths: Iterable[str]) -> tuple[str, str] | None:
    """Return the first path, of some in order, that replaces a table, and the earlier one that it undoes."""
    earlier: list[str] = []
    for path in paths:
        if lost := replaced_by(path, earlier):
            return path, lost
        earlier.append(path)
    return None


def lost_text(what: str, path: str, lost: str) -> str:
    """Return the message on a path that replaces a table in which an earlier one sets a key."""
    return (
        f"{what}: {path} replaces the table in which {lost} is set before it, which would have no effect: "
        f"set {lost} after {path}, or inside it"
    )


def replaced_by(path: str, earlier: Iterable[str]) -> str | None:
    """Return the first of some earlier paths that is lost where a table is set as a whole at a path."""
    return next((one for one in earlier if one.startswith(f"{path}.")), None)


def settings(changes: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Return dotted paths with their values as TOML, from a dict of Python values.

    Raises
    ------
    InputError
        If a value cannot be written, or one replaces a table in which an earlier one sets a key.
    """
    if changes is not None and not isinstance(changes, Mapping):
        raise InputError(f'set: expected a dict such as {{"workload.0.load": 0.7}}, found {changes!r}')
    texts = [(plain(path), value_to_toml(value, f"set: {path}")) for path, value in (changes or {}).items()]
    if lost := first_lost(path for path, _ in texts):
        raise InputError(lost_text("set", *lost))
    return [(utf8("set", path), utf8(f"set: {path}", text)) for path, text in texts]


def layered(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of all layers in the order in which they have to be applied.

    A later layer wins, also where an earlier one sets a table that the key is in: a key that is set again
    takes its place at the end.
    """
    found: dict[str, Any] = {}
    for layer in layers:
        for path, value in layer.items():
            found.pop(path, None)
            found[path] = value
    return found


def value_to_toml(value: object, path: str = "") -> str:
    """Write one value as TOML, tables inline; errors name it by `path`.

    Raises
    ------
    InputError
        If TOML, or a scenario, has no such value.
    """
    try:
        return _written(value, path)
    except RecursionError:
        raise InputError(
            f"{f'{path}: ' if path else ''}a list or a table holds itself, or is nested deeper than 80 levels"
        ) from None


def _written(value: object, path: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | os.PathLike):
        return _quoted(plain(value))
    if hasattr(value, "tolist"):  # a scalar or an array of NumPy; float64 is a float, too
        return _written(value.tolist(), path)
    if isinstance(value, int | float):
        return repr(float(value) if isinstance(value, float) else int(value))
    if isinstance(value, Mapping):
        inside = ", ".join(
            f"{_key(key)} = {_written(below, _below(path, key))}" for key, below in value.items()
        )
        return "{ " + inside + " }" if inside else "{}"
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        parts = (_written(below, _below(path, number)) for number, below in enumerate(value))
        return "[" + ", ".join(parts) + "]"
    found = "None" if value is None else f"{value!r} of type {type(value).__name__}"
    what = "text, a number, true or false, a list or a table"
    raise InputError(f"{f'{path}: ' if path else ''}a scenario cannot hold {found}, expected {what}")


def plain(value: object) -> str:
    """Return the text of a value or a key; that of a member of an enumeration of texts is its value."""
    return str.__str__(value) if isinstance(value, str) else str(value)


def to_toml(scenario: Mapping[str, Any]) -> str:
    """Write a scenario as TOML: plain keys first, then a section for each table and each table of a list."""
    lines: list[str] = []
    sections: list[str] = []
    for key, value in scenario.items():
        if isinstance(value, Mapping):
            sections += ["", f"[{_key(key)}]", *_body(value, plain(key))]
        elif isinstance(value, list | tuple) and value and all(isinstance(v, Mapping) for v in value):
            for number, table in enumerate(value):
                sections += ["", f"[[{_key(key)}]]", *_body(table, _below(plain(key), number))]
        else:
            lines.append(_line(key, value))
    return "\n".join(lines + sections).lstrip("\n") + "\n"


def _body(table: Mapping[str, Any], path: str) -> list[str]:
    return [_line(key, value, path) for key, value in table.items()]


def _line(key: object, value: object, path: str = "") -> str:
    return f"{_key(key)} = {value_to_toml(value, _below(path, key))}"


def _below(path: str, key: object) -> str:
    return f"{path}.{plain(key)}" if path else plain(key)


def _key(key: object) -> str:
    text = plain(key)
    return text if _BARE_KEY.match(text) else _quoted(text)


def _quoted(text: str) -> str:
    # TOML's basic strings take JSON's escapes; DEL is what JSON leaves bare and TOML does not.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def texts_in(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text in a parsed scenario, with the key that it stands under; in a list, the list's."""
    if isinstance(value, Mapping):
        for inner, below in value.items():
            yield from texts_in(below, inner)
    elif isinstance(value, list):
        for below in value:
            yield from texts_in(below, key)
    elif isinstance(value, str):
        yield key, value


def flat(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yield every value of a parsed scenario with its path; an empty table or list is as none."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from flat(below, (*path, str(key)))
    elif isinstance(value, list) and all(isinstance(below, Mapping) for below in value):
        for number, below in enumerate(value):
            yield from flat(below, (*path, str(number)))
    else:
        yield path, value


def given(source: Source, changes: Sequence[tuple[str, str]]) -> list[str]:
    """Return the paths of the keys that a scenario's text and its changes set."""
    try:
        written = [".".join(path) for path, _ in flat(tomllib.loads(source.text))]
    except (ValueError, RecursionError):
        written = []
    for path, text in changes:
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except ValueError:
            value = text
        written += [".".join((path, *more)) for more, _ in flat(value)]
    return sorted(set(written))


def files_by_key(resolved: str, base_dir: str) -> dict[str, str]:
    """Return what names files in a resolved scenario, by the key such as ``workload.0.sizes``."""
    found: dict[str, str] = {}
    # Most scenarios name no file: to parse them all would take most of the time in which a sweep is planned.
    texts = {json.loads(text) for text in _FILE_VALUES.findall(resolved)}
    if not any(files_of(base_dir, text) for text in texts):
        return found
    for path, value in flat(tomllib.loads(resolved)):
        # Of a table of sizes the engine makes a file's name absolute: another one is of a built-in table.
        is_word = (
            path[-1] not in FILE_KEYS or value == "none" or (path[-1] == "sizes" and not _is_full(value))
        )
        if not is_word and isinstance(value, str) and files_of(base_dir, value):
            found[".".join(path)] = value
    return found


def _is_full(name: object) -> bool:
    return isinstance(name, str) and os.path.isabs(name)


def files_of(base_dir: str, named: str) -> list[Path]:
    """Return the files that a name stands for: itself, and of Chakra's traces those of all ranks.

    Of these, ``PREFIX.0.et`` or ``PREFIX`` names them all; each may end in ``.gz``.
    """
    path = Path(base_dir) / named
    plain = str(path).removesuffix(".gz").removesuffix(".et").removesuffix(".0")
    found = [path] if _is_file(path) else []
    for rank in itertools.count():
        parts = [Path(f"{plain}.{rank}.et{end}") for end in ("", ".gz")]
        there = [part for part in parts if _is_file(part)]
        if not there:
            break
        found += [part for part in there if part not in found]
    return found


def digest_of(base_dir: str, named: str) -> str:
    """Return the SHA-256 of what a name stands for; of several files, of their digests in order."""
    found = files_of(base_dir, named)
    digests = []
    for path in found:
        with path.open("rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    return digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest()


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def named_files(resolved: str, base_dir: str) -> list[str]:
    """Return the same without their keys, each name once: traces, sizes, topologies, ..."""
    return list(dict.fromkeys(files_by_key(resolved, base_dir).values()))


def absolute_names(resolved: str, base_dir: str) -> list[tuple[str, str]]:
    """Return the settings that make the relative names of files in a resolved scenario absolute."""
    return [
        (key, value_to_toml(os.path.abspath(Path(base_dir) / name)))
        for key, name in files_by_key(resolved, base_dir).items()
        if not os.path.isabs(name)
    ]
