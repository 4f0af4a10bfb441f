"""Claims of one experiment from several sittings or machines, joined seed by seed; stored ones judged again.

The runs of one seed at a published size take an hour or two, those of all seeds more than a sitting. So
`weftline reproduce --published NAME --seeds 2` runs one seed, anywhere, and what it came to is joined with
what is stored of others: a claim has the number of each seed, so the joined number is the mean over all of
them, with Student's interval, and the verdict follows as if they had been run together. Of a seed that both
have the newer number counts. Joined are results of the same measurement alone: of a claim with the same keys
on the same scenarios and files, under the same version, whatever their seeds (`measurement`).

What is stored of a claim can be judged again from the numbers of its seeds, by today's rules and under the
bounds that the experiment states today (`judged_again`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weftline import quantities
from weftline.errors import warn
from weftline.measures import judgements
from weftline.measures.lines import Mean
from weftline.measures.metrics import metric
from weftline.reproduce import claims, numbers, verdicts
from weftline.reproduce.experiments import Experiment, is_of
from weftline.reproduce.trials import METRICS, TrialMetric
from weftline.scenario import Scenario
from weftline.sweeps.store import Point, content_key

if TYPE_CHECKING:
    from weftline.reproduce.runner import Plan

WHOLE = ("agreement", "order", "law")
"""Kinds whose result is not a number for each seed."""
BOUNDS = ("above", "below", "at_most")
DRAWN = ("curve", "trend", "trials")
"""Kinds whose published number, unless the claim states it, follows from published curves or points."""


def marked(
    claim: dict[str, Any], seeds: Sequence[int], measurement: Mapping[str, str] | None
) -> dict[str, Any]:
    """Return a result of a claim with the seeds that it was measured on, and what was measured."""
    if claim.get("unseeded"):
        return claim
    return {**claim, "of_seeds": list(seeds)} | ({"measurement": dict(measurement)} if measurement else {})


def measurement(claim: Mapping[str, Any], plan: Plan) -> dict[str, str]:
    """Return hashes of what a claim measures: its keys without its bounds, and its runs without seeds."""
    stated = {key: value for key, value in claim.items() if key not in ("text", "published", *BOUNDS)}
    sides = [claim, *([{**claim, **claim["than"]}] if "than" in claim else [])]
    options, runs = [], set()
    for side, panel in zip(
        sides, (claim.get("panel", {}), claims.than_panel(dict(claim)) or {}), strict=False
    ):
        places = {side[key] for key in ("at", "against_at") if key in side}
        for figure, choice, label, points in plan:
            if figure.name != side["figure"] or label not in claims.asked_lines(dict(side)):
                continue
            if is_of(panel, choice) and (not places or points[0].place in places):
                options.append([figure.options.get("group"), figure.options.get("sizes")])
                runs.add((label, points[0].place, _without_seed(points[0])))
    return {"claim": _hash([stated, options]), "runs": _hash(sorted(runs))}


def _without_seed(point: Point) -> str:
    """The key of a point, the same for all seeds."""
    return content_key(Scenario.of(point.source, list(point.settings), seed=0).resolved, point.source)


def _hash(facts: object) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def answering(known: Mapping[str, Any] | None, new: dict[str, Any]) -> dict[str, Any]:
    """Return which of two results of a claim counts, the known one or a new one, as at its published size.

    The new one, unless it has too few seeds for a verdict where the known one, under the same bounds, has
    enough.
    """
    if known is None or known.get("bounds") != new.get("bounds") or _enough(new) or not _enough(known):
        return new
    return dict(known)


def _enough(result: Mapping[str, Any]) -> bool:
    return bool(result.get("unseeded")) or verdicts.known_seeds(result) >= verdicts.MIN_SEEDS


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


def judged_again(experiment: Experiment, results: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return results of claims with number, interval and verdict made again from the numbers of their seeds.

    Results that are not a number for each seed stay as they are, as do those whose numbers depend on a bound
    that was changed (of several lines the worst counts). Those of claims that are stated no more are left
    out.
    """
    stated = {claim["text"]: claim for claim in experiment.claims}
    return [
        _again(experiment, stated[result["text"]], result) for result in results if result["text"] in stated
    ]


