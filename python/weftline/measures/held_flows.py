"""Flows that waited for their own control or to send packets again: how long, and which links were busy.

A sender that is paced, has a window or needs tokens adapts to the busiest link of its path. So it waits at
its own end for what that link causes, and its waits at links do not show which link limits it. The use of the
links of its path does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weftline import columns
from weftline.quantities import share_text, time_text

if TYPE_CHECKING:
    from weftline.runs import Run

CONTROL = ("pacing", "window", "receiver", "transport")
"""Causes for which the ends of a flow decide when it sends."""
AGAIN = ("retransmission", "timeout", "loss detection")
"""Causes of packets that are sent again."""
CLOSE = 0.05
"""Links whose use differs from the busiest one's by at most this share are as busy."""
BUSY = 0.5
"""A link that is used less than this does not limit a flow."""
FULL = 0.85
"""A link that is used less than this had room left, for what an application sends at a rate of its own."""
QUEUES = ("own queue", "queue of others", "higher priority")
"""Causes for which a flow waits in front of a link."""
NAMED = 0.05
"""Links for which flows were held for less than this share of the longest time are not named."""
SHOWN = 3
APPLICATION_RATES = ("app_rate", "app_read_rate")
"""Keys of transports with a rate at which an application writes or reads."""


def mark_applications(run: Run, flows: Sequence[dict[str, Any]]) -> None:
    """Add ``application`` to flows of an answer whose transport has a rate of the application, True."""
    workloads = run.scenario.get("workload", ())
    tables = [run.scenario.get("transport", {}), *(one.get("transport", {}) for one in workloads)]
    kinds = {
        table.get("kind")
        for table in tables
        if any(table.get(key, "auto") != "auto" for key in APPLICATION_RATES)
    }
    if not kinds:
        return
    of = columns.read(run.flows, ("flow_id", "transport"))
    marked = {flow for flow, kind in zip(*of.values(), strict=True) if kind in kinds}
    for flow in flows:
        if flow["flow"] in marked:
            flow["application"] = True


