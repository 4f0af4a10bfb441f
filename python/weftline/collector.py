"""`weftline.collect`: what the telemetry in captures says about a network.

found = weftline.collect("capture.pcap")
found.paths[0]["path"]             # [101, 102, 103]
polars.DataFrame(found.hops)       # or pandas.DataFrame, pyarrow.Table.from_pylist
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weftline import integrity
from weftline.errors import InputError, RunFailed, path_text
from weftline.outputs import write_whole
from weftline.quantities import parse_bytes

MIN_MEMORY = 65_536
DEFAULT_MEMORY = "256MB"
TABLES = ("paths", "hops", "events", "sources", "pint")
STANDARD_INPUT = "-"
POINTS = ("by-time", "each", "one")
"""Which captures are one point of observation: those that continue each other, each alone, all."""
INT_PORT, REPORT_PORT = 49_203, 32_766
"""UDP ports of INT and of telemetry reports, unless options say otherwise."""
_PORTS = {4790: "VXLAN-GPE", 6081: "Geneve", 49_201: "weftline's telemetry header"}
"""Other UDP ports at which telemetry is read."""


@dataclass(frozen=True)
class Collected:
    """What was found; each table is a list of rows, one dict a row."""

    summary: dict[str, Any]
    """What happened to every packet: `counts`, `malformed` by reason, loss, memory."""
    paths: list[dict[str, Any]]
    """Flows at each point of observation: five-tuple, path (node ids, oldest first), packets, changes."""
    hops: list[dict[str, Any]]
    """Latency and queue of each node, in the units of the device; quantiles are at most 1/32 too high."""
    events: list[dict[str, Any]]
    """Changes of paths."""
    sources: list[dict[str, Any]]
    """Nodes that send reports: received, lost, late, repeated, restarts."""
    pint: list[dict[str, Any]]
    """What PINT's digests hold of each flow, as `weftline pint decode` writes it; empty without a plan."""

    def save(self, folder: str | os.PathLike[str], *, but: Sequence[str] = (), parquet: bool = False) -> None:
        """Write summary.json and the tables into a folder, which is made if it is missing.

        Parameters
        ----------
        folder : path
        but : list of str
            Tables that are left out.
        parquet : bool
            As Parquet files instead of JSON lines; a table without rows has no file.
        """
        from weftline import _native

        place = Path(folder)
        integrity.refuse_results(place)
        try:
            place.mkdir(parents=True, exist_ok=True)
            write_whole(place / "summary.json", json.dumps(self.summary, indent=2) + "\n")
            for name in TABLES:
                rows = getattr(self, name)
                if parquet:
                    (place / f"{name}.parquet").unlink(missing_ok=True)
                    _native.write_rows(place / f"{name}.parquet", json.dumps(rows))
                elif name not in but:
                    write_whole(place / f"{name}.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        except (FileExistsError, NotADirectoryError, PermissionError) as error:
            raise InputError(f"{place}: {error.strerror}; choose another folder") from None
        except OSError as error:
            raise RunFailed(f"{place}: {error.strerror or error}") from None


def collect(
    captures: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    memory: str | int = DEFAULT_MEMORY,
    int_dscp: int | None = None,
    int_port: int | None = None,
    int_gre: int | None = None,
    report_ports: Sequence[int] | None = None,
    pint_ipv4_id: bool = False,
    pint_flow_label: bool = False,
    plan: str | os.PathLike[str] | None = None,
    topology: str | os.PathLike[str] | None = None,
    shards: int | None = None,
    points: str = "by-time",
) -> Collected:
    """Read captures, in the order in which they begin, and return what their telemetry says.

    Parameters
    ----------
    captures : path or paths
        pcap or pcapng, which may be gzipped; ``"-"`` is the standard input.
    memory : size
        Limit of the tables of flows and paths, such as ``"256MB"``. Flows beyond it are refused and counted.
    int_dscp, int_port, int_gre : int, optional
        How INT is marked in this domain: DSCP (default 0x17), UDP port (49203), EtherType in GRE (0x88b6).
    report_ports : list of int, optional
        UDP ports of telemetry reports (default: 32766).
    pint_ipv4_id, pint_flow_label : bool
        Whether the IPv4 id of unfragmented packets with DF, or the IPv6 flow label, is a digest of PINT.
    plan : path
        Plan of PINT: digests are decoded.
    topology : path
        Topology, or scenario: the switches that digests may name, and their links.
    shards : int, optional
        Threads that keep flows, next to the one that reads. Default: one less than there are cores, at
        most 4.
    points : str
        Which captures are one point of observation: ``"by-time"`` those that continue each other, that is
        which begin when another one has ended and have the same interfaces, ``"each"`` each alone, ``"one"``
        all. The summary's `captures` and the rows have the number of the point.

    Raises
    ------
    InputError
        If nothing can be read of a capture; the text names the record.
    """
    from weftline import _native

    if points not in POINTS:
        raise InputError(f"points: expected one of {', '.join(POINTS)}, found {points!r}")
    if topology is not None and plan is None:
        raise InputError("topology: expected with plan: PINT's digests are decoded with it")
    ports = None if report_ports is None else list(report_ports)
    check_ports(int_port, ports)
    paths = _paths_of(captures)
    found = json.loads(
        _native.collect(
            paths,
            checked_memory(memory),
            checked_code("int_dscp", int_dscp),
            checked_code("int_port", int_port),
            checked_code("int_gre", int_gre),
            ports,
            pint_ipv4_id,
            pint_flow_label,
            None if plan is None else read_plan(plan),
            None if topology is None else os.fspath(topology),
            checked_shards(shards),
            points,
        )
    )
    return Collected(**found)


def _paths_of(captures: object) -> list[Path]:
    """Return the paths of captures, or raise an error if there are none."""
    expected = "expected the path of a capture, or a list of them"
    if isinstance(captures, str | os.PathLike):
        return [Path(path_text("captures", captures))]
    if isinstance(captures, Mapping | bytes) or not isinstance(captures, Iterable):
        raise InputError(f"captures: {expected}, found {captures!r}")
    paths = [Path(path_text("captures", each)) for each in captures]
    if not paths:
        raise InputError(f"captures: {expected}, found none")
    _refuse_repeats(paths)
    return paths


def _refuse_repeats(paths: Sequence[Path]) -> None:
    """Raise an error if two paths are the same file, whose packets would count twice."""
    known: dict[object, Path] = {}
    for path in paths:
        try:
            status = path.stat()
            file: object = (status.st_dev, status.st_ino)
        except OSError:
            # The standard input, or what the reader names as unreadable.
            file = path
        first = known.setdefault(file, path)
        if first is not path:
            also = "" if first == path else f", first as {first}"
            raise InputError(f"captures: {path} is given twice{also}: its packets would count twice")


def checked_memory(size: str | int) -> int:
    """Return the bytes of a limit of memory."""
    try:
        found = size if isinstance(size, int) else parse_bytes(size)
    except InputError as error:
        raise InputError(f"memory: {error}") from None
    if not MIN_MEMORY <= found < 2**62:
        raise InputError(f"memory: expected at least 65.5 KB, found {size}")
    return int(found)


def checked_shards(shards: int | None) -> int | None:
    """Return a number of threads that keep flows."""
    if shards is not None and not 1 <= shards <= 64:
        raise InputError(f"shards: expected 1 to 64, found {shards}")
    return shards


def read_plan(path: str | os.PathLike[str]) -> str:
    """Return the text of a plan of PINT, which was read once: errors name file and line."""
    from weftline.pint import Plan

    Plan.open(Path(path))
    return read_text(path)


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file."""
    from weftline.scenarios import read_whole

    try:
        return read_whole(Path(path), "a text").decode("utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text") from None


def check_ports(int_port: int | None, report_ports: Sequence[int] | None) -> None:
    """Raise if datagrams at a port of reports would be read as other telemetry, or the other way round."""
    of_int = INT_PORT if int_port is None else int_port
    for port in (REPORT_PORT,) if report_ports is None else report_ports:
        checked_code("report_ports", port)
        if port == of_int:
            raise InputError(
                f"report_ports: {port} is the UDP port of INT: expected another one, or another int_port"
            )
        if port in _PORTS:
            raise InputError(f"report_ports: {port} is the UDP port of {_PORTS[port]}: expected another one")


INT_CODES = ("int_dscp", "int_port", "int_gre")
"""Options that tell packets with INT by a field of a header."""
_LARGEST = {"int_dscp": 63, "int_port": 65_535, "int_gre": 65_535, "report_ports": 65_535}


def checked_code(name: str, number: int | None) -> int | None:
    """Return the value of a field of a header."""
    if number is not None and not 0 <= number <= _LARGEST[name]:
        raise InputError(f"{name}: expected 0 to {_LARGEST[name]}, found {number}")
    return number
