"""What the code of a run's controllers used that does not identify the run, such as a file that it opened.

The results of such a run are stored under a key that would not change with it: results that exist would be
taken for those of other inputs. So the run has a warning.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import random
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

from weftline import code_digest
from weftline.controllers import Law
from weftline.seeded_calls import gives_seed

MAX_NAMES = 3
"""How many files, variables or attributes a warning names."""
MAX_UNSEEDED = 1000
"""How many generators without a seed may get one later; of more, one is taken to stay without."""
_CODE = (".py", ".pyc", ".so", ".pyd")
_CALLERS = ("weftline.scenario", "weftline.cli.why")
"""What runs the code that is watched."""
_here = threading.local()


class Watch:
    """Watches the code of controllers during a run of this thread."""

    def __init__(self, laws: Sequence[Law]) -> None:
        self._laws = laws
        self._kept = [law for law in laws if not law.is_of_one_run]
        self._before = [code_digest.state(law.make) for law in self._kept]
        self._generators = _generators()
        self.files: dict[str, None] = {}
        self.variables: dict[str, None] = {}
        self.draws_from_system = False
        self.unseeded: dict[int, random.Random] = {}
        """Generators that were made without a seed and have got none since, by id; the first of them."""

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        """Note what this thread reads meanwhile."""
        before = getattr(_here, "watch", None)
        with _reported():
            _here.watch = self
            try:
                yield
            finally:
                _here.watch = before

    @staticmethod
    def around(progress: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
        """Return a function that is called during the run, so that what it reads does not count."""
        if progress is None:
            return None
        called = progress

        def unwatched(state: Any) -> Any:
            watch, _here.watch = getattr(_here, "watch", None), None
            try:
                return called(state)
            finally:
                _here.watch = watch

        return unwatched

    @property
    def draws_without_seed(self) -> bool:
        """Whether random numbers were taken from the system, or a generator was made without a seed."""
        return self.draws_from_system or bool(self.unseeded)

    def changed(self) -> dict[str, list[str]]:
        """Return what controllers changed that other runs share, by controller."""
        found: dict[str, list[str]] = {}
        for law, before in zip(self._kept, self._before, strict=True):
            after = code_digest.state(law.make)
            names = [name for name in before | after if before.get(name) != after.get(name)]
            found |= {law.name: names} if names else {}
        return found

    def generators(self) -> list[str]:
        """Return the modules whose global generators were used."""
        return [name for name, now in _generators().items() if self._generators.get(name, now) != now]

    def used(self) -> list[str]:
        """Return everything that another run may find in another state, for a message."""
        found = [name for names in self.changed().values() for name in names]
        found += [f"the global generator of {name}" for name in self.generators()]
        found += ["random numbers without a seed"] * self.draws_without_seed
        found += [f"the file {name}" for name in self.files]
        return [*found, *(f"the environment variable {name}" for name in self.variables)]

    def warnings(self) -> list[str]:
        """Return a sentence on each kind of input that was used."""
        found = [
            f'controller "{law}" changed {_listed(names)} during the run, which the runs of a process share: '
            "their results may depend on the runs before them. Keep what changes in self, or give the "
            'controller as "FILE.py:CLASS", which is loaded again for every run'
            for law, names in self.changed().items()
        ]
        found += [
            f'controller "{law.name}" depends on something whose content has no digest, so the results are '
            f"not used again: {why}"
            for law in self._laws
            if (why := law.why_unknown)
        ]
        if used := self.generators():
            found.append(
                f"the global generator of {_listed(used)} was used during the run, and its state is not part "
                "of what identifies the run: the same scenario may give other results. Use a generator of "
                "the controller, such as random.Random(seed) in its class"
            )
        who = f'controller "{self._laws[0].name}"' if len(self._laws) == 1 else "a controller in Python"
        if self.draws_without_seed:
            found.append(
                f"{who} made a generator of random numbers without a seed, or took them from the system, "
                "during the run: the same scenario can give other results each time, and stored results are "
                "used again all the same. Give it a seed: random.Random(7), numpy.random.default_rng(7)"
            )
        for what, read in (("file", self.files), ("environment variable", self.variables)):
            if read:
                kind = what if len(read) == 1 else f"{what}s"
                found.append(
                    f"{who} read the {kind} {_listed(list(read))} during the run, which is not part of what "
                    "identifies the run: stored results are used again when its content is another. Read it "
                    "when the module is loaded, into a global or an attribute of the class"
                )
        return found


def _listed(names: Sequence[str]) -> str:
    more = [f"{len(names) - MAX_NAMES} more"] if len(names) > MAX_NAMES else []
    shown = [*names[:MAX_NAMES], *more]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _generators() -> dict[str, Any]:
    """Return the states of the global generators of random numbers, by module."""
    found: dict[str, Any] = {"random": random.getstate()}
    if "numpy" in sys.modules:
        # NumPy loads it when it is first used.
        generator = importlib.import_module("numpy.random")
        found[generator.__name__] = pickle.dumps(generator.get_state(legacy=False))
    return found


_lock = threading.Lock()
_hooks: list[Callable[..., Any]] = []
_watching: list[type] = []
"""The class that `os.environ` had, for each run that is watched."""
_SEED, _SET, _SYSTEM = random.Random.seed, random.Random.setstate, os.urandom


@contextlib.contextmanager
def _reported() -> Iterator[None]:
    """Let Python report what is read and drawn; the hook for files cannot be removed."""
    with _lock:
        if not _hooks:
            _hooks.append(_audit)
            sys.addaudithook(_audit)
        environ, own = os.environ, type(os.environ)
        if not _watching:
            with contextlib.suppress(TypeError):  # a test may have put something else in its place
                environ.__class__ = _Environ
            _report_draws(_seeded, _set, _from_system)
        else:
            own = _watching[0]
        _watching.append(own)
    try:
        yield
    finally:
        with _lock:
            _watching.pop()
            if not _watching:
                with contextlib.suppress(TypeError):
                    environ.__class__ = own
                _report_draws(_SEED, _SET, _SYSTEM)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "open":
        return
    watch = getattr(_here, "watch", None)
    if watch is None:
        return
    path, _, flags = arguments
    if isinstance(path, int) or (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_CREAT)):
        return
    name = os.fsdecode(path)
    if not name.endswith(_CODE) and not _is_importing(sys._getframe()):
        watch.files[name] = None


def _report_draws(
    seed: Callable[..., None], set_state: Callable[..., None], system: Callable[[int], bytes]
) -> None:
    """Put functions in place of those that seed a generator and that take random bytes from the system.

    NumPy and `secrets` take theirs through `random.SystemRandom`.
    """
    random.Random.seed = seed  # type: ignore[method-assign]
    random.Random.setstate = set_state  # type: ignore[method-assign]
    os.urandom = random._urandom = system  # type: ignore[attr-defined]


def _seeded(generator: random.Random, a: Any = None, version: int = 2) -> None:
    _note_seed(generator, is_given=a is not None)
    _SEED(generator, a, version)


def _set(generator: random.Random, state: Any) -> None:
    # So are copies made: without a seed, and then with the state of the other.
    _note_seed(generator, is_given=True)
    _SET(generator, state)


def _note_seed(generator: random.Random, *, is_given: bool) -> None:
    watch = _watch_of_code()
    if watch is None:
        return
    if is_given:
        watch.unseeded.pop(id(generator), None)
    elif len(watch.unseeded) < MAX_UNSEEDED:
        watch.unseeded[id(generator)] = generator
    else:
        watch.draws_from_system = True


def _from_system(size: int, /) -> bytes:
    watch = _watch_of_code()
    if watch is not None and not watch.draws_from_system:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__") in ("random", "secrets"):
            frame = frame.f_back
        watch.draws_from_system = frame is None or not gives_seed(frame)
    return _SYSTEM(size)


def _watch_of_code() -> Watch | None:
    """Return the watch of this thread, None while a module is being imported."""
    watch: Watch | None = getattr(_here, "watch", None)
    return None if watch is None or _is_importing(sys._getframe()) else watch


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_globals.get("__name__") not in _CALLERS:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


class _Environ(type(os.environ)):  # type: ignore[misc]
    """The class of `os.environ`, with a report of the names that are looked up."""

    def __getitem__(self, key: str) -> str:
        watch = getattr(_here, "watch", None)
        if watch is not None:
            watch.variables[key] = None
        return super().__getitem__(key)
