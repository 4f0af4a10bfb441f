//! The maps of `bpf/int.bpf.c` (layout: `bpf/int_tc.h`). Its ports: [`crate::port`].

use crate::Plain;

/// Domain whose hops report what HPCC needs beyond INT's own values, and its instructions.
pub const DOMAIN: u16 = 0x5746;
pub const DOMAIN_BYTES: u16 = 0x8000;
pub const DOMAIN_RATE: u16 = 0x4000;
pub const DOMAIN_SENT: u16 = 0x2000;
/// The UDP port of INT that `weftline collect` looks for.
pub const PORT: u16 = 49_203;

/// Names of the counters of the map `int_counts`, in their order.
pub const COUNTS: [&str; 11] = [
    "source",
    "source_m",
    "source_mtu",
    "not_chosen",
    "unfit",
    "transit",
    "transit_e",
    "transit_m",
    "malformed",
    "sink",
    "lost",
];

/// The only entry of the map `int_config`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    pub node: u32,
    pub port: u16,
    /// What a source asks of all hops.
    pub bitmap: u16,
    pub domain: u16,
    pub domain_bitmap: u16,
    /// Words of that.
    pub hop_words: u8,
    pub max_hops: u8,
    reserved: u16,
    /// Not 0: time and queue come with the packet, for replays and tests.
    pub replay: u32,
    reserved2: u32,
    /// Packets that are chosen, by their id, in units of 2^-32.
    pub sample: u64,
}

/// What the sink reports of a packet, before the bytes that it took off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Report {
    pub time_ns: u64,
    pub source: [u64; 2],
    pub destination: [u64; 2],
    pub part_bytes: u32,
    pub hop_words: u32,
    /// The sink's own values, as they would stand in the packet.
    pub hop: [[u8; 4]; 32],
}

// SAFETY: no padding, numbers only; the sizes are those of C.
unsafe impl Plain for Config {}
unsafe impl Plain for Report {}
const _: () = assert!(size_of::<Config>() == 32 && size_of::<Report>() == 176);

/// Words of the value of each bit of a bitmap, the highest first.
const WORDS: [u8; 16] = [1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1];

impl Config {
    /// All packets; `bitmap` and the domain's instructions say which values. None: they take more than a hop's 31 words.
    pub fn new(node: u32, bitmap: u16, domain_bitmap: u16, max_hops: u8) -> Option<Config> {
        let asked = (0..16).filter(|bit| bitmap & 0x8000 >> bit != 0);
        let mut words: u8 = asked.map(|bit| WORDS[bit]).sum();
        let domain_words = [(DOMAIN_BYTES, 2), (DOMAIN_RATE, 1), (DOMAIN_SENT, 2)];
        words += domain_words
            .iter()
            .filter(|(bit, _)| domain_bitmap & bit != 0)
            .map(|(_, words)| words)
            .sum::<u8>();
        let domain = if domain_bitmap == 0 { 0 } else { DOMAIN };
        (1..=31).contains(&words).then_some(Config {
            node,
            port: PORT,
            bitmap,
            domain,
            domain_bitmap,
            hop_words: words,
            max_hops,
            reserved: 0,
            replay: 0,
            reserved2: 0,
            sample: 1 << 32,
        })
    }
}
