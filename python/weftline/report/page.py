"""One HTML page that needs nothing else: text, tables, figures and networks drawn in the browser, offline.

The drawing code of figures (Vega, Vega-Lite, Vega-Embed: `assets/vega.js.gz`, licences in
`assets/vega-licences.txt`) is embedded once; that of networks is part of weftline. The page forbids itself to
load anything (Content-Security-Policy), and every text that a user gave is escaped.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from weftline import _native, integrity
from weftline.errors import DamagedError, InputError, RunFailed, path_text, utf8
from weftline.figures.network_view import NetworkView
from weftline.figures.specs import Figure
from weftline.outputs import write_whole
from weftline.terminal import Table

ASSETS = Path(__file__).parents[1] / "assets"
# Vega compiles its expressions with Function, hence 'unsafe-eval'; nothing comes from elsewhere.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; img-src data:"
)


MAX_SENTENCES = 4
"""Sentences of an answer that stand open; the rest is folded."""


@dataclass(frozen=True)
class Caution:
    """What limits the value of a page's numbers: its kind in a word or two, and the facts."""

    kind: str
    text: str
    is_grave: bool = False


@dataclass(frozen=True, kw_only=True)
class KeyNumber:
    """A number of the first row: for each line its label, text, colour, and share of the largest.

    A single number without a note is that of all lines and has no label.
    """

    title: str
    values: Sequence[tuple[str, str, str, float]]
    is_alarm: bool = False
    note: str = ""
    """Which lines it leaves out."""


@dataclass(kw_only=True)
class Section:
    """A heading with text, tables, figures, networks and documents under it, in this order."""

    title: str = ""
    text: str = ""
    cautions: Sequence[Caution] = ()
    """Shown as a callout above all else."""
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    networks: list[NetworkView] = field(default_factory=list)
    documents: list[tuple[str, str]] = field(default_factory=list)
    """Titles and texts of whole files, folded."""
    drawings: list[str] = field(default_factory=list)
    """Drawings as HTML, which follow the text."""


@dataclass(frozen=True, kw_only=True)
class Lead:
    """What a page begins with: the question, the sentences that answer it, key numbers, cautions."""

    question: str
    answer: Sequence[str]
    notes: Sequence[str] = ()
    """Sentences on the question itself, right under it."""
    numbers: Sequence[KeyNumber] = ()
    cautions: Sequence[Caution] = ()


def drawing_code() -> str:
    """Return the JavaScript that draws the figures."""
    return gzip.decompress((ASSETS / "vega.js.gz").read_bytes()).decode("utf-8")


def write(
    path: Path,
    *,
    title: str,
    subtitle: str,
    about: Sequence[tuple[str, str]],
    sections: Sequence[Section],
    lead: Lead | None = None,
) -> Path:
    """Write a page and return its path.

    Parameters
    ----------
    about : sequence of (name, text)
        What was run: command, seeds, fingerprints, versions; printed at the foot.
    lead : Lead, optional
        The question and its answer, above everything else.
    """
    text = html(title=title, subtitle=subtitle, about=about, sections=sections, lead=lead)
    return save(path, text)


def save(path: Path, text: str) -> Path:
    """Write the text of a page to a file and return its path; one that was there stays until then."""
    path = Path(path_text("--out", path))
    integrity.refuse_result(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, utf8("the page", text))
    except (FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
        raise InputError(f"{path}: no page can be there: {error.strerror}; choose another --out") from None
    except OSError as error:
        raise RunFailed(f"{path}: the page cannot be written: {error.strerror or error}") from None
    try:
        # In the folder of a run or a store the page is one of its files.
        _native.cover_file(str(path))
    except DamagedError as error:
        integrity.warn(str(error))
    return path


def html(
    *,
    title: str,
    subtitle: str,
    about: Sequence[tuple[str, str]],
    sections: Sequence[Section],
    lead: Lead | None = None,
) -> str:
    """Return the text of a page; the parameters are those of `write`."""
    figures = [figure for section in sections for figure in section.figures]
    networks = [view for section in sections for view in section.networks]
    numbers = {id(thing): i for things in (figures, networks) for i, thing in enumerate(things)}
    body = "\n".join(_section(section, numbers, f"s{i}") for i, section in enumerate(sections))
    titled = [(f"s{i}", section.title) for i, section in enumerate(sections) if section.title]
    contents = "".join(
        f'<a href="#{place}">{escape(name)}</a>' for place, name in [*titled, ("foot", "What was run")]
    )
    foot = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in about)
    scripts = f"<script>{_asset('layout.js')}</script>\n"
    if figures:
        scripts += _data("figures", [figure.spec for figure in figures])
        scripts += (
            f"<script>(() => {{{drawing_code()}\n}})();</script>\n<script>{_asset('page.js')}</script>\n"
        )
    if networks:
        scripts += _data("networks", [view.data for view in networks])
        scripts += f"<script>{_asset('network.js')}</script>\n"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>{_asset('page.css')}</style>\n</head>\n<body>\n"
        f'<nav aria-label="Contents">{contents}</nav>\n<main>\n'
        f'<header><h1>{escape(title)}</h1><p class="subtitle">{escape(subtitle)}</p></header>\n'
        f'{_lead(lead)}{body}\n<footer id="foot"><h2>What was run</h2><dl>{foot}</dl></footer>\n</main>\n'
        f"{scripts}</body>\n</html>\n"
    )


