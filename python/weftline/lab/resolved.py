"""Quantities of a resolved scenario, some of which are words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weftline import quantities
from weftline.errors import InputError


def ns(text: Any) -> int | None:
    """Return a time in ns; None for words such as "auto"."""
    return _number(quantities.parse_time_ns, text)


def size(text: Any) -> int:
    """Return a number of bytes; 0 for words such as "auto"."""
    return _number(quantities.parse_bytes, text) or 0


def _number(parse: Callable[[str], float], text: Any) -> int | None:
    try:
        return round(parse(text)) if isinstance(text, str) else None
    except (InputError, ValueError):
        return None
