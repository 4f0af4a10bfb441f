"""`weftline pint decode`: paths, quantiles and events of recorded digests, and how they are printed."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftline.cli import arguments

if TYPE_CHECKING:
    from weftline import pint

DONE, WRONG_INPUT = 0, 2
SHOWN = 20
"""Flows and events that `decode` prints."""
CEILING = "≥ "
"""Before a value that has the largest code of its query."""
CEILING_NOTE = (
    f"{CEILING}: the largest code of the plan; the true value may be any larger one "
    "(more bits or a larger epsilon reach further)"
)
NAMED = ("switch-id", "ingress-port", "egress-port")
"""Values that are names of switches and ports."""
FLOOR = "≤ "
"""Before a value that has the smallest code of a logarithmic grid."""
MANY_CHANGES = 4
"""Changed records for each flow, from which on its packets seem to take several paths at once."""
FLOOR_NOTE = (
    f"{FLOOR}: the smallest code of the plan; the true value may be 0, which a logarithm has no code for"
)


def add_to(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command; `command` makes one of a name, what it does, and its help."""
    decode = command("decode", _decode, "decode recorded digests into paths, quantiles and events")
    decode.add_argument(
        "digests",
        metavar="DIGESTS",
        help="CSV or Parquet, such as a run's telemetry.parquet, or a run's capture.pcapng",
    )
    decode.add_argument("--plan", required=True, metavar="PLAN.toml", help="the plan that the switches ran")
    decode.add_argument("--topology", metavar="FILE", help="the network: .toml, .gml, .graphml, HPCC's .txt")
    decode.add_argument(
        "--ids-only", action="store_true", help="the collector knows the switches but not the links"
    )
    decode.add_argument("--ends", action="store_true", help="the flow's addresses tell first and last switch")
    decode.add_argument("--shortest", action="store_true", help="paths are shortest paths")
    decode.add_argument(
        "--memory",
        default="256MB",
        metavar="SIZE",
        help="memory limit of the collector over all flows (default 256MB)",
    )
    decode.add_argument("--idle", metavar="TIME", help="idle time after which a flow ends, such as 10s")
    decode.add_argument(
        "--patience",
        default="3,8,64",
        metavar="N,N,N",
        help="evidence for a change of path: number of digests that agree "
        "on a new path; number that contradict "
        "the old path without agreeing; number of consecutive digests of the old path after which the others "
        "count as strays (default 3,8,64)",
    )
    arguments.add_out(decode, "FILE.csv", "write the paths of all flows")
    decode.add_argument(
        "--findings", metavar="FILE.jsonl", help="write all results and events, one JSON object per line"
    )
    arguments.add_json(decode)
    decode.add_argument("--quiet", action="store_true", help="print nothing but warnings")


