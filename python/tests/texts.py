"""Texts that several tests write to files: small networks, and an experiment of two schemes."""

FABRIC = """
name = "fabric"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 4
[[workload]]
kind = "poisson"
sizes = "websearch"
load = 0.5
duration = "1ms"
"""


def star(name: str, *, hosts: int, sizes: str, load: float, duration: str) -> str:
    """Return a scenario of queue pairs under HPCC around one switch; `sizes` is the key with its value."""
    return f"""\
name = "{name}"
[topology]
kind = "star"
hosts = {hosts}
[transport]
kind = "rdma"
controller = {{ kind = "hpcc" }}
[[workload]]
kind = "poisson"
{sizes}
load = {load}
duration = "{duration}"
"""


TWO_SCHEMES = """
title = "Two schemes"
source = "own"
scenario = "fabric.toml"
[small]
seeds = [1, 2, 3]
[full]
[[axis]]
name = "scheme"
variants = [
  { name = "HPCC", set = { "transport.controller.kind" = "hpcc" } },
  { name = "DCTCP", set = { "transport.controller.kind" = "dctcp" } },
]
[[figure]]
name = "bars"
title = "Slowdown"
kind = "bars"
lines = "scheme"
metric = "slowdown_p95"
[[claim]]
text = "HPCC is faster"
figure = "bars"
line = "HPCC"
against = "DCTCP"
metric = "slowdown_p95"
below = 1
"""

WHICH_SCHEME = """
question = "Which scheme?"
scenario = "small.toml"
seeds = 3
[[axis]]
name = "scheme"
variants = [
  { name = "HPCC", set = { "transport.controller.kind" = "hpcc" } },
  { name = "DCTCP", set = { "transport.controller.kind" = "dctcp" } },
]
[[axis]]
name = "load"
key = "workload.0.load"
values = [0.3, 0.5]
[report]
metrics = ["slowdown_p99", "goodput"]
rows = "scheme"
along = "load"
"""
"""A sweep of twelve points over `scenario` of conftest."""
