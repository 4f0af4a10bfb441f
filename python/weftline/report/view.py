"""`weftline view DIR`: a result store, or a folder of run folders, in the browser of this machine alone.

The server listens on the loopback address and answers only who has its random token, which the address that
it prints carries once and a cookie after that. It reads; no request writes. SQL is a
single SELECT, over the tables of `weftline.query` and with no other files in reach.
"""

from __future__ import annotations

import hmac
import http.cookies
import json
import secrets
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from weftline import integrity
from weftline.errors import DamagedError, InputError, RunFailed
from weftline.report.page import ASSETS
from weftline.runs import Run
from weftline.sweeps.store import Store

MAX_ROWS = 2000
"""Rows that an answer to SQL shows."""
MAX_SECONDS = 30.0
"""Timeout of a query in SQL."""
MAX_COMPARED = 24
"""Runs on one page."""
_COOKIE = "weftline"
_SAFE = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
_POLICY += "img-src data:; base-uri 'none'; form-action 'none'"


class Catalogue:
    """The runs that a folder holds, by name; read again at every request, as a sweep may be under way."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            raise InputError(f"{path}: no such folder; expected a result store or a folder of run folders")
        if not self.rows():
            raise InputError(
                f"{path}: holds no runs; expected what `weftline sweep` or `weftline run` printed"
            )

    def rows(self) -> list[dict]:
        """Return one dict for each run: ``run``, ``name``, ``seed``, ``status``, its axes and its numbers."""
        if Store.is_at(self.path):
            entries = Store.open(self.path).entries()
            return [
                {"run": e.key, "name": e.name, "seed": e.seed, "status": e.status, **e.choice, **e.numbers}
                for e in entries
            ]
        return [row for folder in self._folders() if (row := _row(folder))]

    def folder(self, name: str) -> Path:
        """Return the folder of a run.

        Raises
        ------
        InputError
            If no run is called so: whatever else the name may mean to a file system, it is not looked for.
        """
        places = self._places()
        if name not in places:
            raise InputError(f'no run is called "{name}"')
        return places[name]

    def _places(self) -> dict[str, Path]:
        if Store.is_at(self.path):
            points = Store.open(self.path).points
            return {item.name: item for item in points.iterdir()}
        return {folder.name: folder for folder in self._folders()}

    def _folders(self) -> list[Path]:
        if (self.path / "summary.json").is_file():
            return [self.path]
        return sorted(folder for folder in self.path.iterdir() if (folder / "summary.json").is_file())


def _row(folder: Path) -> dict | None:
    """The row of a run in the list; empty for a folder that cannot be read."""
    try:
        summary = Run.read(folder).summary
    except DamagedError:
        return {"run": folder.name, "status": "damaged"}
    except InputError:
        return None
    slowdown = summary.get("slowdown")
    row = {"run": folder.name}
    row |= {key: summary.get(key) for key in ("name", "seed", "status", "flows", "flows_done", "end_ns")}
    if isinstance(slowdown, dict):
        row |= {f"slowdown_{p}": slowdown.get(p) for p in ("p50", "p95", "p99")}
    return row | {key: summary.get(key) for key in ("drops", "pauses", "cpu_seconds", "fingerprint")}


class Questions:
    """SQL over the runs: one SELECT at a time, in memory, with no file in reach but the runs' own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def ask(self, sql: str, *, max_rows: int = MAX_ROWS, seconds: float = MAX_SECONDS) -> dict:
        """Return ``columns``, ``rows`` and whether there were ``more`` rows.

        Raises
        ------
        InputError
            If it is not a single SELECT, cannot be answered, or takes longer than `seconds`.
        """
        try:
            import duckdb

            from weftline.sweeps import query
        except ImportError:
            raise InputError("SQL needs DuckDB: pip install 'weftline[query]'") from None
        try:
            statements = duckdb.extract_statements(sql)
        except duckdb.Error as error:
            raise InputError(str(error)) from None
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise InputError("expected one SELECT: this view reads and does nothing else")
        if not (Store.is_at(self._path) or (self._path / "summary.json").is_file()):
            raise InputError("SQL is over a result store of `weftline sweep`, or over one run")
        with self._lock:
            connection = query.connect(self._path, sql=sql)
            _shut(connection, self._path)
            end = threading.Timer(seconds, connection.interrupt)
            end.start()
            try:
                found = connection.execute(statements[0])
                rows = found.fetchmany(max_rows + 1)
                columns = [column[0] for column in found.description]
            except duckdb.InterruptException:
                raise InputError(f"stopped after {seconds:g} s: select fewer rows") from None
            except duckdb.Error as error:
                raise InputError(str(error)) from None
            finally:
                end.cancel()
                connection.close()
        return {
            "columns": columns,
            "rows": [list(map(_plain, row)) for row in rows[:max_rows]],
            "more": len(rows) > max_rows,
        }


