"""What the pages look like: nothing is cut at any width, texts and marks can be read in both themes.

Pictures of every page at three widths in both themes are written to out/tests/pages, for people to look at.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import weftline
from weftline import _native
from weftline.cli.main import main
from weftline.figures import marks
from weftline.report import page, why_page

pytestmark = [
    pytest.mark.skipif(not getattr(_native, "__file__", None), reason="the native module is not built"),
    pytest.mark.filterwarnings("ignore"),
]
PICTURES = Path(__file__).parents[3] / "out" / "tests" / "pages"
WIDTHS = (420, 1000, 1400)
SCENARIO = {
    "name": "looked at",
    "topology": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4},
    "workload": [
        {"kind": "poisson", "sizes": "google-rpc", "load": 0.6, "duration": "200us", "group": "rpc"},
        {"kind": "poisson", "sizes": "websearch", "load": 0.2, "duration": "200us", "group": "storage"},
    ],
    "measure": {
        "queues": {"ports": "*", "every": "20us"},
        "queue_histogram": {"ports": "leaf*.*", "every": "1us"},
        "utilisation": {"ports": "*", "every": "20us"},
        "goodput": {"by": "group", "every": "20us"},
    },
}
FAILURE = {"failures.event": [{"at": "50us", "link": ["leaf0", "spine1"]}], "failures.loss": 0.001}


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, Path]:
    """A run with a failure and unfinished flows, three schemes with seeds, a sweep, and a page of why."""
    folder = tmp_path_factory.mktemp("looks")
    cut = FAILURE | {"run.until": "180us", "transport.controller.kind": "dctcp"}
    weftline.run(SCENARIO, set=cut, out=folder / "cut")
    names = []
    for scheme in ("hpcc", "dctcp", "timely"):
        for seed in (1, 2):
            names.append(folder / f"{scheme}-{seed}")
            weftline.run(SCENARIO, set={"transport.controller.kind": scheme}, seed=seed, out=names[-1])
    over = {
        "scheme": {"HPCC": {"transport.controller.kind": "hpcc"}, "DCTCP": {}},
        "workload.0.load": [0.3, 0.6],
    }
    weftline.sweep(SCENARIO, over, seeds=2, name="loads", out=folder / "sweep")
    found = {name: folder / f"{name}.html" for name in ("failure", "comparison", "sweep", "why")}
    cut = str(folder / "cut")
    assert main(["report", cut, "--why", "1", "--out", str(found["failure"])]) == 0
    assert main(["report", *map(str, names), "--out", str(found["comparison"])]) == 0
    assert main(["report", str(folder / "sweep"), "--out", str(found["sweep"])]) == 0
    assert main(["why", str(names[2]), "--slowest", "2", "--out", str(found["why"])]) == 0
    return found


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["failure", "comparison", "sweep", "why"])
def test_nothing_is_cut_or_scrolled_sideways(browser, pages, name, width):
    PICTURES.mkdir(parents=True, exist_ok=True)
    for dark in (False, True):
        browser.open(pages[name], width=width, dark=dark)
        assert browser.complaints() == []
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
        wide = browser.until(
            "JSON.stringify([...document.querySelectorAll('.wide, .plot, pre, .key, .callout')]"
            ".filter(e => e.scrollWidth > e.clientWidth + 1)"
            ".map(e => e.className + e.textContent.slice(0, 80)))"
        )
        assert wide == "[]"
        browser.picture(PICTURES / f"{name}-{width}-{'dark' if dark else 'light'}.png")


def test_the_width_of_a_desk_is_used(browser, pages):
    browser.open(pages["comparison"], width=1400)
    widths = browser.evaluate(
        "[...document.querySelectorAll('.plot > svg, .plot svg.marks')].map(s => s.clientWidth)"
    )
    assert widths and min(widths) > 1000


def luminance(colour: tuple[float, ...]) -> float:
    """Return the relative luminance of WCAG 2.1 of red, green and blue from 0 to 255."""
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (part / 255 for part in colour)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, ``#rrggbb`` or ``rgb(r, g, b)``."""

    def parts(text: str) -> tuple[float, ...]:
        if text.startswith("#"):
            return tuple(int(text[i : i + 2], 16) for i in (1, 3, 5))
        return tuple(map(float, re.findall(r"[\d.]+", text)[:3]))

    low, high = sorted((luminance(parts(one)), luminance(parts(other))))
    return (high + 0.05) / (low + 0.05)


