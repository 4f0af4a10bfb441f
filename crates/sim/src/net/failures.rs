//! What fails in a run, and when; what comes back.

use super::loss::LinkLoss;
use crate::topology::{LinkId, NodeId};
use crate::units::{Rate, Time};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Failures {
    /// How long routes still use a link that went down, or do not yet use one that came back.
    pub detection: Time,
    /// In order of time.
    pub events: Vec<Failure>,
    pub loss: Option<LinkLoss>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Failure {
    pub at: Time,
    pub change: Change,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    LinkDown(LinkId),
    LinkUp(LinkId),
    /// The link runs at this rate from now on.
    LinkRate(LinkId, Rate),
    SwitchDown(NodeId),
    SwitchUp(NodeId),
}

impl Change {
    /// A link or a switch no longer works.
    pub fn is_down(&self) -> bool {
        matches!(self, Change::LinkDown(_) | Change::SwitchDown(_))
    }
}
