"""Numbers along an axis, and formulas: what a figure of kind "trend" expects at each of its places.

    expected     the formula, or a table of one for each line, in the stored unit of the metric (ns, B,
                 bit/s); where the figure has `over`, of the ratio to the metric there. It may use `x`,
                 the number of the place, and
    where        { name = number }: constants
    metrics      { name = "metric" }: numbers of the same run, so that the expectation is the run's own
    + - * / **, parentheses, sqrt, cbrt, log, exp, min, max, pi

`weftline.reproduce.agreement` holds them against what was found.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

from weftline import quantities
from weftline.errors import InputError, nearest
from weftline.measures.lines import Line
from weftline.measures.metrics import metric

if TYPE_CHECKING:
    from weftline.reproduce.experiments import FigureDefinition


def is_number(value: Any) -> bool:
    """Return whether a value of a file is a number that can be compared: neither inf nor nan."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


@cache
def number(variant: str) -> float | None:
    """Return the number that a variant is named by, None if it is none."""
    try:
        return float(Fraction(variant.replace(" ", "")))
    except (ValueError, ZeroDivisionError, OverflowError):
        return None


def at_place(x: float, places: Sequence[str]) -> float | None:
    """Return the number of the place at which a published x stands: to four digits; None if there is none."""
    known = [found for place in places if (found := number(place)) is not None]
    fitting = [found for found in known if f"{found:.4g}" == f"{x:.4g}"]
    return min(fitting, key=lambda found: abs(found - x), default=None)


def sizes(options: dict[str, Any]) -> tuple[int, int | None]:
    """Return the minimum and the maximum size in bytes of the flows that count."""
    wanted = options.get("sizes", {})
    smallest = int(quantities.parse_bytes(wanted["min"])) if "min" in wanted else 0
    return smallest, int(quantities.parse_bytes(wanted["max"])) if "max" in wanted else None


def check_trend(figure: FigureDefinition, places: Sequence[str]) -> None:
    """Raise InputError if a figure of this kind is not as it should be."""
    here = f'figure "{figure.name}"'
    metric(figure.options["metric"])
    sizes(figure.options)
    for place in places:
        if number(place) is None:
            raise InputError(f'{here}: along: expected variants such as "20" or "1/16", found "{place}"')
    over = figure.options.get("over")
    if over is not None and over not in places:
        raise InputError(f'{here}: over: no "{over}" on {figure.along}: {", ".join(places)}')
    if over is not None and "against" in figure.options:
        raise InputError(f"{here}: expected over or against, not both")


_OPERATORS: dict[type, Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "sqrt": math.sqrt,
    "cbrt": math.cbrt,
    "log": math.log,
    "exp": math.exp,
    "min": min,
    "max": max,
}


def value(formula: str, names: Mapping[str, float]) -> float:
    """Return what a formula comes to.

    Raises
    ------
    InputError
        If it is not a formula, uses an unknown name, or has no finite value.
    """
    try:
        found = _value(ast.parse(formula, mode="eval").body, names, formula)
    except SyntaxError:
        raise InputError(f'"{formula}": not a formula: expected one such as "1.31 * mss / sqrt(x)"') from None
    except (ValueError, ArithmeticError, RecursionError, TypeError) as error:
        raise InputError(f'"{formula}": no value with {_listed(names)}: {error}') from None
    if not math.isfinite(found):
        raise InputError(f'"{formula}": not finite with {_listed(names)}')
    return found


def _listed(names: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {value:g}" for name, value in names.items())


def _value(node: ast.expr, names: Mapping[str, float], formula: str) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)
        case ast.Name(id="pi"):
            return math.pi
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, names, formula), _value(right, names, formula))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names, formula)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
            return float(_FUNCTIONS[name](*(_value(arg, names, formula) for arg in args)))
        case ast.Name(id=name) | ast.Call(func=ast.Name(id=name)) if name not in _FUNCTIONS:
            known = [*names, *_FUNCTIONS, "pi"]
            raise InputError(
                f'"{formula}": unknown "{name}": {nearest(name, known)}known: {", ".join(known)}'
            )
    raise InputError(f'"{formula}": "{ast.unparse(node)}" is not allowed in a formula')


