//! What a transport tells of a flow that sends nothing: for the [account](crate::why) of its completion time.

use crate::units::Time;

/// Why a flow sends no packet now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// From this time on (pacing) its next packet leaves as soon as the NIC takes it.
    Free { from: Time },
    /// As much is in flight as the sender's window allows.
    Window,
    /// The receiver has not let it: no token, or no room in its buffer.
    Receiver,
    /// The connection is being opened.
    Opening,
    /// Everything has been sent.
    Sent,
}

/// Timeouts of a flow at its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// How many have expired.
    pub expired: u32,
    /// There are earlier timers of loss detection, after which packets are sent again too.
    pub has_earlier: bool,
    /// What the flow waits for until one expires, in words that follow its time: "until ...".
    pub until: &'static str,
}
