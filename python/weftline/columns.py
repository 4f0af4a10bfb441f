"""Columns of a run's tables as plain Python values, without any data frame library.

Tables come from the engine as streams of the Arrow C data interface (arrow.apache.org/docs/format:
CDataInterface, CStreamInterface); what is read of it here is what the tables of a run are made of: numbers,
booleans and dictionaries of text. Tables that another tool wrote may have the text itself.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

from weftline.errors import InputError

_NUMBERS = {
    "c": "b",
    "C": "B",
    "s": "h",
    "S": "H",
    "i": "i",
    "I": "I",
    "l": "q",
    "L": "Q",
    "f": "f",
    "g": "d",
}
"""Type codes of the module `array` by Arrow's formats."""
_TEXTS = {"u": "i", "U": "q"}
"""Those of where texts end, by Arrow's formats of text."""


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))),
    ("private_data", ctypes.c_void_p),
]
_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.POINTER(_Array)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))),
    ("private_data", ctypes.c_void_p),
]
_Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(_Stream))),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]


def read(table: Any, names: Sequence[str], *, max_rows: int | None = None) -> dict[str, list[Any]]:
    """Return columns of a table by name, None where a value is missing; with `max_rows` the first rows alone.

    Raises
    ------
    InputError
        If the table cannot be read to its end (its file is damaged), has no such column, or one of another
        kind.
    """
    capsule = table.__arrow_c_stream__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    stream = _Stream.from_address(pointer(capsule, b"arrow_array_stream"))
    schema = _Schema()
    _checked(stream, stream.get_schema(stream, schema))
    try:
        fields = [schema.children[n].contents for n in range(schema.n_children)]
        places = {field.name.decode(): n for n, field in enumerate(fields)}
        if lacking := [name for name in names if name not in places]:
            raise InputError(f'{_file_of(table)}: has no column "{lacking[0]}"')
        found: dict[str, list[Any]] = {name: [] for name in names}
        for batch in _batches(stream):
            for name in names:
                number = places[name]
                try:
                    found[name] += _values(fields[number], batch.children[number].contents, batch)
                except InputError as error:
                    raise InputError(f'{_file_of(table)}: column "{name}": {error}') from None
            if max_rows is not None and names and len(found[names[0]]) >= max_rows:
                break
        return {name: values[:max_rows] for name, values in found.items()}
    finally:
        schema.release(schema)


def _file_of(table: Any) -> str:
    return str(getattr(getattr(table, "_native", table), "path", "the table"))


def _batches(stream: _Stream) -> Iterator[_Array]:
    while True:
        batch = _Array()
        _checked(stream, stream.get_next(stream, batch))
        if not batch.release:
            return
        try:
            yield batch
        finally:
            batch.release(batch)


def _checked(stream: _Stream, status: int) -> None:
    if status:
        text = stream.get_last_error(stream)
        raise InputError(text.decode("utf-8", "replace") if text else f"the table cannot be read ({status})")


def _values(field: _Schema, column: _Array, batch: _Array) -> list[Any]:
    start, count = column.offset + batch.offset, batch.length
    form = field.format.decode()
    if field.dictionary:
        # Where a value is missing, any number may stand.
        dictionary = column.dictionary.contents
        kind = field.dictionary.contents.format.decode()
        if kind not in _TEXTS:
            raise InputError(f"expected a dictionary of text, found one of the Arrow format {kind!r}")
        words = [*_texts(dictionary, kind, dictionary.offset, dictionary.length), None]
        values: list[Any] = [words[min(n, len(words) - 1)] for n in _numbers(form, column, start, count)]
    elif form == "b":
        values = [bool(bit) for bit in _bits(column.buffers[1], start, count)]
    elif form in _NUMBERS:
        values = _numbers(form, column, start, count).tolist()
    elif form in _TEXTS:
        values = list(_texts(column, form, start, count))
    else:
        raise InputError(f"expected numbers, truth values or text, found the Arrow format {form!r}")
    if column.null_count and column.buffers[0]:
        there = _bits(column.buffers[0], start, count)
        values = [value if bit else None for value, bit in zip(values, there, strict=True)]
    return values


def _numbers(form: str, column: _Array, start: int, count: int) -> array[Any]:
    numbers = array(_NUMBERS[form])
    if count:
        address = column.buffers[1] + start * numbers.itemsize
        numbers.frombytes(ctypes.string_at(address, count * numbers.itemsize))
    return numbers


def _bits(address: int, start: int, count: int) -> list[int]:
    data = ctypes.string_at(address, (start + count + 7) // 8)
    return [data[n >> 3] >> (n & 7) & 1 for n in range(start, start + count)]


def _texts(column: _Array, form: str, start: int, count: int) -> list[str]:
    if not count:
        return []
    ends = array(_TEXTS[form])
    ends.frombytes(ctypes.string_at(column.buffers[1] + start * ends.itemsize, (count + 1) * ends.itemsize))
    data = ctypes.string_at(column.buffers[2], ends[-1])
    return [data[ends[n] : ends[n + 1]].decode() for n in range(count)]
