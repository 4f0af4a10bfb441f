"""A scenario in words, and what a run or a comparison answers: the first paragraphs of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from weftline import quantities
from weftline.measures import (
    evidence,
    judgements,
    labels,
    line_notes,
    losses,
    queue_ports,
    readings,
    separations,
    steps,
)
from weftline.measures.lines import Line
from weftline.measures.metrics import Flows, metric
from weftline.measures.pooling import shortened
from weftline.runs import Run

MAX_APART = 3
"""Sentences on what is not separated; of more flow sizes only their names are given."""
_SIZES = {
    "websearch": "web search",
    "fb-hadoop": "Facebook's Hadoop",
    "ali-storage": "Alibaba's storage",
    "google-rpc": "Google's RPCs",
    "imc10": "IMC10",
    "datamining": "data mining",
}


def question(lines: Sequence[Line], others: Sequence[Line] = ()) -> str:
    """Return what these runs ask, as one question, without what is not the same for all.

    `others` are lines that the question is about too, but does not name.
    """
    names = [line.label for line in lines]
    names += [f"{len(others)} other{'s' * (len(others) > 1)}"] if others else []
    serve = "How do" if len(names) > 1 else "How does"
    return f"{serve} {listed(names)} serve {_flows_in_short([*lines, *others])}?"


def unsaid(lines: Sequence[Line]) -> list[str]:
    """Return in which keys lines differ that their labels do not say, as a sentence; nothing if in none."""
    pools = [line.pool for line in lines if line.pool is not None]
    keys = labels.left_unsaid(pools) if len(pools) == len(lines) > 1 else []
    return [f"These lines also differ in {shortened(keys)}."] if keys else []


def answer(lines: Sequence[Line]) -> list[str]:
    """Return the answer that the numbers give, most important sentence first; nothing without a flow done."""
    finished = [line for line in lines if line.has_flows]
    if not finished:
        return _without_flows(lines)
    parts = standings(finished) if len(finished) > 1 else [_alone(finished[0])]
    parts += [_costs(line, named=len(lines) > 1) for line in lines]
    lost = [line.label for line in lines if not line.has_flows]
    if lost:
        parts.append(f"No flow of {listed(lost)} finished.")
    if len(finished) > 1 and (left := line_notes.left_out(finished)):
        parts.append(f"Slowdowns exclude unfinished flows, which favours schemes with many of them.{left}")
    return [sentence for sentence in parts if sentence]


def _alone(line: Line) -> str:
    overall = line.overall()
    p50, p99 = (mean.text(quantities.digits) if (mean := overall[p]) else "–" for p in ("p50", "p99"))
    counted, done = line.flows_counted, _finished_text(line)
    pooled = evidence.pooled_text("step_mean", line.runs, Flows(group=line.group))
    kinds = " over jobs of different kinds" if pooled else ""
    has_steps = all(map(steps.has_jobs, line.runs)) and line.metric("step_mean")
    time = f"A step takes {line.metric_text('step_mean')}, in the mean{kinds}. " if has_steps else ""
    if evidence.few_flows("slowdown_p50", counted):
        flows = "1 flow is" if counted == 1 else f"{counted} flows are"
        return f"{time}{flows} too few for percentiles of the slowdown. {done}"
    half = f"Half of the flows that finished take at most {p50} times as long as alone at full rate"
    if evidence.few_flows("slowdown_p99", counted):
        needed = evidence.needed("slowdown_p99")
        return f"{time}{half}; {counted} flows are too few for a p99, which needs {needed}. {done}"
    return f"{time}{half}, 99 of 100 at most {p99} times. {done}"


def standings(lines: Sequence[Line]) -> list[str]:
    """Return who is lowest, where one is: by p99 slowdown of all flows, median, queue, and each flow size.

    A line is named where its paired 95 % interval against each other one leaves out zero and there is no
    reason against either (see `weftline.measures.evidence`); the rest are listed as not separated.
    """
    subjects = sorted(separations.subjects(lines), key=lambda subject: not subject.whole)
    found = [standing_of(lines, subject) for subject in subjects]
    named = [text for text, first, _ in found if first]
    rest = [(text, subject) for text, first, subject in found if not first]
    message = named
    if len(rest) <= MAX_APART:
        return message + [text for text, _ in rest]
    whole = [text for text, subject in rest if subject.whole]
    sizes = [subject.title for _, subject in rest if not subject.whole]
    return message + whole + ([f"Not separated either: {'; '.join(sizes)}."] if sizes else [])


def standing_of(
    lines: Sequence[Line], subject: separations.Subject
) -> tuple[str, str | None, separations.Subject]:
    """Return the sentence on one subject, and the line that it names first, if any."""
    means = {line.label: mean for line in lines if (mean := subject.mean(line))}
    by_label = {line.label: line for line in lines}
    found = judgements.leader(
        [line.label for line in lines],
        {label: mean.value for label, mean in means.items()},
        lambda a, b: subject.between(by_label[a], by_label[b]),
    )
    few = {line.label for line in lines if any(one.kind == "flows" for one in subject.reasons(line))}
    if found.best in few:
        found = replace(found, best=None)
    texts = {
        label: f"{label} {'–' if label in few else mean.text(subject.write)}"
        + evidence.qualifier(
            runs=mean.count or 0,
            asked=max(len(by_label[label].runs), len(by_label[label].asked)),
            left=subject.left(by_label[label]),
        )
        for label, mean in means.items()
    }
    is_queue = subject.title == metric("queue_p99").title
    title = queue_ports.titled("queue_p99", lines) if is_queue else subject.title
    return standing(title, "", texts, found), found.first, subject


def standing(
    title: str,
    place: str,
    texts: Mapping[str, str],
    found: judgements.Standing,
    *,
    highest: bool = False,
) -> str:
    """Return one sentence on how some values stand: who is first, or who is not separated from whom and why.

    Parameters
    ----------
    title, place : str
        What is compared, and where.
    texts : mapping
        Name and value of each, by name.
    found : judgements.Standing
        How the best one stands to the others.
    """
    where = f"{title[:1].upper()}{title[1:]}{f', {place}' if place else ''}"
    if len(texts) < 2:
        return f"{where}: {', '.join(texts.values()) or 'not measured'}."
    word, comparative = ("highest", "higher") if highest else ("lowest", "lower")
    if found.best is None:
        return f"{where}: {', '.join(texts.values())}; {judgements.reasons_text(found.reasons)}."
    beaten, level = (", ".join(texts[name] for name in names) for names in (found.beaten, found.level))
    if not found.level:
        return f"{where}: {word} with {texts[found.best]}, against {beaten}; {_LEFT_OUT}."
    # The one with the best mean was picked: that its intervals leave out zero is likelier than 5 %.
    picked = f"{_LEFT_OUT}; of {len(texts)} the {word} was picked, so that chance alone brings this about"
    odds = f"{picked} {_odds_text(len(texts))}"
    also = f"; it is {comparative} than {beaten} ({odds})" if found.beaten else ""
    return (
        f"{where}: the {word} mean, {texts[found.best]}, is not separated from that of {level}: "
        f"{judgements.reasons_text(found.reasons)}{also}."
    )


_LEFT_OUT = "each paired 95 % interval leaves out zero"
_ODDS = ((20, "three quarters"), (10, "half"), (5, "a fifth"), (3, "a tenth"))
"""By how many are compared: how often, at least, the best of schemes that are alike has such an interval
against some other one. Of normal numbers, under 3 to 10 seeds."""


def _odds_text(count: int) -> str:
    return next((f"in {part} of all cases or more" for many, part in _ODDS if count >= many), "")


def _costs(line: Line, *, named: bool) -> str:
    """Queue, pauses and drops of a line."""
    parts = []
    queue = line.metric("queue_p99")
    if queue is not None:
        # The percentile is the lower edge of its bin, so that these samples are below the upper edge.
        below = replace(queue, value=queue.value + readings.QUEUE_BIN_BYTES).text(quantities.bytes_text)
        asked = max(len(line.runs), len(line.asked))
        runs = evidence.qualifier(runs=queue.count or 0, asked=asked, left=line.left_text("queue_p99"))
        ports = line.queue_ports
        of = f" of {ports.text()}" if ports else ""
        parts.append(f"99 % of the samples find less than {below} in a queue{of}{runs}")
    parts += _losses(line)
    pauses = line.metric("pauses")
    if pauses is not None:
        parts.append(f"{line.metric_text('pauses')} pauses" if pauses.value else "no pauses")
    text = ", ".join(parts)
    return f"{line.label}: {text}." if named and text else f"{text[:1].upper()}{text[1:]}." if text else ""


_LOST = {
    "drops": "packets dropped",
    "lost_on_dead_links": "lost on dead links",
    "stranded": "stranded without a route",
    "lost_at_random": "lost at random",
    "retransmitted": "sent again",
    "retransmitted_spurious": "of them unnecessary",
    "timeouts": "retransmission timeouts",
    "loss_probes": "tail loss probes",
}


def _losses(line: Line) -> list[str]:
    """Every kind of loss that there was; that there was none only if there was none of any kind."""
    means = {name: line.metric(name) for name in _LOST}
    found = [f"{line.metric_text(name)} {_LOST[name]}" for name, mean in means.items() if mean and mean.value]
    known = [mean for name in losses.SHOWN if (mean := means[name]) is not None]
    lost = any(mean.value for mean in known)
    # A folder of before random losses were counted has them among the others.
    return (["no lost packets"] if known and not lost else []) + found


def _finished_text(line: Line) -> str:
    summary = line.runs[0].summary
    done, flows = summary.get("flows_done"), summary.get("flows")
    if len(line.runs) > 1:
        left = line.by_size.unfinished(line.runs)
        return f"{evidence.unfinished_text(left, line.runs)}." if left else ""
    if done is None or flows is None:
        return ""
    return f"All {flows:,} finished." if done == flows else f"{done:,} of {flows:,} flows finished."


def _without_flows(lines: Sequence[Line]) -> list[str]:
    """Sentences on flows that never end: how much they carried, and how equally."""
    parts = []
    for line in lines:
        total, jain = line.metric_text("goodput_total"), line.metric_text("jain")
        if total != "–":
            parts.append(f"{line.label}: {total} for all measured flows together, Jain's index {jain}.")
    return parts or ["No flow finished, so there is no completion time."]


def scenario(lines: Sequence[Line], network: Mapping[str, Any] | None = None) -> list[str]:
    """Return the scenario of these lines as paragraphs: network, switches, transport, traffic, failures.

    What is not the same for all is stated for each.

    Parameters
    ----------
    network : mapping, optional
        ``nodes`` and ``links`` of the first line's network as the engine built them, for counts.
    """
    sentences = [_facts(line.runs[0], network if i == 0 else None) for i, line in enumerate(lines)]
    same_network = len({str(line.runs[0].scenario.get("topology")) for line in lines}) == 1
    parts = []
    for topic in dict.fromkeys(topic for facts in sentences for topic in facts):
        texts = [facts.get(topic, "") for facts in sentences]
        if len(set(texts)) == 1 or (topic == "Network" and same_network):
            parts.append(f"{topic}: {texts[0]}.")
            continue
        each = "; ".join(f"{text} ({line.label})" for line, text in zip(lines, texts, strict=True) if text)
        parts.append(f"{topic}: {each}.")
    return parts


def _facts(run: Run, network: Mapping[str, Any] | None) -> dict[str, str]:
    """What a run's scenario says, by topic."""
    found = run.scenario
    facts = {
        "Network": _network(_table(found.get("topology")), network),
        "Switches": _switches(_table(found.get("switch"))),
        "Transport": transport(run),
    }
    for workload in _tables(found.get("workload")):
        kind = str(workload.get("kind", ""))
        group = str(workload.get("group", kind))
        topic = "Traffic" if group == kind else f"Traffic {group}"
        facts[topic] = "; ".join(filter(None, [facts.get(topic), _workload(workload, found)]))
    facts["Failures"] = _failures(_table(found.get("failures")))
    return {topic: text for topic, text in facts.items() if text}


