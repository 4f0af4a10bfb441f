//! The keys of `transport.kind = "phost"`: published values, in packets and in packet times of a host's own link, so that
//! they follow the link's rate. Those that stand for a round trip grow with it where it is longer than the published
//! network's.
//!
//! Source: the authors' simulator (commit 8e9cf04), 10 Gb/s: 8 free tokens, a window of 8, token life 1.5 packet times,
//! tokens asked for again after 9, a flow downgraded for 25.

use crate::config::{FreeTokens, PhostConfig};
use crate::parameters::Parameters;
use crate::transport::policy::policy;
use crate::units::{Rate, Time};

/// What a source is allowed before it has heard from the destination.
const FREE_FOR: &[(&str, &str)] = &[
    ("short", "only flows that need no other tokens have free ones (the released code)"),
    (
        "every",
        "every flow begins with free tokens (the paper); the destination's first token comes when they are spent",
    ),
];

/// Published, in packets.
const PUBLISHED_ROUND_TRIP: u32 = 8;
const MOST_PACKETS: i64 = 1 << 20;
/// Beyond any use; keeps times within the clock.
const MOST_PACKET_TIMES: f64 = 1e7;

/// What defaults follow from.
#[derive(Clone, Copy)]
pub struct Network<'a> {
    /// The largest base RTT for packets of this payload.
    pub base_rtt: &'a dyn Fn(u32) -> Time,
    /// The highest rate of a host.
    pub host_rate: Rate,
}

impl Network<'_> {
    /// Packets that pass in the largest base RTT, at least 1.
    fn round_trip(&self, mtu: u32, packet: u32) -> u32 {
        let bytes = self.host_rate.bytes_in((self.base_rtt)(mtu)).0;
        u32::try_from(bytes.div_ceil(u64::from(packet))).unwrap_or(u32::MAX).clamp(1, 1 << 19)
    }
}

/// Reads the settings of pHost.
pub fn read(p: &mut Parameters, network: &Network) -> PhostConfig {
    let mtu = p.size("mtu", (1460, 64, 9000), "payload of a full packet (published: 1460 B)");
    let header = p.size("header", (40, 0, 1000), "header of a data packet (published: 40 B)");
    let help = "bytes of a request, token or acknowledgement (published: 40 B)";
    let control = p.size("control", (40, 1, 1000), help);
    let round_trip = network.round_trip(mtu, mtu + header);
    let (free_tokens, free_for) = free(p, round_trip);
    let window_default = PUBLISHED_ROUND_TRIP.max(2 * round_trip);
    let help = "tokens that a flow may have outstanding (published: 8; where two round trips take more packets, so many)";
    let window = p.integer("window", i64::from(window_default), (0, MOST_PACKETS), help) as u32;
    if window == 0 {
        p.complain("window", "a window of 0 tokens would let nothing be sent: expected at least 1".into());
    }
    let token_life = token_life(p);
    let help = "packet times from one token of a destination to the next (published: 1; the paper's first code 1540/1500)";
    let token_interval = p.number("token_interval", 1.0, (0.001, MOST_PACKET_TIMES), help);
    let help = "leave a destination's next ticks to the free packets of a new flow (released code: true; the paper's first \
                code did not)";
    let hold = p.flag("hold", true, help);
    let help = "packet times for each free token until a flow that has no others may be given new ones (published: 2)";
    let first_wait = p.number("first_wait", 2.0, (0.0, MOST_PACKET_TIMES), help);
    let help = "packet times until missing packets are asked for again once tokens for all were given (published: 9)";
    let retoken = p.number("retoken", f64::from(window_default + 1), (0.0, MOST_PACKET_TIMES), help);
    let help = "packet times that a flow with a full window gets no token (published: 25, three windows; in an older script \
                15)";
    let downgrade = p.number("downgrade", f64::from(3 * window_default + 1), (0.0, MOST_PACKET_TIMES), help);
    let help = "a sleeping token clock looks again when data open a window (released code: false)";
    let wake_on_data = p.flag("wake_on_data", false, help);
    let (class, short) = classes(p, PUBLISHED_ROUND_TRIP.max(round_trip));
    let help = "every packet with a choice of paths is labelled anew, counting up, so that balancers spread it; false: a \
                flow keeps its path";
    let spray = p.flag("spray", true, help);
    let packet_time = network.host_rate.0.max(1);
    let packet_time = Rate(packet_time).transmission_time(u64::from(mtu + header)).min(Time::from_ms(1));
    let least =
        Time(packet_time.0.saturating_mul(100)).max(Time((network.base_rtt)(mtu).0.saturating_mul(10)));
    let help = "a source that hears nothing of the destination for so long repeats its request, then after twice the time; \
                the authors' never does, and a lost request loses the flow (the most of 100 packet times and 10 base RTTs)";
    let request_timeout = p.time("request_timeout", least.clamp(LEAST_TIMEOUT, MOST_TIMEOUT), help);
    if !(LEAST_TIMEOUT..=MOST_TIMEOUT).contains(&request_timeout) {
        let message =
            format!("expected a time from {LEAST_TIMEOUT} to {MOST_TIMEOUT}, found {request_timeout}");
        p.complain("request_timeout", message);
    }
    let help = "who goes first, at sources and destinations";
    let policy = policy(p, help);
    PhostConfig {
        mtu,
        header,
        control,
        class,
        short,
        free_tokens,
        free_for,
        window,
        token_life,
        token_interval,
        hold,
        first_wait,
        retoken,
        downgrade,
        wake_on_data,
        spray,
        request_timeout,
        policy,
    }
}

const LEAST_TIMEOUT: Time = Time::from_us(1);
const MOST_TIMEOUT: Time = Time::from_ms(100_000);

/// How many free tokens, and who has them.
fn free(p: &mut Parameters, round_trip: u32) -> (u32, FreeTokens) {
    let default = PUBLISHED_ROUND_TRIP.max(round_trip);
    let help = "packets that a flow may send before it has heard of the destination (published: 8, called a \
                bandwidth-delay product; where a round trip takes more packets, so many)";
    let tokens = p.integer("free_tokens", i64::from(default), (0, MOST_PACKETS), help) as u32;
    let free_for = match p.choice("free_tokens_for", "short", FREE_FOR, "which flows have free tokens") {
        "every" => FreeTokens::Every,
        _ => FreeTokens::Short,
    };
    (tokens, free_for)
}

fn token_life(p: &mut Parameters) -> f64 {
    let help = "packet times for which a token is good at the source (published: 1.5)";
    let life = p.number("token_life", 1.5, (0.0, MOST_PACKET_TIMES), help);
    if life < 1.0 {
        let message = format!(
            "tokens that live {life} packet times expire while the packet before is sent: expected at least 1 (published: \
             1.5)"
        );
        p.complain("token_life", message);
    }
    life
}

/// The class of control packets, and up to how many packets a flow is short.
fn classes(p: &mut Parameters, round_trip: u32) -> (u8, u32) {
    let help =
        "traffic class of requests, tokens and acknowledgements; data are in the next one, or the next two";
    let class = p.integer("class", 1, (1, 5), help) as u8;
    let help = "flows of at most so many packets go above longer ones (published: 8; the released configuration leaves it \
                out, which means 0: all data in one class)";
    let short = p.integer("short_flow", i64::from(round_trip), (0, MOST_PACKETS), help) as u32;
    (class, short)
}
