"""What the page of an experiment begins with."""

from types import SimpleNamespace

import pytest

from weftline.reproduce import findings


@pytest.mark.parametrize(
    ("decided", "answer"),
    [
        ([None, None], "Nothing was decided: all claims are open."),
        ([True, None], "No claim that was decided differs."),
        ([False, True], "Not as stated: claim 0."),
    ],
)
def test_the_answer_is_no_stronger_than_what_was_decided(decided, answer):
    verdicts = [SimpleNamespace(text=f"claim {n}", decided=one) for n, one in enumerate(decided)]
    lead = findings.lead(SimpleNamespace(verdicts=verdicts, lead=None))
    assert lead is not None and lead.answer == [answer]
    assert [number.values[0][1] for number in lead.numbers] == [
        f"{decided.count(word)} of 2" for word in (True, False, None)
    ]
