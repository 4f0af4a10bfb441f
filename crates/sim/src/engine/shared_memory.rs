//! Memory whose places belong to several owners, each place to one of them: what one owner hands to another
//! crosses as the index of its place, without being copied.
//!
//! An owner has the places that it took or was handed, and touches no others. It works in turns
//! ([`Share::begin_turn`], [`Share::end_turn`]); owners may have their turns at the same time, in different
//! threads, and hand over indices between turns. The memory may move only when it grows: who finds it full
//! during its turn waits until no other owner is within its own, and then is alone with it. Between its turns
//! an owner has no access at all.
//!
//! The memory begins with a cache line, and is not touched before it is used, so an owner's thread is the
//! first to touch what it takes.
//!
//! `make loom` checks this with loom: every interleaving of two owners who hand places to each other while
//! the memory grows.

use super::prefetch::prefetch_lines_from;
use super::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Places that an owner takes at a time.
const CHUNK: u32 = if cfg!(loom) { 1 } else { 512 };

/// One owner's access to the memory. A place is `stride` elements of a type that needs no drop.
pub struct Share<T> {
    /// The memory; of no elements between turns.
    base: *mut T,
    len: usize,
    /// The elements at which a whole place may begin.
    firsts: usize,
    stride: usize,
    /// Within a turn.
    at_work: bool,
    /// Places of this owner that were never used.
    fresh: Range<u32>,
    /// Places that it has taken.
    taken: usize,
    common: Arc<Common<T>>,
}

// SAFETY: an owner touches only its own places, and only within its turn, while the memory does not move.
unsafe impl<T: Send> Send for Share<T> {}

struct Common<T> {
    state: Mutex<State<T>>,
    /// An owner has ended its turn, or waits.
    calmer: Condvar,
    /// Accessed with the memory, exclusively when it moves.
    #[cfg(loom)]
    moves: loom::cell::UnsafeCell<()>,
}

struct State<T> {
    /// Never used as a whole: its length is what was allocated.
    memory: Vec<MaybeUninit<Line>>,
    elements: PhantomData<T>,
    /// The first place that no owner has taken.
    next: u32,
    /// Free places that owners gave back, having too many.
    spare: Vec<Vec<u32>>,
    /// Owners within their turns, those that wait to be alone not counted.
    at_work: usize,
}

/// A line of the processor's cache, at which the memory begins.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Line {
    _bytes: [u8; 64],
}

impl<T> State<T> {
    /// Elements for which there is memory.
    fn elements(&self) -> usize {
        const { assert!(align_of::<T>() <= align_of::<Line>() && size_of::<T>() > 0) };
        size_of_val(self.memory.as_slice()) / size_of::<T>()
    }
}

/// Numbers that any bytes are.
///
/// # Safety
/// Every pattern of bits is a value of the type, and its alignment is at most a cache line.
pub unsafe trait Plain: Copy {}

/// What an owner gets that has no free place.
pub enum Taken {
    /// A place that was never used.
    One(u32),
    /// Several that others have used.
    Spare(Vec<u32>),
}

impl<T> Share<T> {
    /// The first owner of a new memory, within its turn.
    pub fn new(stride: usize) -> Share<T> {
        let state =
            State { memory: Vec::new(), elements: PhantomData, next: 0, spare: Vec::new(), at_work: 0 };
        let common = Common {
            state: Mutex::new(state),
            calmer: Condvar::new(),
            #[cfg(loom)]
            moves: Default::default(),
        };
        let common = Arc::new(common);
        let mut share = Share::of(common, stride.max(1));
        share.begin_turn();
        share
    }

    fn of(common: Arc<Common<T>>, stride: usize) -> Share<T> {
        let base = std::ptr::NonNull::dangling().as_ptr();
        Share { base, len: 0, firsts: 0, stride, at_work: false, fresh: 0..0, taken: 0, common }
    }

    /// One more owner, not within a turn.
    pub fn another(&self) -> Share<T> {
        Share::of(self.common.clone(), self.stride)
    }

    /// Allocates memory for this many places in all, if the system has it. It is not touched before it is
    /// used.
    pub fn reserve(&mut self, places: usize) {
        let common = self.common.clone();
        let mut state = self.alone(common.state());
        let lines = (places * self.stride * size_of::<T>()).div_ceil(size_of::<Line>());
        let more = lines.saturating_sub(state.memory.len());
        if state.memory.try_reserve_exact(more).is_ok() {
            common.grow(&mut state, places * self.stride);
        }
        self.resume(state);
    }

    /// From now on the owner may touch its places. Has no effect within a turn.
    pub fn begin_turn(&mut self) {
        if !self.at_work {
            self.at_work = true;
            let common = self.common.clone();
            self.resume(common.state());
        }
    }

    /// Until its next turn the owner touches nothing.
    pub fn end_turn(&mut self) {
        if self.at_work {
            self.at_work = false;
            (self.base, self.len, self.firsts) = (std::ptr::NonNull::dangling().as_ptr(), 0, 0);
            self.common.state().at_work -= 1;
            self.common.calmer.notify_all();
        }
    }

    /// The turn continues, perhaps with other memory.
    fn resume(&mut self, mut state: MutexGuard<'_, State<T>>) {
        if self.at_work {
            state.at_work += 1;
            (self.base, self.len) = (state.memory.as_mut_ptr().cast(), state.elements());
            self.firsts = (self.len + 1).saturating_sub(self.stride);
        }
    }

