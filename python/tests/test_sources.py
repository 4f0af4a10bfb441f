"""The page that maps every statement of the source documents: its names exist, and no line is left out."""

import re
from functools import cache
from pathlib import Path

import pytest

from weftline.reproduce import experiments, ledger

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/sources.md"
DOCUMENTS = ROOT.parent / "shared/sources"
FIRST_WORDS = {
    "HPCC: the results page": "001_",
    "PINT: pages of the paper": "000_",
    "pHost: the talk": "002_",
    "Cebinae: the talk": "003_",
    "MP-HULA: the talk": "004_",
}
"""The file of each part of the page, by how its name begins."""


@cache
def rows():
    """Return the rows as (part, first line, last line, statement, answer)."""
    found, part = [], ""
    for line in PAGE.read_text("utf-8").splitlines():
        if line.startswith("## "):
            part = line[3:]
        match = re.fullmatch(r"\| (\d+)(?:–(\d+))? \| (.+) \| (.+) \|", line)
        if match:
            found.append((part, int(match[1]), int(match[2] or match[1]), match[3], match[4]))
        else:
            assert not line.startswith("|") or line in (
                "| lines | statement | answer |",
                "| --- | --- | --- |",
            )
    return found


@cache
def names_of_tests():
    """Return the names of all tests, of Rust and of Python.

    Where several have one name, each is named after its file, or the folder of a `tests.rs`: "phost::NAME".
    """
    places: dict[str, list[str]] = {}
    for path in (ROOT / "crates").rglob("*.rs"):
        place = path.parent.name if path.stem in ("tests", "mod") else path.stem
        for name in re.findall(r"#\[test\]\s[^{}]{0,400}?fn ([a-z0-9_]+)\(", path.read_text("utf-8")):
            places.setdefault(name, []).append(place)
    for path in (ROOT / "python/tests").rglob("*.py"):
        for name in re.findall(r"def (test_[a-z0-9_]+)\(", path.read_text("utf-8")):
            places.setdefault(name, []).append(path.stem)
    alone = {name for name, of in places.items() if len(of) == 1}
    return alone | {f"{place}::{name}" for name, of in places.items() if name not in alone for place in of}


@cache
def known(kind):
    if kind == "row":
        return {row.id for row in ledger.load(ROOT / "experiments" / ledger.FILE).rows}
    return set(experiments.names()) if kind == "experiment" else names_of_tests()


def linked(target):
    """Whether a page, and its heading where one is named, is there."""
    page, _, heading = target.partition("#")
    path = ROOT / "docs" / page
    if not path.is_file():
        return False
    anchors = {
        re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.M)
    }
    return not heading or heading in anchors


def test_every_statement_has_an_answer_or_a_reason():
    assert {part for part, *_ in rows()} == set(FIRST_WORDS) and len(rows()) > 150
    unmapped = [
        (part, first)
        for part, first, _, _, answer in rows()
        if not re.search(r"`(row|experiment|test) ", answer)
        and "](" not in answer
        and not re.match(r"none: .{15,}", answer)
    ]
    assert unmapped == []


def test_every_name_on_the_page_exists():
    named = [(kind, name) for *_, answer in rows() for kind, name in re.findall(r"`(\w+) ([^`]+)`", answer)]
    assert [
        one for one in named if one[0] not in ("row", "experiment", "test") or one[1] not in known(one[0])
    ] == []
    targets = [target for *_, answer in rows() for target in re.findall(r"\]\(([^)]+)\)", answer)]
    assert [target for target in targets if not linked(target)] == []


@pytest.mark.parametrize("part", FIRST_WORDS)
def test_every_line_of_a_document_is_in_a_row(part):
    if not DOCUMENTS.is_dir():
        pytest.skip("the documents are not at hand")
    (path,) = DOCUMENTS.glob(f"{FIRST_WORDS[part]}*.txt")
    lines = path.read_text("utf-8", errors="replace").split("\n")
    covered = {number for of, first, last, *_ in rows() if of == part for number in range(first, last + 1)}
    assert max(covered) <= len(lines)
    words = [number for number, line in enumerate(lines, 1) if re.search(r"[A-Za-z]{3}", line)]
    assert [number for number in words if number not in covered] == []


def test_what_only_hardware_shows_is_in_one_place_with_what_is_here_instead():
    page = (ROOT / "docs/validation.md").read_text("utf-8")
    _, _, section = page.partition("## What only hardware shows")
    named = set(re.findall(r"`([a-z]+-[a-z0-9-]+)`", section))
    assert named and named <= set(experiments.names())
    targets = re.findall(r"\]\(([^)]+)\)", section)
    assert "lab.md#what-was-tried-on-real-packets" in targets and [t for t in targets if not linked(t)] == []
