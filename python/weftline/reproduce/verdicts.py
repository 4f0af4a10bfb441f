"""The two verdicts on a claim, by rule from its numbers: in which direction it goes, and whether its size is
the published one.

A claim here is what `weftline.reproduce.claims.as_json` wrote: the number, its 95 % interval over seeds, the
number of each seed, the published number and the bounds. Verdicts are not stored but made from these.

    direction   YES where the whole interval, and `needed` of the seeds by themselves (all of up to seven),
                lie on the claimed side of "no effect"; NO where the whole interval lies on the other side.
                "No effect" is a ratio of 1 where a published ratio decides on the size. Without a published
                number, for numbers that are not ratios, and where the bounds allow 1 (the claim is "about the
                same"), the bounds themselves decide. A bound of none (at most 0, of a number that is never
                negative): NO where one seed has some. A published level, with a bound on either side, has a
                size and no direction.
    size        YES where the published number lies inside the interval, or ours within 15 % of it; else NO.
                Of a ratio it is 15 % of what it differs from 1 too: 7 % more is not 20 % more. An interval
                that holds the published number leaves the size open where it is wider than that number, or
                (of a ratio) holds no effect too. A claim of "about the same" has no size, and is counted at
                its row; one that counts the places outside of published numbers has a size and no direction.
                A published 0 under a bound of none is the same where no seed has any.

Both are open, with the reason, without an interval (fewer than `MIN_SEEDS` seeds have the number, unless no
seed changes it), where a seed that was to be run has no number, a run did not end, flows are unfinished or
too few, and where the interval reaches over the deciding value.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MIN_SEEDS = 3
"""Fewer seeds give no verdict on a number that a seed can change."""
OF_SEEDS = ("seeds", "measured")
"""Kinds of reasons that say which seeds have no number: too few were run, or some are without one."""
SIGN_LEVEL = 0.05
"""Level of the one-sided sign test over seeds."""
SAME_SIZE = 0.15
"""Relative distance up to which a number is the published one."""
YES, NO, OPEN, NONE = "yes", "no", "open", ""
UNSIZED = "without a size"
"""Of a published number under bounds that allow no effect."""


@dataclass(frozen=True)
class Answer:
    """YES, NO, OPEN with the reason, or NONE where there is nothing to be decided."""

    word: str
    why: str = ""

    @property
    def text(self) -> str:
        """Return the word, with its reason where there is one."""
        word = self.word or "–"
        return f"{word}: {self.why}" if self.why else word


@dataclass(frozen=True)
class Verdicts:
    """Both verdicts on a claim."""

    direction: Answer
    size: Answer


def of(claim: Mapping[str, Any]) -> Verdicts:
    """Return the verdicts on a claim."""
    doubt = _doubt(claim)
    if claim.get("counts"):
        decided = claim.get("decided", claim.get("holds"))
        holds = Answer(YES if decided else NO) if decided is not None else Answer(OPEN)
        found = Answer(OPEN, doubt) if doubt else holds
        return Verdicts(found, Answer(NONE)) if claim["counts"] == "order" else Verdicts(Answer(NONE), found)
    return Verdicts(_direction(claim, doubt), _size(claim, doubt))


def _doubt(claim: Mapping[str, Any]) -> str:
    """Why nothing can be decided; "" if something can."""
    reasons = _reasons(claim)
    if claim.get("measured") is None:
        return "; ".join(reasons) or "no value"
    seeds, by_seed = known_seeds(claim), claim.get("by_seed") or ()
    if None in by_seed and not any(reason["kind"] == "measured" for reason in claim.get("reasons", [])):
        reasons.append(f"{seeds} of {len(by_seed)} seeds have it")
    if claim.get("unseeded"):
        return "; ".join(reasons)
    if seeds < MIN_SEEDS or (claim.get("interval") is None and not claim.get("counts")):
        reasons.insert(0, "one seed" if seeds == 1 else f"{seeds} seeds")
    return "; ".join(reasons)


def known_seeds(claim: Mapping[str, Any]) -> int:
    """Return how many seeds have the number of a claim."""
    seeds, by_seed = claim.get("seeds") or 1, claim.get("by_seed")
    return min(seeds, sum(value is not None for value in by_seed)) if by_seed else seeds


def _reasons(claim: Mapping[str, Any], besides: Sequence[str] = ("seeds",)) -> list[str]:
    """The reasons against a verdict, except for the number of seeds, or for other kinds of reasons."""
    return [reason["text"] for reason in claim.get("reasons", []) if reason["kind"] not in besides]


def is_of_none(claim: Mapping[str, Any]) -> bool:
    """Return whether a claim is that a number that is never negative is 0."""
    return not claim.get("signed") and _bounds(claim)[1] <= 0


def has_some(claim: Mapping[str, Any]) -> bool:
    """Return whether a claim is that there is none, and a seed has some."""
    values = claim.get("by_seed") or [claim.get("measured")]
    return is_of_none(claim) and any(value is not None and value > 0 for value in values)


def _direction(claim: Mapping[str, Any], doubt: str) -> Answer:
    side = _side(claim)
    if side is None:
        return Answer(NONE)
    if has_some(claim) and not _reasons(claim, OF_SEEDS):
        return Answer(NO)
    if doubt:
        return Answer(OPEN, doubt)
    low, high = claim.get("interval") or (claim["measured"],) * 2
    if _in(side, low) and _in(side, high):
        values = [value for value in claim.get("by_seed") or () if value is not None]
        kept = sum(_in(side, value) for value in values)
        exceptions = f"{kept} of {len(values)} seeds" if kept < len(values) else ""
        return Answer(YES if kept >= needed(len(values)) else OPEN, exceptions)
    if high <= side[0] or low >= side[1]:
        return Answer(NO)
    return Answer(OPEN, "within chance")


def needed(seeds: int) -> int:
    """Return how many of this number of seeds have to lie on the claimed side by themselves.

    By a one-sided sign test at `SIGN_LEVEL`: all of up to seven seeds, 9 of 10, 15 of 20. Fewer than five
    seeds do not reach that level even if all agree.
    """
    tail, count = 0, seeds
    while count > 0 and tail + math.comb(seeds, count) <= SIGN_LEVEL * 2**seeds:
        tail += math.comb(seeds, count)
        count -= 1
    return min(count + 1, seeds)


Side = tuple[float, float, bool]
"""Ends, the second of which may be reached or not."""


def _in(side: Side, value: float) -> bool:
    return side[0] < value < side[1] or (side[2] and value == side[1])


def _bounds(claim: Mapping[str, Any]) -> Side:
    bounds = claim.get("bounds", {})
    below = min(bounds.get("below", math.inf), bounds.get("at_most", math.inf))
    return bounds.get("above", -math.inf), below, "at_most" in bounds and below == bounds["at_most"]


def _side(claim: Mapping[str, Any]) -> Side | None:
    """The values on the claimed side of "no effect"; None for a claim without a direction."""
    above, below, reached = _bounds(claim)
    if claim.get("ratio") and claim.get("published") is not None and not _in((above, below, reached), 1.0):
        return (1.0, math.inf, False) if above >= 1.0 else (-math.inf, 1.0, False)
    level = math.isfinite(above) and math.isfinite(below) and not claim.get("ratio")
    if level and claim.get("published") is not None:
        return None
    return above, below, reached


def _size(claim: Mapping[str, Any], doubt: str) -> Answer:
    published = claim.get("published")
    if published is None:
        return Answer(NONE)
    if claim.get("ratio") and _in(_bounds(claim), 1.0):
        return Answer(NONE, UNSIZED)
    if published == 0 and has_some(claim) and not _reasons(claim, OF_SEEDS):
        return Answer(NO)
    if doubt:
        return Answer(OPEN, doubt)
    ours, size = claim["measured"], abs(published)
    if claim.get("ratio"):
        size = min(size, abs(published - 1.0))
    if abs(ours - published) <= SAME_SIZE * size:
        return Answer(YES)
    low, high = claim.get("interval") or (ours, ours)
    if not low <= published <= high:
        return Answer(NO)
    if high - low > abs(published):
        return Answer(OPEN, "the interval is too wide")
    return Answer(OPEN, "within chance") if claim.get("ratio") and low <= 1.0 <= high else Answer(YES)


DIRECTION_WORDS = {YES: "", NO: "contradicted"}
SIZE_WORDS = {YES: "same", NO: "other"}
"""How a row counts the answers on its claims."""
PARTLY = "partly"


def together(answers: Sequence[Answer], wanted: int, words: Mapping[str, str] = DIRECTION_WORDS) -> Answer:
    """Return what the answers on several claims come to; `wanted` is how many there should be.

    YES: all are yes, with the numbers of seeds where not all agreed. NO: some are no, and none yes. PARTLY:
    some are yes, others are not, or are missing. OPEN, with the reasons: none is decided. Where not all agree
    it is counted how many are which, `words` for YES and NO: "1 of 8; 2 contradicted; 5 open: within chance".
    Answers that are `UNSIZED` decide nothing and are counted.
    """
    asked = [answer for answer in answers if answer.word != NONE]
    if not asked:
        return Answer(NONE) if answers else Answer(OPEN, "not run at this size")
    found, missing = {answer.word for answer in asked}, wanted - len(answers)
    if found == {OPEN}:
        return Answer(OPEN, _whys(asked))
    counted = [answer for answer in answers if answer.word != NONE or answer.why == UNSIZED]
    if len(found) == 1 and len(counted) == len(asked) and not missing:
        return Answer(YES, _whys(asked)) if YES in found else Answer(NO)
    word = NO if YES not in found else YES if len(found) == 1 and not missing else PARTLY
    return Answer(word, _counts(counted, missing, word, words))


def _whys(answers: Sequence[Answer]) -> str:
    return ", ".join(dict.fromkeys(answer.why for answer in answers if answer.why))


def _counts(answers: Sequence[Answer], missing: int, word: str, words: Mapping[str, str]) -> str:
    """How many answers are which; first, out of all, those of the row's word, or YES where it is PARTLY."""
    count = Counter(answer.word for answer in answers)
    first = count[NO if word == NO else YES]
    parts = [f"{first} of {len(answers) + missing} {words[YES] if word == PARTLY else ''}".rstrip()]
    if word == PARTLY and count[NO]:
        parts.append(f"{count[NO]} {words[NO]}")
    if count[OPEN]:
        why = _whys([answer for answer in answers if answer.word == OPEN])
        parts.append(f"{count[OPEN]} open" + (f": {why}" if why else ""))
    if count[NONE]:
        parts.append(f"{count[NONE]} {UNSIZED}")
    if missing:
        parts.append(f"{missing} not run")
    return "; ".join(parts)
