//! A flow at its source: what it wants of the arbiter, what it was given, what has been acknowledged.

use super::super::arrived::Arrived;
use super::super::silence::Silence;
use crate::measure::FlowRecord;
use crate::transport::fastpass::parameters::FastpassConfig;
use crate::units::Time;
use crate::workload::{FlowId, FlowSpec};

/// The right of a flow to send one packet at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeslot {
    pub at: Time,
    pub flow: FlowId,
    /// Place of the flow among those of its host; it may have been given to another flow meanwhile.
    pub slot: u32,
    /// Traffic class of the packet.
    pub class: u8,
    /// The path that the arbiter gave it.
    pub path: Option<u32>,
}

#[derive(Debug)]
pub struct SourceFlow {
    pub flow: FlowId,
    pub spec: FlowSpec,
    pub packets: u32,
    pub acknowledged: Arrived,
    /// The next packet to send, or the first one behind it that is not acknowledged.
    pub cursor: u32,
    /// Packets for which no timeslot has been given.
    pub unscheduled: u32,
    /// Timeslots given and not used.
    pub scheduled: u32,
    /// Timeslots received since the flow began, and those that were lost.
    pub accounted: u64,
    /// Timeslots that the arbiter says it has given the flow since it began.
    pub reported: u64,
    pub nic: u16,
    pub hash: u32,
    pub start: Time,
    /// Data packets sent, those sent again among them.
    pub sent: u64,
    /// Those that were sent again, and the first packet that was not sent yet.
    again: u64,
    first_unsent: u32,
    /// Requests and schedules that were lost, and packets requested again because they were not acknowledged
    /// in time.
    pub timeouts: u32,
    /// How long the arbiter has not been heard; once all is sent, how long to wait for acknowledgements.
    pub silence: Silence,
    pub done: bool,
}

impl SourceFlow {
    /// A flow as it starts; its NIC and path are its maker's to fill in.
    pub fn new(flow: FlowId, spec: &FlowSpec, config: &FastpassConfig, now: Time) -> SourceFlow {
        let packets = packets_of(spec.size, config);
        SourceFlow {
            flow,
            spec: *spec,
            packets,
            acknowledged: Arrived::new(packets),
            cursor: 0,
            unscheduled: packets,
            scheduled: 0,
            accounted: 0,
            reported: 0,
            nic: 0,
            hash: 0,
            start: now,
            sent: 0,
            again: 0,
            first_unsent: 0,
            timeouts: 0,
            silence: Silence::starting(now, config.request_timeout),
            done: false,
        }
    }

    /// Timeslots that the flow has requested since it began. A repetition states the same number, and adds
    /// nothing.
    pub fn requested(&self) -> u64 {
        self.accounted + u64::from(self.unscheduled)
    }

    /// Takes a timeslot, unless every packet has one already (a schedule came after it was taken for lost).
    pub fn take_timeslot(&mut self) -> bool {
        if self.unscheduled == 0 {
            return false;
        }
        self.unscheduled -= 1;
        self.scheduled += 1;
        self.accounted += 1;
        true
    }

    /// Timeslots that were given and have not come are lost: returns whether there are any. What the flow
    /// still wants then has to be requested beyond them.
    pub fn write_off(&mut self) -> bool {
        let lost = self.reported > self.accounted;
        self.accounted = self.accounted.max(self.reported);
        lost
    }

    /// A timeslot has come: the packet to send in it, the next one that is not acknowledged.
    pub fn use_timeslot(&mut self) -> Option<u32> {
        self.scheduled -= 1;
        let packet = self.acknowledged.missing_from(self.cursor)?;
        self.cursor = packet + 1;
        self.sent += 1;
        // They are sent in order the first time.
        self.again += u64::from(packet < self.first_unsent);
        self.first_unsent = self.first_unsent.max(self.cursor);
        Some(packet)
    }

    /// Everything that was asked for has been sent.
    pub fn is_sent(&self) -> bool {
        self.unscheduled == 0 && self.scheduled == 0
    }

    /// What was not acknowledged in time is requested again.
    pub fn ask_again(&mut self, now: Time, patience: Time) {
        self.unscheduled = self.acknowledged.missing();
        self.silence = Silence::starting(now, patience);
    }

    /// The flow is over, or unfinished at the end of the run.
    pub fn record(&self, src: u32, finish: Option<Time>) -> FlowRecord {
        FlowRecord {
            finish,
            packets_sent: self.sent,
            packets_retransmitted: self.again,
            timeouts: self.timeouts,
            ..FlowRecord::of(self.flow, &self.spec, src, self.start)
        }
    }
}

/// Packets of a flow of so many bytes.
fn packets_of(size: u64, config: &FastpassConfig) -> u32 {
    u32::try_from(size.div_ceil(u64::from(config.mtu))).unwrap_or(u32::MAX)
}
