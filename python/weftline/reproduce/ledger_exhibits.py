"""The ledger shown: in the terminal, as Markdown, as a page, for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from weftline.reproduce import ledger
from weftline.reproduce.ledger import Judged, Ledger, Results, Source
from weftline.terminal import Table

FORMAT = 2
COLUMNS = ["claim", "published", "ours", "direction", "size", "experiment", "how to read it"]
Found = Sequence[tuple[Source, Sequence[Judged]]]


def summary(found: Found) -> Table:
    """Return how many rows of each source were confirmed, and so on; rivals are not among them."""
    counted = [(source, judged) for source, judged in found if not source.rivals]
    columns = ["claims of", *ledger.DIRECTIONS, *(f"size {word}" for word in ledger.SIZES), "all"]
    rows = [[source.name, *_counts(judged)] for source, judged in counted]
    rows.append(["all", *_counts([one for _, judged in counted for one in judged])])
    return Table(columns, rows)


def _counts(judged: Sequence[Judged]) -> list[str]:
    direction = Counter(one.direction for one in judged)
    size = Counter(one.size for one in judged)
    counts = [direction[word] for word in ledger.DIRECTIONS] + [size[word] for word in ledger.SIZES]
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


def _failures(result: dict[str, Any]) -> list[str]:
    return [f"{point}: {why}" if point else why for point, why in result.get("failed", {}).items()]


def _table(table: Table, *, bold: bool = False) -> str:
    """A table as Markdown; with `bold` the words of the verdicts are."""

    def cell(text: str) -> str:
        text = text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
        word, _, why = text.partition(" (")
        if bold and word in (*ledger.DIRECTIONS, *ledger.SIZES) and word != ledger.NONE:
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