def _shut(connection, path: Path) -> None:
    """Leave a connection nothing but the files below `path`, for good."""
    folder = str(path.resolve()).replace("'", "''")
    connection.execute(
        f"set allowed_directories = ['{folder}', '{str(path.absolute()).replace(chr(39), chr(39) * 2)}']"
    )
    connection.execute("set enable_external_access = false")
    connection.execute("set memory_limit = '2GB'")
    connection.execute("set lock_configuration = true")


def _plain(value: object) -> object:
    """A value that JSON holds: numbers and texts as they are, NaN as none, all else as text."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    return str(value)


class View:
    """The server. `url` is where it is, `serve` answers until it is closed."""

    def __init__(self, path: str | Path, *, port: int = 0) -> None:
        self.catalogue = Catalogue(path)
        self.questions = Questions(self.catalogue.path)
        self.token = secrets.token_urlsafe(24)
        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise InputError(f"port {port}: {why}; leave --port out, and a free one is taken") from None
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]

    @property
    def url(self) -> str:
        """The address that lets in."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def serve(self) -> None:
        """Answer until `close` is called in another thread, or Ctrl-C."""
        self._server.serve_forever(poll_interval=0.2)

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()

    def page(self, names: list[str]) -> str:
        """Return the report over some runs, as HTML."""
        from weftline.measures import lines
        from weftline.report import run_page

        if not 1 <= len(names) <= MAX_COMPARED:
            raise InputError(f"expected 1 to {MAX_COMPARED} runs, found {len(names)}")
        found = lines.lines_of([Run.read(self.catalogue.folder(name)) for name in names])
        return run_page.html(found, command=f"weftline view {self.catalogue.path}")


def _handler(view: View) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers GET; every other method is unknown to it."""

        server_version = "weftline"
        sys_version = ""

        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            given = {key: values[-1] for key, values in parse_qs(asked.query).items()}
            if self.headers.get("Host") not in (f"127.0.0.1:{view.port}", f"localhost:{view.port}"):
                # Another name that leads here is another site's, made to look like ours.
                return self._say(HTTPStatus.FORBIDDEN, "wrong host")
            if asked.path == "/" and _same(given.get("token", ""), view.token):
                return self._let_in()
            if not _same(self._cookie(), view.token):
                return self._say(HTTPStatus.FORBIDDEN, "open the address that `weftline view` printed")
            answer = _ANSWERS.get(asked.path)
            if answer is None:
                return self._say(HTTPStatus.NOT_FOUND, "no such page")
            try:
                kind, text = answer(view, given)
            except (InputError, RunFailed) as error:
                return self._say(HTTPStatus.BAD_REQUEST, str(error))
            self._send(
                HTTPStatus.OK,
                kind,
                text,
                {} if asked.path == "/page" else {"Content-Security-Policy": _POLICY},
            )

        def _cookie(self) -> str:
            try:
                found = http.cookies.SimpleCookie(self.headers.get("Cookie", "")).get(_COOKIE)
            except http.cookies.CookieError:
                return ""
            return found.value if found else ""

        def _let_in(self) -> None:
            cookie = f"{_COOKIE}={view.token}; HttpOnly; SameSite=Strict; Path=/"
            self._send(HTTPStatus.SEE_OTHER, "text/plain", "", {"Set-Cookie": cookie, "Location": "/"})

        def _say(self, status: HTTPStatus, text: str) -> None:
            self._send(status, "text/plain", text, {"Content-Security-Policy": "default-src 'none'"})

        def _send(self, status: HTTPStatus, kind: str, text: str, more: dict[str, str]) -> None:
            body = text.encode("utf-8", "replace")
            self.send_response(status)
            headers = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body))}
            for name, value in (headers | _SAFE | more).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing: the terminal is the user's."""

    return Handler


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def _runs(view: View, given: dict[str, str]) -> tuple[str, str]:
    return "application/json", json.dumps(view.catalogue.rows())


def _scenario(view: View, given: dict[str, str]) -> tuple[str, str]:
    path = view.catalogue.folder(given.get("run", "")) / "scenario.toml"
    integrity.check(path.parent, (path.name,))
    try:
        return "text/plain", path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None


def _query(view: View, given: dict[str, str]) -> tuple[str, str]:
    return "application/json", json.dumps(view.questions.ask(given.get("sql", "")))


def _page(view: View, given: dict[str, str]) -> tuple[str, str]:
    return "text/html", view.page([name for name in given.get("runs", "").split(",") if name])


def _asset(name: str, kind: str) -> Callable[[View, dict[str, str]], tuple[str, str]]:
    return lambda view, given: (kind, (ASSETS / name).read_text("utf-8"))


_ANSWERS: dict[str, Callable[[View, dict[str, str]], tuple[str, str]]] = {
    "/": _asset("view.html", "text/html"),
    "/view.js": _asset("view.js", "text/javascript"),
    "/page.css": _asset("page.css", "text/css"),
    "/view.css": _asset("view.css", "text/css"),
    "/api/runs": _runs,
    "/api/scenario": _scenario,
    "/api/query": _query,
    "/page": _page,
}
