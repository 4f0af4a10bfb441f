//! Memory in segments that never move, whose places belong to several owners, each place to one of them: the
//! same as [`super::shared_memory`] for what is accessed less often. Finding a segment takes one more step at
//! each access, and no owner ever waits for the end of another's turn, so two owners that have both
//! kinds of memory cannot wait for each other.
//!
//! An owner knows the segments that there were when its turn began, and those in which it took places: it
//! needs no others.

use super::prefetch::prefetch_lines_from;
use super::shared_memory::{Line, Taken};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

/// Places of a segment, and how many an owner takes at a time.
const SEGMENT: u32 = 4096;
const CHUNK: u32 = 512;

/// One owner's access. A place is `stride` elements of a type that needs no drop.
pub struct Segments<T> {
    /// Where the segments begin.
    known: Vec<*mut T>,
    stride: usize,
    /// Places of this owner that were never used, and how many it has taken.
    fresh: Range<u32>,
    taken: usize,
    common: Arc<Mutex<Common>>,
}

// SAFETY: an owner touches only its own places, which do not move.
unsafe impl<T: Send> Send for Segments<T> {}

#[derive(Default)]
struct Common {
    /// Never used as a whole.
    segments: Vec<Box<[MaybeUninit<Line>]>>,
    /// The first place that no owner has taken.
    next: u32,
    /// Free places that owners gave back, having too many.
    spare: Vec<Vec<u32>>,
}

impl<T> Segments<T> {
    /// The first owner.
    pub fn new(stride: usize) -> Segments<T> {
        Segments { known: Vec::new(), stride: stride.max(1), fresh: 0..0, taken: 0, common: Arc::default() }
    }

    /// One more owner of places in the same memory.
    pub fn another(&self) -> Segments<T> {
        Segments { common: self.common.clone(), ..Segments::new(self.stride) }
    }

    fn common(&self) -> MutexGuard<'_, Common> {
        self.common.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// The owner may have been handed places: it gets to know the segments in which they are.
    pub fn begin_turn(&mut self) {
        let common = self.common.clone();
        let mut common = common.lock().unwrap_or_else(|poison| poison.into_inner());
        self.learn(&mut common);
    }

    fn learn(&mut self, common: &mut Common) {
        let new = common.segments[self.known.len()..].iter_mut();
        self.known.extend(new.map(|segment| segment.as_mut_ptr().cast::<T>()));
    }

    /// Takes a free place, or several, for an owner without one.
    #[cold]
    #[inline(never)]
    pub fn take(&mut self) -> Taken {
        self.taken += 1;
        if let Some(place) = self.fresh.next() {
            return Taken::One(place);
        }
        let common = self.common.clone();
        let mut common = common.lock().unwrap_or_else(|poison| poison.into_inner());
        if let Some(places) = common.spare.pop() {
            self.taken -= 1;
            self.learn(&mut common);
            return Taken::Spare(places);
        }
        if common.next == common.segments.len() as u32 * SEGMENT {
            let bytes = SEGMENT as usize * self.stride * size_of::<T>();
            common.segments.push(Box::new_uninit_slice(bytes.div_ceil(size_of::<Line>())));
        }
        self.learn(&mut common);
        let first = common.next;
        common.next += CHUNK;
        self.fresh = first + 1..first + CHUNK;
        Taken::One(first)
    }

    /// Whether an owner who has too many free places should give some back: others would find none.
    pub fn lacks_spare(&self) -> bool {
        Arc::strong_count(&self.common) > 1 && self.common().spare.is_empty()
    }

    /// Free places become available to all owners.
    pub fn give_back(&self, places: Vec<u32>) {
        self.common().spare.push(places);
    }

    /// Memory of the places that this owner has taken.
    pub fn bytes(&self) -> usize {
        self.taken * self.stride * size_of::<T>()
    }

    /// The first element of a place.
    #[inline(always)]
    fn first(&self, place: u32) -> *mut T {
        const { assert!(align_of::<T>() <= align_of::<Line>() && size_of::<T>() > 0) };
        let segment = self.known[(place / SEGMENT) as usize];
        segment.wrapping_add((place % SEGMENT) as usize * self.stride)
    }

    /// The first `count` elements of a place of this owner.
    #[inline(always)]
    pub fn elements(&self, place: u32, count: usize) -> &[T] {
        assert!(count <= self.stride);
        // SAFETY: they lie in a segment, were written before the place was handed out, and no other owner
        // touches them.
        unsafe { std::slice::from_raw_parts(self.first(place), count) }
    }

    #[inline(always)]
    pub fn elements_mut(&mut self, place: u32, count: usize) -> &mut [T] {
        assert!(count <= self.stride);
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.first(place), count) }
    }

    /// Fills a place that was never used.
    pub fn fill(&mut self, place: u32, element: T)
    where
        T: Copy,
    {
        // SAFETY: the place has `stride` elements, and what was there needs no drop.
        (0..self.stride).for_each(|at| unsafe { self.first(place).add(at).write(element) });
    }

    /// Prefetches the first cache lines of a place. Has no effect if there is none.
    #[inline(always)]
    pub fn prefetch(&self, place: u32, lines: usize) {
        if ((place / SEGMENT) as usize) < self.known.len() {
            prefetch_lines_from(self.first(place), lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_pass_between_owners_and_stay_where_they_are() {
        let first: Segments<u64> = Segments::new(2);
        let (mut one, mut two) = (first.another(), first.another());
        let (mut of_one, mut of_two) = (Vec::new(), Vec::new());
        let (mut free_one, mut free_two) = (Vec::new(), Vec::new());
        let put = |owner: &mut Segments<u64>, free: &mut Vec<u32>, value: u64| {
            if free.is_empty() {
                match owner.take() {
                    Taken::One(place) => {
                        owner.fill(place, value);
                        return (place, value);
                    }
                    Taken::Spare(places) => free.extend(places),
                }
            }
            let place = free.pop().unwrap();
            owner.elements_mut(place, 2).fill(value);
            (place, value)
        };
        for round in 0..3000u64 {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    one.begin_turn();
                    (0..5).for_each(|_| of_one.push(put(&mut one, &mut free_one, round)));
                });
                two.begin_turn();
                of_two.push(put(&mut two, &mut free_two, !round));
                of_two.iter().for_each(|&(place, value)| assert_eq!(two.elements(place, 2), [value; 2]));
                // The second owner, who gets most, gives back what it has too many.
                if of_two.len() > 1000 && two.lacks_spare() {
                    two.give_back(of_two.drain(..900).map(|(place, _)| place).collect());
                }
            });
            assert!(of_one.iter().all(|&(place, value)| one.elements(place, 2) == [value; 2]));
            of_two.append(&mut of_one);
        }
        // All are taken again, and seldom new ones.
        let taken = (one.bytes() + two.bytes()) / 16;
        assert!(taken < 6000, "{taken}");
    }
}
