"""The commands of `weftline pint`: plan, encode, accuracy, layout, vectors; decode is in `pint_decode`."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from typing import Any

from weftline.cli import arguments, pint_decode

DONE, FAILED = 0, 1


def add_to(parser: argparse.ArgumentParser, kind: type[argparse.ArgumentParser]) -> None:
    """Give `weftline pint` its commands, with parsers of this kind."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=kind)

    def command(name: str, do: Callable[..., Any], text: str) -> argparse.ArgumentParser:
        found = commands.add_parser(
            name, help=text, description=text[0].upper() + text[1:] + ".", allow_abbrev=False
        )
        found.set_defaults(do=do)
        return found

    parser.set_defaults(do=lambda options: _help(parser))
    plan = command(
        "plan", _plan, "choose the query sets for a file of queries, and print the expected accuracy"
    )
    plan.add_argument("queries", metavar="QUERIES.toml", help="what to learn; see docs/pint/queries.md")
    arguments.add_out(plan, "PLAN.toml", "write the plan for switches and collectors")
    arguments.add_json(plan)

    encode = command("encode", _encode, "compute the digests that switches under a plan would make")
    _plan_argument(encode)
    encode.add_argument(
        "seen",
        nargs="?",
        metavar="SEEN.csv",
        help="CSV with one row per packet and hop: packet_id, hop, the plan's values",
    )
    arguments.add_out(encode, "DIGESTS.csv", "with SEEN.csv: file to which the digests are written")
    encode.add_argument(
        "--packet", type=arguments.whole(0, 2**64 - 1), metavar="ID", help="one packet, hop by hop"
    )
    encode.add_argument(
        "--hop",
        action="append",
        default=[],
        metavar="VALUE=NUMBER,...",
        help="with --packet: what the next hop sees, such as switch-id=3,hop-latency=810",
    )
    arguments.add_json(encode)
    pint_decode.add_to(command)

    accuracy = command(
        "accuracy", _accuracy, "try a plan: packets to decode, errors of quantiles and numbers"
    )
    _plan_argument(accuracy)
    accuracy.add_argument("--hops", metavar="LIST", help="lengths of paths, such as 5,10 (default: expected)")
    accuracy.add_argument(
        "--trials", type=arguments.count, default=200, metavar="N", help="flows (default 200)"
    )
    accuracy.add_argument(
        "--seed", type=arguments.whole(0, 2**64 - 1), default=1, metavar="N", help="seed (default 1)"
    )
    accuracy.add_argument(
        "--topology",
        metavar="FILE",
        help="paths are shortest paths of this network, which the collector knows",
    )
    accuracy.add_argument(
        "--ids-only",
        action="store_true",
        help="the decoder knows the switches but not the links",
    )
    accuracy.add_argument(
        "--decoder",
        metavar="NAME",
        help="peeling (the paper's; default with --ids-only or without a topology) or collector (that of "
        "pint decode, which needs fewer packets; default with the links)",
    )
    accuracy.add_argument(
        "--ends", action="store_true", help="the collector knows the first and the last switch"
    )
    accuracy.add_argument(
        "--shortest", action="store_true", help="the collector knows that paths are shortest paths"
    )
    arguments.add_json(accuracy)

    layout = command(
        "layout",
        _layout,
        "show which pipeline stages of a switch each query needs; exit status 1 if one does not fit",
    )
    _plan_argument(layout)
    layout.add_argument(
        "--stages",
        type=arguments.count,
        default=12,
        metavar="N",
        help="number of pipeline stages (default 12)",
    )
    arguments.add_json(layout)

    vectors = command(
        "vectors", _vectors, "print test vectors for implementations of the encoder in other languages"
    )
    arguments.add_out(vectors, "DIR", "write functions.json and paths.json there")
    arguments.add_json(vectors)


def _plan_argument(command: argparse.ArgumentParser) -> None:
    command.add_argument("plan", metavar="PLAN.toml", help="a plan, or queries for which a plan is made")


def _help(parser: argparse.ArgumentParser) -> int:
    parser.print_help()
    return 2


def _plan(options: argparse.Namespace) -> int:
    from weftline import pint
    from weftline.outputs import refuse_inputs

    refuse_inputs({"--out": options.out}, [options.queries])
    plan = pint.Plan.open(options.queries)
    if options.out:
        plan.save(options.out)
    if options.json:
        arguments.print_json(plan.facts())
    else:
        print(plan.describe().rstrip())
        if options.out:
            print(f"\nplan: {options.out}")
    return DONE


def _encode(options: argparse.Namespace) -> int:
    from weftline import pint
    from weftline.errors import InputError
    from weftline.outputs import refuse_inputs

    refuse_inputs({"--out": options.out}, [options.seen, options.plan])
    plan = pint.Plan.open(options.plan)
    if (options.packet is None) == (options.seen is None):
        raise InputError("expected either SEEN.csv or --packet with one --hop for each hop")
    if options.seen is not None:
        if options.out is None:
            raise InputError("expected --out DIGESTS.csv: where the digests go")
        count = pint.encode(plan, options.seen, options.out)
        if options.json:
            arguments.print_json({"digests": count, "out": options.out})
        else:
            print(f"{count:,} digests of plan {plan.version:08x}: {options.out}")
        return DONE
    hops = [_seen(text) for text in options.hop]
    digests, loop_hop = plan.encode_and_report(packet_id=options.packet, hops=hops)
    serves = plan.serves(options.packet)
    if options.json:
        found = {"packet_id": options.packet, "queries": serves, "digests": digests, "loop_hop": loop_hop}
        arguments.print_json(found)
        return DONE
    print(f"packet {options.packet} serves {', '.join(serves) or 'no query'}")
    for hop, digest in enumerate(digests, start=1):
        print(f"  hop {hop}  {digest:#x}")
    if loop_hop is not None:
        print(f"loop reported at hop {loop_hop}")
    return DONE


