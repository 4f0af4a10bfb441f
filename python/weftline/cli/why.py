"""`weftline why`: where the time of flows and of steps of jobs went, found by running the scenario again."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftline.cli import arguments
from weftline.errors import InputError, RunFailed
from weftline.measures import held_flows
from weftline.quantities import bytes_text, time_text
from weftline.terminal import Table, wrapped

if TYPE_CHECKING:
    from weftline.controllers import Law
    from weftline.runs import Run

MAX_CHAIN = 20
"""Parts of the chain of a step that are shown."""
SHOWN = 5
"""Rows of the flows that shared a queue, and of the links of a run."""
SLOWEST = -1
"""Instead of the number of a step: the one that took longest."""
SAMPLE = 20
"""How many of the slowest flows say which link limits a run."""
AT_END = "–"
"""In place of the link of what is not at a link: pacing, windows, timers and the like."""


def add_to(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command; `command` makes one of a name, what it does, and its help."""
    why = command("why", _why, "say why flows were slow, and which link they waited for")
    why.add_argument("folder", metavar="RUN", help="folder of a run")
    why.add_argument("--flow", type=_flow, metavar="N", help="one flow, by its flow_id")
    why.add_argument(
        "--slowest",
        type=arguments.count,
        metavar="N",
        help="the N flows of the largest slowdown",
    )
    why.add_argument(
        "--step",
        type=_step,
        metavar="N",
        help="a step of a job, from 0, or slowest (the one that took longest from its own start to its end): "
        "the chain of computations and messages that made it long; with --group, of that job",
    )
    why.add_argument("--group", metavar="NAME", help="only flows, or the job, of this group")
    why.add_argument(
        "--workload",
        type=_flow,
        metavar="N",
        help="with --step: the job of this workload, from 0, where several jobs have one group",
    )
    why.add_argument(
        "--link", metavar="A->B", help="only those of the slowest flows that waited at this link"
    )
    arguments.add_controllers(why)
    arguments.add_json(why, "print JSON, with every interval")
    arguments.add_out(why, "FILE.html", "also write a page, with the chain of each flow over time")


_flow = arguments.whole(0, 2**32 - 1)


def _step(text: str) -> int:
    return SLOWEST if text == "slowest" else _flow(text)


def _why(options: argparse.Namespace) -> int:
    if options.flow is not None and (options.slowest or options.group or options.link):
        raise InputError("--flow names one flow: expected none of --slowest, --group and --link with it")
    if options.step is not None and (options.slowest or options.flow is not None or options.link):
        raise InputError("--step names a step: expected none of --flow, --slowest and --link with it")
    if options.workload is not None and options.step is None:
        raise InputError("--workload chooses the job of --step: expected --step with it")
    one_by_one = options.flow is not None or options.slowest or options.group or options.link
    answer = why(
        options.folder,
        flow=options.flow,
        step=options.step,
        slowest=options.slowest or (SHOWN if one_by_one and not options.link else SAMPLE),
        group=options.group,
        workload=options.workload,
        link=options.link,
        intervals=bool(options.json or options.out),
        controllers=options.controller,
    )
    notes = notes_of(answer, group=options.group, asked=options.slowest)
    if options.link:
        answer["flows"] = waited_at(answer, options.link)
    if options.out:
        from weftline.report import why_page

        tables = [flow_tables(flow) for flow in answer["flows"]]
        path = why_page.write(Path(options.out), answer, run=str(options.folder), tables=tables, notes=notes)
        if not options.json:
            print(f"page: {path}")
    if options.json:
        print(json.dumps(answer, indent=2))
        return 0
    if "step" in answer:
        has_links = answer["flows"] and not answer["step"]["undivided"]
        print("\n\n".join([step_text(answer), *([links_text(answer)] if has_links else [])]))
        return 0
    if one_by_one:
        print("\n\n".join(flow_text(flow) for flow in answer["flows"]))
    if not one_by_one or len(answer["flows"]) > 1:
        print(("\n" if one_by_one else "") + links_text(answer))
    for note in notes:
        print(f"\n{wrapped(note)}")
    return 0


