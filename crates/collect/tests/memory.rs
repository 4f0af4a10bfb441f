//! The limit of memory, held against the allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};

use weftline_collect::flows::{FlowTable, Point};
use weftline_collect::histogram::Histogram;
use weftline_collect::ip::FlowKey;

struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: passes every request on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as this function requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as this function requires.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn flow(number: u32) -> FlowKey {
    FlowKey {
        source: IpAddr::V4(Ipv4Addr::from(number)),
        destination: IpAddr::V4(Ipv4Addr::from(!number)),
        source_port: number as u16,
        destination_port: 9,
        protocol: 17,
        vni: None,
        namespace: None,
    }
}

/// One test: the allocator is counted for the whole process.
#[test]
fn two_million_flows_are_kept_in_256_megabytes_and_no_flood_takes_more() {
    const LIMIT: usize = 256_000_000 * 9 / 10;
    let before = IN_USE.load(Ordering::Relaxed);
    let mut table = FlowTable::new(LIMIT, 1);
    let used = || IN_USE.load(Ordering::Relaxed) - before;
    for number in 0..2_000_000 {
        table.observe(&flow(number), Point::Interface(0), u64::from(number), &[1, u64::from(number % 99), 3]);
    }
    assert_eq!((table.len(), table.counts().refused), (2_000_000, 0));
    assert!(used() <= LIMIT, "{} bytes", used());
    assert!(used() <= table.bytes() + table.bytes() / 50, "{} bytes, counted {}", used(), table.bytes());
    // Twice as many again, each twice; each changes its path, the later ones to a path of their own.
    for number in 2_000_000..6_000_000u32 {
        for turn in 0..2u64 {
            let time = u64::from(number) << 10 | turn;
            let node = if number < 4_000_000 { number % 99 } else { number };
            table.observe(&flow(number), Point::Node(7), time, &[turn, u64::from(node), 5, 6, 7]);
        }
        if number % 500_000 == 0 {
            assert!(used() <= LIMIT, "{} bytes", used());
        }
    }
    let counts = table.counts();
    assert!(used() <= LIMIT, "{} bytes", used());
    assert!(counts.refused > 0 && counts.evicted > 0 && counts.paths_refused > 0, "{counts:?}");
    drop(table);

    let before = IN_USE.load(Ordering::Relaxed);
    let (mut histogram, mut grown) = (Histogram::default(), 0);
    for value in 0..200_000u64 {
        grown += histogram.add(value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (value % 64));
    }
    assert_eq!(IN_USE.load(Ordering::Relaxed) - before, grown);
    assert!(grown <= 1_920 * 16 + weftline_collect::histogram::MAX_GROWTH_BYTES);
}
