//! The nearest of known names, by a table of cases that the tests of the Python side read, too: both have the
//! same rules.

use pint::nearest::{nearest, nearest_key};

#[test]
fn the_nearest_name_and_key_are_those_of_the_table() {
    let table = include_str!("nearest.csv");
    let rows: Vec<Vec<&str>> = table.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert!(rows.len() > 20);
    for row in rows {
        let [found, known, name, key] = row[..] else { panic!("{row:?}") };
        assert_eq!(nearest(found, known.split(' ')).unwrap_or_default(), name, "{found} of {known}");
        let near = nearest_key(found, known.split(' '), || None).unwrap_or_default();
        assert_eq!(near, key, "{found} of the keys {known}");
    }
}