def why(
    folder: str | Path,
    *,
    flow: int | None = None,
    step: int | None = None,
    slowest: int = SHOWN,
    group: str | None = None,
    workload: int | None = None,
    link: str | None = None,
    intervals: bool = False,
    controllers: list[str] | None = None,
) -> dict[str, Any]:
    """Return where the completion times of flows of a stored run went, or the time of a step.

    `step` is its number; `SLOWEST`: the one that took longest from its own start to its end. `workload` is
    the number of its workload, where several jobs have one group.

    Raises
    ------
    InputError
        If there is no such flow, step or link, or the scenario does not give the stored results again.

    ``held`` has what these flows waited for at their ends and at links, and the busiest links of their paths.
    Where flows are chosen by their slowdown, ``finished`` and ``unfinished`` are how many flows, of the group
    if one is given, had finished and had not.
    """
    from weftline import _native
    from weftline.measures import steps
    from weftline.runs import Run

    run = Run.read(folder)
    if run.summary.get("engine") == "lab":
        raise InputError(
            f"{folder}: a run of the lab cannot be asked: its packets were real and cannot be sent again as "
            f"they were; simulate its scenario and ask that run: weftline run {run.out / 'scenario.toml'}"
        )
    status = run.summary.get("status")
    if status not in ("done", "stalled"):
        raise InputError(f"{folder}: its status is {status}; expected a run that came to its end")
    if flow is not None:
        _check_flow(run, flow)
    path = run.out / "scenario.toml"
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    laws = _laws_of(run, controllers) if controllers else {}
    makers = {name: law.make for name, law in laws.items()}
    scenario = _native.Scenario(text, str(path), Path.cwd(), controllers=makers or None)
    with _explained(laws):
        found = scenario.why(
            str(run.summary.get("fingerprint")),
            flow=flow,
            step=step,
            slowest=slowest,
            group=group,
            workload=workload,
            link=link,
            intervals=intervals,
        )
    answer = json.loads(found)
    held_flows.mark_applications(run, answer["flows"])
    answer["held"] = held_flows.held(answer["flows"])
    if flow is None and step is None:
        answer["finished"], answer["unfinished"] = _finished(run, group)
    if step is not None:
        of = answer["step"]
        of["job_name"] = steps.job_names([run])[of["workload"], of["job"]]
    if step == SLOWEST:
        answer["step"]["unended"] = _unended(run, group, workload)
    return answer


def _laws_of(run: Run, controllers: list[str]) -> dict[str, Law]:
    """Return the controllers of a run; an InputError if their code is not that of the run."""
    from weftline import controllers as own_laws

    laws = own_laws.parse(controllers)
    provenance = run.summary.get("provenance")
    stored = provenance.get("controllers") if isinstance(provenance, dict) else None
    for name, digest in stored.items() if isinstance(stored, dict) else ():
        law = laws.get(name)
        if law and digest and law.known_digest != digest:
            raise InputError(
                f'{run.out}: the code of controller "{name}" differs from that of the run ({law.origin}): '
                "give the code that the run had, or run it again"
            )
    return laws


@contextlib.contextmanager
def _explained(laws: Mapping[str, Law]) -> Iterator[None]:
    """Add to an error what controllers in Python used that two runs need not have in common."""
    if not laws:
        yield
        return
    from weftline.hidden_inputs import Watch

    watch = Watch(list(laws.values()))
    try:
        with watch.on():
            yield
    except (InputError, RunFailed) as error:
        if not (used := watch.used()):
            raise
        text = f"{error}. Its controllers in Python used {', '.join(used)}, which two runs need not share"
        raise type(error)(text) from None


def _check_flow(run: Run, flow: int) -> None:
    """Raise an InputError if a run has no flow of this number, or it had not finished."""
    from weftline import columns

    of = columns.read(run.flows, ("flow_id", "fct_ns"))
    try:
        finished = of["fct_ns"][of["flow_id"].index(flow)] is not None
    except ValueError:
        known = f"its flows are {_ranges_text(of['flow_id'])}" if of["flow_id"] else "it has no flows"
        raise InputError(f"flow {flow}: the run has no such flow; {known}") from None
    if not finished:
        raise InputError(f"flow {flow}: it had not finished when the run ended")


