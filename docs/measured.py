"""The measured numbers of the documentation: stored in `measured.json`, written into the pages from there.

``python docs/measured.py`` (`make measured`) measures everything, stores it and writes the pages;
``python docs/measured.py demo which`` measures only these, ``--write`` nothing. A test fails where a page has
another number than the store. Pages name what they take by comments:

    <!-- measured table: NAME --> ... <!-- end of measured -->      a table, one of `TABLES`
    12.5<!-- measured: PATH HOW -->           a number: PATH in the store, how it is written of `HOW`

Each group in the store says by which command and version it was measured, on how many cores, and how many of
them others used meanwhile (`load`). Speeds are those of the machine that measured last, which should be idle
otherwise.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))

import figures  # noqa: E402

import weftline  # noqa: E402
from weftline import _native, quantities  # noqa: E402
from weftline.cli.main import main as give  # noqa: E402
from weftline.measures import comparison, evidence, judgements, separations  # noqa: E402
from weftline.report import answer_text  # noqa: E402
from weftline.scenario import Scenario  # noqa: E402

STORED = HERE / "measured.json"
PAGES = sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")])
TABLE = re.compile(r"^(<!-- measured table: ([^\n]*?) -->\n).*?^(<!-- end of measured -->)$", re.M | re.S)
NUMBER = re.compile(r"(\d+(?: \d{3})*(?:[.,]\d+)*)(<!-- measured: (\S+) (\S+) -->)")
BUSY = 0.1
"""How many cores others may use during a measurement without disturbing it."""
THREADED = ("fat320-hpcc", "fat320-dctcp", "w8-0.5", "p8", "p16", "k32", "pod")
"""Standard workloads that are also run on two threads."""
BY_SIZE = ("pod", "p8", "fat320-hpcc", "p16", "k32")
"""Standard workloads that stand for their number of hosts."""
HOW: dict[str, Callable[[float], str]] = {
    "digits": quantities.digits,
    "million": lambda value: quantities.digits(value / 1e6),
    "megabytes": lambda value: f"{value / 1e6:.0f}",
    "whole": lambda value: f"{value:.0f}",
}
"""How a number is written."""


# What is measured.


def demo() -> dict:
    """Run the demo and return its slowdowns, its queues, and which differences are separated."""
    _give("reproduce", "demo", "--quiet", "--out", str(ROOT / "out" / "demo"))
    lines = figures.demo_lines()
    schemes = {}
    for line in comparison.as_json(lines)["lines"]:
        sizes = {size: {p: of[p] for p in ("p50", "p99")} for size, of in line["slowdown"].items()}
        schemes[line["label"]] = {"slowdown": sizes, "queue_p99": line["metrics"]["queue_p99"]}
    decades = sorted(set.intersection(*(set(line.by_decade()) for line in lines)))
    runs = [run for line in lines for run in line.runs]
    return {
        "schemes": schemes,
        "fewest_flows": {str(10**d): separations.fewest(lines, d) for d in decades},
        "answer": answer_text.standings(lines),
        "seeds": len(lines[0].runs),
        "cpu_seconds": sum(run.summary["cpu_seconds"] for run in runs),
        "figure": hashlib.sha256(figures.demo().read_bytes()).hexdigest(),
    }


def which() -> dict:
    """Run the sweep of the README and return its verdicts."""
    blocks = re.findall(r"^```toml\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.M | re.S)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in zip(("mine.toml", "which.toml"), blocks, strict=True):
            (Path(folder) / name).write_text(text, "utf-8")
        _give("sweep", f"{folder}/which.toml", "--quiet", "--out", f"{folder}/store")
        result = weftline.load(f"{folder}/store")
        rows = []
        for cell in result.cells:
            judged, mean = result.judgement(cell), result.estimate(result.report.bound[0], cell)
            reasons = [[reason.kind, reason.text] for reason in judged.reasons]
            about = {"answer": judged.answer, "reasons": reasons, "value": mean.mean, "interval": mean.half}
            rows.append(dict(cell.choice) | about)
        return {"answer": result.report.answer, "seeds": result.asked, "rows": rows}


def bench() -> dict:
    """Return what the standard workloads cost on one thread, and their hosts."""
    found = _bench()
    for name, of in found.items():
        scenario = ROOT / "benches" / f"{name}.toml"
        if scenario.is_file():
            of["hosts"] = Scenario(scenario).check()["topology"]["hosts"]
    return found


def estimates() -> dict:
    """Return the estimated time and memory of the standard workloads, and the memory that a run takes.

    Neither depends on how fast or how busy the machine is: seconds are those of the machine of the tables.
    """
    found = {}
    for scenario in [ROOT / "benches" / f"{name}.toml" for name in stored()["bench"]["values"]]:
        if scenario.is_file():
            estimate = Scenario(scenario).check()["estimate"]
            (run,) = _bench(scenario.stem, repeats=1).values()
            found[scenario.stem] = {
                "seconds": estimate["seconds"] / estimate["machine_factor"],
                "memory_bytes": estimate["memory_bytes"],
                "peak_memory_bytes": run["peak_memory_bytes"],
            }
    return found


def threads() -> dict:
    """Return what two threads cost and how the work was divided."""
    alone, found = _bench(*THREADED), _bench(*THREADED, "--threads", "2")
    for name in THREADED:
        with tempfile.TemporaryDirectory() as folder:
            run = weftline.run(ROOT / "benches" / f"{name}.toml", threads=2, out=f"{folder}/run")
            keys = ("regions", "balance", "most_speedup", "crossing_share")
            found[name] |= {key: run.summary[key] for key in keys}
            found[name]["one_wall_seconds"] = alone[name]["wall_seconds"]
            found[name]["faster"] = alone[name]["wall_seconds"] / found[name]["wall_seconds"]
    return found


def scale() -> dict:
    """Return the small size of the scale study, and draw it."""
    _give("reproduce", "scale", "--quiet", "--out", str(ROOT / "out" / "experiments"))
    found: dict = {"runs": 99}
    for panel in figures.scale_panels():
        for point, of in panel.measured.items():
            found["runs"] = min(found["runs"], len(of["runs"]))
            if point.threads == 1:
                places = found.setdefault(panel.figure.name, {}).setdefault(point.line, {})
                places[point.place.replace(" ", "")] = {
                    "cpu_ns_per_hop": 1e9 * of["median"]["cpu_seconds"] / of["packet_hops"],
                    "peak_memory_bytes": of["median"]["peak_memory_bytes"],
                }
    figures.scale()
    return found


GROUPS: dict[str, tuple[str, Callable[[], dict]]] = {
    "demo": ("weftline reproduce demo", demo),
    "which": ("weftline sweep which.toml", which),
    "bench": ("weftline bench --repeats 3", bench),
    "estimates": ("weftline check, weftline bench --repeats 1", estimates),
    "threads": ("weftline bench --repeats 3 --threads 2", threads),
    "scale": ("weftline reproduce scale", scale),
}
"""What is measured, by which command."""


def _give(*arguments: str) -> None:
    if give(list(arguments)):
        raise SystemExit(f"failed: weftline {' '.join(arguments)}")


def _bench(*arguments: str, repeats: int = 3) -> dict:
    """What `weftline bench` measured, by workload: the medians of the runs."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "bench.json"
        command = [sys.executable, "-m", "weftline", "bench", "--repeats", str(repeats), *arguments]
        subprocess.run([*command, "--out", str(out)], check=True, stdout=subprocess.DEVNULL)
        document = json.loads(out.read_text("utf-8"))
    found = {}
    for of in document["workloads"]:
        keys = ("cpu_seconds", "wall_seconds", "packet_hops_per_cpu_second", "peak_memory_bytes")
        found[of["workload"]] = {"packet_hops": of["packet_hops"]} | {key: of["median"][key] for key in keys}
    return found


