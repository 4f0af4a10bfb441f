//! A crew of threads that work on the parts of something, again and again, in step.
//!
//! Ownership is what keeps them apart: for each round the leader hands every member its parts and has them back when the
//! round is over, so nothing is shared and the leader may do as it likes in between. Parts change hands at a post, whose
//! state says whose turn it is. A thread that waits looks at the state for a while, as being woken takes longer than most waits
//! do on an idle machine, and then sleeps until it is woken. How long it looks follows from how long its waits were: about twice
//! as long where they are short; not at all where they are long, because the other thread has no core to run on, and who
//! looks takes it from the others. The leader may work on all parts itself, where that is the faster ([`super::payoff`]).
//!
//! The posts are checked with loom, every order of what two or three threads do there (`make loom`).

use std::time::{Duration, Instant};
use sync::{AtomicU8, Condvar, Mutex, MutexGuard, Ordering};

/// What loom replaces to try every order of events.
mod sync {
    #[cfg(loom)]
    pub use loom::sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicU8, Ordering},
    };
    #[cfg(not(loom))]
    pub use std::sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicU8, Ordering},
    };
}

/// How long a thread looks at a state before it sleeps: at first, and at most.
const FIRST_LOOK: Duration = Duration::from_micros(50);
const LONGEST_LOOK: Duration = Duration::from_micros(400);
/// A look that is shorter than this is none.
const SHORTEST_LOOK: Duration = Duration::from_micros(2);
/// Waits without a look after which the next has one, to see whether waits have become short.
const BLIND_WAITS: u32 = 32;
/// Looks between two looks at the clock.
const LOOKS: u32 = 16;

const WITH_LEADER: u8 = 0;
const WITH_MEMBER: u8 = 1;
/// The member goes home.
const DISMISSED: u8 = 2;
/// The member panicked.
const BROKEN: u8 = 3;

/// Where parts change hands between the leader and one member. On cache lines of its own.
#[repr(align(128))]
struct Post<T> {
    /// Changes under the lock only; read without it by who looks.
    state: AtomicU8,
    desk: Mutex<Desk<T>>,
    bell: Condvar,
}

struct Desk<T> {
    parts: Vec<T>,
    /// Who waits for its turn sleeps until the bell; taken back by who rings it.
    asleep: bool,
}

impl<T> Post<T> {
    fn new() -> Post<T> {
        Post {
            state: AtomicU8::new(WITH_LEADER),
            desk: Mutex::new(Desk { parts: Vec::new(), asleep: false }),
            bell: Condvar::new(),
        }
    }

    /// Never contended for long: who holds it only puts something down or takes it.
    fn desk(&self) -> MutexGuard<'_, Desk<T>> {
        self.desk.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    fn state(&self) -> u8 {
        self.state.load(Ordering::Acquire)
    }

    /// Puts parts down and turns the post over to the other side; who was dismissed stays so.
    fn put(&self, parts: Vec<T>, state: u8) {
        let mut desk = self.desk();
        desk.parts = parts;
        if self.state() != DISMISSED {
            self.state.store(state, Ordering::Release);
        }
        if std::mem::take(&mut desk.asleep) {
            drop(desk);
            self.bell.notify_one();
        }
    }

    /// Waits for a state in which it is one's turn, and takes what lies there.
    fn take(&self, patience: &mut Patience, is_turn: fn(u8) -> bool) -> (u8, Vec<T>) {
        let since = patience.look(|| is_turn(self.state()));
        let mut desk = self.desk();
        while !is_turn(self.state()) {
            desk.asleep = true;
            desk = self.bell.wait(desk).unwrap_or_else(|poison| poison.into_inner());
        }
        patience.waited(since);
        // Whether the other side sleeps by now is not for this side to say: only who wakes it takes the note away.
        (self.state(), std::mem::take(&mut desk.parts))
    }
}

/// How long a thread looks before it sleeps.
#[derive(Debug, Clone)]
struct Patience {
    look: Duration,
    longest: Duration,
    /// Waits without a look since the last one.
    blind: u32,
}