def _ranges_text(numbers: Sequence[int]) -> str:
    """Return numbers as ``"0 to 3, 7, 9 to 12"``; of many ranges the first and the last."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] + 1 == number:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    texts = [str(first) if first == last else f"{first} to {last}" for first, last in ranges]
    if len(texts) > SHOWN:
        texts[SHOWN - 1 : -1] = ["..."]
    others = (
        "; messages within a host or a scale-up domain and of jobs with messages = false take numbers too"
    )
    return ", ".join(texts) + (others if len(texts) > 1 else "")


def _finished(run: Run, group: str | None) -> tuple[int, int]:
    """Return how many flows of a run, or of a group of it, had finished, and how many had not."""
    if group is None:
        done = int(run.summary["flows_done"])
        return done, int(run.summary["flows"]) - done
    from weftline import columns

    of = columns.read(run.flows, ("group", "fct_ns"))
    times = [time for name, time in zip(of["group"], of["fct_ns"], strict=True) if name == group]
    unfinished = times.count(None)
    return len(times) - unfinished, unfinished


def _unended(run: Run, group: str | None, workload: int | None) -> int:
    """Return how many steps of the jobs of a run had not ended, begun or not.

    Counted are those of the jobs of a group or workload, where one is given.
    """
    from weftline.measures import steps

    own = [
        row for row in steps.own(run) if group in (None, row["job"]) and workload in (None, row["workload"])
    ]
    return sum(row["time_ns"] is None for row in own) + steps.unbegun(run, group, workload)


def waited_at(answer: dict[str, Any], link: str) -> list[dict[str, Any]]:
    """Return the flows of an answer that waited at a link, the longest wait first.

    Raises
    ------
    InputError
        If none of them did.
    """
    waited = {
        flow["flow"]: sum(part["ps"] for part in flow["waits"] if part["link"] == link)
        for flow in answer["flows"]
    }
    found = [flow for flow in answer["flows"] if waited[flow["flow"]]]
    if not found:
        known = [one["link"] for one in answer["links"]]
        hint = f": they waited at {', '.join(known[:SHOWN])}" if known else ""
        count, notes = len(answer["flows"]), notes_of(answer)
        more = f"; {'; '.join(notes)}" if notes else ""
        raise InputError(f'none of the {count} slowest flows waited at the link "{link}"{hint}{more}')
    return sorted(found, key=lambda flow: -waited[flow["flow"]])


def _ps(value: int) -> str:
    return time_text(value / 1000)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def _causes_table(parts: Sequence[dict[str, Any]], whole: int, name: str) -> Table:
    table = Table(["went to", "time", "share", "ps"])
    for part in sorted(parts, key=lambda part: -part["ps"]):
        table.rows.append([part["cause"], _ps(part["ps"]), _share(part["ps"], whole), str(part["ps"])])
    total = sum(part["ps"] for part in parts)
    table.rows.append([name, _ps(total), _share(total, whole), str(total)])
    return table


def flow_tables(flow: dict[str, Any]) -> list[Table]:
    """Return the tables of one flow: its causes, and where it waited."""
    fct = flow["fct_ps"]
    causes = _causes_table(flow["causes"], fct, "completion time")
    if not flow["waits"]:
        return [causes]
    waits = Table(["at the link", "waited for", "time"], left=2)
    for part in sorted(flow["waits"], key=lambda part: -part["ps"]):
        waits.rows.append([part["link"] or AT_END, part["cause"], _ps(part["ps"])])
    held = held_flows.text([flow]) or held_flows.trims_text([flow])
    notes = [held, *(text([flow]) for text in (_pauses_text, _timeouts_text, _lost_text))]
    waits.note = " ".join(note for note in notes if note)
    return [causes, waits]


def flow_text(flow: dict[str, Any]) -> str:
    """Return the account of one flow as text."""
    fct, ideal = flow["fct_ps"], flow["ideal_ps"]
    slowdown = f", {fct / ideal:.2f} times the {_ps(ideal)} that it takes alone" if ideal else ""
    lines = [
        f"flow {flow['flow']}: {bytes_text(flow['size_bytes'])} from {flow['src']} to {flow['dst']} "
        f"({flow['group']}) took {_ps(fct)}{slowdown}",
        "path of its last packet, and of the answer if it ends with that: " + ", ".join(flow["path"]),
    ]
    lines += [table.text() for table in flow_tables(flow)]
    worst = flow["worst_queue"]
    if worst:
        others = [f"flow {one['flow']} {_ps(one['ps'])}" for one in worst["shared"][:SHOWN]]
        left = len(worst["shared"]) - SHOWN
        more = f", and {left} more" if left > 0 else ""
        lines.append(
            f"worst queue: {worst['link']}, {_ps(worst['ps'])} for packets of: {', '.join(others)}{more}"
        )
    return "\n".join(lines)


def step_tables(answer: dict[str, Any]) -> list[Table]:
    """Return the tables of a step: its causes, the operations and ranks of its chain, and the chain."""
    step = answer["step"]
    causes = _causes_table(step["causes"], step["time_ps"], "time of the step")
    return [causes, *_shares_tables(answer), _chain_table(answer)]


def _moving(answer: dict[str, Any], part: dict[str, Any]) -> int:
    """Return the time of a message in which it moved, all of it where nothing is known of its way."""
    causes = answer["flows"][part["flow"]]["causes"] if "flow" in part else []
    moving = {"transmission", "propagation", "message"}
    return sum(cause["ps"] for cause in causes if cause["cause"] in moving) if causes else part["ps"]


def _shares_tables(answer: dict[str, Any]) -> list[Table]:
    """Return how much of the chain of a step each operation and each rank has."""
    step = answer["step"]
    operations: dict[str, list[int]] = {}
    ranks: dict[tuple[int, str], list[int]] = {}
    for part in step["chain"]:
        computes = part["what"] == "computation"
        moving = 0 if computes else _moving(answer, part)
        times = [part["ps"] if computes else 0, moving, 0 if computes else part["ps"] - moving]
        name = part["operation"] or part["what"]
        for sums in (
            operations.setdefault(name, [0] * 4),
            ranks.setdefault((part["rank"], part["host"]), [0] * 4),
        ):
            sums[:] = [sum(pair) for pair in zip(sums, [1, *times], strict=True)]
    columns = ["parts", "computing", "messages", "waiting"]
    by_operation = Table(["operation", *columns], title="operations of the chain")
    by_rank = Table(["rank", "host", *columns], title="ranks of the chain", left=2)
    for name, (count, *times) in sorted(operations.items(), key=lambda one: -sum(one[1][1:])):
        by_operation.rows.append([name, str(count), *map(_ps_or_none, times)])
    longest = sorted(ranks.items(), key=lambda one: -sum(one[1][1:]))
    for (rank, host), (count, *times) in longest[:SHOWN]:
        by_rank.rows.append([str(rank), host, str(count), *map(_ps_or_none, times)])
    by_rank.note = "Messages and their waiting, in queues, for windows and the like, are their senders'."
    if len(longest) > SHOWN:
        by_rank.note += (
            f" Shown are the {SHOWN} with most of the time; {len(longest) - SHOWN} more have a part."
        )
    return [by_operation, by_rank] if len(operations) > 1 else [by_rank]


def _chain_table(answer: dict[str, Any]) -> Table:
    step = answer["step"]
    chain = Table(
        ["what", "rank", "from", "to", "started", "took", "alone", "waited most for", "at the link"],
        title="the chain that the end of the step waited for",
        note="took: until the next could start. alone: the whole message, with its last acknowledgement.",
    )
    excess = []
    for part in step["chain"]:
        flow = answer["flows"][part["flow"]] if "flow" in part else None
        ideal = flow["ideal_ps"] if flow else None
        worst = max(flow["waits"] if flow else [], key=lambda wait: wait["ps"], default=None)
        excess.append(part["ps"] - (ideal or 0))
        chain.rows.append(
            [
                _part_name(part),
                str(part["rank"]),
                part["host"],
                part.get("to_host", "–"),
                _ps(part["from_ps"] - step["start_ps"]),
                _ps(part["ps"]),
                _ps_or_none(ideal),
                f"{worst['cause']} {_ps(worst['ps'])}" if worst else "–",
                worst["link"] or AT_END if worst else "–",
            ]
        )
    left = len(chain.rows) - MAX_CHAIN
    if left > 0:
        # Those that took longest beyond what they take alone are what the reader looks for.
        kept = sorted(range(len(excess)), key=lambda i: -excess[i])[:MAX_CHAIN]
        chain.rows = [chain.rows[i] for i in sorted(kept)]
        chain.note += f" Shown are the {MAX_CHAIN} that took longest beyond that; {left} more are in --json."
    return chain


def _part_name(part: dict[str, Any]) -> str:
    """Return what a part of a chain is: its operation with its step's number, and where a file has it."""
    name = f"{part['operation']} {part['step']}" if part["operation"] else part["what"]
    if "flow" in part and part["operation"] is None:
        name = f"message of {bytes_text(part['bytes'])}"
    return name if part["place"] is None else f"{name} ({part['place']})"


