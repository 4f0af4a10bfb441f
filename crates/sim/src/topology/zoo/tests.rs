use super::*;

#[test]
fn delays_follow_the_great_circle() {
    // A quarter of the meridian: 10 007.5 km, 50.04 ms.
    let quarter = great_circle_delay((0.0, 0.0), (90.0, 0.0));
    assert_eq!(quarter, Time::from_ns(50_037_717));
    assert_eq!(great_circle_delay((0.0, 179.0), (0.0, -179.0)), great_circle_delay((0.0, 0.0), (0.0, 2.0)));
    assert_eq!(great_circle_delay((51.0, 7.0), (51.0, 7.0)), Time::from_us(1), "the least");
}

#[test]
fn places_are_named_by_their_labels_where_these_are_unique() {
    let place = |id: &str, label: &str| Place { id: id.into(), label: label.into(), ..Place::default() };
    let places = [
        place("0", "South Hill"),
        place("1", "None"),
        place("2", "None"),
        place("3", ""),
        place("4", "host7"),
        place("5", "São Paulo (SP)"),
    ];
    assert_eq!(names(&places), ["South-Hill", "None-1", "None-2", "node-3", "host7-4", "São-Paulo-SP"]);
}
