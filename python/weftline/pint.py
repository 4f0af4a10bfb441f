"""PINT: in-band telemetry under a few bits a packet, without a simulator.

    from weftline import pint

    plan = pint.Plan.open("queries.toml")
    print(plan.describe())
    digests = plan.encode(packet_id=7, hops=[{"switch-id": 3}, {"switch-id": 9}])

    collector = pint.Collector(plan, topology="network.gml")
    collector.take(packet_id=7, digest=digests[-1], hops=2, src="10.0.0.1", dst="10.0.0.2")
    for report in collector.reports():
        print(report["flow"], report["queries"])

Everything is computed by the crate `pint`; `docs/pint` is its guide.
"""

from __future__ import annotations

import contextlib
import json
import operator
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from weftline import _native
from weftline._native import FrequentSketch, QuantileSketch
from weftline.errors import InputError, nearest
from weftline.outputs import refuse_inputs, whole_file
from weftline.quantities import parse_bytes

__all__ = ["Collector", "FrequentSketch", "Plan", "QuantileSketch", "accuracy", "decode", "encode", "vectors"]

MEMORY = "256MB"
"""Default memory of a collector's flows."""
PATIENCE = (3, 8, 64)
"""Default digests for a change of path: agreeing, contradicting without agreeing, fitting again."""


class Plan:
    """Which packets serve which queries, and where their bits lie in the digest.

    Parameters
    ----------
    text
        A file of queries, for which a plan is made, or a plan's own file.
    name
        Its name in error messages.
    """

    def __init__(self, text: str, *, name: str = "queries.toml") -> None:
        self._native = _native.Plan(text, name)
        self._values: list[str] | None = None

    @classmethod
    def open(cls, path: str | Path) -> Plan:
        """Return the plan of a file of queries or of a plan's file."""
        return cls(_text(path), name=str(path))

    @property
    def version(self) -> int:
        """32 bits that travel with recorded digests; a collector refuses those of another plan."""
        return self._native.version

    @property
    def values(self) -> list[str]:
        """What each query takes from a hop, such as "hop-latency", in the queries' order."""
        if self._values is None:
            self._values = [query["value"] for query in self.facts()["queries"]]
        return self._values

    def describe(self) -> str:
        """Return the plan and what to expect of it as text."""
        return self._native.describe()

    def facts(self) -> dict[str, Any]:
        """Return the same as nested dictionaries."""
        return json.loads(self._native.json())

    def toml(self) -> str:
        """Return the plan as a file for switches and collectors."""
        return self._native.toml()

    def save(self, path: str | Path) -> None:
        """Write the plan's file."""
        with whole_file(path) as file:
            file.write_text(self.toml(), "utf-8")

    def layout(self, *, stages: int = 12) -> str:
        """Return as text which stage of a switch's pipeline each query needs."""
        return self._native.layout(_word("stages", stages, bits=32))[0]

    def layout_facts(self, *, stages: int = 12) -> dict[str, Any]:
        """Return the same as nested dictionaries."""
        return json.loads(self._native.layout(_word("stages", stages, bits=32))[1])

    def serves(self, packet_id: int) -> list[str]:
        """Return the names of the queries that a packet serves."""
        return self._native.serves(_word("packet_id", packet_id))

    def encode(self, *, packet_id: int, hops: Iterable[Mapping[str, int]]) -> list[int]:
        """Return a packet's digest after each hop.

        Parameters
        ----------
        packet_id
            What all hashes are taken of; 0 to 2^64 - 1.
        hops
            What each hop sees, by the names of values: ``{"switch-id": 3, "hop-latency": 810}`` (ns).

        A hop that finds the packet in a loop shows in `encode_and_report` only.
        """
        return self.encode_and_report(packet_id=packet_id, hops=hops)[0]

    def encode_and_report(
        self, *, packet_id: int, hops: Iterable[Mapping[str, int]]
    ) -> tuple[list[int], int | None]:
        """Return a packet's digest after each hop, and the first hop that reports the packet in a loop.

        The hop counts from 1; None: no query of the plan found a loop. A report takes the place of the
        packet's digest: give it to a collector with ``Collector.take(..., loop=True)``.
        """
        packet, digest, digests = _word("packet_id", packet_id), 0, []
        reported: int | None = None
        for hop, seen in enumerate(hops, start=1):
            values = [self._seen(hop, seen, value) for value in self.values]
            digest, looped = self._native.encode(digest, packet, hop, values)
            digests.append(digest)
            if looped and reported is None:
                reported = hop
        return digests, reported

    def _seen(self, hop: int, seen: Mapping[str, int], value: str) -> int:
        if value not in seen:
            known = ", ".join(seen) or "nothing"
            hint = nearest(value, list(seen))
            raise InputError(f'hop {hop}: "{value}" is missing, which the plan reads. {hint}found: {known}')
        return _word(f"hop {hop}: {value}", seen[value])

    def __repr__(self) -> str:
        return repr(self._native)


