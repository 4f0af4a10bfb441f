"""The documentation is true: links lead somewhere, blocks and commands are tried, tables are the code's.

`snippets` has what a block is, what pages take as there already, and what is not run, with the reason.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import re
import tomllib
from pathlib import Path

import pytest
from snippets import (
    ELSEWHERE,
    OTHERS,
    PAGES,
    ROOT,
    SMALL,
    WRONG,
    Block,
    blocks,
    commands,
    completed,
    is_run,
    lines,
    name_of,
    prepare,
    shorter,
)

from weftline import _native
from weftline.cli import explain, start
from weftline.cli.main import main, parser
from weftline.reproduce import checks
from weftline.toml_lines import Where

BUILT = pytest.mark.skipif(not getattr(_native, "__file__", None), reason="the native module is not built")


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
    there = {str(page.relative_to(ROOT / "docs")) for page in PAGES if page.is_relative_to(ROOT / "docs")}
    made = {"reference.md", "api.md"}
    assert set(listed) == there | made and len(listed) == len(there) + len(made)


def reference():
    """The module docs/reference.py, which works without mkdocs up to the text."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def listed() -> list[tuple[str, str]]:
    """Kind and name of every scheme, the name as `weftline explain` tells it from others."""
    found = []
    for kind, schemes in json.loads(_native.names()).items():
        for name in (scheme["name"] for scheme in schemes):
            if name not in ("none", "auto"):
                prefix = "tcp." if kind == "tcp-controllers" else ""
                found.append(
                    (kind, "queue.pfabric" if (kind, name) == ("queues", "pfabric") else prefix + name)
                )
    return found


@BUILT
def test_the_reference_is_made_from_the_code_and_has_every_scheme():
    text = reference().markdown()
    for _, name in listed():
        assert re.search(rf"^### {re.escape(name.removeprefix('queue.'))}$", text, re.M), name
    assert "Alg. 1" in text and "| `eta` | number" in text


@BUILT
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_tables_of_parameters_are_those_of_the_code(page):
    text = page.read_text("utf-8")
    assert reference().filled(text) == text, "other keys in the code: make tables"


@BUILT
def test_the_list_of_experiments_is_made_from_their_titles():
    module = reference()
    assert module.EXPERIMENTS.read_text("utf-8") == module.experiments_page(), "make tables"


@BUILT
def test_every_scheme_has_a_page_or_a_section_with_its_parameters():
    module = reference()
    shown = set().union(*(module.schemes_of(page.read_text("utf-8")) for page in PAGES))
    # Presets have no parameters, but a row of a table.
    scenario = (ROOT / "docs" / "scenario.md").read_text("utf-8")
    shown |= {name for kind, name in listed() if kind == "presets" and f"`{name}`" in scenario}
    assert [name for _, name in listed() if name not in shown] == []


