"""`weftline query`: a result store, or the folder of a run, as tables for SQL, through DuckDB.

    runs      a row for each finished run: run (its key), name, seed, status, version, fingerprint, totals
    points    a row for each point of the sweep whose run is finished: each axis, seed, run, status, and the
              metrics that the sweep reports
    flows     run, and the columns of flows.parquet
    series    run, and the columns of series.parquet

`run` ties them together. Flows and series are read from the files as the question needs them.
"""

from __future__ import annotations

import argparse
import csv
import decimal
import itertools
import json
import math
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftline import integrity
from weftline.errors import DamagedError, InputError
from weftline.quantities import digits
from weftline.runs import Run
from weftline.sweeps import point_rows
from weftline.sweeps.index import INDEXED, Entry, entry_of
from weftline.sweeps.store import Store
from weftline.terminal import Table, wrapped

if TYPE_CHECKING:
    import duckdb

MAX_ROWS = 200
"""Maximum number of rows of a table in the terminal."""
_TABLES = {"flows": "flows.parquet", "series": "series.parquet"}
_TYPES = {"fingerprint": "varchar"}
_SERIES = {"time_ns": "double", "entity": "varchar", "metric": "varchar", "value": "double"}


def connect(path: str | os.PathLike[str], *, sql: str | None = None) -> duckdb.DuckDBPyConnection:
    """Return a DuckDB connection, in memory, with the tables ``runs``, ``points``, ``flows`` and ``series``.

    Every file that these read is checked against its digest before. Damaged runs of a store are left out,
    with a `ResultsWarning`.

    Parameters
    ----------
    sql : str, optional
        What will be asked: only the tables that this text names, and `runs`, are read; the others are empty.

    Raises
    ------
    InputError
        If DuckDB is not installed, or the folder holds no results.
    DamagedError
        If it is the folder of one run, and that is damaged.
    """
    try:
        import duckdb
    except ImportError:
        raise InputError("SQL needs DuckDB: pip install duckdb") from None
    path = _folder(path)
    asked = [name for name in _TABLES if sql is None or name in sql.lower()]
    files = [_TABLES[name] for name in asked]
    is_store = Store.is_at(path)
    if is_store:
        kept = Store.open(path)
        entries = [entry for entry in kept.entries() if _is_whole(kept.points / entry.key, files)]
        folders = [kept.points / entry.key for entry in entries]
    else:
        run = Run.read(path)
        integrity.check(run.out, files)
        entries, folders = [entry_of(run.out, {})], [run.out]
        status = run.summary.get("status")
        if status not in ("done", None):
            integrity.warn(f"the run in {run.out} is {status}; what it has is shown")
    try:
        connection = duckdb.connect(":memory:")
        _make_runs(connection, entries)
        if is_store and (sql is None or "points" in sql.lower()):
            _make_points(connection, point_rows.read(path, entries))
        else:
            connection.execute("create view points as select seed, run, status from runs")
        for name, file in _TABLES.items():
            there = [folder / file for folder in folders if (folder / file).exists()] if name in asked else []
            _make_view(connection, name, there, _SERIES if name == "series" else {})
    except duckdb.OutOfMemoryException:
        raise MemoryError from None
    except duckdb.Error as error:
        # Only a folder without digests comes here: files of others were compared with theirs before.
        what = str(error).strip().partition("\n")[0]
        raise DamagedError(
            f"{path}: the results are damaged: {what}. Restore the folder from a copy, or run its scenario "
            "again into another folder"
        ) from None
    return connection


def _folder(path: str | os.PathLike[str]) -> Path:
    """Return a folder by its name, which is that of its run, even where it is given as `.` or `..`."""
    found = Path(path).absolute()
    return found.resolve() if ".." in found.parts else found


def _is_whole(folder: Path, files: Sequence[str]) -> bool:
    """Return whether the files of a run of a store are what the run wrote; warn if they are not."""
    try:
        integrity.check(folder, files)
    except DamagedError as error:
        integrity.warn(f"a run is left out: {error}; `weftline sweep` moves it to damaged/ and runs it again")
        return False
    return True


def _make_runs(connection: duckdb.DuckDBPyConnection, entries: Sequence[Entry]) -> None:
    columns = {
        "run": "varchar",
        "name": "varchar",
        "seed": "ubigint",
        "status": "varchar",
        "version": "varchar",
    }
    columns |= {name: _TYPES.get(name, "double") for name in INDEXED}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "runs.jsonl"
        with file.open("w", encoding="utf-8") as lines:
            for entry in entries:
                row = {"run": entry.key, "name": entry.name, "seed": entry.seed, "status": entry.status}
                lines.write(json.dumps({**row, "version": entry.version, **entry.numbers}) + "\n")
        shape = ", ".join(f"{name}: '{kind}'" for name, kind in columns.items())
        connection.execute(
            f"create table runs as select * from read_json({_literal(file)}, format = 'newline_delimited', "
            f"columns = {{{shape}}})"
        )


def _make_points(connection: duckdb.DuckDBPyConnection, found: point_rows.Rows) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "points.csv"
        with file.open("w", encoding="utf-8", newline="") as text:
            csv.writer(text, lineterminator="\n").writerows([list(found.columns), *found.rows])
        shape = ", ".join(f"{_text(name)}: '{kind}'" for name, kind in found.columns.items())
        connection.execute(
            f"create table points as select * from read_csv({_literal(file)}, header = true, "
            f"auto_detect = false, quote = '\"', escape = '\"', columns = {{{shape}}})"
        )


