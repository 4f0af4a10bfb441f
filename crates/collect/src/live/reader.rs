//! The thread that reads all inputs: sockets and interfaces in, findings to the shards.

use std::io;
use std::os::fd::RawFd;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::admission::Admission;
use super::ring::RingInput;
use super::udp::UdpInput;
use crate::capture::Packet;
use crate::intake::Intake;
use crate::shards::Router;

/// How long the thread sleeps at most when nothing arrives.
const POLL_MS: libc::c_int = 20;
/// Counters of the kernel are read at least this often.
const COUNT_EVERY: Duration = Duration::from_millis(200);
/// How long the end waits for frames that the kernel still holds.
const DRAIN: Duration = Duration::from_secs(2);

/// Something that is read.
pub enum Input {
    Udp(UdpInput),
    Ring(RingInput),
}

/// The counters of an input: sent to it = received + dropped, once it is drained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputCounts {
    pub name: String,
    pub received: u64,
    /// By the kernel, because they were not read in time.
    pub dropped: u64,
    /// An interface that was removed, and is read again once there is one of its name.
    pub absent: bool,
}

impl InputCounts {
    /// What is written of an input.
    pub fn to_json(&self) -> Value {
        json!({"name": self.name, "received": self.received, "dropped": self.dropped, "absent": self.absent})
    }
}

/// What is done on the thread of the reader.
pub type Task = Box<dyn FnOnce(&mut Reader) + Send>;

pub struct Reader {
    pub intake: Intake,
    pub admission: Admission,
    pub router: Router,
    inputs: Vec<Input>,
    pub counts: Vec<InputCounts>,
}

impl Reader {
    pub fn new(intake: Intake, admission: Admission, router: Router, inputs: Vec<Input>) -> Reader {
        let name = |input: &Input| match input {
            Input::Udp(udp) => {
                udp.address().map_or_else(|_| "udp".into(), |address| format!("udp:{address}"))
            }
            Input::Ring(ring) => ring.name(),
        };
        let begin = |input| InputCounts { name: name(input), received: 0, dropped: 0, absent: false };
        let counts = inputs.iter().map(begin).collect();
        Reader { intake, admission, router, inputs, counts }
    }

    /// Reads until the channel of tasks is closed.
    pub fn run(mut self, tasks: &Receiver<Task>) -> Reader {
        let mut counted = Instant::now();
        loop {
            loop {
                match tasks.try_recv() {
                    Ok(task) => task(&mut self),
                    Err(std::sync::mpsc::TryRecvError::Empty) => break,
                    Err(std::sync::mpsc::TryRecvError::Disconnected) => return self,
                }
            }
            self.wait();
            self.receive();
            if counted.elapsed() >= COUNT_EVERY {
                counted = Instant::now();
                self.count();
            }
        }
    }

    /// Waits until an input has something.
    fn wait(&mut self) {
        let mut polled: Vec<libc::pollfd> = self
            .inputs
            .iter()
            .map(|input| libc::pollfd { fd: input.descriptor(), events: libc::POLLIN, revents: 0 })
            .collect();
        // SAFETY: pointer and length are those of the list.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, POLL_MS) };
        for (input, polled) in self.inputs.iter_mut().zip(polled) {
            if let (Input::Ring(ring), true) = (input, polled.revents & libc::POLLERR != 0) {
                ring.take_error();
            }
        }
    }

    /// Takes what waits at each input, and hands it on; returns how much it was.
    fn receive(&mut self) -> usize {
        let now_ns = now_ns();
        // A nanosecond apart, so that the order of what came together is known.
        let mut arrival_ns = now_ns;
        let Reader { intake, admission, router, inputs, counts } = self;
        let mut taken = 0;
        for ((number, input), counts) in (0..).zip(inputs).zip(counts) {
            let count = match input {
                Input::Udp(udp) => udp.receive(&mut |source, bytes| {
                    if admission.admits(source, now_ns) {
                        arrival_ns += 1;
                        let whole = intake.take_datagram(bytes, arrival_ns, router);
                        admission.judge(source, whole, now_ns);
                    } else {
                        intake.count_unwelcome();
                    }
                }),
                Input::Ring(ring) => Ok(ring.receive(&mut |packet| {
                    intake.take(&Packet { interface: number, ..*packet }, router);
                })),
            };
            let count = count.unwrap_or(0);
            counts.received += count as u64;
            taken += count;
        }
        router.flush();
        intake.count_shed(router.take_shed());
        taken
    }

    fn count(&mut self) {
        for (input, counts) in self.inputs.iter_mut().zip(&mut self.counts) {
            if let Ok(dropped) = input.dropped() {
                counts.dropped = dropped;
            }
            if let Input::Ring(ring) = input {
                counts.absent = ring.is_absent();
            }
        }
    }

    /// Takes what the kernel still holds and closes all inputs.
    pub fn close(&mut self) {
        self.drain();
        self.inputs.clear();
    }

    fn drain(&mut self) {
        let end = Instant::now() + DRAIN;
        loop {
            let taken = self.receive();
            self.count();
            let drained = taken == 0 && self.inputs.iter_mut().all(Input::is_drained);
            if drained || Instant::now() > end {
                return;
            }
            if taken == 0 {
                self.wait();
            }
        }
    }
}

impl Input {
    fn descriptor(&self) -> RawFd {
        match self {
            Input::Udp(udp) => udp.descriptor(),
            Input::Ring(ring) => ring.descriptor(),
        }
    }

    fn dropped(&mut self) -> io::Result<u64> {
        match self {
            Input::Udp(udp) => udp.dropped(),
            Input::Ring(ring) => ring.counted().map(|(_, dropped)| dropped),
        }
    }

    /// Whether the kernel holds nothing more, as far as it says.
    fn is_drained(&mut self) -> bool {
        match self {
            Input::Udp(_) => true,
            Input::Ring(ring) => {
                ring.counted().is_ok_and(|(matched, dropped)| ring.received() + dropped >= matched)
            }
        }
    }
}

pub fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
