"""A scenario that has been read and found valid: checked, estimated and run without being read again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import operator
import os
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weftline import _native, integrity, own_schemes, provenance, quantities, scenarios
from weftline.errors import DamagedError, InputError, path_text, warn
from weftline.kept_paths import KeptPath
from weftline.outputs import write_whole
from weftline.runs import Run

if TYPE_CHECKING:
    from weftline.controllers import Law


class Scenario:
    """A scenario with its changes, its seed and its controllers in Python.

    Parameters
    ----------
    scenario : path or dict
        A TOML file, or the same content as a dict; a dict without a name is called ``run``.
    set : dict, optional
        Values by dotted path that replace those of the scenario: ``{"workload.0.load": 0.7}``.
    seed : int, optional
        Seed of every random stream; the scenario's own without it.
    controllers : dict of name to class, optional
        Congestion controllers in Python, which the scenario names as ``python:NAME``: classes (see
        `weftline.Controller`), or where they are, ``"FILE.py:CLASS"``.

    Raises
    ------
    InputError
        If the scenario cannot be run as it is written.
    """

    def __init__(
        self,
        scenario: str | os.PathLike[str] | Mapping[str, Any],
        *,
        set: Mapping[str, object] | None = None,
        seed: int | None = None,
        controllers: Mapping[str, type | str] | None = None,
    ) -> None:
        source = scenarios.load(scenario)
        if controllers:
            from weftline.controllers import of

            source = replace(source, controllers=of(controllers))
        self._take(source, scenarios.settings(set), seed)

    @classmethod
    def of(cls, source: scenarios.Source, changes: list[tuple[str, str]], *, seed: int | None) -> Scenario:
        """Return the scenario of a text; `changes` are pairs of path and value as ``--set`` has them."""
        found = cls.__new__(cls)
        found._take(source, changes, seed)
        return found

    def _take(self, source: scenarios.Source, changes: list[tuple[str, str]], seed: int | None) -> None:
        if seed is not None:
            _check_whole("seed", seed, "a whole number from 0 to 2^63 - 1", MAX_SEED)
        self._source, self._base_dir = source, KeptPath(source.base_dir)
        self._asked = (changes, seed)
        self._loaded = self._load()
        self._files = self._files_now()

    def __getstate__(self) -> tuple[Any, ...]:
        # The process that unpickles it may have another working directory.
        source = replace(self._source, base_dir=os.path.abspath(self._base_dir.path))
        return (source, *self._asked)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._take(*state)

    def _load(self, controllers: Mapping[str, Law] | None = None) -> _native.Scenario:
        """Read it, with its controllers or others of the same names."""
        source, (changes, seed) = self.source, self._asked
        laws = {name: law.make for name, law in (controllers or source.controllers).items()} or None
        found = _native.Scenario(source.text, source.file, source.base_dir, changes, seed, laws)
        # A stored scenario can be run from any folder; the engine leaves some names as they were given.
        if moved := scenarios.absolute_names(found.resolved, source.base_dir):
            changes = [*changes, *moved]
            found = _native.Scenario(source.text, source.file, source.base_dir, changes, seed, laws)
        return found

    def _files_now(self) -> dict[str, tuple[int, int, int]]:
        """Return place, size and time of writing of each file that it names, as they are now."""
        found = {}
        base_dir = self.source.base_dir
        for name in scenarios.named_files(self.resolved, base_dir):
            for path in scenarios.files_of(base_dir, name):
                with contextlib.suppress(OSError):
                    is_now = path.stat()
                    found[os.path.abspath(path)] = (is_now.st_ino, is_now.st_size, is_now.st_mtime_ns)
        return found

    def _check_files(self) -> None:
        """Refuse to run what was read from files that have changed since: it would be stored as theirs."""
        now = self._files_now()
        changed = sorted(
            path for path in self._files.keys() | now.keys() if self._files.get(path) != now.get(path)
        )
        if changed:
            raise InputError(
                f"{changed[0]}: was written since this Scenario read it: make the Scenario again to run what "
                "the file holds now"
            )

    def _renew_laws(self) -> None:
        """Let the next run be identified by what its controllers in Python are now."""
        if given := self._source.controllers:
            laws = {name: law.as_it_is_now() for name, law in given.items()}
            self._source = replace(self._source, controllers=laws)
            self.__dict__.pop("_digests_of_laws", None)

    @property
    def source(self) -> scenarios.Source:
        """Its text, and the directory to which its names of files are relative."""
        return replace(self._source, base_dir=str(self._base_dir.path))

    @property
    def loaded(self) -> _native.Scenario:
        """What the engine made of it."""
        return self._loaded

    @property
    def resolved(self) -> str:
        """The scenario as TOML with every default written out: running it again gives the same bits."""
        return self._loaded.resolved

    @cached_property
    def values(self) -> dict[str, Any]:
        """The same as a dict."""
        return tomllib.loads(self.resolved)

    @property
    def name(self) -> str:
        """The scenario's name."""
        return str(self.values.get("name", ""))

    @cached_property
    def unused_controllers(self) -> list[str]:
        """Sentences on controllers in Python that were given and that it does not name."""
        from weftline import controllers

        given = self.source.controllers
        used = {law.name for law in controllers.named_in(self.values, given)} if given else set[str]()
        return [controllers.unused_text(name, "this scenario") for name in given if name not in used]

    def check(self) -> dict[str, Any]:
        """Return everything that follows from the scenario, as ``weftline check --json`` prints it."""
        return json.loads(self._loaded.check())

    def estimate(self, *, max_flows: int | None = None) -> dict[str, Any]:
        """Return what a run is expected to cost: time on this machine, memory, packet-hops.

        Parameters
        ----------
        max_flows : int, optional
            Estimate by the first flows alone, which takes less time where there are many.

        Raises
        ------
        InputError
            If this is not a number of flows.
        """
        if max_flows is not None:
            _check_whole("max_flows", max_flows, "a whole number from 0 to 2^64 - 1, or None", 2**64 - 1)
        return self.check()["estimate"] if max_flows is None else json.loads(self._loaded.look(max_flows))

    def network(self) -> dict[str, Any]:
        """Return ``nodes`` (``name``, ``kind``, ``tier``) and ``links``.

        A link has ``a`` and ``b``, the places of its ends in ``nodes``, ``a_port``, ``b_port``, ``rate_bps``
        and ``delay_ns``.
        """
        return json.loads(self._loaded.network())

    def run(
        self,
        *,
        threads: int | None = None,
        memory: str | None = None,
        out: str | os.PathLike[str] | None = None,
        force: bool = False,
        progress: Callable[[dict[str, Any]], None] | None = None,
    ) -> Run:
        """Run it and return the results, or those that an equal run has stored: see `weftline.run`."""
        if progress is not None and not callable(progress):
            raise InputError(f"progress: expected a function or None, found {progress!r}")
        check_limits(threads, memory)
        self._check_files()
        self._renew_laws()
        warn(self.unused_controllers)
        place = self.place(out, force=force)
        found = place.stored
        foreseen: list[str] = []
        if found is None:
            from weftline.figures import notebook

            with place:
                foreseen = self.loaded.foreseen(memory)
                warn(foreseen)
                with notebook.progress(Path(place.out).name, progress) as show:
                    found = self.start(
                        threads=threads,
                        memory=memory,
                        out=place.out,
                        force=place.force,
                        progress=show,
                        claim=place.claim,
                    )
        else:
            print(reused_text(found, "force=True"), file=sys.stderr)
        warn(text for text in found.warnings if text not in foreseen)
        return found

    def start(
        self,
        *,
        out: str | os.PathLike[str],
        force: bool,
        threads: int | None = None,
        memory: str | None = None,
        progress: Callable[[dict[str, Any]], None] | None = None,
        sync: bool = True,
        claim: _native.FolderClaim | None = None,
    ) -> Run:
        """Run it into a given folder; with `sync` it ends when the disk has the results.

        `claim` is the right to write there, of a `Place`; the run takes it over, or makes its own.
        """
        self._check_files()
        loaded, watch = self._loaded, None
        laws: list[Law] = []
        if self.source.controllers:
            from weftline import controllers, hidden_inputs

            named = controllers.named_in(self.values, self.source.controllers)
            laws = [law.of_next_run() for law in named]
            loaded = self._load({**self.source.controllers, **{law.name: law for law in laws}})
            watch = hidden_inputs.Watch(laws) if laws else None
        made_of = provenance.of(self.resolved, self.source, self._asked[0])
        self._check_files()
        with watch.on() if watch else contextlib.nullcontext():
            loaded.run(
                str(out),
                force=force,
                threads=threads,
                progress=watch.around(progress) if watch else progress,
                memory=memory,
                provenance=made_of,
                sync=sync,
                **({} if claim is None else {"claim": claim}),
            )
        if watch:
            from weftline import law_methods

            if found := [*law_methods.warnings(laws), *watch.warnings()]:
                _add_warnings(Path(out), found, sync=sync)
        return Run.read(out)

    def place(self, out: str | os.PathLike[str] | None, *, force: bool) -> Place:
        """Return where the results go: into `out`, else into ``out/<name>-<short hash>``.

        What the latter holds may be replaced where its name does not tell what differs (a controller in
        Python whose code has no digest), or where it is incomplete. Damaged results in it are moved to
        ``out/damaged/``, with a `ResultsWarning`.

        A place without stored results holds the claim on its folder, until the run or `Place.release` gives
        it back: no other run writes there meanwhile.

        Raises
        ------
        InputError
            If the folder holds the results of another run, or another run is writing there; or if the results
            would take the place of a file that the run reads.
        """
        if not isinstance(force, bool):
            raise InputError(f"force: expected True or False, found {force!r}")
        ours = out is None
        named = self._default_folder() if out is None else path_text("out", out)
        folder = Path(named)
        if not force and (found := self._stored(folder)) is not None:
            return Place(out=named, force=False, stored=found)
        self.keep_inputs(folder)
        claim = _native.FolderClaim(named)
        try:
            # What is in the folder is looked at again, now that no other run writes there.
            if ours and (damage := _damage_of(folder)) is not None:
                aside = _put_aside(folder)
                integrity.warn(f"{damage}. They are now in {aside}, and the scenario is run again")
                claim.release()
                claim = _native.FolderClaim(named)
            if force or status_of(folder) != "done":
                return Place(out=named, force=force or ours, stored=None, claim=claim)
            found = self._stored(folder)
            if found is None and ours and None in self._digests_of_laws.values():
                return Place(out=named, force=True, stored=None, claim=claim)
            if found is None:
                raise InputError(
                    f"{named}: holds the results of another run: {self._difference(folder)}; choose another "
                    "folder with --out, or overwrite it with --force (in Python: out=, force=True)"
                )
        except BaseException:
            claim.release()
            raise
        claim.release()
        return Place(out=named, force=False, stored=found)

    def keep_inputs(self, folder: Path) -> None:
        """Raise InputError if results in a folder would replace a file that the run reads.

        A scenario that an earlier run stored in its folder is one of its results, which may be replaced.
        """
        read = [Path(path) for path in self._files]
        of_run = integrity.lists_run(folder / integrity.FILE)
        if not of_run:
            read.append(Path(self.source.file))
        # A link counts with what it leads to.
        for path in [*read, *(path.resolve() for path in read)]:
            if path.name in integrity.WRITTEN and _is_same(path.parent, folder):
                raise InputError(
                    f"{folder}: {path.name} in it is what this run reads, and its results would replace it: "
                    "choose another folder with --out (in Python: out=)"
                )

    def _default_folder(self) -> str:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", self.name).strip("-.") or "run"
        laws = [f"# {law} is {digest}\n" for law, digest in self._digests_of_laws.items()]
        return str(Path("out") / f"{name}-{content_hash(''.join([self.resolved, *laws]))[:8]}")

    @cached_property
    def _digests_of_laws(self) -> dict[str, str | None]:
        """The digests of the code of its controllers in Python; None stands for a code that has no digest."""
        if not self.source.controllers:
            return {}
        from weftline import controllers

        named = controllers.named_in(self.values, self.source.controllers)
        return {law.name: law.known_digest for law in named}

    def _stored(self, folder: Path) -> Run | None:
        """Return the finished results of an equal run, if the folder holds them whole."""
        if status_of(folder) != "done" or self._difference(folder) is not None:
            return None
        found = Run.read(folder)
        found.reused = True
        return found

    def _difference(self, folder: Path) -> str | None:
        """Return how the finished run in a folder differs from this scenario's; None: not at all."""
        try:
            if _native.check_files(str(folder)) is None:
                return "an earlier version wrote them, without digests"
            text = (folder / "scenario.toml").read_text("utf-8")
            stored = json.loads((folder / "summary.json").read_text("utf-8")).get("provenance")
        except (OSError, ValueError) as error:
            return str(error)
        if text != self.resolved:
            return "its scenario, its settings or its seed differ"
        if not isinstance(stored, dict):
            return "they do not record what they were made of"
        planned = json.loads(provenance.of(self.resolved, self.source))
        for part in sorted((stored.keys() | planned.keys()) - {"given"}):
            then, now = stored.get(part), planned.get(part)
            if then != now or now is None or (isinstance(now, dict) and None in now.values()):
                return _PARTS.get(part, f"its {part} differ")
        return None

    def __repr__(self) -> str:
        # A debugger shows objects whose scenario could not be read too.
        if "_loaded" not in self.__dict__:
            return "<weftline.Scenario, not loaded>"
        return f"<weftline.Scenario {self.name!r} of {self.source.file}>"


