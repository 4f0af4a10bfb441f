"""Which runs may be averaged as seeds of one experiment, and which runs met the same traffic.

Runs are pooled if and only if

- their resolved scenarios are equal, except for the keys in `WITHOUT_EFFECT`; files and controllers in Python
  count by their content;
- the same build of weftline made them;
- all of them are done;
- their seeds differ. The same seed twice counts once.

What was not recorded is equal to nothing: a run from before weftline recorded builds is pooled with no other.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weftline import provenance, scenarios
from weftline.errors import Conflict
from weftline.measures import flow_rows
from weftline.runs import Run

KeyPath = tuple[str, ...]
"""Path of a value in a scenario: ``("workload", "0", "load")``."""

WITHOUT_EFFECT: Mapping[str, str] = {
    "name": "a word for people: random streams start from the seed and their purpose alone",
    "seed": "what runs are pooled over",
    "run.threads": "the order of events is a property of the model, whatever the number of threads",
    "run.memory": "it can only end a run early, and then the run is not done",
    "measure": "measures read the network between events and change nothing in it",
}
"""Keys and tables that change no bit of what flows do, each with the reason why it does not."""
MAX_NAMED = 6
"""Labels and keys that a note lists."""
WITH_EFFECT = frozenset({"measure.ideal"})
"""Keys below those that count after all: the ideal time of a flow is in its row."""

BUILD: KeyPath = ("build",)
VERSION: KeyPath = ("version",)
ENGINE: KeyPath = ("engine",)
"""What carried the packets, where it is not the simulator: runs of one seed are then repeats, not copies."""
LAWS = "controllers"
"""First part of the path of the code of a controller in Python."""


@dataclass(frozen=True)
class Unknown:
    """A value that a run does not record: equal to that of the same folder alone."""

    folder: str


Facts = dict[KeyPath, object]
"""What a run is, by path: each value as JSON, or `Unknown`."""


def facts_of(run: Run) -> Facts:
    """Return everything that has to be equal for two runs to differ in the seed alone."""
    found = scenario_facts(run)
    found[VERSION] = _version(run)
    found[BUILD] = _provenance(run).get("build") or Unknown(folder_of(run))
    if engine := run.summary.get("engine"):
        found[ENGINE] = json.dumps(engine)
    return found


def scenario_facts(run: Run) -> Facts:
    """Return the resolved scenario by path, files and code by content, without what has no effect."""
    made_of = _provenance(run)
    files, laws = (made_of.get(key) for key in ("files", "controllers"))
    found: Facts = {}
    for path, value in scenarios.flat(run.scenario):
        if not _counts(path):
            continue
        found[path] = json.dumps(value, ensure_ascii=False, default=str)
        if path[-1] in scenarios.FILE_KEYS and isinstance(value, str):
            found[path] = _content(path, value, files, run) or found[path]
        if path[-1] == "kind" and isinstance(value, str):
            name = value.removeprefix("python:")
            digest = laws.get(name) if isinstance(laws, dict) else None
            # Folders of earlier builds may name one without the prefix.
            if digest or name != value:
                found[(LAWS, name)] = digest or Unknown(folder_of(run))
    return found


def seed_of(run: Run) -> int:
    """Return the seed of a run."""
    return int(run.scenario.get("seed", run.summary.get("seed")) or 0)


def pairs_by_seed(runs: Iterable[Run], others: Iterable[Run]) -> list[tuple[Run, Run]]:
    """Return each run with the one of the others that has its seed, where there is one."""
    by_seed = {seed_of(run): run for run in others}
    return [(run, by_seed[seed_of(run)]) for run in runs if seed_of(run) in by_seed]


def status_of(run: Run) -> str:
    """Return how a run ended: ``"done"``, ``"interrupted"``, ...; "unknown" if it does not say."""
    return str(run.summary.get("status") or "unknown")


def folder_of(run: Run) -> str:
    """Return the folder of a run as one name, however it was written."""
    return str(Path(run.out).absolute())


@dataclass
class Pool:
    """Runs that differ in the seed alone, or one run that is not done."""

    runs: list[Run]
    facts: Facts
    status: str
    warnings: list[str] = field(default_factory=list)

    @property
    def fixed(self) -> tuple[Any, ...]:
        """What tells it from other pools, without how it ended."""
        return tuple(sorted(self.facts.items(), key=lambda item: item[0]))


def pools(runs: Sequence[Run], *, vouched: bool = False) -> list[Pool]:
    """Return runs in pools, in the order of their first runs.

    Parameters
    ----------
    vouched : bool
        The store vouches that these runs have the same scenario, files and version; a build that is not
        recorded is taken to be that of the others that do not record it, with a warning.
    """
    found: dict[tuple[Any, ...], Pool] = {}
    for run in runs:
        facts, status = facts_of(run), status_of(run)
        if vouched:
            facts = {p: "" if isinstance(v, Unknown) else v for p, v in facts.items()}
        one = Pool([run], facts, status)
        key: tuple[Any, ...] = one.fixed
        if status != "done":
            key += (status, seed_of(run), run.summary.get("end_ns"), run.summary.get("fingerprint"))
        known = found.setdefault(key, one)
        if known is not one:
            _add(known, run)
    result = list(found.values())
    _say_what_is_unknown(result)
    for pool in result:
        if vouched and len(pool.runs) > 1 and not pool.facts[BUILD]:
            pool.warnings.append("its runs do not record which build made them; they are taken to be of one")
        pool.warnings += _measured_otherwise(pool.runs)
    return result


def _add(pool: Pool, run: Run) -> None:
    """Put a run into its pool; of one seed, the first run counts."""
    seed = seed_of(run)
    same = next((one for one in pool.runs if seed_of(one) == seed), None)
    if same is None or (ENGINE in pool.facts and folder_of(same) != folder_of(run)):
        pool.runs.append(run)
        return
    pool.warnings.append(_twice(same, run, seed))


def shortened(names: Sequence[str]) -> str:
    """Return names for a sentence, the first ones of many."""
    more = len(names) - MAX_NAMED
    return "; ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")


def same_results(named: Iterable[tuple[str, Iterable[Run]]]) -> list[str]:
    """Return ``["a, b and c"]``: what has the same fingerprints under the same seeds, so moved no packet."""
    groups: dict[tuple[tuple[int, Any], ...], list[str]] = {}
    for name, runs in named:
        prints = {seed_of(run): run.summary.get("fingerprint") for run in runs}
        if prints and all(prints.values()):
            groups.setdefault(tuple(sorted(prints.items())), []).append(name)
    return [f"{', '.join(names[:-1])} and {names[-1]}" for names in groups.values() if len(names) > 1]


def are_same_bits(runs: Iterable[Run], others: Iterable[Run]) -> bool:
    """Return whether two groups have the same fingerprints under all seeds that both have, at least one."""
    pairs = pairs_by_seed(runs, others)
    prints = [[run.summary.get("fingerprint") for run in pair] for pair in pairs]
    return bool(prints) and all(a == b and a for a, b in prints)


def key_of(run: Run) -> Hashable:
    """Return what a run is: runs with equal keys carried the same flows, bit by bit.

    Fingerprints differ where a switch drew other marks that no sender reads; what counts is when flows ended.
    A run without either, and one of the lab, is itself alone.
    """
    of = run.summary
    if of.get("engine"):
        return id(run)
    if of.get("slowdown") and of.get("fingerprint"):
        numbers = (of.get("end_ns"), of.get("packet_hops"), of.get("flows_done"), of.get("drops"))
        return (*numbers, json.dumps(of["slowdown"], sort_keys=True))
    return of.get("fingerprint") or id(run)


def keys_of(runs: Iterable[Run]) -> dict[int, Hashable]:
    """Return what the run of each seed is."""
    return {seed_of(run): key_of(run) for run in runs}


def same_runs_text(runs: Sequence[Run]) -> str:
    """Return that seeds of one scenario gave the same flows, "" if all of them gave different ones."""
    distinct = len(set(map(key_of, runs)))
    if distinct == len(runs):
        return ""
    if distinct == 1:
        return (
            f"all {len(runs)} seeds gave the same flows, bit by bit: a metric that is the same under all of "
            "them is one observation and has no interval"
        )
    return f"{len(runs)} seeds gave {distinct} different runs: equal ones are one observation in intervals"


def same_settings(named: Iterable[tuple[str, Iterable[Run]]]) -> list[str]:
    """Return ``["a, b and c"]``: what has the same settings, so that its runs are the same ones."""
    groups: dict[tuple[tuple[int, str], ...], list[str]] = {}
    for name, runs in named:
        folders = tuple(sorted((seed_of(run), folder_of(run)) for run in runs))
        groups.setdefault(folders, []).append(name)
    return [
        f"{', '.join(names[:-1])} and {names[-1]}"
        for folders, names in groups.items()
        if folders and len(names) > 1
    ]


def alike_texts(named: Sequence[tuple[str, Iterable[Run]]]) -> list[str]:
    """Return sentences on what is compared and has the same settings, or the same results."""
    settings = same_settings(named)
    found = [f"{names} are the same run: what differs in their settings has no effect" for names in settings]
    return found + [
        f"{names} have the same results under every seed, flows and ports to the bit: what sets them apart "
        "moved no packet"
        for names in same_results(named)
        if names not in settings
    ]


def _twice(first: Run, second: Run, seed: int) -> str:
    prints = [run.summary.get("fingerprint") for run in (first, second)]
    if folder_of(first) == folder_of(second):
        return f"{first.out} is given twice and counts once"
    if prints[0] == prints[1]:
        return f"{first.out} and {second.out} are the same run with the same seed {seed}: it counts once"
    return Conflict(
        f"{first.out} and {second.out} have the same scenario, seed {seed} and build, but different "
        f"fingerprints ({prints[0] or 'none'}, {prints[1] or 'none'}): either weftline is not deterministic "
        f"here, or a file was changed. Only {first.out} counts; run both again, and report it if they still "
        "differ"
    )


def _say_what_is_unknown(found: Sequence[Pool]) -> None:
    """Note where only what is not recorded keeps pools apart."""
    alike: dict[tuple[Any, ...], list[Pool]] = {}
    for pool in found:
        if pool.status == "done":
            sure = {p: v for p, v in pool.facts.items() if p != BUILD and not isinstance(v, Unknown)}
            alike.setdefault(tuple(sorted(sure.items())), []).append(pool)
    for pools_ in alike.values():
        if len(pools_) < 2:
            continue
        for pool in pools_:
            missing = [setting_path(path) for path, v in pool.facts.items() if isinstance(v, Unknown)]
            if missing:
                pool.warnings.append(
                    f"{pool.runs[0].out} does not record {_what(missing)}, so it is not pooled with runs "
                    "that are otherwise alike; run it again to pool it"
                )


def _what(missing: Sequence[str]) -> str:
    parts = [
        "which build made it" if name == "build" else f"the content of what {name} names" for name in missing
    ]
    return " and ".join(parts)


def mixed_builds(runs: Iterable[Run]) -> list[str]:
    """Return a sentence on runs that several builds made, if they did."""
    builds = {(_version(run), str(_provenance(run).get("build") or "not recorded")[:12]) for run in runs}
    if len(builds) < 2:
        return []
    text = "; ".join(f"{version}, build {build}" for version, build in sorted(builds))
    return [
        f"{len(builds)} builds of weftline made these runs ({text}): a difference may be one between builds"
    ]


def of_other_builds(runs: Iterable[Run]) -> list[str]:
    """Return a sentence on runs of a store that another build made than the one at work, if there are any.

    A store finds runs by scenario, files and version: two builds of one version share it.
    """
    here, all_runs = provenance.build(), list(runs)
    others = [found for run in all_runs if (found := _provenance(run).get("build")) and found != here]
    if not here or not others:
        return []
    names = ", ".join(sorted({build[:12] for build in others}))
    return [
        f"{len(others)} of {len(all_runs)} runs are stored results of another build of this version "
        f"({names}; at work: {here}): to run them again, name another store (--out)"
    ]


def _measured_otherwise(runs: Sequence[Run]) -> list[str]:
    """Say which measures are not the same in pooled runs."""
    parts = [run.scenario.get("measure", {}) for run in runs]
    keys = dict.fromkeys(key for one in parts for key in one)
    differing = [f"measure.{key}" for key in keys if any(one.get(key) != parts[0].get(key) for one in parts)]
    if not differing:
        return []
    text = ", ".join(differing)
    return [
        f"its runs did not measure the same ({text}): a mean is over the runs that have the value, and one "
        "of what was measured in two ways mixes them, so it is neither ranked nor held against a bound"
    ]


def traffic_of(run: Run) -> Facts:
    """Return what decides which flows a run offers under a seed; where it is equal, the flows are the same.

    The network and the workloads with the content of their files, without what carries the flows; when the
    run ends; and the rules by which random numbers are drawn. Where a load counts headers, the packets that
    carry it count too. Where neither run records its build, the version stands for it. Where flows wait for
    flows, as in a closed loop, the draws are the same and the moments may not be.
    """
    facts = scenario_facts(run)
    framed = any(path[-1] == "load_counts" and value != '"payload"' for path, value in facts.items())
    found = {path: value for path, value in facts.items() if _is_traffic(path, framed=framed)}
    found[VERSION] = _version(run)
    build = _provenance(run).get("build")
    if build:
        found[BUILD] = build
    return found


_FRAMES = frozenset({"kind", "mtu", "header", "ack_header", "ack_least"})


def _is_traffic(path: KeyPath, *, framed: bool) -> bool:
    if path[0] == "workload":
        return path[2] not in ("transport", "controller") or (framed and path[-1] in _FRAMES)
    if path[0] in ("topology", "compat") or path == ("run", "until"):
        return True
    return framed and (path[0] == "telemetry" or (path[0] == "transport" and path[-1] in _FRAMES))


def same_traffic(one: Sequence[Run], other: Sequence[Run]) -> bool:
    """Return whether two lines of runs met the same flows under each seed that both have.

    Runs with the same fingerprint did, whatever their settings say, and runs whose tables have the same
    flows, such as of networks of which one has a faster link.
    """
    return all(
        (traffic_of(a) == traffic_of(b) and _as_many_flows(a, b))
        or are_same_bits([a], [b])
        or are_same_flows(a, b)
        for a, b in pairs_by_seed(one, other)
    )


MAX_COMPARED = 2_000_000
"""Runs with more flows are not compared flow by flow."""


def are_same_flows(a: Run, b: Run) -> bool:
    """Whether the tables of two finished runs have the same flows."""
    counts = [run.summary.get("flows") for run in (a, b) if status_of(run) == "done"]
    tables = [(run.out / "flows.parquet").exists() for run in (a, b)]
    if (
        len(counts) < 2
        or counts[0] != counts[1]
        or not 0 < (counts[0] or 0) <= MAX_COMPARED
        or not all(tables)
        or _without_rows(a) != _without_rows(b)
    ):
        return False
    return flow_rows.offered(a) == flow_rows.offered(b)


def _without_rows(run: Run) -> list[Any]:
    """Return the workloads of a run whose messages are not in its table of flows."""
    return [one for one in run.scenario.get("workload") or [] if one.get("messages") is False]


def _as_many_flows(a: Run, b: Run) -> bool:
    """Whether the same number of flows was offered, if both runs record it."""
    counts = [run.summary.get("flows") for run in (a, b) if status_of(run) == "done"]
    return len(counts) < 2 or None in counts or counts[0] == counts[1]


def setting_path(path: KeyPath) -> str:
    """Return a path as people write it."""
    return ".".join(path)


def _counts(path: KeyPath) -> bool:
    names = [setting_path(path[: i + 1]) for i in range(len(path))]
    if any(name in WITH_EFFECT for name in names):
        return True
    return not any(name in WITHOUT_EFFECT for name in names)


def _content(path: KeyPath, text: str, files: object, run: Run) -> object | None:
    """Return what stands for a file: its digest, `Unknown`; None if the text names no file."""
    if not isinstance(files, dict):
        # Names of files are absolute paths in a resolved scenario; any other value is a word.
        return Unknown(folder_of(run)) if Path(text).is_absolute() else None
    key = setting_path(path)
    if key not in files:
        return None
    return f"sha256 {files[key]}" if files[key] else Unknown(folder_of(run))


def _version(run: Run) -> str:
    versions = run.summary.get("versions")
    return str(versions.get("weftline", "")) if isinstance(versions, dict) else ""


def given(run: Run) -> list[str] | None:
    """Return the paths of the keys that were set for a run, None if it does not record them."""
    found = _provenance(run).get("given")
    return [str(path) for path in found] if isinstance(found, list) else None


def _provenance(run: Run) -> dict[str, Any]:
    found = run.summary.get("provenance")
    return found if isinstance(found, dict) else {}
