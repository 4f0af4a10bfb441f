//! The events that decided when the ranks of job graphs acted, for following a step back in time.
//!
//! A rank acts at the moment of the last event for which it waited. So every message, every computation and
//! every end was decided by one event of its rank. Following these events back from the end of a step gives
//! its critical chain.

use crate::units::Time;
use crate::workload::FlowId;
use rustc_hash::FxHashMap;

/// An event of a rank. Messages have the number of the flow that they are, or would be outside their scale-up
/// domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankEvent {
    /// Its job began.
    Begun,
    Arrived(FlowId),
    Acknowledged(FlowId),
    /// The time of this operation has passed.
    Woken(u32),
}

/// When something was, and the event that decided it.
pub type Caused = (Time, RankEvent);

/// Of the ranks of all job graphs of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Causes {
    /// By source: the flow that its first message is.
    pub first_flows: Vec<FlowId>,
    /// When each message was sent.
    pub sent: FxHashMap<FlowId, Caused>,
    /// When each operation that takes time began, by source, rank and operation.
    pub began: FxHashMap<(u16, u32, u32), Caused>,
    /// When each rank ended its part of a step, by source, step and rank.
    pub ended: FxHashMap<(u16, u32, u32), Caused>,
}

impl Causes {
    /// Takes in those of other ranks.
    pub fn append(&mut self, other: Causes) {
        self.sent.extend(other.sent);
        self.began.extend(other.began);
        self.ended.extend(other.ended);
    }
}
