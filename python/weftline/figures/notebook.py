"""How notebooks show figures and runs, and the progress of a run in a cell.

Jupyter and VS Code draw the Vega-Lite specification themselves, and marimo too; the picture next to it is for
what cannot (nbconvert, GitHub). Nothing here imports IPython unless a cell is running.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weftline.figures.specs import Figure

VEGA_LITE = "application/vnd.vegalite.v6+json"


def mimebundle(figure: Figure) -> dict[str, Any]:
    """Return a figure by MIME type: its specification, an SVG picture where it can be drawn, its caption."""
    from weftline.errors import RunFailed
    from weftline.figures import export

    found: dict[str, Any] = {
        "text/plain": f"{figure.title}\n{figure.caption}".strip(),
        VEGA_LITE: figure.spec,
    }
    # Without vl-convert-python the specification has to do.
    with contextlib.suppress(RunFailed):
        found["image/svg+xml"] = export.drawn(export.for_print(figure), "svg", 72).decode()
    return found


def shown() -> bool:
    """Whether this is a cell of a notebook that can show progress."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


@contextlib.contextmanager
def progress(
    name: str, given: Callable[[dict[str, Any]], None] | None
) -> Iterator[Callable[[dict[str, Any]], None] | None]:
    """Yield what a run calls with its progress: what was given, or a line under the cell that is running."""
    if given is not None or not shown():
        yield given
        return
    cell = ProgressCell(name)
    try:
        yield cell.show
    finally:
        cell.clear()


class ProgressCell:
    """One line under a cell, rewritten in place, that goes away at the end."""

    def __init__(self, name: str) -> None:
        from IPython.display import display

        self._name = name
        self._handle = display(_Line(""), display_id=True)

    def show(self, state: dict[str, Any]) -> None:
        """Replace the line by the progress that a run reports."""
        from weftline import terminal

        share = terminal.share_done(state)
        self._handle.update(_Line(terminal.progress_text(self._name, state), share))

    def say(self, text: str) -> None:
        """Replace the line by a text, such as that of a sweep."""
        self._handle.update(_Line(text))

    def clear(self) -> None:
        """Take the line away."""
        self._handle.update(_Line(""))


class _Line:
    """A line of text over a bar, as HTML and as text."""

    def __init__(self, text: str, share: float = 0.0) -> None:
        self.text, self.share = text, share

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        from html import escape

        if not self.text:
            return ""
        bar = f'<progress max="1" value="{self.share:.3f}" style="width:12em"></progress>'
        return f'<div style="font-variant-numeric:tabular-nums">{bar} {escape(self.text)}</div>'