MAX_SEED = 2**63 - 1
MAX_THREADS = 1024


def _check_whole(name: str, value: object, expected: str, high: int) -> None:
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = -1
    if not 0 <= number <= high:
        raise InputError(f"{name}: expected {expected}, found {value!r}")


def check_limits(threads: object = None, memory: object = None) -> None:
    """Raise an InputError if these cannot be limits of a run, even of one whose results are stored."""
    if threads is not None:
        expected = f"a whole number from 0 to {MAX_THREADS} (0: choose automatically)"
        _check_whole("threads", threads, expected, MAX_THREADS)
    if memory is None or memory == "none":
        return
    expected = 'expected "none" or a size above zero such as "8GB"'
    if not isinstance(memory, str):
        raise InputError(f"memory: {expected}, found {memory!r}")
    try:
        size = quantities.parse_bytes(memory)
    except InputError:
        size = 0.0
    if not size > 0:
        raise InputError(f"memory: {expected}, found {memory!r}")


_PARTS = {
    "build": "another build of weftline made them",
    "controllers": "the code of its controllers in Python differs",
    "files": "the content of the files that it names differs",
    "schemes": "its schemes are of another crate or version",
}


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the results of a run go."""

    out: str
    """The folder, as it was named."""
    force: bool
    """Whether they may take the place of what the folder holds."""
    stored: Run | None
    """The results of an equal run that are there already."""
    claim: _native.FolderClaim | None = None
    """The right to write there, where nothing is stored."""

    def release(self) -> None:
        """Give the claim back, unless a run has taken it over."""
        if self.claim is not None:
            self.claim.release()

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _damage_of(folder: Path) -> DamagedError | None:
    try:
        _native.check_files(str(folder))
    except DamagedError as error:
        return error
    return None


def _put_aside(folder: Path) -> Path:
    """Move a claimed folder to ``damaged/`` and return where it is; it is no longer written there."""
    aside = integrity.put_aside(folder, folder.parent / "damaged")
    (aside / LOCK_FILE).unlink(missing_ok=True)
    return aside


def _add_warnings(folder: Path, texts: list[str], *, sync: bool) -> None:
    """Add warnings to those of a finished run."""
    path = folder / "summary.json"
    summary = json.loads(path.read_text("utf-8"))
    summary["warnings"] = [*(summary.get("warnings") or []), *texts]
    write_whole(path, json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
    _native.write_digests(str(folder))
    if sync:
        _native.sync_files(str(folder))


LOCK_FILE = "run.lock"
"""Is in a folder while a run writes there."""


def reused_text(found: Run, force: str) -> str:
    """Return the line that states that the results of an equal run were there."""
    return f"{found.out}: has the results of this run already; {force} runs it again"


def content_hash(resolved: str) -> str:
    """Return 12 hexadecimal digits that name a resolved scenario under this version of weftline.

    Under this build too, where schemes of another crate take part.
    """
    text = f"{_native.version()}\n{resolved}{own_schemes.as_comments(resolved)}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def status_of(folder: Path) -> str | None:
    """Return the status that a run's folder records, None if it records none."""
    try:
        return json.loads((folder / "summary.json").read_text("utf-8")).get("status")
    except (OSError, ValueError, AttributeError):
        return None
