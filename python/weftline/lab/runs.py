"""One run of the lab: simulate for the flows, build, start, wait, write the folder, remove everything."""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import select
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weftline import scenarios
from weftline.errors import InputError, RunFailed
from weftline.lab import (
    captured,
    cores,
    dctcp,
    doctor,
    engine_hosts,
    engine_ports,
    internet,
    lateness,
    plan,
    stamps,
)
from weftline.lab import priority as priorities
from weftline.lab import programs as switch_programs
from weftline.lab.network import Network, folder_for_a_while, inside
from weftline.lab.processes import Processes
from weftline.lab.queues import Counters, Sampler
from weftline.runs import Run
from weftline.scenario import LOCK_FILE, Scenario, status_of

LEAD_S = 0.3
"""Time zero is this long after all processes are ready."""
LONGEST_SIMULATION = 300.0
PATIENCE_S = 10.0
"""A run ends when no flow ended for this long, or for four times the simulated duration if that is more."""
FEWER = "choose fewer flows at a time, or raise [scale] by"
OTHER_FILES = 30
"""Files that an agent has open in addition to its connections."""


def scenario_of(file: str, changes: list[str], seed: int | None) -> Scenario:
    """Return a scenario whose `[scale] by` is a number: "auto" is measured here.

    Raises
    ------
    InputError
        If it cannot be run as it is written.
    """
    source = scenarios.load(file)
    settings = scenarios.parse_sets(changes)
    if _asked_scale(source.text, settings) != "auto":
        return Scenario.of(source, settings, seed=seed)
    fast = Scenario.of(source, [*settings, ("scale.by", "1")], seed=seed)
    delays = [link["delay_ns"] for link in fast.network()["links"] if link["delay_ns"]]
    with lateness.awake():
        late = lateness.measure().quantile_ns(0.99) or 1
    cost = fast.estimate()
    hops = cost["packet_hops"] / max(cost["end_ns"] / 1e9, 1e-9)
    by = lateness.scale_for(min(delays) if delays else None, late, hops)
    print(
        f"[scale] by = {by}: processes of this machine run {late / 1e6:g} ms late (p99), and {hops:.3g} "
        "packet-hops "
        f"a second would become {hops / by:.3g}",
        file=sys.stderr,
    )
    return Scenario.of(source, [*settings, ("scale.by", str(by))], seed=seed)


def _asked_scale(text: str, settings: list[tuple[str, str]]) -> object:
    import tomllib

    with contextlib.suppress(ValueError):
        asked: object = tomllib.loads(text).get("scale", {}).get("by", 1)
        return next((value.strip('"') for path, value in reversed(settings) if path == "scale.by"), asked)
    return 1


def planned(
    scenario: Scenario,
    ports: engine_ports.Ports = "auto",
    hosts: engine_hosts.Hosts = "auto",
    *,
    ip: int | None = None,
    traced: bool = False,
) -> tuple[plan.Plan, Run]:
    """Return the plan of a scenario and the simulated run that its flows are from.

    `ports`: whose ports switches have; `hosts`: whose transports hosts have; `ip`: 4 or 6, None: what
    `traced` needs, else 4; `traced`: packets of flows carry the kernel's IOAM.

    Raises
    ------
    InputError
        With everything for which the lab cannot run it; nothing was changed then.
    """
    kernel = doctor.congestion_controls()
    own_hosts = engine_hosts.wanted(scenario.values, hosts)
    engine = engine_ports.wanted(scenario.values, ports, hosts=own_hosts)
    version = internet.chosen(ip, traced=traced)
    name = scenario.source.file
    wrong = plan.problems(scenario.values, kernel, engine=engine, hosts=own_hosts, ip=version, traced=traced)
    if wrong:
        raise InputError("\n".join(f"{name}: {text}" for text in wrong))
    doctor.require(*([doctor.IPV6] if version == 6 else []), *([doctor.IOAM] if traced else []))
    seconds = scenario.estimate()["seconds"]
    if seconds > LONGEST_SIMULATION:
        raise InputError(
            f"{name}: the simulated run, which gives the flows, would take {seconds:.0f} s: choose fewer or "
            "shorter flows, or an end (run.until)"
        )
    with folder_for_a_while() as folder:
        simulated = scenario.start(out=folder / "run", force=True, sync=False)
        if simulated.summary.get("jobs"):
            kinds = sorted({str(one.get("kind")) for one in scenario.values.get("workload", [])})
            raise InputError(
                f"{name}: workload.kind ({', '.join(kinds)}): the lab plays flows that start at given times, "
                "not those that start when others end, as steps of a job do: choose others, such as "
                '"flows" or "poisson"'
            )
        flows = _rows(simulated.flows)
        _ = simulated.scenario
    try:
        if not own_hosts:
            _check_files(flows)
        made = plan.make(scenario, kernel, flows, engine=engine, hosts=own_hosts, ip=version, traced=traced)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    if links := captured.asked(scenario, made):
        made.captured = links
        made.differs += links.differs()
    return made, simulated


