"""What a port must remember to share its link among flows: arithmetic, not trials.

    scheme    "fq": a queue for each flow
              "afq": rounds as queues, and a count-min sketch of the flows' bytes
              "cebinae": two queues, and a cache of the largest flows
    flows     that are active at a time
    sharing   of "afq": at most this share of the flows shares a counter with others in every row

Sizes in bytes are those below. Sources: Demers, Keshav and Shenker, SIGCOMM 1989; Sharma et al., AFQ,
NSDI 2018, §3; Yu, Sonchack and Liu, Cebinae, SIGCOMM 2022.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weftline.errors import InputError, nearest

if TYPE_CHECKING:
    from weftline.reproduce.trials import Point

SETTINGS: dict[str, Any] = {"scheme": "cebinae", "flows": 1, "sharing": 0.01, "trials": 1}

SCHEMES = ("fq", "afq", "cebinae")

FIVE_TUPLE, ADDRESSES, WORD = 13, 8, 4
AFQ_QUEUES, AFQ_ROWS = 32, 2
CACHE_STAGES, CACHE_SLOTS = 2, 2048
REGISTERS = 16
"""Words of Cebinae besides its cache: counters, rates, budgets of two groups in two rounds, times."""


def check(settings: Mapping[str, Any], name: str) -> None:
    """Refuse settings that cannot be evaluated."""
    if settings["scheme"] not in SCHEMES:
        hint = nearest(str(settings["scheme"]), list(SCHEMES))
        known = ", ".join(SCHEMES)
        raise InputError(f'{name}: scheme: unknown "{settings["scheme"]}": {hint}known: {known}')
    flows = settings["flows"]
    if isinstance(flows, bool) or not isinstance(flows, int) or not 1 <= flows <= 10**9:
        raise InputError(f"{name}: flows: expected 1 to 10^9, found {flows!r}")
    sharing = settings["sharing"]
    if isinstance(sharing, bool) or not isinstance(sharing, int | float) or not 0 < sharing < 1:
        raise InputError(f"{name}: sharing: expected a share between 0 and 1, found {sharing!r}")


def tried(points: Sequence[Point]) -> list[dict[str, Any]]:
    """Return the numbers of points: ``memory_bytes``, ``queues``, ``accesses``."""
    return [of(point.settings) for point in points]


def of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return memory in bytes, queues, and accesses to memory one after another for a packet, of one port."""
    flows = settings["flows"]
    if settings["scheme"] == "fq":
        # A table from flows to queues; of each queue head, tail, bytes and deficit.
        return {"memory_bytes": flows * (FIVE_TUPLE + WORD + 4 * WORD), "queues": flows, "accesses": 3}
    if settings["scheme"] == "afq":
        memory = AFQ_ROWS * sketch_slots(flows, settings["sharing"]) * WORD
        # Every row is read before the minimum is known, and written after; and the round.
        return {"memory_bytes": memory, "queues": AFQ_QUEUES, "accesses": 2 * AFQ_ROWS + 1}
    memory = CACHE_STAGES * CACHE_SLOTS * (ADDRESSES + WORD) + REGISTERS * WORD
    # Stages are read and written in one access each; and the port's bytes, and the group's.
    return {"memory_bytes": memory, "queues": 2, "accesses": CACHE_STAGES + 2}


def sketch_slots(flows: int, sharing: float) -> int:
    """Return the counters of a row with which at most a share of the flows meets others in every row.

    A flow meets one of n - 1 others among m counters with 1 - (1 - 1/m)^(n - 1), in all of r rows with the
    r-th power of that.
    """
    alone = 1 - sharing ** (1 / AFQ_ROWS)
    if flows == 1:
        return 1
    return math.ceil(1 / -math.expm1(math.log(alone) / (flows - 1)))
