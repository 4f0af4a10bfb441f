"""The commands `pcap` (what a capture holds; the dissector of our headers) and `import` (real traffic)."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from weftline.cli import arguments

ASSETS = Path(__file__).parent.parent / "assets"
GRAPHS = "(.goal, .bin or .et, or .cm or .topo of htsim)"
"""How the names of files that are checked, not converted, end."""


def dissector() -> str:
    """Return the Lua script of weftline's headers and of INT, for Wireshark and tshark."""
    return "".join((ASSETS / name).read_text("utf-8") for name in ("weftline.lua", "int.lua"))


def add_to(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands; `command` makes the parser of one, from name, function and help."""
    pcap = command("pcap", _pcap, "summarise a capture, or print the dissector of weftline's headers and INT")
    pcap.add_argument(
        "capture", nargs="?", metavar="CAPTURE", help="a pcap or pcapng file, or a run's folder"
    )
    pcap.add_argument(
        "--dissector", action="store_true", help="print the Lua script for Wireshark and tshark"
    )
    arguments.add_json(pcap)

    imported = command(
        "import",
        _import,
        "convert a capture, or NetFlow or IPFIX records as CSV, to a trace; or check a job or htsim file",
    )
    imported.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="pcap, pcapng (.gz too) or CSV; .goal, .bin or .et of a job graph; .cm or .topo of htsim",
    )
    arguments.add_out(imported, "FLOWS.csv", "the trace; not for job graphs")
    imported.add_argument(
        "--loggops",
        metavar="SETTINGS",
        help="a job graph: print when its ranks end on a machine like L=2500,o=1500,g=1000,G=6,O=0,S=65535",
    )
    imported.add_argument("--groups", metavar="FILE", help="process groups of Chakra traces, as JSON")
    imported.add_argument("--kind", default="auto", metavar="KIND", help="pcap, csv or auto (default)")
    imported.add_argument(
        "--map",
        metavar="HOSTS.csv",
        help="lines address,host; networks too (default: hosts in order of first use)",
    )
    imported.add_argument(
        "--hosts", type=arguments.whole(1, 10**7), metavar="N", help="without --map: how many hosts there are"
    )
    imported.add_argument(
        "--idle",
        default="1s",
        metavar="TIME",
        help="idle time after which a five-tuple begins a new flow (default: 1s)",
    )
    imported.add_argument(
        "--min-size", default="1B", metavar="SIZE", help="leave out smaller flows (default: 1B)"
    )
    # The name that the option had in an earlier version.
    imported.add_argument("--least", dest="old_min_size", metavar="SIZE", help=argparse.SUPPRESS)
    imported.add_argument(
        "--header",
        type=arguments.whole(0, 1000),
        metavar="BYTES",
        help="of flow records: headers in each packet (default: 40 for TCP, 28 for UDP, else 20)",
    )
    imported.add_argument("--group", metavar="NAME", help="put all flows into this group")
    imported.add_argument(
        "--partial",
        action="store_true",
        help="of a truncated or damaged capture, use the records before it",
    )
    arguments.add_json(imported)


def _pcap(options: argparse.Namespace) -> int:
    from weftline.errors import InputError

    if options.dissector:
        print(dissector(), end="")
        return 0
    if options.capture is None:
        raise InputError("expected a capture, a run's folder, or --dissector")
    path = Path(options.capture)
    folder = path.parent if path.name == "capture.pcapng" else path
    path = path / "capture.pcapng" if path.is_dir() else path

    def warn(text: str) -> None:
        print(f"warning: {text}", file=sys.stderr)

    found = _links(path, warn)
    for text in _of_capture(folder):
        warn(text)
    if options.json:
        print(json.dumps(found, indent=2))
        return 0
    from weftline.quantities import bytes_text, time_text
    from weftline.terminal import Table

    rows = [
        [name or "–", f"{link['packets']:,}", bytes_text(link["bytes"]), *map(time_text, _times(link))]
        for name, link in found.items()
    ]
    print(Table(["link", "packets", "bytes", "first", "last"], rows, left=1).text())
    return 0


def _of_capture(folder: Path) -> list[str]:
    """Return the warnings of the run that wrote a capture: that it was cut short."""
    try:
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        warnings = list(summary.get("warnings") or [])
    except (OSError, ValueError, AttributeError):
        return []
    return [text for text in warnings if str(text).startswith("capture.pcapng")]


def _times(link: dict[str, Any]) -> tuple[float, float]:
    return link["first_ns"], link["last_ns"]


def _links(path: Path, ended: Callable[[str], None]) -> dict[str, dict[str, Any]]:
    """Return what was captured of each link: packets, bytes on the wire, times in ns."""
    from weftline.packets import captures

    links: dict[str, dict[str, Any]] = {}
    for packet in captures.read(path, ended=ended):
        link = links.setdefault(packet.interface, {"packets": 0, "bytes": 0, "first_ns": packet.time_ns})
        link["packets"] += 1
        link["bytes"] += packet.length
        link["last_ns"] = packet.time_ns
    return links


def _import(options: argparse.Namespace) -> int:
    from weftline import quantities
    from weftline.errors import InputError, nearest
    from weftline.measures import flow_rows
    from weftline.outputs import refuse_inputs
    from weftline.packets import sampling, traces

    if _is_graph(options.files[0]):
        return _import_graph(options)
    file = options.files[0]
    for option in ("loggops", "groups"):
        if getattr(options, option) is not None:
            raise InputError(f"--{option}: only job graphs have these; {file} is not named as one {GRAPHS}")
    if options.out is None:
        raise InputError(
            f"import: -o: expected the file for the trace, such as -o flows.csv; {file} is not named as a "
            f"job graph {GRAPHS}"
        )
    if options.kind not in traces.FORMATS:
        known = list(traces.FORMATS)
        raise InputError(
            f'--kind: unknown kind "{options.kind}": {nearest(options.kind, known)}known: {", ".join(known)}'
        )
    refuse_inputs({"--out": options.out}, [*options.files, options.map])
    found = traces.read(
        options.files,
        kind=options.kind,
        table=options.map,
        host_count=options.hosts,
        idle_ns=arguments.time_ns("--idle", options.idle) or 0,
        min_size=flow_rows.size_of(_min_size(options), "--min-size"),
        header_bytes=options.header,
        partial=options.partial,
    )
    traces.write(found, options.out, group=options.group)
    for text in found.ended:
        print(f"warning: {text}", file=sys.stderr)
    numbered = found.at_several - found.unnumbered - found.averaged
    factors = [sampling.text(factor) for factor in found.sampled]
    for count, what in (
        (
            numbered,
            "flows were seen at several points of observation: by their numbers, each byte counts once",
        ),
        (
            found.unnumbered,
            "flows without numbers of packets were seen at several points of observation: each has the size "
            "that was seen at the one with most of its bytes",
        ),
        (
            found.averaged,
            "flows were sampled at several points of observation: each has the mean of the estimates of "
            "those that sampled a packet of it, which is too large for flows with few sampled packets, and "
            "in sum; import the records of one exporter for a sum that is right on average",
        ),
        (
            found.overlapping,
            "five-tuples have records that overlap in time, in files without a column of their exporters: "
            "their bytes are added up, and count several times if several exporters reported them",
        ),
        (found.unmapped, "flows left out: --map does not name one of their ends"),
        (found.inside, "flows left out: they begin and end at one host"),
        (found.headers_alone, "records left out: they have no more bytes than headers"),
        (
            found.without_packets,
            "records have no number of packets, so that their sizes include headers (--header 0: they are "
            "without headers already)",
        ),
        (
            found.without_protocol,
            "records have no protocol: of each packet, only the 20 bytes of an IPv4 header are taken off "
            "(--header BYTES: another number)",
        ),
        (
            sum(found.sampled.values()),
            "records are of sampled packets: their bytes were multiplied by their sampling factor "
            f"({' to '.join(dict.fromkeys((factors or [''])[:: max(len(factors) - 1, 1)]))}), so sizes are "
            "estimates, and flows of which no packet was sampled are missing. The sum of all bytes is right "
            "on average, and so are flows with many sampled packets; the others are too large: a flow with "
            "one sampled packet has as many packets as the factor says, however few it had",
        ),
        (
            found.sampling_not_stated,
            "records have a sampling factor of 0 and were taken as records of all packets",
        ),
        (found.small, "flows left out, which are smaller than --min-size"),
        (
            found.cut_off,
            "packets left out: too few of their bytes were kept to tell whether they have data; capture more "
            "of each (measure.pcap_snaplen, or -s of tcpdump)",
        ),
        (
            found.unread.total(),
            f"packets left out: they have no IP that can be read ({traces.kinds(found.unread)})",
        ),
        (
            found.fragments,
            "fragments left out: the first one of their packet, which has the ports, was not seen, or they "
            "repeat another one",
        ),
        (
            found.without_interface,
            "packets without numbers are of Linux cooked captures of version 1, which do not state "
            "interfaces: a packet that several interfaces saw counts several times; capture one interface, "
            "or all of them with -y LINUX_SLL2",
        ),
        (
            found.joins,
            "subflows joined connections of multipath TCP: each subflow is a flow of its own in the trace, "
            "which has more flows than the application had, and smaller ones",
        ),
        (
            found.overlong,
            "packets have headers that state more bytes than the capture says were on the wire: each counts "
            "with those on the wire",
        ),
    ):
        if count:
            print(f"warning: {count:,} {what}", file=sys.stderr)
    for columns, files in _unused(found.unused).items():
        more = f" (and {len(files) - 1:,} more files)" if len(files) > 1 else ""
        print(f"note: {files[0]}{more}: columns that are not used: {', '.join(columns)}", file=sys.stderr)
    count = len(set(found.addresses.values()))
    if options.json:
        facts = {"flows": len(found.rows), "bytes": found.bytes, "span_ns": found.span_ns, "hosts": count}
        points = {"at_several_points": found.at_several, "of_these_without_numbers": found.unnumbered}
        points |= {"of_these_means_of_estimates": found.averaged}
        sampled = {"sampled_records": sum(found.sampled.values()), "sampling_factors": factors}
        print(json.dumps({**facts, **points, **sampled, "addresses": found.addresses}, indent=2))
    else:
        flows = "1 flow" if len(found.rows) == 1 else f"{len(found.rows):,} flows"
        print(
            f"{flows} between {count} hosts, {quantities.bytes_text(found.bytes)} in "
            f"{quantities.time_text(found.span_ns)}: {options.out}"
        )
    return 0


def _unused(by_file: dict[str, list[str]]) -> dict[tuple[str, ...], list[str]]:
    """Return the files by the columns of theirs that were not read."""
    found: dict[tuple[str, ...], list[str]] = {}
    for file, columns in by_file.items():
        found.setdefault(tuple(columns), []).append(file)
    return found


def _is_graph(file: str) -> bool:
    if file.lower().removesuffix(".gz").endswith((".goal", ".bin", ".et", ".cm", ".topo")):
        return True
    # The prefix of Chakra's files.
    return any(Path(f"{file}.0.et{end}").exists() for end in ("", ".gz"))


def _import_graph(options: argparse.Namespace) -> int:
    """Print what a file of GOAL, Chakra or htsim holds and what was assumed, and times by LogGOPS."""
    from weftline import _native, quantities

    groups = Path(options.groups) if options.groups else None
    found = json.loads(_native.import_graph(Path(options.files[0]), groups, options.loggops))
    status = 1 if found.get("waiting") else 0
    if options.json:
        print(json.dumps(found, indent=2))
        return status
    if "flows" in found:
        what = (
            f"{found['flows']:,} flows with {quantities.bytes_text(found['bytes'])}, "
            f"{found['triggered']:,} of them started by others"
        )
    elif "links" in found:
        what = f"{found['hosts']:,} hosts, {found['switches']:,} switches, {found['links']:,} links"
    else:
        what = (
            f"{found['ranks']:,} ranks: "
            f"{found['computations']:,} computations, {found['sends']:,} sends, "
            f"{found['receives']:,} receives, {found['collectives']:,} collectives; "
            f"{found['messages']:,} messages with {quantities.bytes_text(found['bytes'])}"
        )
    print(f"{options.files[0]}: {found['format']}, {what}")
    for text in found["assumed"]:
        print(f"assumed: {text}")
    for rank, end in enumerate(found.get("rank_ends_ns", [])):
        print(f"rank {rank} never ends" if end is None else f"rank {rank} ends at {end:,} ns")
    for text in found.get("waiting", []):
        print(f"never done: {text}")
    return status


def _min_size(options: argparse.Namespace) -> str:
    if options.old_min_size is None:
        return options.min_size
    from weftline.errors import warn

    warn(["--least is now --min-size; the old name will be removed in the next version"])
    return options.old_min_size