def _check_files(flows: list[dict[str, Any]]) -> None:
    """Raise InputError if a host has more connections at a time than a process may have files open."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    changes = [
        (at, step, host)
        for flow in flows
        for host in {flow["src"], flow["dst"]}
        for at, step in ((flow["start_ns"], 1), (flow["finish_ns"] or math.inf, -1))
    ]
    open_now: dict[int, int] = {}
    for _, step, host in sorted(changes):
        open_now[host] = open_now.get(host, 0) + step
        if open_now[host] + OTHER_FILES > limit != resource.RLIM_INFINITY:
            raise InputError(
                f"host {host} has more than {limit - OTHER_FILES} flows at a time, and a process of this "
                f"user may have {limit} files open (ulimit -Hn): {FEWER}"
            )


def _rows(table: Any) -> list[dict[str, Any]]:
    import pyarrow

    return pyarrow.table(table).to_pylist()


@dataclass
class Outcome:
    """What a run of the lab measured."""

    zero_ns: int
    flows: dict[int, dict[str, Any]]
    queues: list[tuple[int, str, int]]
    counters: dict[str, Counters]
    relay: dict[str, Any]
    start_lateness: lateness.Histogram
    pressure: float | None
    status: str
    seconds: float
    ended_ns: int = 0
    """When measuring ended, since zero."""
    missed_samples: int = 0
    programs: switch_programs.Programs | None = None
    companions: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What the processes next to switches printed at their ends."""
    ports: dict[stamps.Ends, int] = field(default_factory=dict)
    """Flows by their ends."""
    ports_used_twice: int = 0
    plain: set[int] = field(default_factory=set)
    """Flows of MPTCP with which the kernel went back to plain TCP."""
    waited: lateness.Histogram = field(default_factory=lateness.Histogram)
    """How late a process that only sleeps woke, at the priority of the agents."""
    busy: cores.Busy = field(default_factory=cores.Busy)
    """How busy cores were while flows ran."""
    priority: str = priorities.NORMAL
    """The lowest that a process of the run had."""
    awake: bool = False
    """The cores of the machine were kept awake."""
    lost_inside: dict[str, int] = field(default_factory=dict)
    """Packets that switches received and lost, at no port."""
    clock_step_ns: int = 0
    """By how much the time of day was set meanwhile."""
    goodput: list[tuple[int, int, int]] = field(default_factory=list)
    """Time since zero, flow, bytes acknowledged until then."""
    notes: list[str] = field(default_factory=list)
    of_hosts: dict[str, Any] = field(default_factory=dict)
    """What the process of the engine's hosts counted, empty without one."""
    dctcp: dict[str, Any] = field(default_factory=dict)
    """What the programs of DCTCP wrote down, empty without them."""
    captures: dict[str, bytes] = field(default_factory=dict)
    """What arrived at each node that was watched, and what its process counted."""
    capture_reports: dict[str, dict[str, Any]] = field(default_factory=dict)


