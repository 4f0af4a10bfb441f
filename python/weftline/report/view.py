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
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode, urlsplit

from weftline import integrity
from weftline.errors import DamagedError, InputError, RunFailed
from weftline.report import sparks
from weftline.report.page import ASSETS
from weftline.report.questions import Questions
from weftline.runs import Run
from weftline.sweeps.store import Store

if TYPE_CHECKING:
    from weftline.measures.steps import Job

MAX_COMPARED = 24
"""Runs on one page."""
MAX_SPARKS = 50
"""Maximum number of runs whose small figures one request returns."""
MAX_DEPTH = 4
"""Depth to which subfolders are searched for stores and runs."""
IDLE_SECONDS = 20.0
"""Timeout of a connection that sends nothing."""
MAX_CONNECTIONS = 64
"""How many connections are answered at a time; further ones wait."""
_SAFE = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
_POLICY += "img-src data:; base-uri 'none'; form-action 'none'"


_Answer = Callable[["View", dict[str, str], list[str]], tuple[str, str]]
"""Of a request's parameters and the runs that it names: type and text of the answer."""


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

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict for each run: ``run``, ``name``, ``seed``, ``status``, its axes and its numbers."""
        found = []
        for store in self._stores():
            prefix = self._prefix(store)
            found += [
                {
                    "run": prefix + e.key,
                    "name": e.name,
                    "seed": e.seed,
                    "status": e.status,
                    **e.choice,
                    **e.numbers,
                }
                for e in Store.open(store).entries()
            ]
        for folder in self._folders():
            if row := _row(folder):
                found.append(row | {"run": self._prefix(folder).rstrip("/") or folder.name})
        return found

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
        inside(self.path, places[name])
        return places[name]

    def _places(self) -> dict[str, Path]:
        found = {self._prefix(folder).rstrip("/") or folder.name: folder for folder in self._folders()}
        for store in self._stores():
            points, prefix = Store.open(store).points, self._prefix(store)
            found |= {prefix + item.name: item for item in points.iterdir()}
        return found

    def _prefix(self, folder: Path) -> str:
        """Return the path of a folder relative to `path`, ending in a slash; "" for `path` itself."""
        below = folder.relative_to(self.path).as_posix()
        return "" if below == "." else f"{below}/"

    def _stores(self) -> list[Path]:
        return [folder for folder in _below(self.path) if Store.is_at(folder)]

    def _folders(self) -> list[Path]:
        return [
            folder
            for folder in _below(self.path)
            if not Store.is_at(folder) and (folder / "summary.json").is_file()
        ]


def _below(path: Path, depth: int = MAX_DEPTH) -> list[Path]:
    """Return a folder and those below it, but none inside a store or a run, and none that a link leads to."""
    found = [path]
    if depth and not Store.is_at(path) and not (path / "summary.json").is_file():
        try:
            inner = sorted(folder for folder in path.iterdir() if folder.is_dir() and not folder.is_symlink())
        except OSError:
            return found
        for folder in inner:
            found += _below(folder, depth - 1)
    return found


def inside(root: Path, folder: Path) -> None:
    """Raise if a folder, or one of its files, is a link that leads out of `root`."""
    top = root.resolve()
    try:
        paths = [folder, *folder.iterdir()]
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror or error}") from None
    for path in paths:
        if not path.resolve().is_relative_to(top):
            raise InputError(f"{path}: leads out of the folder that is shown")


def _row(folder: Path) -> dict[str, Any] | None:
    """The row of a run in the list; empty for a folder that cannot be read."""
    try:
        summary = Run.read(folder).summary
    except DamagedError:
        return {"run": folder.name, "status": "damaged"}
    except InputError:
        return None
    slowdown = summary.get("slowdown")
    row: dict[str, Any] = {"run": folder.name}
    row |= {key: summary.get(key) for key in ("name", "seed", "status", "flows", "flows_done", "end_ns")}
    if isinstance(slowdown, dict):
        row |= {f"slowdown_{p}": slowdown.get(p) for p in ("p50", "p95", "p99")}
    return row | {key: summary.get(key) for key in ("drops", "pauses", "cpu_seconds", "fingerprint")}


class _Server(ThreadingHTTPServer):
    """Answers up to `MAX_CONNECTIONS` at a time, each by a thread; a silent one ends after `IDLE_SECONDS`."""

    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS)
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._places.acquire(timeout=IDLE_SECONDS):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: a connection closed by a browser is not an error."""


