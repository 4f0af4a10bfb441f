"""The stub of the native module matches the module: names, parameters in their order, defaults."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import weftline
from weftline import _native

pytestmark = pytest.mark.skipif(
    not getattr(_native, "__file__", None), reason="the native module is not built (maturin develop)"
)

PACKAGE = Path(weftline.__file__).parent
STUB = ast.parse((PACKAGE / "_native.pyi").read_text("utf-8"))
FUNCTIONS = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}


def parameters(node: ast.FunctionDef) -> list[tuple[str, object]]:
    """Names of a stub's parameters, each with its default; ``...`` is any, None if it has no default."""
    found = [*node.args.args, *node.args.kwonlyargs]
    required = [None] * (len(node.args.args) - len(node.args.defaults))
    defaults = [*required, *node.args.defaults, *node.args.kw_defaults]
    values = [
        inspect.Parameter.empty if default is None else ast.literal_eval(default) for default in defaults
    ]
    return [(arg.arg, value) for arg, value in zip(found, values, strict=True) if arg.arg != "self"]


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").is_file()


def test_the_stub_has_every_function_and_class_of_the_module():
    there = {name for name in vars(_native) if not name.startswith("_")}
    assert there == {*FUNCTIONS, *CLASSES}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_the_parameters_that_the_stub_says(name):
    real = inspect.signature(getattr(_native, name))
    found = [(p.name, p.default) for p in real.parameters.values()]
    output = parameters(FUNCTIONS[name])
    assert [n for n, _ in output] == [n for n, _ in found]
    for (_, expected), (parameter, default) in zip(output, found, strict=True):
        assert default == expected or (expected is ...) == (default is ...) is True, parameter


@pytest.mark.parametrize(
    "name", [name for name in CLASSES if not issubclass(getattr(_native, name), Exception)]
)
def test_a_class_has_the_members_that_the_stub_says(name):
    real = getattr(_native, name)
    members = {node.name: node for node in CLASSES[name].body if isinstance(node, ast.FunctionDef)}
    there = {member for member in vars(real) if not member.startswith("_")}
    assert there == {member for member in members if not member.startswith("_")}
    for member, node in members.items():
        assert member == "__init__" or hasattr(real, member)
        is_property = any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list)
        if not is_property and not member.startswith("__"):
            found = [p for p in inspect.signature(getattr(real, member)).parameters if p != "self"]
            assert found == [n for n, _ in parameters(node)]


def test_errors_are_of_the_kinds_that_the_stub_says():
    for name in ("InputError", "DamagedError", "RunFailed"):
        (base,) = CLASSES[name].bases
        assert getattr(_native, name).__base__.__name__ == base.id
