//! Packet trimming: a port that has no room for a packet cuts its payload off and forwards the header before the data.
//!
//! Packets of the header class and those above it (trimmed headers, acknowledgements, pulls) have a limit of their own and
//! go first; with `headers_per_data` a data packet that waits goes after that number of them. Data of the other classes have `limit`. When a packet does not fit that its transport allows to be trimmed, it
//! loses its payload and joins the header class, or the last one of its class that waits does, and it takes that one's
//! place. The packet that is being sent counts until it has left. What must not be trimmed is dropped. A header for which there is no room is dropped, or turned round to its
//! source once, over the port by which it came.
//!
//! Source: Handley et al., "Re-architecting datacenter networks and stacks for low latency and high performance" (NDP),
//! SIGCOMM 2017, §3.1, §3.2.4; the limits and the coin are those of its authors' simulator (csg-htsim).
//! Differs from the source: headers go strictly first by default (there by weights of 100 000 to 1, in the paper 10 to 1); the last packet is only trimmed
//! where the new one then fits, and may be.
//! Validated by: unit cases here, tests/ndp.rs.

use super::managed::{BUFFER, Discipline, DisciplineParameters, Limit, List, QueueContext, Queued};
use super::{CLASSES, PortPlace, QueueDefaults};
use crate::counters::{CounterGroup, CounterSet, Metric, counters};
use crate::doc::SchemeDoc;
use crate::engine::random::RandomStream;
use crate::parameters::Parameters;
use crate::units::{Bytes, Rate, Time};

/// Which packet loses its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    Arriving,
    Last,
    /// Either, by a fair coin.
    Coin,
}

/// Values of `trim`.
pub const VICTIMS: &[(&str, &str)] = &[
    ("none", "no packet is trimmed: a full port drops"),
    ("arriving", "a packet that does not fit loses its payload"),
    ("last", "the last packet of its class loses its payload, and the new one takes its place"),
    ("coin", "one of these two, by a fair coin (NDP)"),
];

#[derive(Debug, Clone, PartialEq)]
pub struct TrimmingConfig {
    pub victim: Victim,
    /// Bytes of a trimmed packet.
    pub to: u16,
    /// The class of trimmed packets; it and those above it have the header limit.
    pub class: u8,
    pub header_limit: Bytes,
    /// A header for which there is no room goes back to its source.
    pub returns: bool,
    /// Headers in a row after which data that wait have a turn; 0: none.
    pub headers_per_data: u64,
}

impl TrimmingConfig {
    /// Reads the keys that go with `trim`; `limit` is that of the data. Without a victim they have no effect.
    pub fn read_with(
        p: &mut Parameters,
        victim: Option<Victim>,
        limit: Bytes,
        defaults: QueueDefaults,
    ) -> Option<TrimmingConfig> {
        let help = "bytes that are left of a trimmed packet (NDP: 64B)";
        let to = p.size("trim_to", (64, 20, 1000), help) as u16;
        let help = "traffic class of trimmed packets; packets of this class and of those before it wait within header_limit";
        let class = p.integer("trim_class", 1, (1, CLASSES as i64 - 2), help) as u8;
        let help = "maximum number of bytes of headers and control packets that wait at a port (NDP's simulator: twice limit)";
        let header_limit = p.bytes("header_limit", Bytes(limit.0.saturating_mul(2)), help);
        let help = "a header for which there is no room goes back to its source once, instead of being dropped (NDP, \
                    §3.2.4; false in the data-center setting of its simulator, and with compat.like = \"htsim\")";
        let returns = p.flag("return_to_sender", !defaults.drops_headers, help);
        let help = "headers and control packets in a row after which one data packet that waits is sent; 0: they are always sent first \
                    (NDP: 10 in the paper, 100 000 in its simulator). Headers from a link more than some twenty times as fast \
                    fill this one";
        let headers_per_data = p.integer("headers_per_data", 0, (0, 1_000_000), help) as u64;
        let Some(victim) = victim else {
            for key in ["trim_to", "trim_class", "header_limit", "return_to_sender", "headers_per_data"] {
                p.without_effect(key, || "no packet is trimmed: set trim = \"coin\"".into());
            }
            return None;
        };
        if header_limit.0 < u64::from(to) && limit.0 > 0 {
            p.complain("header_limit", format!("{header_limit} has no room for a header of {to} B"));
        }
        Some(TrimmingConfig { victim, to, class, header_limit, returns, headers_per_data })
    }
}

impl DisciplineParameters for TrimmingConfig {
    type State = Trimming;
    const DOC: SchemeDoc = super::priority::DOC;

    /// Never alone: [`TrimmingConfig::read_with`].
    fn read(p: &mut Parameters) -> TrimmingConfig {
        TrimmingConfig::read_with(p, Some(Victim::Coin), Bytes(0), QueueDefaults::default())
            .expect("a victim is named")
    }

    fn start(&self, _limit: Limit, place: &PortPlace) -> Trimming {
        Trimming {
            config: self.clone(),
            lists: Default::default(),
            coin: RandomStream::new(place.seed, &format!("trimming.{}.{}", place.node, place.local)),
            rate: place.rate,
            leaving: Leaving::default(),
            departs: place.departs,
            in_a_row: 0,
            tally: Tally::default(),
        }
    }
}

counters! {
    /// What happened at the port.
    Tally {
        trimmed: "packets", "packets trimmed",
            "Packets that lost their payload because they did not fit into a queue; their headers were forwarded.";
        trimmed_bytes: "bytes", "bytes trimmed",
            "Bytes that trimmed packets lost.";
        headers_dropped: "packets", "headers dropped",
            "Headers and control packets that were dropped because the header queue was full.";
        returned: "packets", "headers returned",
            "Trimmed packets that went back to their source because the header queue was full.";
    }
}

