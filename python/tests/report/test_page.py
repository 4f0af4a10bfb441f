"""The page in a real browser: nothing complains, nothing leaves, sliders and tooltips work at any width."""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from types import SimpleNamespace

import pytest

import weftline
from weftline import _native
from weftline.cli.main import main
from weftline.figures import network_view
from weftline.figures.specs import trend
from weftline.measures import lines
from weftline.report import answer_text, headline, page, run_page
from weftline.report.page import Lead, Section
from weftline.terminal import Table

built = pytest.mark.skipif(
    not getattr(_native, "__file__", None), reason="the native module is not built (maturin develop)"
)
pytestmark = [built, pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")]

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"
SCENARIO = {
    "name": "paged",
    "topology": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4},
    "workload": [{"kind": "poisson", "sizes": "google-rpc", "load": 0.5, "duration": "200us"}],
    "measure": {
        "queues": {"ports": "*", "every": "20us"},
        "queue_histogram": {"ports": "leaf*.*", "every": "1us"},
        "utilisation": {"ports": "*", "every": "20us"},
        "port_events": {"ports": "*", "every": "20us"},
        "goodput": {"by": "flow", "flows": ["0-3"], "every": "20us"},
    },
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two schemes on the same flows; one of them is called by a hostile name."""
    folder = tmp_path_factory.mktemp("runs")
    found = []
    for scheme in ("hpcc", "dctcp"):
        changes = {"transport.controller.kind": scheme}
        found.append(weftline.run(SCENARIO, set=changes, out=folder / scheme))
    path = folder / "dctcp" / "summary.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "name": HOSTILE}))
    _native.write_digests(str(path.parent))
    return [weftline.Run.open(folder / "hpcc"), weftline.Run.open(folder / "dctcp")]


@pytest.fixture(scope="module")
def written(runs, tmp_path_factory) -> Path:
    """The page of both runs."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    return run_page.write(lines.lines_of(runs), path, title=f"T {HOSTILE}", question=f"Q {HOSTILE}?")


def test_the_page_begins_with_the_question_and_its_answer_and_says_how_to_rerun(written, runs):
    text = written.read_text()
    places = [
        text.index(part)
        for part in ('class="question"', "<h2>The scenario", "<h2>Side by side", "data-network")
    ]
    assert places == sorted(places)
    assert "not separated" in text and "lowest with" not in text
    assert "one seed (there is no interval" in text and "2 leaf" not in text
    assert "8 hosts, 4 switches, 12 links of 100 Gb/s and 400 Gb/s" in text
    for run in runs:
        assert escape((run.out / "scenario.toml").read_text()) in text
        assert run.summary["fingerprint"] in text
    assert "weftline run scenario.toml" in text


@pytest.mark.parametrize(
    ("flows", "headline", "cards"),
    [
        (2, "2 flows are too few for percentiles of the slowdown. All 2 finished.", []),
        (
            20,
            "as alone at full rate; 20 flows are too few for a p99, which needs 200.",
            ["slowdown, median"],
        ),
        (200, "as alone at full rate, 99 of 100 at most ", ["slowdown, median", "slowdown, p99"]),
    ],
)
def test_the_headline_and_the_cards_have_no_percentile_of_too_few_flows(tmp_path, flows, headline, cards):
    some = [{"src": 0, "dst": 1, "size": "10KB", "start": f"{n}us"} for n in range(flows)]
    scenario = {
        "topology": {"kind": "star", "hosts": 4},
        "workload": [{"kind": "flows", "flows": some}],
    }
    found = lines.lines_of([weftline.run(scenario, out=tmp_path / "run")])
    lead = run_page.lead(found)
    assert headline in lead.answer[0]
    assert [number.title for number in lead.numbers if number.title.startswith("slowdown")] == cards


def test_a_comparison_ranks_nobody_by_a_percentile_that_it_does_not_show(tmp_path):
    some = [{"src": 0, "dst": 1, "size": "10KB", "start": f"{n}us"} for n in range(20)]
    scenario = {"topology": {"kind": "star", "hosts": 4}, "workload": [{"kind": "flows", "flows": some}]}
    runs = [
        weftline.run(
            {**scenario, "transport": {"kind": "rdma", "controller": {"kind": kind}}}, out=tmp_path / kind
        )
        for kind in ("hpcc", "dctcp")
    ]
    found = lines.lines_of(runs)
    (sentence,) = [text for text in run_page.lead(found).answer if "p99" in text]
    assert "hpcc –, dctcp –; " in sentence and "p99 needs 200" in sentence and "lowest" not in sentence


def test_names_that_a_user_gave_are_text_wherever_they_stand(written):
    text = written.read_text()
    assert HOSTILE not in text and escape(HOSTILE) in text
    # The only elements that run are ours: two blocks of data and four of code.
    assert text.count("<script") == 6 and "<img src=x" not in text


def test_the_page_forbids_itself_to_load_anything(written):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', written.read_text())[1]
    assert policy.startswith("default-src 'none'") and "http" not in policy and "connect-src" not in policy


def test_nothing_complains_and_nothing_leaves_in_light_and_dark(browser, written):
    for dark, paper in ((False, "rgb(255, 255, 255)"), (True, "rgb(21, 24, 28)")):
        browser.open(written, dark=dark)
        assert browser.complaints() == []
        assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == paper
        # Axes follow the theme: their titles stand out against the paper.
        ink = browser.evaluate("document.querySelector('.role-axis-title text').getAttribute('fill')")
        assert ink == ("#e6e8eb" if dark else "#1c1e21")
    requests = [e for e in browser.events if e.get("method") == "Network.requestWillBeSent"]
    assert {e["params"]["request"]["url"][:5] for e in requests} <= {"file:", "data:"}


def test_a_request_would_be_seen_and_refused(browser, written, tmp_path):
    asking = tmp_path / "asking.html"
    call = "<script>fetch('https://example.org/').catch(() => 0)</script>"
    whole, end, rest = written.read_text().rpartition("</body>")
    asking.write_text(whole + call + end + rest)
    browser.open(asking)
    assert any("Content Security Policy" in output for output in browser.complaints())


def test_the_theme_may_change_while_the_page_is_open(browser, written):
    browser.open(written)
    browser.theme(True)
    browser.until("document.querySelector('.role-axis-title text').getAttribute('fill') === '#e6e8eb'")


@pytest.mark.parametrize("width", [400, 700, 1200, 2000])
def test_the_page_fits_from_a_telephone_to_a_wall(browser, written, width):
    browser.open(written, width=width)
    assert browser.complaints() == []
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    sizes = browser.evaluate(
        "[...document.querySelectorAll('.plot')]"
        ".map(plot => [plot.querySelector('svg').clientWidth, plot.clientWidth])"
    )
    assert sizes and all(drawn <= room + 2 for drawn, room in sizes), sizes


def test_figures_follow_the_width_of_the_window(browser, written):
    browser.open(written, width=1400)
    wide = browser.evaluate("document.querySelector('.plot svg').clientWidth")
    browser.size(500)
    browser.until(f"document.querySelector('.plot svg').clientWidth < {wide} - 300")
    browser.size(1400)
    browser.until(f"document.querySelector('.plot svg').clientWidth === {wide}")


def test_a_point_of_a_figure_says_what_it_is(browser, written):
    browser.open(written)
    place = browser.evaluate(
        "(() => { const p = document.querySelector('.plot .mark-symbol.role-mark path');"
        " p.scrollIntoView({ block: 'center' }); const b = p.getBoundingClientRect();"
        " return [b.x + b.width / 2, b.y + b.height / 2]; })()"
    )
    browser.point(*place)
    output = browser.until(
        "(() => { const tip = document.querySelector('#vg-tooltip-element.visible');"
        " return tip && tip.innerText; })()"
    )
    assert "scheme" in output and "FCT slowdown" in output


def test_the_slider_moves_time_and_the_links_with_it(browser, written):
    browser.open(written)
    look = (
        "[...document.querySelectorAll('.network .link')].map(l => l.style.stroke + l.dataset.value).join()"
    )
    clock = "document.querySelector('.network output').textContent"
    browser.evaluate("document.querySelector('.network input').focus()")
    browser.press("Home")
    first, time = browser.evaluate(look), browser.evaluate(clock)
    assert time.startswith("0 ns to ")
    browser.press("ArrowRight")
    assert browser.evaluate(look) != first and browser.evaluate(clock) != time
    browser.press("End")
    browser.evaluate("document.querySelector('.network button').click()")
    browser.until(
        f"{clock} !== {json.dumps(time)} && Number(document.querySelector('.network input').value) >= 2"
    )


def test_a_link_says_what_it_carries_and_the_measure_can_be_chosen(browser, written):
    browser.open(written)
    place = browser.evaluate(
        "(() => { const h = document.querySelector('.network .hit'); h.scrollIntoView({ block: 'center' });"
        " const b = h.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
    )
    browser.point(*place)
    output = browser.until("document.querySelector('.network .tip').textContent")
    assert re.search(r"\w+ to \w+ \(\w+\.p\d, (100|400) Gb/s\)\nutilisation: [\d.]+ %", output), output
    choose = "(() => {{ const s = document.querySelectorAll('.network select')[{}]; s.value = {};"
    choose += " s.dispatchEvent(new Event('change')); return s.options[s.value].text; }})()"
    assert browser.evaluate(choose.format(1, 1)) == "longest queue"
    assert "longest queue: " in browser.evaluate("document.querySelector('.network .tip').textContent")
    assert browser.evaluate(choose.format(0, 1)) == "dctcp"
    assert browser.complaints() == []


def test_the_colours_of_links_lie_in_one_order_of_lightness(browser, written):
    """Read in grey, more is always darker (on white) or lighter (on black)."""
    for dark in (False, True):
        browser.open(written, dark=dark)
        stops = browser.evaluate("getComputedStyle(document.querySelector('.network .bar')).backgroundImage")
        colours = [tuple(map(int, c)) for c in re.findall(r"rgb\((\d+), (\d+), (\d+)\)", stops)]
        grey = [0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in colours]
        assert len(grey) == 5 and grey == sorted(grey, reverse=not dark)


def test_on_dark_paper_the_longest_queue_is_the_brightest(browser, written):
    """The legend of a heat map begins dark and ends bright there, and the other way round on white."""
    for dark in (False, True):
        browser.open(written, dark=dark)
        output = browser.evaluate(
            "[...document.querySelectorAll('.plot linearGradient')]"
            ".map(g => [g.firstElementChild, g.lastElementChild].map(s => s.getAttribute('stop-color')))"
            ".find(ends => ends.some(c => c !== ends[0]))"
        )
        ends = [tuple(map(int, re.findall(r"\d+", colour))) for colour in output]
        lowest, highest = (0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in ends)
        assert (highest > lowest) == dark, output


def test_thousands_of_points_stay_small_and_quick(browser, tmp_path):
    points = [(f"line {i % 8}", float(i), float((i * 7919) % 1000)) for i in range(8000)]
    figure = trend("many", [f"line {i}" for i in range(8)], points, [], axes=("x", "y"))
    path = page.write(
        tmp_path / "many.html", title="many", subtitle="", about=[], sections=[Section(figures=[figure])]
    )
    assert path.stat().st_size < 5_000_000
    assert browser.open(path) < 15


@built
def test_the_page_of_four_schemes_is_small_and_opens_at_once(browser, runs, tmp_path):
    path = run_page.write(lines.lines_of(runs), tmp_path / "r.html")
    assert path.stat().st_size < 5_000_000
    assert browser.open(path) < 15  # a busy machine; alone it is well under two seconds


def test_a_page_without_figures_has_one_small_script(tmp_path):
    lead = Lead(question="<b>why</b>?", answer=["so & so"])
    table = Table(["a<b", ""], [["x", "<i>"]])
    path = page.write(
        tmp_path / "p.html",
        title="<t>",
        subtitle="",
        about=[("<", ">")],
        sections=[Section(tables=[table])],
        lead=lead,
    )
    text = path.read_text()
    assert (
        text.count("<script") == 1
        and len(text) < 30_000
        and "&lt;b&gt;why&lt;/b&gt;?" in text
        and "so &amp; so" in text
    )
    assert "<i>" not in text and "a&lt;b" in text


def test_frames_of_the_network_hold_means_maxima_and_sums(tmp_path):
    measure = {"utilisation": {"ports": "s0->host1", "every": "10us"}, "queues": {"ports": "s0->host1"}}
    flow = {"kind": "flows", "flows": [{"src": 0, "dst": 1, "size": "1MB"}]}
    run = weftline.run(
        {"topology": {"kind": "star", "hosts": 2}, "workload": [flow], "measure": measure}, out=tmp_path / "r"
    )
    view = network_view.view(lines.lines_of([run]))
    use, queue = view.data["runs"][0]["measures"]
    assert (use["title"], queue["title"]) == ("utilisation", "longest queue")
    # Two links, each with two directions: only s0 to host1 was selected.
    assert all(len(row) == 4 for row in use["values"])
    place = next(
        2 * i + (link[2] != "s0.p1") for i, link in enumerate(view.data["links"]) if "s0.p1" in link[2:4]
    )
    assert {c for row in use["values"] for c, v in enumerate(row) if v is not None} == {place}
    series = run.over_time("utilisation", max_points=0)["s0.p1"]
    mean = sum(v for _, v in series) / len(series)
    output = [row[place] for row in use["values"]]
    assert sum(output) / len(output) == pytest.approx(100 * mean, rel=0.01)


def test_a_network_of_thousands_is_drawn_without_its_hosts():
    hosts = [{"name": f"host{i}", "kind": "host", "tier": 0} for i in range(2000)]
    nodes = [*hosts, {"name": "a", "kind": "switch", "tier": 1}, {"name": "b", "kind": "switch", "tier": 2}]
    ends = [(i, 2000) for i in range(2000)] + [(2000, 2001)]
    found = [
        {"a": a, "b": b, "a_port": f"{a}.x", "b_port": f"{b}.y", "rate_bps": 1, "delay_ns": 1}
        for a, b in ends
    ]
    shown, notes = network_view._reduced({"nodes": nodes, "links": found})
    assert [node["name"] for node in shown["nodes"]] == ["a", "b"]
    assert [(link["a"], link["b"]) for link in shown["links"]] == [(0, 1)]
    assert notes == ["Its 2,000 hosts are not drawn."]


def test_a_network_without_tiers_is_laid_out_apart_and_the_same_each_time():
    nodes = [{"name": str(i), "kind": "switch", "tier": 1} for i in range(9)]
    links = [{"a": i, "b": (i + 1) % 9} for i in range(9)] + [{"a": 0, "b": 4}]
    shown = {"nodes": nodes, "links": links}
    first, second = (network_view._placed(shown, False) for _ in range(2))
    assert first == second
    apart = [(a[2] - b[2]) ** 2 + (a[3] - b[3]) ** 2 for i, a in enumerate(first) for b in first[:i]]
    assert min(apart) > 0.15**2


def test_report_takes_a_title_and_a_question(runs, tmp_path, capsys):
    out = tmp_path / "r.html"
    asked = ["--title", "My page", "--question", "Why?"]
    assert main(["report", str(runs[0].out), "--out", str(out), *asked]) == 0
    assert "<h1>My page</h1>" in out.read_text() and ">Why?<" in out.read_text()


def test_flows_of_one_size_are_not_drawn_by_size_and_a_file_is_called_by_its_name(tmp_path):
    from weftline.cli import start

    scenario, *_ = start.write("wan", tmp_path / "wan.toml", schema=False)
    run = weftline.run(scenario, set={"workload.0.duration": "50ms"}, out=tmp_path / "r")
    text = run_page.html(lines.lines_of([run]))
    assert "FCT slowdown by flow size" not in text and "Slowdown of all flows" in text
    assert "Network: wan-cities.gml, 14 hosts" in text and "on this network?" in text


def drawn(label, scenario=None, *, metrics=None, flows=4):
    """Return a line of one run that is not there: its scenario, and the metrics that it has."""
    run = SimpleNamespace(scenario=scenario or {}, summary={"flows": flows, "seed": 1}, out=Path(label))
    line = lines.Line(label, [run])
    line.metric = lambda name: lines.Mean(value) if (value := (metrics or {}).get(name)) is not None else None
    line.flows_counted = 0
    return line


def test_a_card_of_losses_is_over_all_lines_and_shows_those_that_lost_first():
    clean = [drawn(str(n), metrics={"drops": 0, "unfinished": 0}) for n in range(6)]
    lossy = drawn("lossy", metrics={"drops": 41, "unfinished": 3})
    for cards in (
        headline.key_numbers([*clean, lossy]),
        headline.key_numbers(clean, others=[lossy]),
    ):
        lost = next(card for card in cards if card.title == "packets lost")
        assert lost.is_alarm and lost.values[0][:2] == ("lossy", "41")
        assert lost.note == "6 of 7 lines, 0 in the others"
    zero = next(card for card in headline.key_numbers(clean) if card.title == "packets lost")
    assert (zero.values, zero.note, zero.is_alarm) == ([("", "0", "", 0.0)], "", False)


def test_a_card_that_leaves_lines_out_says_so():
    many = [drawn(str(n), metrics={"queue_p99": 1000 + n}) for n in range(7)]
    (queue,) = (card for card in headline.key_numbers(many) if card.title == "queue p99")
    assert len(queue.values) == 6 and queue.note == "6 of 7 lines"
    unlike = [drawn("measured", metrics={"queue_p99": 0}), drawn("not", metrics={})]
    (queue,) = (card for card in headline.key_numbers(unlike) if card.title == "queue p99")
    assert [label for label, *_ in queue.values] == ["measured"] and queue.note == "1 of 2 lines"
    assert "1 of 2 lines" in page.html(
        title="", subtitle="", about=[], sections=[], lead=Lead(question="?", answer=[], numbers=[queue])
    )


def test_the_question_leaves_out_what_is_not_the_same_for_all_lines():
    def scenario(load, kind="poisson", topology="star"):
        return {"topology": {"kind": topology}, "workload": [{"kind": kind, "load": load}]}

    def asked(*scenarios):
        found = [drawn(str(n), one) for n, one in enumerate(scenarios)]
        return answer_text.question(found[:2], found[2:])

    assert asked(scenario(0.5)) == "How does 0 serve poisson traffic at 50 % load on this star network?"
    alike = "How do 0, 1 and 1 other serve poisson traffic on this star network?"
    assert asked(scenario(0.5), scenario(0.5), scenario(0.8)) == alike
    unlike = asked(scenario(0.5), scenario(0.5, "incast", "leaf-spine"))
    assert unlike == "How do 0 and 1 serve their traffic on their networks?"


def test_a_page_says_of_which_flows_its_goodputs_are():
    def scenario(*flows):
        return {"measure": {"goodput": {"by": "flow", "flows": list(flows), "every": "1ms"}}}

    some, every = (
        drawn(label, scenario(flows), metrics={"goodput_total": 1e9, "jain": 1.0}, flows=3)
        for label, flows in (("some", "1-2"), ("every", "0-2"))
    )
    titles = [card.title for card in headline.key_numbers([some, every])]
    assert any(title.endswith("(2 of 3 and 3 of 3 flows)") for title in titles)
    assert not any("of 3" in card.title for card in headline.key_numbers([every]))
    (text,) = headline._unlike([some, every])
    assert "every is not measured as some is (measure.goodput.flows is ['1-2'] and all)" in text
    captions = [run_page._goodput_caption(found) for found in ([some], [every], [some, every])]
    assert captions == [
        "Payload bytes delivered by 2 of 3 flows, each by itself.",
        "Payload bytes delivered by all flows, each by itself.",
        "Payload bytes delivered by flows together: some 2 of 3 flows; every all flows.",
    ]
    together = "Payload bytes delivered by all flows, together."
    assert run_page._goodput_caption([every], few=False) == together
