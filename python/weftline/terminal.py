"""What a person sees in the terminal: tables, and a progress line that goes away."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from types import MappingProxyType
from typing import Any, TextIO

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
    marks: dict[tuple[int, int], str] = field(default_factory=dict)
    """By row and column: what a cell is, a key of `COLOURS`."""

    def text(self, width: int | None = None, *, colour: bool = False) -> str:
        """Return the table as lines of text, no wider than the terminal, or than `width` characters.

        Texts in the columns of names are broken into lines; columns of figures that find no room come in a
        further block below, with the names again.
        """
        limit = width or terminal_width()
        names = self._fitted_names(limit)
        widths = [max(map(len, found)) for found in zip(self.columns, *self.rows, strict=True)]
        widths[: self.left] = names
        blocks = self._blocks(widths, limit)
        lines = [self.title] if self.title else []
        for number, block in enumerate(blocks):
            lines += [""] if number else []
            lines += self._lines(self.columns, block, widths)
            lines.append("  ".join("─" * widths[i] for i in block))
            for place, row in enumerate(self.rows):
                marks = {i: mark for i in block if colour and (mark := self.marks.get((place, i)))}
                lines += self._lines(row, block, widths, marks)
        if self.note:
            lines.append(self.note if limit is None else wrapped(self.note, limit))
        return "\n".join(lines)

    def _fitted_names(self, limit: int | None) -> list[int]:
        """Return the widths of the columns of names.

        The widest are cut until half of the line is left, or all figures find room.
        """
        found = [max(map(len, column)) for column in zip(self.columns, *self.rows, strict=True)]
        widths, figures = found[: self.left], found[self.left :]
        if limit is None or not widths:
            return widths
        room = limit - sum(width + 2 for width in figures)
        room = max(room, limit - 2 - max(figures, default=-2), 0) if room < limit // 2 else room
        room = max(room, limit // 2 if figures else limit)
        room -= 2 * (len(widths) - 1)
        # All wide columns get one width, so that none has too little for its words.
        while (excess := sum(widths) - room) > 0 and max(widths) > 12:
            widest = max(widths)
            wide = [i for i, width in enumerate(widths) if width == widest]
            next_widest = max((width for width in widths if width < widest), default=12)
            cut = max(next_widest, 12, widest - -(-excess // len(wide)))
            for i in wide:
                widths[i] = cut
        return widths

    def _blocks(self, widths: Sequence[int], limit: int | None) -> list[list[int]]:
        """Return the columns of each block; every one begins with the names."""
        names = list(range(self.left))
        start = sum(widths[i] + 2 for i in names)
        blocks, used = [names], start
        for i in range(self.left, len(widths)):
            if limit is not None and used + widths[i] > limit and len(blocks[-1]) > len(names):
                blocks.append(names)
                used = start
            blocks[-1] = [*blocks[-1], i]
            used += widths[i] + 2
        return blocks

    def html(self) -> str:
        """Return the table as HTML, its cells as plain text."""
        head = "".join(f"<th>{escape(cell)}</th>" for cell in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows
        )
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        caption = f"<caption>{escape(self.title)}</caption>" if self.title else ""
        return f"<table>{caption}<tr>{head}</tr>{body}</table>{note}"

    def _lines(
        self,
        cells: Sequence[str],
        block: Sequence[int],
        widths: Sequence[int],
        marks: Mapping[int, str] = MappingProxyType({}),
    ) -> list[str]:
        """Return one row of a block; a name that is wider than its column takes several lines."""
        names = {i: textwrap.wrap(cells[i], widths[i]) or [""] for i in block if i < self.left}
        lines = []
        for number in range(max((len(part) for part in names.values()), default=1)):
            parts = []
            for i in block:
                if i < self.left:
                    # A cell that fits stays as it is, blanks included.
                    wrapped_cell = [cells[i]] if len(cells[i]) <= widths[i] else names[i]
                    part = wrapped_cell[number] if number < len(wrapped_cell) else ""
                    parts.append(part.ljust(widths[i]))
                else:
                    part = (cells[i] if number == 0 else "").rjust(widths[i])
                    parts.append(painted(part, marks[i]) if i in marks and number == 0 else part)
            lines.append("  ".join(parts).rstrip())
        return lines


COLOURS = {"error": "1;31", "failed": "1;31", "warning": "1;33", "better": "32", "worse": "31", "open": "33"}
"""SGR parameters by what is coloured; of the terminal's own eight colours, which its theme keeps readable."""