    /// Waits until no owner is within a turn; this owner's turn is interrupted until it resumes.
    fn alone<'a>(&self, mut state: MutexGuard<'a, State<T>>) -> MutexGuard<'a, State<T>> {
        if self.at_work {
            state.at_work -= 1;
            self.common.calmer.notify_all();
        }
        while state.at_work > 0 {
            state = self.common.calmer.wait(state).unwrap_or_else(|poison| poison.into_inner());
        }
        state
    }

    /// Takes a free place, or several, for an owner without one.
    #[cold]
    #[inline(never)]
    pub fn take(&mut self) -> Taken {
        if let Some(place) = self.fresh.next() {
            self.taken += 1;
            return Taken::One(place);
        }
        let common = self.common.clone();
        let mut state = common.state();
        if let Some(places) = state.spare.pop() {
            return Taken::Spare(places);
        }
        let needed = |state: &State<T>| (state.next + CHUNK) as usize * self.stride;
        let is_full = state.elements() < needed(&state);
        if is_full {
            state = self.alone(state);
            // Meanwhile another owner may have let it grow, or taken places.
            let (had, needs) = (state.elements(), needed(&state));
            if had < needs {
                common.grow(&mut state, needs.max(2 * had));
            }
        }
        self.fresh = state.next + 1..state.next + CHUNK;
        let first = state.next;
        state.next += CHUNK;
        if is_full {
            self.resume(state);
        }
        self.taken += 1;
        Taken::One(first)
    }

    /// Whether an owner who has too many free places should give some back: others would find none.
    pub fn lacks_spare(&self) -> bool {
        Arc::strong_count(&self.common) > 1 && self.common.state().spare.is_empty()
    }

    /// Free places become available to all owners.
    pub fn give_back(&self, places: Vec<u32>) {
        self.common.state().spare.push(places);
    }

    /// Memory of the places that this owner has taken.
    pub fn bytes(&self) -> usize {
        self.taken * self.stride * size_of::<T>()
    }

    /// The element at an index, which must be in a place of this owner.
    ///
    /// # Panics
    /// If there is no such element, or between turns.
    #[inline(always)]
    pub fn at(&self, index: usize) -> &T {
        assert!(index < self.len);
        self.accesses();
        // SAFETY: the index is within the memory, which does not move during this turn; the place was written
        // before its index was handed out, and no other owner
        // touches it.
        unsafe { &*self.base.add(index) }
    }

    #[inline(always)]
    pub fn at_mut(&mut self, index: usize) -> &mut T {
        assert!(index < self.len);
        self.accesses();
        // SAFETY: as above.
        unsafe { &mut *self.base.add(index) }
    }

    /// The rest of a place after its first element, which has this index, as numbers.
    ///
    /// # Panics
    /// As [`Share::at`] does.
    #[inline(always)]
    pub fn after<U: Plain>(&self, first: usize) -> &[U] {
        let rest = self.rest(first);
        self.accesses();
        // SAFETY: as in `at`; it is within the memory, begins at a cache line where an element is one, and was
        // written by `clear_after` before.
        unsafe { std::slice::from_raw_parts(rest, self.room::<U>()) }
    }

    /// The first element of a place, and the rest of it as numbers.
    #[inline(always)]
    pub fn with_after<U: Plain>(&mut self, first: usize) -> (&mut T, &mut [U]) {
        let rest = self.rest(first);
        self.accesses();
        // SAFETY: as above; the two do not overlap.
        unsafe { (&mut *self.base.add(first), std::slice::from_raw_parts_mut(rest, self.room::<U>())) }
    }

    /// Makes the rest of a place zeros, which was never used.
    pub fn clear_after(&mut self, first: usize) {
        let rest = self.rest::<u8>(first);
        self.accesses();
        // SAFETY: as above.
        unsafe { rest.write_bytes(0, (self.stride - 1) * size_of::<T>()) };
    }

    #[inline(always)]
    fn rest<U>(&self, first: usize) -> *mut U {
        const { assert!(size_of::<T>() % align_of::<Line>() == 0 && size_of::<U>() <= size_of::<T>()) };
        assert!(first < self.firsts);
        self.base.wrapping_add(first + 1).cast()
    }

    /// How many numbers the rest of a place has room for.
    #[inline(always)]
    fn room<U>(&self) -> usize {
        (self.stride - 1) * (size_of::<T>() / size_of::<U>())
    }

    /// Writes into an element of a place that was never used.
    #[inline]
    pub fn write(&mut self, index: usize, element: T) {
        assert!(index < self.len);
        self.accesses();
        // SAFETY: as above; what was there needs no drop.
        unsafe { self.base.add(index).write(element) }
    }

    /// Prefetches the cache lines of an element; if there is no such element, those of the first.
    #[inline(always)]
    pub fn prefetch(&self, index: usize, lines: usize) {
        let index = if index < self.len { index } else { 0 };
        prefetch_lines_from(self.base.wrapping_add(index), lines);
    }

    /// For loom, which sees an access of memory that moves.
    #[inline(always)]
    fn accesses(&self) {
        #[cfg(loom)]
        self.common.moves.with(|_| ());
    }
}

impl<T> Drop for Share<T> {
    fn drop(&mut self) {
        self.end_turn();
    }
}

impl<T> Common<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    /// No owner is within a turn: the memory grows to this number of elements, and may move.
    fn grow(&self, state: &mut State<T>, elements: usize) {
        debug_assert!(state.at_work == 0);
        #[cfg(loom)]
        self.moves.with_mut(|_| ());
        let lines = (elements * size_of::<T>()).div_ceil(size_of::<Line>());
        let lines = lines.max(state.memory.len());
        state.memory.reserve_exact(lines - state.memory.len());
        // SAFETY: this number was reserved, and any part of it may be uninitialised.
        unsafe { state.memory.set_len(lines) };
    }
}

#[cfg(test)]
mod tests;