impl Patience {
    const SOME: Patience = Patience { look: FIRST_LOOK, longest: LONGEST_LOOK, blind: 0 };
    const NONE: Patience = Patience { look: Duration::ZERO, longest: Duration::ZERO, blind: 0 };

    /// Looks until it has happened, or for as long as it is worth. Returns when the wait began, if it is one.
    fn look(&mut self, happened: impl Fn() -> bool) -> Option<Instant> {
        if self.longest.is_zero() || happened() {
            return None;
        }
        let began = Instant::now();
        if self.look < SHORTEST_LOOK {
            self.blind += 1;
            return Some(began);
        }
        loop {
            for _ in 0..LOOKS {
                if happened() {
                    return Some(began);
                }
                std::hint::spin_loop();
            }
            if began.elapsed() > self.look {
                return Some(began);
            }
        }
    }

    /// A wait is over: the next look is about twice as long as waits that end while it is worth looking, and shorter after each that
    /// did not.
    fn waited(&mut self, since: Option<Instant>) {
        let Some(since) = since else { return };
        let waited = since.elapsed();
        if waited <= self.longest {
            self.look = (self.look * 3 / 4).max(waited * 2).min(self.longest);
        } else {
            self.look /= 2;
        }
        if self.blind >= BLIND_WAITS {
            (self.blind, self.look) = (0, self.look.max(FIRST_LOOK));
        }
    }
}

/// The crew, as its leader sees it.
pub struct Crew<'a, T> {
    posts: &'a [Post<T>],
    /// With the members in turn.
    patience: Patience,
    work: &'a (dyn Fn(&mut T) + Sync),
}

/// Gathers a crew of `threads` (the caller is one of them) for as long as `lead` runs. `work` is what is done to a part.
pub fn gather<T: Send, R>(
    threads: usize,
    work: impl Fn(&mut T) + Sync,
    lead: impl FnOnce(&mut Crew<T>) -> R,
) -> R {
    let posts: Vec<Post<T>> = (1..threads.max(1)).map(|_| Post::new()).collect();
    // Where there are not enough cores for all, who looks keeps others from working.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let patience = if threads <= cores { Patience::SOME } else { Patience::NONE };
    std::thread::scope(|scope| {
        for post in &posts {
            let patience = patience.clone();
            scope.spawn(|| serve(post, patience, &work));
        }
        // The members go home however the leader's work ends.
        let _dismissal = OnDrop(|| posts.iter().for_each(|post| post.put(Vec::new(), DISMISSED)));
        lead(&mut Crew { posts: &posts, patience, work: &work })
    })
}

