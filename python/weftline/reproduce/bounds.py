"""Bounds of claims that decide nothing: no number can meet them, or every number does.

Such a bound is a slip, most often of the unit: a share is a number from 0 to 1, so that `below = 45` is
4,500 %. It is an error before anything runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weftline import quantities
from weftline.errors import InputError, nearest
from weftline.measures.lines import PERCENTILES
from weftline.measures.metrics import metric

KEYS = ("above", "below", "at_most")


def check(claim: dict[str, Any], here: str) -> None:
    """Refuse bounds of a claim that decide nothing; `here` begins the message."""
    kind = claim.get("kind", "metric")
    _check_order(claim, here)
    if kind in ("agreement", "order"):
        _check_places(claim, here)
    if kind in ("law", "agreement", "order"):
        return
    name = claim.get("metric", "")
    found = None if kind == "curve" else claimed_metric(kind, name)
    if found is None or found.minimum == 0:
        _check_negative(claim, "a ratio" if is_ratio(claim) else name, here)
    if found is not None and not is_ratio(claim) and found.maximum == 1:
        _check_shares(claim, name, found, here)
    for side in (claim, claim.get("than", {})):
        _check_curve(side, here)


def is_ratio(claim: Mapping[str, Any]) -> bool:
    """Return whether the number of a claim is a ratio to another line, or to another place."""
    if claim.get("kind") == "cost" and claim["metric"] in ("growth", "differences"):
        return False
    return claim.get("kind") == "curve" or bool({"against", "against_at", "than"} & claim.keys())


def drawn_metrics(kind: str) -> Mapping[str, Any]:
    """Return the metrics that figures of kind "cost" or "trials" draw."""
    from weftline.reproduce import cost, trials

    return cost.METRICS if kind == "cost" else trials.METRICS


def claimed_metric(kind: str, name: str) -> Any:
    """Return the metric of a claim of this kind: with `minimum` and `maximum`, `unit` and `text`."""
    if kind not in ("cost", "trials"):
        return metric(name)
    from weftline.reproduce import cost

    known = {**drawn_metrics(kind), **(cost.COMPARED if kind == "cost" else {})}
    if name not in known:
        raise InputError(f'unknown metric "{name}": {nearest(name, list(known))}known: {", ".join(known)}')
    return known[name]


def _check_order(claim: dict[str, Any], here: str) -> None:
    """An upper bound lies above the lower one."""
    if "above" not in claim:
        return
    for key in ("below", "at_most"):
        if key in claim and claim[key] <= claim["above"]:
            words = {"below": "below", "at_most": "at most"}[key]
            raise InputError(
                f"{here}{key}: no number is above {claim['above']:g} and {words} {claim[key]:g}; "
                f"expected {key} above {claim['above']:g}"
            )


def _check_places(claim: dict[str, Any], here: str) -> None:
    if claim["outside"] < 0:
        raise InputError(f"{here}outside: expected a number of places from 0, found {claim['outside']:g}")
    if claim.get("apart", 1.0) < 1.0:
        raise InputError(f"{here}apart: expected a factor of at least 1, found {claim['apart']:g}")
    for bound in claim.get("within", []):
        for key in ("absolute", "relative"):
            if bound.get(key, 0) < 0:
                raise InputError(f"{here}within: {key}: expected a number from 0, found {bound[key]:g}")


def _check_negative(claim: dict[str, Any], what: str, here: str) -> None:
    for key in KEYS:
        if key not in claim:
            continue
        if claim[key] < 0 or (key == "below" and claim[key] == 0):
            never = "every" if key == "above" else "no"
            words = key.replace("_", " ")
            zero = "; that there is none is at_most = 0" if key == "below" else ""
            raise InputError(
                f"{here}{key}: {what} is never negative, so {never} number is {words} {claim[key]:g}{zero}"
            )


def _check_shares(claim: dict[str, Any], name: str, found: Any, here: str) -> None:
    for key in KEYS:
        bound = claim.get(key)
        if bound is not None and (bound > 1 or (key == "above" and bound == 1)):
            expected = f"expected a bound {'below' if key == 'above' else 'of at most'} 1"
            if found.unit != "share":
                raise InputError(f"{here}{key}: {name} is an index from 0 to 1: {expected}, found {bound:g}")
            hint = f"did you mean {bound / 100:g}? " if 1 < bound <= 100 else ""
            raise InputError(
                f"{here}{key}: {name} is a share from 0 to 1, and {bound:g} is {found.text(bound)}: "
                f"{hint}{expected}"
            )


def _check_curve(side: dict[str, Any], here: str) -> None:
    if side.get("percentile", PERCENTILES[0]) not in PERCENTILES:
        name, known = side["percentile"], list(PERCENTILES)
        raise InputError(
            f'{here}percentile: unknown "{name}": {nearest(name, known)}known: {", ".join(known)}'
        )
    check_sizes(side, here)


def check_sizes(table: dict[str, Any], here: str) -> None:
    """Refuse `sizes` of a figure or a claim that no size meets."""
    sizes = table.get("sizes", {})
    for key, size in sizes.items():
        if key not in ("min", "max"):
            raise InputError(
                f'{here}sizes: unknown key "{key}": {nearest(key, ["min", "max"])}known: min, max'
            )
        if not isinstance(size, str):
            raise InputError(f'{here}sizes: {key}: expected a size such as "10MB", found {size!r}')
        quantities.parse_bytes(size)
    if len(sizes) == 2 and quantities.parse_bytes(sizes["min"]) > quantities.parse_bytes(sizes["max"]):
        raise InputError(f"{here}sizes: no size is from {sizes['min']} to {sizes['max']}")
