//! The keys of `transport.kind = "pfabric"`: published values on the published network, scaled to others.
//!
//! Windows and queues are bandwidth-delay products, and grow with a host's rate times the longest base RTT; the timeout
//! stands for the time that full queues take, and grows with the base RTT alone.
//!
//! Source: Alizadeh et al., "pFabric", SIGCOMM 2013; Gao et al., "pHost", CoNEXT 2015, and its authors' simulator:
//! 10 Gb/s, a window of 12 packets that grows to 15, queues of 36 KiB, a timeout of 45 us.

use crate::config::{PfabricConfig, PfabricPriority};
use crate::parameters::Parameters;
use crate::units::{Bytes, Rate, Time};

const PRIORITIES: &[(&str, &str)] = &[
    ("remaining", "bytes that the flow has left when the packet is sent"),
    ("deadline", "the flow's deadline in microseconds; flows without one last"),
];

/// The published network: leaf-spine with 10 and 40 Gb/s and 200 ns a link, packets of 1460 B.
const PUBLISHED_RATE: Rate = Rate::from_gbps(10);
const PUBLISHED_BASE_RTT: Time = Time::from_ns(4520);
const PUBLISHED_WINDOW: u64 = 12;
const PUBLISHED_MAX_WINDOW: u64 = 15;
const PUBLISHED_LIMIT: u64 = 36 << 10;
const PUBLISHED_RTO: Time = Time::from_us(45);

const MOST_PACKETS: i64 = 1 << 20;
/// Shorter ones end before any answer can come, and everything is sent again for ever.
const LEAST_RTO: Time = Time::from_us(1);
const MOST_RTO: Time = Time::from_ms(100_000);

/// What defaults follow from.
#[derive(Clone, Copy)]
pub struct Network<'a> {
    /// The largest base RTT for packets of this payload.
    pub base_rtt: &'a dyn Fn(u32) -> Time,
    /// The highest rate of a host.
    pub host_rate: Rate,
}

impl Network<'_> {
    /// A published bandwidth-delay product as it is here, to the nearest whole, at least 1.
    fn product(&self, published: u64, mtu: u32) -> u64 {
        let here = u128::from(self.host_rate.0) * u128::from((self.base_rtt)(mtu).0);
        let there = u128::from(PUBLISHED_RATE.0) * u128::from(PUBLISHED_BASE_RTT.0);
        rounded(u128::from(published) * here, there).max(1)
    }

    /// A published time as it is here.
    fn time(&self, published: Time, mtu: u32) -> Time {
        let here = u128::from((self.base_rtt)(mtu).0);
        Time(rounded(u128::from(published.0) * here, u128::from(PUBLISHED_BASE_RTT.0)))
    }
}

fn rounded(numerator: u128, denominator: u128) -> u64 {
    u64::try_from((numerator + denominator / 2) / denominator).unwrap_or(u64::MAX)
}

/// Reads the settings of pFabric.
pub fn read(p: &mut Parameters, network: &Network) -> PfabricConfig {
    let mtu = p.size("mtu", (1460, 64, 9000), "payload of a full packet (published: 1460 B)");
    let header = p.size("header", (40, 0, 1000), "header of a data packet (published: 40 B)");
    let ack_header = p.size("ack_header", (40, 1, 1000), "bytes of an acknowledgement (published: 40 B)");
    let (initial_window, max_window) = windows(p, network, mtu);
    let rto = timeout(p, network, mtu);
    let help = "timeouts in a row after which a flow sends probes of one byte until an acknowledgement comes (pFabric paper: \
                5); 0: never, as in the pHost authors' simulator";
    let probe_after = p.integer("probe_after", 0, (0, 1000), help) as u32;
    let queue_limit = queue_limit(p, network, (mtu, mtu + header));
    let help = "traffic class of data and acknowledgements, for pauses; the queues serve by what is left";
    let class = p.integer("class", 1, (1, 7), help) as u8;
    let help = "every packet with a choice of paths is labelled anew, counting up, so that balancers spread it; false: a \
                flow keeps its path";
    let spray = p.flag("spray", true, help);
    let priority = match p.choice("priority", "remaining", PRIORITIES, "what a packet's urgency is") {
        "deadline" => PfabricPriority::Deadline,
        _ => PfabricPriority::Remaining,
    };
    PfabricConfig {
        mtu,
        header,
        ack_header,
        class,
        initial_window,
        max_window,
        rto,
        probe_after,
        queue_limit,
        spray,
        priority,
    }
}

/// The window at the start, and at the most, in packets.
fn windows(p: &mut Parameters, network: &Network, mtu: u32) -> (u32, u32) {
    let scaled = |published| network.product(published, mtu).min(MOST_PACKETS as u64) as i64;
    let help = "packets of the first window (published: 12 at 10 Gb/s, a bandwidth-delay product)";
    let initial = p.integer("initial_window", scaled(PUBLISHED_WINDOW), (0, MOST_PACKETS), help);
    if initial == 0 {
        p.complain("initial_window", "a window of 0 would never send: expected at least 1".into());
    }
    let help = "packets of the largest window (published: 15, or 3 more than the first)";
    let most = p.integer("max_window", scaled(PUBLISHED_MAX_WINDOW).max(initial), (0, MOST_PACKETS), help);
    if most < initial {
        let message = format!("{most} is less than initial_window, which is {initial}");
        p.complain("max_window", message);
    }
    (initial as u32, most as u32)
}

fn timeout(p: &mut Parameters, network: &Network, mtu: u32) -> Time {
    let base_rtt = (network.base_rtt)(mtu);
    let default = network.time(PUBLISHED_RTO, mtu).clamp(LEAST_RTO, MOST_RTO);
    let help =
        "fixed retransmission timeout, not backed off (published: 45 us; scaled with the longest base RTT)";
    let rto = p.time("rto", default, help);
    if !(LEAST_RTO..=MOST_RTO).contains(&rto) {
        p.complain("rto", format!("expected a time from {LEAST_RTO} to {MOST_RTO}, found {rto}"));
    } else if rto <= base_rtt {
        let message = format!(
            "{rto} ends before an answer can come: the longest base RTT is {base_rtt} (published: ten times that)"
        );
        p.complain("rto", message);
    }
    rto
}

fn queue_limit(p: &mut Parameters, network: &Network, (mtu, packet): (u32, u32)) -> Bytes {
    let least = 2 * u64::from(packet);
    let most = u64::from(u32::MAX);
    let default = network.product(PUBLISHED_LIMIT, mtu).clamp(least, most);
    let help = "bytes that may wait in a host's NIC, and at the ports of switches whose queue has no limit given \
                (published: 36KiB at 10 Gb/s, two bandwidth-delay products)";
    let limit = p.bytes("queue_limit", Bytes(default), help);
    if !(u64::from(packet)..=most).contains(&limit.0) {
        let message = format!(
            "expected room for a packet, {}, and less than 4GiB, found {limit}",
            Bytes(packet.into())
        );
        p.complain("queue_limit", message);
    }
    limit
}
