"""Flow records as CSV: NetFlow as nfdump prints it, IPFIX by the names of its elements, or plain names.

Source: nfdump(1), ``-o csv`` (columns ts, te, td, sa, da, sp, dp, pr, ipkt, ibyt, opkt, obyt; from 1.7.5 on
firstSeen, duration, proto, srcAddr, srcPort, dstAddr, dstPort, packets, bytes); IANA IPFIX information
elements.
"""

from __future__ import annotations

import csv
import datetime
import ipaddress
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Any, TextIO

from weftline.errors import InputError, nearest_key
from weftline.packets.flows import Seen
from weftline.packets.headers import TCP, UDP
from weftline.packets.sampling import Sampling

_S, _MS, _US = 10**9, 10**6, 10**3
_COLUMNS: dict[str, dict[str, int]] = {
    "src": {"src": 1, "sa": 1, "srcAddr": 1, "sourceIPv4Address": 1, "sourceIPv6Address": 1},
    "dst": {"dst": 1, "da": 1, "dstAddr": 1, "destinationIPv4Address": 1, "destinationIPv6Address": 1},
    "start": {"start_ns": 1, "flowStartNanoseconds": 1, "flowStartMicroseconds": _US}
    | {"flowStartMilliseconds": _MS, "start_s": _S, "ts": _S, "firstSeen": _S, "flowStartSeconds": _S},
    "end": {"end_ns": 1, "flowEndNanoseconds": 1, "flowEndMicroseconds": _US}
    | {"flowEndMilliseconds": _MS, "end_s": _S, "te": _S, "lastSeen": _S, "flowEndSeconds": _S},
    "duration": {"duration_ns": 1, "flowDurationMicroseconds": _US, "flowDurationMilliseconds": _MS}
    | {"duration_s": _S, "td": _S, "duration": _S},
    "src_port": {"src_port": 1, "sp": 1, "srcPort": 1, "sourceTransportPort": 1},
    "dst_port": {"dst_port": 1, "dp": 1, "dstPort": 1, "destinationTransportPort": 1},
    "protocol": {"protocol": 1, "pr": 1, "proto": 1, "protocolIdentifier": 1},
    "packets": {"packets": 1, "ipkt": 1, "packetDeltaCount": 1, "packetTotalCount": 1},
    "bytes": {"bytes": 1, "ibyt": 1, "octetDeltaCount": 1, "octetTotalCount": 1},
    "packets_back": {
        "packets_back": 1,
        "opkt": 1,
        "reversePacketDeltaCount": 1,
        "reversePacketTotalCount": 1,
    },
    "bytes_back": {"bytes_back": 1, "obyt": 1, "reverseOctetDeltaCount": 1, "reverseOctetTotalCount": 1},
    "exporter": {"exporter": 1, "ra": 1, "routerIP": 1, "exporterIPv4Address": 1, "exporterIPv6Address": 1},
    "domain": {"observationDomainId": 1},
    "point": {"observationPointId": 1},
    "direction": {"direction": 1, "dir": 1, "flowDirection": 1},
}
"""What a record may say: names of the column, and nanoseconds of its unit where it is a time.

Of times, those of the finest unit come first.
"""
_COUNTS = ("bytes", "packets", "bytes_back", "packets_back")
_OBSERVER = ("exporter", "domain", "point", "direction")
"""The columns that tell where a flow was observed."""
_REQUIRED = ("src", "dst", "start", "bytes")
_UNSPECIFIED = ("0.0.0.0", "::")
"""What exporters write in the columns of the address family that a flow does not have."""
_PROTOCOLS = {"TCP": TCP, "UDP": UDP, "ICMP": 1, "ICMP6": 58, "SCTP": 132, "GRE": 47, "ESP": 50}
_HEADERS = {TCP: 40, UDP: 28}
"""Bytes of IPv4 and transport headers in a packet."""
_IPV4_HEADER = 20


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the columns of a table are."""

    places: dict[str, list[tuple[int, int]]]
    """Columns that may say a thing, the preferred one first, each with its unit in nanoseconds."""
    width: int
    are_totals: bool
    """Its counts are of a flow since it began, not since the record before."""
    sampling: Sampling
    unused: list[str]
    """Names of the columns that are not read."""

    def text(self, row: list[str], column: str) -> tuple[str, int]:
        """Return what a record says and its unit: that of the first column that is filled; an empty text.

        Of addresses, the unspecified one (0.0.0.0, ::) fills a column only if no other one is filled.
        """
        found = ("", 1)
        for place, unit in self.places.get(column, ()):
            text = row[place].strip()
            if text and text not in _UNSPECIFIED:
                return text, unit
            found = found if found[0] else (text, unit)
        return found


@dataclass(slots=True)
class Table:
    """The records of a file."""

    file: str
    by_observer: dict[tuple[str, ...], list[Seen]] = field(default_factory=dict)
    """By the values of the columns in `_OBSERVER`; empty texts where there is no such column."""
    are_totals: bool = False
    """Its counts are of a flow since it began, so that those of one flow are not added up."""
    names_exporter: bool = False
    """A column names the exporter."""
    unused: list[str] = field(default_factory=list)
    """Names of the columns that are not read."""
    factors: Counter[Fraction] = field(default_factory=Counter)
    """How many of its records were multiplied by which sampling factor, if not by 1."""


MAX_LINE = 1 << 20
"""Maximum length of a line: a file of another kind may have a single one."""
HEADERS_ALONE, NO_PACKETS, NO_PROTOCOL = "headers alone", "no packets", "no protocol"
"""What is counted of records, each direction alone."""


def read(path: str | Path, *, header_bytes: int | None = None, counts: Counter[str] | None = None) -> Table:
    """Return the records of a table, reverse directions as records of their own.

    Of sampled records, bytes are multiplied by the sampling factor (`sampling`).

    Parameters
    ----------
    path : path
        CSV with a header line.
    header_bytes : int, optional
        Taken off the bytes of a record for each of its packets, because records count headers: without it 40
        for TCP, 28 for UDP, and 20 for other protocols and none. Where a table has no packets nothing is
        taken off.
    counts : Counter, optional
        Records that are only headers, that have no number of packets, or no protocol, are added to it.

    Raises
    ------
    InputError
        If the file cannot be read, or a record is not as its header says; the text names the record.
    """
    try:
        with open(path, newline="", encoding="utf-8", errors="replace") as file:
            rows = csv.reader(_lines(path, file))
            header = next((row for row in rows if any(cell.strip() for cell in row)), None)
            if header is None:
                raise InputError(f"{path}: is empty: expected a header such as src,dst,start_ns,bytes")
            layout = _layout(str(path), header)
            table = Table(str(path), {}, layout.are_totals, "exporter" in layout.places, layout.unused)
            counts = Counter() if counts is None else counts
            for number, row in enumerate(rows, 1):
                if not any(cell.strip() for cell in row):
                    continue
                # nfdump ends with a summary.
                if row[0].strip() in ("Summary", "No matching flows") or row[0].startswith("Summary:"):
                    break
                where = f"{path}: record {number} (line {rows.line_num})"
                seen = list(_record(where, row, layout, header_bytes, counts))
                factor = layout.sampling.factor(where, row, counts)
                if factor != 1:
                    table.factors[factor] += 1
                    seen = [one._replace(payload=int(one.payload * factor), factor=factor) for one in seen]
                table.by_observer.setdefault(_observer(row, layout), []).extend(seen)
            return table
    except csv.Error as error:
        raise InputError(f"{path}: line {rows.line_num}: {error}") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None


def _lines(path: str | Path, file: TextIO) -> Iterator[str]:
    """Yield the lines of a file, or raise an error where one is too long to be that of a table."""
    for number in itertools.count(1):
        line = file.readline(MAX_LINE)
        if len(line) == MAX_LINE:
            raise InputError(
                f"{path}: line {number}: is longer than {MAX_LINE - 1:,} characters, expected a record of "
                "CSV; is it the right file?"
            )
        if not line:
            return
        yield line


def _layout(file: str, header: list[str]) -> Layout:
    places: dict[str, list[tuple[int, int]]] = {}
    names = [cell.strip().lstrip("\ufeff") for cell in header]
    are_totals = all(_is_total(name) for name in _COLUMNS["bytes"] if name in names)
    for column, known in _COLUMNS.items():
        for name in known:
            # The packets that belong to total bytes are total packets.
            is_other = column in _COUNTS and _is_total(name) != are_totals
            if name in names and not is_other:
                places.setdefault(column, []).append((names.index(name), known[name]))
    for column in _REQUIRED:
        if column not in places:
            expected = list(_COLUMNS[column])
            # A header may have more words than the known name, or the other way round.
            asked = ((nearest_key(wanted, names), wanted) for wanted in expected)
            pairs = itertools.chain(asked, ((name, nearest_key(name, expected)) for name in names))
            near = next((f'of "{name}", did you mean "{of}"? ' for name, of in pairs if name and of), "")
            raise InputError(
                f"{file}: line 1: no column says {column}: {near}expected one of {', '.join(expected)}"
            )
    sampling = Sampling(names)
    used = {place for columns in places.values() for place, _ in columns} | {*sampling.places}
    unused = [name for place, name in enumerate(names) if name and place not in used]
    return Layout(places, len(header), are_totals, sampling, unused)


def _is_total(name: str) -> bool:
    return "TotalCount" in name


def _observer(row: list[str], layout: Layout) -> tuple[str, ...]:
    return tuple(layout.text(row, column)[0] for column in _OBSERVER)


def _record(
    where: str, row: list[str], layout: Layout, header_bytes: int | None, counts: Counter[str]
) -> Iterator[Seen]:
    if len(row) < layout.width:
        hint = "" if len(row) > 1 else ": is the file cut off?"
        raise InputError(f"{where}: expected {layout.width} fields as in the header, found {len(row)}{hint}")

    def value(column: str, read: Callable[..., Any], default: object = None) -> Any:
        text, unit = layout.text(row, column)
        if not text:
            if column in _REQUIRED:
                raise InputError(f"{where}: {column} is empty")
            return default
        try:
            return read(text, unit)
        except (ValueError, InvalidOperation, OverflowError):
            raise InputError(f"{where}: {column}: expected {_EXPECTED[read]}, found {text!r}") from None

    src, dst = value("src", _address), value("dst", _address)
    start = value("start", _time)
    length = value("duration", _duration, 0)
    end = value("end", _time, start + length)
    if end < start:
        raise InputError(f"{where}: end: expected no time before the start, {start:,} ns, found {end:,} ns")
    protocol = value("protocol", _protocol)
    ports = (value("src_port", _port, 0), value("dst_port", _port, 0))
    for back in ("", "_back"):
        octets, packets = value("bytes" + back, _count, 0), value("packets" + back, _count)
        headers = _HEADERS.get(protocol, _IPV4_HEADER) if header_bytes is None else header_bytes
        payload = max(octets - (packets or 0) * headers, 0)
        if octets:
            counts[HEADERS_ALONE] += payload == 0
            counts[NO_PACKETS] += packets is None and header_bytes != 0
            counts[NO_PROTOCOL] += protocol is None and packets is not None and header_bytes is None
        if back:
            src, dst, ports = dst, src, ports[::-1]
        if octets or not back:
            yield Seen(src, dst, protocol or 0, ports, start, end, payload)


def _address(text: str, _unit: int) -> str:
    return str(ipaddress.ip_address(text))


def _time(text: str, unit: int) -> int:
    if re.match(r"\d{4}-\d\d-\d\d", text):
        # `datetime` would drop what is finer than a microsecond.
        fraction = re.search(r"[.,](\d+)", text)
        whole = text if fraction is None else text[: fraction.start()] + text[fraction.end() :]
        at = datetime.datetime.fromisoformat(whole.replace("Z", "+00:00"))
        at = at if at.tzinfo else at.replace(tzinfo=datetime.UTC)
        since = at - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        nanoseconds = 0 if fraction is None else int(fraction[1][:9].ljust(9, "0"))
        return (since.days * 86_400 + since.seconds) * _S + nanoseconds
    return _number(text, unit)


def _duration(text: str, unit: int) -> int:
    # 00:01:02.500, as nfdump prints it where it is asked to.
    parts = text.split(":")
    if len(parts) == 3:
        return _number(parts[0], 3600 * _S) + _number(parts[1], 60 * _S) + _number(parts[2], _S)
    return _number(text, unit)


def _number(text: str, unit: int) -> int:
    found = Decimal(text)
    if not found.is_finite() or found < 0:
        raise ValueError(text)
    return int(found * unit)


def _count(text: str, _unit: int) -> int:
    return _number(text, 1)


def _port(text: str, _unit: int) -> int:
    # Of ICMP, nfdump prints type and code: 8.0.
    return int(Decimal(text))


def _protocol(text: str, _unit: int) -> int:
    return _PROTOCOLS[text.upper()] if text.upper() in _PROTOCOLS else int(text) if text.isdecimal() else 0


_EXPECTED = {
    _address: "an IP address",
    _time: "a time such as 2026-01-31 12:00:00.250, or a number",
    _duration: "a duration, as a number",
    _count: "a whole number, without a unit (nfdump -N)",
    _port: "a port",
    _protocol: "a protocol",
}
