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
    text = facts._traffic_texts(traffic | loads)["offered_load"]
    assert text.startswith(
        "0.512 of the links of all hosts by the 9 flows of this seed; configured: 0.4 of the "
    )
    assert text.endswith("deviate by up to 0.1 (this seed: beyond that)")


def test_the_load_of_a_seed_is_not_known_where_some_of_its_flows_were_not_drawn():
    traffic = {"flows": 8_000_000, "flows_drawn": 2_000_001, "flows_are_lower_bound": False}
    loads = {"offered_load": 0.5001, "offered_load_asked": 0.5, "offered_load_error": 0.0002}
    text = facts._traffic_texts(traffic | loads)["offered_load"]
    assert "by about 8000000 flows, of which 2000001 were drawn with this seed; configured: 0.5 of" in text
    assert text.endswith("by up to 0.0004 (this seed: not known, as not all of its flows were drawn)")


def test_the_configured_load_says_what_the_scenario_relates_it_to():
    """A load of the servers' links is another number than that of all hosts, and neither is an error."""
    traffic = {"flows": 9, "flows_drawn": 9, "flows_are_lower_bound": False}
    loads = {"offered_load": 0.2, "offered_load_asked": 0.202, "offered_load_error": 0.05}
    terms = ["load 0.4 of the links of 4 servers (requests not included)"]
    text = facts._traffic_texts(traffic | loads | {"offered_load_terms": terms})["offered_load"]
    assert (
        "configured: load 0.4 of the links of 4 servers (requests not included) = 0.202 of the links of all "
        "hosts. " in text
    )
    several = [f"load 0.{n} of the links of {n} hosts" for n in range(1, 6)]
    text = facts._traffic_texts(traffic | loads | {"offered_load_terms": several})["offered_load"]
    assert "and load 0.3 of the links of 3 hosts and 2 more = 0.202 of the links of all hosts. " in text