@contextlib.contextmanager
def up(made: plan.Plan) -> Iterator[Network]:
    """Have the network of a plan for a while; it is removed however the block ends."""
    network = Network(made)
    network.build()
    try:
        with lateness.awake() as network.awake:
            yield network
    finally:
        network.remove()


def ends_of(report: dict[str, Any], flow: dict[str, Any], made: plan.Plan) -> list[stamps.Ends]:
    """Return the ends of a flow that its agent reported: its port, or address and port of new subflows."""
    if "port" in report:
        return [(flow["src"], 0, report["port"], flow["dst"])]
    source = [node for node in made.nodes if node.is_host][flow["src"]]
    addresses = [source.address, *source.aliases]
    return [
        (flow["src"], addresses.index(address), port, flow["dst"])
        for address, port in report["subflows"]
        if address in addresses
    ]


def programs_of(network: Network) -> switch_programs.Programs | None:
    """Return the programs that the switches of a network need, not started yet."""
    made = network.plan
    needs = [one for one in (made.stamping, made.balancing, *made.at_ports) if one]
    loads = [load for one in needs for load in one.loads(network)]
    return switch_programs.Programs(network, loads) if loads else None


def carry(
    network: Network,
    simulated: Run,
    *,
    host_task: str = "",
    priority: priorities.Priority = "auto",
) -> Outcome:
    """Run the flows in a network that exists; `host_task`: of the engine's hosts, if it has them."""
    made = network.plan
    processes = Processes(network, host_task=host_task, priority=priority)
    sampler, looks = Sampler(network, made.queue_every_ns), cores.Looks()
    programs = programs_of(network)
    done: dict[int, dict[str, Any]] = {}
    flows = {flow["flow_id"]: flow for flow in made.flows}
    ports: dict[stamps.Ends, int] = {}
    twice = 0
    late = lateness.Histogram()
    goodput: list[tuple[int, int, int]] = []
    plain: set[int] = set()
    status, highest = "done", lateness.pressure()
    begun, clocks = time.monotonic(), _clocks_apart_ns()
    unfinished: dict[int, dict[str, Any]] = {}

    def take(one: dict[str, Any]) -> bool:
        """Note what an agent printed; return whether it is the end of a flow."""
        nonlocal twice
        if "port" in one or "subflows" in one:
            for key in ends_of(one, flows[one["flow"]], made):
                twice += ports.get(key, one["flow"]) != one["flow"]
                ports[key] = one["flow"]
        elif "plain" in one:
            plain.add(one["flow"])
        elif "acknowledged" in one:
            goodput.extend((one["at_ns"] - zero, *each) for each in one["acknowledged"])
        else:
            late.add(one["late_ns"])
            finish = one["finish_ns"]
            if until and finish and finish > until:
                one["finish_ns"] = None
            ended = bool(one["finish_ns"] or one["wrong"])
            (done if ended else unfinished)[one["flow"]] = one
            return ended
        return False

    try:
        if programs:
            programs.start()
            assert programs.process is not None
            processes.give(programs.process, priorities.SWITCHES)
        processes.start()
        zero = time.time_ns() + int(LEAD_S * 1e9)
        processes.begin(zero)
        sampler.start(zero)
        looks.start(zero)
        takes = (simulated.summary.get("end_ns") or 0) / 1e9
        patience = max(PATIENCE_S, 4 * takes)
        last = time.monotonic() + LEAD_S + max((flow["start_ns"] for flow in made.flows), default=0) / 1e9
        until = zero + made.until_ns if made.until_ns else None
        outputs = {agent.stdout.fileno(): name for name, agent in processes.agents.items() if agent.stdout}
        unread = dict.fromkeys(outputs, b"")
        # As in the simulator: until the end that the scenario names, whenever the flows end.
        while until or len(done) < len(made.flows):
            left = (until - time.time_ns()) / 1e9 if until else last + patience - time.monotonic()
            if left <= 0:
                status = "done" if until else "stalled"
                break
            if processes.hosts is not None and processes.hosts.poll() is not None:
                break
            ready, _, _ = select.select(list(outputs), [], [], min(left, 0.5))
            lines: list[bytes] = []
            # Not through the stream: select does not see a line that waits in its buffer.
            for number in ready:
                if not (data := os.read(number, 1 << 16)):
                    raise RunFailed(f"lab: the agent of {outputs[number]} ended by itself")
                *whole, unread[number] = (unread[number] + data).split(b"\n")
                if whole and (why := json.loads(whole[-1]).get("stopped")):
                    raise RunFailed(f"lab: the agent of {outputs[number]} stopped: {why}; {FEWER}")
                lines += whole
            for one in map(json.loads, lines):
                if take(one):
                    last = max(last, time.monotonic())
            highest = max(highest or 0.0, lateness.pressure() or 0.0)
            if processes.relay is not None and processes.relay.poll() is not None:
                raise RunFailed("lab: the process of the links' delays ended by itself")
            for node, companion in processes.companions.items():
                if companion.poll() is not None:
                    raise RunFailed(f"lab: the process next to {node} ended by itself")
            if programs and not programs.alive():
                raise RunFailed("lab: the process of the switches' programs ended by itself")
        ended = time.time_ns()
    finally:
        looks.stop()
        counters = sampler.stop()
        relay = processes.end()
        if programs:
            programs.end()
        windows, mended = dctcp.windows(network.id) if made.dctcp else ([], 0)
    for number, name in outputs.items():
        for text in (unread[number] + processes.left.get(name, b"")).split(b"\n")[:-1]:
            take(json.loads(text))
    if made.wires and "ports" not in relay:
        raise RunFailed("lab: the process of the links ended without saying what it did")
    if made.engine_hosts:
        if "flows" not in processes.of_hosts:
            raise RunFailed("lab: the process of the hosts ended without saying what it did")
        done = engine_hosts.flows(processes.of_hosts, zero)
        if all(one["finish_ns"] is not None for one in done.values()) and len(done) == len(made.flows):
            status = "done"
        elif not until:
            status = "stalled"
    return Outcome(
        zero_ns=zero,
        flows={**unfinished, **done},
        queues=sorted([*sampler.rows, *engine_ports.queue_rows(relay, zero)]),
        counters={**counters, **engine_ports.counters(relay), **_of_engine_hosts(network)},
        relay=relay,
        start_lateness=late,
        pressure=highest,
        status=status,
        seconds=time.monotonic() - begun,
        ended_ns=ended - zero,
        missed_samples=sampler.missed,
        programs=programs,
        companions=processes.reports,
        ports=ports,
        ports_used_twice=twice,
        plain=plain,
        goodput=goodput,
        of_hosts=processes.of_hosts,
        captures=processes.captures,
        capture_reports=processes.capture_reports,
        waited=processes.waited,
        busy=cores.busy(looks.found, _spans({**unfinished, **done}, ended)),
        dctcp=dctcp.facts(made.dctcp, windows, mended) if made.dctcp else {},
        priority=priorities.lowest(processes.kinds),
        awake=network.awake,
        clock_step_ns=abs(_clocks_apart_ns() - clocks),
        lost_inside=network.lost_inside(),
    )


