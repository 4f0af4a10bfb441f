"""The page "Claims", made from the ledger of claims and from what experiments came to.

``python docs/claims.py RESULT.json...`` takes results into `claims.json`, experiment by experiment in place
of older ones, and writes `claims.md`; without files it writes the page alone. A result is the `ledger.json`
of ``weftline reproduce --all``, what ``weftline reproduce NAME --json`` printed, or a file of
`ledger/results`. Claims at the published size are joined with those of other seeds, of other files and stored
ones; with fewer seeds than a verdict needs they do not take the place of stored ones that have enough.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

from weftline.reproduce import experiments, joined, ledger, verdicts

HERE = Path(__file__).resolve().parent
STORED, PAGE = HERE / "claims.json", HERE / "claims.md"
LEDGER = HERE.parent / "experiments" / ledger.FILE
KEPT = ("size", "full", "weftline", "date", "failed", "warnings", "claims")
INTRODUCTION = """# Claims

What the papers behind these schemes state as measured or drawn, a row each in our words, and what came of
it here. A row is answered by bounds of [experiments](experiments.md), written before the run that they judge
(where one was changed after a first run, the experiment's text says so), and has two verdicts, both by rule
from the numbers.

**Direction**: *confirmed* where the 95 % interval over seeds, and enough of the seeds by themselves, lie on
the stated side of no effect (or of the row's bound, where no number was published, and for statements of
equality); seeds that do not are counted next to it, and [below](#how-many-seeds) is how many are enough;
*contradicted* where the interval lies on the other side, or where the bound is that there is none at all and
one seed has some; *partly* where some of the row's bounds are as stated. A published level (a bound on
either side of a number that is no ratio) has no direction.

**Size**, for each published number under the same definition: *same* where ours is within 15 % of it (of a
ratio: 15 % of the number, and of what it differs from 1), or where it lies inside our interval; else *other*;
*partly* where some of the row's numbers are the same. It is *open* where the interval holds it, but is wider
than the number itself or (of a ratio) holds 1 too. A published ratio whose bounds allow 1 ("about the same")
has no size.

Where the bounds or numbers of a row differ, it counts them: *1 of 8; 2 contradicted; 5 open*, *same (1 of 2;
1 without a size)*. Either verdict is *open*, with the reason, where nothing was decided: fewer than three
seeds, an interval that reaches over what decides, unfinished flows. *–*: there is nothing to decide, as
without a published number. *Not tried* rows say why.

**Rules of today.** A verdict also needs a steady state of its runs, and a percentile twenty flows beyond it
in every run (a p99 2,000). Results of hpcc-fct, hpcc-eta and pint-fig7 were
stored before these rules: their rows may become *open* when these experiments are run again. (Of pint-fig8,
which was of the same days and has been run again, every number is equal to the last digit, and no verdict
changed.)

Our numbers are those of the bounds, ratios as "2 times" (the mean of the ratios seed by seed), intervals in
brackets. The last table says how much was run of each experiment, when and by which version. Every bound with
its numbers, seed by seed, is in [claims.json](claims.json); [Sources](sources.md) leads from each statement
of the source documents to its row.

Rows are in `experiments/ledger.toml` (`weftline list claims`). To make it all anew, going on where it was
stopped:

```console
$ weftline reproduce --all --dry-run        # what is left, and how long it takes
$ weftline reproduce --all                  # the small sizes, as many seeds as a verdict needs
$ weftline reproduce --all --seeds 1        # one seed: faster, and decides little
$ weftline reproduce --published --dry-run  # the published sizes: the plan, with hours
$ weftline reproduce --all --skip cebinae-table
```

It writes `out/ledger/ledger.md`, `ledger.html` and `ledger.json`. An experiment that fails is named, the
others go on, and the exit status is 1. This page is made by `python docs/claims.py out/ledger/ledger.json`.
"""


SEEDS = """## How many seeds

How many seeds have to agree by themselves follows from a one-sided sign test at 5 %: if a seed were as likely
to lie on the one side of no effect as on the other, the chance that so many lie on the stated side would be
at most 5 %. Up to seven seeds all have to agree (of three and four the chance is 12.5 and 6.3 % even so), of
more seeds a smaller share. The table has the chance that a direction is confirmed though there is no effect,
in per cent, and that it is confirmed where the effect is one standard deviation of a seed, against the former
rule, by which every seed had to agree (two million draws of independent normal numbers; the sign test alone
is exact, for numbers whose median is at no effect):

| seeds | needed | sign test alone | no effect | an effect | formerly: no effect | an effect |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| 3 | 3 | 12.5 | 2.5 | 18 | 2.5 | 18 |
| 5 | 5 | 3.1 | 2.1 | 35 | 2.1 | 35 |
| 10 | 9 | 1.1 | 0.8 | 51 | 0.10 | 18 |
| 20 | 15 | 2.1 | 1.1 | 91 | 0.0 | 3 |

With the former rule twenty seeds confirmed less than five. Numbers with heavier tails (Student's, three
degrees of freedom) are confirmed without an effect in at most 2 %. Skewed ones are the limit of both rules:
where the mean is at no effect and a long tail lies on the other side (an exponential law), it is 11, 9, 5 and
6 % with 3, 5, 10 and 20 seeds. With three and four seeds the interval alone limits the chance.

For eight seeds and more this is a relaxation, made when the verdicts of the former rule were known.
"""


def stored() -> dict[str, dict]:
    """Return what is stored of each experiment."""
    return json.loads(STORED.read_text("utf-8"))


def markdown(results: dict[str, dict]) -> str:
    """Return the page."""
    book = ledger.load(LEDGER)
    found = ledger.judged(book, results)
    return f"{INTRODUCTION}\n{ledger.markdown(book, found, results)}\n{SEEDS}{by_a_share_of_the_seeds(found)}"


def by_a_share_of_the_seeds(found: ledger.Found) -> str:
    """Return which rows have bounds that are as stated though some of the seeds by themselves are not."""
    agree = re.compile(rf"{verdicts.YES}: (\d+ of \d+ seeds)")
    rows = []
    for one in (one for _, judged in found for one in judged):
        shares = [match[1] for claim in one.claims if (match := agree.fullmatch(claim["direction"]))]
        if shares:
            bounds = "one bound" if len(shares) == 1 else f"{len(shares)} of {len(one.claims)} bounds"
            rows.append(f"- *{one.direction}*: {one.row.claim} ({', '.join(shares)} in {bounds})")
    if not rows:
        return "No direction depends on it.\n"
    return "\n".join(["The directions of these rows depend on it, no others:", "", *rows, ""])


def taken(results: dict[str, dict], *files: dict) -> dict[str, dict]:
    """Return the results with those of files, which are joined with each other first, in place of older ones.

    A result that answers only some of the bounds of an older one, as at the published size, leaves the rest.
    """
    new: dict[str, dict] = {}
    for found in files:
        found = found.get("result", found)
        several = found["experiments"] if "experiments" in found else {found["experiment"]: found}
        new |= {name: _merged(name, new.get(name), _short(result)) for name, result in several.items()}
    merged = {name: _merged(name, results.get(name), result) for name, result in new.items()}
    return dict(sorted({**results, **merged}.items()))


def judged_by_rows(results: dict[str, dict]) -> dict[str, dict]:
    """Return the results of experiments that rows of the ledger name; say which others are left out."""
    rows = set(ledger.load(LEDGER).experiments)
    for name in sorted(results.keys() - rows):
        print(f"No row of {LEDGER.name} names {name}; its result is left out.", file=sys.stderr)
    return {name: result for name, result in results.items() if name in rows}


def judged_again(results: dict[str, dict]) -> dict[str, dict]:
    """Return the results with all verdicts made again from the stored numbers of seeds."""
    return {
        name: {**result, "claims": joined.judged_again(experiments.load(name), result["claims"])}
        for name, result in results.items()
    }


_OF_OLDER = r"; \d+ of \d+ bounds: "
"""Begins what `_merged` adds to the size of a result: the sizes of bounds that it kept."""


def _merged(name: str, old: dict | None, new: dict) -> dict:
    """Return a result with those bounds of an older one that it does not answer, and with its other seeds.

    Bounds that the experiment states no more are left out.
    """
    known = old.get("claims", []) if old else []
    if known:
        stated = {claim["text"] for claim in experiments.load(name).claims}
        known = [claim for claim in known if claim["text"] in stated]
    if known and any(claim.get("of_seeds") for claim in new["claims"]):
        found = joined.with_older(experiments.load(name).claims, known, new["claims"])
        if found != new["claims"]:
            new = {**new, "claims": found, "size": f"{new['size']}, joined with {old['size']}"}
    older = {claim["text"]: claim for claim in known}
    answered = {c["text"]: c for c in new["claims"] if joined.answering(older.get(c["text"]), c) is c}
    if not old or answered.keys() >= older.keys():
        return new
    own = re.split(_OF_OLDER, old["size"])[0]
    dated = f"{own}, {old['date']}" if old["date"] != new["date"] else own
    claims = [answered.pop(claim["text"], {"ran": dated, **claim}) for claim in known]
    claims += answered.values()  # bounds that are new
    kept = Counter(claim["ran"] for claim in claims if "ran" in claim)
    of_older = "".join(f"; {count} of {len(claims)} bounds: {ran}" for ran, count in kept.items())
    return {**new, "size": f"{new['size']}{of_older}", "claims": claims}


def _short(result: dict) -> dict:
    """A result without what the page does not show."""
    claims = [{k: v for k, v in claim.items() if k != "places"} for claim in result["claims"]]
    return {key: result[key] for key in KEPT if key in result} | {"claims": claims}


def main(paths: list[str]) -> None:
    """Take results and write the page."""
    files = [json.loads(Path(path).read_text("utf-8")) for path in paths]
    results = judged_again(judged_by_rows(taken(stored() if STORED.exists() else {}, *files)))
    STORED.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", "utf-8")
    PAGE.write_text(markdown(results), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