# How it is written.


def _demo_table(stored: Mapping) -> str:
    of = stored["demo"]
    sizes = [size for size, flows in of["fewest_flows"].items() if flows >= evidence.needed("slowdown_p95")]
    few = {size for size in sizes if evidence.few_flows("slowdown_p99", of["fewest_flows"][size])}
    head = [f"≤ {quantities.bytes_text(int(size))}" for size in sizes]
    rows = []
    for label, scheme in of["schemes"].items():
        cells = []
        for size in [*sizes, "all"]:
            p50, p99 = (_mean(scheme["slowdown"][size][p], quantities.digits) for p in ("p50", "p99"))
            cells.append(f"{p50} / {'–' if size in few else p99}")
        rows.append([label, *cells, _mean(scheme["queue_p99"], quantities.bytes_text)])
    return _table(["FCT slowdown, p50 / p99", *head, "all flows", "queue p99"], rows)


def _demo_answer(stored: Mapping) -> str:
    return "\n".join(f"- {sentence}" for sentence in stored["demo"]["answer"])


def _which_table(stored: Mapping) -> str:
    rows = stored["which"]["rows"]
    loads = list(dict.fromkeys(row["load"] for row in rows))
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    notes = judgements.Footnotes()
    cells = {}
    for row in rows:
        mark = notes.mark([judgements.Reason(*part) for part in row["reasons"]])
        cells[row["kind"], row["load"]] = f"{row['answer']}{mark}: {_mean(row, quantities.digits)}"
    head = [f"{stored['which']['answer']}?", *(f"load {load}" for load in loads)]
    body = [[kind, *(cells[kind, load] for load in loads)] for kind in kinds]
    return "\n\n".join(filter(None, [_table(head, body), notes.text().replace("\n", "\n\n")]))


