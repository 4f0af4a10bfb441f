//! Fastpass: a central arbiter gives every packet its timeslot.
//!
//! A flow asks the *arbiter*, a process at one of the hosts, for as many timeslots as it has packets. At the beginning of
//! every *epoch* the arbiter fills eight timeslots, each with a matching of sources and destinations, and sends a
//! *schedule* to every source that got one. A source sends one packet in each timeslot that it was given, so no two
//! packets meet at a host's link. Every packet is acknowledged; what was not is requested again.
//!
//! Source: Perry, Ousterhout, Balakrishnan, Shah, Fugal, "Fastpass: A Centralized Zero-Queue Datacenter Network", SIGCOMM
//! 2014, as the pHost authors' simulator has it (Gao et al., CoNEXT 2015; commit 8e9cf04), with which it is compared.
//! Requests count all timeslots that a flow has requested, and reports all that it was given, as in the
//! system of the Fastpass paper: a repetition changes nothing, and what is missing from the sum is lost.
//! Differs from the source: requests are repeated while nothing is heard, and a schedule for a flow that is complete is
//! answered, so that no lost packet leaves a flow or a demand behind; the NIC pulls a data packet in its timeslot when
//! no control packet waits; ties are broken by flow number.
//! Validated by: tests/fastpass.rs.

mod allocation;
mod arbiter;
mod arbitration;
mod parameters;
mod paths;
mod receiving;
pub mod schedule;
mod sending;
mod source;

use parameters::ArbiterConfig;
pub use parameters::FastpassConfig;
pub use paths::Racks;

use super::arrived::Arrived;
use super::{FlowView, Hold, HostContext, Leaving, Look, Timeouts, Transport};
use crate::engine::random::RandomStream;
use crate::net::PortId;
use crate::packet::{Packet, PacketId, PacketKind};
use crate::transport::settings::Settings;
use crate::units::Time;
use crate::workload::{FlowId, FlowSpec};
use arbitration::Arbitration;
use rustc_hash::FxHashMap;
use source::{SourceFlow, Timeslot};
use std::collections::VecDeque;

/// Codes of control packets.
pub mod code {
    /// Source to arbiter. `seq`: timeslots that the flow has requested since it began; `aux`: its
    /// destination; `sent`: its deadline.
    pub const REQUEST: u8 = 0;
    /// Arbiter to source; its content is packed by `schedule.rs`.
    pub const SCHEDULE: u8 = 1;
    /// Source to arbiter: the flow wants nothing more.
    pub const FORGET: u8 = 2;
    /// Half of a schedule with the packets' paths: its first four timeslots, or the last four.
    pub const FIRST_HALF: u8 = 3;
    pub const SECOND_HALF: u8 = 4;
    /// Source to arbiter: a request again, because nothing was received. The arbiter answers with a report.
    pub const REPEATED: u8 = 5;
    /// Arbiter to source. `seq`: timeslots in the schedules that were sent to the flow since it began; `aux`:
    /// 1 if the arbiter had not received the request before, else 0.
    pub const REPORT: u8 = 6;
}

/// Timers; others are those of flows at their source.
mod timer {
    pub const EPOCH: u32 = u32::MAX;
    /// Schedules that took time to compute leave.
    pub const COMPUTED: u32 = u32::MAX - 1;
    pub const TIMESLOT: u32 = u32::MAX - 2;
}

/// The Fastpass stack of one host.
pub struct Fastpass {
    sources: Vec<SourceFlow>,
    free: Vec<u32>,
    /// Places in `sources` of flows that are not complete.
    slots: FxHashMap<FlowId, u32>,
    /// Timeslots that this host was given, by time.
    timeslots: VecDeque<Timeslot>,
    /// By NIC: flows whose timeslot has come, and whose packet waits for the link.
    due: Vec<VecDeque<Timeslot>>,
    receivers: FxHashMap<FlowId, Arrived>,
    /// Flows that have arrived in full, of which packets may still come.
    received: FxHashMap<FlowId, ()>,
    /// The label of the next packet that has a choice of paths.
    label: u32,
    /// At the arbiter's host only.
    arbitration: Option<Box<Arbitration>>,
}

impl Fastpass {
    /// The stack of `host`; its number names the stream that the first label is drawn from. `racks`: those of all hosts,
    /// where the arbiter is to assign paths.
    pub fn new(
        nics: usize,
        arbiter: &ArbiterConfig,
        hosts: usize,
        racks: Option<Racks>,
        (seed, host): (u64, u32),
    ) -> Fastpass {
        let mut random = RandomStream::new(seed, &format!("fastpass.host{host}.label"));
        Fastpass {
            sources: Vec::new(),
            free: Vec::new(),
            slots: FxHashMap::default(),
            timeslots: VecDeque::new(),
            due: vec![VecDeque::new(); nics],
            receivers: FxHashMap::default(),
            received: FxHashMap::default(),
            label: random.next_u64() as u32,
            arbitration: (arbiter.host == host).then(|| Box::new(Arbitration::new(arbiter, hosts, racks))),
        }
    }

    fn label_for(&mut self, dst: u32, port: PortId, flow_hash: u32, spray: bool, cx: &HostContext) -> u32 {
        if spray { cx.next_label(dst, port, &mut self.label) } else { flow_hash }
    }

