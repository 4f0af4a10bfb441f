"""Of which ports a histogram of queues is: of those of switches, of those of hosts, or of both.

The metrics of queues count all sampled ports. With ``ports = "*"`` the ports of hosts are among them, which
are empty with most transports and so lower every percentile. Figures draw the ports of switches alone where
both were sampled, and what prints a metric of queues names the ports that it is of.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from weftline import columns
from weftline.measures import networks
from weftline.measures.metrics import metric
from weftline.measures.readings import QUEUE_BIN_BYTES
from weftline.tables import Table

if TYPE_CHECKING:
    from weftline.measures.lines import Line
    from weftline.runs import Run

_SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}


@dataclass(frozen=True)
class Ports:
    """How many ports of switches and of hosts were sampled."""

    switches: int
    hosts: int
    host_names: frozenset[str] = frozenset()

    @property
    def are_both(self) -> bool:
        """Whether there are ports of switches and of hosts."""
        return bool(self.switches and self.hosts)

    @property
    def left_out(self) -> frozenset[str]:
        """The hosts whose ports a figure does not draw."""
        return self.host_names if self.are_both else frozenset()

    def drawn_text(self) -> str:
        """Return how many ports of which kind a figure draws: ``"16 ports of switches"``."""
        if self.switches:
            return _count(self.switches, "port of a switch", "ports of switches")
        return _count(self.hosts, "port of a host", "ports of hosts")

    def switches_text(self) -> str:
        """Return how many ports of switches were sampled: ``"16 switch ports"``."""
        return _count(self.switches, "switch port", "switch ports")

    def text(self) -> str:
        """Return how many ports of which kind were sampled: ``"16 switch ports and 8 host ports"``."""
        counts = ((self.switches, "switch port"), (self.hosts, "host port"))
        return " and ".join(_count(count, name, f"{name}s") for count, name in counts if count)


def of_run(run: Run) -> Ports | None:
    """Return which ports a run sampled; None without a histogram, or if its network cannot be built."""
    if not run.scenario.get("measure", {}).get("queue_histogram") or not run.queues:
        return None
    network = networks.built(run)
    if network is None:
        return None
    hosts = frozenset(networks.hosts(network))
    ports = set(columns.read(Table(run, "queues"), ["port"])["port"])
    of_hosts = sum(_node(port) in hosts for port in ports)
    return Ports(len(ports) - of_hosts, of_hosts, hosts)


def without(run: Run, hosts: Collection[str]) -> dict[str, Any] | None:
    """Return `Run.queues` of the ports that are not of these hosts.

    The maximum is the lower edge of its bin if a port that is left out has samples in this bin, or above.
    """
    whole = run.queues
    if whole is None or not hosts:
        return whole
    table = columns.read(Table(run, "queues"), ["port", "queue_bytes", "samples"])
    bins: dict[int, int] = {}
    left_out = -1
    for port, size, samples in zip(table["port"], table["queue_bytes"], table["samples"], strict=True):
        if _node(port) in hosts:
            left_out = max(left_out, size)
        else:
            bins[size] = bins.get(size, 0) + samples
    if not bins:
        return None
    edges = sorted(bins)
    up_to = list(accumulate(bins[edge] for edge in edges))
    count = up_to[-1]
    percentiles: dict[str, Any] = {"samples": count}
    for name, share in _SHARES.items():
        wanted = max(1, math.ceil(share * count))
        percentiles[name] = next(edge for edge, seen in zip(edges, up_to, strict=True) if seen >= wanted)
    percentiles["max"] = whole["percentiles"]["max"] if left_out < edges[-1] else edges[-1]
    cdf = [[edge + QUEUE_BIN_BYTES, seen / count] for edge, seen in zip(edges, up_to, strict=True)]
    return {"percentiles": percentiles, "cdf": cdf}


def figure_title(lines: Sequence[Line]) -> str:
    """Return the title of a figure of queue lengths, by the kinds of ports that it draws."""
    found = [line.queue_ports for line in lines if line.runs[0].queues]
    kinds = {None if ports is None else ports.switches > 0 for ports in found}
    if len(kinds) != 1 or None in kinds:
        return "Queue length of the sampled ports"
    return f"Queue length of {'switch' if kinds == {True} else 'host'} ports"


def figure_text(lines: Sequence[Line], of_seeds: str = "") -> str:
    """Return which ports a figure of queue lengths draws, and which ones it leaves out, as sentences.

    Parameters
    ----------
    of_seeds : str
        What follows "together", where there are several seeds.
    """
    measured = [line for line in lines if line.runs[0].queues]
    texts = {line.label: _drawn(line.queue_ports) for line in measured}
    distinct = list(dict.fromkeys(texts.values()))
    if len(distinct) == 1:
        text = f"{distinct[0][:1].upper()}{distinct[0][1:]} together{of_seeds}, idle ones included."
    else:
        each = "; ".join(f"{label}: {text}" for label, text in texts.items())
        text = f"The ports of a line together{of_seeds}, idle ones included. {each}."
    both = [ports for line in measured if (ports := line.queue_ports) and ports.are_both]
    if not both:
        return text
    counts = " or ".join(dict.fromkeys(_count(ports.hosts, "port", "ports") for ports in both))
    return (
        f"{text} The {counts} of hosts that were sampled too {'is' if counts == '1 port' else 'are'} not "
        "drawn; metrics such as queue p99 count all sampled ports."
    )


def titled(name: str, lines: Sequence[Line]) -> str:
    """Return the title of a metric, with the ports that it is of if it is one of queues."""
    title = metric(name).title
    if "queue_histogram" not in metric(name).measured_by:
        return title
    found = [ports for line in lines if (ports := line.queue_ports)]
    texts = list(dict.fromkeys(ports.text() for ports in found))
    if len(texts) > 1:
        kinds = ("switch ports", any(p.switches for p in found)), ("host ports", any(p.hosts for p in found))
        texts = [" and ".join(kind for kind, is_there in kinds if is_there)]
    return f"{title} ({texts[0]})" if texts else title


def note(lines: Sequence[Line]) -> str:
    """Return which ports metrics of queues are of where ports of hosts are among them, as a sentence."""
    found = {line.label: ports for line in lines if (ports := line.queue_ports)}
    if not any(ports.hosts for ports in found.values()):
        return ""
    counts = {label: ports.text() for label, ports in found.items()}
    if len(counts) == len(lines) and len(set(counts.values())) == 1:
        return f"Metrics of queues are of {next(iter(counts.values()))}."
    return f"Metrics of queues are of {'; '.join(f'{text} in {label}' for label, text in counts.items())}."


def _drawn(ports: Ports | None) -> str:
    return "all sampled ports" if ports is None else ports.drawn_text()


def _node(port: str) -> str:
    """Return the node of a port such as ``leaf0.p3``."""
    return port.rpartition(".p")[0]


def _count(count: int, one: str, several: str) -> str:
    return f"{count:,} {one if count == 1 else several}"
