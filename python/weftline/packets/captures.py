"""Packet captures, record by record: pcap and pcapng, of either byte order, plain or gzipped.

Source: draft-ietf-opsawg-pcap (classic files: microseconds or nanoseconds), draft-ietf-opsawg-pcapng
(sections, interfaces, enhanced packet blocks and the packet blocks before them, if_tsresol and if_tsoffset).
Blocks of other kinds are passed over.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from weftline import _native
from weftline.errors import InputError

_CLASSIC = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
"""Byte order and nanoseconds of a tick by the first four bytes of a classic file."""
_SECTION = b"\x0a\x0d\x0d\x0a"
_BYTE_ORDERS = (b"\x1a\x2b\x3c\x4d", b"\x4d\x3c\x2b\x1a")
_INTERFACE, _OLD, _SIMPLE, _ENHANCED = 1, 2, 3, 6
_OPTION_NAME, _OPTION_RESOLUTION, _OPTION_OFFSET = 2, 9, 14
_LONGEST = 1 << 24
"""Bytes of the longest record that is believed."""

_PIECE = 1 << 20
_UNPACKED, _TIMES = 1 << 24, 100
"""Limit of the unpacked size of a gzipped capture: a number of bytes, plus this multiple of its own size."""


class Captured(NamedTuple):
    """One packet of a capture."""

    number: int
    """Counted from 1."""
    time_ns: int
    """Since the epoch of the capture."""
    link_type: int
    """As LINKTYPE_ numbers it: 1 is Ethernet."""
    interface: str
    length: int
    """Bytes that it had on the wire."""
    bytes: bytes
    """Those that were kept."""
    interface_number: int = 0
    """Counted from 0 over all sections that are read."""
    file: str = ""


class First(NamedTuple):
    """What a capture begins with."""

    time_ns: int
    """Of its first packet."""
    interfaces: tuple[tuple[int, str], ...]
    """Link type and name of each interface that was described before it."""


class Section(NamedTuple):
    """A part of a pcapng file that describes its own interfaces, and that has packets."""

    first: First
    offset: int
    """Where in the file it begins."""
    before: int
    """Packets of the file before it."""
    end: int | None = None
    """Where the next section begins that has packets; None of the last one."""


class _Source:
    """A file that knows where it is and what it last began to read."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self.name, self._at = file, name, 0
        self.number = 0
        self.interfaces: list[_Interface] = []
        """Of all sections so far."""
        self.section = (0, 0, 0)
        """Of the section that is read: where it begins, the packets and the interfaces before it."""

    def go_to(self, section: Section) -> None:
        """Continue at the begin of a section."""
        self._file.seek(section.offset)
        self._at, self.number = section.offset, section.before

    def begin_section(self) -> int:
        """Note that the first eight bytes of a section were read, and return where it begins."""
        self.section = (self._at - 8, self.number, len(self.interfaces))
        return self._at - 8

    def take(self, count: int, *, may_end: bool = False) -> bytes:
        """Return this number of bytes, or none at the end of the file if that is allowed."""
        try:
            found = self._file.read(count)
        except (EOFError, OSError, zlib.error) as error:
            raise self.wrong(f"the rest cannot be read: {error}") from None
        if len(found) < count and not (may_end and not found):
            raise self.wrong(f"cut off: expected {count} bytes, found {len(found)}")
        self._at += len(found)
        return found

    def wrong(self, what: str) -> InputError:
        return InputError(f"{self.name}: record {self.number + 1} (byte {self._at}): {what}")


def read(
    path: str | Path,
    *,
    partial: bool = False,
    ended: Callable[[str], None] | None = None,
    section: Section | None = None,
) -> Iterator[Captured]:
    """Yield the packets of a capture in the order of the file.

    Parameters
    ----------
    path : path
        A pcap or pcapng file, which may be gzipped.
    partial : bool
        End where the file is cut off, instead of raising.
    ended : callable, optional
        Of a file that is cut off or damaged after its first packet, the packets before that place are all;
        this is called with a sentence about it. Without it (and without `partial`), the error is raised.
    section : Section, optional
        Yield only the packets of this one.

    Raises
    ------
    InputError
        If the file cannot be read, is not a capture, or is cut off; the text names the record.
    """
    _native.check_file(str(path))
    try:
        if section is None:
            _check_unpacked(path)
        with _opened(path) as file:
            source = _Source(file, str(path))
            if section is not None:
                source.go_to(section)
            try:
                yield from _records(source, None if section is None else section.end)
            except InputError as error:
                cut = partial and "cut off" in str(error)
                if not cut and (ended is None or not source.number):
                    raise
                if ended is not None:
                    before = "packet before it is" if source.number == 1 else "packets before it are"
                    ended(f"{error}; the {source.number:,} {before} used")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None


