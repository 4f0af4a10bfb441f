//! What a process between interfaces waits for: a frame, a time, or its end.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use weftline_sim::units::Time;

use crate::socket::Interface;

/// The unit of histograms.
pub const UNIT_NS: u64 = 1000;
const BUCKETS: usize = 160;
/// The longest sleep: a signal that came just before it is seen after this.
const LONGEST_NS: u64 = 200_000_000;
const MOST_EVENTS: usize = 256;

static ENDED: AtomicBool = AtomicBool::new(false);

extern "C" fn end(_signal: libc::c_int) {
    ENDED.store(true, Ordering::Relaxed);
}

/// From now on SIGTERM makes [`ended`] true.
pub fn end_on_signal() {
    let handler = end as extern "C" fn(libc::c_int);
    // SAFETY: the handler only stores a flag.
    unsafe { libc::signal(libc::SIGTERM, handler as libc::sighandler_t) };
}

pub fn ended() -> bool {
    ENDED.load(Ordering::Relaxed)
}

fn clock(which: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is that of `now`.
    unsafe { libc::clock_gettime(which, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Monotonic time since the start, and its place in the time of day.
pub struct Clock {
    started: u64,
}

impl Clock {
    pub fn from_now() -> Clock {
        Clock { started: clock(libc::CLOCK_MONOTONIC) }
    }

    /// Starts at a time of day (ns); until then it is zero.
    pub fn from(time_of_day: u64) -> Clock {
        let left = i128::from(time_of_day) - i128::from(clock(libc::CLOCK_REALTIME));
        let started = i128::from(clock(libc::CLOCK_MONOTONIC)) + left;
        Clock { started: started.clamp(0, i128::from(u64::MAX)) as u64 }
    }

    pub fn now(&self) -> Time {
        Time::from_ns(clock(libc::CLOCK_MONOTONIC).saturating_sub(self.started))
    }

    /// What to take off a time of day to have this clock's.
    pub fn offset(&self) -> i128 {
        let since = i128::from(clock(libc::CLOCK_MONOTONIC)) - i128::from(self.started);
        i128::from(clock(libc::CLOCK_REALTIME)) - since
    }
}

/// How late things were: a bucket for each unit below 8 of them, then four for each doubling.
#[derive(Clone)]
pub struct Histogram([u64; BUCKETS]);

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram([0; BUCKETS])
    }
}

impl Histogram {
    pub fn add(&mut self, late: Time) {
        let late = late.ns() / UNIT_NS;
        let shift = (u64::BITS - late.leading_zeros()).saturating_sub(3);
        let bucket = 4 * shift as usize + (late >> shift) as usize;
        self.0[bucket.min(BUCKETS - 1)] += 1;
    }

    pub fn counts(&self) -> &[u64] {
        &self.0
    }
}

/// Which interfaces have frames.
pub struct Ready {
    epoll: i32,
}

impl Ready {
    pub fn new() -> io::Result<Ready> {
        // SAFETY: no pointers.
        match unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) } {
            epoll if epoll < 0 => Err(io::Error::last_os_error()),
            epoll => Ok(Ready { epoll }),
        }
    }

    /// Looks at an interface too, under this number.
    pub fn add(&mut self, interface: &Interface, place: usize) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: place as u64 };
        // SAFETY: the pointer is that of `event`.
        let added =
            unsafe { libc::epoll_ctl(self.epoll, libc::EPOLL_CTL_ADD, interface.descriptor(), &mut event) };
        if added == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// The interfaces that have frames now, and whether these are all.
    pub fn places(&self) -> (Vec<usize>, bool) {
        // SAFETY: events of zeros are valid values.
        let mut events: [libc::epoll_event; MOST_EVENTS] = unsafe { std::mem::zeroed() };
        // SAFETY: pointer and number are those of `events`.
        let ready = unsafe { libc::epoll_wait(self.epoll, events.as_mut_ptr(), MOST_EVENTS as i32, 0) };
        let ready = usize::try_from(ready).unwrap_or(0);
        (events[..ready].iter().map(|event| event.u64 as usize).collect(), ready < MOST_EVENTS)
    }

    /// Waits until an interface has a frame, or this long.
    pub fn wait(&self, longest: Option<Time>) {
        let left = longest.map_or(LONGEST_NS, |time| time.ns().min(LONGEST_NS));
        let timeout = libc::timespec { tv_sec: 0, tv_nsec: left as _ };
        let mut poll = libc::pollfd { fd: self.epoll, events: libc::POLLIN, revents: 0 };
        // SAFETY: the pointers are those of `poll` and `timeout`; no signals are masked.
        unsafe { libc::ppoll(&mut poll, 1, &timeout, std::ptr::null()) };
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this value's own.
        unsafe { libc::close(self.epoll) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_double_in_four_steps() {
        for (us, bucket) in
            [(0, 0), (7, 7), (8, 8), (9, 8), (10, 9), (15, 11), (16, 12), (1023, 35), (1024, 36)]
        {
            let mut histogram = Histogram::default();
            histogram.add(Time::from_ns(us * UNIT_NS));
            assert_eq!(histogram.counts().iter().position(|&count| count == 1), Some(bucket), "{us} us");
        }
        Histogram::default().add(Time(u64::MAX));
    }
}
