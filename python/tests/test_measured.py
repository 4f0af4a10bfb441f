"""Every measured number of the README and the documentation is the one that a stored run has."""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import random
import re
import sys

import pytest
from snippets import PAGES, ROOT, name_of

from weftline import _native

pytest.importorskip("vl_convert", reason="docs/figures.py draws with it")
pytestmark = pytest.mark.skipif(
    not getattr(_native, "__file__", None), reason="the native module is not built (maturin develop)"
)

TRACED = ("README.md", "docs/performance.md", "docs/threads.md", "docs/start.md", "docs/guides.md")
"""Pages that have no measured number in addition to those that they take from the store."""
UNIT = re.compile(
    r"(?<![\w.-])\d[\d ,.]*\s*(?:KB|MB|GB|ns|us|ms|s|seconds?|minutes?|hours?|million|times|%)(?![\w/])"
)
PARAMETERS = (
    r"\d+ % load|at \d+ % for \d+ ms|at \d+ %|\d+ % on 32|\d+ ms of arrivals|the 1 ms of|\d+ % interval",
    r"send 500 KB|flows of 50 KB|of [\d.]+ MB flows|[\d.]+ MB flows|2 GB (?:there )?in few|table for 20 s",
    r"[Mm]ore than 3 %|by more than 3 %|counted at 60 %|taken at 300 ns|paper \(200 ns\)|links of \d+ \w+",
    r"256 ps to 8 ns|about 1 ns|44, 89 or 178 ns|89 ns, 64 parts|IMC10 at 60 %|for 50 us|after 5 ms",
    r"at most 400 us|for 40 ms|least 1\.1 times|every 8 s\b|are 1\.2 times",
    r"more than 4 %|10 ns link|window 10 ns|42 bytes are 4 %|under 5 %",
)
"""What is set, not measured: loads, durations, sizes, limits of the program; and arithmetic."""


def measured():
    """The module docs/measured.py."""
    spec = importlib.util.spec_from_file_location("measured", ROOT / "docs" / "measured.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["measured"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def docs():
    return measured()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_measured_numbers_of_a_page_are_the_stored_ones(docs, page):
    text = page.read_text("utf-8")
    assert docs.filled(text, docs.values(docs.stored())) == text, "other numbers are stored: make measured"


def test_every_group_says_how_it_was_measured(docs):
    found = docs.stored()
    assert set(found) == set(docs.GROUPS)
    for name, group in found.items():
        assert group["command"] == docs.GROUPS[name][0] and group["weftline"] and group["cores"] > 0
        assert group["values"]


def test_every_table_stands_on_some_page(docs):
    named = {name for page in PAGES for _, name, _ in docs.TABLE.findall(page.read_text("utf-8"))}
    assert named == set(docs.TABLES)


def test_the_figure_of_the_readme_is_drawn_from_the_stored_runs(docs):
    drawn = (ROOT / "docs" / "assets" / "demo-slowdown.svg").read_bytes()
    assert hashlib.sha256(drawn).hexdigest() == docs.stored()["demo"]["values"]["figure"]


@pytest.mark.parametrize("name", TRACED)
def test_no_number_with_a_measured_unit_stands_without_its_source(docs, name):
    text = re.sub(r"^```.*?^```$", "", (ROOT / name).read_text("utf-8"), flags=re.M | re.S)
    text = docs.TABLE.sub("", text)
    text = docs.NUMBER.sub("", text)
    text = re.sub(r"`[^`]*`|\]\([^)]*\)", "", text).replace("\n", " ")
    text = re.sub("|".join(PARAMETERS), "", text)
    left = [text[max(0, found.start() - 30) : found.end() + 20] for found in UNIT.finditer(text)]
    assert left == [], "measured? take it from docs/measured.json; set? name it in PARAMETERS"


def numbers(of, path=""):
    """Paths of all numbers below a value."""
    if isinstance(of, dict):
        return [found for key, value in of.items() for found in numbers(value, f"{path}/{key}")]
    return [path.lstrip("/")] if isinstance(of, int | float) and not isinstance(of, bool) else []


def test_another_number_in_the_store_or_on_the_page_is_noticed(docs):
    draw = random.Random(1)
    of = docs.values(docs.stored())
    page = "1<!-- measured: demo/cpu_seconds whole --> s, 0<!-- measured: bench/p8/cpu_seconds digits -->"
    filled = docs.filled(page, of)
    assert docs.filled(filled, of) == filled != page
    for _ in range(50):
        path = draw.choice([p for p in numbers(of["bench"]) if p.count("/") == 1])
        text = docs.filled(f"x 1<!-- measured: bench/{path} digits --> y", of)
        other = copy.deepcopy(of)
        group, key = path.split("/")
        other["bench"][group][key] = 3 * other["bench"][group][key] + 7
        assert docs.filled(text, other) != text and docs.filled(text, of) == text
    with pytest.raises(KeyError):
        docs.filled("1<!-- measured: bench/p9/cpu_seconds digits -->", of)
