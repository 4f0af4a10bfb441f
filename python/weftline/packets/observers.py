"""Flow records at several points of observation, in one order of time.

A point of observation is what reports flows: an exporter, with its observation domain and point and the
direction at its interfaces where tables name them, in one file or in files that continue each other. A file
continues an earlier one if half of its records or more end after all records of the earlier file, and half of
the records of the earlier file or more end before its first record. Ends are compared, because an
exporter writes a record when it ends, or a little later: many records of a file begin before the file does.
Files in which most of the five-tuples that both have overlap in time do not continue each other, because an
exporter reports a flow in pieces that follow each other. The order in which files are given changes nothing.

Source: IANA IPFIX information elements 85 and 86: octetTotalCount and packetTotalCount count from the
beginning of the flow, so that of records with one start the largest has all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from weftline.packets.flows import Seen
from weftline.packets.points import alike
from weftline.packets.records import Table


@dataclass(slots=True)
class _Report:
    """What one observer reports in one file."""

    file: str
    records: list[Seen]
    are_totals: bool
    names_exporter: bool
    ends: list[int]
    """When its records end, in order."""
    point: int = 0

    def is_continued_by(self, later: _Report) -> bool:
        half, later_half = self.ends[(len(self.ends) - 1) // 2], later.ends[len(later.ends) // 2]
        return self.ends[-1] <= later_half and half <= later.ends[0] and not self._overlaps(later)

    def _overlaps(self, later: _Report) -> bool:
        """Most of the five-tuples that both have overlap in time."""
        begin, end = min(record.start_ns for record in later.records), self.ends[-1]
        starts: dict[Any, int] = {}
        for record in later.records:
            if record.start_ns <= end:
                key = _five_tuple(record)
                starts[key] = min(starts.get(key, record.start_ns), record.start_ns)
        lasting: dict[Any, Seen] = {}
        for record in self.records:
            key = _five_tuple(record)
            if record.end_ns >= begin and key in starts:
                known = lasting.get(key)
                lasting[key] = record if known is None or known.end_ns < record.end_ns else known
        grown = self.are_totals and later.are_totals
        pairs = [(last, starts[key]) for key, last in lasting.items()]
        apart = [last.end_ns > start for last, start in pairs if not (grown and last.start_ns == start)]
        return 2 * sum(apart) > len(apart)


def _five_tuple(record: Seen) -> tuple[Any, ...]:
    return record.src, record.dst, record.protocol, record.ports


def in_order(tables: Sequence[Table]) -> tuple[list[Seen], int, int]:
    """Return the records of tables by their start, each with its point of observation.

    Of records with total counts, those with one start are one, the largest. The second value is the number of
    points; the third one is how many five-tuples have records that overlap in time at a point of which no
    column names the exporter: several exporters may have reported them.
    """
    by_observer: dict[tuple[str, ...], list[_Report]] = {}
    for table in tables:
        for observer, records in table.by_observer.items():
            ends = sorted(record.end_ns for record in records)
            report = _Report(table.file, records, table.are_totals, table.names_exporter, ends)
            by_observer.setdefault(observer, []).append(report)
    points: list[list[_Report]] = []
    for observer in sorted(by_observer):
        points += _continued(by_observer[observer])
    found: list[Seen] = []
    overlapping = 0
    for number, reports in enumerate(points):
        records = sorted(_of_point(reports), key=lambda record: record.start_ns)
        found += (record._replace(point=number) for record in records)
        if not reports[0].names_exporter:
            overlapping += _overlapping(records)
    found.sort(key=lambda record: record.start_ns)
    return found, len(points), overlapping


def _continued(reports: list[_Report]) -> list[list[_Report]]:
    """Return the reports of one observer, those together that continue each other."""
    series: list[list[_Report]] = []
    for report in sorted(reports, key=lambda report: (report.ends[len(report.ends) // 2], report.file)):
        able = [one for one in series if one[-1].is_continued_by(report)]
        if able:
            likest = max(able, key=lambda one: (alike(one[-1].file, report.file), one[-1].ends[-1]))
            likest.append(report)
        else:
            series.append([report])
    return series


def _of_point(reports: list[_Report]) -> Iterator[Seen]:
    largest: dict[Any, Seen] = {}
    for report in reports:
        if not report.are_totals:
            yield from report.records
            continue
        for record in report.records:
            key = (*_five_tuple(record), record.start_ns)
            known = largest.get(key)
            if known is None or (known.payload, known.end_ns) < (record.payload, record.end_ns):
                largest[key] = record
    yield from largest.values()


def _overlapping(records: list[Seen]) -> int:
    ends: dict[Any, int] = {}
    found = set()
    for record in records:
        if record.payload <= 0:
            continue
        key = _five_tuple(record)
        if record.start_ns < ends.get(key, record.start_ns):
            found.add(key)
        ends[key] = max(ends.get(key, 0), record.end_ns)
    return len(found)
