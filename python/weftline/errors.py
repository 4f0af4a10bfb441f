"""The two ways in which weftline says no.

`InputError`: what the user wrote cannot be run; the text says where and what to write instead (exit status
2). `RunFailed`: the input was good and the run did not end well (exit status 1).
"""

from weftline._native import InputError, RunFailed

__all__ = ["InputError", "RunFailed", "nearest"]


def nearest(name: str, known: list[str]) -> str:
    """Return ``did you mean "x"? `` when a known name is close to `name`, else an empty text."""
    import difflib

    found = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f'did you mean "{found[0]}"? ' if found else ""
