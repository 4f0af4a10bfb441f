//! Captures from any bytes, gzipped ones too: no panic, bounded memory, every packet counted once.
//!
//! A collector takes several captures, since to make one takes longer than to read a small capture.
#![no_main]

use std::cell::RefCell;
use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use weftline_collect::capture::Reader;
use weftline_collect::collector::Collector;
use weftline_collect::packet::Markers;

/// A gzipped capture may hold more packets than a second of fuzzing can read.
const PACKETS: u64 = 1_000;
/// Packets that one collector takes.
const LIFE: u64 = 10_000;

thread_local! {
    static COLLECTOR: RefCell<Option<Collector>> = const { RefCell::new(None) };
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut reader) = Reader::new(Box::new(Cursor::new(bytes.to_vec())), "any".into()) else { return };
    COLLECTOR.with_borrow_mut(|place| {
        let collector = place.get_or_insert_with(|| Collector::new(Markers::default(), 1 << 16));
        let mut left = PACKETS;
        while left > 0
            && let Ok(Some(packet)) = reader.next_packet()
        {
            collector.take(&packet);
            left -= 1;
        }
        assert!(collector.counts().adds_up());
        if collector.counts().packets > LIFE {
            *place = None;
        }
    });
});
