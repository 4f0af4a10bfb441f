//! Which decoder a plan is tried with: the paper's, or a collector's.

use crate::nearest;
use std::fmt;

/// How digests of several unknown hops are used, and whether hops next to each other differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecoderKind {
    /// The paper's: only digests with one unknown hop strike out ids, and nothing is known of the order of ids.
    Peeling,
    /// That of [`crate::collector`] with a network: hops next to each other are linked, so they differ, and digests of two unknown hops
    /// strike out ids. Of ids alone, every switch is linked with every other.
    Collector,
}

/// Why a plan is not tried with a decoder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KindError {
    Unknown(String),
    /// The paper's decoder uses no links.
    NoLinks,
    /// Ids repeat on a path, maybe next to each other, which a collector takes for a contradiction.
    FewIds {
        ids: u64,
        hops: u32,
    },
}

impl fmt::Display for KindError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            KindError::Unknown(name) => {
                write!(
                    f,
                    "{}",
                    nearest::unknown("decoder", name, DecoderKind::ALL.iter().map(|kind| kind.name()))
                )
            }
            KindError::NoLinks => write!(
                f,
                "decoder peeling: it uses no links of a topology: expected ids only with it, or decoder collector"
            ),
            KindError::FewIds { ids, hops } => write!(
                f,
                "decoder collector: it assumes that consecutive hops differ: expected as many ids in the query as hops, \
                 found {ids} ids and {hops} hops"
            ),
        }
    }
}

impl std::error::Error for KindError {}

impl DecoderKind {
    pub const ALL: [DecoderKind; 2] = [DecoderKind::Peeling, DecoderKind::Collector];

    pub fn name(self) -> &'static str {
        match self {
            DecoderKind::Peeling => "peeling",
            DecoderKind::Collector => "collector",
        }
    }

    /// The decoder of this name; without one a collector's where links are known, else the paper's.
    pub fn chosen(name: Option<&str>, links: bool) -> Result<DecoderKind, KindError> {
        let Some(name) = name else {
            return Ok(if links { DecoderKind::Collector } else { DecoderKind::Peeling });
        };
        match DecoderKind::ALL.into_iter().find(|kind| kind.name() == name) {
            None => Err(KindError::Unknown(name.to_string())),
            Some(DecoderKind::Peeling) if links => Err(KindError::NoLinks),
            Some(kind) => Ok(kind),
        }
    }

    /// Refuses random paths of `hops` hops over `ids` ids if the decoder takes some of them for impossible.
    pub fn check_ids(self, ids: u64, hops: u32) -> Result<(), KindError> {
        if self == DecoderKind::Collector && ids < u64::from(hops) {
            return Err(KindError::FewIds { ids, hops });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_a_collectors_where_links_are_known() {
        assert_eq!(DecoderKind::chosen(None, true), Ok(DecoderKind::Collector));
        assert_eq!(DecoderKind::chosen(None, false), Ok(DecoderKind::Peeling));
        assert_eq!(DecoderKind::chosen(Some("collector"), false), Ok(DecoderKind::Collector));
        assert_eq!(DecoderKind::chosen(Some("peeling"), true), Err(KindError::NoLinks));
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_nearest() {
        let error = DecoderKind::chosen(Some("colector"), false).unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown decoder \"colector\": did you mean \"collector\"? (known: peeling, collector)"
        );
    }

    #[test]
    fn a_collector_needs_as_many_ids_as_hops() {
        assert_eq!(DecoderKind::Collector.check_ids(5, 5), Ok(()));
        assert_eq!(DecoderKind::Peeling.check_ids(3, 5), Ok(()));
        assert_eq!(DecoderKind::Collector.check_ids(4, 5), Err(KindError::FewIds { ids: 4, hops: 5 }));
    }
}