def _decode(options: argparse.Namespace) -> int:
    from weftline import pint
    from weftline.outputs import refuse_inputs
    from weftline.packets import captures, digests

    outputs = {"--out": options.out, "--findings": options.findings}
    refuse_inputs(outputs, [options.digests, options.plan, options.topology])
    plan = pint.Plan.open(options.plan)
    file = options.digests
    if Path(file).is_file() and (captures.is_capture(file) or captures.is_named_so(file)):
        with tempfile.TemporaryDirectory() as folder:
            rows = Path(folder) / "digests.csv"
            width = max(1, -(-plan.facts()["bits"] // 8))
            notes = digests.write(file, rows, plan_version=plan.version, width=width)
            return _decoded(options, plan, rows, notes)
    return _decoded(options, plan, Path(file), [])


def _decoded(options: argparse.Namespace, plan: pint.Plan, file: Path, notes: list[str]) -> int:
    """Decode a table of digests, print what was found, and return the exit status."""
    from weftline import pint

    found = pint.decode(
        plan,
        file,
        topology=options.topology,
        ids_only=options.ids_only,
        ends=options.ends,
        shortest=options.shortest,
        memory=options.memory,
        idle_ns=arguments.time_ns("--idle", options.idle),
        patience=_counts(options.patience),
        out=options.out,
        findings=options.findings,
        show=SHOWN,
    )
    maximal = plan.facts()["hops"]["maximal"]
    about = [
        *_late(found["counts"]),
        *_repeated(found["counts"]),
        *_too_long(found, maximal),
        *_several_paths(found),
        *_other_ids(options.topology, found),
    ]
    for warning in [*notes, *found["warnings"], *about]:
        print(f"warning: {warning}", file=sys.stderr)
    for refused in found["refused"]:
        print(f"warning: not taken: {refused}", file=sys.stderr)
    if options.json:
        arguments.print_json(found)
    elif not options.quiet:
        _print_decoded(found, {query["name"]: query for query in plan.facts()["queries"]})
    if 0 < found["rows"] == _refused(found["counts"]):
        print(f"error: {options.digests}: no digest of it was taken", file=sys.stderr)
        return WRONG_INPUT
    return DONE


def _late(counts: dict[str, int]) -> list[str]:
    """Return a warning of digests that are older than the newest one by more than --idle."""
    if not counts["late"]:
        return []
    return [
        f"{counts['late']:,} digests are older than the newest one before them by more than --idle: the "
        "clocks of sinks differ, or times are wrong. Where the newest time steps ahead, flows may end as idle"
    ]


def _repeated(counts: dict[str, int]) -> list[str]:
    """Return a warning if most digests are of packets that the record of their flow had used."""
    repeated = counts.get("repeated", 0)
    if 2 * repeated <= counts["digests"]:
        return []
    return [
        f"{repeated:,} of {counts['digests']:,} digests have a packet_id that their record has used, and are "
        "left out: ids must differ from packet to packet of a flow"
    ]


def _too_long(found: dict[str, Any], maximal: int) -> list[str]:
    """Return a warning of digests that passed more hops than the plan allows, with the flows left out."""
    refused = found["too_long"]
    if not refused["digests"]:
        return []
    flows = refused["flows_left_out"]
    whole = found["flows"] + flows
    lower_bound = "at least " if found["flows_are_minimum"] else ""
    left_out = f": {lower_bound}{flows:,} of {whole:,} flows are left out" if flows else ""
    return [
        f"{refused['digests']:,} digests are refused, as they passed up to {refused['most_hops']} hops and "
        f"the plan has hops.maximal = {maximal}{left_out}; switches need a plan with a larger maximal"
    ]


def _several_paths(found: dict[str, Any]) -> list[str]:
    """Return a warning if records end so often that packets of a flow must take several paths at a time."""
    changed, records, flows = found["changed_records"], found["records"], found["flows"]
    if changed < MANY_CHANGES * max(flows, 1):
        return []
    return [
        f"{changed:,} of {records:,} records of {flows:,} flows ended because digests contradicted them: "
        "packets of a flow take several paths at a time, so that it has no single path, or the topology is "
        "not that of the digests. A path that is not confirmed may be one that no packet took, and the "
        "digests until a path was known are those of the records that found one (docs/pint/paths.md)"
    ]


def _other_ids(topology: str | None, found: dict[str, Any]) -> list[str]:
    """Return the ids of a topology's switches if digests contradict it and its file has ids of its own."""
    formats = (".gml", ".graphml", ".xml")
    if topology is None or not topology.lower().endswith(formats) or not found["counts"]["inconsistent"]:
        return []
    names = sorted(found["names"].items(), key=lambda item: int(item[0]))
    shown = ", ".join(f"{number} {name}" for number, name in names[:SHOWN])
    more = f", and {len(names) - SHOWN:,} more (names in --json)" if len(names) > SHOWN else ""
    return [
        f"digests contradict {topology}: a switch's id is its node's number in weftline, hosts first, not "
        f"the id in the file: {shown}{more}"
    ]


def _refused(counts: dict[str, int]) -> int:
    return counts["other_plan"] + counts["hops_refused"] + counts["impossible"]


def _counts(text: str) -> tuple[int, int, int]:
    from weftline.errors import InputError

    parts = text.split(",")
    if len(parts) != 3 or not all(part.strip().isascii() and part.strip().isdigit() for part in parts):
        raise InputError(f'--patience: expected three whole numbers such as "3,8,64", found "{text}"')
    first, second, third = (int(part) for part in parts)
    return first, second, third


def _print_decoded(found: dict[str, Any], queries: dict[str, dict[str, Any]]) -> None:
    from weftline.quantities import time_text
    from weftline.terminal import Table

    counts = found["counts"]
    flows, records = found["flows"], found["records"]
    lower_bound = "at least " if found["flows_are_minimum"] else ""
    print(
        f"{found['rows']:,} digests, {_refused(counts):,} refused, {lower_bound}{flows:,} flows"
        + (f" with {records:,} records: one for each path or number of hops" if records != flows else "")
    )
    for key, text in (
        ("other_plan", "of another plan"),
        ("hops_refused", "with an impossible number of hops"),
        ("impossible", "that no hop writes"),
    ):
        if counts[key]:
            print(f"  {counts[key]:,} {text}")
    happened = [
        f"{counts[key]:,} {text}"
        for key, text in (
            ("paths_decoded", "paths decoded"),
            ("paths_changed", "changed"),
            ("inconsistent", "inconsistent"),
            ("strays", "digests set aside"),
            ("repeated", "digests that repeat a packet"),
            ("loops", "loops"),
            ("evicted", "records evicted because the memory limit was reached"),
            ("idle", "records idle"),
        )
        if counts.get(key)
    ]
    if happened:
        print(", ".join(happened))
    if traced := found["complete_paths"] + found["incomplete_paths"]:
        known, confirmed = found["complete_paths"], found["confirmed_paths"]
        kept = "flows" if records == flows else "records"
        others = "; the others had too few digests or changed before" if known < traced else ""
        print(
            f"{known:,} of {traced:,} {kept} have a known path: {confirmed:,} confirmed, "
            f"{known - confirmed:,} not confirmed{others}"
        )
    packets = found["packets_to_decode"]
    if packets["mean"] is not None:
        print(
            f"digests until a path was known: mean {packets['mean']:.1f}, median {packets['median']}, "
            f"99th percentile {packets['p99']}"
            + (
                f" (without the {packets['unknown']:,} paths that are not known)"
                if packets["unknown"]
                else ""
            )
        )
    rows = [row for report in found["reports"] for row in report_rows(report, found["names"], queries)]
    if rows:
        more = f"... {records - len(found['reports']):,} more" * (records > len(found["reports"]))
        print("\n" + Table(["flow", "query", "digests", "result"], rows, note=more, left=2).text())
        for mark, meaning in ((CEILING, CEILING_NOTE), (FLOOR, FLOOR_NOTE)):
            if any(mark in row[-1] for row in rows):
                print(meaning)
    for event in found["events"]:
        print(f"{time_text(event['time_ns'])}  {flow_text(event['flow'])}  {event['event']}")


def report_rows(
    report: dict[str, Any], names: dict[str, str], queries: dict[str, dict[str, Any]]
) -> list[list[str]]:
    """Return a row for each query of a flow: flow, query, digests, result."""
    flow, path = flow_text(report["flow"]), _path_of(report, queries)
    rows = []
    for name, query in report["queries"].items():
        digests = query.get("digests", query.get("packets"))
        if digests is None:
            digests = sum(hop["samples"] for hop in query["hops"])
        if digests:
            result = _result_text(query, queries[name], names, path)
            if "candidates" not in query and (others := report.get("may_be_of_next", 0)):
                result += f" (up to {others:,} digests may be of the next route)"
            rows.append([flow, name, f"{digests:,}", result])
    return rows


def _path_of(report: dict[str, Any], queries: dict[str, dict[str, Any]]) -> list[int | None]:
    """Return the switches that a query for the path of this flow found."""
    for name, query in report["queries"].items():
        if "candidates" in query and queries[name]["value"] == "switch-id":
            return [] if query.get("contradicted") else list(query["hops"])
    return []


def flow_text(flow: dict[str, Any]) -> str:
    """Return what sets a flow apart."""
    ends = [str(flow.get(end, "")) for end in ("src", "dst")]
    ports = [f":{flow[port]}" if port in flow else "" for port in ("src_port", "dst_port")]
    parts = [f"#{flow['flow_id']}"] if "flow_id" in flow else []
    parts += [f"{place} {flow[place]}" for place in ("point", "interface") if place in flow]
    if any(ends):
        parts.append(f"{ends[0]}{ports[0]} > {ends[1]}{ports[1]}")
    return " ".join(parts) or "all"


def _result_text(
    query: dict[str, Any], asked: dict[str, Any], names: dict[str, str], path: list[int | None]
) -> str:
    from weftline.quantities import share_text

    def text(number: float | None, at_ceiling: object = False, at_floor: object = False) -> str:
        # The largest id stands for all beyond, and has no name of its own.
        known = {} if at_ceiling else names
        mark = CEILING if at_ceiling else FLOOR if at_floor else ""
        return mark + _value_text(number, asked, known)

    def found_text(found: dict[str, Any]) -> str:
        return text(found["value"], found.get("at_ceiling"), found.get("at_floor"))

    if "candidates" in query:
        return _path_text(query, names) if asked["value"] == "switch-id" else _path_text(query, {})
    if "mean" in query:
        packets, beyond, below = query["packets"], query["at_ceiling"], query.get("at_floor", 0)
        smallest = text(query["smallest"], beyond == packets, below)
        range_text = f"{smallest} to {text(query['largest'], beyond, below == packets)}"
        if asked["value"] in NAMED:  # of names there is no mean
            return range_text
        return f"mean {text(query['mean'], beyond, below == packets)}, {range_text}"
    if "hops" not in query:
        return "no loop in these packets"
    hops, quantiles = [], ""
    for number, hop in enumerate(query["hops"]):
        if "quantiles" in hop:
            shown = "/".join(found_text(found) for found in hop["quantiles"])
            quantiles = "/".join(f"p{100 * found['quantile']:g}" for found in hop["quantiles"])
        else:
            shown = "/".join(f"{found_text(v)} ({share_text(v['most'])})" for v in hop["values"][:3])
        switch = path[number] if number < len(path) else None
        name = "" if switch is None else names.get(str(switch), str(switch)) + " "
        hops.append(name + (shown or "–"))
    return f"{quantiles} {', '.join(hops)}".strip()


def _value_text(number: float | None, asked: dict[str, Any], names: dict[str, str]) -> str:
    """Return what a query found with its value's unit (docs/pint/queries.md), a switch by its name."""
    from weftline.quantities import bytes_text, digits, share_text, time_text

    value = asked["value"]
    if number is None or asked["aggregation"] in ("count-above", "product"):
        return digits(number)
    if value in ("hop-latency", "timestamp"):
        return time_text(number)
    if value in ("queue-bytes", "port-bytes"):
        return bytes_text(number)
    if value == "utilisation":
        return share_text(number / 512)
    if value in NAMED:  # whole numbers, all digits of which count
        text = str(int(number))
        return names.get(text, text) if value == "switch-id" else text
    return digits(number)


def _path_text(query: dict[str, Any], names: dict[str, str]) -> str:
    def shown(hop: int | None, candidates: int | None) -> str:
        if hop is not None:
            return names.get(str(hop), str(hop))
        return "?" if candidates is None else f"?{candidates}"

    hops = [shown(*pair) for pair in zip(query["hops"], query["candidates"], strict=True)]
    known = query["decoded_after"] is not None
    mark = " (not confirmed)" if known and query["confirmed_after"] is None else ""
    return (" ".join(hops) or "–") + (" (contradicted)" if query.get("contradicted") else mark)
