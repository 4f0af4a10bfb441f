//! Codes of TCP's control packets.

/// Codes of control packets, and of data packets that say something.
pub mod code {
    pub const SYN: u8 = 1;
    /// `aux`: the receiver's window.
    pub const SYN_ACK: u8 = 2;
    /// The third packet of the handshake.
    pub const ESTABLISHED: u8 = 3;
    /// The window is closed: asks for an acknowledgement.
    pub const WINDOW_PROBE: u8 = 4;
    /// Everything is acknowledged, and the connection closed.
    pub const FIN: u8 = 5;
    /// The other side closes as well.
    pub const FIN_ACK: u8 = 6;
    /// The last packet of all.
    pub const CLOSED: u8 = 7;
    /// Of a data packet: its sender has reduced its window (CWR).
    pub const REDUCED: u8 = 1;
}
