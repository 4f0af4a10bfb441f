"""Traces out of captures and flow records: the CSV that ``[[workload]] kind = "trace"`` replays."""

from __future__ import annotations

import csv
import heapq
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from weftline.errors import InputError
from weftline.outputs import whole_file
from weftline.packets import captures, flows, hosts, observers, records, sampling

FORMATS = ("auto", "pcap", "csv")


@dataclass(kw_only=True)
class Imported:
    """What an import came to."""

    rows: list[tuple[int, int, int, int]] = field(default_factory=list)
    """Source, destination, size in bytes, start in ns since the first of them."""
    addresses: dict[str, int] = field(default_factory=dict)
    """Hosts by address."""
    unmapped: int = 0
    """Flows left out because the table does not name an end of theirs."""
    inside: int = 0
    """Those of which both ends are one host."""
    small: int = 0
    """Those with fewer bytes than the minimum."""
    bytes: int = 0
    span_ns: int = 0
    """From the first start to the last."""
    at_several: int = 0
    """Flows, among all that were found, that were seen at several points of observation."""
    unnumbered: int = 0
    """Those of them whose packets have no numbers: each is counted where most of its bytes were seen."""
    averaged: int = 0
    """Flows whose size is the mean of the estimates of several points that sampled."""
    overlapping: int = 0
    """Five-tuples with records that overlap in time and are added up; no column names their exporters."""
    cut_off: int = 0
    """Packets left out because too little of them was kept to tell whether they have data."""
    overlong: int = 0
    """Packets whose headers say that they were longer than they were on the wire, which is what counts."""
    unread: Counter[str] = field(default_factory=Counter)
    """How many packets of each kind were left out because they have no IP header that can be read."""
    fragments: int = 0
    """Fragments left out because the first one of their packet was not seen."""
    without_interface: int = 0
    """Packets without numbers of captures that do not state the interface of each packet."""
    joins: int = 0
    """Subflows of multipath TCP after the first one of each connection, which are flows of their own."""
    headers_alone: int = 0
    """Records, each direction alone, left out because they have no more bytes than headers."""
    without_packets: int = 0
    """Records without a number of packets: their sizes include headers."""
    without_protocol: int = 0
    """Records without a protocol: the bytes of an IPv4 header were taken off for each packet."""
    sampled: dict[Fraction, int] = field(default_factory=dict)
    """How many records of sampled packets were multiplied by which factor, the smallest one first."""
    sampling_not_stated: int = 0
    """Records of which the columns for sampling are 0; they were taken as records of all packets."""
    unused: dict[str, list[str]] = field(default_factory=dict)
    """By file of records: names of columns that were not read."""
    ended: list[str] = field(default_factory=list)
    """What ended captures early, a sentence for each."""


