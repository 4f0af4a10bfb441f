"""The ledger shown: in the terminal, as Markdown, as a page, for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from weftline.reproduce import ledger
from weftline.reproduce.ledger import Judged, Ledger, Results, Source
from weftline.terminal import Table

FORMAT = 1
COLUMNS = ["claim", "published", "ours", "verdict", "experiment", "how to read it"]
Found = Sequence[tuple[Source, Sequence[Judged]]]


def summary(found: Found) -> Table:
    """Return how many rows of each source were confirmed, and so on."""
    rows = []
    for source, judged in found:
        count = Counter(one.verdict for one in judged)
        rows.append([source.name, *(str(count[v]) for v in ledger.VERDICTS), str(len(judged))])
    total = Counter(one.verdict for _, judged in found for one in judged)
    rows.append(["all", *(str(total[v]) for v in ledger.VERDICTS), str(sum(total.values()))])
    return Table(["claims of", *ledger.VERDICTS, "all"], rows)


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
    return [f"{row.claim} ({row.at})", row.published or "–", one.ours, one.verdict, row.experiment, read]


def markdown(book: Ledger, found: Found, results: Results) -> str:
    """Return the whole as Markdown below a heading: how many, a table for each source, what was run."""
    parts = [_table(summary(found))]
    for (source, _), table in zip(found, tables(found), strict=True):
        parts += [f"## {source.name}", f"{source.title}.", _table(table, bold=ledger.VERDICTS)]
    parts += ["## Every bound", _table(bounds(found))]
    parts += ["## What was run", _table(runs(book, results))]
    lost = [f"- `{name}`: {why}" for name, result in results.items() for why in _failures(result)]
    if lost:
        parts += ["## What failed", "\n".join(lost)]
    return "\n\n".join(parts) + "\n"


def bounds(found: Found) -> Table:
    """Return every bound that answers a row, by experiment, each once."""
    judged = [one for _, listed in found for one in listed]
    known = {(one.row.experiment, claim["text"]): claim for one in judged for claim in one.claims}
    rows = [
        [experiment, text, claim["said"], claim["bound"], _word(claim)]
        for (experiment, text), claim in sorted(known.items(), key=lambda item: item[0][0])
    ]
    return Table(["experiment", "bound", "ours", "expected", ""], rows, left=2, prose=True)


def _word(claim: Mapping[str, Any]) -> str:
    if claim.get("holds") is None:
        return "not decided"
    word = "holds" if claim["holds"] else "differs"
    return word if claim.get("decided") is not None else f"{word}, within chance"


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


def _failures(result: dict) -> list[str]:
    return [f"{point}: {why}" if point else why for point, why in result.get("failed", {}).items()]


def _table(table: Table, *, bold: Sequence[str] = ()) -> str:
    def cell(text: str) -> str:
        text = text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
        return f"**{text}**" if text in bold else text

    rule = ["---" if table.prose or i < table.left else "---:" for i in range(len(table.columns))]
    lines = [table.columns, rule, *([cell(text) for text in row] for row in table.rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def as_json(book: Ledger, found: Found, results: Results) -> dict:
    """Return everything for programs."""
    rows = [
        {
            "id": one.row.id,
            "source": source.name,
            "at": one.row.at,
            "claim": one.row.claim,
            "published": one.row.published or None,
            "experiment": one.row.experiment or None,
            "verdict": one.verdict,
            "ours": one.ours,
            "size": one.size or None,
            "why": one.row.not_tried or one.row.why or None,
            "claims": list(one.claims),
        }
        for source, judged in found
        for one in judged
    ]
    return {"format": FORMAT, "ledger": book.path.name, "rows": rows, "experiments": dict(results)}
