"""Methods of a controller in Python that look like events and that the transport never calls."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from types import CodeType, FunctionType

from weftline.controllers import Law
from weftline.errors import nearest

CALLED = ["on_ack", "on_timeout"]
"""The methods that the transport calls."""


def warnings(laws: Iterable[Law]) -> list[str]:
    """Return a sentence on each controller with methods such as ``on_timer``, which nothing calls."""
    found = []
    for law in laws:
        if names := _uncalled(law.make):
            hint = nearest(names[0], CALLED) if len(names) == 1 else ""
            found.append(
                f'controller "{law.name}" has {" and ".join(names)}, which nothing calls: {hint}'
                f"the transport calls {' and '.join(CALLED)} alone"
            )
    return found


def _uncalled(make: object) -> list[str]:
    """Return the methods that begin with ``on_``, are not called by the transport and not named by others."""
    while isinstance(make, functools.partial):
        make = make.func
    if not isinstance(make, type):
        return []
    own = [part for cls in make.__mro__ for part in vars(cls).values()]
    named = {name for part in own if isinstance(part, FunctionType) for name in _names_in(part.__code__)}
    events = [name for name in dir(make) if name.startswith("on_") and callable(getattr(make, name, None))]
    return [name for name in events if name not in CALLED and name not in named]


def _names_in(code: CodeType) -> set[str]:
    """Return the names that code reads, and its texts, by which it may read others."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names_in(constant)
        elif isinstance(constant, str):
            found.add(constant)
    return found