    /// Sends a control packet that says what `packet` says: kind, code and content; the NIC that it leaves by.
    fn signal(&mut self, packet: Packet, config: &FastpassConfig, cx: &mut HostContext) -> Option<PortId> {
        let port = cx.port_to(packet.dst, packet.hash)?;
        let label = self.label_for(packet.dst, port, packet.hash, config.spray, cx);
        let id = cx.net.packets.insert(Packet {
            hash: label,
            size: config.control as u16,
            class: config.class,
            wire_class: config.class,
            transport: cx.transport,
            ..packet
        });
        cx.enqueue_control(port, id);
        Some(port)
    }
}

/// The ports that may have something to send: the engine looks at one at once, and at the others when they are free.
#[derive(Default)]
struct Kicks(Option<PortId>);

impl Kicks {
    fn add(&mut self, port: Option<PortId>, cx: &mut HostContext) {
        match (self.0, port) {
            (None, _) => self.0 = port,
            (Some(first), Some(other)) if first != other => cx.net.expect_departure(other),
            _ => {}
        }
    }
}

fn config_of(settings: &Settings, index: impl Into<usize>) -> &FastpassConfig {
    settings.of::<FastpassConfig>(index)
}

impl Transport for Fastpass {
    fn start_flow(&mut self, flow: FlowId, spec: &FlowSpec, cx: &mut HostContext) -> Option<PortId> {
        self.start(flow, spec, cx)
    }

    #[inline(never)]
    fn receive(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        let packet = cx.net.packets[id];
        match (packet.kind, packet.code()) {
            (PacketKind::Data, _) => self.receive_data(id, cx),
            (PacketKind::Ack, _) => self.receive_ack(id, cx),
            (_, code::SCHEDULE | code::FIRST_HALF | code::SECOND_HALF) => {
                cx.net.discard(id);
                self.receive_schedule(&packet, cx)
            }
            (_, code::REPORT) => {
                cx.net.discard(id);
                self.receive_report(&packet, cx);
                None
            }
            (_, code) => {
                cx.net.discard(id);
                self.on_source_packet(code, &packet, cx)
            }
        }
    }

    #[inline(never)]
    fn next_packet(&mut self, port: PortId, cx: &mut HostContext) -> Option<PacketId> {
        self.use_timeslot(port, cx)
    }

    #[inline(never)]
    fn next_look(&mut self, nic: usize, paused: u8, _free: Time) -> Look {
        match self.due[nic].front() {
            Some(first) if paused & (1 << first.class) == 0 => Look::WhenFree,
            _ => Look::NoMore,
        }
    }

    fn on_timer(&mut self, token: u32, cx: &mut HostContext) -> Option<PortId> {
        match token {
            timer::EPOCH => self.begin_epoch(cx),
            timer::COMPUTED => self.send_computed(cx),
            timer::TIMESLOT => self.release(cx),
            slot => self.flow_timer(slot, cx),
        }
    }

    fn on_wake(&mut self, _port: PortId, _serial: u32, _cx: &HostContext) -> bool {
        false
    }

    fn places(&self) -> u32 {
        self.sources.len() as u32
    }

    fn leaving(&self, place: u32, flows: &mut Vec<FlowId>) -> Option<Leaving> {
        let flow = self.sources.get(place as usize).filter(|flow| !flow.done)?;
        flows.push(flow.flow);
        Some(Leaving { nic: flow.nic, dst: flow.spec.dst, hash: flow.hash })
    }

    fn leave_by(&mut self, place: u32, by: Leaving, _cx: &mut HostContext) {
        let flow = &mut self.sources[place as usize];
        let old = &mut self.due[usize::from(flow.nic)];
        let (own, others) = old.drain(..).partition(|timeslot| timeslot.slot == place);
        *old = others;
        let own: VecDeque<Timeslot> = own;
        self.due[usize::from(by.nic)].extend(own);
        (flow.nic, flow.hash) = (by.nic, by.hash);
    }

    fn forget(&mut self, flow: FlowId) {
        self.received.remove(&flow);
    }

    fn finish(&mut self, cx: &mut HostContext) {
        for flow in self.sources.iter().filter(|flow| !flow.done) {
            cx.net.recorder.flow(flow.record(cx.host, None));
        }
    }

    fn hold(&self, flow: FlowId) -> Option<Hold> {
        // Everything is sent in timeslots that the arbiter hands out.
        self.slots.contains_key(&flow).then_some(Hold::Receiver)
    }

    fn timeouts(&self, flow: FlowId) -> Option<Timeouts> {
        let flow = &self.sources[*self.slots.get(&flow)? as usize];
        let until = "until the source requested timeslots again for packets that had been lost (retry)";
        Some(Timeouts { expired: flow.timeouts, has_earlier: false, until })
    }

    fn view(&self, flow: FlowId, _now: Time) -> Option<FlowView> {
        let flow = &self.sources[*self.slots.get(&flow)? as usize];
        let internals = vec![
            ("unscheduled_packets", f64::from(flow.unscheduled)),
            ("missing_packets", f64::from(flow.acknowledged.missing())),
        ];
        Some(FlowView { rate_bps: None, cwnd_bytes: None, internals })
    }
}
