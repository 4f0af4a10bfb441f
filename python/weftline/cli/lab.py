"""The command `lab`: a scenario on real packets of this machine."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from weftline.cli import arguments

DONE, FAILED = 0, 1


def add_to(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command; `command` makes its parser from name, function and help."""
    lab = command("lab", None, "run a scenario on real packets, in namespaces of this Linux machine")
    lab.set_defaults(do=lambda options: _help(lab))
    parts = lab.add_subparsers(title="commands", metavar="COMMAND")

    def part(name: str, do: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        found = parts.add_parser(
            name, help=text, description=text[0].upper() + text[1:] + ".", allow_abbrev=False
        )
        found.set_defaults(do=do)
        return found

    doctor = part(
        "doctor", _doctor, "what this kernel and this user can do, what is missing and how to get it"
    )
    arguments.add_json(doctor)
    run = part("run", _run, "build the network, run the flows, write a run's folder, remove everything")
    _scenario(run)
    arguments.add_out(run, "DIR", "folder for the results", required=True)
    run.add_argument("--force", action="store_true", help="replace the results that the folder holds")
    run.add_argument(
        "--repeats",
        type=arguments.count,
        default=1,
        metavar="N",
        help="runs, into DIR/1 to DIR/N (default 1)",
    )
    run.add_argument(
        "--priority",
        choices=("auto", "normal"),
        default="auto",
        help="auto (default): the run's processes get real-time priority where this user may give it; "
        "normal: they do not",
    )
    arguments.add_output(run)
    trial = part(
        "experiment", _experiment, "simulate and run the points of an experiment's lab.toml, and compare them"
    )
    trial.add_argument(
        "folder", metavar="FOLDER", help="folder with a lab.toml, or its name, such as lab-pint"
    )
    arguments.add_out(
        trial, "DIR", "folder for the runs; those that are finished there are kept", required=True
    )
    trial.add_argument(
        "--repeats", type=arguments.count, default=5, metavar="N", help="runs of each point (default 5)"
    )
    trial.add_argument(
        "--seconds", type=float, metavar="S", help="length of a run, in place of the scenario's"
    )
    trial.add_argument(
        "--row", action="append", default=[], metavar="NAME", help="this row alone; may be repeated"
    )
    arguments.add_json(trial)
    build = part("up", _up, "build the network and leave it, to look inside; `down` removes it")
    _scenario(build)
    down = part("down", _down, "remove what `up` left")
    clean = part("clean", _clean, "remove the namespaces of killed runs; live runs and what `up` made stay")
    for made in (build, down, clean):
        arguments.add_json(made)


def _scenario(command: argparse.ArgumentParser) -> None:
    command.add_argument("scenario", metavar="SCENARIO", help="TOML file")
    arguments.add_set(command, "replace a value, such as scale.by=100; may be repeated")
    command.add_argument(
        "--ports",
        choices=("auto", "kernel", "engine"),
        default="auto",
        help="whose ports switches have (default auto: the kernel's if all are FIFO and mark nothing, "
        "else the simulator's)",
    )
    command.add_argument(
        "--hosts",
        choices=("auto", "kernel", "engine"),
        default="auto",
        help="whose transports hosts have (default auto: the kernel's TCP and MPTCP, all others of the "
        "simulator)",
    )
    command.add_argument(
        "--ip",
        type=int,
        choices=(4, 6),
        help="version of IP on the links (default 4, or 6 with --ioam); with 6, digests of PINT are in the "
        "flow label",
    )
    command.add_argument(
        "--ioam",
        action="store_true",
        help="packets of flows carry the kernel's IOAM trace: switch, time and queue of every hop (IPv6)",
    )
    command.add_argument("--seed", type=int, metavar="N", help="seed, in place of the scenario's")


def _help(lab: argparse.ArgumentParser) -> int:
    lab.print_help()
    return 2


def _doctor(options: argparse.Namespace) -> int:
    from weftline.lab import doctor
    from weftline.terminal import Table

    found = doctor.findings()
    if options.json:
        arguments.print_json(doctor.as_json(found))
    else:
        print(Table(["lab", "", ""], [[one.name, one.state, one.text] for one in found], left=3).text())
        print("scenarios can be run here" if doctor.can_run(found) else "nothing can be run here")
    return DONE if doctor.can_run(found) else FAILED


def _run(options: argparse.Namespace) -> int:
    from weftline.lab import runs
    from weftline.terminal import say

    scenario = runs.scenario_of(options.scenario, options.set, options.seed)
    foreseen: list[str] = []

    def warn(text: str) -> None:
        foreseen.append(text)
        say("warning", text)

    found = runs.run(
        scenario,
        options.out,
        force=options.force,
        repeats=options.repeats,
        ports=options.ports,
        hosts=options.hosts,
        priority=options.priority,
        ip=options.ip,
        traced=options.ioam,
        warn=warn,
    )
    for one in found:
        for text in one.warnings:
            if text not in foreseen:
                say("warning", f"{one.out}: {text}")
    if options.json:
        arguments.print_json([one.summary for one in found] if len(found) > 1 else found[0].summary)
    elif not options.quiet:
        from weftline.lab import texts

        print("\n\n".join(texts.facts(one).text() for one in found))
    return DONE if all(one.summary["status"] == "done" for one in found) else FAILED


def _experiment(options: argparse.Namespace) -> int:
    from pathlib import Path

    from weftline.lab import experiment

    holds = experiment.carry_out(
        options.folder,
        Path(options.out),
        rows=options.row,
        count=options.repeats,
        seconds=options.seconds,
        as_json=options.json,
    )
    return DONE if holds else FAILED


def _up(options: argparse.Namespace) -> int:
    from weftline.lab import runs
    from weftline.lab.network import Network
    from weftline.lab.processes import Processes
    from weftline.terminal import say

    scenario = runs.scenario_of(options.scenario, options.set, options.seed)
    made, _ = runs.planned(scenario, options.ports, options.hosts, ip=options.ip, traced=options.ioam)
    if made.stamping or made.balancing or made.at_ports:
        say(
            "warning",
            "switches have no programs while the network is up: the kernel's ECMP balances packets, and they "
            "carry no telemetry",
        )
    if made.engine_hosts:
        say(
            "warning",
            "hosts of the engine exist during `weftline lab run` alone: what is up are the switches and the "
            "ends of their links",
        )
    network = Network(made, keep=True)
    network.build()
    processes = Processes(network, dies=False)
    try:
        if made.wires:
            processes.start_wires()
    except BaseException:
        network.remove()
        raise
    if options.json:
        named = {node.name: (network.name(node.name), node.address) for node in made.own_nodes}
        nodes = {name: {"namespace": space, "address": address} for name, (space, address) in named.items()}
        arguments.print_json({"nodes": nodes})
        return DONE
    for node in made.own_nodes:
        print(f"{network.name(node.name)}  {node.address or 'switch'}")
    look = "ip link" if made.engine_hosts else "ping ADDRESS"
    print(f"`ip netns exec {network.name(made.own_nodes[0].name)} {look}`; `weftline lab down` removes it")
    return DONE


def _down(options: argparse.Namespace) -> int:
    from weftline.lab import network

    return _removed(network.clean([one for one in network.records() if one.get("keep")]), options)


def _clean(options: argparse.Namespace) -> int:
    from weftline.lab import network

    # One that is being killed may still be there for a moment.
    time.sleep(0.05)
    records = network.records()
    left = [one for one in records if not one["alive"] and not one.get("keep")]
    if kept := sum(bool(one.get("keep")) for one in records):
        print(f"networks of `weftline lab up` that stay until `weftline lab down`: {kept}", file=sys.stderr)
    return _removed([*network.clean(left), *network.clean_unrecorded()], options)


def _removed(names: list[str], options: argparse.Namespace) -> int:
    if options.json:
        arguments.print_json({"removed": names})
        return DONE
    print("\n".join(f"removed {name}" for name in names) or "nothing to remove", file=sys.stdout)
    return DONE