def shown_keys(page: str) -> set[str]:
    """Return what the first cells of a page's tables name, in code."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    rows = re.findall(r"^\|([^|]*)\|([^|]*)\|", text, re.M)
    return {key for row in rows for cell in row for key in re.findall(r"`(\w+)`", cell)}


@BUILT
def test_the_pages_on_results_and_metrics_name_every_counter():
    """Both ways for tables of one scheme or cause: what is declared is named, and nothing else is."""
    declared = json.loads(_native.counters())
    results, metrics = shown_keys("results.md"), shown_keys("metrics.md")
    losses = {counter["key"] for counter in declared["losses"]}
    assert sorted(losses - results) == []
    causes, totals, named = set(), set(), set()
    for group in declared["groups"]:
        keys = {counter["key"] for counter in group["counters"]}
        if group["table"] == "drop_causes":
            causes |= keys
        elif not group["table"]:
            totals |= keys
        else:
            named |= {series["name"] for series in group["series"]}
            named |= {gauge["key"] for gauge in group["gauges"]}
    assert sorted(totals - results) == []
    assert sorted({group["table"] for group in declared["groups"]} - {""} - results) == []
    named |= {metric["name"] for metric in declared["metrics"] if metric["of_run"]}
    assert sorted((causes | named) - metrics) == []
    text = (ROOT / "docs" / "metrics.md").read_text("utf-8")
    table = text.partition("| cause | dropped because |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)`", table, re.M)) == causes


@BUILT
@pytest.mark.parametrize("section", ["switch", "host", "run", "compat", "failures", "measure"])
def test_the_tables_of_a_section_have_its_keys_and_no_others(section):
    """What is written by hand; queues, balancers, events have tables elsewhere, ecn.rate is in the text."""
    text = (ROOT / "docs" / "scenario.md").read_text("utf-8")
    part = re.split(r"^## ", text.partition(f"\n## [{section}]\n")[2], flags=re.M)[0]
    cells = re.findall(r"^\| (`[^|]*`) \|", part, re.M)
    shown = {key for cell in cells for key in re.findall(r"`([\w.]+)`", cell)}
    schema = explain._keys(_native.schema)
    there = {key.removeprefix(f"{section}.") for key in schema if key.startswith(f"{section}.")}
    assert sorted(shown - there) == []
    tables = {key.rpartition(".")[0] for key in there}
    missing = {key for key in there - tables - shown if key.partition(".")[0] not in shown}
    elsewhere = ("balancer.", "queue.", "port.", "event.", "ecn.rate")
    assert sorted(key for key in missing if not key.startswith(elsewhere)) == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_of_a_page_is_one_that_there_is(page):
    known = parser()
    for block in blocks(page):
        for arguments in commands(block):
            known.parse_args(arguments)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_command_within_a_sentence_is_one_that_there_is(page):
    known = parser()._subparsers._group_actions[0].choices
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    for output in re.findall(r"`weftline ([a-z][^`]*)`", text):
        name, *words = output.split()
        assert name in known, output
        inner = known[name]
        if words and inner._subparsers:
            inner = inner._subparsers._group_actions[0].choices[words[0]]
        options = [word.partition("=")[0].strip("[],") for word in words if re.match(r"\[?--", word)]
        assert [option for option in options if option not in inner._option_string_actions] == [], output


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_command_that_is_not_weftlines_names_what_there_is(page):
    for block in blocks(page):
        for words in lines(block):
            program = Path(words[0]).name
            if program == "make":
                made = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
                assert all(word in made for word in words[1:]), words
            elif program == "cargo":
                _names_what_cargo_has(words)
            else:
                assert program in ("weftline", *OTHERS), f"{words}: run it, or say in OTHERS why not"


def _names_what_cargo_has(words: list[str]) -> None:
    crate = {"weftline-sim": "sim", "weftline-pint": "pint", "weftline-collect": "collect"}
    for option, value in itertools.pairwise(words):
        if option == "-p":
            assert value in crate, words
        elif option in ("--test", "--example"):
            folder = ROOT / "crates" / crate[words[words.index("-p") + 1]] / f"{option[2:]}s"
            assert (folder / f"{value}.rs").exists() or (folder / value).is_dir(), words


@BUILT
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_works_as_it_stands(page, tmp_path, monkeypatch, capsys):
    tried = [block for block in blocks(page) if block.language not in ("rust", "diff", *ELSEWHERE)]
    if not tried:
        return
    if any(block.language == "python" for block in tried):
        for package in ("polars", "pandas", "pyarrow", "duckdb", "vl_convert"):
            pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    prepare(name_of(page))
    names: dict = {"__name__": "__main__"}
    output = ""
    for block in tried:
        if block.language == "toml":
            _try_toml(block, capsys)
        elif block.language == "python":
            if block.file:
                Path(block.file).write_text(block.text)
            exec(compile("\n" * block.line + block.text, name_of(page), "exec"), names)
        elif block.language == "json":
            json.loads(block.text)
        elif block.language == "sql":
            _give(["query", "out/sweeps/which", block.text], capsys)
        elif block.language in ("console", "sh", "bash"):
            output = "".join(_give(arguments, capsys) for arguments in commands(block) if is_run(arguments))
        else:
            assert block.language in ("", "text"), f"line {block.line}: how is this tried?"
            if block.file:
                Path(block.file).write_text(block.text)
                continue
            assert [line for line in block.text.splitlines() if line not in output] == []


def _give(arguments: list[str], capsys) -> str:
    """Run a command; return its output."""
    status = main(arguments)
    output = capsys.readouterr()
    expected = 2 if set(WRONG) & set(arguments) else 0
    assert status == expected, (arguments, output.err)
    return output.out + output.err


def _try_toml(block: Block, capsys) -> None:
    """Save a block, where it names a file, and have it checked by the command that it is for."""
    if block.file:
        Path(block.file).parent.mkdir(exist_ok=True)
        Path(block.file).write_text(shorter(block.text))
    if block.file in WRONG:
        return
    if re.search(r'kind = "(aimd|drop-head|shortest|ring|gossip|stop-and-wait)"', block.text):
        return  # there once the page's own changes are built: test_walks.py
    if block.kind == "scenario":
        Path("checked.toml").write_text(completed(block))
        json.loads(_give(["check", "checked.toml", "--json"], capsys))
    elif block.kind == "network":
        Path("checked-net.toml").write_text(block.text)
        topology = '[topology]\nkind = "file"\nfile = "checked-net.toml"\n\n'
        Path("checked.toml").write_text(topology + "[[workload]]" + SMALL.partition("[[workload]]")[2])
        _give(["check", "checked.toml", "--json"], capsys)
    elif block.kind == "queries":
        Path("checked.toml").write_text(block.text)
        _give(["pint", "plan", "checked.toml"], capsys)
    elif block.kind == "sweep":
        named = 'scenario = "mine.toml"\n' if "scenario =" not in block.text else ""
        Path("checked.toml").write_text(named + block.text)
        _give(["sweep", "checked.toml", "--dry-run"], capsys)
    elif block.kind == "experiment":
        _keys_are_known(tomllib.loads(block.text))


def _keys_are_known(experiment: dict) -> None:
    """Keys of figures and claims, and their types; whole experiments are run by the page's own command."""
    for table in ("figure", "claim"):
        for given in experiment.get(table, []):
            checks.keys(given, table, Where("", ""))


def test_the_first_page_names_every_template():
    text = (ROOT / "docs" / "start.md").read_text("utf-8")
    assert set(re.findall(r"^\| `([\w-]+)` \|", text.partition("## What changes")[0], re.M)) == set(
        start.names()
    )
