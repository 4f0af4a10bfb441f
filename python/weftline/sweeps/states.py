"""What the folder of a point holds: a finished run, a damaged one, or none."""

from __future__ import annotations

import json
import os
from pathlib import Path

from weftline import _native
from weftline.errors import InputError, RunFailed
from weftline.scenario import status_of

FINISHED = ("done", "stalled")
"""A stalled run ended too, and would end so again."""


def state_of(folder: Path) -> str:
    """Return ``"finished"``, ``"damaged"`` or ``"absent"``: what a point's folder holds.

    Absent are results that never were complete too. Damaged is what is not as its run wrote it.
    """
    return examined(folder)[0]


def examined(folder: Path, *, scenario: str = "", thorough: bool = False) -> tuple[str, str]:
    """Return what a point's folder holds, see `state_of`, and why it is damaged.

    Parameters
    ----------
    scenario : str
        Digest of the scenario that it should be of, if that is known.
    thorough : bool
        Whether tables that no digest vouches for are read to their end.
    """
    try:
        digests = _native.check_files(str(folder))
        if digests is None:
            state, why = _of_earlier_version(folder)
            if state == "finished" and thorough:
                _native.decode_tables(str(folder))
            return state, why
    except (InputError, RunFailed) as error:
        return "damaged", str(error)
    if scenario and digests.get("scenario.toml") != scenario:
        return "damaged", f"{folder}: the folder holds the run of another key"
    status = status_of(folder)
    return ("finished" if status in FINISHED else "absent"), ""


def _of_earlier_version(folder: Path) -> tuple[str, str]:
    """Return the same of a folder without digests: damaged is what cannot come from a run that ended."""
    damaged = "damaged", f"{folder}: not the results of a run that ended"
    try:
        summary = json.loads((folder / "summary.json").read_bytes())
    except FileNotFoundError:
        return damaged if (folder / "flows.parquet").exists() else ("absent", "")
    except (OSError, ValueError):
        return damaged
    if not isinstance(summary, dict):
        return damaged
    if summary.get("status") not in FINISHED:
        return "absent", ""
    try:
        with (folder / "flows.parquet").open("rb") as file:
            file.seek(-4, os.SEEK_END)
            whole = file.read(4) == b"PAR1"
    except OSError:
        whole = False
    return ("finished", "") if whole and (folder / "scenario.toml").is_file() else damaged
