//! A crew of threads that work on the parts of something, again and again, in step.
//!
//! Ownership is what keeps them apart: for each round the leader hands every member its part and has it back when the
//! round is over, so nothing is shared and the leader may do as it likes in between. A part changes hands through a
//! post: one atomic state, and a place that only the one may touch whose turn it is. Who waits spins for some
//! microseconds, then yields, so that a crew on a busy machine does not burn the time that its own members need.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// Looks at a state before a thread yields: some microseconds.
const SPINS: u32 = 2000;

const EMPTY: u8 = 0;
const GIVEN: u8 = 1;
const BACK: u8 = 2;
const BROKEN: u8 = 3;

/// Where a part changes hands between the leader and one member.
struct Post<T> {
    state: AtomicU8,
    /// Never contended: whose turn it is follows from the state.
    parts: Mutex<Vec<T>>,
}

impl<T> Post<T> {
    fn new() -> Post<T> {
        Post { state: AtomicU8::new(EMPTY), parts: Mutex::new(Vec::new()) }
    }

    /// Puts parts down for the other side.
    fn put(&self, parts: Vec<T>, state: u8) {
        *self.parts.lock().unwrap_or_else(|poison| poison.into_inner()) = parts;
        self.state.store(state, Ordering::Release);
    }

    fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.parts.lock().unwrap_or_else(|poison| poison.into_inner()))
    }

    fn state(&self) -> u8 {
        self.state.load(Ordering::Acquire)
    }
}

/// Waits, spinning at first.
fn wait_until(happened: impl Fn() -> bool) {
    let mut spins = 0;
    while !happened() {
        if spins < SPINS {
            spins += 1;
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

/// The crew, as its leader sees it.
pub struct Crew<'a, T> {
    posts: &'a [Post<T>],
    work: &'a (dyn Fn(&mut T) + Sync),
}

/// Gathers a crew of `threads` (the caller is one of them) for as long as `lead` runs. `work` is what is done to a part.
pub fn gather<T: Send, R>(
    threads: usize,
    work: impl Fn(&mut T) + Sync,
    lead: impl FnOnce(&mut Crew<T>) -> R,
) -> R {
    let posts: Vec<Post<T>> = (1..threads.max(1)).map(|_| Post::new()).collect();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for post in &posts {
            scope.spawn(|| serve(post, &over, &work));
        }
        // The members go home however the leader's work ends.
        let _dismissal = OnDrop(|| over.store(true, Ordering::Release));
        lead(&mut Crew { posts: &posts, work: &work })
    })
}

/// What a member does until the work is over.
fn serve<T>(post: &Post<T>, over: &AtomicBool, work: &(dyn Fn(&mut T) + Sync)) {
    // Should the work panic, the leader must hear of it rather than wait for ever.
    let alarm = OnDrop(|| post.state.store(BROKEN, Ordering::Release));
    loop {
        wait_until(|| post.state() == GIVEN || over.load(Ordering::Acquire));
        if post.state() != GIVEN {
            break;
        }
        let mut parts = post.take();
        parts.iter_mut().for_each(work);
        post.put(parts, BACK);
    }
    std::mem::forget(alarm);
}

struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl<T> Crew<'_, T> {
    /// Has every part worked on. Parts are dealt out in order, neighbours to the same member, and come back in order.
    ///
    /// # Panics
    /// If the work on a part panicked in another thread.
    pub fn work(&mut self, parts: &mut Vec<T>) {
        let share = parts.len().div_ceil(self.posts.len() + 1);
        for (number, post) in self.posts.iter().enumerate().rev() {
            // With few parts the last members get none.
            let own = parts.split_off(parts.len().min(share * (number + 1)));
            post.put(own, GIVEN);
        }
        parts.iter_mut().for_each(self.work);
        for post in self.posts {
            wait_until(|| matches!(post.state(), BACK | BROKEN));
            assert!(post.state() == BACK, "a thread of the simulator panicked");
            parts.append(&mut post.take());
            post.state.store(EMPTY, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_worked_on_once_a_round_and_comes_back_in_order() {
        for threads in 1..6 {
            for count in 0..9u64 {
                let mut parts: Vec<(u64, u64)> = (0..count).map(|number| (number, 0)).collect();
                gather(
                    threads,
                    |part: &mut (u64, u64)| part.1 += part.0 + 1,
                    |crew| (0..200).for_each(|_| crew.work(&mut parts)),
                );
                let expected: Vec<(u64, u64)> = (0..count).map(|n| (n, 200 * (n + 1))).collect();
                assert_eq!(parts, expected, "{threads} threads");
            }
        }
    }

    #[test]
    fn a_panic_in_a_member_reaches_the_leader_and_one_in_the_leader_sends_the_members_home() {
        let in_member = std::panic::catch_unwind(|| {
            let mut parts = vec![0, 1];
            gather(2, |part: &mut i32| assert!(*part == 0), |crew| crew.work(&mut parts));
        });
        assert!(in_member.is_err());
        let in_leader = std::panic::catch_unwind(|| {
            let mut parts = vec![0, 1];
            gather(2, |part: &mut i32| assert!(*part == 1), |crew| crew.work(&mut parts));
        });
        assert!(in_leader.is_err());
    }
}
