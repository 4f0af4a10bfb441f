"""Axes of a sweep that advance together (`zip` of its file): as a whole they are one axis.

Schemes are compared, ranked and drawn at the same place of all other axes. An axis that advances with the
compared one, or with the axis of x, is not another place: its variant follows from that of the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

Choice = tuple[tuple[str, str], ...]
Groups = Collection[frozenset[str]]
"""Sets of axes that advance together, each of two axes or more."""


def groups(combinations: Iterable[Choice]) -> list[frozenset[str]]:
    """Return which axes advance together, as the combinations of a sweep show it.

    Two axes do if a variant of one stands with a single variant of the other, in both directions. An axis of
    one variant advances with none.
    """
    columns: dict[str, list[str]] = {}
    for choice in combinations:
        for axis, variant in choice:
            columns.setdefault(axis, []).append(variant)
    by_places: dict[tuple[int, ...], set[str]] = {}
    for axis, variants in columns.items():
        first: dict[str, int] = {}
        places = tuple(first.setdefault(variant, len(first)) for variant in variants)
        if len(first) > 1:
            by_places.setdefault(places, set()).add(axis)
    return [frozenset(axes) for axes in by_places.values() if len(axes) > 1]


def partners(found: Groups, axis: str) -> frozenset[str]:
    """Return the axes that advance with an axis, without itself."""
    return next((axes - {axis} for axes in found if axis in axes), frozenset())