def first(path: str | Path, *, partial: bool = False) -> First | None:
    """Return what a capture begins with; None where it has no packets.

    Raises
    ------
    InputError
        As from `read`.
    """
    _native.check_file(str(path))
    try:
        with _opened(path) as file:
            source = _Source(file, str(path))
            try:
                packet = next(_records(source), None)
            except InputError as error:
                if not (partial and "cut off" in str(error)):
                    raise
                return None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    if packet is None:
        return None
    return First(packet.time_ns, _described(source) or ((packet.link_type, packet.interface),))


def _described(source: _Source) -> tuple[tuple[int, str], ...]:
    return tuple((each.link_type, each.name) for each in source.interfaces[source.section[2] :])


def sections(path: str | Path) -> list[Section]:
    """Return the sections of a pcapng file that have packets; none if it can have only one.

    Of a file that is cut off or damaged, those before that place.

    Raises
    ------
    InputError
        As from `read`, of what is found before any record is read.
    """
    _native.check_file(str(path))
    found: list[Section] = []
    try:
        _check_unpacked(path)
        if not _may_have_sections(path):
            return []
        with _opened(path) as file:
            source = _Source(file, str(path))
            try:
                for packet in _records(source):
                    offset, before, _ = source.section
                    if not found or found[-1].offset != offset:
                        found.append(Section(First(packet.time_ns, _described(source)), offset, before))
            except InputError:
                # The reader of the last section raises it.
                pass
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    ends = [*(each.offset for each in found[1:]), None]
    return [each._replace(end=end) for each, end in zip(found, ends, strict=False)]


def _may_have_sections(path: str | Path) -> bool:
    """Say whether what a section begins with is in a file more than once."""
    with _opened(path) as file:
        try:
            if file.read(4) != _SECTION:
                return False
            data = b""
            while piece := file.read(_PIECE):
                data = data[-11:] + piece
                at = data.find(_SECTION)
                while 0 <= at <= len(data) - 12:
                    if data[at + 8 : at + 12] in _BYTE_ORDERS:
                        return True
                    at = data.find(_SECTION, at + 1)
        except (EOFError, OSError, zlib.error):
            # The reader names the record at which it is damaged.
            return False
    return False


def _opened(path: str | Path) -> BinaryIO:
    """Open a file that may be gzipped."""
    return cast(BinaryIO, gzip.open(path)) if _is_zipped(path) else open(path, "rb")


def _is_zipped(path: str | Path) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == b"\x1f\x8b"


def _check_unpacked(path: str | Path) -> None:
    """Raise if a gzipped file unpacks beyond its limit, before any record is read: records are slow."""
    if not _is_zipped(path):
        return
    left = _UNPACKED + _TIMES * Path(path).stat().st_size
    with gzip.open(path) as file:
        try:
            while left >= 0 and (found := len(file.read(_PIECE))):
                left -= found
        except (EOFError, OSError, zlib.error):
            # The reader names the record at which it is damaged.
            return
    if left < 0:
        raise InputError(
            f"{path}: unpacks to more than {_TIMES} times its size; if that is meant, gunzip it first"
        )


def is_named_so(path: str | Path) -> bool:
    """Say whether a file has the name of a capture, whatever is in it."""
    return bool({".pcap", ".pcapng", ".cap"} & {*Path(path).suffixes})


def is_capture(path: str | Path) -> bool:
    """Say whether a file begins as a capture does."""
    try:
        with _opened(path) as file:
            first = file.read(4)
    except (OSError, EOFError, zlib.error) as error:
        if not isinstance(error, OSError) or isinstance(error, gzip.BadGzipFile):
            return False
        raise InputError(f"{path}: {error.strerror or error}") from None
    return first in _CLASSIC or first == _SECTION


def _records(source: _Source, end: int | None = None) -> Iterator[Captured]:
    """Yield packets up to the section that begins at byte `end`."""
    magic = source.take(4, may_end=True)
    if magic not in _CLASSIC and magic != _SECTION:
        raise source.wrong("is not a capture: expected pcap or pcapng" if magic else "is empty")
    yield from _next_generation(source, end) if magic == _SECTION else _classic(source, *_CLASSIC[magic])


