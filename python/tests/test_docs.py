"""The documentation is true: links lead somewhere, commands parse, what its first pages show is run.

On a page that is run, blocks work in order in one folder: a TOML block that names its file (a first line
``# mine.toml``, or ``Save this as `mine.toml` `` before it) is written, each weftline command of a console
block is given, Python is executed in one namespace.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from weftline import _native
from weftline.cli import start
from weftline.cli.main import main, parser

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")])
RUN = (
    "README.md",
    *(f"docs/{page}.md" for page in ("index", "start", "figures", "packets", "python", "results")),
)
LONG = ("reproduce", "bench", "view")
"""Commands that are parsed only: they take minutes, or stay."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the paragraph before it."""

    language: str
    text: str
    before: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    found = []
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        before = text[: match.start()].rstrip().rpartition("\n\n")[2]
        found.append(Block(match[1], match[2], before))
    return found


def commands(block: Block) -> list[list[str]]:
    """The weftline commands of a block, as arguments."""
    if block.language not in ("console", "sh", "bash"):
        return []
    said = block.text.replace("\\\n", " ").splitlines()
    lines = [line.removeprefix("$ ") for line in said if block.language != "console" or line.startswith("$ ")]
    found = []
    for line in lines:
        words = shlex.split(line, comments=True)
        if words and Path(words[0]).name == "weftline":
            found.append(words[1 : next((i for i, w in enumerate(words) if w in (">", "|", "&&")), None)])
    return found


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """What `#...` may name on a page: its headings, as mkdocs and GitHub write them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    found = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.M):
        bare = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        found.add(re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", bare.lower()).strip()))
    return found


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_of_a_page_leads_somewhere(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        place = (page.parent / path).resolve() if path else page
        named = not anchor or place.suffix != ".md" or not place.exists() or anchor in anchors(place)
        if not place.exists() or not named:
            wrong.append(target)
    assert not wrong


def test_every_page_is_in_the_navigation():
    listed = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.M)
    there = {str(page.relative_to(ROOT / "docs")) for page in PAGES if "docs" in page.parts}
    assert set(listed) == there | {"reference.md"} and len(listed) == len(there) + 1


@pytest.mark.skipif(not getattr(_native, "__file__", None), reason="the native module is not built")
def test_the_reference_is_made_from_the_code_and_has_every_scheme():
    """What `make docs` adds: a hook, which works without mkdocs up to the text."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    text = reference.markdown()
    for kind in json.loads(_native.names()).values():
        for scheme in kind:
            if scheme["name"] not in ("none", "auto"):
                assert re.search(rf"^### (tcp\.)?{re.escape(scheme['name'])}$", text, re.M), scheme
    assert "Alg. 1" in text and "| `eta` | number" in text


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_of_a_page_is_one_that_there_is(page):
    known = parser()
    for block in blocks(page):
        for arguments in commands(block):
            known.parse_args(arguments)


@pytest.mark.skipif(not getattr(_native, "__file__", None), reason="the native module is not built")
@pytest.mark.parametrize("name", RUN)
def test_a_page_works_as_it_stands(name, tmp_path, monkeypatch, capsys):
    for package in ("polars", "pandas", "pyarrow", "duckdb", "vl_convert"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    _prepare(name)
    names: dict = {"__name__": "__main__"}
    for block in blocks(ROOT / name):
        file = re.match(r"# (\S+\.toml)\n", block.text) or re.search(
            r"Save this as `(\S+\.toml)`", block.before
        )
        if block.language == "toml" and file:
            Path(file[1]).write_text(block.text)
        elif block.language == "python":
            exec(compile(block.text, name, "exec"), names)
        for arguments in commands(block):
            if arguments[:1] and arguments[0] not in LONG and "--help" not in arguments:
                status = main(arguments)
                assert status == 0, (arguments, capsys.readouterr().err)


def _prepare(name: str) -> None:
    """What a page takes as there already."""
    if name in ("docs/figures.md", "docs/start.md"):
        start.write("leaf-spine", "leaf-spine.toml", schema=False)
        if name == "docs/start.md":
            Path("leaf-spine.toml").unlink()  # the page makes it
    if name in ("docs/python.md", "docs/results.md"):
        scenario = start.template("leaf-spine").files["leaf-spine.toml"].replace('"2ms"', '"200us"')
        Path("mine.toml").write_text(scenario)
    if name == "docs/results.md":
        assert main(["run", "mine.toml", "--out", "out/mine", "--quiet"]) == 0


@pytest.mark.skipif(not getattr(_native, "__file__", None), reason="the native module is not built")
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_whole_scenario_of_a_page_passes_its_check(page, tmp_path, capsys):
    for i, block in enumerate(blocks(page)):
        whole = block.language == "toml" and "[topology]" in block.text and "[[workload]]" in block.text
        needs_files = re.search(r'^\s*(file|queries)\s*=|sizes = "\S*\.', block.text, re.M)
        if whole and not needs_files:
            path = tmp_path / f"{i}.toml"
            path.write_text(block.text)
            assert main(["check", str(path), "--json"]) == 0, capsys.readouterr().err
            json.loads(capsys.readouterr().out)


def test_the_first_page_names_every_template():
    text = (ROOT / "docs" / "start.md").read_text("utf-8")
    assert set(re.findall(r"^\| `([\w-]+)` \|", text.partition("## What changes")[0], re.M)) == set(
        start.names()
    )
