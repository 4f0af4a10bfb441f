"""One HTML page that needs nothing else: text, tables, and figures drawn in the browser, offline.

The drawing code (Vega, Vega-Lite, Vega-Embed; BSD-3-Clause) is taken from the package vl-convert-python
when a page is written and embedded once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from weftline.errors import InputError, RunFailed
from weftline.figures import Figure
from weftline.terminal import Table


@dataclass(kw_only=True)
class Section:
    """A heading with text, figures and tables under it, in this order."""

    title: str = ""
    text: str = ""
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)


def drawing_code() -> str:
    """Return the JavaScript that draws the figures.

    Raises
    ------
    RunFailed
        If the package that carries it is not installed.
    """
    try:
        import vl_convert
    except ImportError:
        raise RunFailed("the page needs vl-convert-python: pip install 'weftline[report]'") from None
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")


def write(
    path: Path, *, title: str, subtitle: str, about: Sequence[tuple[str, str]], sections: Sequence[Section]
) -> Path:
    """Write a page and return its path.

    Parameters
    ----------
    about : sequence of (name, text)
        What was run: command, seeds, fingerprints, versions; printed at the foot.
    """
    figures = [figure for section in sections for figure in section.figures]
    specs = json.dumps([figure.spec for figure in figures], separators=(",", ":")).replace("<", "\\u003c")
    numbers = iter(range(len(figures)))
    body = "\n".join(_section(section, numbers) for section in sections)
    foot = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in about)
    text = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f'<header><h1>{escape(title)}</h1><p class="subtitle">{escape(subtitle)}</p></header>\n'
        f"{body}\n<footer><h2>What was run</h2><dl>{foot}</dl></footer>\n</main>\n"
    )
    if figures:
        text += (
            f'<script type="application/json" id="figures">{specs}</script>\n'
            f"<script>(() => {{{drawing_code()}\n}})();</script>\n<script>{_SCRIPT}</script>\n"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "</body>\n</html>\n", "utf-8")
    except (FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
        raise InputError(f"{path}: no page can be there: {error.strerror}; choose another --out") from None
    except OSError as error:
        raise RunFailed(f"{path}: the page cannot be written: {error.strerror or error}") from None
    return path


def _section(section: Section, numbers) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>"] if section.title else []
    parts += [f"<p>{escape(paragraph)}</p>" for paragraph in section.text.split("\n\n") if paragraph.strip()]
    parts += [table_html(table) for table in section.tables]
    for figure in section.figures:
        tables = "".join(table_html(table) for table in figure.tables)
        more = f"<details><summary>Numbers</summary>{tables}</details>" if tables else ""
        title = "" if figure.title == section.title else f"<h3>{escape(figure.title)}</h3>"
        parts.append(
            f"<figure>{title}"
            f'<div class="plot" data-figure="{next(numbers)}" role="img" '
            f'aria-label="{escape(figure.title)}"></div><figcaption>{escape(figure.caption)}</figcaption>{more}</figure>'
        )
    return "<section>" + "\n".join(parts) + "</section>"


def table_html(table: Table) -> str:
    """Return a table as HTML, with its title as caption and its names as row headers."""
    caption = f"<caption>{escape(table.title)}</caption>" if table.title else ""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    rows = []
    for row in table.rows:
        cells = [
            f'<th scope="row">{escape(cell)}</th>' if i < table.left else f"<td>{escape(cell)}</td>"
            for i, cell in enumerate(row)
        ]
        rows.append(f"<tr{' class=first' if row and row[0] else ''}>{''.join(cells)}</tr>")
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    head, body = f"<thead><tr>{head}</tr></thead>", f"<tbody>{''.join(rows)}</tbody>"
    return f'<div class="wide"><table>{caption}{head}{body}</table></div>{note}'


_STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --soft: #5d646d; --rule: #d9dce0; --paper: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8eb; --soft: #9aa3ad; --rule: #363b42; --paper: #15181c; } }
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1060px; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .35rem; letter-spacing: -.01em; text-wrap: balance; }
h2 { font-size: 1.2rem; margin: 2.6rem 0 .6rem; }
h3 { font-size: 1rem; margin: 0 0 .5rem; }
p { max-width: 72ch; margin: .5rem 0; }
.subtitle, figcaption, .note, summary { color: var(--soft); }
.subtitle { margin: 0; }
figure { margin: 1.4rem 0 2rem; }
figcaption, .note { font-size: .86rem; max-width: 85ch; margin-top: .35rem; }
.plot, .wide { overflow-x: auto; }
.plot { min-height: 60px; }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums; margin: .6rem 0; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { padding: .22rem .7rem; text-align: right; white-space: nowrap; }
th { font-weight: 500; }
thead th { border-bottom: 1px solid var(--ink); vertical-align: bottom; }
th[scope=row], thead th:first-child { text-align: left; padding-left: 0; }
tbody tr.first > * { border-top: 1px solid var(--rule); }
tbody tr:first-child > * { border-top: 0; }
details { margin-top: .5rem; } summary { cursor: pointer; font-size: .86rem; }
footer { border-top: 1px solid var(--rule); margin-top: 3rem; font-size: .86rem; }
footer h2 { font-size: 1rem; margin-top: 1.2rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; margin: 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere;
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: .82rem; }
@media print {
  :root { --ink: #000; --soft: #444; --rule: #bbb; --paper: #fff; }
  main { max-width: none; padding: 0; } body { font-size: 10.5pt; }
  figure, table { break-inside: avoid; } h2, h3 { break-after: avoid; } details:not([open]) { display: none; }
  .plot, .wide { overflow: visible; } .plot svg { max-width: 100%; height: auto; } }
"""

_SCRIPT = """
(() => {
  const specs = JSON.parse(document.getElementById("figures").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const draw = (isDark) => {
    const ink = isDark ? "#e6e8eb" : "#1c1e21", rule = isDark ? "#30353c" : "#e4e6ea", axis = isDark ?
    "#767f8a" : "#8a9199"; const font = getComputedStyle(document.body).fontFamily; const config = {
      background: null, font, view: { stroke: null }, title: { color: ink },
      axis: { labelColor: ink, titleColor: ink, gridColor: rule, domainColor: axis, tickColor: axis,
              titleFontWeight: "normal", labelFontSize: 11, titleFontSize: 12 },
      legend: { labelColor: ink, labelFontSize: 12, labelLimit: 260 }, header: { labelColor: ink },
    };
    for (const place of document.querySelectorAll(".plot"))
      vegaEmbed(place, specs[Number(place.dataset.figure)], { actions: false, renderer: "svg", config })
        .catch((error) => { place.textContent = "This figure could not be drawn: " + error.message; });
  };
  draw(dark.matches);
  dark.addEventListener("change", (event) => draw(event.matches));
  addEventListener("beforeprint", () => draw(false));
  addEventListener("afterprint", () => draw(dark.matches));
})();
"""
