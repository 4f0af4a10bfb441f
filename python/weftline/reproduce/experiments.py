"""Experiments: a published table or figure as data, a folder with `experiment.toml` and a scenario to vary.

    title, source, text     what it is
    scenario                the scenario file in the same folder
    folder                  where results go below out/ (default experiments/NAME)
    [small], [full]         says, duration, hosts, seeds, set: the two sizes; without seeds those of `SEEDS`
    [published]             what has to have the published size to decide claims: order, its place among all
                            experiments; figures = [names] and only = { axis = [variants] }, a part of them,
                            whose panels are run in this order of variants;
                            seeds, the first of which is run before the others of any experiment; says; and
                            set = { settings on top of those of [full] }
    seeded                  false: no seed changes a result (default true), so one seed decides its claims; a
                            claim may have its own
    steady                  false: the source measured without a steady state, as under an overload or in
                            short runs (default true), so claims do not ask for one
    duration_keys           the keys that --duration sets
    [hosts]                 number of hosts = { settings }: what --hosts can choose
    [[axis]]                name, variants = [{ name, set = { path = value }, and what few need:
                            full = settings on top with --full, size = "full": then only (or when requested by
                            name), size = "asked": only when requested by name, threads, with = { variant of
                            another axis = settings on top where both are chosen } }]
    [[figure]]              name, title, kind, panels = [axes], lines = axis, only = { axis = [variants] },
                            published = its key in published.json, seeds = [instead of those of the size],
                            and the options of its kind;
                            kinds "cost", "trend" and "trials" have along = the axis of x, whose variants are
                            named by numbers; what else they take is in `panels` and `trials`; of kind
                            "matrix" it is the axis of the columns; "cdf", "groups": see `goodput_figures`
    [[claim]]               a sentence of the source as a bound on a number of a figure; see `claims` and
                            `agreement`
    repeats                 of an experiment whose figures are all of kind "cost": runs of each point

A folder is looked for in the directories of the environment variable WEFTLINE_EXPERIMENTS, in the package,
as a wheel has them, and in experiments/ of the checkout. PAPER/FIGURE there has the name PAPER-FIGURE, one in
`own/` that of its folder.
"""

from __future__ import annotations

import itertools
import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weftline import renamed, scenarios
from weftline.errors import InputError, nearest
from weftline.measures import metrics
from weftline.reproduce import checks, formulas, published_entries
from weftline.toml_lines import Where

OWN = "own"
"""The folder of experiments that are of no paper."""
SEEDS = {"small": [1, 2, 3, 4, 5], "full": [1, 2, 3]}
"""Seeds of an experiment that has claims and does not name any: five at the small size, whose runs take less
than ten seconds, and at the full size the minimum for a verdict."""
Choice = tuple[tuple[str, str], ...]
"""One variant of each axis that matters: ((axis, variant), ...)."""


def is_of(panel: Mapping[str, str], choice: Choice) -> bool:
    """Return whether a choice is of the panel of a claim; axes that its figure does not have do not count."""
    return all(panel.get(axis, variant) == variant for axis, variant in choice)


Asked = Mapping[str, Sequence[str]]
"""Variants that the user requested by name, by axis."""


@dataclass(kw_only=True)
class FigureDefinition:
    """One figure: a panel for each combination of `panels`, a line for each variant of `lines`."""

    name: str
    title: str
    kind: str
    panels: list[str] = field(default_factory=list)
    lines: str
    along: str = ""
    """The axis of x, of a figure of kind "cost", "trend" or "trials"."""
    only: dict[str, list[str]] = field(default_factory=dict)
    set: dict[str, Any] = field(default_factory=dict)
    published: str = ""
    seeds: list[int] = field(default_factory=list)
    """Instead of those of the size."""
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Published:
    """The part of an experiment that has to have the published size to decide its claims."""

    order: int
    """Its place among all experiments: lower ones are run first."""
    figures: tuple[str, ...]
    only: Mapping[str, list[str]]
    seeds: list[int]
    says: str = ""
    set: Mapping[str, object] = field(default_factory=dict)