def _classic(source: _Source, order: str, tick_ns: int) -> Iterator[Captured]:
    head = source.take(20)
    link_type = struct.unpack(order + "I", head[16:])[0] & 0xFFFF
    while record := source.take(16, may_end=True):
        seconds, ticks, kept, length = struct.unpack(order + "4I", record)
        if kept > _LONGEST:
            raise source.wrong(f"says that it has {kept} bytes: the file is damaged here")
        if length == 0:
            raise source.wrong("says that its packet had no bytes: the file is damaged here")
        data = source.take(kept)
        source.number += 1
        time_ns = seconds * 10**9 + ticks * tick_ns
        yield Captured(source.number, time_ns, link_type, "", length, data, 0, source.name)


@dataclass(frozen=True, slots=True)
class _Interface:
    link_type: int
    name: str
    ticks_per_second: int
    offset_s: int


def _next_generation(source: _Source, end: int | None) -> Iterator[Captured]:
    order, section = "<", 0
    interfaces = source.interfaces
    kind = 0x0A0D0D0A
    while True:
        length_bytes = source.take(4)
        if kind == 0x0A0D0D0A:
            if source.begin_section() == end:
                return
            order, section = _byte_order(source), len(interfaces)
            length = struct.unpack(order + "I", length_bytes)[0]
            _block(source, order, length, 12, 16)
        else:
            length = struct.unpack(order + "I", length_bytes)[0]
            body = _block(source, order, length, 8, 12)
            if kind == _INTERFACE:
                interfaces.append(_interface(source, order, body))
            elif kind in (_ENHANCED, _OLD, _SIMPLE):
                found = _packet(source, order, kind, body, section)
                source.number += 1
                yield found
        head = source.take(4, may_end=True)
        if not head:
            return
        kind = 0x0A0D0D0A if head == _SECTION else struct.unpack(order + "I", head)[0]


def _byte_order(source: _Source) -> str:
    magic = source.take(4)
    for order in "<>":
        if struct.unpack(order + "I", magic)[0] == 0x1A2B3C4D:
            return order
    raise source.wrong("has a section of no known byte order")


def _block(source: _Source, order: str, length: int, taken: int, min_length: int) -> bytes:
    """Return the rest of a block of which `taken` bytes were read, without its length at the end."""
    if length < min_length or length % 4 or length > _LONGEST:
        raise source.wrong(f"is a block of {length} bytes: the file is damaged here")
    body = source.take(length - taken - 4)
    if struct.unpack(order + "I", source.take(4))[0] != length:
        raise source.wrong("is a block whose two lengths differ: the file is damaged here")
    return body


def _interface(source: _Source, order: str, body: bytes) -> _Interface:
    if len(body) < 8:
        raise source.wrong("describes an interface and is too short")
    name, ticks, offset, at = "", 10**6, 0, 8
    while at + 4 <= len(body):
        code, size = struct.unpack(order + "2H", body[at : at + 4])
        value = body[at + 4 : at + 4 + size]
        if code == 0 or len(value) < size:
            break
        if code == _OPTION_NAME:
            name = value.decode("utf-8", "replace")
        elif code == _OPTION_RESOLUTION and size == 1:
            # The high bit chooses powers of two.
            ticks = 2 ** (value[0] & 127) if value[0] & 128 else 10 ** (value[0] & 127)
        elif code == _OPTION_OFFSET and size == 8:
            offset = struct.unpack(order + "q", value)[0]
        at += 4 + size + -size % 4
    return _Interface(struct.unpack(order + "H", body[:2])[0], name, ticks, offset)


def _packet(source: _Source, order: str, kind: int, body: bytes, section: int) -> Captured:
    """Read the block of a packet; `section` is the first interface of the section."""
    if kind == _SIMPLE:
        raise source.wrong("is a simple packet block, which has no time: expected enhanced packet blocks")
    if len(body) < 20:
        raise source.wrong("is a packet block and is too short")
    number, high, low, kept, length = struct.unpack(order + "5I", body[:20])
    if kind == _OLD:
        # The other half is a number of dropped packets.
        number = struct.unpack(order + "H", body[:2])[0]
    if section + number >= len(source.interfaces):
        raise source.wrong(f"is of interface {number}, of which there are {len(source.interfaces) - section}")
    if kept > len(body) - 20:
        raise source.wrong(f"says that it has {kept} bytes and has {len(body) - 20}")
    at = source.interfaces[section + number]
    time_ns = (high << 32 | low) * 10**9 // at.ticks_per_second + at.offset_s * 10**9
    data, number = body[20 : 20 + kept], section + number
    return Captured(source.number + 1, time_ns, at.link_type, at.name, length, data, number, source.name)
