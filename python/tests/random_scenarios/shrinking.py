"""Makes a scenario that fails smaller while it fails in the same way."""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Callable, Iterator

NEEDED = {("topology",), ("workload",)}


def shrunk(document: dict, fails: Callable[[dict], bool], seconds: float) -> dict:
    """Return the smallest scenario found in this time: tables and keys left out, then numbers halved."""
    deadline = time.monotonic() + seconds
    smaller = True
    while smaller:
        smaller = False
        for change in (*without(document), *halved(document)):
            if time.monotonic() > deadline:
                return document
            tried = copy.deepcopy(document)
            try:
                change(tried)
            except (KeyError, IndexError):
                continue
            if tried != document and fails(tried):
                document, smaller = tried, True
    return document


def without(document: dict) -> Iterator[Callable[[dict], None]]:
    """Yield a removal of every table, key and place of a list: large parts first."""
    paths = [path for path, _ in parts(document) if path not in NEEDED and path[-1] != "kind"]
    for path in sorted(paths, key=len):
        yield lambda tried, path=path: above(tried, path).__delitem__(path[-1])


def halved(document: dict) -> Iterator[Callable[[dict], None]]:
    """Yield a halving of every number and quantity."""
    for path, value in parts(document):
        smaller = half(value)
        if smaller is not None:
            yield lambda tried, path=path, smaller=smaller: above(tried, path).__setitem__(path[-1], smaller)


def half(value: object) -> object:
    """Return half of a number or a quantity; ``None`` of all else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int) and abs(value) > 1:
        return value // 2
    quantity = re.fullmatch(r"(\d+)([A-Za-z]+)", value) if isinstance(value, str) else None
    return f"{int(quantity[1]) // 2}{quantity[2]}" if quantity and int(quantity[1]) > 1 else None


def parts(value: object, path: tuple = ()) -> Iterator[tuple[tuple, object]]:
    """Yield every part of a document with its path, the last place of a list first."""
    if path:
        yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from parts(inner, (*path, key))
    elif isinstance(value, list):
        for place in reversed(range(len(value))):
            yield from parts(value[place], (*path, place))


def above(document: object, path: tuple) -> object:
    """Return the table or list that a path ends in."""
    for key in path[:-1]:
        document = document[key]
    return document
