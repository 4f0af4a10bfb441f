"""`weftline.collecting`: a collector of telemetry as it arrives.

with weftline.collecting(listen="udp:6000") as collector:
    time.sleep(60)
    print(collector.status()["flows"])
collector.found.paths
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from weftline import integrity
from weftline.collector import (
    INT_CODES,
    Collected,
    check_ports,
    checked_code,
    checked_memory,
    checked_shards,
    read_plan,
)
from weftline.errors import InputError, nearest_of

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

LISTS = ("listen", "interface", "allow", "report_ports")
"""Options that take one value or several."""
FILES = ("out", "checkpoint", "topology")
_TEXTS = "text or a list of texts"
OPTIONS: dict[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(("listen", "interface", "allow"), ((str, list, tuple), _TEXTS)),
    "report_ports": ((int, list, tuple), "a port or a list of ports"),
    **dict.fromkeys(("out", "checkpoint", "topology", "plan"), ((str, os.PathLike), "a path")),
    "memory": ((str, int), 'a size such as "256MB"'),
    **dict.fromkeys(("shards", "int_dscp", "int_port", "int_gre"), ((int,), "a whole number")),
    "interval_s": ((int, float), "seconds"),
    **dict.fromkeys(("pint_ipv4_id", "pint_flow_label", "parquet"), ((bool,), "true or false")),
    "prometheus": ((str,), 'an address such as ":9464"'),
    "otlp": ((str,), "a URL"),
}
"""What values options take, and how that is called."""


class LiveCollector:
    """Threads that read inputs until `finish`."""

    found: Collected | None = None
    """The findings; None while it runs."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        from weftline import _native

        config = _config(options)
        self._out, self._parquet = config.get("out"), bool(options.get("parquet"))
        with contextlib.ExitStack() as claim:
            if self._out:
                _claim(Path(self._out), claim)
            self._native = _native.LiveCollector(json.dumps(config))
            self._claim = claim.pop_all()
        self.inputs = self._native.inputs
        """The inputs by name, such as ``udp:127.0.0.1:6000``."""
        self.http: str | None = self._native.http
        """Address and port of HTTP."""

    def status(self) -> dict[str, Any]:
        """Return counts of packets, flows, losses and memory."""
        return json.loads(self._native.status())

    def finish(self) -> Collected:
        """Stop, take what the kernel still holds, and return all findings."""
        if self.found is None:
            self.found = Collected(**json.loads(self._native.finish()))
            with self._claim:
                if self._out:
                    self.found.save(self._out, but=("events",), parquet=self._parquet)
        return self.found

    def __enter__(self) -> LiveCollector:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish()


def _claim(folder: Path, claim: contextlib.ExitStack) -> None:
    """Have a folder for one collector alone until `claim` is closed, or the process ends.

    Raises
    ------
    InputError
        If another one writes there, or it holds a run.
    """
    integrity.refuse_results(folder)
    with contextlib.suppress(OSError):  # what cannot be written is an error when the collector starts
        folder.mkdir(parents=True, exist_ok=True)
        file = claim.enter_context((folder / "events.jsonl").open("ab"))
        try:
            if fcntl:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"out: {folder}: another collector writes there; choose another folder"
            ) from None


def collecting(**options: Any) -> LiveCollector:
    """Start a collector of what arrives from the network.

    Parameters
    ----------
    listen : str or list of str
        ``"udp:6000"`` (loopback) or ``"udp:10.0.0.1:6000"``, which requires `allow`.
    interface : str or list of str
        Network interfaces whose packets are read; requires CAP_NET_RAW.
    allow : str or list of str
        Networks whose datagrams are taken, such as ``"10.0.0.0/8"``.
    memory, int_dscp, int_port, int_gre, report_ports, pint_ipv4_id, pint_flow_label
        As of `weftline.collect`.
    plan : path
        Plan of PINT's digests.
    topology : path
        The switches that digests may name.
    shards : int
        Threads that keep flows (default: 1).
    interval_s : float
        Seconds between exports (default: 5).
    prometheus : str
        ``":9464"`` or ``"ADDRESS:PORT"``: HTTP with `/metrics`, `/paths`, `/hops`, `/events`, `/health`.
    otlp : str
        URL that metrics are posted to, such as ``"http://127.0.0.1:4318/v1/metrics"``.
    out : path
        Folder of the tables.
    parquet : bool
        Tables as Parquet files; `events.jsonl` and `intervals.jsonl` grow nevertheless.
    checkpoint : path
        File from which a collector continues after it was killed.

    Raises
    ------
    InputError
        If an option is wrong, or an input cannot be opened.
    """
    return LiveCollector(options)


def wrong_option(name: str, value: Any) -> str | None:
    """Return what is wrong with the name of an option or with the type of its value."""
    if name not in OPTIONS:
        near = nearest_of(name, OPTIONS)
        return f"unknown option {name!r}" + (f"; did you mean {near!r}?" if near else "")
    types, expected = OPTIONS[name]
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        return f"{name}: expected {expected}, found {value!r}"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{name}: expected 0.1 to 3600, found {value}"
    inside = value if isinstance(value, list | tuple) else []
    kind = int if name == "report_ports" else str
    if wrong := [each for each in inside if not isinstance(each, kind) or isinstance(each, bool)]:
        return f"{name}: expected {expected}, found {wrong[0]!r} in it"
    return None


def _config(options: Mapping[str, Any]) -> dict[str, Any]:
    config = {name: value for name, value in options.items() if value is not None}
    for name, value in config.items():
        if wrong := wrong_option(name, value):
            raise InputError(f"collector: {wrong}")
    if "topology" in config and "plan" not in config:
        raise InputError("collector: topology: expected with plan: PINT's digests are decoded with it")
    if "parquet" in config and config["parquet"] and "out" not in config:
        raise InputError("collector: parquet: expected with out: the folder of the files")
    checked_shards(config.get("shards"))
    config.pop("parquet", None)
    if "memory" in config:
        config["memory_bytes"] = checked_memory(config.pop("memory"))
    for name in LISTS:
        value = config.get(name)
        if value is not None:
            several = isinstance(value, Iterable) and not isinstance(value, str)
            config[name] = list(value) if several else [value]
    for name in INT_CODES:
        checked_code(name, config.get(name))
    check_ports(config.get("int_port"), config.get("report_ports"))
    for name in FILES:
        if name in config:
            config[name] = os.fspath(config[name])
    if "plan" in config:
        config["plan"] = read_plan(config["plan"])
    return config