def _spans(flows: dict[int, dict[str, Any]], ended_ns: int) -> list[tuple[int, int]]:
    """Return when flows ran (time of day in ns); those that have not finished until the end of the run."""
    return [(round(one["start_ns"]), one.get("finish_ns") or ended_ns) for one in flows.values()]


def _of_engine_hosts(network: Network) -> dict[str, Counters]:
    """Return what the engine's hosts sent, by port."""
    if not network.plan.engine_hosts:
        return {}
    with inside(network.name(plan.WIRES)):
        return engine_hosts.counters(network.plan, Path("/proc/thread-self/net/dev").read_text())


def _clocks_apart_ns() -> int:
    """Return the time of day less the time since the machine started: it changes when the clock is set."""
    return time.time_ns() - time.monotonic_ns()


def run(
    scenario: Scenario,
    out: str,
    *,
    force: bool = False,
    repeats: int = 1,
    ports: engine_ports.Ports = "auto",
    hosts: engine_hosts.Hosts = "auto",
    priority: priorities.Priority = "auto",
    ip: int | None = None,
    traced: bool = False,
    watched: Sequence[str] = (),
    warn: Callable[[str], None] | None = None,
) -> list[Run]:
    """Run a scenario in the lab and return its runs: in `out`, or in ``out/1`` and so on if it is repeated.

    `ports`: whose ports switches have; "auto": the kernel's where its FIFO is enough, else the engine's.
    `hosts`: whose transports hosts have; "auto": the kernel's where it has them, else the engine's.
    `priority`: "auto": real-time where this user may; "normal": that of all other processes.
    `ip`: 4 or 6; None: what `traced` needs, else 4. `traced`: packets of flows carry the kernel's IOAM.
    `watched`: switches at which the headers of all arriving IPv4 packets are kept, in ``captures``.
    `warn` takes the warnings of ``weftline check``, which the runs store too, before the network is built.

    Raises
    ------
    InputError
        If it cannot be run here or as it is written; nothing was changed then.
    RunFailed
        If it could not be completed; everything was removed.
    """
    from weftline.lab import folder

    places = [Path(out)] if repeats == 1 else [Path(out) / str(number + 1) for number in range(repeats)]
    for place in places:
        if place.exists() and not place.is_dir():
            raise InputError(f"{place}: is not a folder; choose another with --out")
        scenario.keep_inputs(place)
    found = []
    # Before anything is done: another run may write there.
    with _folders(places):
        for place in places:
            _check_empty(place, force=force)
        made, simulated = planned(scenario, ports, hosts, ip=ip, traced=traced)
        made.watched = list(watched)
        if warn:
            for text in scenario.check()["warnings"]:
                warn(text)
        for place in places:
            with up(made) as network:
                task = engine_hosts.task(scenario, made, network.macs) if made.engine_hosts else ""
                outcome = carry(network, simulated, host_task=task, priority=priority)
            folder.write(place, scenario, made, simulated, outcome)
            found.append(Run.read(place))
    return found


