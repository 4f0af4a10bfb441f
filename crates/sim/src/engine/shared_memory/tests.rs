use super::*;

/// Hands over places between two owners, who mark those that they own and look whether the mark stays.
#[cfg(not(loom))]
mod threads {
    use super::*;
    use crate::engine::worker_pool::with_pool;

    struct Owner {
        share: Share<u64>,
        /// Places with a value, and free ones.
        held: Vec<(u32, u64)>,
        free: Vec<u32>,
        sent: Vec<(u32, u64)>,
        seed: u64,
        takes: u64,
    }

    impl Owner {
        fn new(share: Share<u64>, seed: u64) -> Owner {
            Owner { share, held: Vec::new(), free: Vec::new(), sent: Vec::new(), seed, takes: 8 }
        }

        fn random(&mut self) -> u64 {
            self.seed = crate::engine::random::mix64(self.seed + 1);
            self.seed
        }

        fn put(&mut self, value: u64) {
            if let Some(place) = self.free.pop() {
                *self.share.at_mut(place as usize * 2) = value;
                return self.held.push((place, value));
            }
            match self.share.take() {
                Taken::One(place) => {
                    self.share.write(place as usize * 2, value);
                    self.share.write(place as usize * 2 + 1, !value);
                    self.free.push(place);
                }
                Taken::Spare(places) => self.free = places,
            }
            self.put(value);
        }

        fn work(&mut self) {
            self.share.begin_turn();
            for _ in 0..self.takes {
                let value = self.random();
                self.put(value);
            }
            for (place, value) in std::mem::take(&mut self.held) {
                assert_eq!(*self.share.at(place as usize * 2), value);
                match self.random() % 4 {
                    0 => self.sent.push((place, value)),
                    1 => self.free.push(place),
                    _ => self.held.push((place, value)),
                }
            }
            if self.free.len() > 2 * CHUNK as usize && self.share.lacks_spare() {
                self.share.give_back(self.free.split_off(CHUNK as usize));
            }
            self.share.end_turn();
        }
    }

    #[test]
    fn what_is_handed_over_stays_while_the_memory_grows_and_places_are_used_again() {
        for threads in 1..4 {
            let first = Share::new(2);
            let mut owners: Vec<Owner> = (0..3).map(|seed| Owner::new(first.another(), seed)).collect();
            drop(first);
            with_pool(threads, Owner::work, |pool| {
                for round in 0..300 {
                    // One of them sends much, another receives it: places would run out without giving back.
                    owners
                        .iter_mut()
                        .zip([round % 60 * 10, 5, 0])
                        .for_each(|(owner, takes)| owner.takes = takes);
                    pool.work(&mut owners);
                    for from in 0..3 {
                        let sent = std::mem::take(&mut owners[from].sent);
                        owners[(from + 1) % 3].held.extend(sent);
                    }
                }
            });
            let places: usize = owners.iter().map(|owner| owner.held.len() + owner.free.len()).sum();
            let taken: usize = owners.iter().map(|owner| owner.share.bytes() / 16).sum();
            assert!(places <= taken, "{places} places, {taken} taken");
            assert!(taken < 12_000, "{taken} places taken, {places} held or free");
        }
    }

    #[test]
    fn an_owner_touches_nothing_between_turns() {
        let mut share = Share::<u64>::new(1);
        let Taken::One(place) = share.take() else { panic!("nobody gave anything back") };
        share.write(place as usize, 7);
        assert_eq!(*share.at(place as usize), 7);
        share.end_turn();
        let between = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| *share.at(place as usize)));
        assert!(between.is_err());
        share.begin_turn();
        assert_eq!(*share.at(place as usize), 7);
    }
}

/// The model for loom: two owners work at the same time in two rounds, each takes places while the memory
/// grows, and hands one to the other between the rounds.
#[cfg(loom)]
mod model {
    use super::*;
    use crate::engine::sync::Arc;
    use loom::cell::UnsafeCell;

    type Cell = UnsafeCell<u32>;

    fn take(share: &mut Share<Cell>, value: u32) -> u32 {
        let Taken::One(place) = share.take() else { panic!("nobody gave anything back") };
        share.write(place as usize, UnsafeCell::new(value));
        place
    }

    /// Reads a place and writes into it: loom reports if another thread does at the same time.
    fn exchange(share: &Share<Cell>, place: u32, value: u32) -> u32 {
        // SAFETY: loom checks that the place is accessed by one thread at a time.
        share.at(place as usize).with_mut(|there| unsafe { std::mem::replace(&mut *there, value) })
    }

    fn round(mut share: Share<Cell>, places: Vec<(u32, u32)>, name: u32) -> (Share<Cell>, Vec<(u32, u32)>) {
        share.begin_turn();
        let mut held = vec![(take(&mut share, name), name)];
        for (place, value) in places {
            assert_eq!(exchange(&share, place, name), value);
            held.push((place, name));
        }
        share.end_turn();
        (share, held)
    }

    #[test]
    fn two_owners_hand_over_places_while_the_memory_grows() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let first = Share::new(1);
            let (mut one, mut two) = (first.another(), first.another());
            drop(first);
            let (mut of_one, mut of_two) = (Vec::new(), Vec::new());
            for turn in 0..2 {
                let theirs = Arc::new(loom::sync::Mutex::new(Some((two, of_two))));
                let there = theirs.clone();
                let worker = loom::thread::spawn(move || {
                    let (share, places) = there.lock().unwrap().take().expect("what it was given");
                    round(share, places, 10 + turn)
                });
                (one, of_one) = round(one, of_one, 20 + turn);
                // What one has goes to the other.
                let (back, mut from_two) = worker.join().expect("a worker that ends");
                std::mem::swap(&mut of_one, &mut from_two);
                (two, of_two) = (back, from_two);
            }
        });
    }

    #[test]
    fn an_owner_who_gives_up_lets_the_other_go_on() {
        loom::model(|| {
            let first = Share::<Cell>::new(1);
            let (mut one, mut two) = (first.another(), first.another());
            drop(first);
            one.begin_turn();
            let worker = loom::thread::spawn(move || {
                two.begin_turn();
                take(&mut two, 1);
                two.end_turn();
            });
            // As if its work panicked.
            drop(one);
            worker.join().expect("a worker that ends");
        });
    }
}
