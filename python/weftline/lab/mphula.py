"""MP-HULA on real packets: HULA's switches and probers, with ranked hops and the subflows of MPTCP.

The process that has the programs learns which tokens belong to which connection (`mphula_tokens.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftline import _native, quantities
from weftline.lab import hula, programs

if TYPE_CHECKING:
    from weftline.scenario import Scenario

KEY = 'switch.balancer.kind = "mp-hula"'
OBJECT = "mphula.bpf.o"
MARK_BYTES = 12
"""An option of the IPv4 header between the ToRs."""
SUBFLOWS = 16_384
"""Subflows that a ToR remembers."""
RECORD_BYTES = 64


def objects() -> list[Path]:
    """Return where the programs may lie."""
    return programs.objects(OBJECT)


def problems() -> list[str]:
    """Return what of it cannot be had on this machine."""
    return programs.problems(KEY, objects())


def differs(values: dict[str, Any], *, engine: bool) -> list[str]:
    """Return what of it the two engines cannot have alike."""
    found = [text.replace("hula:", "mp-hula:", 1) for text in hula.differs(values, engine=engine)]
    settings = values["switch"]["balancer"]
    if values["transport"]["kind"] != "mptcp" or settings.get("ranks", 2) == 1:
        return found
    found.append(
        "mp-hula: a connection's first subflow is known once a process has hashed its keys; in the simulator "
        "with the packet that has them"
    )
    found.append(
        f"mp-hula: a ToR remembers {SUBFLOWS} subflows, those used last; the simulator "
        f"{settings.get('known', 65536)}, idle for up to {settings.get('idle', '60s')}"
    )
    found.append(
        "mp-hula: hosts that send open subflows of what they receive too, which are refused and for a moment "
        "count as using a port"
    )
    mark = quantities.parse_bytes(settings.get("mark", "9B"))
    if mark != MARK_BYTES:
        found.append(
            f"mp-hula: packets between ToRs are {MARK_BYTES} bytes longer; in the simulator {mark:g}: "
            f'mark = "{MARK_BYTES}B" makes both alike'
        )
    return found


def asked(scenario: Scenario) -> hula.Hula:
    """Return what a scenario without problems needs."""
    switches, own, tor_of, interval_ns = _native.mphula_switches(scenario.loaded)
    return hula.Hula(
        switches,
        tor_of,
        interval_ns,
        hula.probes_first(scenario.values),
        int(scenario.values.get("seed", 1)),
        extra_bytes=MARK_BYTES,
        object=OBJECT,
        program="mphula_switch",
        counters=_native.mphula_counts(),
        more={
            switch.node: [("mphula_config", hula.key(0), config)]
            for switch, config in zip(switches, own, strict=True)
        },
        ring=("mphula_keys", RECORD_BYTES),
        learner="mphula_tokens",
    )
