"""The page "Reference", made from the code when the site is built: every scheme as `weftline explain` has it.

A hook of mkdocs (`hooks:` in mkdocs.yml); ``python docs/reference.py`` prints the page. The JSON Schema of
the scenario goes into the site beside it, for editors.
"""

from __future__ import annotations

import json

from weftline import _native
from weftline.cli import explain, glossary

KINDS = {
    "transports": "Transports",
    "controllers": "Congestion controllers",
    "tcp-controllers": "Congestion controllers of TCP",
    "queues": "Queue disciplines",
    "balancers": "Load balancers",
    "telemetry": "Telemetry",
    "topologies": "Topologies",
    "workloads": "Workloads",
}
PAGE, SCHEMA = "reference.md", "weftline.schema.json"


def markdown() -> str:
    """Return the page."""
    said = [
        "# Reference",
        "Every scheme, with its source, its parameters and how it was checked, made from the code of this "
        "version. The same by `weftline explain NAME`. The JSON Schema of a scenario: "
        f"[{SCHEMA}]({SCHEMA}) (`#:schema` in the first line of a scenario names it to editors).",
    ]
    for kind, listed in json.loads(_native.names()).items():
        said.append(f"## {KINDS.get(kind, kind)}")
        for scheme in listed:
            if scheme["name"] not in ("none", "auto"):
                name = f"tcp.{scheme['name']}" if kind == "tcp-controllers" else scheme["name"]
                said += _scheme(explain.entry(name))
    said += [
        "## Metrics",
        _table(("name", "what it is"), [(f"`{n}`", t) for n, t in glossary.METRICS.items()]),
    ]
    return "\n\n".join(said) + "\n"


def _scheme(entry: dict) -> list[str]:
    found = [f"### {_bare(entry['name'])}", _bare(entry["title"]) + "."]
    if entry["text"] and entry["text"] not in entry["title"]:
        found.append(_bare(entry["text"]))
    if entry["equations"]:
        found.append(f"```text\n{entry['equations']}\n```")
    for key in ("source", "validation"):
        if entry[key]:
            found.append(f"*{key.capitalize()}*: {_bare(entry[key])}")
    rows = [
        (f"`{p['key']}`", _bare(p["type"]), f"`{p['default']}`" if p["default"] else "", _bare(p["help"]))
        for p in entry["parameters"]
    ]
    return found + ([_table(("key", "type", "default", "meaning"), rows)] if rows else [])


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _bare(text: str) -> str:
    """Text whose signs Markdown takes as they are."""
    return "".join("\\" + c if c in "*_[]<`" else c for c in text)


def on_files(files, config):
    """Add the page and the schema to those of the site (a hook of mkdocs 1.6)."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, PAGE, content=markdown()))
    files.append(File.generated(config, SCHEMA, content=_native.schema() + "\n"))
    return files


if __name__ == "__main__":
    print(markdown(), end="")
