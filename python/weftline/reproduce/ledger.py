"""The ledger of claims: what papers state as measured, a row each, and the experiments that answer it.

`experiments/ledger.toml`:

    [[source]]              name, title: a paper, a talk, a page of results; rivals = true for papers whose
                            schemes are only what others are compared with: a table of their own
    [[source.row]]          id          short, unlike all others
                            at          section, figure or table
                            claim       the statement, in our words
                            published   its number, as text, if it has one
                            experiment  the experiment that answers it, and
                            claims      the texts of those of its claims that do
                            at_most     "partly": the claims bound less than what is stated
                            definition  "other": the published number has another definition than what the
                                        claims measure: no verdict on the size; `why` names it
                            not_tried   instead of an experiment: why there is none
                            why         how to read the answer

A row has two verdicts, both by rule from the numbers of its experiment's claims (see `verdicts`): on the
direction, confirmed when that of every claim is as stated, contradicted when that of some is the opposite and
of none as stated, partly when some are, or when `at_most` says that they are weaker than the statement; and
on the size, same, other, or partly. Where its claims differ, the row counts them. Either is open, with the
reason, where nothing was decided, as on one seed. A row is not run without results.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weftline import scenarios
from weftline.errors import InputError, nearest
from weftline.reproduce import experiments, verdicts
from weftline.terminal import Table

FILE = "ledger.toml"
CONFIRMED, PARTLY, CONTRADICTED = "confirmed", "partly", "contradicted"
SAME, OTHER = "same", "other"
OPEN, NONE, NOT_RUN, NOT_TRIED = "open", "–", "not run", "not tried"
DIRECTIONS = (CONFIRMED, PARTLY, CONTRADICTED, OPEN, NONE, NOT_RUN, NOT_TRIED)
SIZES = (SAME, PARTLY, OTHER, OPEN, NONE)
FEW = 3
"""Maximum number of claims of which a row shows every number; of more it shows the range, unit by unit."""
_KEYS = {
    "source": ("name", "title", "rivals", "row"),
    "row": (
        "id",
        "at",
        "claim",
        "published",
        "experiment",
        "claims",
        "at_most",
        "definition",
        "not_tried",
        "why",
    ),
}

Results = Mapping[str, Mapping[str, Any]]
"""What experiments came to, by name: as `weftline reproduce NAME --json` prints it."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One statement of a source."""

    id: str
    at: str
    claim: str
    published: str = ""
    experiment: str = ""
    claims: tuple[str, ...] = ()
    at_most: str = CONFIRMED
    definition: str = ""
    not_tried: str = ""
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Source:
    """A paper or page and its rows."""

    name: str
    title: str
    rows: tuple[Row, ...]
    rivals: bool = False
    """Whether its schemes are only what others are compared with."""


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """All rows, as the file has them."""

    path: Path
    sources: tuple[Source, ...]

    @property
    def rows(self) -> Iterator[Row]:
        """Every row, in order."""
        return (row for source in self.sources for row in source.rows)

    @property
    def experiments(self) -> list[str]:
        """The names of all experiments that rows name, each once, in order."""
        return list(dict.fromkeys(row.experiment for row in self.rows if row.experiment))


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What became of a row."""

    row: Row
    direction: str
    """One of `DIRECTIONS`."""
    size: str = NONE
    """One of `SIZES`."""
    direction_why: str = ""
    """Why it is open, or how many of its claims it is."""
    size_why: str = ""
    ours: str = "–"
    """Our numbers, as text."""
    ran: str = ""
    """How much was run, and with which version."""
    claims: Sequence[Mapping[str, Any]] = field(default_factory=tuple)
    """What became of each of its claims."""


def load(path: Path | None = None) -> Ledger:
    """Return the ledger in a file, by default the one next to the experiments; it is checked.

    Raises
    ------
    InputError
        If there is none, or a row names an experiment or a claim that does not exist.
    """
    path = path or _default_path()
    try:
        data = tomllib.loads(scenarios.read_text(path, "a ledger"))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: {error}") from None
    _only(data, ("source",), str(path))
    ledger = Ledger(path=path, sources=tuple(_source(entry, path) for entry in _tables(data, "source", path)))
    _check_ids(ledger)
    _check_names(ledger)
    return ledger


def _default_path() -> Path:
    listed = experiments.directories()
    found = next((folder / FILE for folder in listed if (folder / FILE).is_file()), None)
    if found is None:
        raise InputError(f"no {FILE} in {', '.join(map(str, listed)) or 'any folder of experiments'}")
    return found


def _source(entry: dict[str, Any], path: Path) -> Source:
    name, title = _text(entry, "name", f"{path}: a source"), _text(entry, "title", f"{path}: a source")
    _only(entry, _KEYS["source"], f'{path}: source "{name}"')
    rows = _tables(entry, "row", path)
    if not isinstance(entry.get("rivals", False), bool):
        raise InputError(f'{path}: source "{name}": rivals: expected true or false')
    where = f'{path}: source "{name}"'
    return Source(
        name=name,
        title=title,
        rows=tuple(_row(row, where) for row in rows),
        rivals=entry.get("rivals", False),
    )


def _row(entry: dict[str, Any], where: str) -> Row:
    where = f'{where}, row "{_text(entry, "id", f"{where}, a row")}"'
    _only(entry, _KEYS["row"], where)
    for key in ("at", "claim"):
        _text(entry, key, where)
    for key in ("published", "experiment", "not_tried", "why"):
        if key in entry:
            _text(entry, key, where)
    if ("experiment" in entry) == ("not_tried" in entry):
        raise InputError(f"{where}: expected either an experiment with claims, or not_tried with the reason")
    claims = entry.get("claims", [])
    listed = isinstance(claims, list) and all(isinstance(text, str) for text in claims)
    if not listed or bool(claims) != ("experiment" in entry):
        raise InputError(
            f"{where}: claims: expected a list of texts of claims, and only together with experiment"
        )
    if entry.get("at_most", PARTLY) != PARTLY:
        raise InputError(f'{where}: at_most: expected "{PARTLY}", found {entry["at_most"]!r}')
    if entry.get("definition", "other") != "other":
        raise InputError(f'{where}: definition: expected "other", found {entry["definition"]!r}')
    if "definition" in entry and not ("published" in entry and "why" in entry):
        raise InputError(
            f'{where}: definition = "other": expected published, and why, which names the difference'
        )
    return Row(**{**entry, "claims": tuple(claims)})


def _tables(data: dict[str, Any], key: str, path: Path) -> list[dict[str, Any]]:
    found = data.get(key)
    if not isinstance(found, list) or not found or not all(isinstance(entry, dict) for entry in found):
        raise InputError(f"{path}: expected tables [[{'source.' if key == 'row' else ''}{key}]]")
    return found


def _text(entry: dict[str, Any], key: str, where: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where}: {key}: expected a text" + (f", found {value!r}" if key in entry else ""))
    return value


def _only(entry: dict[str, Any], known: Sequence[str], where: str) -> None:
    for key in entry:
        if key not in known:
            hint = nearest(key, list(known))
            raise InputError(f'{where}: unknown key "{key}": {hint}known: {", ".join(known)}')


def _check_ids(ledger: Ledger) -> None:
    seen: set[str] = set()
    for row in ledger.rows:
        if row.id in seen:
            raise InputError(f'{ledger.path}: two rows have the id "{row.id}"')
        seen.add(row.id)


def _check_names(ledger: Ledger) -> None:
    """Refuse rows whose experiment or claims there are not."""
    known = experiments.names()
    texts: dict[str, list[str]] = {}
    for row in ledger.rows:
        where = f'{ledger.path}: row "{row.id}"'
        if not row.experiment:
            continue
        if row.experiment not in known:
            hint = nearest(row.experiment, list(known))
            raise InputError(
                f'{where}: unknown experiment "{row.experiment}": {hint}known: {", ".join(known)}'
            )
        if row.experiment not in texts:
            loaded = experiments.load(row.experiment)
            texts[row.experiment] = [str(claim.get("text")) for claim in loaded.claims]
        for text in row.claims:
            if text not in texts[row.experiment]:
                hint = nearest(text, texts[row.experiment])
                listed = "".join(f'\n  "{claim}"' for claim in texts[row.experiment]) or " none"
                raise InputError(f'{where}: {row.experiment} has no claim "{text}": {hint}known:{listed}')


def judge(row: Row, results: Results) -> Judged:
    """Return what became of a row, from what its experiment came to."""
    if row.not_tried:
        return Judged(row=row, direction=NOT_TRIED)
    result = results.get(row.experiment)
    if result is None:
        return Judged(row=row, direction=NOT_RUN)
    by_text = {claim["text"]: claim for claim in result.get("claims", [])}
    found = [by_text[text] for text in row.claims if text in by_text]
    answers = [verdicts.of(claim) for claim in found]
    direction = verdicts.together([answer.direction for answer in answers], len(row.claims))
    size = verdicts.together([answer.size for answer in answers], len(row.claims), verdicts.SIZE_WORDS)
    words = {verdicts.YES: row.at_most, verdicts.NO: CONTRADICTED, verdicts.NONE: NONE}
    sizes = {verdicts.YES: SAME, verdicts.NO: OTHER, verdicts.NONE: NONE}
    if row.definition or not row.published:
        size = verdicts.Answer(verdicts.NONE, "another definition" if row.definition else "")
    return Judged(
        row=row,
        direction=words.get(direction.word, direction.word),
        direction_why=direction.why,
        size=sizes.get(size.word, size.word),
        size_why=size.why,
        ours=_ours(found),
        ran=f"{result.get('size', '')}; weftline {result.get('weftline', '?')}, {result.get('date', '?')}",
        claims=tuple({**claim, **_words(answer)} for claim, answer in zip(found, answers, strict=True)),
    )


def _words(answer: verdicts.Verdicts) -> dict[str, str]:
    """The verdicts on a claim, for programs."""
    return {"direction": answer.direction.text, "size": answer.size.text}


def _ours(found: Sequence[Mapping[str, Any]]) -> str:
    """Our numbers as text, ratios as "2 times"; of many alike, the range of those of each unit."""
    known = [claim for claim in found if claim.get("measured") is not None]
    if not known:
        return "–"
    alike: dict[object, list[Mapping[str, Any]]] = {}
    for claim in known:
        key = id(claim) if len(known) <= FEW else (bool(claim.get("ratio")), _unit(claim["said"]))
        alike.setdefault(key, []).append(claim)
    return "; ".join(_range(sorted(some, key=lambda claim: claim["measured"])) for some in alike.values())


def _unit(text: str) -> str:
    """The unit of a number as text, without the prefix of its size: "B/s" of "13.9 MB/s (13 MB/s to ...)"."""
    unit = re.sub(r"^[-+0-9.,]+ ?", "", text.split(" (")[0])
    return re.sub(r"^[kKMGnum]", "", unit) if unit != "min" else "s"


def _range(ordered: Sequence[Mapping[str, Any]]) -> str:
    first, last = _number_text(ordered[0]), _number_text(ordered[-1])
    return first if len(ordered) == 1 else f"{first} … {last}"


def _number_text(claim: Mapping[str, Any]) -> str:
    """A number with its interval as text: "2 times (1.9 to 2.1)" of a ratio."""
    number, bracket, interval = claim["said"].partition(" (")
    return f"{number}{' times' if claim.get('ratio') else ''}{bracket}{interval}"


def judged(ledger: Ledger, results: Results) -> list[tuple[Source, list[Judged]]]:
    """Return what became of every row, by source."""
    return [(source, [judge(row, results) for row in source.rows]) for source in ledger.sources]


FORMAT = 2
COLUMNS = ["claim", "published", "ours", "direction", "size", "experiment", "how to read it"]
Found = Sequence[tuple[Source, Sequence[Judged]]]


def summary(found: Found) -> Table:
    """Return how many rows of each source were confirmed, and so on; rivals are not among them."""
    counted = [(source, judged) for source, judged in found if not source.rivals]
    columns = ["claims of", *DIRECTIONS, *(f"size {word}" for word in SIZES), "all"]
    rows = [[source.name, *_counts(judged)] for source, judged in counted]
    rows.append(["all", *_counts([one for _, judged in counted for one in judged])])
    return Table(columns, rows)


def _counts(judged: Sequence[Judged]) -> list[str]:
    direction = Counter(one.direction for one in judged)
    size = Counter(one.size for one in judged)
    counts = [direction[word] for word in DIRECTIONS] + [size[word] for word in SIZES]
    return [str(count) for count in (*counts, len(judged))]


def tables(found: Found) -> list[Table]:
    """Return a table for each source, a line for each row."""
    return [
        Table(COLUMNS, [cells(one) for one in judged], title=source.title, left=1, prose=True)
        for source, judged in found
    ]


def cells(one: Judged) -> list[str]:
    """Return a row's cells."""
    row = one.row
    read = " ".join(text for text in (row.not_tried, row.why) if text)
    direction, size = _verdict(one.direction, one.direction_why), _verdict(one.size, one.size_why)
    published = row.published or "–"
    return [f"{row.claim} ({row.at})", published, one.ours, direction, size, row.experiment, read]