class View:
    """The server. `url` is where it is, `serve` answers until it is closed."""

    def __init__(self, path: str | Path, *, port: int = 0) -> None:
        self.catalogue = Catalogue(path)
        self.questions = Questions(self.catalogue.path)
        self._running = threading.Lock()
        self.token = secrets.token_urlsafe(24)
        try:
            self._server = _Server(("127.0.0.1", port), _handler(self))
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise InputError(f"port {port}: {why}; leave --port out, and a free one is taken") from None
        self.port = self._server.server_address[1]

    @property
    def cookie(self) -> str:
        """The cookie's name: browsers do not tell ports apart, and several views may be open."""
        return f"weftline-{self.port}"

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
        runs = {self.catalogue.folder(name): name for name in names}
        by_out = {str(run.out): runs[folder] for folder in runs for run in [Run.read(folder)]}
        found = lines.lines_of([Run.read(folder) for folder in runs])

        def address(run: Run, *, flow: int | None = None, step: tuple[Job, int] | None = None) -> str:
            asked: dict[str, object] = {"flow": flow}
            if step is not None:
                (workload, group), number = step
                asked = {"job": group, "workload": workload, "step": number}
            return f"/why?{urlencode({'run': by_out[str(run.out)], **asked})}"

        return run_page.html(
            found,
            command=f"weftline view {self.catalogue.path}",
            link=address,
        )

    def why(self, name: str, flow: str, *, step: str = "", job: str = "", workload: str = "") -> str:
        """Return the page that says why a flow of a run, or a step of a job, was slow.

        One run at a time is repeated for it.
        """
        from weftline.cli import why
        from weftline.report import why_page

        folder = self.catalogue.folder(name)
        self.scenario(name)
        asked = {"step": step} if step else {"flow": flow}
        asked |= {"workload": workload} if workload else {}
        for what, number in asked.items():
            if not (number.isascii() and number.isdigit() and int(number) < 2**32):
                raise InputError(f"{what}: expected a number of 0 or more, found {number!r}")
        with self._running:
            if step:
                of = int(workload) if workload else None
                answer = why.why(folder, step=int(step), group=job or None, workload=of, intervals=True)
            else:
                answer = why.why(folder, flow=int(flow), intervals=True)
        tables = [why.flow_tables(flow) for flow in answer["flows"]]
        return why_page.html(answer, run=str(folder), tables=tables)

    def scenario(self, name: str) -> str:
        """Return the resolved scenario of a run."""
        path = self.catalogue.folder(name) / "scenario.toml"
        integrity.check(path.parent, (path.name,))
        try:
            return path.read_text("utf-8")
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: cannot be read: {error}") from None


def _handler(view: View) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers GET; every other method is unknown to it."""

        server_version = "weftline"
        timeout = IDLE_SECONDS
        sys_version = ""

        def do_GET(self) -> None:
            try:
                asked = urlsplit(self.path)
            except ValueError:
                return self._say(HTTPStatus.BAD_REQUEST, "the address cannot be read")
            every = parse_qs(asked.query)
            given = {key: values[-1] for key, values in every.items()}
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
                # A name may have any character in it: each has a parameter of its own.
                kind, text = answer(view, given, every.get("runs", []))
            except (InputError, RunFailed) as error:
                return self._say(HTTPStatus.BAD_REQUEST, str(error))
            self._send(
                HTTPStatus.OK,
                kind,
                text,
                {} if asked.path in ("/page", "/why") else {"Content-Security-Policy": _POLICY},
            )

        def _cookie(self) -> str:
            try:
                found = http.cookies.SimpleCookie(self.headers.get("Cookie", "")).get(view.cookie)
            except http.cookies.CookieError:
                return ""
            return found.value if found else ""

        def _let_in(self) -> None:
            cookie = f"{view.cookie}={view.token}; HttpOnly; SameSite=Strict; Path=/"
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


def _runs(view: View, given: dict[str, str], names: list[str]) -> tuple[str, str]:
    return "application/json", json.dumps(view.catalogue.rows())


def _sparks(view: View, given: dict[str, str], names: list[str]) -> tuple[str, str]:
    return "application/json", json.dumps({name: _spark(view, name) for name in names[:MAX_SPARKS]})


def _spark(view: View, name: str) -> dict[str, list[list[float]]]:
    """The small figures of a run; none of one that may not be read: opening it gives the error."""
    try:
        return sparks.of(view.catalogue.folder(name))
    except InputError:
        return {}


def _scenario(view: View, given: dict[str, str], names: list[str]) -> tuple[str, str]:
    return "text/plain", view.scenario(given.get("run", ""))


def _query(view: View, given: dict[str, str], names: list[str]) -> tuple[str, str]:
    return "application/json", json.dumps(view.questions.ask(given.get("sql", "")))


def _page(view: View, given: dict[str, str], names: list[str]) -> tuple[str, str]:
    return "text/html", view.page(names)


def _why(view: View, given: dict[str, str], names: list[str]) -> tuple[str, str]:
    keys = ("step", "job", "workload")
    return "text/html", view.why(
        given.get("run", ""), given.get("flow", ""), **{key: given.get(key, "") for key in keys}
    )


def _asset(name: str, kind: str) -> _Answer:
    return lambda view, given, names: (kind, (ASSETS / name).read_text("utf-8"))


_ANSWERS: dict[str, _Answer] = {
    "/": _asset("view.html", "text/html"),
    "/view.js": _asset("view.js", "text/javascript"),
    "/page.css": _asset("page.css", "text/css"),
    "/view.css": _asset("view.css", "text/css"),
    "/api/runs": _runs,
    "/api/scenario": _scenario,
    "/api/query": _query,
    "/api/sparks": _sparks,
    "/page": _page,
    "/why": _why,
    "/layout.js": _asset("layout.js", "text/javascript"),
}
