//! The arbiter at its host: requests come in, epochs begin, schedules go out.

use super::super::HostContext;
use super::allocation::Schedule;
use super::arbiter::Arbiter;
use super::paths::{Paths, Racks};
use super::{Fastpass, Kicks, schedule, sending, timer};
use crate::net::PortId;
use crate::packet::hash::flow_hash;
use crate::packet::{Packet, PacketKind, flag};
use crate::transport::fastpass::parameters::ArbiterConfig;
use crate::units::Time;
use crate::workload::FlowId;
use std::collections::VecDeque;

/// The arbiter, when its next epoch begins, and what it has computed.
pub struct Arbitration {
    arbiter: Arbiter,
    /// None: nobody waits for timeslots.
    next_epoch: Option<Time>,
    /// Schedules that leave some time after their epoch has begun: when, of which epoch, and what they say.
    computed: VecDeque<(Time, u64, Vec<Schedule>)>,
    /// Lists to fill again.
    spare: Vec<Vec<Schedule>>,
    /// The settings that say how large its packets are.
    profile: u8,
}

impl Arbitration {
    pub fn new(config: &ArbiterConfig, hosts: usize, racks: Option<Racks>) -> Arbitration {
        Arbitration {
            arbiter: Arbiter::new(hosts, config.policy, racks.map(Paths::new)),
            next_epoch: None,
            computed: VecDeque::new(),
            spare: Vec::new(),
            profile: 0,
        }
    }

    /// Timeslots in the schedules that have left for a flow.
    fn sent(&self, flow: FlowId) -> u64 {
        let waiting = self.computed.iter().flat_map(|(.., schedules)| schedules);
        let unsent = waiting.flat_map(|schedule| schedule.flows).filter(|of| *of == Some(flow)).count();
        self.arbiter.granted(flow).saturating_sub(unsent as u64)
    }

    /// The next schedules that leave by now, and their epoch.
    fn ready(&mut self, now: Time) -> Option<(u64, Vec<Schedule>)> {
        self.computed.front().filter(|(leaves, ..)| *leaves <= now)?;
        self.computed.pop_front().map(|(_, epoch, schedules)| (epoch, schedules))
    }
}

impl Fastpass {
    /// The arbiter hears from a source, which may be at its own host.
    pub(super) fn on_source_packet(
        &mut self,
        code: u8,
        packet: &Packet,
        cx: &mut HostContext,
    ) -> Option<PortId> {
        let Some(arbitration) = &mut self.arbitration else {
            debug_assert!(false, "a request arrived at a host that is not the arbiter");
            return None;
        };
        if code == super::code::FORGET {
            arbitration.arbiter.forget(packet.flow);
            return None;
        }
        arbitration.profile = packet.profile;
        let is_new = arbitration.arbiter.request(sending::demand(packet), packet.seq);
        if is_new && arbitration.next_epoch.is_none() {
            let config = &super::config_of(cx.settings, packet.profile).arbiter;
            let at = config.next_epoch(cx.net.now);
            arbitration.next_epoch = Some(at);
            cx.set_timer(at, timer::EPOCH);
        }
        if code == super::code::REPEATED { self.report(packet, is_new, cx) } else { None }
    }

    /// Tells the source of a repeated request what was sent to its flow.
    fn report(&mut self, request: &Packet, is_new: bool, cx: &mut HostContext) -> Option<PortId> {
        let sent = self.arbitration.as_ref()?.sent(request.flow);
        let packet = Packet {
            kind: PacketKind::Control,
            flags: super::code::REPORT << flag::CODE_SHIFT,
            seq: sent,
            aux: u32::from(is_new),
            flow: request.flow,
            src: cx.host,
            dst: request.src,
            hash: flow_hash(cx.host, request.src, 0),
            group: request.group,
            profile: request.profile,
            ..Packet::default()
        };
        if packet.dst == cx.host {
            self.receive_report(&packet, cx);
            return None;
        }
        self.signal(packet, super::config_of(cx.settings, packet.profile), cx)
    }

    /// An epoch begins: the arbiter fills its timeslots.
    pub(super) fn begin_epoch(&mut self, cx: &mut HostContext) -> Option<PortId> {
        let now = cx.net.now;
        let arbitration = self.arbitration.as_mut()?;
        if arbitration.next_epoch != Some(now) {
            return None;
        }
        let config = &super::config_of(cx.settings, arbitration.profile).arbiter;
        let mut schedules = arbitration.spare.pop().unwrap_or_default();
        arbitration.arbiter.run_epoch(&mut schedules);
        arbitration.next_epoch = arbitration.arbiter.has_work().then(|| config.next_epoch(now));
        if let Some(next) = arbitration.next_epoch {
            cx.set_timer(next, timer::EPOCH);
        }
        let leaves = now.saturating_add(config.compute_time);
        arbitration.computed.push_back((leaves, now.0 / config.epoch.0, schedules));
        if leaves > now {
            cx.set_timer(leaves, timer::COMPUTED);
        }
        self.send_computed(cx)
    }

    /// Sends the schedules that are computed, by host number.
    pub(super) fn send_computed(&mut self, cx: &mut HostContext) -> Option<PortId> {
        let mut kicks = Kicks::default();
        while let Some((epoch, mut schedules)) =
            self.arbitration.as_mut().and_then(|all| all.ready(cx.net.now))
        {
            let profile = self.arbitration.as_ref().map_or(0, |arbitration| arbitration.profile);
            let config = super::config_of(cx.settings, profile);
            for one in &schedules {
                let header = Packet {
                    kind: PacketKind::Control,
                    hash: flow_hash(cx.host, one.source, 0),
                    profile,
                    ..Packet::default()
                };
                for packet in
                    schedule::pack(epoch, one, config.arbiter.assign_paths, header).into_iter().flatten()
                {
                    let port = if one.source == cx.host {
                        self.receive_schedule(&packet, cx)
                    } else {
                        self.signal(packet, config, cx)
                    };
                    kicks.add(port, cx);
                }
            }
            schedules.clear();
            if let Some(arbitration) = &mut self.arbitration {
                arbitration.spare.push(schedules);
            }
        }
        kicks.0
    }
}
