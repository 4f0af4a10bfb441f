"""The text of `weftline check` about flows that are not all counted, and about the load."""

from weftline.cli import facts


def test_what_is_not_counted_is_a_lower_bound():
    traffic = {"flows": 50, "flows_drawn": 50, "flows_are_lower_bound": True, "offered_load": 0.25}
    assert facts._traffic_texts(traffic) == {
        "flows": "more than 50: no more are counted",
        "offered_load": "0.25 of the links of all hosts",
    }


def test_the_configured_load_stands_next_to_that_of_the_seed():
    traffic = {"flows": 9, "flows_drawn": 9, "flows_are_lower_bound": False}
    loads = {"offered_load": 0.512, "offered_load_asked": 0.4, "offered_load_error": 0.05}
    text = facts._traffic_texts({**traffic, **loads})["offered_load"]
    assert text.startswith("0.512 of the links of all hosts by the 9 flows of this seed; configured: 0.4. ")
    assert text.endswith("deviate by up to 0.1 (this seed: beyond that)")
