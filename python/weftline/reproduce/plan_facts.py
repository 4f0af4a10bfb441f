"""What a plan asks of a switch and gives to a sender: pipeline stages, and feedback in a round trip.

    queries   which of those of the PINT paper the plan holds: "path", "latency", "congestion"
    stages    of the pipeline
    window    packets of a round trip
    trials    how many round trips are looked at

Source: Ben Basat et al., "PINT", SIGCOMM 2020, §5, Fig 6; §6.1.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weftline import pint
from weftline.errors import InputError, nearest

if TYPE_CHECKING:
    from weftline.reproduce.trials import Point

SETTINGS: dict[str, Any] = {"queries": [], "stages": 8, "window": 150, "trials": 1000}

QUERIES = {
    "path": 'value = "switch-id"\naggregation = "path"\nbits = 8\ncopies = 2\n',
    "latency": 'value = "hop-latency"\naggregation = "quantiles"\nbits = 8\nfrequency = "15/16"\n',
    "congestion": 'value = "utilisation"\naggregation = "max"\nbits = 8\nfrequency = "1/16"\n'
    "approximation = { base = 1.05 }\n",
}


def check(settings: Mapping[str, Any], name: str) -> None:
    """Refuse settings that cannot be evaluated."""
    queries = settings["queries"]
    if not isinstance(queries, list) or not queries:
        raise InputError(f"{name}: queries: expected a list of {', '.join(QUERIES)}, found {queries!r}")
    for query in queries:
        if query not in QUERIES:
            hint = nearest(str(query), list(QUERIES))
            raise InputError(f'{name}: queries: unknown "{query}": {hint}known: {", ".join(QUERIES)}')
    for key, highest in (("stages", 64), ("window", 10**6), ("trials", 10**6)):
        value = settings[key]
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= highest:
            raise InputError(f"{name}: {key}: expected 1 to {highest}, found {value!r}")


def tried(points: Sequence[Point]) -> list[dict[str, Any]]:
    """Return of each point ``stages``, those that its longest query takes; ``misfits``; ``feedback``.

    The last is the mean number of packets in a round trip that serve the last query.
    """
    return [_tried(point.settings, point.seed) for point in points]


def _tried(settings: Mapping[str, Any], seed: int) -> dict[str, Any]:
    text = f"bits = 16\nseed = {seed}\n" + "".join(
        f'[[query]]\nname = "{query}"\n{QUERIES[query]}' for query in settings["queries"]
    )
    plan = pint.Plan(text, name="trial (queries)")
    facts = plan.layout_facts(stages=settings["stages"])
    draw, last = random.Random(seed), settings["queries"][-1]
    packets = settings["window"] * settings["trials"]
    served = sum(last in plan.serves(draw.getrandbits(64)) for _ in range(packets))
    return {
        "stages": facts["needed"],
        "misfits": len(facts["misfits"]),
        "feedback": served / settings["trials"],
    }
