//! Situations in which controllers are tested alone, and what every controller must pass.

use crate::congestion::rates::in_proportion;
use crate::congestion::*;
use crate::parameters::{Declared, Nothing, Source, Value};
use crate::telemetry::int::IntRecord;
use proptest::prelude::*;

pub const LINE: u64 = 100_000_000_000;

/// A flow of the HPCC paper's FatTree: 100 Gb/s, T = 12.24 us, W0 = 153 000 B.
pub fn flow() -> FlowContext {
    let line_rate = Rate(LINE);
    FlowContext {
        flow: 0,
        line_rate,
        base_rtt: Time::from_ns(12_240),
        round_trip: Time::from_ns(12_240),
        window_bytes: 153_000,
        mtu: 1_000,
        int_layout: IntLayout::for_nic(line_rate, 1, None),
    }
}

pub fn ack(acknowledged: u64, next_byte: u64) -> Ack<'static> {
    Ack {
        now: Time::ZERO,
        acknowledged,
        newly_acknowledged: 1_000,
        next_byte,
        marked: false,
        rtt: Time::from_us(10),
        payload: 1_000,
        negative: false,
        telemetry: None,
        load: None,
    }
}

/// What a scenario that names nothing but the controller gives.
pub fn published<P: ControllerParameters>() -> P {
    P::read(&mut Parameters::new(&mut Nothing::default()))
}

/// A record as a switch writes it: `sent` and `queue` in bytes, quantised.
pub fn record(time_ns: u64, sent: u64, queue: u64, rate: Rate) -> IntRecord {
    let layout = flow().int_layout;
    IntRecord {
        time: (time_ns % (1 << IntRecord::TIME_BITS)) as u32,
        sent: (sent / u64::from(layout.sent_unit) % (1 << IntRecord::SENT_BITS)) as u32,
        queue: (queue / u64::from(layout.queue_unit) % (1 << IntRecord::QUEUE_BITS)) as u32,
        rate_kbps: (rate.0 / 1_000) as u32,
    }
}

/// One port at 100 Gb/s that the flow shares with cross traffic, in steps of a base RTT, one ACK each: a fluid, so that
/// the answer of the controller is all that there is to see.
struct Bottleneck {
    queue: u64,
    sent: u64,
    now: Time,
    /// Mark above this queue.
    kmin: u64,
}

impl Bottleneck {
    /// The flow sends at `rate` beside `cross` for one base RTT.
    fn pass(&mut self, rate: Rate, cross: Rate) {
        let span = flow().base_rtt;
        let arrived = Rate(rate.0 + cross.0).bytes_in(span).0;
        let served = Rate(LINE).bytes_in(span).0.min(self.queue + arrived);
        self.queue = self.queue + arrived - served;
        self.sent += served;
        self.now += span;
    }
}

/// Runs `config` for 32 base RTTs; from 98 to 294 us cross traffic brings 60 Gb/s. A line every other RTT.
fn visit_of_cross_traffic(config: &ControllerConfig, kmin: u64) -> String {
    let (mut controller, mut control) = config.start(&flow(), 1);
    let mut port = Bottleneck { queue: 0, sent: 0, now: Time::ZERO, kmin };
    let mut internals = Vec::new();
    controller.internals(Time::ZERO, &mut internals);
    let mut table = format!("\n    us    Gb/s      KB {:>11}\n", internals[0].0);
    for step in 0..32_u64 {
        let cross = if (8..24).contains(&step) { 60 } else { 0 };
        port.pass(control.rate, Rate::from_gbps(cross));
        run_timers(&mut controller, &mut control, port.now);
        let records = [record(port.now.ns(), port.sent, port.queue, Rate(LINE))];
        let ack = Ack {
            now: port.now,
            marked: port.queue > port.kmin,
            rtt: flow().base_rtt + Rate(LINE).transmission_time(port.queue),
            telemetry: Some(IntView { hops: 1, records: &records, path_id: 1 }),
            ..ack(1 + step * 1_000, 500 + step * 1_000)
        };
        controller.on_ack(&ack, &mut control);
        if step % 2 == 1 {
            internals.clear();
            controller.internals(port.now, &mut internals);
            let (rate, queue) = (control.rate.as_gbps(), port.queue as f64 / 1e3);
            table += &format!("{:6.1} {rate:7.3} {queue:7.1} {:11.3}\n", port.now.as_us(), internals[0].1);
        }
    }
    table
}

