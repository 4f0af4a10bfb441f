//! A pool of worker threads that process the parts of a task round by round, in step.
//!
//! No data is shared: in each round the leader moves parts to every worker and gets them back when the round
//! is over, and between rounds it owns them all. Parts are moved through an [`Exchange`], whose state says
//! which side may act. A waiting thread first spins, because waking a thread takes longer than most waits on
//! an idle machine, and then sleeps. The spin time adapts to past waits: about twice the length of short
//! waits, zero if waits are long, because the other thread then has no free core and spinning would occupy
//! one. The leader can process all parts itself where that is faster ([`super::thread_choice`]).
//!
//! `make loom` checks the exchanges with loom: every interleaving of two or three threads.

use super::sync::{AtomicU8, Condvar, Mutex, MutexGuard, Ordering};
use std::time::{Duration, Instant};

/// How long a thread spins before it sleeps: initially, and at most.
const FIRST_SPIN: Duration = Duration::from_micros(50);
const MAX_SPIN: Duration = Duration::from_micros(400);
/// A shorter spin time counts as zero.
const MIN_SPIN: Duration = Duration::from_micros(2);
/// Number of waits without spinning after which a thread spins again, to learn whether waits have become
/// short.
const MAX_WAITS_UNSPUN: u32 = 32;
/// Reads of the state between two reads of the clock.
const SPINS_PER_CLOCK_READ: u32 = 16;

const WITH_LEADER: u8 = 0;
const WITH_WORKER: u8 = 1;
/// The worker must end.
const STOPPED: u8 = 2;
/// The worker panicked.
const PANICKED: u8 = 3;

/// Where parts are exchanged between the leader and one worker. Aligned to its own cache lines.
#[repr(align(128))]
struct Exchange<T> {
    /// Changed only under the lock; a spinning thread reads it without.
    state: AtomicU8,
    contents: Mutex<Contents<T>>,
    changed: Condvar,
}

struct Contents<T> {
    parts: Vec<T>,
    /// Set by the side that sleeps; cleared by the side that wakes it.
    sleeping: bool,
}

impl<T> Exchange<T> {
    fn new() -> Exchange<T> {
        Exchange {
            state: AtomicU8::new(WITH_LEADER),
            contents: Mutex::new(Contents { parts: Vec::new(), sleeping: false }),
            changed: Condvar::new(),
        }
    }

    /// Never held for long: only to put parts or to take them.
    fn contents(&self) -> MutexGuard<'_, Contents<T>> {
        self.contents.lock().unwrap_or_else(|poison| poison.into_inner())
    }

    fn state(&self) -> u8 {
        self.state.load(Ordering::Acquire)
    }

    /// Puts parts and sets the state for the other side. The state `STOPPED` is final.
    fn put(&self, parts: Vec<T>, state: u8) {
        let mut contents = self.contents();
        contents.parts = parts;
        if self.state() != STOPPED {
            self.state.store(state, Ordering::Release);
        }
        if std::mem::take(&mut contents.sleeping) {
            drop(contents);
            self.changed.notify_one();
        }
    }

    /// Waits for a state in which this side may act, and takes the parts.
    fn take(&self, spin: &mut SpinTime, is_ready: fn(u8) -> bool) -> (u8, Vec<T>) {
        let since = spin.spin(|| is_ready(self.state()));
        let mut contents = self.contents();
        while !is_ready(self.state()) {
            contents.sleeping = true;
            contents = self.changed.wait(contents).unwrap_or_else(|poison| poison.into_inner());
        }
        spin.wait_ended(since);
        // `sleeping` is left as it is: only the side that wakes the other clears it.
        (self.state(), std::mem::take(&mut contents.parts))
    }
}

/// How long a thread spins before it sleeps; adapts to past waits.
#[derive(Debug, Clone)]
struct SpinTime {
    spin: Duration,
    longest: Duration,
    /// Waits without spinning since the last one with.
    waits_unspun: u32,
}

impl SpinTime {
    const SELF_TUNING: SpinTime = SpinTime { spin: FIRST_SPIN, longest: MAX_SPIN, waits_unspun: 0 };
    const ZERO: SpinTime = SpinTime { spin: Duration::ZERO, longest: Duration::ZERO, waits_unspun: 0 };