def read(
    files: Sequence[str | Path],
    *,
    kind: str = "auto",
    table: str | Path | None = None,
    host_count: int | None = None,
    idle_ns: int = 10**9,
    min_size: int = 1,
    header_bytes: int | None = None,
    partial: bool = False,
) -> Imported:
    """Read captures or flow records and return the rows of a trace.

    Parameters
    ----------
    files : list of paths
        They are read together, by time, whatever their order.
    kind : str
        ``pcap``, ``csv`` or ``auto``: by the first bytes of each.
    table : path, optional
        CSV with lines address,host (or network,host); without it hosts are numbered in order of first use.
    host_count : int, optional
        Without `table`: how many hosts there are.
    idle_ns : int
        A five-tuple that rests for longer begins a new flow.
    min_size : int
        Flows with fewer bytes are left out.
    header_bytes : int, optional
        Of flow records: bytes of headers in each packet (without it 40 for TCP, 28 for UDP, 20 for others).
    partial : bool
        Take what is there of a capture that is cut off or damaged.

    Raises
    ------
    InputError
        If a file cannot be read as it is, an address has no host, or no flow is left.
    """
    imported, counts = Imported(), Counter[str]()
    is_capture = {file: _is_capture(file, kind) for file in files}
    tables = [
        records.read(file, header_bytes=header_bytes, counts=counts) for file in files if not is_capture[file]
    ]
    factors = sum((table.factors for table in tables), Counter[Fraction]())
    imported.sampled = dict(sorted(factors.items()))
    imported.unused = {table.file: table.unused for table in tables if table.unused}
    of_records, count, imported.overlapping = observers.in_order(tables)
    seen: Iterable[flows.Seen] = of_records
    if packets := [file for file in files if is_capture[file]]:
        ended = imported.ended.append if partial else None
        captured = flows.of_captures(
            packets, partial=partial, ended=ended, counts=counts, unread=imported.unread
        )
        # Their points are others than those of records.
        captured = (each._replace(point=each.point + count) for each in captured) if count else captured
        seen = heapq.merge(captured, of_records, key=lambda each: each.start_ns)
    found = flows.gather(seen, idle_ns=idle_ns)
    imported.cut_off = counts["cut off"]
    imported.overlong = counts["overlong"]
    imported.fragments = counts["fragments"]
    imported.without_interface = counts["no interface"]
    imported.joins = counts["joins"]
    imported.headers_alone = counts[records.HEADERS_ALONE]
    imported.without_packets = counts[records.NO_PACKETS]
    imported.without_protocol = counts[records.NO_PROTOCOL]
    imported.sampling_not_stated = counts[sampling.NOT_STATED]
    several = [flow for flow in found if flow.points > 1]
    imported.at_several = len(several)
    imported.averaged = sum(flow.is_mean for flow in several)
    imported.unnumbered = sum(not flow.is_numbered and not flow.is_mean for flow in several)
    of = hosts.Table(table) if table is not None else hosts.InOrder(host_count)
    kept = [row for flow in found if (row := _row(flow, of, min_size, imported))]
    if not kept:
        raise InputError(f"{', '.join(map(str, files))}: no flow is left{_why(imported)}")
    first = kept[0][3]
    imported.rows = [(src, dst, size, start - first) for src, dst, size, start in kept]
    imported.bytes = sum(row[2] for row in kept)
    imported.span_ns = imported.rows[-1][3]
    return imported


def _is_capture(file: str | Path, kind: str) -> bool:
    return kind == "pcap" or (kind == "auto" and (captures.is_capture(file) or captures.is_named_so(file)))


def _row(flow: flows.Flow, of: hosts.Table | hosts.InOrder, min_size: int, imported: Imported) -> Any:
    if flow.size_bytes < min_size:
        imported.small += 1
        return None
    src, dst = of.host(flow.src), of.host(flow.dst)
    if src is None or dst is None:
        imported.unmapped += 1
        return None
    if src == dst:
        imported.inside += 1
        return None
    imported.addresses[flow.src], imported.addresses[flow.dst] = src, dst
    return src, dst, flow.size_bytes, flow.start_ns


def _why(imported: Imported) -> str:
    parts = [
        (imported.unmapped, "{} have an end that --map does not name"),
        (imported.inside, "{} begin and end at one host"),
        (imported.small, "{} are smaller than --min-size"),
        (imported.headers_alone, "{} records are headers alone"),
        (imported.cut_off, "of {} packets too few bytes were kept"),
        (imported.unread.total(), f"{{}} packets have no IP that can be read ({kinds(imported.unread)})"),
        (imported.overlong, "{} packets say that they were longer than on the wire"),
        (imported.fragments, "of {} fragments the first one of their packet was not seen"),
    ]
    found = ", ".join(what.format(count) for count, what in parts if count)
    return f": {found}" if found else ""


def kinds(counts: Counter[str], shown: int = 4) -> str:
    """Return the kinds of packets by their number, in falling order of number, each with it."""
    order = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    texts = [f"{kind}: {count:,}" for kind, count in order[:shown]]
    if rest := order[shown:]:
        texts.append(f"{len(rest):,} other kinds: {sum(count for _, count in rest):,}")
    return ", ".join(texts)


def write(imported: Imported, out: str | os.PathLike[str], *, group: str | None = None) -> None:
    """Write the rows as CSV, with a column for the group if there is one.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    with whole_file(out) as part, part.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["src", "dst", "size_bytes", "start_ns", *(["group"] if group else [])])
        rows.writerows([*row, group] if group else row for row in imported.rows)
