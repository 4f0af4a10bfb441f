//! Prefetches memory into the cache shortly before it is used.

/// What is prefetched in place of an element that does not exist. It must be memory that this process has
/// touched: the address of a page without memory is looked for in all tables of pages, each time, and nothing
/// else continues meanwhile.
static NOWHERE: [u8; 64] = [1; 64];

/// Prefetches `slice[at]`. Has no effect if the index is out of range or the processor has no such
/// instruction.
#[inline(always)]
pub fn prefetch<T>(slice: &[T], at: usize) {
    let exists = at < slice.len();
    // Another address is cheaper than a branch.
    prefetch_lines_from(if exists { slice.as_ptr().wrapping_add(at).cast() } else { NOWHERE.as_ptr() }, 1);
}

/// Prefetches the place that the next element is written to, if there is room for it.
#[inline(always)]
pub fn prefetch_end<T>(list: &Vec<T>) {
    let (end, room) = (list.as_ptr().wrapping_add(list.len()), list.len() < list.capacity());
    prefetch_lines_from(if room { end.cast() } else { NOWHERE.as_ptr() }, 1);
}

/// Prefetches the first `lines` cache lines of a value, or all of them if it has fewer.
#[inline(always)]
pub fn prefetch_lines<T>(value: &T, lines: usize) {
    const LINE: usize = 64;
    #[cfg(target_arch = "x86_64")]
    for at in (0..size_of::<T>().min(lines * LINE)).step_by(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is part of every x86-64, and a prefetch has no effect that a program can
        // see, whatever the address; this one lies within the value.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast::<i8>().add(at)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (value, lines);
}

/// Prefetches some cache lines from a place on that lies in memory of this process.
#[inline(always)]
pub fn prefetch_lines_from<T>(place: *const T, lines: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..lines {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: as above.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast::<i8>().wrapping_add(64 * line)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (place, lines);
}