def painted(text: str, kind: str) -> str:
    """Return text in the colour of a kind."""
    return f"\x1b[{COLOURS[kind]}m{text}\x1b[0m"


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal; one that is closed or missing is none."""
    try:
        return stream is not None and stream.isatty()
    except (OSError, ValueError):
        return False


def has_colour(stream: TextIO | None) -> bool:
    """Return whether a stream shows colours: a terminal, unless NO_COLOR is set (no-color.org)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return is_terminal(stream)


def say(kind: str, text: object) -> None:
    """Print a warning or an error on standard error; `kind` comes first: ``warning: ...``."""
    head = f"{kind}:"
    print(f"{painted(head, kind) if has_colour(sys.stderr) else head} {text}", file=sys.stderr)


def terminal_width() -> int | None:
    """Return the width that output has: COLUMNS, or that of the terminal; None where it goes elsewhere."""
    if os.environ.get("COLUMNS", "").isdecimal() or is_terminal(sys.stdout):
        return max(40, shutil.get_terminal_size().columns)
    return None


def warnings_html(warnings: Sequence[str]) -> str:
    """Return warnings as HTML, one a paragraph; nothing without any."""
    return "".join(f"<p><b>Warning:</b> {escape(text)}</p>" for text in warnings)


def entries_text(entries: Sequence[tuple[str, str]], *, indent: int = 0, narrowest: int = 0) -> str:
    """Return names and texts as two columns that fit the terminal: the texts are broken within theirs.

    `narrowest` is the minimum width of the names. Where names leave no room, texts come on lines below them.
    """
    limit = terminal_width()
    width = max([narrowest, *(len(name) for name, _ in entries)])
    room = None if limit is None else limit - indent - width - 2
    lines = []
    for name, text in entries:
        if room is None or limit is None:
            lines.append(f"{' ' * indent}{name:<{width}}  {text}".rstrip())
            continue
        below = room < MIN_TEXT
        parts = textwrap.wrap(text, max(MIN_TEXT, limit - indent - 4 if below else room)) or [""]
        start = " " * (indent + 4 if below else indent + width + 2)
        if below:
            lines.append(f"{' ' * indent}{name}")
        else:
            lines.append(f"{' ' * indent}{name:<{width}}  {parts.pop(0)}".rstrip())
        lines += [start + part for part in parts]
    return "\n".join(lines)


def indented(text: str, indent: int) -> str:
    """Return text at an indent; what does not fit the terminal continues below, two columns further in."""
    limit = terminal_width()
    if limit is None:
        return " " * indent + text
    return textwrap.fill(
        text, limit, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2), break_long_words=False
    )


MIN_TEXT = 24
"""Columns that a text next to names needs."""


def is_one_line(text: str) -> bool:
    """Return whether a text is printed in one line: it has no control characters and no line separators."""
    return not any(unicodedata.category(character) in ("Cc", "Zl", "Zp") for character in text)


def wrapped(text: str, limit: int | None = None) -> str:
    """Return text broken into lines that fit the terminal, at most 100 wide; its own line ends are kept."""
    width = min(100, limit or shutil.get_terminal_size().columns)
    return "\n".join(textwrap.fill(line, width) for line in text.split("\n"))


class ProgressLine:
    """One line on standard error, rewritten in place; silent when that is not a terminal."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.shown = not quiet and is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb"
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


def progress_text(name: str, state: dict[str, Any]) -> str:
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


def seconds_left(state: dict[str, Any]) -> float | None:
    """Return a guess of the seconds to go, None while there is nothing to guess from."""
    done = share_done(state)
    return None if done < 0.01 else state["seconds"] * (1 - done) / done


def share_done(state: dict[str, Any]) -> float:
    """Return how much of a run is done, 0 to 1: by simulated time if its end is known, else by flows."""
    if state.get("until_ns"):
        return min(1.0, state["now_ns"] / state["until_ns"])
    if state.get("flows"):
        return min(1.0, state["flows_done"] / state["flows"])
    return 0.0
