"""`weftline view`: who it lets in, what it can be asked, and how it looks in a browser."""

from __future__ import annotations

import http.client
import json
import re
import resource
import shutil
import socket
import threading
import time
from urllib.parse import quote

import commands
import pytest

import weftline
from weftline import _native
from weftline.errors import InputError
from weftline.report import questions as questions_of
from weftline.report import view

pytestmark = [
    pytest.mark.skipif(not getattr(_native, "__file__", None), reason="the native module is not built"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded"),
]

SCENARIO = {
    "name": "viewed",
    "topology": {"kind": "star", "hosts": 4},
    "workload": [{"kind": "poisson", "sizes": "google-rpc", "load": 0.3, "duration": "100us"}],
}
HOSTILE = "<img src=x onerror=document.title='broken'>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of run folders; one has a hostile name, one is not a run."""
    found = tmp_path_factory.mktemp("runs")
    for scheme in ("hpcc", "dctcp"):
        weftline.run(SCENARIO, set={"transport.controller.kind": scheme}, out=found / scheme)
    summary = json.loads((found / "dctcp" / "summary.json").read_text())
    (found / "dctcp" / "summary.json").write_text(json.dumps({**summary, "name": HOSTILE}))
    _native.write_digests(str(found / "dctcp"))
    (found / "broken").mkdir()
    (found / "broken" / "summary.json").write_text("[")
    return found


@pytest.fixture(scope="module")
def server(folder):
    found = view.View(folder)
    threading.Thread(target=found.serve, daemon=True).start()
    yield found
    found.close()


def ask(server, path, *, token=None, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    token = server.token if token is None else token
    cookie = {"Cookie": f"{server.cookie}={token}"} if token else {}
    connection.request(method, path, headers=cookie | headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer, text


def test_only_who_has_the_token_is_let_in(server):
    for path in ("/", "/api/runs", "/page?runs=hpcc", "/nothing"):
        assert ask(server, path, token="")[0].status == 403
        assert ask(server, path, token="wrong")[0].status == 403
    assert ask(server, "/?token=wrong", token="")[0].status == 403
    answer, _ = ask(server, f"/?token={server.token}", token="")
    assert answer.status == 303 and answer.headers["Location"] == "/"
    assert "HttpOnly; SameSite=Strict" in answer.headers["Set-Cookie"]


def test_tokens_are_long_and_new_each_time(folder, server):
    other = view.View(folder)
    assert len(other.token) >= 32 and other.token != server.token
    other._server.server_close()


def test_it_listens_on_the_loopback_address_alone(server):
    assert server._server.server_address[0] == "127.0.0.1"


def test_another_name_that_leads_here_is_refused(server):
    assert ask(server, "/api/runs", Host="evil.example")[0].status == 403
    assert ask(server, "/api/runs", Host=f"localhost:{server.port}")[0].status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_but_reading_is_known(server, method):
    assert ask(server, "/api/runs", method=method)[0].status == 501


def test_the_list_has_every_run_that_can_be_read(server):
    rows = json.loads(ask(server, "/api/runs")[1])
    assert [row["run"] for row in rows] == ["dctcp", "hpcc"]
    assert rows[1]["status"] == "done" and rows[1]["slowdown_p99"] >= 1


def test_the_list_of_a_store_has_the_slowdowns_of_its_runs(folder, tmp_path):
    shutil.copytree(folder / "hpcc", tmp_path / "points" / "KEY")
    (row,) = view.Catalogue(tmp_path).rows()
    of_folder = next(row for row in view.Catalogue(folder).rows() if row["run"] == "hpcc")
    assert row["slowdown_p99"] == of_folder["slowdown_p99"] >= row["slowdown_p50"] >= 1


@pytest.mark.parametrize("name", ["..", "../runs", "/etc", "hpcc/../dctcp", "", "broken/..", "%2e%2e"])
def test_no_name_leads_out_of_the_folder(server, name):
    answer, text = ask(server, f"/api/scenario?run={quote(name, safe='')}")
    assert answer.status == 400 and "no run is called" in text


def test_a_page_compares_the_runs_that_were_chosen(server):
    answer, text = ask(server, "/page?runs=hpcc&runs=dctcp")
    assert answer.status == 200 and "Side by side" in text
    assert ask(server, "/page?runs=")[0].status == 400
    assert ask(server, "/page?" + "&".join(["runs=hpcc"] * 30))[0].status == 400


def raw(server, text):
    """Send bytes as they are and return the first line of the answer."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(text.encode())
        return connection.makefile("rb").readline().decode()


@pytest.mark.parametrize("path", ["http://[::1/", "//[", "/?token=%ff", "/\x01"])
def test_an_address_that_cannot_be_read_is_a_bad_request(server, capfd, path):
    status = raw(server, f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n").split()[1]
    assert status in ("400", "403")
    assert "Traceback" not in capfd.readouterr().err


def test_a_scenario_that_is_a_link_out_of_the_folder_is_not_read(tmp_path):
    weftline.run(SCENARIO, out=tmp_path / "runs" / "linked")
    scenario = tmp_path / "runs" / "linked" / "scenario.toml"
    scenario.rename(tmp_path / "secret.toml")
    scenario.symlink_to(tmp_path / "secret.toml")
    shown = view.View(tmp_path / "runs")
    with pytest.raises(InputError, match="leads out of the folder"):
        view._scenario(shown, {"run": "linked"}, [])
    shown._server.server_close()


def test_half_open_requests_hold_few_threads_and_for_a_time(folder, monkeypatch):
    monkeypatch.setattr(view, "MAX_CONNECTIONS", 8)
    monkeypatch.setattr(view, "IDLE_SECONDS", 0.5)
    shown = view.View(folder)
    threading.Thread(target=shown.serve, daemon=True).start()
    before = threading.active_count()
    held = [socket.create_connection(("127.0.0.1", shown.port)) for _ in range(60)]
    for connection in held:
        connection.sendall(b"GET / HTTP/1.1\r\n")
    time.sleep(0.3)
    assert threading.active_count() <= before + 8
    assert ask(shown, "/api/runs")[0].status == 200, "answered once the silent ones are given up"
    for connection in held:
        connection.close()
    shown.close()


def test_the_cookie_is_of_this_port(server):
    answer, _ = ask(server, f"/?token={server.token}", token="")
    assert answer.headers["Set-Cookie"].startswith(f"weftline-{server.port}=")


def test_answers_forbid_what_they_do_not_need(server):
    answer, _ = ask(server, "/")
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"


def test_a_link_is_not_followed_out_of_the_folder(folder, tmp_path):
    secret = tmp_path / "secret"
    shutil.copytree(folder / "hpcc", secret)
    for name, asked in (
        ("scenario.toml", lambda found: view._scenario(found, {"run": "hpcc"}, [])),
        ("flows.parquet", lambda found: found.page(["hpcc"])),
        ("summary.json", lambda found: found.page(["hpcc"])),
    ):
        shown = tmp_path / f"shown-{name}"
        shutil.copytree(folder / "hpcc", shown / "hpcc")
        shutil.copytree(folder / "hpcc", shown / "other")
        (shown / "hpcc" / name).unlink()
        (shown / "hpcc" / name).symlink_to(secret / name)
        found = view.View(shown)
        with pytest.raises(InputError, match=r"leads out of the folder|no run is called"):
            asked(found)
        found._server.server_close()
    # The folder itself may be reached through a link.
    (tmp_path / "link").symlink_to(folder)
    assert "viewed" in view._scenario(view_of(tmp_path / "link"), {"run": "hpcc"}, [])[1]


def test_names_may_have_any_character_and_one_bad_folder_takes_no_small_figures_away(folder, tmp_path):
    shown = tmp_path / "shown"
    for name in ("hpcc", "a,b", "out"):
        shutil.copytree(folder / "hpcc", shown / name)
    (shown / "out" / "flows.parquet").unlink()
    (shown / "out" / "flows.parquet").symlink_to(folder / "hpcc" / "flows.parquet")
    found = view_of(shown)
    assert found.page(["a,b"]) and "a,b" in view._page(found, {}, ["a,b", "hpcc"])[1]
    small = json.loads(view._sparks(found, {}, ["hpcc", "a,b", "out", "none"])[1])
    assert {name: bool(of) for name, of in small.items()} == {
        "hpcc": True,
        "a,b": True,
        "out": False,
        "none": False,
    }


def view_of(path):
    """A view that is not served."""
    found = view.View(path)
    found._server.server_close()
    return found


@pytest.fixture
def questions(folder):
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    pytest.importorskip("weftline.sweeps.query", reason="weftline query is not there")
    return questions_of.Questions(folder / "hpcc")


def test_a_select_over_the_tables_is_answered(questions):
    found = questions.ask("select count(*) as flows, max(slowdown) >= 1 as sane from flows")
    assert found["columns"] == ["flows", "sane"] and found["rows"][0][1] is True
    assert questions.ask("select * from range(5)", max_rows=3)["more"]
    assert questions.ask("select 'NaN'::double as x")["rows"] == [[None]]


@pytest.mark.parametrize(
    "sql",
    [
        "copy flows to '{out}'",
        "create table t as select 1",
        "attach '{out}' as other",
        "set memory_limit = '100GB'",
        "install httpfs",
        "select 1; select 2",
        "export database '{out}'",
        "pragma database_list",
        "insert into runs select * from runs",
        "",
    ],
)
def test_whatever_is_no_single_select_is_refused(questions, tmp_path, sql):
    with pytest.raises(InputError, match="one SELECT"):
        questions.ask(sql.format(out=tmp_path / "out"))
    assert not list(tmp_path.iterdir())


def test_a_slow_flow_says_why_by_a_link_of_its_page(server):
    page = ask(server, "/page?runs=hpcc")[1]
    link = re.search(r'href="(/why\?run=hpcc&amp;flow=\d+)"', page)[1].replace("&amp;", "&")
    answer, text = ask(server, link)[:2]
    assert answer.status == 200 and "Where did the time go?" in text and 'class="chain"' in text
    for path in ("/why?run=hpcc&flow=x", "/why?run=hpcc&flow=99999", "/why?run=..&flow=0", "/why"):
        assert ask(server, path)[0].status == 400, path


def test_no_other_file_can_be_read(questions, tmp_path):
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    for call in (f"read_csv('{secret}')", f"read_text('{secret}')", f"glob('{tmp_path}/*')", f"'{secret}'"):
        with pytest.raises(InputError, match=r"[Pp]ermission|disabled|cannot"):
            questions.ask(f"select * from {call}")


def test_an_answer_is_limited_in_bytes(questions):
    with pytest.raises(InputError, match="the answer has more than 8 MB"):
        questions.ask("select repeat('x', 100_000) from range(200)")


def test_a_question_that_takes_too_long_is_given_up(questions):
    begin = time.monotonic()
    with pytest.raises(InputError, match=r"stopped after 0\.3 s"):
        questions.ask(
            "select count(*) from range(1000000) a, range(1000000) b where a.range > b.range", seconds=0.3
        )
    assert time.monotonic() - begin < 20


@pytest.mark.parametrize(
    "sql", ["select repeat('x', 1900000000)", "select list(repeat('x', 1000) || range) from range(100000000)"]
)
def test_a_question_cannot_take_all_memory(questions, sql):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    begin = time.monotonic()
    with pytest.raises(InputError, match=r"more than 2 GB of memory|stopped after 20 s"):
        questions.ask(sql, seconds=20)
    assert time.monotonic() - begin < 45
    largest = 1024 * max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    assert largest <= max(1024 * before, 2 * questions_of.MAX_MEMORY)


@pytest.mark.parametrize(
    "sql",
    [
        "select repeat('x', 20000000)",
        "select list(range) from range(10000000)",
        "select list(range::decimal(9, 2)) from range(5000000)",
        "select repeat('x', 100000) from range(1000)",
    ],
)
def test_an_answer_is_limited_in_bytes_too(questions, sql):
    with pytest.raises(InputError, match="more than 8 MB: select fewer rows or columns"):
        questions.ask(sql)


def test_a_limited_answer_is_otherwise_what_was_asked(questions):
    assert questions.ask("select 1 as a, 2 as a; -- last") == {
        "columns": ["a", "a"],
        "rows": [[1, 2]],
        "more": False,
    }
    rows = questions.ask("with x as (select range as y from range(5000)) from x order by y desc")
    assert (
        rows["rows"][:2] == [[4999], [4998]] and rows["more"] and len(rows["rows"]) == questions_of.MAX_ROWS
    )
    assert questions.ask("select [1, 2], 'text', null, true")["rows"] == [["[1, 2]", "text", None, True]]
    assert questions.ask("select '; -- x' as t")["rows"] == [["; -- x"]]
    assert questions.ask("describe flows")["columns"][0] == "column_name"
    with pytest.raises(InputError):
        questions.ask("select 1) as x, (select 2")


def test_wrong_sql_says_what_is_wrong(questions):
    with pytest.raises(InputError, match="flws"):
        questions.ask("select * from flws")


@pytest.mark.parametrize(("path", "message"), [("none", "no such folder"), ("empty", "holds no runs")])
def test_a_folder_without_runs_is_refused(tmp_path, path, message):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=message):
        view.View(tmp_path / path)


def test_a_port_that_is_taken_says_so(folder, server):
    with pytest.raises(InputError, match="leave --port out"):
        view.View(folder, port=server.port)


def test_the_command_prints_its_address_and_ends_by_ctrl_c(folder):
    process = commands.start("view", str(folder), text=True)
    assert process.stdout.readline().startswith("http://127.0.0.1:")
    process.send_signal(2)
    assert process.wait(20) == 0 and "Traceback" not in process.stderr.read()


def test_runs_are_listed_filtered_and_chosen_in_a_browser(browser, server):
    browser.size(1200, 800)
    browser.call("Page.navigate", url=server.url)
    count = "document.getElementById('count')?.textContent"
    browser.until(f"{count} === '2 of 2 runs'")
    assert browser.evaluate("location.search") == ""
    assert browser.evaluate("document.title") == "weftline view"
    assert HOSTILE in browser.evaluate("document.getElementById('runs').innerText")
    write = "(() => {{ const field = document.getElementById('filter'); field.value = {};"
    write += " field.dispatchEvent(new Event('input')); }})()"
    for text, left in (
        ("hpcc", 1),
        ("flows>5", 2),
        ("flows>100000", 0),
        ("seed<10", 2),
        ("slowdown_p99<1", 0),
        ("seed=1", 2),
        ("run=dctcp status=done", 1),
    ):
        browser.evaluate(write.format(json.dumps(text)))
        assert browser.evaluate(count) == f"{left} of 2 runs", text
    browser.evaluate(write.format(json.dumps("slowdown<5")))
    rest = browser.evaluate("document.getElementById('rest').textContent")
    assert "No column is called slowdown, so it is searched as text. Columns: run, name, seed" in rest
    browser.evaluate(write.format('""'))
    assert browser.evaluate("document.getElementById('rest').textContent") == ""
    browser.evaluate("document.querySelector('#runs tbody input').click()")
    assert browser.evaluate("document.getElementById('compare').disabled") is False
    assert [c for c in browser.complaints() if str(server.port) not in c] == []


def test_a_compared_page_opens_under_its_own_policy(browser, server):
    browser.call("Page.navigate", url=server.url)
    browser.until("document.getElementById('count')?.textContent === '2 of 2 runs'")
    browser.events.clear()
    browser.call("Page.navigate", url=f"http://127.0.0.1:{server.port}/page?runs=hpcc&runs=dctcp")
    browser.until("Number(document.documentElement.dataset.drawn) > 0")
    assert [c for c in browser.complaints() if f"127.0.0.1:{server.port}" not in c] == []


def test_the_list_draws_the_distribution_of_completion_times_of_every_run(browser, server):
    answer, text = ask(server, "/api/sparks?runs=hpcc&runs=dctcp")
    found = json.loads(text)
    assert answer.status == 200 and set(found) == {"hpcc", "dctcp"}
    shares = [share for _, share in found["hpcc"]["fct"]]
    assert shares == sorted(shares) and shares[-1] == 1 and "queue" not in found["hpcc"]
    browser.size(1200, 800)
    browser.call("Page.navigate", url=server.url)
    browser.until("document.querySelectorAll('#runs svg.spark path').length === 2")
    labels = (
        "[...document.querySelectorAll('#runs svg.spark')].map((made) => made.getAttribute('aria-label'))"
    )
    assert all("completion times" in label for label in browser.evaluate(labels))
    widths = (
        "[...document.querySelectorAll('#runs svg.spark')].map((made) => made.getBoundingClientRect().width)"
    )
    assert all(width > 60 for width in browser.evaluate(widths))
    assert [c for c in browser.complaints() if str(server.port) not in c] == []


def test_an_answer_in_sql_has_all_digits_before_the_point(browser, folder, tmp_path):
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    found = view.View(folder / "hpcc")
    threading.Thread(target=found.serve, daemon=True).start()
    browser.call("Page.navigate", url=found.url)
    browser.until("document.getElementById('count')?.textContent === '1 of 1 runs'")
    sql = "select 1234567.89::double, -1234.4::double, 0.123456::double, 999.96::double, 12345678"
    browser.evaluate(f"document.getElementById('sql').value = {json.dumps(sql)}")
    browser.evaluate("document.getElementById('ask').requestSubmit()")
    cells = "[...document.querySelectorAll('#answer tbody td')]"
    browser.until(f"{cells}.length === 5")
    shown = browser.evaluate(f"{cells}.map((cell) => cell.textContent)")
    assert shown == ["1234568", "-1234", "0.1235", "1000", "12345678"]
    assert browser.evaluate(f"{cells}[0].title") == "1234567.89"
    found.close()
