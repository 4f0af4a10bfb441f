"""What runs warn of, each warning once: those that differ in their numbers alone are one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from weftline.runs import Run

Shape = tuple[str, frozenset[str]]
MAX_CLAUSES = 3
"""How much of a long list, such as that of waiting ranks, is shown of a warning of many runs."""


@dataclass
class RunWarning:
    """The first text of a warning, and how many runs have it."""

    text: str
    runs: int = 0
    differs: bool = False
    """Whether its numbers are others in some of these runs."""

    def add(self, text: str, runs: int) -> None:
        """Count runs that have it in these words."""
        self.differs |= text != self.text
        self.runs += runs

    def of(self, runs: int, *, always: bool = False) -> str:
        """Return ``" (2 of 3 runs)"``, "" where all have it in the same words, unless `always`."""
        parts = [f"{self.runs} of {runs} runs"] if self.runs < runs or always else []
        parts += ["with the numbers of the first"] if self.differs else []
        return f" ({', '.join(parts)})" if parts else ""

    @property
    def short(self) -> str:
        """The text without the rest of a long list."""
        parts = self.text.split("; ")
        return "; ".join(parts[:MAX_CLAUSES]) + ("; ..." if len(parts) > MAX_CLAUSES else "")


def of_runs(runs: Iterable[Run]) -> dict[Shape, RunWarning]:
    """Return the warnings of runs by their shape, in their order; a run has each once."""
    found: dict[Shape, RunWarning] = {}
    for run in runs:
        own: dict[Shape, str] = {}
        for text in run.summary.get("warnings") or []:
            own.setdefault(_shape(text), text)
        for shape, text in own.items():
            found.setdefault(shape, RunWarning(text)).add(text, 1)
    return found


def _shape(text: str) -> Shape:
    """Return a warning without its numbers and without the order of what it lists."""
    first, _, rest = re.sub(r"\d[\d,.]*", "#", text).partition(": ")
    return first, frozenset(clause for clause in rest.split("; ") if not re.fullmatch(r"and # more", clause))
