"""What a person sees in the terminal: tables, and a progress line that goes away."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from weftline import quantities


@dataclass
class Table:
    """A table for the terminal and for HTML: names on the left, figures aligned on the right."""

    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    title: str = ""
    note: str = ""
    left: int = 1
    """How many leading columns hold names."""
    prose: bool = False
    """Whether cells hold sentences, which a page breaks into lines."""

    def text(self) -> str:
        """Return the table as lines of text."""
        widths = [max(len(cell) for cell in column) for column in zip(self.columns, *self.rows, strict=True)]
        lines = [self.title] if self.title else []
        lines.append(self._line(self.columns, widths))
        lines.append("  ".join("─" * width for width in widths))
        lines += [self._line(row, widths) for row in self.rows]
        if self.note:
            lines.append(self.note)
        return "\n".join(lines)

    def html(self) -> str:
        """Return the table as HTML, its cells as plain text."""
        head = "".join(f"<th>{escape(cell)}</th>" for cell in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows
        )
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        caption = f"<caption>{escape(self.title)}</caption>" if self.title else ""
        return f"<table>{caption}<tr>{head}</tr>{body}</table>{note}"

    def _line(self, cells: Sequence[str], widths: Sequence[int]) -> str:
        parts = [
            cell.ljust(width) if i < self.left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(parts).rstrip()


def warnings_html(warnings: Sequence[str]) -> str:
    """Return warnings as HTML, one a paragraph; nothing without any."""
    return "".join(f"<p><b>Warning:</b> {escape(text)}</p>" for text in warnings)


def wrapped(text: str) -> str:
    """Return text broken into lines that fit the terminal, at most 100 wide; its own line ends are kept."""
    width = min(100, shutil.get_terminal_size().columns)
    return "\n".join(textwrap.fill(line, width) for line in text.split("\n"))


class ProgressLine:
    """One line on standard error, rewritten in place; silent when that is not a terminal."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.shown = not quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._last = 0.0

    def show(self, text: str, *, at_once: bool = False) -> None:
        """Replace the line, at most ten times a second."""
        now = time.monotonic()
        if not self.shown or (now - self._last < 0.1 and not at_once):
            return
        self._last = now
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write("\r\x1b[2K" + text[:width])
        sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away."""
        if self.shown:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()


def progress_text(name: str, state: dict) -> str:
    """Return what a run's progress says: simulated time, flows done, speed and time left."""
    parts = [f"{name}  {quantities.time_text(state['now_ns'])}"]
    if state.get("until_ns"):
        parts[0] += f" of {quantities.time_text(state['until_ns'])}"
    if state.get("flows"):
        parts.append(f"flows {state['flows_done']:,}/{state['flows']:,}")
    parts.append(f"{quantities.count_text(state['hops_per_second'])} packet-hops/s")
    left = seconds_left(state)
    if left is not None:
        parts.append(f"{quantities.seconds_text(round(left))} left")
    return "  ".join(parts)


def seconds_left(state: dict) -> float | None:
    """Return a guess of the seconds to go, None while there is nothing to guess from."""
    done = share_done(state)
    return None if done < 0.01 else state["seconds"] * (1 - done) / done


def share_done(state: dict) -> float:
    """Return how much of a run is done, 0 to 1: by simulated time if its end is known, else by flows."""
    if state.get("until_ns"):
        return min(1.0, state["now_ns"] / state["until_ns"])
    if state.get("flows"):
        return min(1.0, state["flows_done"] / state["flows"])
    return 0.0