def _again(experiment: Experiment, claim: Mapping[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    several = isinstance(claim.get("against"), list)
    bounds = {key: claim[key] for key in BOUNDS if key in claim}
    if experiment.measures_cost or claim.get("kind") in WHOLE or (several and bounds != result.get("bounds")):
        return result
    by_seed = tuple(result.get("by_seed") or [result["measured"]])
    if len(by_seed) < result.get("seeds", 1):
        return result
    mean = Mean.of(by_seed)
    reasons = [judgements.Reason(**reason) for reason in result.get("reasons", [])]
    if not result.get("unseeded"):
        few = numbers.few_seeds(verdicts.known_seeds(result))
        reasons = [*few, *(reason for reason in reasons if reason.kind != "seeds")]
    if not any(reason.kind == "measured" for reason in reasons):
        reasons += numbers.without(_by_seed(result, by_seed))
    drawn = result["published"] if claim.get("kind") in DRAWN else None
    verdict = claims.verdict(
        dict(claim),
        mean.value if mean else None,
        form(claim, METRICS if experiment.tries else None),
        published=claim.get("published", drawn),
        interval=(mean.low, mean.high) if mean and mean.interval is not None else None,
        reasons=reasons,
        by_seed=by_seed if len(by_seed) > 1 else (),
    )
    made = claims.as_json(verdict)
    again = ("measured", "interval", "published", "bound", "holds", "decided", "said", "bounds", "signed")
    return {**result, **{key: made[key] for key in again if key in made}}


def _by_seed(result: Mapping[str, Any], values: Sequence[float | None]) -> dict[int, numbers.Number]:
    """The numbers of seeds, the first of which is 1 where it was not kept which they are."""
    seeds = result.get("of_seeds") or range(1, len(values) + 1)
    return {seed: numbers.Number.of(value) for seed, value in zip(seeds, values, strict=True)}


def _fit(claim: Mapping[str, Any], old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> bool:
    """Whether both have numbers of seeds, the older one of others too, of the same measurement and bounds."""
    if old is None or claim.get("kind") in WHOLE:
        return False
    ours, theirs = new.get("of_seeds"), old.get("of_seeds")
    if not (ours and theirs and {*theirs} - {*ours}):
        return False
    unlike = _unlike(old.get("measurement"), new.get("measurement"))
    if old.get("bounds") != new.get("bounds"):
        unlike = "the bounds of the claim were others"
    if unlike:
        seeds = numbers.spans(theirs)
        warn([f'claim "{claim["text"]}": seeds {seeds} are not joined with the others: {unlike}'])
    return not unlike


def _unlike(old: Mapping[str, str] | None, new: Mapping[str, str] | None) -> str:
    """What differs of two measurements, "" if nothing does."""
    if not old or not new:
        return "what they measured was not recorded"
    if old["claim"] != new["claim"]:
        return "the claim was another one, such as of another metric, line or percentile"
    return "" if old["runs"] == new["runs"] else "the scenarios, their files or the version differ"


def _joined(claim: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    of_seeds = {**_numbers(old), **_numbers(new)}
    seeds = sorted(of_seeds)
    by_seed = tuple(of_seeds[seed] for seed in seeds)
    mean = Mean.of(by_seed)
    reasons = [
        judgements.Reason(**reason)
        for result in (old, new)
        for reason in result.get("reasons", [])
        if reason["kind"] not in verdicts.OF_SEEDS
    ]
    found = {seed: numbers.Number.of(value) for seed, value in of_seeds.items()}
    verdict = claims.verdict(
        dict(claim),
        mean.value if mean else None,
        form(claim),
        published=new["published"],
        interval=(mean.low, mean.high) if mean and mean.interval is not None else None,
        reasons=[*numbers.reasons(found), *dict.fromkeys(reasons)],
        by_seed=by_seed,
    )
    return marked(claims.as_json(verdict), seeds, new["measurement"])


def _numbers(result: Mapping[str, Any]) -> dict[int, float | None]:
    """The number of each seed."""
    values = result.get("by_seed") or [result["measured"]]
    return dict(zip(result["of_seeds"], values, strict=True))


def form(claim: Mapping[str, Any], of_trials: Mapping[str, TrialMetric] | None = None) -> Any:
    """Return what writes the number of a claim: digits of a ratio, else the text of its metric."""
    ratio = claim.get("kind") == "curve" or {"against", "against_at", "than"} & claim.keys()
    if ratio:
        return quantities.digits
    return (of_trials[claim["metric"]] if of_trials else metric(claim["metric"])).text
