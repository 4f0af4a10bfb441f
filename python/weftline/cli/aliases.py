"""Other names that people use for what `weftline explain` and `weftline list` know."""

from __future__ import annotations

NAMES = {
    **dict.fromkeys(
        (
            *("all-reduce", "allreduce", "ring", "ring-all-reduce", "tree-all-reduce", "pairwise-all-to-all"),
            *("reduce-scatter", "all-gather", "collectives", "job", "training"),
        ),
        "collective",
    ),
    "alltoall": "all-to-all",
    "p50": "slowdown_p50",
    "median": "slowdown_p50",
    "p95": "slowdown_p95",
    "p99": "slowdown_p99",
    "tail": "slowdown_p99",
    "latency": "fct",
    "completion": "fct",
    "jct": "step_mean",
    "step": "step_mean",
    "bus-bandwidth": "busbw",
    "algorithm-bandwidth": "algbw",
    "bandwidth": "goodput",
    "throughput": "goodput",
    "utilization": "utilisation",
    "retransmissions": "retransmitted",
    "failure": "failures",
    "link-failure": "failures.event",
}
"""By the other name: what is explained."""

KINDS = {
    "controller": "controllers",
    "congestion": "controllers",
    "congestion-control": "controllers",
    "cc": "controllers",
    "tcp": "tcp-controllers",
    "transport": "transports",
    "queue": "queues",
    "disciplines": "queues",
    "qdisc": "queues",
    "balancer": "balancers",
    "load-balancers": "balancers",
    "balancing": "balancers",
    "routing": "balancers",
    "topology": "topologies",
    "fabrics": "topologies",
    "preset": "presets",
    "designs": "presets",
    "workload": "workloads",
    "traffic": "workloads",
    "collectives": "workloads",
    "experiment": "experiments",
    "papers": "experiments",
    "claim": "claims",
    "metric": "metrics",
}
"""By the other name: what is listed."""


def name(asked: str) -> str:
    """Return the name under which a thing is explained; a name that is not an alias is returned unchanged."""
    return NAMES.get(asked.strip().lower().replace("_", "-").replace(" ", "-"), asked)
