use super::*;

/// version = 1, then a schema of a root with `children` and `leaves` leaves.
fn metadata(children: u8, leaves: u8) -> Vec<u8> {
    let mut bytes = vec![0x15, 2, 0x19, (leaves + 1) << 4 | 12];
    // name = "s" (field 4), num_children (field 5)
    bytes.extend([0x48, 1, b's', 0x15, children << 1, 0]);
    for _ in 0..leaves {
        // type (field 1), name (field 4)
        bytes.extend([0x15, 2, 0x38, 1, b'x', 0]);
    }
    bytes.push(0);
    bytes
}

fn sound(bytes: &[u8]) -> Option<bool> {
    Compact { rest: bytes }.schema_is_sound()
}

#[test]
fn more_children_than_elements_are_not_sound() {
    assert_eq!(sound(&metadata(2, 2)), Some(true));
    assert_eq!(sound(&metadata(3, 2)), Some(false));
    assert_eq!(sound(&metadata(60, 2)), Some(false));
    // num_children = -1
    let mut negative = metadata(2, 2);
    negative[8] = 1;
    assert_eq!(sound(&negative), None);
}

#[test]
fn a_footer_that_breaks_off_is_damaged() {
    let whole = metadata(2, 2);
    for length in 0..whole.len() - 1 {
        assert_eq!(sound(&whole[..length]), None, "{length}");
    }
    assert_eq!(sound(&[0x19; 2000]), None, "lists without end");
    assert_eq!(sound(&[0x1c; 2000]), None, "structures without end");
}