def _sizes_table(stored: Mapping) -> str:
    rows = []
    for name in BY_SIZE:
        of = stored["bench"][name]
        speed, memory = of["packet_hops_per_cpu_second"] / 1e6, of["peak_memory_bytes"]
        what = _native_description(name)
        rows.append([f"{of['hosts']:,}", what, quantities.digits(speed), quantities.bytes_text(memory)])
    return _table(["hosts", "workload", "million packet-hops a CPU second", "peak memory"], rows)


def _native_description(name: str) -> str:
    known = {entry["name"]: entry["description"] for entry in json.loads(_native.workloads())}
    text = known[name].partition(". Heavy")[0]
    return f"`{name}`: {text.partition(': ')[2].rstrip('.')}" if ": " in text else f"`{name}`"


def _bench_table(stored: Mapping) -> str:
    rows = [
        [
            f"`{name}`",
            quantities.count_text(of["packet_hops"]),
            quantities.digits(of["cpu_seconds"]),
            quantities.digits(of["packet_hops_per_cpu_second"] / 1e6),
            quantities.bytes_text(of["peak_memory_bytes"]),
        ]
        for name, of in stored["bench"].items()
    ]
    return _table(["workload", "packet-hops", "CPU s", "million a CPU second", "peak memory"], rows)


def _estimates_table(stored: Mapping) -> str:
    rows = []
    for name, of in stored["estimates"].items():
        memory, peak, seconds = of["memory_bytes"], of["peak_memory_bytes"], of["seconds"]
        cpu = stored["bench"][name]["cpu_seconds"]
        texts = [quantities.bytes_text(value) for value in (memory, peak)]
        times = [quantities.digits(value) for value in (seconds, cpu)]
        ratios = [f"{memory / peak:.2f}", f"{seconds / cpu:.2f}"]
        rows.append([f"`{name}`", " / ".join(texts), ratios[0], " / ".join(times), ratios[1]])
    head = ["workload", "memory, estimate / measured", "", "CPU s, estimate / measured", ""]
    return _table(head, rows)


def _threads_table(stored: Mapping) -> str:
    rows = []
    for name, of in stored["threads"].items():
        seconds = [quantities.digits(of[key]) for key in ("one_wall_seconds", "wall_seconds")]
        rows.append([f"`{name}`", *seconds, f"{of['faster']:.2f}"])
    return _table(["workload", "1 thread, wall s", "2 threads, wall s", "times as fast"], rows)


def _regions_table(stored: Mapping) -> str:
    rows = [
        [f"`{name}`", f"{of['balance']:.2f}", f"{of['most_speedup']:.2f}", f"{of['crossing_share']:.0%}"]
        for name, of in stored["threads"].items()
    ]
    head = ["workload, two regions", "busiest over mean", "at most so much faster"]
    return _table([*head, "packet-hops between regions"], rows)


def _scale_table(figure: str, axis: str) -> Callable[[Mapping], str]:
    def table(stored: Mapping) -> str:
        of = stored["scale"][figure]
        places = list(next(iter(of.values())))
        rows = [
            [
                f"{int(place):,}",
                *(quantities.digits(points[place]["cpu_ns_per_hop"]) for points in of.values()),
                *(quantities.bytes_text(points[place]["peak_memory_bytes"]) for points in of.values()),
            ]
            for place in places
        ]
        head = [*(f"{line}, CPU ns a packet-hop" for line in of), *(f"{line}, peak memory" for line in of)]
        return _table([axis, *head], rows)

    return table


