"""Claims of one experiment from several sittings or machines, joined seed by seed.

The runs of one seed at a published size take an hour or two, those of all seeds more than a sitting. So
`weftline reproduce --published NAME --seeds 2` runs one seed, anywhere, and what it came to is joined with
what is stored of others: a claim has the number of each seed, so the joined number is the mean over all of
them, with Student's interval, and the verdict follows as if they had been run together. (Of seeds that run
together a ratio is that of the means, here it is the mean of the ratios.) Of a seed that both have the newer
number counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weftline import quantities
from weftline.measures import evidence
from weftline.measures.lines import Mean
from weftline.measures.metrics import metric
from weftline.reproduce import claims, verdicts

WHOLE = ("agreement", "order", "law")
"""Kinds whose result is not a number for each seed."""


def marked(claim: dict[str, Any], seeds: Sequence[int]) -> dict[str, Any]:
    """Return a result of a claim with the seeds that it was measured on."""
    return claim if claim.get("unseeded") else {**claim, "of_seeds": list(seeds)}


def answering(known: Mapping[str, Any] | None, new: dict[str, Any]) -> dict[str, Any]:
    """Return which of two results of a claim counts, the known one or a new one, as at its published size.

    The new one, unless it has too few seeds for a verdict where the known one, under the same bounds, has
    enough.
    """
    if known is None or known.get("bounds") != new.get("bounds") or _enough(new) or not _enough(known):
        return new
    return dict(known)


def _enough(result: Mapping[str, Any]) -> bool:
    return bool(result.get("unseeded")) or result.get("seeds", 1) >= verdicts.MIN_SEEDS


def with_older(
    stated: Sequence[Mapping[str, Any]], old: Sequence[dict[str, Any]], new: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the new results of claims, each joined with an older one of other seeds where there is one.

    `stated`: the claims as the experiment states them.
    """
    known = {result["text"]: result for result in old}
    by_text = {claim["text"]: claim for claim in stated}
    return [
        _joined(by_text[result["text"]], known[result["text"]], result)
        if result["text"] in by_text and _fit(by_text[result["text"]], known.get(result["text"]), result)
        else result
        for result in new
    ]


def _fit(claim: Mapping[str, Any], old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> bool:
    """Whether both results have numbers of seeds, the older one of others too, under the same bounds."""
    if old is None or claim.get("kind") in WHOLE or old.get("bounds") != new.get("bounds"):
        return False
    ours, theirs = new.get("of_seeds"), old.get("of_seeds")
    return bool(ours and theirs and {*theirs} - {*ours})


def _joined(claim: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    numbers = {**_numbers(old), **_numbers(new)}
    seeds = sorted(numbers)
    by_seed = tuple(numbers[seed] for seed in seeds)
    mean = Mean.of(by_seed)
    reasons = [
        evidence.Reason(**reason)
        for result in (old, new)
        for reason in result.get("reasons", [])
        if reason["kind"] != "seeds"
    ]
    verdict = claims.verdict(
        dict(claim),
        mean.value if mean else None,
        form(claim),
        published=new["published"],
        interval=(mean.low, mean.high) if mean and mean.interval is not None else None,
        reasons=[*claims.few_seeds(len(seeds)), *dict.fromkeys(reasons)],
        seeds=len(seeds),
        by_seed=by_seed,
    )
    return marked(claims.as_json(verdict), seeds)


def _numbers(result: Mapping[str, Any]) -> dict[int, float | None]:
    """The number of each seed."""
    values = result.get("by_seed") or [result["measured"]]
    return dict(zip(result["of_seeds"], values, strict=True))


def form(claim: Mapping[str, Any]) -> Any:
    """Return what writes the number of a claim: digits of a ratio, else the text of its metric."""
    ratio = claim.get("kind") == "curve" or {"against", "against_at", "than"} & claim.keys()
    return quantities.digits if ratio else metric(claim["metric"]).text