def _seen(text: str) -> dict[str, int]:
    from weftline.errors import InputError

    seen = {}
    for part in text.split(","):
        name, equals, number = part.partition("=")
        if not (equals and number.isdecimal() and number.isascii()):
            raise InputError(f'--hop: expected VALUE=NUMBER such as switch-id=3, found "{part}"')
        if (name := name.strip()) in seen:
            raise InputError(f'--hop: "{name}" is given twice in "{text}": give each hop a --hop of its own')
        seen[name] = int(number)
    return seen


def _accuracy(options: argparse.Namespace) -> int:
    from weftline import pint

    plan = pint.Plan.open(options.plan)
    hops = None if options.hops is None else _lengths(options.hops)
    found = pint.accuracy(
        plan,
        hops=hops,
        trials=options.trials,
        seed=options.seed,
        topology=options.topology,
        ids_only=options.ids_only,
        ends=options.ends,
        shortest=options.shortest,
        decoder=options.decoder,
    )
    for warning in found["warnings"]:
        print(f"warning: {warning}", file=sys.stderr)
    if options.json:
        arguments.print_json(found)
        return DONE
    for query in found["queries"]:
        print(f"{query['name']} ({query['aggregation']})")
        for length in query["lengths"]:
            for line in _accuracy_lines(length):
                print(f"  {length['hops']:>3} hops  {line}")
    return DONE


def _lengths(text: str) -> list[int]:
    from weftline.errors import InputError

    if not re.fullmatch(r"[0-9]+(,[0-9]+)*", text, re.ASCII):
        raise InputError(f"--hops: expected lengths of paths such as 5,10, found {text!r}")
    return [min(int(part), 2**32 - 1) for part in text.split(",")]


def _accuracy_lines(length: dict[str, Any]) -> list[str]:
    from weftline.quantities import digits, share_text

    if "mean_packets" in length:
        line = (
            f"packets until the path is known: mean {digits(length['mean_packets'])}, "
            f"median {length['median_packets']}, 99th percentile {length['p99_packets']} "
            f"({length['decoder']} decoder, {length['trials']} flows, {length['wrong']} wrong"
        )
        return [line + (f", {length['given_up']} given up)" if length["given_up"] else ")")]
    if "sizes" in length:
        return [
            f"{size['packets']:,} packets, {digits(found['samples_per_hop'])} samples a hop: "
            + _quantile_tried(found)
            for size in length["sizes"]
            for found in size["quantiles"]
        ]
    if "detected" in length:
        line = (
            f"{length['packets']:,} packets with a loop of {length['hops']} switches: "
            f"{share_text(length['detected'])} reported within {length['longest']} hops"
        )
        if length["detected"]:
            line += f", at hop {digits(length['mean_hop'])} on average"
        return [
            line,
            f"{length['packets']:,} packets without a loop: {share_text(length['false_reports'])} reported",
        ]
    if length.get("at_ceiling") and not length["packets"]:
        return [
            f"{length['at_ceiling']:,} packets: all have the largest code, the values tried are beyond it"
        ]
    if length.get("mean_relative_error") is not None:
        beyond = length["at_ceiling"]
        more = f"; {beyond:,} more have the largest code and are left out" if beyond else ""
        return [
            f"{length['packets']:,} packets: off by {share_text(length['mean_relative_error'])}, "
            f"bias {share_text(length['bias'])}{more}"
        ]
    return ["nothing to try"]


def _quantile_tried(found: dict[str, Any]) -> str:
    """Return what a quantile was off by, where the values tried are not beyond the codes."""
    from weftline.quantities import share_text

    if found["mean_relative_error"] is None:
        return f"quantile {found['quantile']:g} is beyond the largest code: it cannot be measured"
    beyond = found["beyond_codes"]
    more = f"; hops where it is beyond the largest code ({share_text(beyond)}) are left out" if beyond else ""
    return (
        f"quantile {found['quantile']:g} off by {share_text(found['mean_relative_error'])} "
        f"(rank {share_text(found['mean_rank_error'])}), "
        f"95 % bars held in {share_text(found['bars_held'])} of the cases{more}"
    )


def _layout(options: argparse.Namespace) -> int:
    from weftline import pint

    plan = pint.Plan.open(options.plan)
    facts = plan.layout_facts(stages=options.stages)
    if options.json:
        arguments.print_json(facts)
    else:
        print(plan.layout(stages=options.stages).rstrip())
    return FAILED if facts["misfits"] else DONE


def _vectors(options: argparse.Namespace) -> int:
    import json
    from pathlib import Path

    from weftline import _native, pint

    if options.out is None:
        print(json.dumps(pint.vectors()))
        return DONE
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in zip(("functions.json", "paths.json"), _native.pint_vectors(), strict=True):
        (folder / name).write_text(text, encoding="utf-8")
        written.append(str(folder / name))
    if options.json:
        arguments.print_json({"written": written})
    else:
        print("\n".join(written))
    return DONE