def _check_empty(place: Path, *, force: bool) -> None:
    """Raise InputError if a folder holds more than the claim of this run and may not be replaced."""
    is_run = status_of(place) is not None
    if any(path.name != LOCK_FILE for path in place.iterdir()) and not (force and is_run):
        hint = "overwrite it with --force" if is_run else "choose another with --out"
        raise InputError(f"{place}: is not empty; {hint}")


@contextlib.contextmanager
def _folders(places: Sequence[Path]) -> Iterator[None]:
    """Have folders for results, which no other run writes; those in which nothing was written are removed.

    Raises
    ------
    InputError
        If one cannot be written to, or another run writes there.
    """
    from weftline import _native

    new = [one for place in places for one in (place, *place.parents) if not one.exists()]
    claims = []
    try:
        for place in places:
            try:
                place.mkdir(parents=True, exist_ok=True)
                tempfile.TemporaryFile(dir=place).close()
            except OSError as error:
                raise InputError(
                    f"{place}: cannot be written to: {error.strerror}; choose another with --out"
                ) from error
            claims.append(_native.FolderClaim(str(place)))
        yield
    finally:
        for claim in claims:
            claim.release()
        for one in sorted(set(new), reverse=True):
            with contextlib.suppress(OSError):
                one.rmdir()
