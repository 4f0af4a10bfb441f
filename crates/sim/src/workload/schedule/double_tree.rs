//! Double binary tree: two trees, each of which carries half of the data, up and down. A rank that is inside
//! one tree is a leaf of the other, so that the links of all ranks carry the same.
//!
//! In the first tree let b be the lowest set bit of a rank. Its parent is (rank xor b) or 2 b, or, if there
//! is not such a rank, rank xor b; the root is rank 0. The second tree is the mirror image of the first, if n is
//! even, or the first with all ranks moved by one. Data are cut into chunks that follow each other.
//!
//! Source: Sanders, Speck and Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
//! Parallel Computing 2009; the trees are NCCL's (graph/trees.cc).

use super::tree::{Tree, Trees};
use super::{AlgorithmParameters, Asked, Kind, Phases, WorkloadError};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;

/// The largest message where the scenario does not say: a chunk of NCCL's trees.
const CHUNK: u64 = 512 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoubleTreeParameters;

impl AlgorithmParameters for DoubleTreeParameters {
    const DOC: SchemeDoc = SchemeDoc {
        name: "double-tree",
        title: "two binary trees at once, each with half of the data, in chunks",
        source: "Sanders, Speck, Traeff, Parallel Computing 2009; trees as in NCCL (graph/trees.cc)",
        equations: "T >= 2 (n - 1) S beta / n;  T >= 2 ceil(log2 n) alpha",
        validation: "Bounds of its time, bytes of every link (tests/laws/collectives.rs).",
        ..SchemeDoc::NONE
    };
    const CAN: &'static [Kind] = &[Kind::AllReduce];

    fn read(_: &mut Parameters) -> DoubleTreeParameters {
        DoubleTreeParameters
    }

    fn phases(&self, asked: &Asked) -> Result<Phases, WorkloadError> {
        let n = asked.ranks;
        let mirrored = |rank: u32| n - 1 - rank;
        let (moved, back) = (|rank: u32| (rank + n - 1) % n, |rank: u32| (rank + 1) % n);
        let first = tree(n, |rank| rank, |rank| rank);
        let second = match n % 2 {
            0 => tree(n, mirrored, mirrored),
            _ => tree(n, moved, back),
        };
        let chunk = Some(asked.chunk.unwrap_or(CHUNK));
        Trees::phases(&Asked { chunk, ..*asked }, vec![first, second])
    }
}

/// The parent of a rank in the first tree.
fn parent(rank: u32, n: u32) -> Option<u32> {
    let bit = rank & rank.wrapping_neg();
    let above = (rank ^ bit) | bit.wrapping_shl(1);
    (rank > 0).then_some(if above >= n { rank ^ bit } else { above })
}

/// The first tree over ranks with other numbers: `to` gives the number of a rank there, `back` its rank.
fn tree(n: u32, to: impl Fn(u32) -> u32, back: impl Fn(u32) -> u32) -> Tree {
    let parents: Vec<Option<u32>> = (0..n).map(|rank| parent(to(rank), n).map(&back)).collect();
    let depth = |rank: u32| {
        let mut above = rank;
        let mut levels = 0;
        while let Some(next) = parents[above as usize] {
            (above, levels) = (next, levels + 1);
        }
        levels
    };
    let mut order: Vec<u32> = (0..n).collect();
    order.sort_by_key(|&rank| (depth(rank), to(rank)));
    Tree::new(parents, order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_tree_of_eight_is_nccls() {
        let parents: Vec<Option<u32>> = (0..8).map(|rank| parent(rank, 8)).collect();
        let known = [None, Some(2), Some(4), Some(2), Some(0), Some(6), Some(4), Some(6)];
        assert_eq!(parents, known);
        // Ranks that would lie above the last have the one below as their parent.
        assert_eq!((parent(4, 6), parent(5, 6)), (Some(0), Some(4)));
    }
}
