"""`weftline demo`: one panel from each of five papers, with published and measured numbers, on one page.

`experiments/demo.toml` defines it: `title`, `text`, and for each panel

    paper, text              its name, and what to look for
    experiment               an experiment whose runs, figures and published numbers it takes a part of
    figures, only            the figures, and the variants of each axis
    duration, hosts, seeds   instead of those of the small size; an experiment of trials is tried once a seed
    set                      further settings of every run
    claim                    further claims, as an experiment has them; those of the experiment on the same
                             figures are checked too, except for claims that count places
    deeper                   the command that runs more of the experiment

Runs are kept in a store for each panel, below `DIR/`, so that a second call and an interrupted one continue.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import sys
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weftline import _native, scenarios
from weftline.errors import InputError
from weftline.report import page, run_page
from weftline.report.page import Lead, Section
from weftline.reproduce import checks, claims, experiments, published_entries, runner
from weftline.reproduce.claims import Verdict
from weftline.reproduce.experiments import Experiment
from weftline.reproduce.findings import Findings
from weftline.reproduce.runner import Size, chosen_size
from weftline.sweeps import executor
from weftline.sweeps.store import Point
from weftline.terminal import ProgressLine, Table, wrapped
from weftline.toml_lines import Where

FILE = "demo.toml"
CLAIM = "panel.claim"
"""Header of its own claims."""
_PANEL = {"paper", "text", "experiment", "figures", "only", "duration", "hosts", "seeds", "set", "claim"}
_PANEL |= {"deeper"}


@dataclass(kw_only=True)
class Panel:
    """A part of an experiment, and what to say about it."""

    paper: str
    text: str
    deeper: str
    experiment: Experiment
    """With the chosen figures and the claims on them alone."""
    only: dict[str, list[str]]
    size: Size


def command(options: argparse.Namespace) -> int:
    """Run what is not there yet, print a table, write the page; return the exit status."""
    started, used = time.monotonic(), _cpu_seconds()
    title, text, panels = load()
    out = Path(options.out or "out/demo")
    quiet = options.quiet or options.json
    if not quiet:
        print(f"{title}: about 45 s of CPU time on {options.jobs or executor.cores()} cores", flush=True)
    failed = _run(panels, out, options, quiet=quiet)
    came = [] if failed is None else [_findings(panel, out, options) for panel in panels]
    found = [one for one in came if one is not None]
    if failed is None or len(found) < len(came):
        print(runner.INTERRUPTED, file=sys.stderr)
        return 1
    failed |= {name: why for one in found for name, why in one.failed.items()}
    took = f"{time.monotonic() - started:.0f} s, {_cpu_seconds() - used:.0f} s of CPU time"
    about = [("weftline", _native.version()), ("command", run_page.command_line()), ("time", took)]
    sections = [part for panel, one in zip(panels, found, strict=True) for part in _sections(panel, one)]
    summary = table(panels, found)
    written = page.write(
        out / "report.html",
        title=title,
        subtitle=f"{datetime.date.today():%Y-%m-%d}, {took}",
        about=about,
        sections=[Section(text=text, tables=[summary]), *sections],
        lead=Lead(question="What did the papers publish, and what came of it here?", answer=[_answer(found)]),
    )
    if options.json:
        print(json.dumps(_as_json(panels, found, failed), indent=2, ensure_ascii=False))
    elif not options.quiet:
        print(f"\n{summary.text()}\n")
        for panel in panels:
            print(f"{panel.paper}, further: {panel.deeper}")
        print(f"{wrapped(_answer(found))}\n{took}\npage: {written}")
    for name, why in failed.items():
        print(f"failed: {name}: {why}", file=sys.stderr)
    return 1 if failed else 0


def load(path: Path | None = None) -> tuple[str, str, list[Panel]]:
    """Return the title, the text and the panels of the demo's file.

    Raises
    ------
    InputError
        If there is none, or it names an experiment, a figure or a variant that does not exist.
    """
    places = [path] if path else [folder / FILE for folder in experiments.directories()]
    place = next((file for file in places if file.is_file()), None)
    if place is None:
        raise InputError(f"{FILE} was not found next to the experiments")
    try:
        text = scenarios.read_text(place, "a demo")
        data, panels, claims_before = tomllib.loads(text), [], 0
        for entry in data["panel"]:
            panels.append(_panel(entry, place, Where(str(place), text), claims_before))
            claims_before += len(entry.get("claim", []))
        return data["title"], data["text"].strip(), panels
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise InputError(f"{place}: {error}") from None


def _panel(entry: dict[str, Any], place: Path, where: Where, claims_before: int) -> Panel:
    if unknown := entry.keys() - _PANEL:
        raise InputError(f'{place}: unknown key "{min(unknown)}"; known: {", ".join(sorted(_PANEL))}')
    whole = experiments.load(entry["experiment"])
    figures = [figure for figure in whole.figures if figure.name in entry["figures"]]
    if len(figures) != len(entry["figures"]):
        raise InputError(f"{place}: {whole.name} has not all of the figures {', '.join(entry['figures'])}")
    # Claims that count places are about all of a figure, of which a panel runs a part.
    checked = [
        claim
        for claim in whole.claims
        if claim["figure"] in entry["figures"] and claim.get("kind") not in ("agreement", "order")
    ]
    own = [
        experiments.read_claim(claim, where, CLAIM, number)
        for number, claim in enumerate(entry.get("claim", []), claims_before)
    ]
    for number, claim in enumerate(own, claims_before):
        checks.claim_references(whole, claim, where, CLAIM, number)
        if claim["figure"] not in entry["figures"]:
            raise InputError(
                f'{where("figure", CLAIM, number)}: claim "{claim["text"]}": figure: expected one'
                f' of the figures of the panel, {", ".join(entry["figures"])}, found "{claim["figure"]}"'
            )
    checks.unique({"claim": [*checked, *own]}, where)
    published_entries.check(dataclasses.replace(whole, claims=own))
    experiment = dataclasses.replace(whole, figures=figures, claims=[*checked, *own])
    only = {axis: list(variants) for axis, variants in entry["only"].items()}
    for axis, variants in only.items():
        for variant in variants:
            if variant not in whole.axes.get(axis, {}):
                raise InputError(f'{place}: {whole.name}: no "{variant}" on an axis "{axis}"')
    size = chosen_size(
        whole, duration=entry.get("duration"), hosts=entry.get("hosts"), seeds=entry["seeds"], only=only
    )
    return Panel(
        paper=entry["paper"],
        text=entry["text"].strip(),
        deeper=entry["deeper"],
        experiment=experiment,
        only=only,
        size=dataclasses.replace(size, settings=scenarios.layered(size.settings, entry.get("set", {}))),
    )


def _run(
    panels: Sequence[Panel], out: Path, options: argparse.Namespace, *, quiet: bool
) -> dict[str, str] | None:
    """Run the points of all panels, those of each store together; return what failed, None if interrupted."""
    failed: dict[str, str] = {}
    for panel in (panel for panel in panels if not panel.experiment.tries):
        plan = runner.plan_points(panel.experiment, panel.size, out / _folder(panel), only=panel.only)
        points: list[Point] = [point for _, _, _, found in plan for point in found]
        lost = runner.run_points(
            list({point.folder: point for point in points}.values()),
            jobs=options.jobs or executor.cores(),
            line=ProgressLine(quiet=quiet),
            name=f"demo, {panel.paper}",
        )
        if lost is None:
            return None
        failed |= {f"{panel.paper}: {point.name}, seed {point.seed}": why for point, why in lost}
    return failed


def _folder(panel: Panel) -> str:
    return panel.experiment.name


def _findings(panel: Panel, out: Path, options: argparse.Namespace) -> Findings | None:
    """Return what a panel came to."""
    how = argparse.Namespace(
        jobs=options.jobs or executor.cores(), threads=1, on="local", quiet=True, json=False
    )
    return runner.carry_out(panel.experiment, panel.size, out / _folder(panel), panel.only, how)


def table(panels: Sequence[Panel], found: Sequence[Findings]) -> Table:
    """Return every number that was checked: published, measured here with its interval, and the verdict."""
    rows = []
    for panel, one in zip(panels, found, strict=True):
        for number, verdict in enumerate(_measured(one)):
            paper = panel.paper if number == 0 else ""
            rows.append(
                [paper, verdict.text, verdict.write(verdict.published), verdict.measured_text, verdict.word]
            )
    note = "In brackets: 95 % interval over seeds. DIFFERS, OPEN: the page has the reasons."
    return Table(["paper", "number", "published", "here", "verdict"], rows, left=2, note=note)


def _measured(found: Findings) -> list[Verdict]:
    return [verdict for verdict in found.verdicts if verdict.holds is not None]


def _answer(found: Sequence[Findings]) -> str:
    words = [verdict.word for one in found for verdict in _measured(one)]
    counts = ", ".join(f"{words.count(word)} {word}" for word in ("PASS", "DIFFERS", "OPEN"))
    return (
        f"{len(words)} numbers of five papers were checked: {counts}. These are small sizes; "
        "the ledger has every claim, those that are not confirmed included: weftline list claims."
    )


def _sections(panel: Panel, found: Findings) -> list[Section]:
    """Return a panel's part of the page."""
    text = f"{panel.text}\n\n{panel.experiment.source}. {panel.size.says}."
    shown = [claims.table(_measured(found))]
    head = Section(title=panel.paper, text=f"{text}\n\n{panel.deeper}", tables=shown)
    parts = [dataclasses.replace(section, title="") for section in found.sections if section.figures]
    return [head, *parts]


def _as_json(panels: Sequence[Panel], found: Sequence[Findings], failed: dict[str, str]) -> dict[str, Any]:
    shown = [
        {
            "paper": panel.paper,
            "experiment": panel.experiment.name,
            "size": panel.size.says,
            "deeper": panel.deeper,
            "numbers": [claims.as_json(verdict) for verdict in _measured(one)],
        }
        for panel, one in zip(panels, found, strict=True)
    ]
    return {"weftline": _native.version(), "panels": shown, "failed": failed}


def _cpu_seconds() -> float:
    """CPU time of this process and of those that it waited for."""
    import os

    return sum(os.times()[:4])