class Collector:
    """Takes recorded digests in and tells what the queries found out.

    Parameters
    ----------
    plan
        The plan that the switches run.
    topology
        Topology file: its switches are the ids, and consecutive hops are neighbours.
    ids_only
        Its links are not known: any two switches may follow each other on a path.
    ends
        First and last hop are the switches of the flow's source and destination.
    shortest
        Paths are shortest paths.
    memory
        Limit of all flows together, such as "256MB"; the flow that was not seen for the longest time is
        evicted.
    idle_ns
        A flow of which nothing is seen for longer ends.
    patience
        How many digests make a change of a flow's path: so many that do not fit its record but each other, so
        many that do not even agree; and how many that fit, in a row, after which those were strays.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        topology: str | Path | None = None,
        ids_only: bool = False,
        ends: bool = False,
        shortest: bool = False,
        memory: str | int = MEMORY,
        idle_ns: int | None = None,
        patience: tuple[int, int, int] = PATIENCE,
    ) -> None:
        self.plan = plan
        self._native = _native.Collector(
            plan._native, *_collecting(topology, ids_only, ends, shortest, memory, idle_ns, patience)
        )

    def take(
        self,
        *,
        packet_id: int,
        digest: int,
        hops: int,
        plan_version: int | None = None,
        time_ns: int = 0,
        flow_id: int | None = None,
        src: str | int = "",
        dst: str | int = "",
        src_port: int = 0,
        dst_port: int = 0,
        protocol: int = 0,
        loop: bool = False,
    ) -> str | None:
        """Take one digest, or with `loop` a hop's report that the packet is in a loop.

        Return why it was refused, or None.
        """
        version = self.plan.version if plan_version is None else _word("plan_version", plan_version, bits=32)
        return self._native.take(
            _word("packet_id", packet_id),
            _word("digest", digest),
            _word("hops", hops, bits=32),
            version,
            _word("time_ns", time_ns),
            None if flow_id is None else _word("flow_id", flow_id),
            str(src),
            str(dst),
            _word("src_port", src_port, bits=16),
            _word("dst_port", dst_port, bits=16),
            _word("protocol", protocol, bits=8),
            loop,
        )

    def drain(self) -> dict[str, list[dict[str, Any]]]:
        """Return the `events` and the `ended` records since the last call."""
        return json.loads(self._native.drain())

    def reports(self) -> list[dict[str, Any]]:
        """Return what is known of every flow now, the longest unseen first."""
        return json.loads(self._native.reports())

    @property
    def flows(self) -> int:
        """Flows that are kept."""
        return self._native.size()[0]

    @property
    def memory_bytes(self) -> int:
        """Bytes that they take."""
        return self._native.size()[1]


def encode(plan: Plan, seen: str | Path, out: str | Path) -> int:
    """Write the digests of packets to a CSV file and return how many there are.

    A packet that a hop reports in a loop has 1 in the column `loop`, and in `hops` the hop that reported it.

    `seen` is a CSV file with one row a packet and hop: `packet_id`, `hop` (from 1), a column for each of
    `plan.values`, and any of the flow's columns.
    """
    refuse_inputs({"out": out}, [seen])
    with whole_file(out) as file:
        return _native.pint_encode(plan._native, str(seen), str(file))


def decode(
    plan: Plan,
    digests: str | Path,
    *,
    topology: str | Path | None = None,
    ids_only: bool = False,
    ends: bool = False,
    shortest: bool = False,
    memory: str | int = MEMORY,
    idle_ns: int | None = None,
    patience: tuple[int, int, int] = PATIENCE,
    out: str | Path | None = None,
    findings: str | Path | None = None,
    show: int = 1000,
) -> dict[str, Any]:
    """Collect the digests of a CSV or Parquet file, a row at a time.

    Parameters
    ----------
    topology, ids_only, ends, shortest, memory, idle_ns, patience
        As of `Collector`.
    out
        CSV file for the paths of all flows.
    findings
        File for all results and events, a JSON object a line.
    show
        How many flows and events the answer itself holds.

    Returns
    -------
    dict
        Counts, `reports` of the first flows, `events`, `names` of switches by their ids.
    """
    refuse_inputs({"out": out, "findings": findings}, [digests, topology])
    with contextlib.ExitStack() as files:
        paths, rows = (
            None if name is None else str(files.enter_context(whole_file(name))) for name in (out, findings)
        )
        found = _native.pint_decode(
            plan._native,
            str(digests),
            *_collecting(topology, ids_only, ends, shortest, memory, idle_ns, patience),
            paths,
            rows,
            _word("show", show),
        )
    return json.loads(found)


def accuracy(
    plan: Plan,
    *,
    hops: Sequence[int] | None = None,
    trials: int = 200,
    seed: int = 1,
    topology: str | Path | None = None,
    ids_only: bool = False,
    ends: bool = False,
    shortest: bool = False,
    decoder: str | None = None,
) -> dict[str, Any]:
    """Try the plan: packets through encoders and collector, with values whose truth is known.

    Parameters
    ----------
    hops
        Lengths of paths; default: the plan's expected length.
    trials
        Flows whose path is decoded; other queries are tried on a like number of packets.
    topology
        Topology file: paths are shortest paths of it, drawn at random between switches with hosts (between
        any two where none with hosts are that far apart), and the decoder knows its switches and links.
        Without it, paths are of as many different ids as the plan's `ids` say.
    ids_only
        The decoder knows the switches alone.
    ends, shortest
        It also knows the first and the last switch; that paths are shortest paths.
    decoder
        "peeling" is the paper's: only digests of one unknown hop strike out ids. "collector" is that of
        `decode` with a topology: it also uses digests of two unknown hops, and that consecutive hops differ,
        so it needs fewer packets. With ids only, it takes every two switches for linked; without a topology
        the query must have as many `ids` as a path has hops. The paper's uses no links, so it takes
        `ids_only` with a topology. Default: "peeling" with ids only or without a topology, else "collector".
        Values in fragments need no ids: without a topology the two are one.

    Returns
    -------
    dict
        By query and length of the path; of a path `decoder`, the one that was tried, and `given_up`, the
        paths that were not known after a million packets, which count as a million in the mean.
    """
    asked = [plan.facts()["hops"]["expected"]] if hops is None else hops
    lengths = [_word("hops", length, bits=32) for length in asked]
    trials, seed = _word("trials", trials, bits=32), _word("seed", seed)
    file = None if topology is None else str(topology)
    return json.loads(
        _native.pint_accuracy(plan._native, lengths, trials, seed, file, ids_only, ends, shortest, decoder)
    )


def vectors() -> dict[str, dict[str, Any]]:
    """Return the test vectors for twins of the encoder: `functions`, and `paths` of whole plans."""
    functions, paths = _native.pint_vectors()
    return {"functions": json.loads(functions), "paths": json.loads(paths)}


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: the text is not UTF-8") from None


def _collecting(
    topology: str | Path | None,
    ids_only: bool,
    ends: bool,
    shortest: bool,
    memory: str | int,
    idle_ns: int | None,
    patience: tuple[int, int, int],
) -> tuple[str | None, bool, bool, bool, int, int | None, tuple[int, int, int]]:
    """Return what the engine's collectors take, checked, in their order."""
    file = None if topology is None else str(topology)
    idle = None if idle_ns is None else _word("idle_ns", idle_ns)
    return file, ids_only, ends, shortest, _memory(memory), idle, _patience(patience)


def _patience(counts: tuple[int, int, int]) -> tuple[int, int, int]:
    found = [_whole(count) for count in counts]
    if len(found) != 3 or not all(count is not None and 0 < count < 1 << 32 for count in found):
        raise InputError(f"patience: expected three whole numbers from 1 such as {PATIENCE}, found {counts}")
    first, second, third = found
    return first, second, third  # type: ignore[return-value]


def _memory(size: str | int) -> int:
    found = parse_bytes(size) if isinstance(size, str) else _whole(size)
    if found is None or not 65_536 <= found < 2**62:
        raise InputError(f"memory: expected at least 65.5 KB, found {size}")
    return int(found)


def _word(what: str, number: int, *, bits: int = 64) -> int:
    found = _whole(number)
    if found is None or not 0 <= found < 2**bits:
        raise InputError(f"{what}: expected a whole number from 0 to 2^{bits} - 1, found {number!r}")
    return found


def _whole(number: object) -> int | None:
    """Return a whole number of Python or NumPy as one of Python; None if it is something else."""
    try:
        return None if isinstance(number, bool) else operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        return None