/// Fires every timer that is due up to `now`, in order of time, the increase of DCQCN before its decrease.
pub fn run_timers<C: CongestionController>(controller: &mut C, control: &mut Control, now: Time) {
    loop {
        let timer = if control.timers[1] <= control.timers[0] { 1 } else { 0 };
        let due = control.timers[timer];
        if due > now || due == Time::MAX {
            return;
        }
        control.timers[timer] = Time::MAX;
        controller.on_timer(timer, due, control);
    }
}

fn expect_table(kind: &str, kmin: u64, expected: &str) {
    let config = ControllerConfig::read(kind, &mut Parameters::new(&mut Nothing::default())).unwrap();
    let table = visit_of_cross_traffic(&config, kmin);
    assert!(table == expected, "{kind}:{table}");
}

#[test]
fn hpcc_meets_cross_traffic() {
    // Cuts far below the 35 Gb/s that are left, until the queue is gone; then climbs towards them, and takes the
    // whole link back within two round trips.
    expect_table(
        "hpcc",
        400_000,
        "
    us    Gb/s      KB           u
  24.5  94.995     0.0       1.001
  49.0  95.020     0.0       0.950
  73.4  95.044     0.0       0.950
  97.9  95.068     0.0       0.950
 122.4  55.380   161.2       1.551
 146.9  11.883   162.9       2.065
 171.4   4.243    68.5       1.446
 195.8   4.960     0.0       0.726
 220.3  10.372     0.0       0.673
 244.8  18.040     0.0       0.740
 269.3  25.576     0.0       0.820
 293.8  30.603     0.0       0.883
 318.2  94.864     0.0       0.957
 342.7  94.889     0.0       0.954
 367.2  94.914     0.0       0.954
 391.7  95.274     0.0       0.947
",
    );
}

#[test]
fn dctcp_meets_cross_traffic() {
    // Cuts by alpha / 2 every round trip while the queue is above the mark, then one step a round trip.
    expect_table(
        "dctcp",
        300_000,
        "
    us    Gb/s      KB       alpha
  24.5 100.000     0.0       0.938
  49.0 100.000     0.0       0.824
  73.4 100.000     0.0       0.724
  97.9 100.000     0.0       0.637
 122.4 100.000   183.6       0.559
 146.9  72.291   367.2       0.554
 171.4  35.668   433.8       0.608
 195.8  16.391   403.3       0.656
 220.3   7.062   322.6       0.697
 244.8   8.292   222.7       0.613
 269.3   9.522   126.6       0.539
 293.8  10.752    34.3       0.473
 318.2  11.982     0.0       0.416
 342.7  13.212     0.0       0.366
 367.2  14.442     0.0       0.321
 391.7  15.672     0.0       0.283
",
    );
}

#[test]
fn dcqcn_meets_cross_traffic() {
    // Cuts while marks come; recovery begins 300 us after the last cut, beyond this table.
    expect_table(
        "dcqcn",
        400_000,
        "
    us    Gb/s      KB       alpha
  24.5 100.000     0.0       1.000
  49.0 100.000     0.0       1.000
  73.4 100.000     0.0       1.000
  97.9 100.000     0.0       1.000
 122.4 100.000   183.6       1.000
 146.9 100.000   367.2       1.000
 171.4  50.777   550.8       0.954
 195.8  14.707   547.1       0.876
 220.3   4.877   460.0       0.802
 244.8   1.815   349.5       0.737
 269.3   1.815   232.7       0.668
 293.8   1.815   115.9       0.608
 318.2   1.815     0.0       0.552
 342.7   1.815     0.0       0.502
 367.2   1.815     0.0       0.455
 391.7   1.815     0.0       0.415
",
    );
}

#[test]
fn timely_meets_cross_traffic() {
    // Ends the growth of the queue, not the queue: below T_high only a gradient asks for less.
    expect_table(
        "timely",
        400_000,
        "
    us    Gb/s      KB rtt_diff_ns
  24.5 100.000     0.0       0.000
  49.0 100.000     0.0       0.000
  73.4 100.000     0.0       0.000
  97.9 100.000     0.0       0.000
 122.4 100.000   183.6    7229.250
 146.9 100.000   367.2    7342.207
 171.4  70.624   550.8    7343.972
 195.8  52.808   626.4    2534.562
 220.3  46.876   660.1    1201.493
 244.8  44.003   678.6     669.883
 269.3  42.419   689.5     395.686
 293.8  41.491   696.1     241.558
 318.2  41.691   517.2   -7035.710
 342.7  41.891   338.9   -7124.042
 367.2  42.491   161.3   -7101.798
 391.7  43.491     0.0   -6009.231
",
    );
}

