//! Whose datagrams are taken.
//!
//! Sources outside of the allowed networks are refused. A source is muted for a minute when more than 1 % of
//! its last datagrams (at least 100) are malformed. Of 1 000 sources there are own counts; the others share
//! one, and with it its judgement.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::config::Network;

const MAX_SOURCES: usize = 1_000;
/// Datagrams after which a source is judged, and its counts start again.
const WINDOW: u32 = 1_000;
const MIN_JUDGED: u32 = 100;
const MUTED_NS: u64 = 60_000_000_000;

/// The counts of one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Source {
    pub datagrams: u64,
    pub malformed: u64,
    /// Datagrams that came while it was muted.
    pub muted: u64,
    muted_until_ns: u64,
    recent: u32,
    recent_malformed: u32,
}

/// Judges sources.
#[derive(Debug, Default)]
pub struct Admission {
    /// Empty: all that reach the socket.
    allowed: Vec<Network>,
    sources: BTreeMap<IpAddr, Source>,
    others: Source,
    pub not_allowed: u64,
}

impl Admission {
    pub fn new(allowed: Vec<Network>) -> Admission {
        Admission { allowed, ..Admission::default() }
    }

    /// Whether a datagram of this source is taken now.
    pub fn admits(&mut self, address: IpAddr, now_ns: u64) -> bool {
        if !self.allowed.is_empty() && !self.allowed.iter().any(|network| network.contains(address)) {
            self.not_allowed += 1;
            return false;
        }
        let source = self.source(address);
        source.datagrams += 1;
        let muted = now_ns < source.muted_until_ns;
        source.muted += u64::from(muted);
        !muted
    }

    /// Takes what a datagram turned out to be.
    pub fn judge(&mut self, address: IpAddr, whole: bool, now_ns: u64) {
        let source = self.source(address);
        source.recent += 1;
        if !whole {
            source.malformed += 1;
            source.recent_malformed += 1;
            if source.recent >= MIN_JUDGED && source.recent_malformed * 100 > source.recent {
                source.muted_until_ns = now_ns + MUTED_NS;
                (source.recent, source.recent_malformed) = (0, 0);
            }
        }
        if source.recent >= WINDOW {
            (source.recent, source.recent_malformed) = (0, 0);
        }
    }

    /// Counts by source; None stands for all sources without counts of their own.
    pub fn counts(&self) -> impl Iterator<Item = (Option<IpAddr>, Source)> + '_ {
        let others = (self.others.datagrams > 0).then_some((None, self.others));
        self.sources.iter().map(|(&address, &source)| (Some(address), source)).chain(others)
    }

    fn source(&mut self, address: IpAddr) -> &mut Source {
        if self.sources.len() < MAX_SOURCES || self.sources.contains_key(&address) {
            self.sources.entry(address).or_default()
        } else {
            &mut self.others
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_of_malformed_datagrams_is_muted_for_a_minute_and_others_are_not() {
        let mut admission = Admission::default();
        let (bad, good) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        let mut taken = 0;
        for n in 0..300 {
            for address in [bad, good] {
                if admission.admits(address, n) {
                    admission.judge(address, address == good || n % 50 != 0, n);
                    taken += u64::from(address == bad);
                }
            }
        }
        assert_eq!(taken, 101);
        assert!(!admission.admits(bad, 100 + MUTED_NS - 1) && admission.admits(bad, 100 + MUTED_NS));
        assert_eq!(admission.sources[&good].muted, 0);
        assert_eq!(admission.sources[&bad].muted, 199 + 1);
    }

    #[test]
    fn a_flood_of_sources_takes_no_memory() {
        let mut admission = Admission::new(vec![Network::parse("10.0.0.0/8").unwrap()]);
        for n in 0..5_000u32 {
            admission.admits(std::net::Ipv4Addr::from(0x0a00_0000 + n).into(), 0);
        }
        assert!(!admission.admits("11.0.0.1".parse().unwrap(), 0));
        assert_eq!((admission.counts().count(), admission.not_allowed), (MAX_SOURCES + 1, 1));
        assert_eq!(admission.counts().map(|(_, source)| source.datagrams).sum::<u64>(), 5_000);
    }
}
