//! Packets of every kind of link from any bytes, through every parser of telemetry: no panic, every packet
//! counted once.
//!
//! The first byte chooses the link, the second how INT, reports and PINT are marked. A collector takes the packets of [`LIFE`]
//! inputs that are marked alike, since to make one takes longer than to read a packet; where one
//! fails only after others, the input that is kept is the last of them.
#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use weftline_collect::capture::Packet;
use weftline_collect::collector::Collector;
use weftline_collect::ip::Link;
use weftline_collect::packet::Markers;

const LINKS: [Link; 5] = [Link::Ethernet, Link::Raw, Link::Loopback, Link::LinuxCooked, Link::LinuxCooked2];

/// Inputs that one collector takes.
const LIFE: u64 = 1024;

thread_local! {
    static COLLECTORS: RefCell<[Option<Collector>; 16]> = const { RefCell::new([const { None }; 16]) };
}

fuzz_target!(|input: &[u8]| {
    let &[link, marks, ref bytes @ ..] = input else { return };
    COLLECTORS.with_borrow_mut(|collectors| {
        let place = &mut collectors[usize::from(marks % 16)];
        let collector = place.get_or_insert_with(|| {
            let markers = Markers {
                int_probe: (marks & 1 != 0).then_some(0x0102_0304_0506_0708),
                before_tcp_options: marks & 2 != 0,
                pint_ipv4_id: marks & 4 != 0,
                pint_flow_label: marks & 8 != 0,
                ..Markers::default()
            };
            Collector::new(markers, 1 << 16)
        });
        let length = bytes.len() as u32;
        for _ in 0..2 {
            let link = Some(LINKS[usize::from(link) % LINKS.len()]);
            collector.take(&Packet { time_ns: 0, link, interface: 0, length, bytes });
        }
        assert!(collector.counts().adds_up());
        if collector.counts().packets >= 2 * LIFE {
            collector.summary();
            collector.path_rows();
            collector.hop_rows();
            collector.event_rows();
            collector.source_rows();
            *place = None;
        }
    });
});
