"""`weftline explain NAME`: what a scheme, a key, a metric or a column is, by the engine and the glossary."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from weftline import _native
from weftline.cli import aliases, glossary
from weftline.errors import InputError, nearest
from weftline.measures import counted


def entry(name: str) -> dict[str, Any]:
    """Return what a name means: ``name``, ``title``, ``text``, ``source``, ``equations``, ``parameters``, ...

    A path may have places in lists, as `--set` takes it: ``workload.0.load``.

    Raises
    ------
    InputError
        If nothing has this name; the nearest one is offered.
    """
    wanted = re.sub(r"\.[0-9]+(?=\.|$)", "", name.strip())
    for asked in dict.fromkeys((name.strip(), wanted)):  # As it stands first: "ns3-3.35" is a name.
        with contextlib.suppress(InputError):
            return _and_column(json.loads(_native.explain(asked)))
    found = glossary.entries().get(wanted) or _of_schema(wanted) or _of_subflow(wanted)
    other = aliases.name(wanted)
    if found is None and other != wanted:
        return entry(other) | {"asked": wanted}
    if found is None and (value := _of_value(wanted)):
        return value
    if found is None:
        hint = nearest(wanted, names()) or "`weftline list` shows the schemes, docs/results.md the columns"
        raise InputError(f'unknown name "{name}": {hint.strip()}')
    title, text = found
    return {"name": wanted, "title": title, "text": text, "source": "weftline's definition", "parameters": []}


def transports(entry: dict[str, Any], name: str) -> str:
    """Return the transports that a controller called `name` serves, with its name there if it is another."""
    served = entry.get("transports", {})
    return ", ".join(t if there == name else f"{t} as {there}" for t, there in served.items())


def names() -> list[str]:
    """Return all that can be explained: schemes, keys by path or end, their values, metrics, columns."""
    schemes = [item["name"] for kind in json.loads(_native.names()).values() for item in kind]
    keys = _keys(_native.schema)
    paths = list(keys)
    values = [value for key in keys.values() for value in key.get("enum", []) if isinstance(value, str)]
    ends = [path.rpartition(".")[2] for path in paths]
    metrics = [row["name"] for row in counted.declarations()["metrics"]]
    known = [*schemes, *paths, *ends, *metrics, *glossary.entries(), *aliases.NAMES, *values]
    return list(dict.fromkeys(known))


def _and_column(found: dict[str, Any]) -> dict[str, Any]:
    """A metric with what a column or key of the same name is, and a key with what a series is."""
    title, text = glossary.entries().get(found["name"], ("", ""))
    if title and found["title"].startswith("metric: "):
        return found | {"title": f"{title}; {found['title']}", "text": f"{text} {found['text']}"}
    if found["name"] in glossary.OF_SCHEMES:
        return found | {"text": f"{found['text'].rstrip('.')}. In series.parquet ({title}): {text}"}
    return found


def _of_schema(name: str) -> tuple[str, str] | None:
    """Title and text of a key that only the schema knows: one that tables in a list have, and one has not."""
    keys = _keys(_native.schema)
    path = next((path for path in keys if path == name or path.endswith(f".{name}")), None)
    if path is None:
        return None
    text, examples = keys[path].get("description", ""), keys[path].get("examples", [])
    example = f"Such as {json.dumps(examples[0])}." if examples else ""
    return f"key {path}", f"{text} {example}".strip() or "See docs/scenario.md."


def _of_value(name: str) -> dict[str, Any] | None:
    """A value that keys take by its name, such as ``nccl``: what it is, and those keys."""
    schema = _keys(_native.schema)
    described = {
        path: key.get("description", "") for path, key in schema.items() if name in key.get("enum", [])
    }
    keys: list[dict[str, Any]] = []
    of_keys: dict[str, str] = {}
    for path in described:
        taken: list[dict[str, Any]] = []
        with contextlib.suppress(InputError):  # A key of tables in a list, which the schema alone knows.
            taken = json.loads(_native.explain(path))["parameters"]
        for key in taken:
            if text := next((one["help"] for one in key.get("choices", []) if one["name"] == name), ""):
                keys.append(key)
                of_keys[path] = text
    of_keys = of_keys or described  # Where values have no text of their own, that of the key.
    if not of_keys:
        return None
    texts = list(dict.fromkeys(of_keys.values()))
    if len(texts) > 1:
        texts = [f"{path}: {text}" for path, text in of_keys.items()]
    title = "a value of " + ", ".join(of_keys)
    text = "; ".join(texts)
    return {"name": name, "title": title, "text": text, "source": "", "equations": "", "parameters": keys}


def _of_subflow(name: str) -> tuple[str, str] | None:
    """Title and text of what the law of one subflow of a connection shows: ``subflow3_alpha``."""
    of = re.fullmatch(r"subflow([0-9]+)_(\w+)", name)
    laws = {law["name"] for law in json.loads(_native.names())["tcp-controllers"]} if of else set()
    shown = [row for row in counted.declarations()["flows"] if of and row["name"] == of[2]]
    shown = [row for row in shown if row["scheme"] in laws]
    if of is None or not shown:
        return None
    texts = " ".join(dict.fromkeys(f"{row['text'].rstrip('.')} ({row['scheme']})." for row in shown))
    return glossary.OF_SCHEMES[of[2]][0], f"Of the law of subflow {of[1]}, while it is up: {texts}"


@lru_cache(1)
def _keys(schema_of: Callable[[], str]) -> dict[str, dict[str, Any]]:
    """What a JSON Schema states about every key, by dotted path without places in lists, in its order."""
    schema = json.loads(schema_of())
    named = schema.get("$defs", {})
    found: dict[str, dict[str, Any]] = {}

    def walk(node: Any, path: str) -> None:
        if not isinstance(node, dict):
            return
        if "$ref" in node:
            node = named.get(node["$ref"].rpartition("/")[2], {})
        for key, inner in node.get("properties", {}).items():
            below = f"{path}.{key}" if path else key
            found.setdefault(below, inner)
            walk(inner, below)
        for inner in [*node.get("anyOf", []), node.get("items")]:
            walk(inner, path)

    walk(schema, "")
    return found