def held(flows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what flows of an answer of `why` waited for at their ends and at links, and their busiest links.

    ``outweighs``: they waited longer at their ends than at all links. The time in which their NICs sent
    packets of other flows again counts to ``again_ps``, because a port that trimmed or lost them caused it.
    """
    nic_again = sum(flow.get("nic_again_ps", 0) for flow in flows)
    at_links = sum(part["ps"] for flow in flows for part in flow["waits"] if part["link"]) - nic_again
    control = sum(_at_ends(flow, CONTROL) for flow in flows)
    again = sum(_at_ends(flow, AGAIN) for flow in flows) + nic_again
    return {
        "time_ps": sum(flow["fct_ps"] for flow in flows),
        "at_links_ps": at_links,
        "control_ps": control,
        "again_ps": again,
        "nic_again_ps": nic_again,
        "outweighs": control + again > at_links,
        "links": _busiest(flows),
        "trimmed": _trimmed(flows),
    }


def _at_ends(flow: Mapping[str, Any], causes: Sequence[str]) -> int:
    return sum(part["ps"] for part in flow["waits"] if part["link"] is None and part["cause"] in causes)


def _held_ps(flow: Mapping[str, Any]) -> int:
    """Return for how long a flow waited for its own control or to send packets again."""
    return _at_ends(flow, CONTROL + AGAIN) + flow.get("nic_again_ps", 0)


def _busiest(flows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the busiest links of the path of each flow, by the time for which these flows were held.

    Of links that were as busy, those that trimmed or lost packets of the flow are taken, if there are any;
    else those where it waited in the queue: a link after them is as busy because they feed it.
    """
    sums: dict[str, list[float]] = {}
    for flow in flows:
        used = {one["link"]: one["share"] for one in flow.get("used", ())}
        time = _held_ps(flow)
        if not used or not time:
            continue
        highest = max(used.values())
        found = [link for link, share in used.items() if share >= highest - CLOSE]
        signs = {part["at"] for name in ("trimmed", "lost") for part in flow.get(name, ())}
        found = [link for link in found if link in signs] or _queued(flow, found) or found
        for link in found:
            one = sums.setdefault(link, [0, 0, 0.0])
            one[:] = [one[0] + 1, one[1] + time, one[2] + time * used[link]]
    links = [
        {"link": link, "flows": int(count), "held_ps": int(time), "used": used / time}
        for link, (count, time, used) in sums.items()
    ]
    return sorted(links, key=lambda one: (-one["held_ps"], -one["used"], one["link"]))


def _queued(flow: Mapping[str, Any], links: Sequence[str]) -> list[str]:
    """Return those of some links in whose queues a flow waited longest, or at least half as long."""
    waits = dict.fromkeys(links, 0)
    for part in flow["waits"]:
        if part["link"] in waits and part["cause"] in QUEUES:
            waits[part["link"]] += part["ps"]
    longest = max(waits.values())
    return [link for link, time in waits.items() if longest and 2 * time >= longest]


def _trimmed(flows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    sums: dict[str, int] = {}
    for part in (part for flow in flows for part in flow.get("trimmed", ())):
        sums[part["at"]] = sums.get(part["at"], 0) + part["packets"]
    return [
        {"at": at, "packets": packets}
        for at, packets in sorted(sums.items(), key=lambda one: (-one[1], one[0]))
    ]


def text(flows: Sequence[Mapping[str, Any]], what: str = "flows") -> str:
    """Return what limits flows that waited longer at their ends than at links; of others ``""``."""
    of = held(flows)
    if not of["outweighs"]:
        return ""
    one = len(flows) == 1
    these, their = ("This flow", "its") if one else (f"These {len(flows):,} {what}", "their")
    whole = max(of["time_ps"], 1)
    sums = {cause: sum(_at_ends(flow, (cause,)) for flow in flows) for cause in (*CONTROL, *AGAIN)} | {
        "NICs that sent packets of other flows again": of["nic_again_ps"]
    }
    named = ", ".join(
        f"{cause} {_ps(time)}" for cause, time in sorted(sums.items(), key=lambda one: -one[1]) if time
    )
    ends = of["control_ps"] + of["again_ps"]
    parts = [
        f"{these} waited {share_text(of['at_links_ps'] / whole)} of {their} time for links, and "
        f"{share_text(ends / whole)} for other reasons ({named}), so the waits at links do not show which "
        f"link limits {'it' if one else 'them'}.",
        *_limits_texts(flows),
        trims_text(flows),
    ]
    return " ".join(part for part in parts if part)


def _limits_texts(flows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence on the busiest links of flows whose paths have a full link, a busy one, or none.

    Flows on idle paths are held by their own control, whatever limits the others. The sentence on the flows
    that were held longest comes first.
    """
    groups: list[list[Mapping[str, Any]]] = [[], [], []]
    for flow in flows:
        if flow.get("used") and _held_ps(flow):
            highest = max(one["share"] for one in flow["used"])
            groups[0 if highest >= FULL else 1 if highest >= BUSY else 2].append(flow)
    if sum(map(bool, groups)) < 2:
        return [_busiest_text(flows, "its path" if len(flows) == 1 else "their paths")]
    times = [sum(map(_held_ps, group)) for group in groups]
    named = [at for at, time in enumerate(times) if time and time >= NAMED * max(times)]
    return [
        _busiest_text(group, f"the path{'s' * (len(group) > 1)} of {len(group):,} of them")
        for group in (groups[at] for at in sorted(named, key=lambda at: -times[at]))
    ]


def _busiest_text(flows: Sequence[Mapping[str, Any]], paths: str) -> str:
    of, one = held(flows), len(flows) == 1
    lost = any(part["packets"] > part.get("answers", 0) for flow in flows for part in flow.get("lost", ()))
    has_rate = any(flow.get("application") for flow in flows)
    their, they = ("its", "it") if one else ("their", "they")
    links = of["links"]
    if not links:
        return ""
    if max(link["used"] for link in links) < BUSY:
        if of["control_ps"] < of["again_ps"]:
            return ""
        highest = max(links, key=lambda link: link["used"])
        return (
            f"No link of {paths} was busy while {they} ran ({highest['link']}, the busiest, was used "
            f"{share_text(highest['used'])}): {their} own control is the limit, "
            + ("which lost packets slow down if it reacts to them." if lost else "and not a link.")
        )
    links = [link for link in links if link["held_ps"] >= NAMED * links[0]["held_ps"]]
    named = [
        f"{link['link']} (used {share_text(link['used'])}"
        + ("" if one else f", {link['flows']} flow{'s' * (link['flows'] != 1)}")
        + ")"
        for link in links[:SHOWN]
    ]
    more = f", and {len(links) - SHOWN} more" if len(links) > SHOWN else ""
    which, were = ("link", "was") if len(links) == 1 else ("links", "were")
    adapts = f", to which {their} {'sender adapts' if one else 'senders adapt'},"
    had_room = max(link["used"] for link in links) < FULL
    is_open = had_room or has_rate
    text = f"The busiest {which} of {paths}{'' if is_open else adapts} {were}: {', '.join(named)}{more}"
    if not is_open:
        return f"{text}."
    may = f"may limit {'it' if one else 'them'}"
    if has_rate:
        return f"{text}; the rate of an application (app_rate, app_read_rate) {may}, as well as a link."
    return f"{text}; no link was full, so {their} own control, or the rate of an application, {may}."


def trims_text(flows: Sequence[Mapping[str, Any]]) -> str:
    """Return which ports trimmed packets of flows."""
    trimmed = _trimmed(flows)
    named = [f"{part['at']} ({part['packets']:,})" for part in trimmed[:SHOWN]]
    more = f", and {len(trimmed) - SHOWN} more" if len(trimmed) > SHOWN else ""
    return f"Packets were trimmed at: {', '.join(named)}{more}." if named else ""


def _ps(value: int) -> str:
    return time_text(value / 1000)