def _ps_or_none(value: int | None) -> str:
    return _ps(value) if value else "–"


def step_text(answer: dict[str, Any]) -> str:
    """Return the account of a step as text."""
    lines = [wrapped(step_sentence(answer)), *(table.text() for table in step_tables(answer))]
    if why := answer["step"]["undivided"]:
        lines.append(wrapped(f"messages are not divided by cause: {why}"))
    if unended := answer["step"].get("unended"):
        some = "step had" if unended == 1 else "steps had"
        lines.append(
            wrapped(f"{unended:,} {some} not ended when the run did: this is the slowest of those that had")
        )
    if covers := answer["step"].get("covers"):
        lines.append(wrapped(f"what the causes cover: {covers}"))
    return "\n".join(lines)


def step_sentence(answer: dict[str, Any]) -> str:
    """Return which step it is and how long it took."""
    step = answer["step"]
    ideal = step["ideal_ps"]
    slowdown = f", {step['time_ps'] / ideal:.2f} times its ideal time of {_ps(ideal)}" if ideal else ""
    overlap = ""
    if before := step["overlap_ps"]:
        added = _ps(step["time_ps"] - before)
        overlap = f"the step before ended {_ps(before)} after its start, so it adds {added} to its job; "
    return (
        f"step {step['step']} of {step['job_name']}: {step['operation']} of {bytes_text(step['bytes'])} on "
        f"{step['ranks']} ranks took {_ps(step['time_ps'])}{slowdown}; {overlap}"
        f"{len(step['chain'])} computations and messages, one after the other, decided when it ended"
    )