@dataclass(kw_only=True)
class Experiment:
    """An experiment as its folder says it."""

    name: str
    folder: Path
    title: str
    source: str
    text: str
    scenario: Path
    out: str
    sizes: dict[str, dict[str, Any]]
    duration_keys: list[str]
    hosts: dict[str, dict[str, Any]]
    axes: dict[str, dict[str, dict[str, Any]]]
    """Variants by axis and name, as the file has them: `set`, `full`, `size`, `threads`."""
    figures: list[FigureDefinition]
    claims: list[dict[str, Any]]
    repeats: int
    seeded: bool = True
    """Whether a seed can change a result."""
    steady: bool = True
    """Whether claims ask for runs that came to a steady state."""
    published_part: Published | None = None

    @property
    def store(self) -> str:
        """The folder below out/ of its points: one for all experiments, which share what is the same."""
        return "experiments" if self.out.startswith("experiments/") else self.out

    @property
    def measures_cost(self) -> bool:
        """Whether it is what runs cost that counts, not what they find."""
        return any(figure.kind == "cost" for figure in self.figures)

    @property
    def tries(self) -> bool:
        """Whether its points are tried many times, with or without a run of a fabric."""
        return any(figure.kind == "trials" for figure in self.figures)

    def named(self, figure: FigureDefinition, axis: str) -> list[str]:
        """Return the variants of an axis that a figure can show, at whatever size."""
        return figure.only.get(axis) or list(self.axes[axis])

    def variants(
        self, figure: FigureDefinition, axis: str, *, full: bool = True, asked: Asked | None = None
    ) -> list[str]:
        """Return the variants of an axis that a figure shows, at the full size or at the small one.

        Those that are requested by name are shown at either.
        """
        by_name = (asked or {}).get(axis, ())
        sizes = ("small", "full") if full else ("small",)
        return [
            name
            for name in self.named(figure, axis)
            if name in by_name or self.axes[axis][name].get("size", "small") in sizes
        ]

    def panel_axes(self, figure: FigureDefinition) -> list[str]:
        """Return the axes of which a panel of a figure has one variant each."""
        others = (figure.lines, figure.along, *figure.panels)
        return [*figure.panels, *(axis for axis in figure.only if axis not in others)]

    def seeds(self, size: str, figure: FigureDefinition | None = None) -> list[int]:
        """Return the seeds of a size, "small" or "full", or of a figure that may have its own."""
        listed = (figure.seeds if figure else []) or self.sizes[size].get("seeds")
        if listed:
            return list(listed)
        return SEEDS[size] if self.claims and self.seeded and not self.measures_cost else [1]

    def panels(
        self, figure: FigureDefinition, *, full: bool = True, asked: Asked | None = None
    ) -> list[Choice]:
        """Return the choices of all axes but those of lines and x, one for each panel."""
        found = [
            [(axis, variant) for variant in self.variants(figure, axis, full=full, asked=asked)]
            for axis in self.panel_axes(figure)
        ]
        return list(itertools.product(*found))

    def points(
        self, figure: FigureDefinition, *, full: bool = True, asked: Asked | None = None
    ) -> list[tuple[str, str]]:
        """Return line and place on the axis of x ("" without one) of each point of a panel."""
        lines = self.variants(figure, figure.lines, full=full, asked=asked)
        places = self.variants(figure, figure.along, full=full, asked=asked) if figure.along else [""]
        return list(itertools.product(lines, places))

    def settings(self, figure: FigureDefinition, choice: Choice, *, full: bool = False) -> dict[str, Any]:
        """Return the settings that a choice stands for, later axes over earlier ones."""
        chosen = {variant for _, variant in choice}
        layers = [figure.set]
        for axis, variant in choice:
            layers.append(self.axes[axis][variant].get("set", {}))
            layers.append(self.axes[axis][variant].get("full", {}) if full else {})
        for axis, variant in choice:
            with_others = self.axes[axis][variant].get("with", {})
            layers += [settings for other, settings in with_others.items() if other in chosen]
        return scenarios.layered(*layers)

    def published(self, figure: FigureDefinition) -> list[dict[str, Any]]:
        """Return the published curves of a figure: entries with `line`, often `panel`, and their values.

        Of a law they are what its formula expects.
        """
        if "expected" in figure.options:
            lines, places = self.named(figure, figure.lines), self.named(figure, figure.along)
            relative = figure.options.get("over")
            scale = 1.0 if relative else metrics.metric(figure.options["metric"]).scale
            return formulas.points(figure, lines, places, scale)
        if not figure.published:
            return []
        entries = self.published_values(figure.published)
        if figure.kind not in ("trend", "trials"):
            return entries
        places = list(self.axes[figure.along])
        return [
            entry | {"points": [[formulas.at_place(x, places) or x, y] for x, y in entry["points"]]}
            for entry in entries
        ]

    def published_in(self, figure: FigureDefinition, choice: Choice) -> list[dict[str, Any]]:
        """Return the published entries of one panel of a figure."""
        chosen = dict(choice).items()
        return [entry for entry in self.published(figure) if entry.get("panel", {}).items() <= chosen]

    def varied(self, figure: FigureDefinition, choice: Choice) -> list[str]:
        """Return the variants of a panel of the axes of which its figure has several."""
        return [variant for axis, variant in choice if len(self.variants(figure, axis)) > 1]

    def published_keys(self) -> list[str]:
        """Return the keys under which published.json has lists; none without the file.

        Raises
        ------
        InputError
            If it cannot be read.
        """
        return _lists(self._published("")) if (self.folder / "published.json").is_file() else []

    def _published(self, without: str) -> Any:
        """Return what published.json holds; `without` is stated where it cannot be read."""
        path = self.folder / "published.json"
        try:
            return json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: {without}{error}") from None

    def published_values(self, key: str) -> list[dict[str, Any]]:
        """Return what published.json has under a key.

        Raises
        ------
        InputError
            If it has no such key, or cannot be read.
        """
        path, data = self.folder / "published.json", self._published(f'no published values "{key}": ')
        known = _lists(data)
        if key not in known:
            raise InputError(
                f'{path}: expected the key "{key}" with a list of entries: {nearest(key, known)}'
                f"known: {', '.join(known) or 'none'}"
            )
        entries = data[key]
        if not entries:
            raise InputError(f'{path}: key "{key}": expected entries, found an empty list')
        return [
            renamed.section(entry, f"{path}: {key}: ") if isinstance(entry, dict) else entry
            for entry in entries
        ]


