"""Commands to begin with and to find one's way: `new`, `explain`, `completions`, `view`, `doctor`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

from weftline.cli import arguments


def add_to(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands; `command` makes the parser of one, from name, function and help."""
    new = command("new", _new, "write a commented scenario that runs, to start from")
    new.add_argument("template", nargs="?", metavar="TEMPLATE", help="such as incast (default: leaf-spine)")
    new.add_argument("--list", action="store_true", help="list the templates")
    arguments.add_out(new, "FILE", "where to write it (default TEMPLATE.toml)")
    new.add_argument("--force", action="store_true", help="replace existing files")
    new.add_argument(
        "--no-schema", action="store_true", help="do not write the JSON Schema for editors next to it"
    )
    arguments.add_json(new)

    explain = command("explain", _explain, "explain a scheme, a key, a metric or a column, with its source")
    explain.add_argument("name", metavar="NAME", help="such as hpcc, switch.ecn.kmin or slowdown")
    arguments.add_json(explain)

    completions = command("completions", _completions, "print a script that completes commands in a shell")
    completions.add_argument("shell", metavar="SHELL", help="bash, zsh or fish")
    arguments.add_json(completions)

    view = command("view", _view, "show runs in the browser: list, filter, compare, query in SQL")
    view.add_argument("folder", metavar="DIR", help="a result store, or a folder of run folders")
    view.add_argument(
        "--port", type=arguments.whole(0, 65535), default=0, metavar="N", help="port (default: a free one)"
    )
    view.add_argument("--open", action="store_true", help="open the browser too")
    arguments.add_json(view, "print the address as JSON")

    doctor = command("doctor", _doctor, "check what this machine provides for weftline, and what is missing")
    arguments.add_json(doctor)


def _new(options: argparse.Namespace) -> int:
    from weftline.cli import start
    from weftline.terminal import entries_text, wrapped

    if options.list:
        found = {name: start.template(name).about for name in start.names()}
        if options.json:
            arguments.print_json([{"name": name, "help": about} for name, about in found.items()])
        else:
            print(entries_text(list(found.items())))
        return 0
    name = options.template or start.DEFAULT
    written = start.write(name, options.out, force=options.force, schema=not options.no_schema)
    if options.json:
        arguments.print_json({"template": name, "written": [str(path) for path in written]})
        return 0
    print(wrapped(start.template(name).about))
    print("wrote " + ", ".join(str(path) for path in written))
    print(f"next: weftline run {written[0]}")
    return 0


def _explain(options: argparse.Namespace) -> int:
    from weftline.cli import explain

    entry = explain.entry(options.name)
    if options.json:
        arguments.print_json(entry)
        return 0
    from weftline.terminal import Table, wrapped

    if "asked" in entry:
        print(f"{entry['asked']} is explained by {entry['name']}\n")
    print(wrapped(f"{entry['name']}: {entry.get('title', '')}".rstrip(": ")))
    for key in ("text", "equations", "source", "validation"):
        if entry.get(key) and not (key == "text" and entry["text"] in entry["title"]):
            print("\n" + wrapped(f"{'' if key == 'text' else key.capitalize() + ': '}{entry[key]}"))
    if serves := explain.transports(entry, entry["name"].removeprefix("tcp.")):
        print(f"\nTransports: {serves}")
    if "package" in entry:
        print(f"\nFrom: {entry['package']}")
    if entry.get("parameters"):
        rows = []
        for p in entry["parameters"]:
            rows.append([str(p.get(k) or "") for k in ("key", "type", "default", "help")])
            rows += [["", f'"{c["name"]}"', "", c["help"]] for c in p.get("choices", [])]
        print("\n" + Table(["parameter", "type", "default", "meaning"], rows, left=4).text())
    for rule in entry.get("rules", []):
        there = rule["there"].replace("**", "")
        print("\n" + wrapped(f"{rule['rule']}: {there}. By default: {rule['here']}."))
    return 0


def _completions(options: argparse.Namespace) -> int:
    from weftline.cli import completions, main

    script = completions.script(options.shell, main.parser())
    if options.json:
        arguments.print_json({"shell": options.shell, "script": script})
    else:
        print(script, end="")
    return 0


def _view(options: argparse.Namespace) -> int:
    from weftline.report import view

    server = view.View(options.folder, port=options.port)
    try:
        if options.json:
            print(json.dumps({"url": server.url}), flush=True)
        else:
            print(f"{server.url}\nServing on localhost only. Press Ctrl-C to stop.", flush=True)
        if options.open:
            import webbrowser

            webbrowser.open(server.url)
        server.serve()
    except KeyboardInterrupt:
        print()
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from weftline.cli import doctor
    from weftline.terminal import entries_text

    found = doctor.findings()
    if options.json:
        arguments.print_json([vars(finding) for finding in found])
    else:
        marks = {"ok": " ", "missing": "-", "problem": "!"}
        print(entries_text([(f"{marks[one.state]} {one.name}", one.text) for one in found]))
    return 1 if any(finding.state == "problem" for finding in found) else 0