#[test]
fn every_name_reads_and_has_its_text() {
    for doc in DOCS {
        let config = ControllerConfig::read(doc.name, &mut Parameters::new(&mut Nothing::default())).unwrap();
        assert_eq!(config.name(), doc.name);
        for text in [doc.title, doc.text, doc.source, doc.equations, doc.validation] {
            assert!(!text.is_empty() && !text.contains("  "), "{}: {text}", doc.name);
        }
    }
    assert_eq!(ControllerConfig::read("hpc", &mut Parameters::new(&mut Nothing::default())), None);
}

/// A scenario that says one thing.
struct Says(&'static str, Value, Vec<String>);

impl Source for Says {
    fn get(&mut self, key: &str) -> Option<Value> {
        (key == self.0).then(|| self.1.clone())
    }
    fn complain(&mut self, key: &str, message: String) {
        self.2.push(format!("{key}: {message}"));
    }
    fn declare(&mut self, _: Declared, _: Option<Value>) {}
}

#[test]
fn absurd_parameters_are_refused_with_the_reason() {
    let complaint = |kind, key, value| {
        let mut says = Says(key, value, Vec::new());
        ControllerConfig::read(kind, &mut Parameters::new(&mut says)).unwrap();
        says.2.join("; ")
    };
    let text = |text: &str| Value::Text(text.into());
    let zero = "min_rate: must be greater than 0: a flow at 0 bit/s would never end";
    for kind in ["hpcc", "dcqcn", "timely", "dctcp"] {
        assert_eq!(complaint(kind, "min_rate", text("0bps")), zero);
    }
    let zero = "alpha_interval: must be greater than 0";
    assert_eq!(complaint("dcqcn", "alpha_interval", text("0us")), zero);
    let low = "t_high: expected at least t_low (50us), found 10us";
    assert_eq!(complaint("timely", "t_high", text("10us")), low);
    let eta = "eta: expected a number from 0.01 to 10, found 0";
    assert_eq!(complaint("hpcc", "eta", Value::Integer(0)), eta);
}

#[test]
fn needs_are_those_of_the_published_runs() {
    let needs = |kind| {
        let config = ControllerConfig::read(kind, &mut Parameters::new(&mut Nothing::default())).unwrap();
        (config.needs().window, config.needs().int, config.needs().timestamp, config.needs().ack_priority)
    };
    assert_eq!(needs("hpcc"), (Window::FollowsRate, true, false, false));
    assert_eq!(needs("dctcp"), (Window::FollowsRate, false, false, false));
    assert_eq!(needs("dcqcn"), (Window::None, false, false, true));
    assert_eq!(needs("timely"), (Window::None, false, true, true));
    assert_eq!(needs("none"), (Window::None, false, false, false));
    let windowed = dcqcn::DcqcnParameters { window: Window::FollowsRate, ..published() };
    assert!(!ControllerConfig::Dcqcn(windowed).needs().ack_priority);
}

#[test]
fn steps_in_proportion_are_those_of_100_gbps() {
    let (line, ten) = (Rate(LINE), Rate::from_gbps(10));
    assert_eq!(in_proportion(Rate::from_mbps(5), Rate::from_gbps(25), line), 20_000_000);
    assert_eq!(in_proportion(Rate::from_mbps(50), Rate::from_gbps(25), line), 200_000_000);
    assert_eq!(in_proportion(Rate::from_mbps(10), ten, line), 100_000_000);
    assert_eq!(in_proportion(Rate::from_mbps(50), ten, line), 500_000_000);
    assert_eq!(in_proportion(Rate(1), ten, Rate(1)), 1);
}

#[test]
fn the_state_of_a_flow_is_small() {
    let sizes = [
        ("hpcc", size_of::<hpcc::Hpcc>()),
        ("dcqcn", size_of::<dcqcn::Dcqcn>()),
        ("timely", size_of::<timely::Timely>()),
        ("dctcp", size_of::<dctcp::Dctcp>()),
        ("any", size_of::<Controller>()),
        ("control", size_of::<Control>()),
    ];
    println!("bytes of state: {sizes:?}");
    assert!(size_of::<Controller>() <= 168, "{sizes:?}");
}

/// Everything that a packet can say, sense or nonsense.
#[derive(Debug, Clone)]
struct Anything {
    after: u64,
    acknowledged: u64,
    next_byte: u64,
    marked: bool,
    rtt: u64,
    hops: u32,
    records: Vec<IntRecord>,
    path_id: u16,
    telemetry: bool,
}

fn anything() -> impl Strategy<Value = Anything> {
    let number = || prop_oneof![0..5_000_u64, 0..50_000_000_u64, any::<u64>().prop_map(|n| n >> 2)];
    let record = (any::<u32>(), any::<u32>(), any::<u32>(), prop_oneof![0..3_u32, any::<u32>()])
        .prop_map(|(time, sent, queue, rate_kbps)| IntRecord { time, sent, queue, rate_kbps });
    (
        0..20_000_000_u64,
        number(),
        number(),
        any::<bool>(),
        number(),
        0..8_u32,
        prop::collection::vec(record, 0..8),
        0..2_u16,
        prop::bool::weighted(0.9),
    )
        .prop_map(|(after, acknowledged, next_byte, marked, rtt, hops, records, path_id, telemetry)| {
            Anything { after, acknowledged, next_byte, marked, rtt, hops, records, path_id, telemetry }
        })
}

fn any_controller() -> impl Strategy<Value = ControllerConfig> {
    use prop::bool::ANY;
    let hpcc = (0.01..3.0, 0..4_u32, 0..3_usize, ANY, ANY, ANY).prop_map(
        |(eta, max_stage, reaction, multi_rate, sample_feedback, skips_idle)| {
            use hpcc::Reaction::{Both, EachAck, EachRoundTrip};
            let reaction = [Both, EachAck, EachRoundTrip][reaction];
            ControllerConfig::Hpcc(hpcc::HpccParameters {
                eta,
                max_stage,
                reaction,
                multi_rate,
                sample_feedback,
                skips_idle,
                ..published()
            })
        },
    );
    let dcqcn = (1..9_000_000_u64, 1..9_000_000_u64, ANY, ANY, 0.0..1.0).prop_map(
        |(decrease, increase, clamp_target_rate, eager, rate_on_first)| {
            ControllerConfig::Dcqcn(dcqcn::DcqcnParameters {
                decrease_interval: Some(Time(decrease + 100_000)),
                increase_interval: Some(Time(increase + 100_000)),
                clamp_target_rate,
                eager,
                rate_on_first,
                ..published()
            })
        },
    );
    prop_oneof![
        hpcc,
        dcqcn,
        (0.0..1.0, 0.0..1.0).prop_map(|(alpha, beta)| {
            ControllerConfig::Timely(timely::TimelyParameters { alpha, beta, ..published() })
        }),
        (0.0..1.0).prop_map(|g| ControllerConfig::Dctcp(dctcp::DctcpParameters { g, ..published() })),
        Just(ControllerConfig::None),
    ]
}

proptest! {
    #[test]
    fn no_acknowledgement_panics_or_moves_the_rate_out_of_its_range(
        config in any_controller(),
        line_rate in prop_oneof![Just(Rate(LINE)), Just(Rate(1)), (1..400_u64).prop_map(Rate::from_gbps)],
        window_bytes in prop_oneof![Just(153_000_u64), 0..3_u64],
        int_hops in 0..7_usize,
        events in prop::collection::vec(anything(), 1..60),
    ) {
        let base_rtt = if window_bytes == 0 { Time::ZERO } else { Time::from_ns(12_240) };
        let flow = FlowContext { line_rate, window_bytes, base_rtt, round_trip: base_rtt, ..flow() };
        let min = if config == ControllerConfig::None { 1 } else { line_rate.0.min(1_000_000_000) };
        let (mut controller, mut control) = config.start(&flow, int_hops);
        let mut now = Time::ZERO;
        for what in &events {
            now += Time(what.after);
            run_timers(&mut controller, &mut control, now);
            let view = IntView { hops: what.hops, records: &what.records, path_id: what.path_id };
            let ack = Ack {
                now,
                marked: what.marked,
                rtt: Time(what.rtt),
                telemetry: what.telemetry.then_some(view),
                load: what.telemetry.then_some(PathLoad { load: what.rtt as f64 / 1e7, coin: what.rtt as u32 }),
                ..ack(what.acknowledged, what.next_byte)
            };
            controller.on_ack(&ack, &mut control);
            prop_assert!((min..=line_rate.0).contains(&control.rate.0), "{:?} after {what:?}", control.rate);
            let mut internals = Vec::new();
            controller.internals(now, &mut internals);
            prop_assert!(internals.iter().all(|(_, value)| value.is_finite()), "{internals:?} after {what:?}");
        }
    }
}
