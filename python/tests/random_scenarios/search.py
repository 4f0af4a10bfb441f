"""Tries the scenarios that failed before, then draws new ones, on several processes at once."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import drawing
import judging
import shrinking
from judging import Failure, Judge

from weftline import _native
from weftline.scenarios import to_toml

KEPT = judging.ROOT / "trials" / "random"
"""Scenarios that failed once: the first comment of each states what was wrong."""
ALIKE = 3
"""As many failures of one name are made smaller and kept; more would say nothing new."""


@dataclass
class Found:
    """What a search found."""

    failures: list[tuple[str, Failure]] = field(default_factory=list)
    """Scenario (the seed of its draw, or its file) and what is wrong with it."""
    judged: int = 0
    again: int = 0
    """Scenarios of earlier failures that were tried."""
    refused: Counter[str] = field(default_factory=Counter)
    """Draws that came to nothing, by the last refusal."""
    repaired: int = 0
    left_out: set[str] = field(default_factory=set)
    longer: int = 0
    run_seconds: float = 0.0
    hops: int = 0
    seconds: float = 0.0

    def report(self) -> str:
        """Return the result for people."""
        refused = sum(self.refused.values())
        share = refused / max(self.judged + refused, 1)
        lines = [
            f"{self.judged} scenarios drawn and {self.again} kept ones tried in {self.seconds:.0f} s: "
            f"{len(self.failures)} failed",
            f"draws refused: {refused} ({share:.1%}); keys drawn again or left out before: {self.repaired}",
            *(f"  {count} x {reason}" for reason, count in self.refused.most_common(8)),
            f"{self.hops / 1e6:.1f} million packet-hops in {self.run_seconds:.1f} s of CPU time",
            f"more than ten times the estimate because timeouts made the run last longer: {self.longer}",
            f"keys that are never drawn: {', '.join(sorted(self.left_out | set(drawing.NEVER)))}",
        ]
        for name, count in Counter(failure.name for _, failure in self.failures).most_common():
            lines.append(f"FAILED {count} x {name}")
        return "\n".join(lines)


def search(
    n: int, seed: str, processes: int, shrink_seconds: float, kept: Path | None, say: Callable[[str], None]
) -> Found:
    """Judge ``n`` scenarios of a seed after those of ``kept``; make new failures smaller and keep them."""
    found, lock, began = Found(), threading.Lock(), time.monotonic()
    names: Counter[str] = Counter()
    local = threading.local()
    judges: list[Judge] = []

    def judge_of_thread(folder: str) -> Judge:
        if not hasattr(local, "judge"):
            local.judge = Judge(Path(folder) / f"{threading.get_ident()}")
            judges.append(local.judge)
        return local.judge

    def failed(where: str, failure: Failure) -> bool:
        with lock:
            found.failures.append((where, failure))
            names[failure.name] += 1
            say(f"{where}: {failure.kind}: {failure.text}")
            return names[failure.name] <= ALIKE

    def again(folder: str, path: Path) -> None:
        failure = judge_of_thread(folder).judge(path.read_text())
        found.again += 1
        if failure:
            failed(path.name, failure)

    def one(folder: str, number: int) -> None:
        judge, where = judge_of_thread(folder), f"{seed}/{number}"
        draws = drawings(judge)
        try:
            document, _ = draws.scenario(where)
        except drawing.RefusedError:
            with lock:
                found.refused[draws.reasons.most_common(1)[0][0]] += 1
            return
        except judging.GoneError as gone:
            failed(where, Failure("check", str(gone)))
            return
        finally:
            with lock:
                found.repaired += draws.repaired
                found.left_out |= draws.left_out
        failure = judge.judge(to_toml(document))
        with lock:
            found.judged += 1
            if found.judged % 100 == 0:
                say(f"{found.judged} judged, {len(found.failures)} failed, {time.monotonic() - began:.0f} s")
        if failure and failed(where, failure) and kept:
            keep(document, failure, judge, where, shrink_seconds, kept)

    with tempfile.TemporaryDirectory(prefix="weftline-random-") as folder:
        with ThreadPoolExecutor(processes) as pool:
            paths = sorted(kept.glob("*.toml")) if kept else []
            list(pool.map(lambda path: again(folder, path), paths))
            list(pool.map(lambda number: one(folder, number), range(n)))
        for judge in judges:
            found.run_seconds += judge.seconds
            found.hops += judge.hops
            found.longer += judge.longer
            judge.close()
    found.seconds = time.monotonic() - began
    return found


def drawings(judge: Judge) -> drawing.Drawing:
    """What draws scenarios, checked by the judge's process."""
    return drawing.Drawing(
        SCHEMA,
        explained,
        lambda document: judge.native.ask("check", to_toml(document)),
        lambda document: judge.native.ask("network", to_toml(document)),
    )


def keep(document: dict, failure: Failure, judge: Judge, where: str, seconds: float, folder: Path) -> Path:
    """Make a failing scenario smaller and write it, with what is wrong as its first comment."""

    def fails(tried: dict) -> bool:
        again = judge.judge(to_toml(tried))
        return again is not None and again.name == failure.name

    text = to_toml(shrinking.shrunk(document, fails, seconds))
    slug = re.sub(r"[^a-z0-9]+", "-", failure.name.lower()).strip("-")[:60]
    path = folder / f"{slug}-{hashlib.sha256(text.encode()).hexdigest()[:6]}.toml"
    said = "\n".join(f"# {line}" for line in failure.text.splitlines())
    path.write_text(f"# {failure.kind} (draw {where}):\n{said}\n{text}")
    return path


def explained(name: str) -> dict:
    """What `weftline explain` knows of a name."""
    return json.loads(_native.explain(name))


SCHEMA = json.loads(_native.schema())