    /// Spins until `is_ready` or until the spin time is over. Returns when the wait began, if there was one.
    fn spin(&mut self, is_ready: impl Fn() -> bool) -> Option<Instant> {
        if self.longest.is_zero() || is_ready() {
            return None;
        }
        let began = Instant::now();
        if self.spin < MIN_SPIN {
            self.waits_unspun += 1;
            return Some(began);
        }
        loop {
            for _ in 0..SPINS_PER_CLOCK_READ {
                if is_ready() {
                    return Some(began);
                }
                std::hint::spin_loop();
            }
            if began.elapsed() > self.spin {
                return Some(began);
            }
        }
    }

    /// Adapts the spin time after a wait: about twice the length of a wait that ended within the maximum spin
    /// time, shorter after each that did not.
    fn wait_ended(&mut self, since: Option<Instant>) {
        let Some(since) = since else { return };
        let waited = since.elapsed();
        if waited <= self.longest {
            self.spin = (self.spin * 3 / 4).max(waited * 2).min(self.longest);
        } else {
            self.spin /= 2;
        }
        if self.waits_unspun >= MAX_WAITS_UNSPUN {
            (self.waits_unspun, self.spin) = (0, self.spin.max(FIRST_SPIN));
        }
    }
}

/// The pool, as its leader sees it.
pub struct WorkerPool<'a, T> {
    exchanges: &'a [Exchange<T>],
    /// For the leader's waits.
    spin: SpinTime,
    work: &'a (dyn Fn(&mut T) + Sync),
}

/// Starts a pool of `threads` threads, including the caller, while `lead` runs. `work` processes one
/// part.
pub fn with_pool<T: Send, R>(
    threads: usize,
    work: impl Fn(&mut T) + Sync,
    lead: impl FnOnce(&mut WorkerPool<T>) -> R,
) -> R {
    let exchanges: Vec<Exchange<T>> = (1..threads.max(1)).map(|_| Exchange::new()).collect();
    // With fewer cores than threads, a spinning thread would keep another from working.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let spin = if threads <= cores { SpinTime::SELF_TUNING } else { SpinTime::ZERO };
    std::thread::scope(|scope| {
        // The workers end even if the leader panics, or if the system refuses one of them: the scope waits
        // for all.
        let _stop = OnDrop(|| exchanges.iter().for_each(|exchange| exchange.put(Vec::new(), STOPPED)));
        for exchange in &exchanges {
            let spin = spin.clone();
            scope.spawn(|| serve(exchange, spin, &work));
        }
        lead(&mut WorkerPool { exchanges: &exchanges, spin, work: &work })
    })
}

/// Loop of a worker until it is stopped.
fn serve<T>(exchange: &Exchange<T>, mut spin: SpinTime, work: &dyn Fn(&mut T)) {
    // If the work panics, the leader must learn of it instead of waiting forever.
    let on_panic = OnDrop(|| exchange.put(Vec::new(), PANICKED));
    loop {
        let (state, mut parts) = exchange.take(&mut spin, |state| state != WITH_LEADER);
        if state != WITH_WORKER {
            break;
        }
        parts.iter_mut().for_each(work);
        exchange.put(parts, WITH_LEADER);
    }
    std::mem::forget(on_panic);
}

struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl<T> WorkerPool<'_, T> {
    /// Processes every part once. Parts are assigned in order, neighbours to the same worker, and come back
    /// in order.
    ///
    /// # Panics
    /// If the work on a part panicked in another thread.
    pub fn work(&mut self, parts: &mut Vec<T>) {
        let share = parts.len().div_ceil(self.exchanges.len() + 1).max(1);
        // With few parts the last workers get none.
        let workers = &self.exchanges[..parts.len().div_ceil(share).saturating_sub(1)];
        for (number, exchange) in workers.iter().enumerate().rev() {
            exchange.put(parts.split_off(share * (number + 1)), WITH_WORKER);
        }
        parts.iter_mut().for_each(self.work);
        for exchange in workers {
            let (state, mut back) = exchange.take(&mut self.spin, |state| state != WITH_WORKER);
            assert!(state == WITH_LEADER, "a thread of the simulator panicked");
            parts.append(&mut back);
        }
    }

    /// Processes every part in the calling thread, while the workers sleep.
    pub fn work_in_leader(&self, parts: &mut [T]) {
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
                with_pool(
                    threads,
                    |part: &mut (u64, u64)| part.1 += part.0 + 1,
                    |pool| {
                        for round in 0..200 {
                            match round % 3 {
                                0 => pool.work_in_leader(&mut parts),
                                _ => pool.work(&mut parts),
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
        with_pool(
            2,
            |part: &mut i32| {
                std::thread::sleep(nap * (*part as u32 % 2));
                *part += 2;
            },
            |pool| {
                for _ in 0..5 {
                    std::thread::sleep(nap);
                    pool.work(&mut parts);
                }
            },
        );
        assert_eq!(parts, [10, 11]);
    }

    #[test]
    fn a_panic_in_a_member_reaches_the_leader_and_one_in_the_leader_sends_the_members_home() {
        for threads in [2, 3] {
            for panicking in 0..threads as i32 {
                let result = std::panic::catch_unwind(|| {
                    let mut parts: Vec<i32> = (0..threads as i32).collect();
                    with_pool(
                        threads,
                        |part: &mut i32| assert!(*part != panicking),
                        |pool| pool.work(&mut parts),
                    );
                });
                assert!(result.is_err());
            }
        }
    }
}

/// The model for loom: every order of the operations on the lock, the condition variable and the state, with
/// the memory orderings above and without spinning (which only repeats the first read). With two workers,
/// every order in which a thread is preempted at most twice.
#[cfg(all(test, loom))]
mod model {
    use super::*;
    use loom::sync::Arc;

    /// Runs a pool of `workers` and their leader over `rounds` rounds; the leader then stops them.
    fn pool(workers: usize, rounds: u32) {
        let exchanges: Arc<Vec<Exchange<u32>>> = Arc::new((0..workers).map(|_| Exchange::new()).collect());
        let threads: Vec<_> = (0..workers)
            .map(|worker| {
                let exchanges = exchanges.clone();
                loom::thread::spawn(move || serve(&exchanges[worker], SpinTime::ZERO, &|part| *part += 1))
            })
            .collect();
        let mut parts = vec![0; workers + 1];
        let mut pool = WorkerPool { exchanges: &exchanges, spin: SpinTime::ZERO, work: &|part| *part += 1 };
        for round in 1..=rounds {
            pool.work(&mut parts);
            assert!(parts.len() == workers + 1 && parts.iter().all(|&part| part == round));
        }
        exchanges.iter().for_each(|exchange| exchange.put(Vec::new(), STOPPED));
        threads.into_iter().for_each(|worker| worker.join().expect("a member that ends"));
    }

    #[test]
    fn one_member_gets_its_parts_and_hands_them_back_round_by_round() {
        loom::model(|| pool(1, 2));
    }

    #[test]
    fn two_members_get_their_parts_and_hand_them_back() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(|| pool(2, 1));
    }

    #[test]
    fn a_member_that_is_dismissed_at_work_goes_home() {
        loom::model(|| {
            let exchange = Arc::new(Exchange::new());
            let theirs = exchange.clone();
            let worker =
                loom::thread::spawn(move || serve(&theirs, SpinTime::ZERO, &|part: &mut u32| *part += 1));
            exchange.put(vec![1], WITH_WORKER);
            // As if the leader's own part panicked.
            exchange.put(Vec::new(), STOPPED);
            worker.join().expect("a member that ends");
        });
    }

    #[test]
    fn the_leader_learns_of_a_member_that_broke() {
        loom::model(|| {
            let exchange = Arc::new(Exchange::new());
            let theirs = exchange.clone();
            let worker = loom::thread::spawn(move || {
                let (state, _) = theirs.take(&mut SpinTime::ZERO.clone(), |state| state != WITH_LEADER);
                assert!(state == WITH_WORKER);
                theirs.put(Vec::new(), PANICKED);
            });
            exchange.put(vec![1], WITH_WORKER);
            let (state, parts) = exchange.take(&mut SpinTime::ZERO.clone(), |state| state != WITH_WORKER);
            assert!(state == PANICKED && parts.is_empty());
            worker.join().expect("a member that ends");
        });
    }
}