def _verdict(word: str, why: str) -> str:
    return f"{word} ({why})" if why else word


def markdown(book: Ledger, found: Found, results: Results) -> str:
    """Return the whole as Markdown below a heading: how many, a table for each source, what was run."""
    parts = [_table(summary(found))]
    for (source, _), table in zip(found, tables(found), strict=True):
        title = f"Rivals: {source.name}" if source.rivals else source.name
        parts += [f"## {title}", f"{source.title}.", _table(table, bold=True)]
    parts += ["## What was run", _table(runs(book, results))]
    lost = [f"- `{name}`: {why}" for name, result in results.items() for why in _failures(result)]
    if lost:
        parts += ["## What failed", "\n".join(lost)]
    noted = [f"- `{name}`: {text}" for name, result in results.items() for text in result.get("warnings", ())]
    if noted:
        parts += ["## Notes", "\n".join(noted)]
    return "\n\n".join(parts) + "\n"


def runs(book: Ledger, results: Results) -> Table:
    """Return what was run of each experiment, when, with which version, and what was not."""
    rows = []
    for name in book.experiments:
        result = results.get(name)
        if result is None:
            rows.append([name, "not run", "–", "–", "–"])
            continue
        lost = len(result.get("failed", {}))
        parts = [str(result.get(key, "?")) for key in ("size", "weftline", "date")]
        rows.append([name, *parts, f"{lost} failed" if lost else "–"])
    return Table(["experiment", "size", "weftline", "date", "points"], rows, left=1, prose=True)


