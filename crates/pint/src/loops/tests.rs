use super::*;
use crate::hash::Key;

fn reports(detection: LoopDetection, packet: u64, path: impl Iterator<Item = u64>) -> bool {
    let (word, mut field) = (Key::new(1, 4).word(packet), 0);
    (1..=255).zip(path).any(|(hop, id)| {
        let (next, looped) = detection.step(field, word, hop, id);
        field = next;
        looped
    })
}

#[test]
fn a_packet_that_circles_is_reported() {
    for tolerance in [0, 1, 3] {
        let detection = LoopDetection::new(16, tolerance).unwrap();
        let seen = (0..1_000).filter(|&packet| reports(detection, packet, (0..5).cycle().take(120))).count();
        assert!(seen >= 995, "T {tolerance}: {seen}");
    }
}

#[test]
fn a_path_of_32_hops_without_a_loop_is_reported_as_rarely_as_published() {
    let detection = LoopDetection::new(16, 0).unwrap();
    let packets = 200_000;
    let seen = (0..packets).filter(|&packet| reports(detection, packet, 0..32)).count() as f64;
    let expected = 31.0 / 65_536.0 * packets as f64;
    assert!((seen - expected).abs() <= 4.0 * expected.sqrt(), "{seen}, {expected}");
    let tolerant = LoopDetection::new(16, 1).unwrap();
    assert_eq!((0..packets).filter(|&packet| reports(tolerant, packet, 0..32)).count(), 0);
}

#[test]
fn widths_that_leave_no_hash_are_refused() {
    assert!(LoopDetection::new(1, 1).is_none() && LoopDetection::new(65, 0).is_none());
    assert_eq!(LoopDetection::new(64, 0).unwrap().hash_bits(), 64);
    assert_eq!(LoopDetection::new(16, 3).unwrap().hash_bits(), 14);
}