/// What a member does until it is dismissed.
fn serve<T>(post: &Post<T>, mut patience: Patience, work: &dyn Fn(&mut T)) {
    // Should the work panic, the leader must hear of it rather than wait for ever.
    let alarm = OnDrop(|| post.put(Vec::new(), BROKEN));
    loop {
        let (state, mut parts) = post.take(&mut patience, |state| state != WITH_LEADER);
        if state != WITH_MEMBER {
            break;
        }
        parts.iter_mut().for_each(work);
        post.put(parts, WITH_LEADER);
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
        let share = parts.len().div_ceil(self.posts.len() + 1).max(1);
        // With few parts the last members get none.
        let members = &self.posts[..parts.len().div_ceil(share).saturating_sub(1)];
        for (number, post) in members.iter().enumerate().rev() {
            post.put(parts.split_off(share * (number + 1)), WITH_MEMBER);
        }
        parts.iter_mut().for_each(self.work);
        for post in members {
            let (state, mut back) = post.take(&mut self.patience, |state| state != WITH_MEMBER);
            assert!(state == WITH_LEADER, "a thread of the simulator panicked");
            parts.append(&mut back);
        }
    }

    /// The same without the members, who sleep meanwhile.
    pub fn work_alone(&self, parts: &mut [T]) {
        parts.iter_mut().for_each(self.work);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_worked_on_once_a_round_and_comes_back_in_order() {
        for threads in 1..10 {
            for count in 0..9u64 {
                let mut parts: Vec<(u64, u64)> = (0..count).map(|number| (number, 0)).collect();
                gather(
                    threads,
                    |part: &mut (u64, u64)| part.1 += part.0 + 1,
                    |crew| {
                        for round in 0..200 {
                            match round % 3 {
                                0 => crew.work_alone(&mut parts),
                                _ => crew.work(&mut parts),
                            }
                        }
                    },
                );
                let expected: Vec<(u64, u64)> = (0..count).map(|n| (n, 200 * (n + 1))).collect();
                assert_eq!(parts, expected, "{threads} threads");
            }
        }
    }

    #[test]
    fn who_has_waited_for_long_is_woken() {
        let nap = Duration::from_millis(3);
        let mut parts = vec![0, 1];
        gather(
            2,
            |part: &mut i32| {
                std::thread::sleep(nap * (*part as u32 % 2));
                *part += 2;
            },
            |crew| {
                for _ in 0..5 {
                    std::thread::sleep(nap);
                    crew.work(&mut parts);
                }
            },
        );
        assert_eq!(parts, [10, 11]);
    }

    #[test]
    fn a_panic_in_a_member_reaches_the_leader_and_one_in_the_leader_sends_the_members_home() {
        for threads in [2, 3] {
            for ill in 0..threads as i32 {
                let result = std::panic::catch_unwind(|| {
                    let mut parts: Vec<i32> = (0..threads as i32).collect();
                    gather(threads, |part: &mut i32| assert!(*part != ill), |crew| crew.work(&mut parts));
                });
                assert!(result.is_err());
            }
        }
    }
}

/// What loom tries: every order of the locks, of the bell and of the reads and writes of a post's state, with the
/// orderings of memory that are written above, when nobody has patience (which only repeats the first look). With two
/// members, all orders in which a thread is interrupted at most twice where it could have gone on.
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Arc;

    /// A crew of `members` and their leader, over `rounds` rounds; the leader then dismisses them.
    fn crew(members: usize, rounds: u32) {
        let posts: Arc<Vec<Post<u32>>> = Arc::new((0..members).map(|_| Post::new()).collect());
        let serving: Vec<_> = (0..members)
            .map(|member| {
                let posts = posts.clone();
                loom::thread::spawn(move || serve(&posts[member], Patience::NONE, &|part| *part += 1))
            })
            .collect();
        let mut parts = vec![0; members + 1];
        let mut crew = Crew { posts: &posts, patience: Patience::NONE, work: &|part| *part += 1 };
        for round in 1..=rounds {
            crew.work(&mut parts);
            assert!(parts.len() == members + 1 && parts.iter().all(|&part| part == round));
        }
        posts.iter().for_each(|post| post.put(Vec::new(), DISMISSED));
        serving.into_iter().for_each(|member| member.join().expect("a member that ends"));
    }

    #[test]
    fn one_member_gets_its_parts_and_hands_them_back_round_by_round() {
        loom::model(|| crew(1, 2));
    }

    #[test]
    fn two_members_get_their_parts_and_hand_them_back() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(|| crew(2, 1));
    }

    #[test]
    fn a_member_that_is_dismissed_at_work_goes_home() {
        loom::model(|| {
            let post = Arc::new(Post::new());
            let theirs = post.clone();
            let member =
                loom::thread::spawn(move || serve(&theirs, Patience::NONE, &|part: &mut u32| *part += 1));
            post.put(vec![1], WITH_MEMBER);
            // As when the leader's own part panics.
            post.put(Vec::new(), DISMISSED);
            member.join().expect("a member that ends");
        });
    }

    #[test]
    fn the_leader_hears_of_a_member_that_broke() {
        loom::model(|| {
            let post = Arc::new(Post::new());
            let theirs = post.clone();
            let member = loom::thread::spawn(move || {
                let (state, _) = theirs.take(&mut Patience::NONE.clone(), |state| state != WITH_LEADER);
                assert!(state == WITH_MEMBER);
                theirs.put(Vec::new(), BROKEN);
            });
            post.put(vec![1], WITH_MEMBER);
            let (state, parts) = post.take(&mut Patience::NONE.clone(), |state| state != WITH_MEMBER);
            assert!(state == BROKEN && parts.is_empty());
            member.join().expect("a member that ends");
        });
    }
}