def _failures(result: Mapping[str, Any]) -> list[str]:
    return [f"{point}: {why}" if point else why for point, why in result.get("failed", {}).items()]


def _table(table: Table, *, bold: bool = False) -> str:
    """A table as Markdown; with `bold` the words of the verdicts are."""

    def cell(text: str) -> str:
        text = text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
        word, _, why = text.partition(" (")
        if bold and word in (*DIRECTIONS, *SIZES) and word != NONE:
            return f"**{word}**" + (f" ({why}" if why else "")
        return text

    rule = ["---" if table.prose or i < table.left else "---:" for i in range(len(table.columns))]
    lines = [table.columns, rule, *([cell(text) for text in row] for row in table.rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def as_json(book: Ledger, found: Found, results: Results) -> dict[str, Any]:
    """Return everything for programs."""
    rows = [
        {
            "id": one.row.id,
            "source": source.name,
            "at": one.row.at,
            "claim": one.row.claim,
            "published": one.row.published or None,
            "experiment": one.row.experiment or None,
            "direction": one.direction,
            "direction_why": one.direction_why or None,
            "size": one.size,
            "size_why": one.size_why or None,
            "ours": one.ours,
            "ran": one.ran or None,
            "why": one.row.not_tried or one.row.why or None,
            "claims": list(one.claims),
        }
        for source, judged in found
        for one in judged
    ]
    return {"format": FORMAT, "ledger": book.path.name, "rows": rows, "experiments": dict(results)}