pub static COUNTERS: CounterGroup = CounterGroup {
    table: "trimming",
    text: "Packets that ports trimmed, over the whole run.",
    counters: Tally::ALL,
    gauges: &[],
    metrics: &[
        Metric {
            name: "trimmed",
            part: "trimmed",
            series: ("trimmed", "Packets that lost their payload at the port in an interval."),
            ..Metric::NONE
        },
        Metric { name: "headers_dropped", part: "headers_dropped", ..Metric::NONE },
        Metric { name: "headers_returned", part: "returned", ..Metric::NONE },
    ],
};

/// What waits at a trimming port, by class.
#[derive(Debug, Clone)]
pub struct Trimming {
    config: TrimmingConfig,
    lists: [List; CLASSES],
    coin: RandomStream,
    rate: Rate,
    leaving: Leaving,
    /// The end of every transmission is an event: until then the packet is here.
    departs: bool,
    /// Headers that were sent in a row while data waited.
    in_a_row: u64,
    tally: Tally,
}

/// The packet that is being sent, until then.
#[derive(Debug, Clone, Copy, Default)]
struct Leaving {
    bytes: u64,
    is_header: bool,
    until: Time,
}

impl Trimming {
    fn is_header(&self, packet: &Queued) -> bool {
        packet.class <= self.config.class
    }

    fn bytes(&self, classes: std::ops::Range<usize>) -> u64 {
        self.lists[classes].iter().map(|list| list.bytes).sum()
    }

    /// Bytes of the packet that is being sent, if it is of this kind.
    fn leaving(&self, is_header: bool, now: Time) -> u64 {
        let here = now < self.leaving.until || self.departs && now == self.leaving.until;
        if self.leaving.is_header == is_header && here { self.leaving.bytes } else { 0 }
    }

    /// The class that is served next.
    fn next_class(&mut self) -> Option<usize> {
        let first = self.lists.iter().position(|list| list.packets > 0)?;
        let (headers, limit) = (usize::from(self.config.class) + 1, self.config.headers_per_data);
        if limit == 0 {
            return Some(first);
        }
        let data = (headers..CLASSES).find(|class| self.lists[*class].packets > 0);
        let Some(data) = data.filter(|_| first < headers) else {
            self.in_a_row = 0;
            return Some(first);
        };
        let data_have_their_turn = self.in_a_row >= limit;
        self.in_a_row = if data_have_their_turn { 0 } else { self.in_a_row + 1 };
        Some(if data_have_their_turn { data } else { first })
    }

    fn push(&mut self, packet: Queued, cx: &mut QueueContext) {
        cx.waiting.push(&mut self.lists[usize::from(packet.class) % CLASSES], packet);
    }

    /// A header or control packet comes, or a packet that has become one.
    fn enqueue_header(&mut self, packet: Queued, cx: &mut QueueContext) {
        let waiting = self.bytes(0..usize::from(self.config.class) + 1) + self.leaving(true, cx.now);
        if waiting + u64::from(packet.size) <= self.config.header_limit.0 {
            return self.push(packet, cx);
        }
        if self.config.returns && cx.turn_round(packet) {
            self.tally.returned += 1;
        } else {
            self.tally.headers_dropped += 1;
            cx.drop(packet, &BUFFER);
        }
    }

    /// A packet does not fit: which of two loses its payload, if one may; it is in no list.
    fn choose_victim(&mut self, packet: Queued, waiting: u64, cx: &mut QueueContext) -> Option<Queued> {
        let last = match self.config.victim {
            Victim::Arriving => false,
            Victim::Last => true,
            Victim::Coin => self.coin.next_u64() >> 63 == 1,
        };
        let list = &mut self.lists[usize::from(packet.class) % CLASSES];
        let fits = |last: &Queued| {
            waiting - u64::from(last.size) + u64::from(packet.size) <= cx.limit().bytes.0 && cx.may_trim(last)
        };
        if last && cx.waiting.last(list).is_some_and(fits) {
            return cx.waiting.replace_last(list, packet);
        }
        cx.may_trim(&packet).then_some(packet)
    }
}

impl Discipline for Trimming {
    fn enqueue(&mut self, packet: Queued, cx: &mut QueueContext) {
        if self.is_header(&packet) {
            return self.enqueue_header(packet, cx);
        }
        let waiting = self.bytes(usize::from(self.config.class) + 1..CLASSES) + self.leaving(false, cx.now);
        if waiting + u64::from(packet.size) <= cx.limit().bytes.0 {
            return self.push(packet, cx);
        }
        let Some(victim) = self.choose_victim(packet, waiting, cx) else {
            return cx.drop(packet, &BUFFER);
        };
        let header = cx.trim(victim, self.config.to, self.config.class);
        self.tally.trimmed += 1;
        self.tally.trimmed_bytes += u64::from(victim.size - header.size);
        self.enqueue_header(header, cx);
    }

    fn dequeue(&mut self, cx: &mut QueueContext) -> Option<Queued> {
        self.leaving = Leaving::default();
        let class = self.next_class()?;
        let packet = cx.waiting.pop(&mut self.lists[class])?;
        let bytes = u64::from(packet.size);
        let until = cx.now.saturating_add(self.rate.transmission_time(bytes));
        self.leaving = Leaving { bytes, is_header: self.is_header(&packet), until };
        Some(packet)
    }

    fn reset(&mut self) {
        (self.lists, self.leaving, self.in_a_row) = Default::default();
    }

    fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

    fn count(&mut self, _now: Time, counters: &mut CounterSet) {
        counters.add(&COUNTERS, self.tally.each().map(|(_, value)| value));
    }
}

#[cfg(test)]
mod tests;
