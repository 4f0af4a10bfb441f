"""What a run's digests tell, as numbers: packets until paths are known, errors of latency quantiles.

The numbers of a run are computed once and kept in its folder, by what the collector knows about the network:

    ids        which switches there are; any may follow any (its network has all of them as neighbours)
    network    which are neighbours

Latency is held against a query called "reference" of the same plan on the same value, which has more bits and
copies and so more of the values. What it misses is part of the errors: they are upper bounds.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftline import integrity, pint

if TYPE_CHECKING:
    from weftline.runs import Run

_DIGESTS = "telemetry.parquet"
MIN_PACKETS = 200
"""Packets from which a flow counts: of short ones only the lucky have their path known before they end."""
MIN_SAMPLES = 100
"""Samples of a hop from which its quantiles count."""
KNOWN = {"path_packets": "ids", "path_packets_network": "network"}
"""The metrics of packets until a path is known, by what the collector knows."""
MIN_NS = 100.0
"""Quantile of a hop's latency from which it counts, about a packet at 100 Gb/s: idle ports delay nothing."""


def path_packets(run: Run, known: str) -> float | None:
    """Return the mean number of packets until a flow's path is known, over the longest paths that occur.

    Paths that never became known are left out, which flatters the mean: `paths_open` counts them.
    """
    return _numbers(run, known).get("path_packets")


def paths_open(run: Run, known: str) -> tuple[int, int]:
    """Return how many paths that count for `path_packets` never became known, and of how many."""
    found = _numbers(run, known)
    left = found.get("path_open", 0)
    return left, left + found.get("path_flows", 0)


def latency_error(run: Run, quantile: str) -> float | None:
    """Return the mean relative error of a quantile ("0.5", "0.99") of hop latency."""
    found = _numbers(run, "network").get("latency_errors", {}).get(quantile)
    return found["mean"] if found else None


def numbers(reports: Iterable[Mapping[str, Any]], queries: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the numbers of a collector's reports under a plan with these queries.

    Returns
    -------
    dict
        ``path_packets`` with ``path_hops``, ``path_flows`` that count and ``path_open`` that stayed open;
        ``latency_errors``: ``mean`` and ``hops`` that count, by quantile. What is not asked is not there.
    """
    path = next((q["name"] for q in queries if q["aggregation"] == "path"), None)
    quantiles = [q["name"] for q in queries if q["aggregation"] == "quantiles"]
    estimated = next((name for name in quantiles if name != "reference"), None)
    decoded: dict[int, list[int | None]] = {}
    errors: dict[str, list[float]] = {}
    for report in reports:
        if report["digests"] < MIN_PACKETS:
            continue
        text = report["queries"]
        if path in text:
            found = text[path]
            decoded.setdefault(len(found["hops"]), []).append(found["decoded_after"])
        if estimated in text and "reference" in text:
            for mine, true in zip(text[estimated]["hops"], text["reference"]["hops"], strict=False):
                _add_errors(errors, mine, true)
    result: dict[str, Any] = {}
    if decoded:
        longest = max(decoded)
        known = [packets for packets in decoded[longest] if packets is not None]
        still_open = len(decoded[longest]) - len(known)
        result |= {"path_hops": longest, "path_flows": len(known), "path_open": still_open}
        result["path_packets"] = math.fsum(known) / len(known) if known else None
    if errors:
        result["latency_errors"] = {
            quantile: {"mean": math.fsum(found) / len(found), "hops": len(found)}
            for quantile, found in errors.items()
        }
    return result


def packets_until_known(run: Run) -> dict[int, list[int | None]]:
    """Return for each flow how many digests its path took to be known, by hops of the path; None: never.

    Empty where the run kept no digests of a query for paths. The collector knows the run's network.
    """
    if (plan := _plan(run)) is None:
        return {}
    path = next((q["name"] for q in plan.facts()["queries"] if q["aggregation"] == "path"), None)
    found: dict[int, list[int | None]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for report in _reports(run, plan, "network", Path(folder)):
            if path in report["queries"]:
                text = report["queries"][path]
                found.setdefault(len(text["hops"]), []).append(text["decoded_after"])
    return found


def _add_errors(errors: dict[str, list[float]], mine: Mapping[str, Any], true: Mapping[str, Any]) -> None:
    """Add the relative errors of a hop's quantiles, those that count."""
    truth = {str(q["quantile"]): q["value"] for q in true["quantiles"]}
    if mine["samples"] < MIN_SAMPLES:
        return
    for estimate in mine["quantiles"]:
        quantile = str(estimate["quantile"])
        if truth.get(quantile, 0) >= MIN_NS:
            errors.setdefault(quantile, []).append(abs(estimate["value"] / truth[quantile] - 1))


def _numbers(run: Run, known: str) -> dict[str, Any]:
    kept = run.folder / f"decoded-{known}.json"
    if (before := integrity.numbers_kept(kept, _DIGESTS)) is not None:
        return before
    if (plan := _plan(run)) is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        found = numbers(_reports(run, plan, known, Path(folder)), plan.facts()["queries"])
    integrity.keep_numbers(kept, _DIGESTS, found)
    return found


def _plan(run: Run) -> pint.Plan | None:
    """The plan by which a run recorded digests, if it did."""
    telemetry = run.scenario.get("telemetry", {})
    asked = isinstance(telemetry, dict) and "queries" in telemetry
    if not asked or not (run.out / "telemetry.parquet").is_file():
        return None
    return pint.Plan.open(telemetry["queries"])


def _reports(run: Run, plan: pint.Plan, known: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Decode the digests of a run; results go through a file, which holds millions of flows as well."""
    network, digests = run.out / "scenario.toml", run.out / "telemetry.parquet"
    findings = folder / "findings.jsonl"
    pint.decode(plan, digests, topology=network, ids_only=known == "ids", findings=findings, show=0)
    with findings.open(encoding="utf-8") as lines:
        for line in lines:
            found = json.loads(line)
            if "queries" in found:
                yield found
