"""Trials of path tracing: packets until the path of a flow is known, by PINT and by what it is compared with.

    scheme      "pint", "ppm", "ams2", "ams2-as-drawn" (m hashes of a hop)
    hops        switches on the path
    longest     paths of the network with more switches than this there are not: such points are left out
    bits, copies, code    of PINT: `copies` fields of `bits`, and the code's name or { tau, layers }
    topology    file of the network, in the experiment's folder; paths are shortest paths of it, drawn at
    random know        what the decoder knows beyond the digests:
                "own-ids"      the switches of the very path, without their order
                "ids"          all switches
                "neighbours"   all switches and links
                "ends"         the same, and the first and the last switch
                "shortest"     the same as neighbours, and that paths are shortest
                "shortest-ends"  all of it

Source: Ben Basat et al., "PINT", SIGCOMM 2020, §6.3, Fig 10.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftline import _native, pint, scenarios
from weftline.errors import InputError, nearest

if TYPE_CHECKING:
    from weftline.reproduce.trials import Point

SETTINGS: dict[str, Any] = {
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

KNOWLEDGE: dict[str, dict[str, bool]] = {
    "own-ids": {},
    "ids": {"ids_only": True},
    "neighbours": {},
    "ends": {"ends": True},
    "shortest": {"shortest": True},
    "shortest-ends": {"shortest": True, "ends": True},
}


def check(settings: Mapping[str, Any], folder: Path, name: str) -> str:
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


def tried(points: Sequence[Point], folder: Path) -> list[dict[str, Any]]:
    """Return the numbers of points: `mean_packets`, `median_packets`, `p99_packets`, `wrong`, `given_up`."""
    return [_tried(point.settings, point.seed, folder) for point in points]


def _tried(settings: Mapping[str, Any], seed: int, folder: Path) -> dict[str, Any]:
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