def test_marks_of_figures_stand_out_on_both_papers():
    for colour in (*marks.COLOURS, *why_page.COLOURS.values()):
        for paper in ("#ffffff", "#15181c"):
            assert contrast(colour, paper) >= 3, (colour, paper)
        assert contrast(colour, why_page._ink(colour)) >= 4.5, colour


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_of_a_page_has_contrast(browser, pages, dark):
    """Each element with a text of its own against the nearest background, figures against the paper."""
    browser.open(pages["failure"], width=1400, dark=dark)
    found = browser.evaluate("""(() => {
      const seen = {};
      for (const e of document.querySelectorAll('body *')) {
        const figure = e.closest('svg');
        const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
        if (!own || !e.getClientRects().length || e.matches('.track i, style, script')) continue;
        let under = figure ? document.body : e;
        while (getComputedStyle(under).backgroundColor === 'rgba(0, 0, 0, 0)') under = under.parentElement;
        const style = getComputedStyle(e), ink = figure ? style.fill : style.color;
        const paper = getComputedStyle(under).backgroundColor;
        seen[`${ink} on ${paper}`] = e.tagName + ' ' + e.textContent.slice(0, 40);
      }
      return seen;
    })()""")
    assert len(found) > 5
    for pair, where in found.items():
        ink, paper = pair.split(" on ")
        assert contrast(ink, paper) >= 4.5, (pair, where)


def test_a_failure_is_a_dashed_line_and_its_link_is_drawn_dead(browser, pages):
    browser.open(pages["failure"])
    dashes = browser.evaluate(
        "[...document.querySelectorAll('.plot .mark-rule line')]"
        ".filter(l => (l.getAttribute('stroke-dasharray') || '').startsWith('5')).length"
    )
    assert dashes >= 2
    browser.evaluate("document.querySelector('.network input').focus()")
    browser.press("Home")
    assert browser.evaluate("document.querySelectorAll('.network .link.dead').length") == 0
    browser.press("End")
    assert browser.evaluate("document.querySelectorAll('.network .link.dead').length") == 2
    assert "leaf0–spine1 down at 50 us" in browser.evaluate("document.querySelector('.network').innerText")


def test_links_that_were_drawn_at_random_are_drawn_dead_while_they_were(browser, tmp_path):
    event = {"at": "50us", "random": 1, "link": ["leaf*", "spine*"], "lasts": "60us"}
    weftline.run(SCENARIO, set={"failures.event": [event]}, out=tmp_path / "run")
    assert main(["report", str(tmp_path / "run"), "--out", str(tmp_path / "page.html")]) == 0
    browser.open(tmp_path / "page.html")
    frames = browser.evaluate(
        "(() => { const slider = document.querySelector('.network input'); const found = [];"
        " for (let i = 0; i <= Number(slider.max); i++) {"
        " slider.value = i; slider.dispatchEvent(new Event('input'));"
        " found.push(document.querySelectorAll('.network .link.dead').length); } return found; })()"
    )
    assert max(frames) == 2 and frames[-1] == 0, frames


def test_key_numbers_stand_above_a_sweep(pages):
    text = pages["sweep"].read_text()
    keys = text[text.index('<div class="keys">') : text.index("<section")]
    assert keys.count('<div class="key') >= 3 and "slowdown, p99" in keys


def test_a_flow_opens_its_answer_and_a_link_the_command_that_asks(browser, pages):
    browser.open(pages["failure"])
    assert browser.evaluate("document.querySelectorAll('details.flow[open] .chain .track i').length") > 3
    assert " --flow " in browser.evaluate(
        "document.querySelector('details.flow pre.command code').textContent"
    )
    browser.evaluate(
        "document.querySelector('.network .hit').dispatchEvent(new Event('click', { bubbles: true }))"
    )
    assert re.fullmatch(
        r"weftline why \S+ --link '\w+->\w+'",
        browser.evaluate("document.querySelector('.network pre code').textContent"),
    )


def test_what_limits_a_run_stands_above_its_numbers(pages):
    text = pages["failure"].read_text()
    callout = text[text.index("<aside") : text.index("</aside>")]
    assert all(f"<b>{kind}</b>" in callout for kind in ("Unfinished", "Lost packets"))
    assert text.index("<aside") < text.index("<h2>Results") and callout.count("did not finish") == 1


def test_ticks_of_logarithmic_axes_are_one_two_and_five():
    assert marks.nice_ticks(1, 30) == [1, 2, 5, 10, 20]
    assert marks.nice_ticks(1, 1e5) == [1, 10, 100, 1000, 10000, 100000]
    assert marks.nice_ticks(1.1, 1.9) == [1.2, 1.4, 1.6, 1.8]
    assert marks.nice_ticks(3, 3) == [3]
    assert marks.nice_ticks(0, 1) == []


def test_a_page_of_text_needs_no_package(tmp_path):
    caution = page.Caution("<i>", "<b>")
    lead = page.Lead(question="?", answer=["."], cautions=[caution])
    text = page.html(title="t", subtitle="", about=[], sections=[], lead=lead)
    assert "&lt;i&gt;" in text and "<i>" not in text.partition("<body>")[2]
