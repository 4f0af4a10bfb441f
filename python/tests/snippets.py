"""The blocks of the documentation's pages, and what each page takes as there already.

Blocks of a page work in order in one folder. A block of TOML or Python that names its file (a first line
``# mine.toml``, or ``save this as `mine.toml` `` before it) is written. Commands of console blocks are given,
Python is run in one namespace, SQL queries the sweep before it. Pages are shortened by small scenarios,
not by leaving things out; what is left out is listed in `NOT_RUN`, with the reason.
"""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

import packet_bytes

from weftline.cli import start
from weftline.cli.main import main

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md")])

NOT_RUN = {
    r"^reproduce (?!\S*/)": "minutes of every core; test_experiments.py runs experiments in small",
    r"^bench(?! mine\.toml)": "minutes; test_bench.py has the options",
    r"^demo": "a minute of every core; `make demo` runs it, and test_engine.py a short one",
    r"^view": "stays until it is stopped; test_view.py asks it",
    r"^lab |^compare out/sim out/lab": "needs root and a kernel; tests/lab runs it",
    r"^collect .*--(listen|interface)": "stays until it is stopped; test_collect_live.py runs it",
    r"--on ray": "starts a cluster; test_ray.py does",
    r"kind=aimd|explain aimd|out/aimd": "there once the page's own changes are built: test_walks.py",
    r"drop-head|explain (shortest|ring|gossip)": "there once the page's own changes are built: test_walks.py",
    r"--help": "ends the process",
}
"""Weftline's commands that are parsed only, by what they look like, and why."""

WRONG = ("bad.toml", "greedy.toml")
"""Files of the pages that are there to show what the error says."""

OTHERS = {
    "make": "its target is looked for in the Makefile",
    "cargo": "the tests and examples that it names are looked for",
    "git": "needs a network",
    "pip": "needs a network",
    "own-weftline": "test_own_scheme.py builds and runs it",
    "python3": "makes an environment to install into",
    "sbatch": "needs Slurm; test_cluster_page.py runs the scripts",
    "ray": "test_cluster_page.py starts it",
    "export": "sets an address of the Ray that test_cluster_page.py starts",
    "kubectl": "needs Kubernetes; test_cluster_page.py looks at the file",
    "tshark": "not everywhere; test_packets.py has it read captures",
    "tcpdump": "needs an interface and its permission",
    "valgrind": "minutes, and not everywhere",
    "callgrind_annotate": "reads what valgrind wrote",
}
"""Commands that are not weftline's: not run, and why."""

ELSEWHERE = ("shell", "yaml", "dockerfile")
"""Languages of blocks that test_cluster_page.py tries."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, the paragraph before it, and the line that it begins in."""

    language: str
    text: str
    before: str
    line: int

    @property
    def file(self) -> str | None:
        """The file that a block of TOML, Python, GOAL or htsim is to be saved as, if it names one."""
        ending = {"toml": "toml", "python": "py", "text": "(?:goal|cm|topo)"}.get(self.language, "-")
        output = re.match(rf"# (\S+\.{ending})\n", self.text) or re.search(
            rf"(?:as|[Ww]rite)\s`(\S+\.{ending})`", self.before
        )
        return output[1] if output else None

    @property
    def kind(self) -> str:
        """What a TOML block is of: "scenario", "queries", "sweep", "experiment" or "network"."""
        for table, kind in (("query", "queries"), ("figure", "experiment"), ("claim", "experiment")):
            if f"[[{table}]]" in self.text:
                return kind
        if "[[axis]]" in self.text:
            return "sweep"
        return "network" if "[[link]]" in self.text else "scenario"


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
    text = page.read_text("utf-8")
    found = []
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        before = text[: match.start()]
        paragraph = before.rstrip().rpartition("\n\n")[2]
        found.append(Block(match[1], match[2], paragraph, before.count("\n") + 1))
    return found


def lines(block: Block) -> list[list[str]]:
    """Return the commands of a block, each as its words up to a pipe or a redirection."""
    if block.language not in ("console", "sh", "bash"):
        return []
    output = block.text.replace("\\\n", " ").splitlines()
    given = [
        line.removeprefix("$ ") for line in output if block.language != "console" or line.startswith("$ ")
    ]
    split = [shlex.split(line, comments=True) for line in given]
    return [
        words[: next((i for i, w in enumerate(words) if w in (">", "|", "&&")), None)]
        for words in split
        if words
    ]


def commands(block: Block) -> list[list[str]]:
    """Return weftline's commands of a block, as arguments."""
    return [words[1:] for words in lines(block) if Path(words[0]).name == "weftline"]


def is_run(arguments: list[str]) -> bool:
    """Whether a command is given, not only parsed."""
    return not any(re.search(pattern, " ".join(arguments)) for pattern in NOT_RUN)


def name_of(page: Path) -> str:
    """Return a page's path in the repository."""
    return str(page.relative_to(ROOT))


