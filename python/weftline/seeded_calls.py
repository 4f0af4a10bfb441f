"""Calls of NumPy's old generator with a seed, for which it takes numbers from the system and drops them."""

from __future__ import annotations

import ast
import itertools
import linecache
import sys
from types import FrameType
from typing import Any

_UNKNOWN = object()
"""Stands for a value that is not looked for."""


def gives_seed(frame: FrameType) -> bool:
    """Return whether the code of a frame is in a call such as ``numpy.random.RandomState(7)``."""
    numpy = sys.modules.get("numpy.random")
    call = _call_at(frame)
    if numpy is None or call is None:
        return False
    made = _value(call.func, frame)
    if not (isinstance(made, type) and issubclass(made, numpy.RandomState)):
        return False
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return bool(given) and _value(given[0], frame) is not None


def _call_at(frame: FrameType) -> ast.Call | None:
    """Return the call that a frame is in, by its source."""
    code = frame.f_code
    place = next(itertools.islice(code.co_positions(), frame.f_lasti // 2, None), None)
    if place is None or None in place:
        return None
    first, last, begin, end = (int(number or 0) for number in place)
    lines = [linecache.getline(code.co_filename, n, frame.f_globals) for n in range(first, last + 1)]
    encoded = [line.encode() for line in lines]
    encoded[-1] = encoded[-1][:end]
    encoded[0] = encoded[0][begin:]
    try:
        found = ast.parse(f"({b''.join(encoded).decode()})", mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return found if isinstance(found, ast.Call) else None


def _value(node: ast.expr, frame: FrameType) -> Any:
    """Return the value of a constant, a name or an attribute in a frame."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        known = (frame.f_locals, frame.f_globals, frame.f_builtins)
        return next((names[node.id] for names in known if node.id in names), _UNKNOWN)
    if isinstance(node, ast.Attribute):
        return getattr(_value(node.value, frame), node.attr, _UNKNOWN)
    return _UNKNOWN