def _network(topology: Mapping[str, Any], network: Mapping[str, Any] | None) -> str:
    kind = str(topology.get("kind", "network"))
    text = PurePath(str(topology.get("file", ""))).name if kind == "file" else kind
    if network:
        hosts = sum(node["kind"] == "host" for node in network["nodes"])
        text += (
            f", {hosts:,} hosts, {len(network['nodes']) - hosts:,} switches, {len(network['links']):,} links"
        )
        rates = sorted({link["rate_bps"] for link in network["links"]})
        text += f" of {listed([quantities.rate_text(rate) for rate in rates])}" if len(rates) < 5 else ""
        delays = sorted({link["delay_ns"] for link in network["links"]})
        span = dict.fromkeys(quantities.time_text(delay) for delay in (delays[0], delays[-1]))
        text += f", {' to '.join(span)} each way"
    return text


def _switches(switch: Mapping[str, Any]) -> str:
    queue, balancer, pfc = (_table(switch.get(key)) for key in ("queue", "balancer", "pfc"))
    parts = [f"{quantities.spaced(str(switch['buffer']))} of shared buffer"] if "buffer" in switch else []
    parts += [f"{queue['kind']} queues"] if "kind" in queue else []
    for port in _tables(switch.get("port")):
        parts.append(f"{_table(port.get('queue')).get('kind', 'other')} at {port.get('match', '')}")
    parts += [f"{balancer['kind']} chooses paths"] if "kind" in balancer else []
    parts.append("PFC pauses senders" if pfc.get("enabled") else "no PFC: full buffers drop")
    ecn = switch.get("ecn")
    marks = bool(ecn) and (isinstance(ecn, list) or _table(ecn).get("enabled", True))
    parts.append("ECN marks" if marks else "no ECN")
    return ", ".join(parts)


