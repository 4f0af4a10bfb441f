//! What packets carry from the first ToR to the last one, and what its answers say.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flag {
    Data,
    Init,
    Tail,
}

/// What a packet carries between its first and its last ToR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    pub flag: Flag,
    pub phase: bool,
    pub epoch: u16,
    /// The port at the first ToR, and above it that at the next switch.
    pub path: u16,
    /// In ns: of phase 0 when it left the first ToR, of phase 1 when the TAIL did.
    pub time: u32,
}

/// Epochs are numbers of 12 bits.
pub const EPOCHS: u16 = 1 << 12;
const VALID: u64 = 1 << 63;

impl Label {
    pub fn pack(self) -> u64 {
        let head = VALID | (self.flag as u64) << 61 | u64::from(self.phase) << 60;
        head | u64::from(self.epoch) << 48 | u64::from(self.path) << 32 | u64::from(self.time)
    }

    pub fn unpack(word: u64) -> Option<Label> {
        let flag = [Flag::Data, Flag::Init, Flag::Tail, Flag::Data][(word >> 61 & 3) as usize];
        let label = Label {
            flag,
            phase: word >> 60 & 1 == 1,
            epoch: (word >> 48) as u16 % EPOCHS,
            path: (word >> 32) as u16,
            time: word as u32,
        };
        (word & VALID != 0).then_some(label)
    }
}

/// What a probe of the last ToR says, as its `aux`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    Init,
    Clear,
    Notify,
}

pub const REPLIES: [Reply; 3] = [Reply::Init, Reply::Clear, Reply::Notify];
