"""What the documentation takes from the code: the page "Reference", tables of parameters and of metrics.

The page has every scheme as `weftline explain` has it; ``python docs/reference.py`` prints it. A table stands
between two comments, so that it can be read where the Markdown is shown as it is:

    <!-- parameters: NAME -->                       all keys of a scheme or a section
    <!-- parameters: NAME beyond OTHER -->          those that OTHER has not, or with another default
    <!-- parameters: NAME but KEY KEY -->           all but these
    <!-- end of parameters -->

    <!-- rules: NAME -->                            what differs where a simulator is repeated
    <!-- end of rules -->

    <!-- metrics -->                            the engine's table of metrics
    <!-- end of metrics -->

``python docs/reference.py --write`` (`make tables`) writes the tables again; a test fails where one is not
the code's. As a hook of mkdocs (`hooks:` in mkdocs.yml) this makes the page and the tables whenever the site
is built, and puts the JSON Schema of the scenario next to them, for editors.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from weftline import _native
from weftline.cli import explain
from weftline.measures.metrics import METRICS
from weftline.reproduce import experiments

KINDS = {
    "transports": "Transports",
    "controllers": "Congestion controllers",
    "tcp-controllers": "Congestion controllers of TCP",
    "queues": "Queue disciplines",
    "balancers": "Load balancers",
    "telemetry": "Telemetry",
    "topologies": "Topologies",
    "workloads": "Workloads",
    "presets": "Presets",
}
EXPERIMENTS = Path(__file__).resolve().parent.parent / "experiments" / "README.md"
PAGE, SCHEMA = "reference.md", "weftline.schema.json"
TABLE = re.compile(r"^(<!-- parameters: ([^\n]*?) -->\n).*?^(<!-- end of parameters -->)$", re.M | re.S)
RULES = re.compile(r"^(<!-- rules: ([^\n]*?) -->\n).*?^(<!-- end of rules -->)$", re.M | re.S)
ALL_METRICS = re.compile(r"^(<!-- metrics -->\n).*?^(<!-- end of metrics -->)$", re.M | re.S)


def markdown() -> str:
    """Return the page."""
    parts = [
        "# Reference",
        "Every scheme, with its source, its parameters and how it was checked, made from the code of this "
        "version. The same by `weftline explain NAME`. The JSON Schema of a scenario: "
        f"[{SCHEMA}]({SCHEMA}) (`#:schema` in the first line of a scenario names it to editors).",
    ]
    for kind, listed in json.loads(_native.names()).items():
        parts.append(f"## {KINDS.get(kind, kind)}")
        for scheme in listed:
            if scheme["name"] not in ("none", "auto"):
                name = f"tcp.{scheme['name']}" if kind == "tcp-controllers" else scheme["name"]
                parts += _scheme(explain.entry(name))
    parts += [
        "## Metrics",
        "The numbers of a run are on the page [Metrics](metrics.md#all-metrics).",
    ]
    return "\n\n".join(parts) + "\n"


def _scheme(entry: dict) -> list[str]:
    found = [f"### {_bare(entry['name'])}", _bare(entry["title"]) + "."]
    if entry["text"] and entry["text"] not in entry["title"]:
        found.append(_bare(entry["text"]))
    if entry["equations"]:
        found.append(f"```text\n{entry['equations']}\n```")
    for key in ("source", "validation"):
        if entry[key]:
            found.append(f"*{key.capitalize()}*: {_bare(entry[key])}")
    return found + ([_parameters(entry["parameters"])] if entry["parameters"] else [])


def filled(text: str) -> str:
    """Return a page with its tables of parameters and rules made from the code.

    Raises
    ------
    weftline.InputError
        If a comment names something that does not exist.
    """
    text = ALL_METRICS.sub(lambda found: f"{found[1]}\n{metrics()}\n\n{found[2]}", text)
    text = RULES.sub(lambda found: f"{found[1]}\n{rules(found[2])}\n\n{found[3]}", text)
    return TABLE.sub(lambda found: f"{found[1]}\n{table(found[2])}\n\n{found[3]}", text)


def metrics() -> str:
    """Return the table of metrics."""
    rows = [
        (f"`{name}`", found.title, found.unit if found.unit != "number" else "", _bare(found.about))
        for name, found in METRICS.items()
    ]
    return _table(("name", "title", "unit", "what it is"), rows)


def rules(name: str) -> str:
    """Return the table of the rules by which a run repeats a simulator."""
    rows = [(f"`{rule['rule']}`", rule["there"], rule["here"]) for rule in explain.entry(name)["rules"]]
    return _table(("rule", "there", "default mode of weftline"), rows)


def table(asked: str) -> str:
    """Return the table that a comment asks for: ``NAME``, ``NAME beyond OTHER`` or ``NAME but KEY KEY``."""
    name, how, *others = [*asked.split(), ""]
    parameters = explain.entry(name)["parameters"]
    if how == "beyond":
        known = explain.entry(others[0])["parameters"]
        parameters = [p for p in parameters if p not in known]
    elif how == "but":
        parameters = [p for p in parameters if p["key"] not in others]
    return _parameters(parameters) if parameters else "No parameters."


def schemes_of(text: str) -> set[str]:
    """Return the names whose parameters a page has."""
    return {asked.split()[0] for _, asked, _ in TABLE.findall(text)}


def _parameters(parameters: list[dict]) -> str:
    rows = [
        (f"`{p['key']}`", _in_short(p["type"]), f"`{p['default']}`" if p["default"] else "", _meaning(p))
        for p in parameters
    ]
    return _table(("key", "value", "default", "meaning"), rows)


def _meaning(parameter: dict) -> str:
    """The help of a key, and what each of its names means."""
    parts = [f"`{choice['name']}`: {_bare(choice['help'])}" for choice in parameter.get("choices", [])]
    return "; ".join([_bare(parameter["help"]), *parts])


def _in_short(kind: str) -> str:
    """A type in the words of a table: its examples are on the page "Scenario"."""
    if kind.startswith("one of "):
        named = dict.fromkeys(re.findall(r'"([^"]*)"', kind))
        return ", ".join(f"`{name}`" for name in named)
    kind = re.sub(r', such as "[^"]*"', "", kind).replace(', or "auto"', " or `auto`")
    return re.sub(r" from (\S+) to ", r" \1 to ", kind.replace("whole number", "integer"))


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def _bare(text: str) -> str:
    """Text whose signs Markdown takes as they are; what stands between backquotes is code."""
    parts = text.split("`")
    signs = re.compile(r"[*\[\]<\\]|(?<!\w)_|_(?!\w)")
    if len(parts) % 2 == 0:
        return signs.sub(r"\\\g<0>", text).replace("`", "\\`")
    return "`".join(part if i % 2 else signs.sub(r"\\\g<0>", part) for i, part in enumerate(parts))


def on_page_markdown(markdown, page, config, files):
    """Make the tables of a page (a hook of mkdocs)."""
    return filled(markdown)


def experiments_page() -> str:
    """Return experiments/README.md: every experiment with its title, by paper."""
    parts = [
        "# Experiments",
        "Each folder is a published table or figure as data, made from the titles in their files by\n"
        "`make tables`. [docs/experiments.md](../docs/experiments.md) says how they are run.",
        "```console\n$ weftline list experiments\n$ weftline reproduce hpcc-fct\n```",
    ]
    papers: dict[str, list[tuple[str, ...]]] = {}
    for name, title in experiments.titles():
        folder = experiments.names()[name]
        if folder.is_relative_to(EXPERIMENTS.parent):
            link = f"[`{name}`]({folder.parent.name}/{folder.name}/experiment.toml)"
            papers.setdefault(folder.parent.name, []).append((link, _bare(title)))
    for paper, rows in sorted(papers.items()):
        parts += [f"## {paper}", _table(("name", "title"), rows)]
    return "\n\n".join(parts) + "\n"


def write() -> list[Path]:
    """Write the tables of all pages again, and return the pages that changed."""
    changed = []
    if not EXPERIMENTS.is_file() or EXPERIMENTS.read_text("utf-8") != experiments_page():
        EXPERIMENTS.write_text(experiments_page(), "utf-8")
        changed.append(EXPERIMENTS)
    for page in sorted(Path(__file__).parent.glob("**/*.md")):
        text = page.read_text("utf-8")
        if filled(text) != text:
            page.write_text(filled(text), "utf-8")
            changed.append(page)
    return changed


def on_files(files, config):
    """Add the page and the schema to those of the site (a hook of mkdocs 1.6)."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, PAGE, content=markdown()))
    files.append(File.generated(config, SCHEMA, content=_native.schema() + "\n"))
    return files


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        print("\n".join(f"written: {page}" for page in write()) or "every table is the code's")
    else:
        print(markdown(), end="")
