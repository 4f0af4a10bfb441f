"""What `weftline reproduce` ends with, whatever was run: tables or JSON, what failed, the page."""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weftline import _native
from weftline.report import page
from weftline.report.page import Section
from weftline.reproduce import claims
from weftline.reproduce.choices import Size
from weftline.reproduce.experiments import Experiment
from weftline.terminal import Table, wrapped

SENTENCES = "Each line is a sentence of the source as a bound on a number of a figure below."


@dataclass(kw_only=True)
class Findings:
    """What an experiment came to."""

    experiment: Experiment
    size: Size
    verdicts: Sequence[claims.Verdict]
    tables: Sequence[Table]
    """Of the terminal."""
    sections: Sequence[Section]
    """Of the page, below the claims."""
    points: Sequence[Any] | Mapping[str, Any]
    """For programs."""
    failed: Mapping[str, str]
    """Why, by name of the point."""
    about: Sequence[tuple[str, str]]
    """Rows of the page's table about itself, in addition to source and size."""
    warnings: Sequence[str] = ()
    """What a reader of the numbers has to know, a sentence each."""
    lead: page.Lead | None = None
    """The question and its answer, ahead of the page."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Further values for programs."""
    note: str = SENTENCES
    """What claims are here."""


def place_of(panel: Any, point: Any) -> dict[str, Any]:
    """Where a point of an experiment on cost or on accuracy stands, for programs."""
    figure = panel.figure
    return {"figure": figure.name, "panel": dict(panel.choice), "line": point.line, figure.along: point.x}


def show(found: Findings, options: argparse.Namespace, path: Path) -> int:
    """Show everything and write the page; return the exit status."""
    if options.json:
        print(json.dumps(as_json(found), indent=2, ensure_ascii=False))
    elif not options.quiet:
        for table in all_tables(found):
            print()
            print(table.text())
        if found.lead:
            print()
            for sentence in found.lead.answer:
                print(wrapped(sentence))
    for warning in found.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    for name, why in found.failed.items():
        print(f"failed: {name}: {why}", file=sys.stderr)
    written = write_page(found, path)
    if not (options.quiet or options.json):
        print(f"page: {written}")
    return 1 if found.failed else 0


def all_tables(found: Findings) -> list[Table]:
    """Return the tables of the terminal: of the figures, of claims place by place, of the claims."""
    details = [verdict.detail for verdict in found.verdicts if verdict.detail]
    return [*found.tables, *details, *([claims.table(found.verdicts)] if found.verdicts else [])]


def as_json(found: Findings) -> dict[str, Any]:
    """Return everything for programs."""
    return {
        "experiment": found.experiment.name,
        "size": found.size.says,
        "full": found.size.full,
        "weftline": _native.version(),
        "date": f"{datetime.date.today():%Y-%m-%d}",
        **found.more,
        "points": found.points,
        "claims": [claims.as_json(verdict) for verdict in found.verdicts],
        "failed": dict(found.failed),
        **({"warnings": list(found.warnings)} if found.warnings else {}),
    } | ({"answer": list(found.lead.answer)} if found.lead else {})


def write_page(found: Findings, path: Path) -> Path:
    """Write the page and return its path."""
    sections = [Section(text=found.experiment.text)]
    if found.verdicts:
        sections.append(Section(title="Claims", text=found.note, tables=[claims.table(found.verdicts)]))
    details = [verdict.detail for verdict in found.verdicts if verdict.detail]
    if details:
        sections.append(Section(title="Agreement, place by place", tables=details))
    title, size = found.experiment.title, found.size.says
    about = [("source", found.experiment.source), ("size", size), *found.about]
    about += [("note", warning) for warning in found.warnings]
    sections += found.sections
    return page.write(path, title=title, subtitle=size, about=about, sections=sections, lead=found.lead)