def _data(name: str, value: object) -> str:
    """JSON that a script reads; no text in it can end the element that holds it."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{text}</script>\n'


def _asset(name: str) -> str:
    return (ASSETS / name).read_text("utf-8")


def _lead(lead: Lead | None) -> str:
    if lead is None:
        return ""
    sentences = [f'<p class="answer">{escape(sentence)}</p>' for sentence in lead.answer]
    first, rest = sentences[:MAX_SENTENCES], "".join(sentences[MAX_SENTENCES:])
    more = f"<details><summary>The rest of the answer</summary>{rest}</details>" if rest else ""
    answer = "".join(first) + more
    keys = "".join(map(_key_number, lead.numbers))
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in lead.notes)
    return (
        f'<div class="lead"><p class="question">{escape(lead.question)}</p>{notes}{answer}</div>\n'
        + (f'<div class="keys">{keys}</div>\n' if keys else "")
        + _callout(lead.cautions)
    )


def _key_number(number: KeyNumber) -> str:
    """Return a card: one large number, or a bar for each line."""
    alarm = " alarm" if number.is_alarm else ""
    if len(number.values) == 1 and not number.note:
        shown = f"<strong>{escape(number.values[0][1])}</strong>"
    else:
        shown = "".join(
            f'<span>{escape(label)}</span><b>{escape(text)}</b><i style="width:{100 * share:.1f}%;'
            f'background:{colour}"></i>'
            for label, text, colour, share in number.values
        )
    shown += f"<small>{escape(number.note)}</small>" if number.note else ""
    return f'<div class="key{alarm}"><h3>{escape(number.title)}</h3>{shown}</div>'


def _callout(cautions: Sequence[Caution]) -> str:
    if not cautions:
        return ""
    entries = "".join(
        f"<li{' class=grave' if one.is_grave else ''}><b>{escape(one.kind)}</b> {escape(one.text)}</li>"
        for one in cautions
    )
    grave = " grave" if any(one.is_grave for one in cautions) else ""
    return f'<aside class="callout{grave}"><h2>Check before you trust this</h2><ul>{entries}</ul></aside>\n'


def _section(section: Section, numbers: dict[int, int], place: str) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>"] if section.title else []
    parts.append(_callout(section.cautions))
    parts += [_paragraph(text) for text in section.text.split("\n\n") if text.strip()]
    parts += section.drawings
    parts += [table_html(table) for table in section.tables]
    for figure in section.figures:
        tables = "".join(table_html(table) for table in figure.tables)
        more = f"<details><summary>Numbers</summary>{tables}</details>" if tables else ""
        title = "" if figure.title == section.title else f"<h3>{escape(figure.title)}</h3>"
        parts.append(
            f"<figure>{title}"
            f'<div class="plot" data-figure="{numbers[id(figure)]}" role="img" '
            f'aria-label="{escape(figure.title)}"></div><figcaption>{escape(figure.caption)}</figcaption>{more}</figure>'
        )
    for view in section.networks:
        notes = f'<p class="note">{escape(" ".join(view.notes))}</p>' if view.notes else ""
        parts.append(f'<div class="network" data-network="{numbers[id(view)]}"></div>{notes}')
    for title, text in section.documents:
        parts.append(f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>")
    return f'<section id="{place}">' + "\n".join(parts) + "</section>"


def _paragraph(text: str) -> str:
    """Return a paragraph; one that is a command stands as such."""
    return command_html(text) if text.startswith("weftline ") else f"<p>{escape(text)}</p>"


def command_html(text: str) -> str:
    """Return a command that can be copied."""
    return f'<pre class="command"><code>{escape(text)}</code></pre>'


def table_html(table: Table) -> str:
    """Return a table as HTML, with its title as caption and its names as row headers."""
    caption = f"<caption>{escape(table.title)}</caption>" if table.title else ""
    head = "".join(
        f'<th scope="col"{" class=name" if i < table.left else ""}>{escape(column)}</th>'
        for i, column in enumerate(table.columns)
    )
    rows = []
    for row in table.rows:
        cells = [
            f'<th scope="row">{escape(cell)}</th>' if i < table.left else f"<td>{escape(cell)}</td>"
            for i, cell in enumerate(row)
        ]
        rows.append(f"<tr{' class=first' if row and row[0] else ''}>{''.join(cells)}</tr>")
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    head, body = f"<thead><tr>{head}</tr></thead>", f"<tbody>{''.join(rows)}</tbody>"
    kind = " class=prose" if table.prose else ""
    return f'<div class="wide"><table{kind}>{caption}{head}{body}</table></div>{note}'
