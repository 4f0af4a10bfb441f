"""The JSON Schema that editors read: it takes every scenario that the engine takes, and refuses slips.

The check here knows as much of JSON Schema as ours uses, so that no package is needed.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from weftline import _native
from weftline.cli import start

pytestmark = pytest.mark.skipif(
    not getattr(_native, "__file__", None), reason="the native module is not built (maturin develop)"
)

ROOT = Path(__file__).resolve().parent.parent.parent
SCENARIOS = sorted(
    [
        *(start.TEMPLATES / name / f"{name}.toml" for name in start.names()),
        *ROOT.glob("experiments/**/scenario.toml"),
        *ROOT.glob("benches/*.toml"),
    ]
)
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}


def wrong(value: object, schema: dict, root: dict, path: str = "") -> list[str]:
    """Return what is wrong with a value, empty if nothing is."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        tried = [wrong(value, one, root, path) for one in schema["anyOf"]]
        return min(tried, key=len) if all(tried) else []
    if "const" in schema and value != schema["const"]:
        return [f"{path}: expected {schema['const']}, found {value!r}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{path}: {value!r} is not in {schema['enum']}"]
    if "type" in schema and not _is(value, schema["type"]):
        return [f"{path}: expected {schema['type']}, found {value!r}"]
    found = []
    if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{path}: {value!r} does not fit {schema['pattern']}")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        found.append(f"{path}: {value} is out of range")
    if isinstance(value, dict):
        known = schema.get("properties", {})
        found += [f"{path}: {key} is missing" for key in schema.get("required", []) if key not in value]
        for key, inner in value.items():
            if key in known:
                found += wrong(inner, known[key], root, f"{path}.{key}")
            elif schema.get("additionalProperties") is False:
                found.append(f"{path}: unknown key {key}")
    if isinstance(value, list):
        for i, inner in enumerate(value):
            found += wrong(inner, schema.get("items", {}), root, f"{path}.{i}")
    return found


def _is(value: object, kind: str | list) -> bool:
    if isinstance(kind, list):
        return any(_is(value, one) for one in kind)
    return isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


@pytest.fixture(scope="module")
def schema():
    return json.loads(_native.schema())


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_scenario_that_ships_is_valid(path, schema):
    scenario = tomllib.loads(path.read_text("utf-8"))
    if "workload" not in scenario:
        pytest.skip("a part of a scenario: its experiment gives the workload")
    assert wrong(scenario, schema, schema) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("leaves = 4", "leafs = 4"), "unknown key leafs"),
        (('kind = "hpcc"', 'kind = "hpc"'), "hpc"),
        (('"100Gbps"', '"100"'), "does not fit"),
        (("load = 0.5", "load = 5"), "out of range"),
        (("seed = 1", 'seed = "one"'), "expected"),
        (("[measure]", "[measur]"), "unknown key measur"),
    ],
)
def test_a_slip_is_seen(schema, change, message):
    text = start.template("leaf-spine").files["leaf-spine.toml"]
    assert change[0] in text
    found = wrong(tomllib.loads(text.replace(*change, 1)), schema, schema)
    assert any(message in problem for problem in found), found