def notes_of(answer: dict[str, Any], *, group: str | None = None, asked: int | None = None) -> list[str]:
    """Return which flows have no account although they may be among the slowest.

    `group`: that of the flows, if one is named; `asked`: the number in `--slowest`.
    """
    of = f" of group {group}" if group else ""
    notes = [left_text(answer)] if answer["left_out"] else []
    finished, unfinished = answer.get("finished", 0), answer.get("unfinished", 0)
    if unfinished:
        notes.append(
            f"{unfinished:,} of {finished + unfinished:,} flows{of} had not finished when the run ended "
            "and are left out; they may be the slowest"
        )
    if asked and "finished" in answer and finished < asked:
        some = ("flow" if finished == 1 else "flows") + of
        notes.append(f"{finished:,} {some} had finished, fewer than the {asked:,} that --slowest asks for")
    return notes


def left_text(answer: dict[str, Any]) -> str:
    """Return which of the slowest flows have no account."""
    left = answer["left_out"]
    return (
        f"{left} of the {left + len(answer['flows'])} slowest flows are left out: more packets crossed links "
        "while they lasted than a trace keeps (32 million); --flow asks for one by itself"
    )


def links_text(answer: dict[str, Any]) -> str:
    """Return the links by the time for which flows waited there, first whether these limit the flows."""
    links, flows = answer["links"], answer["flows"]
    count = len(flows)
    which = "messages of the chain" if "step" in answer else "slowest flows"
    held = held_flows.text(flows, which)
    lead = [wrapped(held)] if held else []
    notes = [text(flows) for text in (_pauses_text, _ends_text, _timeouts_text, _lost_text)]
    notes += [] if held else [held_flows.trims_text(flows)]
    if not links:
        none = f"none of the {count} {which} waited for a link on its critical chain"
        return "\n".join([*lead, none, *(wrapped(note) for note in notes if note)])
    title = "messages of the chain" if "step" in answer else "flows of the largest slowdown"
    table = Table(
        ["link", "waited most for", "longest wait of", "waited there"],
        title=f"links that the {count} {title} waited for",
        left=2,
    )
    for link in links[:SHOWN]:
        longest = f"{link['flows']} flow{'s' * (link['flows'] != 1)}"
        table.rows.append([link["link"], link["cause"], longest, _ps(link["waited_ps"])])
    left = len(links) - SHOWN
    more = f"And {left} more link{'s' * (left != 1)}." if left > 0 else ""
    table.note = " ".join(note for note in [more, *notes] if note)
    return "\n\n".join([*lead, table.text()])


