use super::*;

#[test]
fn a_record_fills_64_bits_field_after_field() {
    let record = IntRecord { time: 0xab_cdef, sent: 0x1_2345, queue: 0x1_0003, rate_kbps: 100_000_000 };
    assert_eq!(packed(&record), 5 << 61 | 0xab_cdef << 37 | 0x1_2345 << 17 | 0x1_0003);
    for strange in [12_345, 10_900_000, 100_000_001] {
        assert_eq!(packed(&IntRecord { rate_kbps: strange, ..IntRecord::default() }), 0, "{strange} kb/s");
    }
}

#[test]
fn hops_and_path_stand_before_the_records() {
    let layout = IntLayout { sent_unit: 512, queue_unit: 320, ..IntLayout::FINE };
    let head = IntRecord { time: 2, sent: 0x123, ..IntRecord::default() };
    let hop = IntRecord { time: 1, sent: 2, queue: 3, rate_kbps: 25_000_000 };
    let mut shim = vec![VERSION << 4, 0, 0, 0, 0, 0, 0, 0];
    records(&mut shim, layout, &[head, hop, hop], true);
    assert_eq!(shim[..8], [0x11, 4, 0, 0, 0, 0, 0x21, 0x23]);
    let mut overwritten = vec![VERSION << 4, 0, 0, 0, 0, 0, 0, 0];
    records(&mut overwritten, layout, &[IntRecord { time: 20, ..head }, hop, hop], true);
    assert_eq!((overwritten[0], overwritten[6], overwritten.len()), (0x19, 0xf1, 8 + 16));
    let word: u64 = 2 << 61 | 1 << 37 | 2 << 17 | 3;
    assert_eq!(shim[8..], [word.to_be_bytes(), word.to_be_bytes()].concat());
}
