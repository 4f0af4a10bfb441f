//! What a run costs: CPU and wall seconds, memory now and at its peak.

use std::time::Instant;

/// Cost of a run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Resources {
    pub cpu_seconds: f64,
    pub wall_seconds: f64,
    /// Most memory that the process ever held; none where the system does not say.
    pub peak_memory_bytes: Option<u64>,
}

impl Resources {
    /// The cost of this and then of `later`; the peak is the later one's, which is never less.
    pub fn and(self, later: Resources) -> Resources {
        Resources {
            cpu_seconds: self.cpu_seconds + later.cpu_seconds,
            wall_seconds: self.wall_seconds + later.wall_seconds,
            peak_memory_bytes: later.peak_memory_bytes,
        }
    }
}

/// Whose CPU time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clock {
    Thread,
    Process,
}

/// Measures from its start.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch {
    clock: Clock,
    wall: Instant,
    cpu: f64,
}

impl Stopwatch {
    /// With one thread the calling thread's CPU time counts, so that runs side by side in one process do not count each
    /// other's; with more, the process's.
    pub fn start(threads: usize) -> Stopwatch {
        let clock = if threads > 1 { Clock::Process } else { Clock::Thread };
        Stopwatch { clock, wall: Instant::now(), cpu: cpu_seconds(clock) }
    }

    pub fn read(&self) -> Resources {
        Resources {
            cpu_seconds: cpu_seconds(self.clock) - self.cpu,
            wall_seconds: self.wall.elapsed().as_secs_f64(),
            peak_memory_bytes: peak_memory_bytes(),
        }
    }
}

#[cfg(unix)]
fn cpu_seconds(clock: Clock) -> f64 {
    let id = match clock {
        Clock::Thread => libc::CLOCK_THREAD_CPUTIME_ID,
        Clock::Process => libc::CLOCK_PROCESS_CPUTIME_ID,
    };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one timespec, which `time` is; both clocks always exist.
    unsafe { libc::clock_gettime(id, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

#[cfg(not(unix))]
fn cpu_seconds(_clock: Clock) -> f64 {
    use std::sync::OnceLock;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// What this program holds in memory now, in bytes; none where the system does not say.
#[cfg(target_os = "linux")]
pub fn memory_bytes() -> Option<u64> {
    let counts = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = counts.split_whitespace().nth(1)?.parse().ok()?;
    // SAFETY: the call takes a number and returns one.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.checked_mul(u64::try_from(page).ok()?)
}

#[cfg(not(target_os = "linux"))]
pub fn memory_bytes() -> Option<u64> {
    None
}

/// The high-water mark of this program. (The kernel's `ru_maxrss` would also count what the parent held before it started
/// this program.)
#[cfg(target_os = "linux")]
pub fn peak_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(not(target_os = "linux"))]
pub fn peak_memory_bytes() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_shows_in_both_clocks_and_memory_is_known() {
        for threads in [1, 2] {
            let watch = Stopwatch::start(threads);
            let mut sum = 0u64;
            while watch.read().cpu_seconds < 0.005 {
                sum = sum.wrapping_add(1);
            }
            let cost = watch.read();
            // The process's clock also runs for other threads.
            assert!(threads > 1 || cost.wall_seconds >= 0.004, "{cost:?} {sum}");
            assert!(cfg!(not(target_os = "linux")) || cost.peak_memory_bytes.unwrap() > 100_000);
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_that_is_taken_shows_and_is_never_above_the_peak() {
        const TAKEN: usize = 64 << 20;
        let before = memory_bytes().unwrap();
        // Seen from outside, so that the optimizer does not do without it.
        let taken = std::hint::black_box(vec![1u8; TAKEN]);
        let now = memory_bytes().unwrap();
        // Other tests take and give back memory meanwhile.
        assert!(now > before + TAKEN as u64 / 2, "{before} then {now}");
        assert!(peak_memory_bytes().unwrap() + (1 << 20) >= now.min(memory_bytes().unwrap()));
        drop(std::hint::black_box(taken));
    }
}
