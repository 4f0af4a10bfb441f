"""By which factor the counts of sampled flow records are multiplied, as columns of their table state it.

Where one of N packets was looked at, a record's bytes and packets are 1/N of those that passed on average. A
record without a factor in a table of sampled ones, and one with two that differ, is an error. A value of 0
states nothing.

Source: IANA IPFIX information elements 34, 35, 49, 50, 304 to 311 and 396 to 399; RFC 5476 §6.5.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

from weftline.errors import InputError

_INTERVALS = ("samplinginterval", "samplerrandominterval", "samplingrate", "sampling")
"""One of this number of packets. Names of columns are without capitals and underscores."""
_PAIRS: dict[tuple[str, str], Callable[[Fraction, Fraction], Fraction]] = {
    ("samplingpacketinterval", "samplingpacketspace"): lambda taken, left: (taken + left) / taken,
    ("samplingtimeinterval", "samplingtimespace"): lambda taken, left: (taken + left) / taken,
    ("samplingsize", "samplingpopulation"): lambda taken, all_of_them: all_of_them / taken,
}
_PROBABILITY = "samplingprobability"
_METHODS = ("samplingalgorithm", "selectoralgorithm", "samplermode")
"""They say that packets were sampled, and not how many of them."""
_OF_FLOWS = ("samplingflowspacing", "flowsamplingtimespacing")
"""Of whole flows, those that were left out between two that were taken."""
_KNOWN = (*_INTERVALS, *(name for pair in _PAIRS for name in pair), _PROBABILITY, *_METHODS, *_OF_FLOWS)

NOT_STATED = "sampling 0"
"""What is counted: records of which the columns are 0; they are taken as those of all packets."""


class Sampling:
    """The columns of a table that tell how its packets were sampled."""

    def __init__(self, header: list[str]) -> None:
        self._columns: dict[str, tuple[int, str]] = {}
        for place, name in enumerate(header):
            plain = name.lower().replace("_", "")
            if plain in _KNOWN:
                self._columns.setdefault(plain, (place, name))
        self.places = [place for place, _ in self._columns.values()]
        self._found: dict[tuple[str, ...], Fraction | None] = {}
        """By the texts of its columns: a table has few different ones."""

    def factor(self, where: str, row: list[str], counts: Counter[str]) -> Fraction:
        """Return by what the counts of a record are multiplied.

        Raises
        ------
        InputError
            If the record does not state it, or states two, or whole flows were left out.
        """
        if not self.places:
            return Fraction(1)
        texts = tuple(row[place].strip() for place in self.places)
        if texts not in self._found:
            self._found[texts] = self._read(where, dict(zip(self._columns, texts, strict=True)))
        found = self._found[texts]
        counts[NOT_STATED] += found is None
        return Fraction(1) if found is None else found

    def _read(self, where: str, texts: dict[str, str]) -> Fraction | None:
        method = next((self._name(plain) for plain in _METHODS if _is_method(texts.get(plain, ""))), None)
        values = {
            plain: self._number(where, plain, text)
            for plain, text in texts.items()
            if text and plain not in _METHODS
        }
        for plain in _OF_FLOWS:
            if values.get(plain):
                name = self._name(plain)
                raise InputError(f"{where}: {name}: whole flows were left out, and nothing tells which")
        stated: dict[str, Fraction] = {}
        for plain in _INTERVALS:
            if value := values.get(plain):
                stated[self._name(plain)] = value
        if chance := values.get(_PROBABILITY):
            stated[self._name(_PROBABILITY)] = 1 / chance
        for (taken, other), of in _PAIRS.items():
            if not values.get(taken) and not values.get(other):
                continue
            names = f"{self._name(taken)} and {self._name(other)}"
            if not values.get(taken) or other not in values:
                raise InputError(f"{where}: expected both {names}: neither alone is a sampling factor")
            stated[names] = of(values[taken], values[other])
        for name, factor in stated.items():
            if factor < 1:
                raise InputError(f"{where}: {name}: a sampling factor of {text(factor)} is less than 1")
        if len(set(stated.values())) > 1:
            both = ", ".join(f"{text(factor)} by {name}" for name, factor in stated.items())
            raise InputError(f"{where}: its sampling factors differ: {both}")
        if stated:
            return next(iter(stated.values()))
        if method is not None:
            raise InputError(f"{where}: {method} says that packets were sampled, and no column how many")
        if not any(plain not in _OF_FLOWS for plain in values):
            if any(texts.get(plain) for plain in (*_METHODS, *_OF_FLOWS)):
                return Fraction(1)
            raise InputError(
                f"{where}: {', '.join(name for _, name in self._columns.values())}: expected the sampling "
                "factor of the record, found nothing (1: all packets)"
            )
        return None

    def _name(self, plain: str) -> str:
        return self._columns[plain][1] if plain in self._columns else _ELEMENTS.get(plain, plain)

    def _number(self, where: str, plain: str, value: str) -> Fraction:
        if not re.fullmatch(r"\d{1,12}(\.\d{1,18})?([eE][+-]?\d{1,2})?", value):
            raise InputError(f"{where}: {self._name(plain)}: expected a number, found {value!r}")
        return Fraction(value)


def _is_method(text: str) -> bool:
    """Say whether a number or a name of a method of sampling is one of sampling."""
    return text.lower() not in ("", "0", "none")


_ELEMENTS = {
    "samplingpacketinterval": "samplingPacketInterval",
    "samplingpacketspace": "samplingPacketSpace",
    "samplingtimeinterval": "samplingTimeInterval",
    "samplingtimespace": "samplingTimeSpace",
    "samplingsize": "samplingSize",
    "samplingpopulation": "samplingPopulation",
}
"""The names of columns that may be missing, for messages."""


def text(factor: Fraction) -> str:
    """Return a factor as people write it."""
    return f"{int(factor):,}" if factor.denominator == 1 else f"{float(factor):,.6g}"
