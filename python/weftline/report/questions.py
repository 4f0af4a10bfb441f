"""Questions in SQL of `weftline view`: one SELECT at a time, in a process of its own that can be ended.

DuckDB's own limit of memory does not hold for every value that a SELECT makes, and a single call that makes
one cannot be interrupted. So the question is answered by a child with a limit of address space, and the
child is killed when its time is up. ``python -m weftline.report.questions`` is that child: it reads the
question from its standard input and writes the answer, as JSON.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from weftline.errors import InputError, RunFailed
from weftline.sweeps.store import Store

MAX_ROWS = 2000
"""Rows that an answer to SQL shows."""
MAX_SECONDS = 30.0
"""Timeout of a query in SQL."""
MAX_BYTES = 8_000_000
"""Size of an answer to SQL."""
MAX_MEMORY = 2_000_000_000
"""Bytes that DuckDB may use; the process may map twice as many."""
START_SECONDS = 10.0
"""What starting the process may take, in addition to the time of a query."""
_SHORT = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT"),
    *("UINTEGER", "UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "DATE", "TIME", "TIMESTAMP"),
)
"""Types in SQL whose values have a size of their own; a list of them, "INTEGER[]", is none of these."""


class Questions:
    """SQL over the runs: one SELECT at a time, in memory, with no file in reach but the runs' own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def ask(self, sql: str, *, max_rows: int = MAX_ROWS, seconds: float = MAX_SECONDS) -> dict[str, Any]:
        """Return ``columns``, ``rows`` and whether there were ``more`` rows.

        Raises
        ------
        InputError
            If it is not a single SELECT, cannot be answered, takes longer than `seconds`, or more memory than
            there is for it.
        """
        if importlib.util.find_spec("duckdb") is None:
            raise InputError("SQL needs DuckDB: pip install duckdb")
        if not (Store.is_at(self._path) or (self._path / "summary.json").is_file()):
            raise InputError("SQL is over a result store of `weftline sweep`, or over one run")
        question = json.dumps([str(self._path), sql, max_rows, seconds])
        with self._lock:
            try:
                done = subprocess.run(
                    [sys.executable, "-P", "-m", __name__],
                    input=question.encode("utf-8", "replace"),
                    capture_output=True,
                    timeout=seconds + START_SECONDS,
                )
            except subprocess.TimeoutExpired:
                raise InputError(_too_long(seconds)) from None
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            # It was killed, or could not allocate its own error.
            raise InputError(_TOO_LARGE) from None
        if "error" in answer:
            raise InputError(answer["error"])
        return answer


_TOO_LARGE = (
    f"the query needs more than {MAX_MEMORY // 10**9} GB of memory: select fewer rows or shorter values"
)


def _too_long(seconds: float) -> str:
    return f"stopped after {seconds:g} s: select fewer rows"


def _answer(path: Path, sql: str, max_rows: int, seconds: float) -> dict[str, Any]:
    """Answer a question in this process."""
    import duckdb

    from weftline.sweeps import query

    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise InputError(str(error)) from None
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise InputError("expected one SELECT: this view reads and does nothing else")
    connection = query.connect(path, sql=sql)
    query.shut(connection, path)
    connection.execute(f"set memory_limit = '{MAX_MEMORY // 10**6}MB'")
    connection.execute("set lock_configuration = true")
    end = threading.Timer(seconds, connection.interrupt)
    end.daemon = True
    end.start()
    try:
        shape = connection.execute(f"describe {statements[0].query}").fetchall()
        columns = [name for name, *_ in shape]
        found = connection.execute(_cut(statements[0].query, [kind for _, kind, *_ in shape], max_rows))
        rows = _limited(found, max_rows)
    except duckdb.InterruptException:
        raise InputError(_too_long(seconds)) from None
    except (duckdb.OutOfMemoryException, MemoryError):
        raise InputError(_TOO_LARGE) from None
    except duckdb.Error as error:
        raise InputError(_TOO_LARGE if "bad_alloc" in str(error) else str(error)) from None
    finally:
        end.cancel()
    return {
        "columns": columns,
        "rows": [list(map(_plain, row)) for row in rows[:max_rows]],
        "more": len(rows) > max_rows,
    }


def _cut(sql: str, kinds: list[str], max_rows: int) -> str:
    """Return a SELECT around another whose values are no longer than an answer may be.

    Without it one list of a hundred million numbers is a Python list before its size is known.
    """
    places = [f"c{place}" for place in range(len(kinds))]
    shown = [
        place
        if kind.partition("(")[0] in _SHORT and "[" not in kind
        else f"left({place}::varchar, {MAX_BYTES + 1}) as {place}"
        for place, kind in zip(places, kinds, strict=True)
    ]
    inner = _without_end(sql)
    return f"select {', '.join(shown)} from (\n{inner}\n) as answer({', '.join(places)}) limit {max_rows + 1}"


def _without_end(sql: str) -> str:
    """Return a statement without its semicolon and the comments after it."""
    import duckdb

    cut = re.sub(r";(?:\s|;|--[^\n]*(?:\n|\Z)|/\*[^*]*\*/)*\Z", "", sql)
    try:
        duckdb.extract_statements(cut)
    except duckdb.Error:
        # The semicolon is part of a text.
        return sql
    return cut


def _limited(found: Any, max_rows: int) -> list[tuple[Any, ...]]:
    """Return up to `max_rows` rows and one more.

    Raises
    ------
    InputError
        If they take more than `MAX_BYTES` as text.
    """
    rows: list[tuple[Any, ...]] = []
    size = 0
    while len(rows) <= max_rows and (row := found.fetchone()) is not None:
        size += sum(len(value) if isinstance(value, str | bytes) else len(str(value)) for value in row)
        if size > MAX_BYTES:
            raise InputError(
                f"the answer has more than {MAX_BYTES // 10**6} MB: select fewer rows or columns"
            )
        rows.append(row)
    return rows


def _plain(value: object) -> object:
    """A value that JSON holds: numbers and texts as they are, NaN as none, all else as text."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    return str(value)


def _limit(seconds: float) -> None:
    """Limit this process, where the system can: its address space, and its processor time."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (2 * MAX_MEMORY, 2 * MAX_MEMORY))
        cores = 64
        resource.setrlimit(resource.RLIMIT_CPU, (int(cores * (seconds + START_SECONDS)),) * 2)


def main() -> None:
    """Answer the question on the standard input."""
    path, sql, max_rows, seconds = json.loads(sys.stdin.buffer.read())
    _limit(seconds)
    try:
        answer = _answer(Path(path), sql, max_rows, seconds)
    except (InputError, RunFailed) as error:
        answer = {"error": str(error)}
    except MemoryError:
        answer = {"error": _TOO_LARGE}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
