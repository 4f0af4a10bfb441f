//! What a collector asks of a decoder of paths.

use crate::collector::PathFindings;
use crate::encoder::Field;
use crate::recorded::Flow;

/// What a digest did to a flow's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The path is as known as before, or known better.
    On,
    /// This digest made the last hop known.
    Decoded,
    /// This digest is the first one, and fits: what is known of the network had left one path before it.
    Settled,
    /// The path was known before, and since then every hop of it was seen again, with this digest the last.
    Confirmed,
    /// This digest contradicts what is known. A path that is known stays as it is; any other state is not to
    /// be used on.
    Contradiction,
}

/// Decodes the paths of many flows. What they share (ids, graph) lives here, what differs in [`Paths::Flow`].
pub trait Paths {
    /// What is known of one flow under one query.
    type Flow;

    /// A flow of which nothing is known but its ends and its number of hops. Under a key that leaves an end
    /// out, that address is unknown.
    fn start(&self, query: usize, flow: &Flow, hops: u32) -> Self::Flow;

    /// Takes in the query's fields of one packet's digest. Bounded time and memory, whatever they say.
    fn take(&self, query: usize, state: &mut Self::Flow, packet: u64, digest: u64, fields: &[Field]) -> Step;

    /// Whether the query's fields of a packet that was taken before fit the known path. They tell nothing
    /// else: where they fit, the path is no more certain than before.
    fn fits(&self, query: usize, state: &mut Self::Flow, packet: u64, digest: u64, fields: &[Field]) -> bool;

    /// Bytes that the state holds beyond its own size.
    fn bytes(&self, state: &Self::Flow) -> usize;

    /// What is known; `digests`, `decoded_after` and `confirmed_after` are filled in by the collector.
    fn findings(&self, query: usize, state: &Self::Flow) -> PathFindings;
}

/// A decoder that several collectors share.
macro_rules! shared {
    ($shared:ty) => {
        impl<D: Paths> Paths for $shared {
            type Flow = D::Flow;

            fn start(&self, query: usize, flow: &Flow, hops: u32) -> D::Flow {
                (**self).start(query, flow, hops)
            }

            fn take(
                &self,
                query: usize,
                state: &mut D::Flow,
                packet: u64,
                digest: u64,
                fields: &[Field],
            ) -> Step {
                (**self).take(query, state, packet, digest, fields)
            }

            fn fits(
                &self,
                query: usize,
                state: &mut D::Flow,
                packet: u64,
                digest: u64,
                fields: &[Field],
            ) -> bool {
                (**self).fits(query, state, packet, digest, fields)
            }

            fn bytes(&self, state: &D::Flow) -> usize {
                (**self).bytes(state)
            }

            fn findings(&self, query: usize, state: &D::Flow) -> PathFindings {
                (**self).findings(query, state)
            }
        }
    };
}

shared!(&D);
shared!(std::sync::Arc<D>);

/// Leaves paths alone: for plans that trace none.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPaths;

impl Paths for NoPaths {
    type Flow = ();

    fn start(&self, _: usize, _: &Flow, _: u32) {}

    fn take(&self, _: usize, _: &mut (), _: u64, _: u64, _: &[Field]) -> Step {
        Step::On
    }

    fn fits(&self, _: usize, _: &mut (), _: u64, _: u64, _: &[Field]) -> bool {
        true
    }

    fn bytes(&self, _: &()) -> usize {
        0
    }

    fn findings(&self, _: usize, _: &()) -> PathFindings {
        PathFindings::default()
    }
}