TABLES: dict[str, Callable[[Mapping], str]] = {
    "demo": _demo_table,
    "demo answer": _demo_answer,
    "which": _which_table,
    "sizes": _sizes_table,
    "bench": _bench_table,
    "estimates": _estimates_table,
    "threads": _threads_table,
    "regions": _regions_table,
    "scale hosts": _scale_table("hosts", "hosts"),
    "scale fat tree": _scale_table("fat-tree", "hosts"),
    "scale load": _scale_table("load", "load (%)"),
    "scale flows": _scale_table("flows", "flows"),
    "scale division": _scale_table("division", "flows"),
}
SPEEDS = {
    "sizes": "bench",
    "bench": "bench",
    "estimates": "bench",
    "threads": "threads",
    "scale": "scale",
}
"""The group of each table that has speeds, by the first word of its name."""


def _mean(of: Mapping | None, write: Callable[[float], str]) -> str:
    if of is None:
        return "–"
    return write(of["value"]) + (f" ±{write(of['interval'])}" if of["interval"] is not None else "")


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


# The store and the pages.


def stored() -> dict:
    """Return what is stored."""
    return json.loads(STORED.read_text("utf-8")) if STORED.exists() else {}


def values(found: Mapping) -> dict:
    """Return the values of each group, and under ``busy`` which were measured on a busy machine."""
    busy = {name: group["load"] is None or group["load"] > BUSY for name, group in found.items()}
    return {name: group["values"] for name, group in found.items()} | {"busy": busy}


def filled(text: str, of: Mapping) -> str:
    """Return a page with its tables and numbers as they are stored.

    Raises
    ------
    KeyError
        If a comment names something that is not there.
    """
    text = TABLE.sub(lambda found: f"{found[1]}\n{_shown(found[2], of)}\n\n{found[3]}", text)
    return NUMBER.sub(lambda found: f"{HOW[found[4]](number(of, found[3]))}{found[2]}", text)


def _shown(name: str, of: Mapping) -> str:
    """A table, with a sentence below it where it has speeds that were measured on a busy machine."""
    group = SPEEDS.get(name.partition(" ")[0])
    busy = group is not None and of["busy"][group]
    note = (
        "\n\nOther programs used the machine meanwhile: on idle cores these speeds are higher."
        if busy
        else ""
    )
    return TABLES[name](of) + note


def number(of: Mapping, path: str) -> float:
    """Return the number at a path such as ``bench/p8/cpu_seconds`` of the stored values."""
    found: object = of
    for key in path.split("/"):
        found = found[key]  # type: ignore[index]
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise KeyError(f"{path}: not a number")
    return found


def write(found: Mapping) -> list[Path]:
    """Write the tables and numbers of all pages again, and return the pages that changed."""
    changed = []
    for page in PAGES:
        text = page.read_text("utf-8")
        try:
            now = filled(text, values(found))
        except KeyError as missing:
            print(f"not written: {page}: not measured yet: {missing}")
            continue
        if now != text:
            page.write_text(now, "utf-8")
            changed.append(page)
    return changed


def _others() -> float:
    """CPU seconds of everything but this program and what it started, stolen time included (Linux)."""
    fields = [int(field) for field in Path("/proc/stat").read_text("ascii").split("\n", 1)[0].split()[1:9]]
    idle, wait = fields[3:5]
    own = os.times()
    return (sum(fields) - idle - wait) / os.sysconf("SC_CLK_TCK") - sum(own[:4])


def main(asked: list[str]) -> None:
    """Measure the requested groups, by default all; store them and write the pages."""
    names = [] if asked == ["--write"] else (asked or list(GROUPS))
    if unknown := [name for name in names if name not in GROUPS]:
        raise SystemExit(f"unknown: {', '.join(unknown)}; known: {', '.join(GROUPS)}, --write")
    found = stored()
    for name in names:
        print(f"measuring {name}: {GROUPS[name][0]}", flush=True)
        command, measure = GROUPS[name]
        began, others = time.monotonic(), _others()
        values = measure()
        load = (_others() - others) / (time.monotonic() - began)
        if name in ("bench", "threads", "scale") and load > BUSY:
            print(f"warning: others used {load:.2f} cores of this machine: speeds are too low", flush=True)
        cores = len(os.sched_getaffinity(0))
        about = {"command": command, "weftline": _native.version(), "cores": cores, "load": round(load, 2)}
        found[name] = {**about, "values": values}
        ordered = {name: found[name] for name in GROUPS if name in found}
        STORED.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print("\n".join(f"written: {page}" for page in write(found)) or "every number is the stored one")


if __name__ == "__main__":
    main(sys.argv[1:])
