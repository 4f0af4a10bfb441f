"""`weftline bench`: packet-hops per CPU second on the workloads that all work on speed is measured by."""

from __future__ import annotations

import argparse
import json
import sys

from weftline import _native, quantities
from weftline.errors import InputError, nearest
from weftline.terminal import ProgressLine, Table

WORKLOADS = {
    "fat320-hpcc": "320-host FatTree of the HPCC paper, HPCC with INT, web search at 50 %",
    "fat320-dctcp": "the same with DCTCP",
    "p8": "fat tree k = 8, a contention-free permutation of 10 MB flows",
    "p16": "fat tree k = 16, the same with 1.5 MB flows",
    "i64": "64-to-1 incast of 1 MB flows, fat tree k = 8",
    "w8-0.5": "fat tree k = 8, web search at 50 %, 2 ms",
    "pod": "32-host pod, HPCC, web search at 50 %",
}


def command(options: argparse.Namespace) -> int:
    """Measure the workloads asked for, one after the other, and print a table or JSON."""
    for name in options.workloads:
        if name not in WORKLOADS:
            known = ", ".join(WORKLOADS)
            raise InputError(f'unknown workload "{name}": {nearest(name, list(WORKLOADS))}known: {known}')
    line = ProgressLine(quiet=options.json)
    results = []
    for name in options.workloads or WORKLOADS:
        line.show(f"{name}: {WORKLOADS[name]}", at_once=True)
        results.append({"workload": name, **json.loads(_native.bench(name, options.repeats))})
        line.clear()
    if options.json:
        json.dump(results, sys.stdout, indent=2)
        print()
        return 0
    columns = ["workload", "packet-hops", "CPU s", "packet-hops/s", "instructions/hop", "peak memory"]
    rows = [
        [
            result["workload"],
            quantities.count_text(result.get("packet_hops")),
            quantities.digits(result.get("cpu_seconds")),
            quantities.count_text(result.get("packet_hops_per_cpu_second")),
            quantities.digits(result.get("instructions_per_hop")),
            quantities.bytes_text(result.get("peak_memory_bytes")),
        ]
        for result in results
    ]
    print(Table(columns, rows, note=f"Median of {options.repeats} runs, one thread.").text())
    return 0