def _lists(data: Any) -> list[str]:
    return [name for name in data if isinstance(data[name], list)] if isinstance(data, dict) else []


def directories() -> list[Path]:
    """Return the directories in which experiments are looked for, in order, those that exist."""
    listed = [Path(p) for p in os.environ.get("WEFTLINE_EXPERIMENTS", "").split(os.pathsep) if p]
    root = Path(__file__).resolve().parents[1]
    checkout = root.parent.parent / "experiments"
    # In a checkout what the package has is at best a copy, made by the last build.
    listed.append(checkout if (checkout / "ledger.toml").is_file() else root / "experiments")
    return [path for path in listed if path.is_dir()]


def names() -> dict[str, Path]:
    """Return every experiment's folder by its name."""
    found: dict[str, Path] = {}
    for directory in directories():
        for path in sorted([*directory.glob("*/experiment.toml"), *directory.glob("*/*/experiment.toml")]):
            paper, name = path.parent.parent, path.parent.name
            plain = paper == directory or paper.name == OWN
            found.setdefault(name if plain else f"{paper.name}-{name}", path.parent)
    return dict(sorted(found.items()))


def titles() -> list[tuple[str, str]]:
    """Return name and title of every experiment."""
    return [(name, str(_parsed(path / "experiment.toml").get("title", ""))) for name, path in names().items()]


def load(name: str) -> Experiment:
    """Return an experiment by its name, or by the path of its folder.

    Raises
    ------
    InputError
        If there is none, or its file is not as it should be.
    """
    known = names()
    folder = known.get(name) or (Path(name) if (Path(name) / "experiment.toml").is_file() else None)
    if folder is None and "/" in name:
        folder = known.get(name.strip("/").removeprefix(f"{OWN}/").replace("/", "-"))
    if folder is None:
        hint = nearest(name, list(known))
        raise InputError(f'unknown experiment "{name}": {hint}known: {", ".join(known) or "none was found"}')
    path = folder / "experiment.toml"
    data = _parsed(path)
    shipped = (known_name for known_name, at in known.items() if at.resolve() == folder.resolve())
    where = Where(str(path), path.read_text("utf-8"))
    with checks.located(where):
        experiment = _read(next(shipped, folder.resolve().name), folder, data, where)
        checks.references(experiment, where)
    published_entries.check(experiment)
    published_entries.check_use(experiment)
    return experiment


