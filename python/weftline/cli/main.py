"""The command line: `weftline demo`, `run`, `check`, `list`, `bench` and `schema`; `report` and `compare` are
in `results`, `sweep` and `query` in `store`, `pcap` and `import` in `packets`, `new`, `explain`,
`completions`, `view` and `doctor` in `discover`, others in the file of their name.

Exit status: 0 done, 1 the run failed, was interrupted or reached its memory limit, 2 the input was wrong.
Only what a command needs is imported.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import stat
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from weftline.cli import arguments

DONE, FAILED, WRONG_INPUT = 0, 1, 2
UNLISTED = {
    "schema": "for editors",
    "completions": "for shells",
    "bench": "speed of this build and machine",
    "pcap": "the links of a capture, and the dissector",
}
"""Commands that `weftline --help` names at its end alone, and what they are for."""
KINDS = (
    "transports",
    "controllers",
    "tcp-controllers",
    "queues",
    "balancers",
    "topologies",
    "workloads",
    "presets",
    "metrics",
    "experiments",
    "claims",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    from weftline.cli import streams

    with streams.usable():
        return _main(arguments)


def _main(arguments: Sequence[str] | None) -> int:
    _end_like_ctrl_c("SIGTERM", "SIGHUP")
    try:
        status = _command(arguments)
        sys.stdout.flush()
        return status
    except MemoryError:
        print("failed: the memory of this process is used up, or its limit (ulimit -v)", file=sys.stderr)
        return FAILED
    except OSError as error:
        # Without a file's name it is what we print that found no room, such as on a full disk.
        from weftline.cli import streams

        streams.drop(sys.stdout)
        what = error.filename or "the output cannot be written"
        print(f"failed: {what}: {error.strerror or error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return FAILED


def _end_like_ctrl_c(*names: str) -> None:
    """Let these signals, of a batch system or a closed terminal, end a run as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        return
    for name in names:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def _command(arguments: Sequence[str] | None) -> int:
    """Run one command; each warning on results is printed once, as a sentence."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = _show_warning  # type: ignore[assignment]
        return _command_with_warnings(arguments)


def _show_warning(message: Warning | str, *_: object) -> None:
    from weftline import terminal

    terminal.say("warning", message)


def _command_with_warnings(arguments: Sequence[str] | None) -> int:
    from weftline import terminal
    from weftline.errors import InputError, RunFailed

    try:
        _check_bytes(sys.argv[1:] if arguments is None else arguments)
    except InputError as error:
        terminal.say("error", error)
        return WRONG_INPUT
    options = parser().parse_args(arguments)
    if options.version:
        from weftline import _native

        print(f"weftline {_native.version()}")
        return DONE
    if options.do is None:
        parser().print_help()
        return WRONG_INPUT
    _name_pipes(options)
    try:
        return options.do(options)
    except InputError as error:
        terminal.say("error", error)
        return WRONG_INPUT
    except RunFailed as error:
        terminal.say("failed", error)
        return FAILED


def _name_pipes(options: argparse.Namespace) -> None:
    """State which named pipes the command opens: it waits for ever where no process is at the other end."""
    for given in vars(options).values():
        for name in given if isinstance(given, list) else [given]:
            # What a shell substitutes for a process is below /dev, and open.
            if isinstance(name, str) and not name.startswith("/dev/") and _is_pipe(name):
                text = f"note: {name} is a named pipe: waits until another process opens it"
                print(text, file=sys.stderr, flush=True)


def _is_pipe(name: str) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return stat.S_ISFIFO(os.stat(name).st_mode)
    return False


def _check_bytes(arguments: Sequence[str]) -> None:
    """Raise if an argument is not text in UTF-8: it could be neither printed nor stored."""
    from weftline.errors import utf8

    for place, argument in enumerate(arguments):
        name, value = arguments[place - 1] if place else "", argument
        if argument.startswith("-") and "=" in argument:
            name, _, value = argument.partition("=")
            value = value if name.isascii() else argument
        utf8(name if name.startswith("-") and name.isascii() else f"argument {place + 1}", value)


class _Parser(argparse.ArgumentParser):
    """Names the nearest command when one is misspelt."""

    def error(self, message: str) -> NoReturn:
        found = re.match(r"argument COMMAND: invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if found:
            from weftline.errors import nearest

            known = found[2].replace("'", "").split(", ")
            message = f'unknown command "{found[1]}": {nearest(found[1], known)}known: {", ".join(known)}'
        super().error(message)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    from weftline.cli import collect, discover, jobs, lab, packets, pint, reproduce, results, store, why

    top = _Parser(
        prog="weftline",
        description="A packet-level simulator for datacenter fabrics.",
        epilog="weftline COMMAND --help says more. Not listed: "
        + ", ".join(f"{name} ({what})" for name, what in UNLISTED.items())
        + ". Exit status: 0 done, 1 failed or interrupted, 2 wrong input.",
        allow_abbrev=False,
    )
    top.add_argument("--version", action="store_true", help="print the version")
    top.set_defaults(do=None)
    commands = top.add_subparsers(title="commands", metavar="COMMAND")

    def command(name: str, do: Callable[..., Any] | None, text: str) -> argparse.ArgumentParser:
        # A command without a help text works and is not listed.
        shown: dict[str, Any] = {} if name in UNLISTED else {"help": text}
        found = commands.add_parser(
            name, description=text[0].upper() + text[1:] + ".", allow_abbrev=False, **shown
        )
        found.set_defaults(do=do)
        return found

    demo = command(
        "demo", _demo, "measure numbers of five papers in a minute and compare them with the published ones"
    )
    arguments.add_out(demo, "DIR", "folder for points and page (default out/demo)")
    arguments.add_jobs(demo)
    arguments.add_output(demo)

    run = command("run", _run, "run a scenario and write its results to a folder")
    _scenario_options(run)
    run.add_argument(
        "--threads",
        type=arguments.threads,
        metavar="N",
        help="worker threads; 0: choose automatically (default: run.threads of the scenario)",
    )
    run.add_argument(
        "--memory",
        metavar="SIZE",
        help="memory limit such as 8GB: a run that needs more ends and "
        'keeps its results so far; "none": the memory of the machine',
    )
    arguments.add_out(run, "DIR", "folder for the results (default out/<name>-<hash>)")
    run.add_argument(
        "--memo",
        action="store_true",
        help="do not simulate steps of a collective again that cannot differ (run.memo = true)",
    )
    run.add_argument(
        "--force",
        action="store_true",
        help="run even if its results are there, and replace what the folder holds",
    )
    arguments.add_output(run)

    check = command("check", _check, "print everything that follows from a scenario, without running it")
    _scenario_options(check)
    check.add_argument(
        "--resolved", action="store_true", help="print the scenario with every default, as TOML"
    )
    arguments.add_json(check)

    listed = command("list", _list, "list what can be named in a scenario, and the experiments")
    listed.add_argument("kind", nargs="?", metavar="KIND", help="one of: " + ", ".join(KINDS))
    arguments.add_json(listed)

    reproduce.add_to(command)
    results.add_to(command)

    bench = command("bench", _bench, "measure packet-hops per CPU second on the standard workloads")
    bench.add_argument(
        "workloads",
        nargs="*",
        metavar="WORKLOAD",
        help="names of workloads (default: all), or the file of a scenario",
    )
    arguments.add_set(bench, "replace a value of every workload")
    bench.add_argument(
        "--repeats",
        type=arguments.count,
        default=3,
        metavar="N",
        help="runs of each workload (default 3); the median is reported",
    )
    bench.add_argument(
        "--threads",
        type=arguments.threads,
        default=1,
        metavar="N",
        help="worker threads; 0: choose automatically (default 1)",
    )
    arguments.add_json(bench)
    arguments.add_out(bench, "FILE", "write the JSON to a file")
    bench.add_argument("--against", metavar="FILE", help="compare with a file that --out wrote")
    bench.add_argument(
        "--fail-above",
        type=arguments.percent,
        metavar="PERCENT",
        help="with --against: exit status 1 if a packet-hop takes more than PERCENT longer",
    )
    # One run of one workload, for the process that measures it.
    bench.add_argument("--one", metavar="WORKLOAD", help=argparse.SUPPRESS)

    why.add_to(command)
    jobs.add_to(command)

    schema = command("schema", _schema, "print the JSON Schema of the scenario file")
    arguments.add_json(schema, "print JSON, as without it")

    store.add_to(command)

    pint.add_to(command("pint", None, "plan, encode, decode and evaluate PINT telemetry"), _Parser)

    packets.add_to(command)

    collect.add_to(command)
    lab.add_to(command)

    discover.add_to(command)
    return top


def _scenario_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("scenario", metavar="SCENARIO.toml", help="the scenario")
    arguments.add_set(command, "replace a value, such as workload.0.load=0.7")
    command.add_argument(
        "--seed", type=arguments.whole(0, 2**63 - 1), metavar="N", help="seed of every random stream"
    )
    arguments.add_controllers(command)


def _run(options: argparse.Namespace) -> int:
    from weftline import run_status, terminal
    from weftline.measures import run_facts
    from weftline.scenario import check_limits, reused_text

    scenario = _scenario(options)
    check_limits(options.threads, options.memory)
    place = scenario.place(options.out, force=options.force)
    line = terminal.ProgressLine(quiet=options.quiet or options.json)
    name = os.path.basename(options.scenario).removesuffix(".toml")
    show = (lambda state: line.show(terminal.progress_text(name, state))) if line.shown else None
    foreseen: list[str] = []
    try:
        with place:
            if not (options.quiet or place.stored):
                foreseen = scenario.loaded.foreseen(options.memory)
            for warning in foreseen:
                terminal.say("warning", warning)
            run = place.stored or scenario.start(
                threads=options.threads,
                memory=options.memory,
                out=place.out,
                force=place.force,
                progress=show,
                claim=place.claim,
            )
    except KeyboardInterrupt:
        line.clear()
        begun = os.path.isdir(place.out)
        print(
            f"interrupted; what was computed is in {place.out}" if begun else "interrupted",
            file=sys.stderr,
        )
        return FAILED
    line.clear()
    if not options.quiet:
        if run.reused:
            print(reused_text(run, "--force"), file=sys.stderr)
        for warning in [*scenario.unused_controllers, *run_status.warnings(run)]:
            if warning not in foreseen:
                terminal.say("warning", warning)
        if memo := run.summary.get("memo"):
            why = f"; {memo['why_not']}" if memo["why_not"] else ""
            repeated = f"{memo['steps_repeated']} of {memo['steps_simulated'] + memo['steps_repeated']}"
            print(f"memo: {repeated} steps repeated, the others simulated{why}", file=sys.stderr)
    if options.json:
        arguments.print_json({**run.summary, "out": str(run.out), "reused": run.reused})
    elif not options.quiet:
        print("\n\n".join(table.text() for table in run_facts.run_tables(run)))
    return _ending(run)


def _ending(run: Any) -> int:
    from weftline import terminal
    from weftline.run_status import ending

    text = ending(run)
    if text is None:
        return DONE
    terminal.say("failed", text)
    return FAILED


def _scenario(options: argparse.Namespace) -> Any:
    """Return the scenario that the command line names, with its controllers in Python and the changes."""
    from weftline import scenarios
    from weftline.scenario import Scenario

    source = scenarios.load(options.scenario)
    if options.controller:
        from dataclasses import replace

        from weftline import controllers

        source = replace(source, controllers=controllers.parse(options.controller))
    changes = scenarios.parse_sets(options.set)
    if getattr(options, "memo", False):
        changes.append(("run.memo", "true"))
    return Scenario.of(source, changes, seed=options.seed)


def _check(options: argparse.Namespace) -> int:
    from weftline.cli import facts

    scenario = _scenario(options)
    if options.resolved:
        print(scenario.resolved, end="")
        return DONE
    found = scenario.check()
    if options.json:
        arguments.print_json(found)
    else:
        facts.show(facts.of_check(found))
    return DONE


def _list(options: argparse.Namespace) -> int:
    import json

    from weftline import _native, terminal
    from weftline.cli import aliases, explain
    from weftline.errors import InputError, nearest
    from weftline.lab import experiment as lab_experiments
    from weftline.reproduce import experiments

    options.kind = aliases.KINDS.get(options.kind, options.kind)
    if options.kind is not None and options.kind not in KINDS:
        hint = nearest(options.kind, list(KINDS))
        raise InputError(f'unknown kind "{options.kind}": {hint}known: {", ".join(KINDS)}')
    names = json.loads(_native.names()) if options.kind not in ("metrics", "experiments", "claims") else {}
    if options.kind == "metrics":
        from weftline.measures.metrics import METRICS

        names["metrics"] = [
            {"name": name, "help": found.axis or found.title} for name, found in METRICS.items()
        ]
    if options.kind in (None, "experiments"):
        names["experiments"] = [{"name": name, "help": title} for name, title in experiments.titles()]
        names["experiments"] += [{"name": name, "help": title} for name, title in lab_experiments.titles()]
    if options.kind == "claims":
        from weftline.reproduce import ledger

        names["claims"] = [{"name": row.id, "help": row.claim} for row in ledger.load().rows]
    shown = [options.kind] if options.kind else [kind for kind in KINDS if kind in names]
    if options.json:
        arguments.print_json({kind: names.get(kind, []) for kind in shown})
        return DONE
    width = max((len(entry["name"]) for kind in shown for entry in names.get(kind, [])), default=0)
    for kind in shown:
        if len(shown) > 1:
            print(f"{kind}:")
        entries = []
        for entry in names.get(kind, []):
            notes = [explain.transports(entry, entry["name"]), entry.get("package")]
            marks = "".join(f" [{note}]" for note in notes if note)
            entries.append((entry["name"], f"{entry['help']}{marks}"))
        if entries:
            print(terminal.entries_text(entries, indent=2, narrowest=width))
    return DONE


def _demo(options: argparse.Namespace) -> int:
    from weftline.reproduce import demo

    return demo.command(options)


def _bench(options: argparse.Namespace) -> int:
    from weftline.cli import bench

    return bench.command(options)


def _schema(options: argparse.Namespace) -> int:
    from weftline import _native

    print(_native.schema())
    return DONE


if __name__ == "__main__":
    sys.exit(main())