SMALL = """\
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 4

[[workload]]
kind = "poisson"
sizes = "websearch"
load = 0.5
duration = "50us"
"""
SMALL_MODEL = {"hidden": 64, "sequence": 256, "layers": 8, "seeds": 3}
"""Numbers of training jobs and of sweeps that are enough to see that they work."""
TWO_HOSTS = {
    "fat.txt": "3 1 2\n2\n0 2 100Gbps 0.001ms 0\n1 2 100Gbps 0.001ms 0\n",
    "flow.txt": "1\n0 1 3 100 1000 2.0\n",
}
LOAD = """
[[query]]
name = "load"
value = "utilisation"
aggregation = "max"
bits = 8
"""
PATH_QUERY = """\
bits = 8
hops = { expected = 5, maximal = 59 }

[[query]]
name = "path"
value = "switch-id"
aggregation = "path"
bits = 8
"""


def completed(block: Block) -> str:
    """Return a part of a scenario with what it lacks, so that it can be checked."""
    text = block.text
    if "[topology]" not in text:
        base = SMALL.partition("\n\n")[0]
        if "s0->s1" in text:
            base = '[topology]\nkind = "dumbbell"\nleft = 10\nright = 10'
        elif "senders = 60" in text or "host1024" in text:
            base = '[topology]\nkind = "leaf-spine"\nleaves = 32\nhosts_per_leaf = 32\nextra_hosts = 1'
        text = f"{base}\n\n{text}"
    if "[[workload]]" not in text:
        text += "\n[[workload]]" + SMALL.partition("[[workload]]")[2]
    return text


def shorter(text: str) -> str:
    """Return a scenario with 100 us of arrivals, or a small model, which is enough to see that it works."""
    for key, largest in SMALL_MODEL.items():
        text = re.sub(
            rf"^{key} = (\d+)$",
            lambda found, key=key, largest=largest: f"{key} = {min(int(found[1]), largest)}",
            text,
            flags=re.M,
        )
    return re.sub(r'^("workload\.0\.duration"|duration) = "\d+ms"', r'\1 = "100us"', text, flags=re.M)


def prepare(name: str) -> None:
    """Put into the current folder what a page takes as there already."""
    for file, text in {"mine.toml": SMALL, **TWO_HOSTS}.items():
        Path(file).write_text(text)
    if name in ("README.md", "docs/index.md"):
        Path("mine.toml").unlink()  # the page writes it
    if name == "docs/figures.md":
        start.write("leaf-spine", "leaf-spine.toml", schema=False)
    if name == "docs/results.md":
        scenario = start.template("leaf-spine").files["leaf-spine.toml"].replace('"2ms"', '"100us"')
        Path("mine.toml").write_text(scenario)
        assert main(["run", "mine.toml", "--out", "out/mine", "--quiet"]) == 0
    if name == "docs/cluster.md":
        Path("which.toml").write_text('scenario = "mine.toml"\nseeds = 2\n')
    if name == "docs/sweeps.md":
        page = blocks(ROOT / "docs" / "adding-a-controller.md")
        Path("aimd.py").write_text(next(block.text for block in page if block.file == "aimd.py"))
    if name == "docs/threads.md":
        Path("benches").mkdir()
        large = (ROOT / "benches" / "fat320-hpcc.toml").read_text("utf-8")
        short, changed = re.subn(r"^duration = .*$", 'duration = "10us"', large, flags=re.M)
        assert changed == 1
        Path("benches/fat320-hpcc.toml").write_text(short)
    if name == "docs/pint/paths.md":
        Path("queries.toml").write_text(PATH_QUERY)
        assert main(["pint", "plan", "queries.toml", "--out", "plan.toml"]) == 0
        shutil.copy(ROOT / "experiments" / "pint" / "fig10" / "kentucky-datalink.gml", "network.gml")
    if name == "docs/packets.md":
        Path("capture.pcap").write_bytes(packet_bytes.classic([packet_bytes.segment(0, 1, 100)]))
        for day in ("monday", "tuesday"):
            Path(f"{day}.csv").write_text(packet_bytes.NFDUMP)
        Path("hosts.csv").write_text("10.0.0.0/30,0\n10.0.0.2,1\n")
    if name == "docs/collect.md":
        packets = [(10**9, packet_bytes.int_packet([101, 102, 103]))]
        written = packet_bytes.classic(packets, nanoseconds=True, link=101)
        for file in ("capture.pcap", "tuesday.pcapng"):
            Path(file).write_bytes(written)
        Path("monday.pcapng.gz").write_bytes(gzip.compress(written))
    if name == "docs/telemetry.md":
        files = start.template("path-tracing").files
        Path("queries.toml").write_text(
            files["path-queries.toml"].replace("bits = 8\nhops", "bits = 16\nhops") + LOAD
        )
        text = files["path-tracing.toml"].replace("path-queries.toml", "queries.toml")
        Path("scenario.toml").write_text(text.replace('"1MB"', '"20KB"'))
