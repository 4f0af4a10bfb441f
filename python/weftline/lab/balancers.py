"""Load balancers of the lab: the kernel's ECMP, and those that switches have as programs.

One that needs programs is a module with the functions of `Module` and a line in `PROGRAMMED`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from weftline.lab import hula, mphula
from weftline.lab.programs import Load

if TYPE_CHECKING:
    from weftline.lab.network import Network
    from weftline.lab.programs import Programs
    from weftline.scenario import Scenario

KERNEL = "ecmp"
LABEL = "label"
"""A hash of a label that the engine's hosts choose for each packet: of its UDP port, in the lab."""


class Balancing(Protocol):
    """What the switches of one scenario need for their balancer."""

    @property
    def probes_first(self) -> bool:
        """Whether frames of the balancer go before all others at every port between switches."""

    @property
    def extra_bytes(self) -> int:
        """By how much packets between switches may be longer."""

    def loads(self, network: Network) -> list[Load]:
        """Return what every switch loads."""

    def tasks(self, network: Network) -> dict[str, tuple[str, dict[str, Any]]]:
        """Return the processes that run next to switches, by node: the file and its task."""

    def facts(self, counted: Programs, ended: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """Return what goes into the summary; `ended`: what each process printed at its end."""


class Module(Protocol):
    """A balancer of programs."""

    def objects(self) -> list[Path]:
        """Return where its object may lie."""

    def problems(self) -> list[str]:
        """Return what of it cannot be had on this machine."""

    def differs(self, values: dict[str, Any], *, engine: bool) -> list[str]:
        """Return what of it the two engines cannot have alike; `engine`: ports are the engine's."""

    def asked(self, scenario: Scenario) -> Balancing:
        """Return what a scenario without problems needs."""


PROGRAMMED: dict[str, Module] = {"hula": hula, "mp-hula": mphula}


def _kind(values: dict[str, Any]) -> str:
    return str(values.get("switch", {}).get("balancer", {}).get("kind", KERNEL))


def problems(values: dict[str, Any], *, hosts: bool = False) -> list[str]:
    """Return why a resolved scenario's balancer cannot be had here; `hosts`: hosts are the engine's."""
    kind = _kind(values)
    if kind == KERNEL or (hosts and kind == LABEL):
        return []
    if hosts:
        return [f'switch.balancer.kind = "{kind}": with hosts of the engine the lab has "ecmp", "label"']
    if kind not in PROGRAMMED:
        has = ", ".join(f'"{name}"' for name in (KERNEL, *PROGRAMMED))
        return [f'switch.balancer.kind = "{kind}": the lab has {has}']
    return PROGRAMMED[kind].problems()


def differs(values: dict[str, Any], *, engine: bool = False) -> list[str]:
    """Return what of the balancer the two engines cannot have alike; `engine`: as in `Module`."""
    kind = _kind(values)
    return PROGRAMMED[kind].differs(values, engine=engine) if kind in PROGRAMMED else []


def asked(scenario: Scenario) -> Balancing | None:
    """Return what switches need besides the kernel; None: nothing."""
    kind = _kind(scenario.values)
    return PROGRAMMED[kind].asked(scenario) if kind in PROGRAMMED else None
