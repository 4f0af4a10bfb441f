//! Which of the ranked next hops a subflow of a multipath connection takes.
//!
//! The k best hops are there so that subflows of one connection part. A rule gives each subflow a rank at each tier; pure
//! functions, so that the rules can be counted without a network. Traffic that carries no mark takes the best hop, as in HULA.
//!
//! Source: Benet et al., "MP-HULA", NetCompute 2018 (talk: different subflows go to different next hops, "e.g. round-robin"). The digits, the
//! hashed start and the table behind the strict rule, which is the default, are ours: with `subflow mod k` at every tier, subflows 0 and 2 of four choose the same rank everywhere.

use crate::engine::random::mix64;

/// What a packet of a multipath connection carries: the connection, and which of its subflows it is (4 bits).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubflowMark {
    pub connection: u64,
    pub subflow: u8,
}

/// How ranks are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankRule {
    pub form: RankForm,
    /// The first subflow takes a rank by the connection's hash, not the best: connections do not crowd the best hop.
    pub hashed_start: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankForm {
    /// Subflow s has rank s mod k at every tier.
    RoundRobin,
    /// At tier t (0 next to the hosts) it has digit t of s in base k.
    Digits,
}

impl RankRule {
    /// The rank, 0 the best, of `live` hops that are alive, of a table of `k`, at a switch `tier` steps above the first.
    /// `live` must not be zero.
    pub fn rank(&self, mark: SubflowMark, tier: u32, k: u32, live: u32) -> u32 {
        let subflow = u64::from(mark.subflow & 15);
        let k = u64::from(k.max(1));
        let own = match self.form {
            RankForm::RoundRobin => subflow % k,
            RankForm::Digits => subflow / k.saturating_pow(tier) % k,
        };
        let start = if self.hashed_start { mix64(mark.connection ^ u64::from(tier)) >> 32 } else { 0 };
        ((own + start) % u64::from(live)) as u32
    }
}

/// The first rank from `rank` on, round the end, whose port the connection's other subflows do not use; `rank` itself where
/// they use all. `taken` says so of each rank.
pub fn disjoint(rank: u32, taken: &[bool]) -> u32 {
    let live = taken.len() as u32;
    (0..live).map(|step| (rank + step) % live).find(|&at| !taken[at as usize]).unwrap_or(rank)
}

#[cfg(test)]
mod tests;