def _ends_text(flows: Sequence[dict[str, Any]]) -> str:
    """Return what flows waited for that is not at a link."""
    sums: dict[str, int] = {}
    for part in (part for flow in flows for part in flow["waits"] if part["link"] is None):
        sums[part["cause"]] = sums.get(part["cause"], 0) + part["ps"]
    named = [f"{cause} {_ps(time)}" for cause, time in sorted(sums.items(), key=lambda one: -one[1])]
    return f"Not at a link: {', '.join(named)}." if named else ""


def _pauses_text(flows: Sequence[dict[str, Any]]) -> str:
    """Return the ports whose queues the pauses of flows go back to."""
    sums: dict[str | None, int] = {}
    for part in (part for flow in flows for part in flow["pauses"]):
        sums[part["queue_at"]] = sums.get(part["queue_at"], 0) + part["ps"]
    unknown = sums.pop(None, 0)
    ordered = sorted(sums.items(), key=lambda one: -one[1])
    named = [f"{port} ({_ps(time)})" for port, time in ordered[:SHOWN]]
    named += [f"{len(ordered) - SHOWN} more"] if len(ordered) > SHOWN else []
    named += [f"no known queue ({_ps(unknown)})"] if unknown and named else []
    return f"Pauses go back to the queue at: {', '.join(named)}." if named else ""


def _timeouts_text(flows: Sequence[dict[str, Any]]) -> str:
    """Return which timeouts flows waited for."""
    sums: dict[str, int] = {}
    for part in (part for flow in flows for part in flow["timeouts"]):
        sums[part["until"]] = sums.get(part["until"], 0) + part["ps"]
    named = [f"{_ps(time)} {until}" for until, time in sorted(sums.items(), key=lambda one: -one[1])]
    return f"Timeouts: {'; '.join(named)}." if named else ""


def _lost_text(flows: Sequence[dict[str, Any]]) -> str:
    """Return where flows lost packets, if it took time to send packets again, and where answers to them."""
    sums: dict[str, int] = {}
    answers: dict[str, int] = {}
    for part in (part for flow in flows for part in flow["lost"]):
        place = part["at"]
        if "no_route_to" in part:
            place += f", which had no route to {part['no_route_to']} from {_ps(part['since_ps'])} on"
        sums[place] = sums.get(place, 0) + part["packets"]
        answers[place] = answers.get(place, 0) + part["answers"]
    ordered = sorted(sums.items(), key=lambda one: -one[1])
    named = [f"{place} ({_lost_count(packets, answers[place])})" for place, packets in ordered[:SHOWN]]
    more = f", and {len(ordered) - SHOWN} more" if len(ordered) > SHOWN else ""
    return f"Packets were lost at: {', '.join(named)}{more}." if named else ""


def _lost_count(packets: int, answers: int) -> str:
    """Return how many packets were lost, and how many of them had come from the destination of their flow."""
    if not answers:
        return f"{packets:,}"
    if answers == packets:
        return f"{packets:,} acknowledgements or other answers"
    return f"{packets:,}, of which {answers:,} were acknowledgements or other answers"