def shut(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Leave a connection nothing but the files below `path`, and no way to anything else."""
    path = _folder(path)
    plain = ["'" + str(p).replace("'", "''") + "'" for p in (path.resolve(), path.absolute())]
    # The views name their files as patterns in which brackets and stars are escaped.
    folders = ", ".join([*plain, _literal(path)])
    connection.execute(f"set allowed_directories = [{folders}]")
    connection.execute("set enable_external_access = false")


def _make_view(
    connection: duckdb.DuckDBPyConnection, name: str, files: Sequence[Path], empty: dict[str, str]
) -> None:
    if not files:
        shape = ", ".join(
            f"null::{kind} as {column}" for column, kind in ({"run": "varchar"} | empty).items()
        )
        connection.execute(f"create view {name} as select {shape} where false")
        return
    listed = ", ".join(_literal(file) for file in files)
    connection.execute(
        f"create view {name} as select string_split(filename, '/')[-2] as run, * exclude (filename) "
        # Runs of earlier builds lack some columns, which are null for them.
        f"from read_parquet([{listed}], filename = true, union_by_name = true)"
    )


def _literal(file: Path) -> str:
    """Return a file's name as SQL text that no pattern is read into."""
    return _text("".join(f"[{c}]" if c in "*?[" else c for c in file.absolute().as_posix()))


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def command(options: argparse.Namespace) -> int:
    """Answer one question and return the exit status."""
    form = "json" if options.json else "csv" if options.csv else options.format
    sql = (options.sql or "").strip()
    if not sql and form == "csv" and options.csv:
        return _without_sql(Path(options.folder))
    connection = connect(options.folder, sql=sql or None)
    import duckdb

    if not options.external:
        shut(connection, Path(options.folder))
    if not sql:
        described = {
            name: [c for (c,) in connection.execute(f"select column_name from (describe {name})").fetchall()]
            for name in ("runs", "points", "flows", "series")
        }
        if form == "json":
            print(json.dumps(described, indent=2))
        else:
            print("\n".join(wrapped(f"{name}: {', '.join(found)}") for name, found in described.items()))
        return 0
    try:
        statements = duckdb.extract_statements(sql)
        answers = [one for one in statements if one.type == duckdb.StatementType.SELECT]
        if not statements or len(answers) > 1:
            found = f"{len(answers)} of type SELECT" if statements else "nothing"
            raise InputError(f"expected one statement of SQL whose rows are printed, found {found}")
        cursor = connection.execute(sql)
        names = [column[0] for column in cursor.description or []]
        rows = cursor.fetchall() if names else []
    except duckdb.OutOfMemoryException:
        raise MemoryError from None
    except duckdb.Error as error:
        what = str(error).strip()
        hint = _EXTERNAL if "disabled by configuration" in what else ""
        raise InputError(
            f"{what}\n{hint}(`weftline query {options.folder}` lists tables and columns)"
        ) from None
    _print(names, rows, form)
    return 0


_EXTERNAL = "Files outside of the folder are read and written with --external alone.\n"


def _without_sql(path: Path) -> int:
    """Write the runs as CSV with their axes and numbers, which needs no package; return the exit status."""
    path = _folder(path)
    entries = Store.open(path).entries() if Store.is_at(path) else [entry_of(Run.read(path).out, {})]
    axes = list(dict.fromkeys(axis for entry in entries for axis in entry.choice))
    lines = csv.writer(sys.stdout, lineterminator="\n")
    own = ("run", "name", "seed", "status", "version")
    named = [f"{axis} axis" if axis.lower() in {*own, *INDEXED} else axis for axis in axes]
    lines.writerow([*own, *named, *INDEXED])
    for entry in entries:
        choice = [entry.choice.get(axis, "") for axis in axes]
        numbers = [entry.numbers.get(name, "") for name in INDEXED]
        lines.writerow([entry.key, entry.name, entry.seed, entry.status, entry.version, *choice, *numbers])
    return 0


def _print(names: Sequence[str], rows: Sequence[Sequence[Any]], form: str) -> None:
    if form == "json":
        keys = _distinct(names)
        found = [dict(zip(keys, map(_plain, row), strict=True)) for row in rows]
        print(json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False))
    elif form == "csv":
        lines = csv.writer(sys.stdout, lineterminator="\n")
        lines.writerow(names)
        lines.writerows(rows)
    elif names:
        note = f"... {len(rows) - MAX_ROWS} more rows; --format csv has all" if len(rows) > MAX_ROWS else ""
        body = [[_cell(value) for value in row] for row in rows[:MAX_ROWS]]
        left = (
            next((n for n, value in enumerate(rows[0]) if not isinstance(value, str)), len(names))
            if rows
            else 1
        )
        print(Table(list(names), body, note=note, left=left).text())


def _distinct(names: Sequence[str]) -> list[str]:
    """Return names of columns as keys, of which no two are equal: the second `seed` is `seed_1`."""
    found: list[str] = []
    for place, name in enumerate(names):
        later = {*found, *names[place + 1 :]}
        numbered = (f"{name}_{number}" for number in itertools.count(1))
        found.append(name if name not in found else next(key for key in numbered if key not in later))
    return found


def _plain(value: Any) -> Any:
    """Return a value that JSON holds: null for NaN and infinity, text for what JSON has no type for."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | decimal.Decimal):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    return str(value)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float | decimal.Decimal):
        number = float(value)
        return f"{number:,.0f}" if number.is_integer() and abs(number) < 1e15 else digits(number, figures=5)
    return str(value)
