"""Which line the difference of another one is taken from.

Lines of runs that a person names individually are all compared with one of them. The lines of a sweep or of a
store are combinations of settings: each is compared with the one that differs in one axis, and with
none where there is no such line. A run that is not done is compared with nothing: it has part of its results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from weftline.errors import InputError, nearest
from weftline.measures import labels
from weftline.measures.lines import Line
from weftline.measures.pooling import Pool
from weftline.sweeps import zipped_axes
from weftline.sweeps.zipped_axes import Groups

SCHEME = "scheme"


@dataclass(frozen=True)
class Axis:
    """The axis along which lines are compared, and the variant that the others are compared with."""

    name: str
    against: str
    zipped: Groups = ()
    """The axes of a sweep that advance together."""


class Bases:
    """Says for each line which one it is compared with."""

    def __init__(self, lines: Sequence[Line], axis: Axis | None, against: str | None) -> None:
        """Raise InputError if `against` is neither the label of a line nor a variant of an axis."""
        self._lines = list(lines)
        self._zipped = axis.zipped if axis else ()
        self._fixed: Line | None = None
        self.axis = axis
        named = [line.label for line in lines]
        if against in named:
            self._fixed, self.axis = self._lines[named.index(against)], None
        elif against is not None:
            self.axis = self._axis_of(against)
            if self.axis is None:
                raise InputError(f'against "{against}": {nearest(against, named)}known: {", ".join(named)}')
        elif not self._are_combinations:
            self._fixed = next((line for line in lines if line.is_done), self._lines[0])

    @property
    def first(self) -> Line:
        """The line that others are compared with; the first of them if there are several."""
        return self._fixed or next((b for line in self._lines if (b := self.of(line))), self._lines[0])

    def of(self, line: Line) -> Line | None:
        """Return what a line is compared with, None if nothing."""
        if line is self._fixed or not line.is_done:
            return None
        if self._fixed is not None:
            alike = not self._are_combinations or self._apart(line, self._fixed) == 1
            return self._fixed if self._fixed.is_done and alike else None
        if self.axis is None:
            return None
        name, against = self.axis.name, self.axis.against
        at_place = (other for other in self._lines if self._place(other) == self._place(line))
        found = (other for other in at_place if other.is_done and dict(other.choice).get(name) == against)
        return next((other for other in found if other is not line), None)

    def _place(self, line: Line) -> dict[str, str]:
        """Return its variants of all axes but the compared one, and those that advance with it."""
        name = self.axis.name if self.axis else ""
        compared = {name, *zipped_axes.partners(self._zipped, name)}
        return {axis: variant for axis, variant in line.choice if axis not in compared}

    def _apart(self, one: Line, other: Line) -> int:
        """In how many axes two combinations differ; axes that advance together are one."""
        theirs = dict(other.choice)
        axes = {name for name, variant in one.choice if theirs.get(name) != variant}
        return len({min({name, *zipped_axes.partners(self._zipped, name)}) for name in axes})

    @property
    def _are_combinations(self) -> bool:
        return any(line.choice for line in self._lines)

    def _axis_of(self, variant: str) -> Axis | None:
        names = [name for line in self._lines for name, value in line.choice if value == variant]
        return Axis(names[0], variant) if names else None


def combinations(lines: Sequence[Line]) -> tuple[list[Line], Axis | None]:
    """Return lines with the settings in which they differ as axes, and the axis to compare along.

    That is the scheme, if it differs; else the only setting that does.
    """
    pools = [line.pool for line in lines if line.pool is not None]
    if len(pools) < max(2, len(lines)):
        return list(lines), None
    axes = _axes(pools)
    chosen = [
        replace(line, choice=tuple((name, values[i]) for name, values in axes.items()))
        for i, line in enumerate(lines)
    ]
    name = SCHEME if SCHEME in axes else next(iter(axes), "") if len(axes) == 1 else ""
    first = next((line for line in chosen if line.is_done), None)
    return chosen, Axis(name, dict(first.choice)[name]) if name and first else None


def _axes(pools: Sequence[Pool]) -> dict[str, Sequence[str]]:
    """The variant of each pool, by axis: settings that always change together are one axis."""
    schemes = [labels.scheme_name(pool.runs[0]) for pool in pools]
    axes: dict[str, Sequence[str]] = {SCHEME: schemes} if len(set(schemes)) > 1 else {}
    seen = {_parts(schemes)}
    for setting in labels.settings(pools):
        if setting.parts in seen:
            continue
        decided = len({*zip(schemes, setting.values, strict=True)}) == len(set(schemes))
        if SCHEME in axes and decided and labels.follows_from_controller(setting.path):
            continue
        seen.add(setting.parts)
        text = _parts(setting.texts) == setting.parts
        axes[".".join(setting.path)] = setting.texts if text else [str(value) for value in setting.values]
    return axes


def _parts(values: Sequence[str]) -> tuple[int, ...]:
    places: dict[str, int] = {}
    return tuple(places.setdefault(value, len(places)) for value in values)