def _read(name: str, folder: Path, data: dict[str, Any], where: Where) -> Experiment:
    checks.keys(data, "experiment", where)
    data, path = dict(data), where()
    data["figure"] = [renamed.section(entry, f"{path}: figure: ") for entry in data["figure"]]
    for kind in ("axis", "figure"):
        for number, entry in enumerate(data.get(kind, [])):
            checks.keys(entry, kind, where, kind, number)
            for variant in entry.get("variants", []):
                checks.keys(variant, "variant", where, kind, number)
    data["claim"] = [read_claim(entry, where, "claim", n) for n, entry in enumerate(data.get("claim", []))]
    checks.unique(data, where)
    for size in ("small", "full"):
        checks.keys(data.get(size, {}), "size", where, size)
    if "published" in data:
        checks.keys(data["published"], "published", where, "published")
    plain = {"name", "title", "kind", "panels", "lines", "only", "published", "set", "along", "seeds"}
    return Experiment(
        name=name,
        folder=folder,
        title=data["title"],
        source=data.get("source", ""),
        text=data.get("text", "").strip(),
        scenario=folder / data["scenario"] if "scenario" in data else _maybe_scenario(data, folder),
        out=data.get("folder", f"experiments/{name}"),
        sizes={size: data.get(size, {}) for size in ("small", "full")},
        duration_keys=list(data.get("duration_keys", [])),
        hosts=data.get("hosts", {}),
        axes={axis["name"]: _variants(axis) for axis in data.get("axis", [])},
        figures=[
            FigureDefinition(
                **{key: entry[key] for key in plain if key in entry},
                options={key: value for key, value in entry.items() if key not in plain},
            )
            for entry in data["figure"]
        ],
        claims=data["claim"],
        repeats=data.get("repeats", 3),
        seeded=data.get("seeded", True),
        steady=data.get("steady", True),
        published_part=_published(data),
    )


def read_claim(entry: dict[str, Any], where: Where, header: str, number: int) -> dict[str, Any]:
    """Return the claim below the `number`-th header of a file, with the new names of keys, once checked."""
    claim = renamed.keys(renamed.section(entry, f"{where()}: claim: "), renamed.CLAIM, f"{where()}: claim")
    checks.keys(claim, "claim", where, header, number)
    for of, tables in (("within", claim.get("within", [])), ("than", [claim.get("than", {})])):
        for table in tables:
            checks.keys(table, of, where, header, number)
    return claim


def _published(data: dict[str, Any]) -> Published | None:
    part = data.get("published")
    if part is None:
        return None
    figures = [entry["name"] for entry in data["figure"]]
    wanted = part.get("figures", figures)
    for name in wanted:
        if name not in figures:
            hint = nearest(name, figures)
            raise InputError(f'published: unknown figure "{name}": {hint}known: {", ".join(figures)}')
    axes = {axis["name"]: [str(v["name"]) for v in axis["variants"]] for axis in data.get("axis", [])}
    for axis, variants in part.get("only", {}).items():
        for name, known in [(axis, list(axes)), *((variant, axes.get(axis, [])) for variant in variants)]:
            if name not in known:
                hint = nearest(name, known)
                raise InputError(f'published: only: unknown "{name}": {hint}known: {", ".join(known)}')
    return Published(
        order=part["order"],
        figures=tuple(wanted),
        only=part.get("only", {}),
        seeds=part.get("seeds", SEEDS["full"] if data.get("seeded", True) else [1]),
        says=part.get("says", ""),
        set=part.get("set", {}),
    )


def _maybe_scenario(data: dict[str, Any], folder: Path) -> Path:
    """Path of the scenario of an experiment, which may not have one."""
    if any(figure.get("kind") in checks.KINDS and figure["kind"] != "trials" for figure in data["figure"]):
        raise InputError('expected the key "scenario"')
    return folder / "scenario.toml"


def _variants(axis: dict[str, Any]) -> dict[str, dict[str, Any]]:
    for variant in axis["variants"]:
        if variant.get("size", "full") not in ("full", "asked"):
            raise InputError(
                f'{variant["name"]}: size: expected "full" or "asked", found "{variant["size"]}"'
            )
    return {str(variant["name"]): variant for variant in axis["variants"]}


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(scenarios.read_text(path, "an experiment"))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: {error}") from None
