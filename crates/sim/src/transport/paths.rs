//! The paths of a flow whose packets take all of them: each once, in a random order, then again in another
//! one.
//!
//! Source: senders of NDP (Handley et al., SIGCOMM 2017, and its authors' simulator, csg-htsim). Packets that
//! take paths by chance, or by a counter that other packets of the host share, meet at some links and leave
//! others free.

use super::HostContext;
use crate::balance::Wiring;
use crate::engine::random::RandomStream;

/// Where a flow is in the row of its paths.
#[derive(Debug, Default)]
pub struct Paths {
    /// The paths that are left, the next one last.
    left: Vec<u16>,
    /// Of the network as it was at this version: how many there are.
    count: u32,
    version: Option<u32>,
    /// Labels of earlier rounds are below; a multiple of the paths, so that the switches' choices by digits
    /// stay the same.
    base: u32,
}

impl Paths {
    /// What the next packet to `dst` is labelled with: balancers choose its path by it.
    #[inline]
    pub fn next_label(&mut self, dst: u32, random: &mut RandomStream, cx: &HostContext) -> u32 {
        match self.left.pop() {
            Some(path) => self.base.wrapping_add(u32::from(path)),
            None => self.next_round(dst, random, cx),
        }
    }

    /// The same where all paths have been taken.
    fn next_round(&mut self, dst: u32, random: &mut RandomStream, cx: &HostContext) -> u32 {
        let version = cx.map.version();
        if self.version.replace(version) != Some(version) {
            self.count = cx.paths_to(dst).clamp(1, u32::from(u16::MAX));
            self.base = (random.next_u64() as u32 / self.count).wrapping_mul(self.count);
        }
        self.base = self.base.wrapping_add(self.count);
        self.left.extend(0..self.count as u16);
        for last in (1..self.left.len()).rev() {
            self.left.swap(last, random.below(last as u64 + 1) as usize);
        }
        let path = self.left.pop().unwrap_or_default();
        self.base.wrapping_add(u32::from(path))
    }
}
