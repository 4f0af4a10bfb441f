"""Numbers that pages and the ledger repeat from stored claims are those of `docs/claims.json`."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def stored():
    """The number of every stored claim and half of its interval, by experiment and text."""
    found = json.loads((ROOT / "docs/claims.json").read_text("utf-8"))
    return {
        (name, claim["text"]): (claim["measured"], (claim["interval"][1] - claim["interval"][0]) / 2)
        for name, result in found.items()
        for claim in result["claims"]
        if claim.get("interval")
    }


def with_half(digits, sign):
    return lambda number, half: f"{number:.{digits}f} {sign}{half:.{digits}f}"


def alone(digits):
    return lambda number, half: f"{number:.{digits}f}"


TABLE, PAIR, NUMBER = with_half(3, "± "), with_half(2, "±"), alone(2)

HPCC = [
    ("below 200 KB, p99 | 30 %", "web search 30 %: HPCC is ahead of each other scheme below 200 KB (p99)"),
    ("below 200 KB, median | 30 %", "web search 30 %: at the median all are level there"),
    ("below 200 KB, p95 | 50 %", "web search 50 %: HPCC is ahead of each other scheme below 200 KB (p95)"),
    ("below 200 KB, p99 | 50 %", "web search 50 %: the same at p99"),
    ("below 200 KB, median | 50 %", "web search 50 %: at the median HPCC is ahead there too"),
    ("above 1 MB, median | 30 %", "web search 30 %: HPCC is slower than each other scheme above 1 MB (p50)"),
    (
        "above 1 MB, p95 | 70 %",
        "web search 70 %: HPCC is slower than each other scheme for flows above 1 MB (p95)",
    ),
    (
        "above 6 MB, median | 70 %",
        "web search 70 %: at the median HPCC is slower than each other scheme above 6 MB",
    ),
    (
        "FB_Hadoop, below 200 KB, p99 | 30 %",
        "FB_Hadoop 30 %: HPCC is ahead of each other scheme below 200 KB (p99)",
    ),
    (
        "FB_Hadoop, all, p95, DCQCN with a window over without | 50 %",
        "FB_Hadoop 50 %: a window helps DCQCN, over all flows (p95)",
    ),
    ("FB_Hadoop, all, p95 | 70 %", "FB_Hadoop 70 %: over all flows HPCC is ahead of each other scheme (p95)"),
]
BALANCING, LEDGER = "docs/schemes/load-balancing.md", "experiments/ledger.toml"
QUOTED = [
    *(("docs/schemes/hpcc.md", f"| {flows} | {{}} |", TABLE, "hpcc-fct", [text]) for flows, text in HPCC),
    (
        BALANCING,
        "CONGA' takes {} and {} times as long as HULA over 40, {} and {} over 10",
        PAIR,
        "hula-fct",
        [
            f"links of {rate} Gb/s, {load} %: CONGA' takes longer than HULA"
            for rate in (40, 10)
            for load in (50, 90)
        ],
    ),
    (
        BALANCING,
        "with 500 ms they are {} at 50 % and {} at 90 % (`mphula-fct`)",
        NUMBER,
        "mphula-fct",
        [
            "all links up, 50 %: HULA takes longer than MP-HULA (abstract: 2.1 times; talk: 1.27)",
            "all links up, 90 %: HULA takes longer than MP-HULA (talk: 1.5 times; abstract, at 80 %: 1.7)",
        ],
    ),
    (
        BALANCING,
        "100 us ECMP over HULA is {}, {} and {}, and",
        PAIR,
        "mphula-fct",
        [f"all links up, {load} %: ECMP takes longer than HULA" for load in (50, 70, 90)],
    ),
    (
        BALANCING,
        "CONGA {} (web search) and {} times (FB_Hadoop)",
        NUMBER,
        "drill-fct",
        [
            f"{traffic}, 80 %, 10 Gb/s: CONGA takes longer than DRILL "
            "(published: 1.3 to 1.4 times, of recent proposals)"
            for traffic in ("web search", "FB_Hadoop")
        ],
    ),
    (
        LEDGER,
        "Over HULA one TCP flow takes {} times as long at 50 %",
        NUMBER,
        "mphula-fct",
        ["all links up, 50 %: one TCP flow over HULA takes longer than MPTCP over MP-HULA"],
    ),
    (
        LEDGER,
        "at 90 % it takes {} times as long, less with all three seeds",
        NUMBER,
        "mphula-fct",
        ["all links up, 90 %: one TCP flow over HULA takes longer than MPTCP over MP-HULA"],
    ),
    (
        LEDGER,
        "Links as fast as a host give the factor ({}), links four times as fast nearly none ({})",
        NUMBER,
        "hula-fct",
        [f"links of {rate} Gb/s, 50 %: CONGA' takes longer than HULA" for rate in (10, 40)],
    ),
    (
        LEDGER,
        "Fastpass over pHost falls from {} at 0.4 to {} at 0.8",
        alone(1),
        "phost-load",
        [f"IMC10, load {load}: Fastpass is slower than pHost" for load in (0.4, 0.8)],
    ),
    (
        "docs/pint/index.md",
        "three queries on 16 bits, over path tracing alone on 16 bits | 1.06 (text: 1.005) | {} |",
        NUMBER,
        "pint-fig11",
        ["paths take 0.5 % more packets (text), 5.6 % (bars)"],
    ),
]


@pytest.mark.parametrize(
    ("page", "words", "shown", "experiment", "texts"), QUOTED, ids=[f"{one[0]}: {one[1]}" for one in QUOTED]
)
def test_a_number_that_is_repeated_is_the_stored_one(page, words, shown, experiment, texts):
    numbers = stored()
    expected = words.format(*(shown(*numbers[experiment, text]) for text in texts))
    assert expected in " ".join((ROOT / page).read_text("utf-8").split())
