"""The command `collect`: what telemetry says, in captures or as it arrives; every packet is accounted for."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from weftline.cli import arguments
from weftline.errors import InputError

if TYPE_CHECKING:
    import threading

    from weftline.collector import Collected
    from weftline.live import LiveCollector

SHOWN_ROWS = 20
"""Rows of each table that are printed; `--out` and `--json` have them all."""
SHOWN_FILES = 5
"""Captures of a point of observation that are printed."""
PATH_DECODED = "pint path-decoded"
"""Events that are in the table of PINT's flows already."""


def add_to(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command; `command` makes its parser from name, function and help."""
    collect = command(
        "collect",
        _collect,
        "read INT, IOAM and telemetry reports: paths, hops, changes, loss",
    )
    collect.add_argument(
        "captures", nargs="*", metavar="CAPTURE", help="pcap or pcapng (.gz too); -: standard input"
    )
    live = collect.add_argument_group("what arrives from the network, instead of captures")
    for name, place, what in (
        ("--listen", "udp:PORT", "reports on a UDP port of the loopback, or on udp:ADDRESS:PORT"),
        ("--interface", "NAME", "packets of a network interface"),
        ("--allow", "NETWORK", "whose datagrams are taken, such as 10.0.0.0/8"),
    ):
        live.add_argument(name, action="append", metavar=place, help=f"{what}; may be repeated")
    for name, place, what in (
        ("--prometheus", "ADDRESS", "HTTP with /metrics /paths /hops /events /health, such as :9464"),
        ("--otlp", "URL", "post metrics, such as to http://127.0.0.1:4318/v1/metrics"),
        ("--checkpoint", "FILE", "where to continue after the collector was killed"),
        ("--config", "FILE", 'TOML file with these options, such as listen = ["udp:6000"]'),
    ):
        live.add_argument(name, metavar=place, help=what)
    live.add_argument("--interval", metavar="TIME", help="time between exports (default: 5s)")
    live.add_argument("--duration", metavar="TIME", help="stop after this time, such as 60s")
    live.add_argument("--doctor", action="store_true", help="print what this machine allows, and exit")
    collect.add_argument("--memory", metavar="SIZE", help="limit of all tables (default: 256MB)")
    collect.add_argument(
        "--shards", type=_number, metavar="N", help="threads that keep flows (default: by cores)"
    )
    collect.add_argument("--plan", metavar="FILE", help="plan of PINT, to decode digests with")
    collect.add_argument("--topology", metavar="FILE", help="with --plan: the switches that digests may name")
    collect.add_argument(
        "--points",
        metavar="LAW",
        help="captures that are one point of observation: by-time (those that continue each other; default), "
        "each (each alone) or one (all)",
    )
    for name, what, default in (
        ("--int-dscp", "DSCP of packets with INT", "0x17"),
        ("--int-port", "UDP port of INT", "49203"),
        ("--int-gre", "EtherType of INT in GRE", "0x88b6"),
    ):
        collect.add_argument(name, type=_number, metavar="N", help=f"{what} (default: {default})")
    collect.add_argument(
        "--report-port",
        type=_number,
        action="append",
        metavar="PORT",
        help="UDP port of telemetry reports, may be repeated (default: 32766)",
    )
    collect.add_argument(
        "--pint-ipv4-id", action="store_true", help="the IPv4 id is a digest of PINT (DF set)"
    )
    collect.add_argument("--pint-flow-label", action="store_true", help="the IPv6 flow label is one")
    arguments.add_out(collect, "DIR", "write summary.json and the tables as JSON lines")
    collect.add_argument(
        "--parquet", action="store_true", help="with --out: the tables as Parquet files instead"
    )
    arguments.add_json(collect)


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number such as 23 or 0x17, found {text!r}") from None


def _collect(options: argparse.Namespace) -> int:
    from weftline.collector import DEFAULT_MEMORY, collect
    from weftline.terminal import say

    if options.doctor:
        from weftline.collect_doctor import report

        print(report(options.interface or []))
        return 0
    if options.listen or options.interface or options.config:
        return _collect_live(options)
    if not options.captures:
        raise InputError("collect: expected captures, --listen or --interface")
    for name in LIVE_OPTIONS:
        if getattr(options, name) is not None:
            raise InputError(f"collect: --{name}: only with --listen or --interface, not with captures")
    _check_together(options, options.plan, options.out)
    points = {} if options.points is None else {"points": options.points}
    memory = options.memory or DEFAULT_MEMORY
    found = collect(options.captures, memory=memory, **_shared(options), **points)
    for capture in found.summary["captures"]:
        if capture["ended_early"]:
            say("warning", f"{capture['ended_early']}; the packets before it are used")
    if options.out:
        found.save(options.out, parquet=options.parquet)
    _show(found, options, options.plan)
    return 0


LIVE_OPTIONS = ("allow", "prometheus", "otlp", "checkpoint", "interval", "duration")
"""Options that captures have no use for."""


def _check_together(options: argparse.Namespace, plan: object, out: object) -> None:
    """Raise if an option is given without the one that it belongs to."""
    if options.topology is not None and plan is None:
        raise InputError("collect: --topology: expected with --plan, whose digests are decoded with it")
    if options.parquet and out is None:
        raise InputError("collect: --parquet: expected with --out DIR, the folder of the files")


def _shared(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options that captures and running collectors have in common."""
    return {
        "int_dscp": options.int_dscp,
        "int_port": options.int_port,
        "int_gre": options.int_gre,
        "report_ports": options.report_port,
        "pint_ipv4_id": options.pint_ipv4_id,
        "pint_flow_label": options.pint_flow_label,
        "plan": options.plan,
        "topology": options.topology,
        "shards": options.shards,
    }


def _show(found: Collected, options: argparse.Namespace, plan: str | None) -> None:
    from weftline.collector import TABLES
    from weftline.terminal import say

    if passed := found.summary["counts"].get("ids_without_df"):
        say(
            "warning",
            f"the IPv4 ids of {passed:,} unfragmented packets without DF are not read as digests: switches "
            "must not write the id of a packet that may still be fragmented (RFC 6864); let senders set DF",
        )
    if options.json:
        arguments.print_json({"summary": found.summary, **{name: getattr(found, name) for name in TABLES}})
        return
    captures = found.summary["captures"]
    several = len({capture["point"] for capture in captures}) > 1
    tables = (_paths(found.paths, several), _hops(found.hops), _pint(found, plan))
    for text in (*tables, _events(found.events, several), _sources(found.sources), _points(captures)):
        if text:
            print(text, end="\n\n")
    print(_summary(found.summary))


def _collect_live(options: argparse.Namespace) -> int:
    """Run until the duration ends, or until SIGINT or SIGTERM."""
    import signal
    import sys
    import threading

    from weftline.live import collecting

    if options.captures:
        named = "--listen or --interface" if options.listen or options.interface else "--config"
        raise InputError(f"collect: captures and {named} exclude each other")
    if options.points is not None:
        raise InputError("collect: --points: only with captures")
    interval = arguments.time_ns("--interval", options.interval)
    given = {
        **_shared(options),
        "listen": options.listen,
        "interface": options.interface,
        "allow": options.allow,
        "prometheus": options.prometheus,
        "otlp": options.otlp,
        "checkpoint": options.checkpoint,
        "interval_s": None if interval is None else interval / 1e9,
        "memory": options.memory,
        "out": options.out,
        "parquet": options.parquet,
    }
    given = {name: value for name, value in given.items() if value is not None and value is not False}
    config = _file(options.config)
    settings = {**config, **given}
    _check_together(options, settings.get("plan"), settings.get("out"))
    duration = arguments.time_ns("--duration", options.duration)
    ends = None if duration is None else duration / 1e9
    stop = threading.Event()
    usual = {number: signal.signal(number, lambda *_: stop.set()) for number in _SIGNALS}
    try:
        try:
            collector = collecting(**settings)
        except InputError as error:
            raise _located(error, options.config, config.keys() - given.keys()) from None
        with collector:
            where = f"; http://{collector.http}/metrics" if collector.http else ""
            print(f"Collecting from {', '.join(collector.inputs)}{where}", file=sys.stderr, flush=True)
            _watch(collector, stop, ends)
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
    if collector.found:
        _show(collector.found, options, settings.get("plan"))
    return 0


_SIGNALS = (2, 15)
"""SIGINT and SIGTERM."""


def _located(error: InputError, path: str | None, names: Iterable[str]) -> InputError:
    """Return an error with the line of the configuration file, if it is about one of the options `names`."""
    from weftline.collector import read_text

    text = str(error).removeprefix("collector: ")
    option = text.partition(":")[0]
    if path is None or option not in names:
        return error
    return InputError(f"{path}:{_line_of(option, read_text(path))}: {text}")


def _line_of(option: str, text: str) -> int:
    """Return the number of the line on which a configuration file has an option."""
    import re

    named = re.compile(rf"\s*[\"']?{re.escape(option)}\b")
    return next((number for number, line in enumerate(text.splitlines(), 1) if named.match(line)), 1)


def _file(path: str | None) -> dict[str, Any]:
    """Return the options of a configuration file."""
    import tomllib

    from weftline.collector import read_text
    from weftline.live import wrong_option

    if path is None:
        return {}
    text = read_text(path)
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: {error}") from None
    for name, value in found.items():
        if wrong := wrong_option(name, value):
            raise InputError(f"{path}:{_line_of(name, text)}: {wrong}")
    return found


def _watch(collector: LiveCollector, stop: threading.Event, seconds: float | None) -> None:
    """Print a line of rates, flows, losses and memory each second (each 10 s without a terminal)."""
    import sys
    import time

    from weftline.terminal import is_terminal

    terminal = is_terminal(sys.stderr)
    every = 1.0 if terminal else 10.0
    begin = last = time.monotonic()
    packets = 0
    while not stop.is_set():
        left = every if seconds is None else min(every, begin + seconds - time.monotonic())
        if left <= 0 or stop.wait(left):
            break
        now = time.monotonic()
        status = collector.status()
        rate = (status["packets"] - packets) / max(now - last, 1e-9)
        packets, last = status["packets"], now
        lost = status["kernel_dropped"] + status["shed"]
        line = (
            f"{rate:,.0f} packets/s, {packets:,} in all, {status['flows']:,} flows, {lost:,} lost, "
            f"{status['malformed']:,} malformed, {status['events']:,} events, "
            f"{status['memory_bytes'] / 1e6:.1f} MB"
        )
        if status["problem"]:
            line += f"; {status['problem']}"
        print(
            f"\r{line}\x1b[K" if terminal else line, end="" if terminal else "\n", file=sys.stderr, flush=True
        )
    if terminal:
        print("\r\x1b[K", end="", file=sys.stderr)


def _table(head: list[str], rows: list[list[str]], left: int) -> str:
    from weftline.terminal import Table

    if not rows:
        return ""
    text = Table(head, rows[:SHOWN_ROWS], left=left).text()
    more = len(rows) - SHOWN_ROWS
    return f"{text}\n... and {more:,} more; --out DIR writes all" if more > 0 else text


def _points(captures: list[dict[str, Any]]) -> str:
    """Return which captures are which points of observation, if there are several captures."""
    if len(captures) < 2:
        return ""
    files: dict[int, list[str]] = {}
    for capture in captures:
        files.setdefault(capture["point"], []).append(str(capture["capture"]))
    rows = [
        [str(point), ", ".join(names[:SHOWN_FILES]) + (f" and {more} more" if more > 0 else "")]
        for point, names in files.items()
        for more in [len(names) - SHOWN_FILES]
    ]
    return _table(["point", "captures, in the order in which they begin"], rows, left=2)


def _paths(rows: list[dict[str, Any]], several: bool) -> str:
    namespaces = len({row["namespace"] for row in rows}) > 1
    shown = sorted(rows, key=lambda row: -row["packets"])
    return _table(
        ["flow", "seen at", "path", "packets", "changes"],
        [
            [
                _flow(row, namespaces),
                _place(row, several),
                _path(row["path"]),
                f"{row['packets']:,}",
                f"{row['changes']:,}",
            ]
            for row in shown
        ],
        left=3,
    )


def _hops(rows: list[dict[str, Any]]) -> str:
    def numbers(row: dict[str, Any], name: str) -> Iterable[str]:
        # Values that fill their field are the largest, and may have been larger.
        minima = row.get(f"{name}_minima", 0) / max(row[f"{name}_samples"], 1)
        ranks = {"p50": 0.5, "p99": 0.99, "max": 1.0}
        for which, rank in ranks.items():
            yield ("≥" if minima and minima >= 1 - rank else "") + _text(row[f"{name}_{which}"])

    head = ["hop", "samples", "latency p50", "p99", "max", "queue p50", "p99", "max", "drops"]
    return _table(
        head,
        [
            [
                _hop(row),
                f"{max(row['latency_samples'], row['queue_samples']):,}",
                *numbers(row, "latency"),
                *numbers(row, "queue"),
                f"{row['drops']:,}",
            ]
            for row in rows
        ],
        left=1,
    )


def _hop(row: dict[str, Any]) -> str:
    if row["position"] is not None:
        return f"hop {row['position']} of every path"
    return f"node {_text(row['node'])}"


def _pint(collected: Collected, plan: str | None) -> str:
    from weftline import pint
    from weftline.cli.pint_decode import CEILING, CEILING_NOTE, report_rows

    reports = collected.pint
    if not reports or plan is None:
        return ""
    names = collected.summary.get("names", {})
    queries = {query["name"]: query for query in pint.Plan.open(plan).facts()["queries"]}
    rows = [row for report in reports for row in report_rows(report, names, queries)]
    note = f"\n{CEILING_NOTE}" if any(CEILING in row[-1] for row in rows[:SHOWN_ROWS]) else ""
    found = (query for report in reports for query in report["queries"].values())
    if any("candidates" in query and query["digests"] and not query["hops"] for query in found):
        note += "\npaths: hashes of switch ids are decoded with the switches: give --topology"
    return _table(["flow", "query", "digests", "result"], rows, left=2) + note


def _events(rows: list[dict[str, Any]], several: bool) -> str:
    shown = (row for row in rows if row["kind"] != PATH_DECODED)
    namespaces = len({row["namespace"] for row in rows if "namespace" in row}) > 1
    return _table(
        ["time ns", "event", "flow or hop", "before", "after"],
        [[str(row["time_ns"]), row["kind"], *_change(row, several, namespaces)] for row in shown],
        left=5,
    )


def _change(row: dict[str, Any], several: bool, namespaces: bool) -> tuple[str, str, str]:
    """Return what changed, before and after."""
    if row["kind"] == "path changed":
        at = f" at {_place(row, several)}" if several else ""
        return f"{_flow(row, namespaces)}{at}", _path(row["before"]), _path(row["after"])
    if row["kind"].startswith("pint "):
        from weftline.cli.pint_decode import flow_text

        return flow_text(row["flow"]), _text(row.get("from")), _text(row.get("to"))
    return f"node {row['node']}", str(row["usual"]), str(row["level"])


def _sources(rows: list[dict[str, Any]]) -> str:
    counts = ("received", "lost", "late", "repeated", "restarts")
    return _table(
        ["reports of", *counts],
        [
            [f"node {row['node']}, unit {row['hardware']}", *(f"{row[name]:,}" for name in counts)]
            for row in rows
        ],
        left=1,
    )


PINT_COUNTS = (
    ("paths_decoded", "paths known"),
    ("paths_changed", "paths changed"),
    ("inconsistent", "inconsistent"),
    ("strays", "set aside"),
    ("repeated", "that repeat a packet"),
    ("unserved", "of packets without a query"),
    ("other_plan", "of another plan"),
    ("hops_refused", "with an impossible number of hops"),
    ("impossible", "that no hop writes"),
    ("evicted", "records evicted by --memory"),
    ("not_kept", "records and events beyond --memory"),
)
"""What happened to digests of PINT."""


def _read(decoded: dict[str, Any]) -> bool:
    """Return whether digests came to a plan at all, whatever happened to them."""
    return any(decoded.get(key) for key in ("digests", *(key for key, _ in PINT_COUNTS)))


def _summary(summary: dict[str, Any]) -> str:
    """Account for every packet in sentences whose numbers add up."""
    counts = summary["counts"]
    parts = (
        ("with_telemetry", "with telemetry"),
        ("without_telemetry", "without"),
        ("malformed_packets", "with telemetry that is malformed or cut off"),
        ("unreadable", "with a malformed frame or IP header"),
        ("not_ip", "without IP"),
        ("other_links", "of links that are not read"),
        ("unwelcome", "of exporters that are muted or not allowed"),
    )
    shown = [f"{counts[key]:,} {text}" for key, text in parts if counts[key] or key == "with_telemetry"]
    lines = [f"{counts['packets']:,} packets = {' + '.join(shown)}"]
    kinds = (
        ("int_md", "INT-MD"),
        ("int_mx", "INT-MX"),
        ("ioam_traces", "IOAM traces"),
        ("ioam_direct_exports", "IOAM direct export"),
        ("ioam_edge_to_edge", "IOAM edge to edge"),
        ("ioam_other", "IOAM of other types"),
        ("hpcc", "HPCC"),
        ("pint_digests", "PINT digests"),
        ("reports", "reports"),
    )
    found = [f"{counts[key]:,} {text}" for key, text in kinds if counts[key]]
    if found:
        lines.append("telemetry: " + ", ".join(found))
    if counts["report_groups"]:
        names = ("lost", "late", "repeated")
        rest = ", ".join(f"{summary[f'{name}_groups']:,} {name}" for name in names)
        lines.append(f"report datagrams: {counts['report_groups']:,} received, {rest}")
    if counts.get("opaque_reports"):
        lines.append(f"reports of type 2 (IOAM), of which nothing is read: {counts['opaque_reports']:,}")
    for decoded in summary.get("pint", []):
        happened = [f"{decoded[key]:,} {text}" for key, text in PINT_COUNTS if decoded.get(key)]
        lines.append(f"PINT: {decoded['digests']:,} digests" + "".join(f", {text}" for text in happened))
        if unstated := decoded.get("without_version"):
            lines.append(
                f"PINT: {unstated:,} digests in IPv4 ids or INT's flags do not state the version of their "
                f"plan: they are read as of plan {decoded['plan']}, and are wrong if switches run another one"
            )
    in_packets = counts["pint_digests"]
    if in_packets and not summary.get("pint"):
        lines.append("PINT: digests are decoded with --plan; those of runs by weftline pint decode")
    elif in_packets and not any(_read(decoded) for decoded in summary["pint"]):
        lines.append(
            f"PINT: none of the {in_packets:,} digests in the packets is decoded here: captures of runs are "
            "decoded by weftline pint decode"
        )
    for key, text in (("malformed", "malformed"), ("malformed_in_reports", "malformed packets in reports")):
        if summary[key]:
            reasons = (f"{reason} ({count:,})" for reason, count in summary[key].items())
            lines.append(f"{text}: " + ", ".join(reasons))
    if before := summary.get("packets_before"):
        lines.append(
            f"{before:,} of the packets came before the checkpoint; what each input received and what "
            "exporters sent is counted from there on"
        )
    for given in summary.get("inputs", []):
        sent = given["received"] + given["dropped"]
        lines.append(
            f"{given['name']}: {sent:,} sent = {given['received']:,} received + {given['dropped']:,} dropped "
            "by the kernel"
        )
    for export in summary.get("exports", []):
        if export["failed"] or export["skipped"]:
            lines.append(
                f"{export['name']}: {export['failed']:,} exports failed, {export['skipped']:,} skipped"
            )
    if summary.get("problem"):
        lines.append(str(summary["problem"]))
    left_out = (
        ("incomplete_stacks", "stacks that lack a hop, which could not write or was overwritten"),
        ("empty_stacks", "stacks without a hop"),
        ("flows_refused", "packets of flows beyond --memory"),
        ("flows_evicted", "flows evicted"),
        ("ids_without_df", "IPv4 ids of unfragmented packets without DF"),
        ("wide_digests", "PINT digests wider than 64 bits"),
        ("impossible_hop_limits", "PINT digests of packets with a hop limit above the one they began with"),
        ("cut_digests", "PINT digests of packets cut off within the headers that their ids are made of"),
        ("late_paths", "paths of late packets"),
        ("shed", "findings shed because the shards were too slow"),
        ("paths_refused", "packets of paths beyond the limit"),
        ("hops_refused", "measurements of hops beyond the limit"),
        ("negative_delays", "delays of hops with a time of departure before that of arrival"),
        ("sources_refused", "report datagrams of sources beyond the limit"),
        ("events_refused", "events beyond the limit"),
    )
    refused = [f"{counts[key]:,} {text}" for key, text in left_out if counts.get(key)]
    if refused:
        lines.append("left out: " + ", ".join(refused))
    if steps := counts.get("clock_steps"):
        lines.append(
            f"{steps:,} times a flow continued more than a minute before its newest packet: "
            "a clock was set back, or that packet's time was wrong"
        )
    if not summary["adds_up"]:
        lines.append("the counts of packets do not add up: this is a defect of weftline, please report it")
    return "\n".join(lines)


def _flow(row: dict[str, Any], namespaces: bool) -> str:
    inside = f" in {row['vni']}" if row["vni"] is not None else ""
    if namespaces and row["namespace"] is not None:
        inside += f", IOAM namespace {row['namespace']}"
    source, destination = (f"{row[f'{end}']}:{row[f'{end}_port']}" for end in ("src", "dst"))
    return f"{source} > {destination} ({row['protocol']}){inside}"


def _place(row: dict[str, Any], several: bool) -> str:
    if row["reporter"] is not None:
        return f"node {row['reporter']}"
    point = f"point {row['point']}, " if several else ""
    return f"{point}interface {row['interface']}"


def _path(nodes: list[int | None]) -> str:
    return " ".join(map(_text, nodes))


def _text(number: int | None) -> str:
    return "–" if number is None else str(number)
