"""The exceptions that weftline raises, and its warning on results.

`InputError`: what the user wrote cannot be run; the text says where and what to write instead (exit status
2). `DamagedError`, an `InputError`: results are not what a run wrote. `RunFailed`: the input was good and the
run did not end well (exit status 1).
"""

from weftline._native import DamagedError, InputError, RunFailed

__all__ = ["DamagedError", "InputError", "ResultsWarning", "RunFailed", "nearest"]


class ResultsWarning(UserWarning):
    """Something about results that should be known before they are trusted."""


def nearest(name: str, known: list[str]) -> str:
    """Return ``did you mean "x"? `` when a known name is close to `name`, else an empty text."""
    import difflib

    found = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f'did you mean "{found[0]}"? ' if found else ""