def transport(run: Run) -> str:
    """Return the transports of a run's workloads with their controllers and what packets carry."""
    text = listed(list(dict.fromkeys(map(_transport, labels.transports(run.scenario)))))
    carried = str(_table(run.scenario.get("telemetry")).get("kind", "none"))
    if carried in ("int", "pint") and run.summary.get("telemetry_bytes") != 0:
        text += f"; packets carry {carried.upper()}"
    return text


def _transport(asked: Mapping[str, Any]) -> str:
    kind, controller = str(asked.get("kind", "rdma")), _table(asked.get("controller"))
    text = kind.upper() if kind in ("rdma", "tcp", "mptcp") else kind
    return f"{text} with {controller['kind']}" if "kind" in controller else text


def _workload(workload: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    kind = str(workload.get("kind", ""))
    parts = [kind]
    sizes, size = workload.get("sizes"), workload.get("size")
    if size not in (None, "auto"):
        parts.append(f"flows of {quantities.spaced(str(size))}")
    elif sizes:
        parts.append(f"sizes of {_SIZES.get(str(sizes), str(sizes))}")
    by_load = kind == "poisson" or workload.get("arrivals") == "poisson"
    if by_load and isinstance(workload.get("load"), int | float):
        parts.append(f"load {quantities.share_text(workload['load'])}")
    if workload.get("duration") not in (None, "auto"):
        parts.append(f"started within {quantities.spaced(str(workload['duration']))}")
    if "operation" in workload:
        parts.append(f"{workload['operation']} of {quantities.spaced(str(workload.get('bytes', '')))}")
        if workload.get("placement", "packed") != "packed":
            parts.append(f"placed {workload['placement']}")
    own = _table(_table(workload.get("transport")).get("controller")).get("kind")
    shared = _table(_table(found.get("transport")).get("controller")).get("kind")
    if own and own != shared:
        parts.append(f"by {own}")
    return ", ".join(parts)


def _failures(failures: Mapping[str, Any]) -> str:
    events = []
    for event in _tables(failures.get("event")):
        what = (
            event.get("link")
            or event.get("switch")
            or ("links between switches" if event.get("random") else "")
        )
        name = " - ".join(map(str, what)) if isinstance(what, list) else str(what)
        if event.get("random"):
            name = f"{event['random']} of {name}, drawn from the seed,"
        when = quantities.spaced(str(event.get("at", "")))
        lasts = str(event.get("lasts", "auto"))
        until = "" if lasts == "auto" else f" for {quantities.spaced(lasts)}"
        events.append(f"{name} {event.get('change', 'down')} at {when}{until}")
    loss = failures.get("loss")
    if isinstance(loss, int | float) and loss > 0:
        events.append(f"every link loses {quantities.share_text(loss)} of the packets")
    return ", ".join(events)


def _flows_in_short(lines: Sequence[Line]) -> str:
    """Return traffic, load and network that all lines have; "their traffic" where they have not the same."""
    scenarios = [line.runs[0].scenario for line in lines]
    found = [_short_facts(scenario) for scenario in scenarios]
    traffic, load, kind = (of[0] if len(set(of)) == 1 else None for of in zip(*found, strict=True))
    what = "their traffic" if traffic is None else f"{traffic} traffic"
    one = len({str(scenario.get("topology")) for scenario in scenarios}) == 1
    network = " ".join(filter(None, ["this" if one else "" if kind else "their", kind, "network"]))
    return f"{what}{f' at {load} load' if load else ''} on {network}{'' if one else 's'}"


def _short_facts(found: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the kinds of traffic of a scenario, the load where it has one, and the kind of its network."""
    workloads = _tables(found.get("workload"))
    kind = str(_table(found.get("topology")).get("kind", ""))
    traffic = listed(list(dict.fromkeys(str(workload.get("kind", "")) for workload in workloads))) or "this"
    load = workloads[0].get("load") if len(workloads) == 1 and workloads[0].get("kind") == "poisson" else None
    at = quantities.share_text(load) if isinstance(load, int | float) else ""
    return traffic, at, "" if kind == "file" else kind


def listed(names: Sequence[str]) -> str:
    """Return ``"a, b and c"``."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else ""


def _tables(value: object) -> list[Mapping[str, Any]]:
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
