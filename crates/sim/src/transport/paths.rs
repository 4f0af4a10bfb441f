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

/// The maximum number of paths that a flow takes in turn, and a number so low that no list of all is needed.
const MAX: u32 = 1024;
const FEW: u32 = 32;

impl Paths {
    /// What the next packet to `dst` of a flow with this number of packets is labelled with: balancers choose
    /// its path by it.
    #[inline]
    pub fn next_label(&mut self, dst: u32, packets: u32, random: &mut RandomStream, cx: &HostContext) -> u32 {
        if self.left.is_empty() {
            self.begin_round(dst, packets, random, cx);
        }
        self.base.wrapping_add(u32::from(self.left.pop().unwrap_or_default()))
    }

    /// All paths have been taken, or one for each packet of the flow: draws the order of the next ones.
    fn begin_round(&mut self, dst: u32, packets: u32, random: &mut RandomStream, cx: &HostContext) {
        let version = cx.map.version();
        if self.version.replace(version) != Some(version) {
            self.count = cx.paths_to(dst).clamp(1, MAX);
            self.base = (random.next_u64() as u32 / self.count).wrapping_mul(self.count);
        }
        self.base = self.base.wrapping_add(self.count);
        draw(&mut self.left, self.count, packets, random);
    }

    /// The flow has ended.
    pub fn clear(&mut self) {
        self.left = Vec::new();
    }
}

/// Different numbers below `count`, all of them or no fewer than are wanted, in a random order.
fn draw(numbers: &mut Vec<u16>, count: u32, wanted: u32, random: &mut RandomStream) {
    if wanted <= FEW && wanted < count / 2 {
        while numbers.len() < wanted.max(1) as usize {
            let number = random.below(u64::from(count)) as u16;
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        return;
    }
    numbers.extend(0..count as u16);
    for last in (1..numbers.len()).rev() {
        numbers.swap(last, random.below(last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_drawn_once_each_and_no_more_than_are_needed() {
        let mut random = RandomStream::new(1, "paths");
        for (count, wanted, drawn) in
            [(1, 1, 1), (4, 1, 1), (4, 2, 4), (576, 30, 30), (576, 33, 576), (64, 900, 64)]
        {
            let mut firsts = vec![0; count as usize];
            for _ in 0..2000 {
                let mut numbers = Vec::new();
                draw(&mut numbers, count, wanted, &mut random);
                firsts[usize::from(numbers[0])] += 1;
                numbers.sort_unstable();
                numbers.dedup();
                assert_eq!(numbers.len(), drawn, "{count} {wanted}");
                assert!(numbers.iter().all(|&number| u32::from(number) < count));
            }
            let mean = 2000.0 / f64::from(count);
            let far = |&first: &i32| (f64::from(first) - mean).abs() > 6.0 * mean.sqrt() + 3.0;
            assert!(!firsts.iter().any(far), "{firsts:?}");
        }
    }
}
