"""Queries, topologies and digests for the tests of PINT."""

from __future__ import annotations

import csv
import random

from weftline.cli.main import main

QUERIES = """\
bits = 16
seed = 5
hops = { expected = 4, maximal = 12 }

[[query]]
name = "latency"
value = "hop-latency"
aggregation = "quantiles"
quantiles = [0.5, 0.99]
approximation = { epsilon = 0.025 }
bits = 8
frequency = "15/16"

[[query]]
name = "load"
value = "utilisation"
aggregation = "max"
approximation = { epsilon = 0.025, rounding = "nearest" }
bits = 8
"""
LINE = """\
graph [
  node [ id 0 label "west" ]
  node [ id 1 label "middle" ]
  node [ id 2 label "east" ]
  edge [ source 0 target 1 ]
  edge [ source 1 target 2 ]
]
"""
PATHS = """\
bits = 16
hops = { expected = 3, maximal = 5 }
[[query]]
name = "path"
value = "switch-id"
aggregation = "path"
bits = 16
copies = 2
ids = 3
"""


def seen(path, *, packets=2000, flows=2):
    """Write what three hops see of each packet: latencies of about 1, 2 and 3 us, loads 100, 200, 300."""
    draw = random.Random(1)
    with open(path, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["packet_id", "hop", "hop-latency", "utilisation", "flow_id", "src", "dst", "time_ns"])
        for packet in range(packets):
            for hop in (1, 2, 3):
                latency = round(1000 * hop * draw.uniform(0.8, 1.2))
                rows.writerow([packet, hop, latency, 100 * hop, packet % flows, 0, 2, 10 * packet])


def output_of(capsys, *arguments, status=0):
    assert main(list(arguments)) == status
    return capsys.readouterr()


def one_query(here, *, value, aggregation, bits=8, more=""):
    """Write a file with one query."""
    (here / "one.toml").write_text(
        f"bits = {bits}\nhops = {{ expected = 3, maximal = 12 }}\n"
        f'[[query]]\nname = "q"\nvalue = "{value}"\naggregation = "{aggregation}"\nbits = {bits}\n{more}\n'
    )


def shown(here, capsys, values, *options):
    """Return what is printed of packets that each passed hops with these values."""
    from weftline import pint  # which needs the native module

    plan = pint.Plan.open("one.toml")
    lines = ["packet_id,digest,hops,plan_version,flow_id"]
    for packet, seen in enumerate(values):
        digest = plan.encode(packet_id=packet, hops=[{plan.values[0]: value} for value in seen])[-1]
        lines.append(f"{packet},{digest},{len(seen)},{plan.version},1")
    (here / "digests.csv").write_text("\n".join(lines) + "\n")
    return output_of(capsys, "pint", "decode", "digests.csv", "--plan", "one.toml", *options)