def check_figure(figure: FigureDefinition, lines: Sequence[str], places: Sequence[str]) -> None:
    """Raise InputError if the formula of a figure, or what it uses, is not valid."""
    here = f'figure "{figure.name}"'
    if "expected" not in figure.options:
        if figure.options.keys() & {"where", "metrics"} and figure.kind == "trend":
            raise InputError(f'{here}: where and metrics need the key "expected"')
        return
    if figure.published or figure.options.keys() & {"against"}:
        raise InputError(f"{here}: expected a formula, published points or another line, not two of them")
    where, read = figure.options.get("where", {}), figure.options.get("metrics", {})
    if not isinstance(where, dict) or not all(isinstance(v, int | float) for v in where.values()):
        raise InputError(f"{here}: where: expected numbers by name")
    if not isinstance(read, dict):
        raise InputError(f"{here}: metrics: expected metrics by name, for the formula, found {read!r}")
    for name in read.values():
        metric(str(name))
    names = {"x": 1.0, **where, **dict.fromkeys(read, 1.0)}
    for line in lines:
        formula = formula_of(figure, line)
        if not isinstance(formula, str):
            raise InputError(f'{here}: expected: no formula for "{line}"')
        if not read:
            for place in places:
                value(formula, {**names, "x": _number(place)})


def formula_of(figure: FigureDefinition, line: str) -> Any:
    """Return the formula of a line, None without one."""
    formulas = figure.options["expected"]
    return formulas.get(line) if isinstance(formulas, dict) else formulas


@dataclass(frozen=True)
class Tolerance:
    """What the found number over the expected one may be, or the difference of the two."""

    is_ratio: bool
    low: float
    high: float

    def beyond(self, deviation: float) -> float:
        """Return by how much a deviation is outside; negative inside."""
        return max(self.low - deviation, deviation - self.high)


def tolerance(claim: dict[str, Any]) -> Tolerance:
    """Return the tolerance of a claim."""
    given = claim["tolerance"]
    match given if isinstance(given, dict) and all(map(is_number, given.values())) else None:
        case {"relative": int() | float() as bound, **rest} if not rest and bound >= 0:
            return Tolerance(True, 1.0 - bound, 1.0 + bound)
        case {"from": int() | float() as low, "to": int() | float() as high, **rest} if (
            not rest and low < high
        ):
            return Tolerance(True, float(low), float(high))
        case {"absolute": int() | float() as bound, **rest} if not rest and bound >= 0:
            return Tolerance(False, -float(bound), float(bound))
        case {"at_most": int() | float() as bound, **rest} if not rest:
            return Tolerance(False, -math.inf, float(bound))
    raise InputError(
        f'claim "{claim["text"]}": tolerance: expected {{ relative }} or {{ from, to }} of the ratio,'
        " or { absolute } or { at_most } of the difference, where relative and absolute are not negative, and"
        " from is below to"
    )


def _number(place: str) -> float:
    found = number(place)
    if found is None:
        raise InputError(f'expected a number such as "20" or "1/16", found "{place}"')
    return found


def expected(figure: FigureDefinition, line: Line) -> list[float | None]:
    """Return what the formula expects of each run of a line at its place."""
    read = figure.options.get("metrics", {})
    found: list[float | None] = []
    by_name = {name: line.values(of) for name, of in read.items()}
    for number in range(len(line.runs)):
        own = {name: values[number] for name, values in by_name.items()}
        names = {"x": _number(line.place), **figure.options.get("where", {}), **own}
        known = all(value is not None for value in own.values())
        found.append(value(formula_of(figure, line.label), names) if known else None)
    return found


def points(
    figure: FigureDefinition, lines: Sequence[str], places: Sequence[str], scale: float
) -> list[dict[str, Any]]:
    """Return the expected points of a figure as published ones are, where they are not those of each run."""
    if figure.options.get("metrics"):
        return []
    where = figure.options.get("where", {})
    return [
        {
            "line": line,
            "points": [
                [x, scale * value(formula_of(figure, line), {"x": x, **where})] for x in map(_number, places)
            ],
        }
        for line in lines
    ]
