"""The stub of the native module names what the module has."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from weftline import _native

STUB = Path(_native.__file__).parent / "_native.pyi" if getattr(_native, "__file__", None) else None
pytestmark = pytest.mark.skipif(not hasattr(_native, "Table"), reason="the native module is not built")


def declared(body):
    """Names of a stub's functions, classes and variables, those of overloads once."""
    found = {}
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = node
    return found


def public(of):
    return {name for name in vars(of) if not name.startswith("_")}


def test_the_stub_has_the_names_of_the_module_and_of_its_classes():
    stub = declared(ast.parse(STUB.read_text("utf-8")).body)
    assert {name for name in stub if not name.startswith("_")} == public(_native)
    for name, node in stub.items():
        if isinstance(node, ast.ClassDef) and not issubclass(getattr(_native, name), BaseException):
            inside = {key for key in declared(node.body) if not key.startswith("_")}
            assert inside == public(getattr(_native, name)), name
