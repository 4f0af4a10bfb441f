"""What can be tried: each kind of trial with its settings and the numbers that it gives.

Trials of path tracing: packets until the path of a flow is known, by PINT and by what it is compared with.

    scheme      "pint", "ppm", "ams2", "ams2-as-drawn" (m hashes of a hop)
    hops        switches on the path
    longest     paths of the network with more switches than this there are not: such points are left out
    bits, copies, code    of PINT: `copies` fields of `bits`, and the code's name or { tau, layers }
    topology    file of the network, in the experiment's folder; paths are shortest paths of it, drawn at
                random
    know        what the decoder knows beyond the digests:
                "own-ids"      the switches of the very path, without their order
                "ids"          all switches
                "neighbours"   all switches and links
                "ends"         the same, and the first and the last switch
                "shortest"     the same as neighbours, and that paths are shortest
                "shortest-ends"  all of it

Source: Ben Basat et al., "PINT", SIGCOMM 2020, §6.3, Fig 10.

Trials of latency quantiles: how far PINT's estimate of a hop's quantile is off, on what a run recorded.

    quantile        0.5, 0.99
    samples         of the hop; each is a packet of the flow that brought this hop's latency
    bits, epsilon   how a latency is written (0 bits: exactly)
    sketch_bytes    bytes of the hop's sketch, a sample taking `bits` of them (0: all samples are kept)
    independent     samples are drawn from the whole flow, each by itself, instead of one after the other
    smallest        hops whose true quantile (ns) is below are left out: a relative error needs a truth
                    above 0
    trials          estimates, each at a hop and a place in the flow drawn at random
    plan            queries of the run, in the experiment's folder; the first one samples the latency of hops
                    in wide fields

The scenario runs once under the settings that begin with "scenario."; its flows that are long enough, hop by
hop, are the streams. Truth is the quantile over the whole flow.

Source: Ben Basat et al., "PINT", SIGCOMM 2020, §6.2, Fig 9.

Trials of Cebinae's flow cache on a synthetic heavy-tailed trace: top flows that it misses.

    cache       "first-come", "overwrite" or "exact"
    stages, slots    of the cache
    window_ms   time between two recomputations, after which the cache is emptied
    slack       flows within this share of the largest are top

The trace is that of the engine (`queue/cebinae/accuracy.rs`); the same windows for every cache of a seed.

Source: Yu, Sonchack and Liu, "Cebinae", SIGCOMM 2022, accuracy of the flow table.

What a port must remember to share its link among flows: arithmetic, not trials.

    scheme    "fq": a queue for each flow
              "afq": rounds as queues, and a count-min sketch of the flows' bytes
              "cebinae": two queues, and a cache of the largest flows
    flows     that are active at a time
    sharing   of "afq": at most this share of the flows shares a counter with others in every row

Sizes in bytes are those below. Sources: Demers, Keshav and Shenker, SIGCOMM 1989; Sharma et al., AFQ,
NSDI 2018, §3; Yu, Sonchack and Liu, Cebinae, SIGCOMM 2022.

What a plan asks of a switch and gives to a sender: pipeline stages, and feedback in a round trip.

    queries   which of those of the PINT paper the plan holds: "path", "latency", "congestion"
    stages    of the pipeline
    window    packets of a round trip
    trials    how many round trips are looked at

Source: Ben Basat et al., "PINT", SIGCOMM 2020, §5, Fig 6; §6.1.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftline import _native, pint, scenarios
from weftline.errors import InputError, nearest
from weftline.sweeps import store

if TYPE_CHECKING:
    from weftline.reproduce.experiments import Experiment
    from weftline.reproduce.trials import Point


PATH_SETTINGS: dict[str, Any] = {
    "scheme": "pint",
    "hops": 0,
    "longest": 255,
    "bits": 8,
    "copies": 1,
    "code": "paper-evaluation",
    "m": 5,
    "topology": "",
    "know": "ids",
    "trials": 100,
}

SCHEMES = ("pint", "ppm", "ams2", "ams2-as-drawn")

KNOWLEDGE: dict[str, dict[str, Any]] = {
    "own-ids": {},
    "ids": {"ids_only": True},
    "neighbours": {},
    "ends": {"ends": True},
    "shortest": {"shortest": True},
    "shortest-ends": {"shortest": True, "ends": True},
}


def check_path(settings: Mapping[str, Any], folder: Path, name: str) -> str:
    """Return what the numbers depend on in addition to the settings; refuse settings that cannot be tried."""
    for key, known in (("scheme", SCHEMES), ("know", tuple(KNOWLEDGE))):
        value = str(settings[key])
        if value not in known:
            hint = nearest(value, list(known))
            raise InputError(f'{name}: {key}: unknown "{value}": {hint}known: {", ".join(known)}')
    for key, highest in (("hops", 255), ("longest", 255), ("trials", 10**6), ("m", 8)):
        if not isinstance(settings[key], int) or not 1 <= settings[key] <= highest:
            raise InputError(f"{name}: {key}: expected 1 to {highest}, found {settings[key]!r}")
    if settings["scheme"] != "pint" or settings["know"] == "own-ids":
        return ""
    if not settings["topology"]:
        raise InputError(f"{name}: topology: expected a file, which know = {settings['know']!r} needs")
    plan_of(settings, name)
    return scenarios.read_text(folder / settings["topology"], "a topology")


def plan_of(settings: Mapping[str, Any], name: str = "trial") -> pint.Plan:
    """Return the plan of one query for paths that all packets serve."""
    bits = settings["bits"] * settings["copies"]
    code = scenarios.value_to_toml(settings["code"])
    ids = max(2, settings["hops"])
    text = (
        f"bits = {bits}\nseed = 1\nhops = {{ expected = {settings['hops']}, maximal = {settings['hops']} }}\n"
        f'[[query]]\nname = "path"\nvalue = "switch-id"\naggregation = "path"\nbits = {bits}\n'
        f"copies = {settings['copies']}\ncode = {code}\nids = {ids}\n"
    )
    return pint.Plan(text, name=f"{name} (queries)")


def try_path(points: Sequence[Point], folder: Path) -> list[dict[str, Any]]:
    """Return the numbers of points: `mean_packets`, `median_packets`, `p99_packets`, `wrong`, `given_up`."""
    return [_try_path(point.settings, point.seed, folder) for point in points]


def _try_path(settings: Mapping[str, Any], seed: int, folder: Path) -> dict[str, Any]:
    hops, trials = settings["hops"], settings["trials"]
    if settings["scheme"] != "pint":
        return json.loads(_native.pint_compared(settings["scheme"], settings["m"], hops, trials, seed))
    know = settings["know"]
    # Without a topology a path is of distinct ids among `ids`, one per hop.
    topology = None if know == "own-ids" else folder / settings["topology"]
    found = pint.accuracy(
        plan_of(settings), hops=[hops], trials=trials, seed=seed, topology=topology, **KNOWLEDGE[know]
    )
    return found["queries"][0]["lengths"][0]


LATENCY_SETTINGS: dict[str, Any] = {
    "quantile": 0.5,
    "samples": 500,
    "longest_sample": 1000,
    "bits": 8,
    "epsilon": 0.022,
    "sketch_bytes": 0,
    "independent": False,
    "smallest": 1.0,
    "trials": 1000,
    "plan": "record.toml",
}


def latency_run(experiment: Experiment, seed: int, settings: Mapping[str, Any], out: Path) -> store.Point:
    """Return the run, a point of a store, whose digests are looked at."""
    source = scenarios.load(experiment.scenario)
    changed = scenarios.settings(settings)
    name = ", ".join(f"{key.rsplit('.', 1)[-1]} {value}" for key, value in changed) or experiment.name
    return store.point(out, source, settings, seed, name=name)


def _check_whole(settings: Mapping[str, Any], name: str, **ranges: tuple[int, int]) -> None:
    """Refuse settings that are not whole numbers within their ranges."""
    for key, (lowest, highest) in ranges.items():
        value = settings[key]
        if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
            raise InputError(f"{name}: {key}: expected {lowest} to {highest}, found {value!r}")


def check_latency(settings: Mapping[str, Any], folder: Path, name: str) -> str:
    """Return what the numbers depend on in addition to the settings; refuse settings that cannot be tried."""
    if not 0 < settings["quantile"] < 1:
        raise InputError(
            f"{name}: quantile: expected a number between 0 and 1, found {settings['quantile']!r}"
        )
    _check_whole(
        settings,
        name,
        samples=(1, 10**6),
        longest_sample=(1, 10**6),
        bits=(0, 32),
        trials=(1, 10**7),
        sketch_bytes=(0, 10**9),
    )
    if settings["samples"] > settings["longest_sample"]:
        raise InputError(
            f"{name}: samples: expected at most longest_sample, {settings['longest_sample']},"
            f" found {settings['samples']}"
        )
    return pint.Plan.open(folder / settings["plan"]).toml()


def try_latency(points: Sequence[Point], folder: Path) -> list[dict[str, Any]]:
    """Return the numbers of points on one run.

    These are `mean_relative_error` and `median_relative_error` (over the estimates), `streams` (hops of flows
    that are looked at), `left_out` (those whose quantile is too small) and `truth_ns` (median over streams).
    """
    digests = str(points[0].recorded.folder / "telemetry.parquet")
    found: dict[int, dict[str, Any]] = {}
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, point in enumerate(points):
        s = point.settings
        # The same hops at every number of samples: those that have enough for the largest number.
        groups.setdefault(
            (s["plan"], s["longest_sample"], s["smallest"], s["trials"], point.seed), []
        ).append(number)
    for (plan, lowest, smallest, trials, seed), numbers in groups.items():
        chosen = [points[number].settings for number in numbers]
        quantiles = sorted({s["quantile"] for s in chosen})
        text = json.loads(
            _native.pint_replay(
                pint.Plan.open(folder / plan)._native,
                digests,
                lowest,
                quantiles,
                [_latency_way(s) for s in chosen],
                smallest,
                trials,
                seed,
            )
        )
        for place, (number, settings) in enumerate(zip(numbers, chosen, strict=True)):
            of = text["quantiles"][quantiles.index(settings["quantile"])]
            found[number] = (of["errors"][place] or {}) | {
                "streams": of["streams"],
                "left_out": of["left_out"],
                "truth_ns": of["truth_median"],
            }
    return [found[number] for number in range(len(points))]


def _latency_way(settings: Mapping[str, Any]) -> tuple[int, int, float, int, bool]:
    room = settings["sketch_bytes"] * 8 // (settings["bits"] or 32)
    return (
        settings["samples"],
        settings["bits"],
        float(settings["epsilon"]),
        room,
        bool(settings["independent"]),
    )


CACHE_SETTINGS: dict[str, Any] = {
    "cache": "first-come",
    "stages": 2,
    "slots": 2048,
    "window_ms": 100,
    "slack": 0.1,
    "trials": 100,
}

CACHES = ("first-come", "overwrite", "exact")


def check_cache(settings: Mapping[str, Any], _folder: Path, name: str) -> str:
    """Refuse settings that cannot be tried."""
    if settings["cache"] not in CACHES:
        hint = nearest(str(settings["cache"]), list(CACHES))
        raise InputError(f'{name}: cache: unknown "{settings["cache"]}": {hint}known: {", ".join(CACHES)}')
    _check_whole(settings, name, stages=(1, 16), slots=(1, 1 << 24), window_ms=(1, 10_000), trials=(1, 10**6))
    slack = settings["slack"]
    if isinstance(slack, bool) or not isinstance(slack, int | float) or not 0 < slack < 1:
        raise InputError(f"{name}: slack: expected a share between 0 and 1, found {slack!r}")
    return ""


def try_cache(points: Sequence[Point], _folder: Path) -> list[dict[str, Any]]:
    """Return the numbers of points: ``false_negatives``, ``false_positives``, ``flows``, ``packets``."""
    return [_try_cache(point.settings, point.seed) for point in points]


def _try_cache(settings: Mapping[str, Any], seed: int) -> dict[str, Any]:
    window_ns = settings["window_ms"] * 10**6
    args = (settings["cache"], settings["stages"], settings["slots"], window_ns, float(settings["slack"]))
    return json.loads(_native.flow_cache(*args, settings["trials"], seed))


STATE_SETTINGS: dict[str, Any] = {"scheme": "cebinae", "flows": 1, "sharing": 0.01, "trials": 1}

STATE_SCHEMES = ("fq", "afq", "cebinae")

FIVE_TUPLE, ADDRESSES, WORD = 13, 8, 4
AFQ_QUEUES, AFQ_ROWS = 32, 2
CACHE_STAGES, CACHE_SLOTS = 2, 2048
REGISTERS = 16
"""Words of Cebinae besides its cache: counters, rates, budgets of two groups in two rounds, times."""


def check_state(settings: Mapping[str, Any], _folder: Path, name: str) -> str:
    """Refuse settings that cannot be evaluated."""
    if settings["scheme"] not in STATE_SCHEMES:
        hint = nearest(str(settings["scheme"]), list(STATE_SCHEMES))
        known = ", ".join(STATE_SCHEMES)
        raise InputError(f'{name}: scheme: unknown "{settings["scheme"]}": {hint}known: {known}')
    flows = settings["flows"]
    if isinstance(flows, bool) or not isinstance(flows, int) or not 1 <= flows <= 10**9:
        raise InputError(f"{name}: flows: expected 1 to 10^9, found {flows!r}")
    sharing = settings["sharing"]
    if isinstance(sharing, bool) or not isinstance(sharing, int | float) or not 0 < sharing < 1:
        raise InputError(f"{name}: sharing: expected a share between 0 and 1, found {sharing!r}")
    return ""


def try_state(points: Sequence[Point], _folder: Path) -> list[dict[str, Any]]:
    """Return the numbers of points: ``memory_bytes``, ``queues``, ``accesses``."""
    return [state_of_port(point.settings) for point in points]


def state_of_port(settings: Mapping[str, Any]) -> dict[str, Any]:
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


PLAN_SETTINGS: dict[str, Any] = {"queries": [], "stages": 8, "window": 150, "trials": 1000}

QUERIES = {
    "path": 'value = "switch-id"\naggregation = "path"\nbits = 8\ncopies = 2\n',
    "latency": 'value = "hop-latency"\naggregation = "quantiles"\nbits = 8\nfrequency = "15/16"\n',
    "congestion": 'value = "utilisation"\naggregation = "max"\nbits = 8\nfrequency = "1/16"\n'
    "approximation = { base = 1.05 }\n",
}


def check_plan(settings: Mapping[str, Any], _folder: Path, name: str) -> str:
    """Refuse settings that cannot be evaluated."""
    queries = settings["queries"]
    if not isinstance(queries, list) or not queries:
        raise InputError(f"{name}: queries: expected a list of {', '.join(QUERIES)}, found {queries!r}")
    for query in queries:
        if query not in QUERIES:
            hint = nearest(str(query), list(QUERIES))
            raise InputError(f'{name}: queries: unknown "{query}": {hint}known: {", ".join(QUERIES)}')
    _check_whole(settings, name, stages=(1, 64), window=(1, 10**6), trials=(1, 10**6))
    return ""


def try_plan(points: Sequence[Point], _folder: Path) -> list[dict[str, Any]]:
    """Return of each point ``stages``, those that its longest query takes; ``misfits``; ``feedback``.

    The last is the mean number of packets in a round trip that serve the last query.
    """
    return [_try_plan(point.settings, point.seed) for point in points]


def _try_plan(settings: Mapping[str, Any], seed: int) -> dict[str, Any]:
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


@dataclass(frozen=True)
class Kind:
    """A kind of trial."""

    settings: dict[str, Any]
    """With their defaults."""
    check: Callable[[Mapping[str, Any], Path, str], str]
    """Returns what the numbers depend on in addition to the settings; refuses what cannot be tried."""
    tried: Callable[[Sequence[Point], Path], list[dict[str, Any]]]


KINDS = {
    "path": Kind(PATH_SETTINGS, check_path, try_path),
    "latency": Kind(LATENCY_SETTINGS, check_latency, try_latency),
    "flow-cache": Kind(CACHE_SETTINGS, check_cache, try_cache),
    "state": Kind(STATE_SETTINGS, check_state, try_state),
    "plan": Kind(PLAN_SETTINGS, check_plan, try_plan),
}
"""By what is tried."""
