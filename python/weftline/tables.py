"""Tables of results: Arrow for every data frame library, plain Python without any."""

from __future__ import annotations

import numbers
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

from weftline import _native, columns
from weftline.errors import InputError

if TYPE_CHECKING:
    from weftline.runs import Run

SHOWN_ROWS = 10
"""Rows that a notebook shows of a table."""


class Table:
    """A table whose rows are read from its file at each use.

    It offers the Arrow PyCapsule interface: ``polars.DataFrame(table)``, ``pyarrow.table(table)`` and
    ``duckdb.sql("SELECT count(*) FROM table")`` take it without copying.

    Raises
    ------
    DamagedError
        By every method that reads, if the file is not what the run wrote, or the folder holds other results
        than when the run was opened.
    """

    def __init__(self, run: Run, name: str) -> None:
        self._run, self._name = run, name
        self._folder = str(run.folder)
        self._native = _native.table(self._folder, name)

    def __reduce__(self) -> tuple[type[Table], tuple[Run, str]]:
        return type(self), (self._run, self._name)

    def _read(self) -> _native.Table:
        """Return the engine's table, after a check that the folder holds the results that were opened."""
        if (folder := str(self._run.folder)) != self._folder:
            self._folder, self._native = folder, _native.table(folder, self._name)
        return self._native

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._read().columns

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._read().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> Any:
        """Return a ``pyarrow.Table``."""
        return _package("pyarrow", "to_arrow").table(self)

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame``."""
        _package("pandas", "to_pandas")
        return _package("pyarrow", "to_pandas").table(self).to_pandas()

    def to_polars(self) -> Any:
        """Return a ``polars.DataFrame``."""
        return _package("polars", "to_polars").DataFrame(self)

    def to_dicts(self, *, max_rows: int | None = None) -> list[dict[str, Any]]:
        """Return each row as a dict, None where a value is missing; needs no other package.

        Parameters
        ----------
        max_rows : int, optional
            Return the first rows alone.

        Raises
        ------
        InputError
            If this is not a number of rows, or the table cannot be read.
        """
        is_whole = isinstance(max_rows, numbers.Integral) and not isinstance(max_rows, bool)
        if max_rows is not None and (not is_whole or max_rows < 0):
            raise InputError(f"max_rows: expected a whole number from 0, or None, found {max_rows!r}")
        names = self.columns
        found = columns.read(self, names, max_rows=max_rows)
        return [dict(zip(names, row, strict=True)) for row in zip(*found.values(), strict=True)]

    def __repr__(self) -> str:
        return f"{self._read()!r}"

    def _repr_html_(self) -> str:
        rows = self.to_dicts(max_rows=SHOWN_ROWS + 1)
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(_cell(value))}</td>" for value in row.values()) + "</tr>"
            for row in rows[:SHOWN_ROWS]
        )
        more = f"<caption>the first {SHOWN_ROWS} rows</caption>" if len(rows) > SHOWN_ROWS else ""
        return f"<table>{more}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    return "–" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _package(name: str, method: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise InputError(
            f"{method}() needs the package {name}, which is not installed: pip install {name}; "
            "to_dicts() needs none"
        ) from None
