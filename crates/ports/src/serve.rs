//! The process of ports: it takes frames off interfaces and sends them when and as the ports say, until it is
//! ended.
//!
//! In every turn all frames that have come are taken before time advances, and each counts from when the
//! kernel received it. So a process that is late decides as one that is not, and a frame is late only if its
//! link's delay is shorter.

use std::io;

use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};
use weftline_sim::units::Time;

use crate::link::Link;
use crate::plan::Plan;
use crate::socket::{Batch, Interface};
use crate::waiting::{Clock, Histogram, Ready, UNIT_NS, end_on_signal, ended};

/// Rounds of reading in a turn: senders that never pause must not keep what is due from leaving.
const MOST_BATCHES: usize = 4;
const MOST_SAMPLES: usize = 5_000_000;
/// Rounds of reading at the end: who sends on is not waited for.
const MOST_LEFT: usize = 64;

struct Server {
    plan_every: Option<Time>,
    names: crate::frame::Names,
    links: Vec<Link>,
    interfaces: Vec<Interface>,
    /// By interface: the link that begins there.
    link_of: Vec<Option<usize>>,
    ready: Ready,
    clock: Clock,
    frames: u64,
    late: Histogram,
    early: Histogram,
    samples: Vec<(u64, usize, u64)>,
    next_sample: Time,
}

/// Serves ports until SIGTERM; `ready` is called once every interface is open. What was done comes back as
/// JSON.
///
/// Errors: an interface that cannot be opened.
pub fn serve(plan: Plan, ready: impl FnOnce()) -> io::Result<String> {
    end_on_signal();
    let mut server = Server::open(plan)?;
    ready();
    server.run();
    Ok(server.report().to_string())
}

impl Server {
    fn open(plan: Plan) -> io::Result<Server> {
        let mut server = Server {
            plan_every: plan.sample_every,
            names: plan.names,
            links: Vec::new(),
            interfaces: Vec::new(),
            link_of: Vec::new(),
            ready: Ready::new()?,
            clock: Clock::from_now(),
            frames: 0,
            late: Histogram::default(),
            early: Histogram::default(),
            samples: Vec::new(),
            next_sample: Time::ZERO,
        };
        let mut known = FxHashMap::default();
        for direction in plan.directions {
            let from = server.interface(&direction.from, &mut known)?;
            let to = server.interface(&direction.to, &mut known)?;
            server.link_of[from] = Some(server.links.len());
            server.links.push(Link::new(direction, to));
        }
        Ok(server)
    }

    fn interface(&mut self, name: &str, known: &mut FxHashMap<String, usize>) -> io::Result<usize> {
        if let Some(&place) = known.get(name) {
            return Ok(place);
        }
        let opened = Interface::open(name)
            .map_err(|error| io::Error::new(error.kind(), format!("interface {name}: {error}")))?;
        let place = self.interfaces.len();
        self.ready.add(&opened, place)?;
        self.interfaces.push(opened);
        self.link_of.push(None);
        known.insert(name.to_string(), place);
        Ok(place)
    }

    fn run(&mut self) {
        let mut batch = Batch::new();
        while !ended() {
            // Whatever came before this moment can be read now.
            let until = self.clock.now();
            let (places, mut all_read) = self.ready.places();
            for place in places {
                all_read &= self.read(place, &mut batch);
            }
            if all_read {
                for link in &mut self.links {
                    link.advance(until);
                }
            }
            self.send();
            self.sample(until);
            if all_read {
                self.sleep();
            }
        }
    }

    /// Takes the frames of an interface; whether there are none left.
    fn read(&mut self, place: usize, batch: &mut Batch) -> bool {
        let Server { interfaces, links, names, link_of, clock, frames, early, .. } = self;
        let Some(link) = link_of.get(place).copied().flatten() else { return true };
        let (link, offset) = (&mut links[link], clock.offset());
        for _ in 0..MOST_BATCHES {
            let now = clock.now();
            let more = interfaces[place].receive(batch, &mut |stamp, frame| {
                *frames += 1;
                let stamped = stamp.map(|stamp| (i128::from(stamp) - offset).max(0) as u64);
                let at = stamped.map_or(now, |ns| Time::from_ns(ns).min(now));
                early.add(link.take(at, frame, names));
            });
            if !more {
                return true;
            }
        }
        false
    }

    /// Sends all that is due.
    fn send(&mut self) {
        for link in &mut self.links {
            let mut now = self.clock.now();
            while let Some((at, frame)) = link.next(now) {
                let sent = self.interfaces[link.to].send(&frame);
                link.done(frame, sent);
                now = self.clock.now();
                self.late.add(now.saturating_sub(at));
            }
        }
    }

    fn sample(&mut self, now: Time) {
        let Some(every) = self.plan_every.filter(|_| now >= self.next_sample) else { return };
        self.next_sample = Time(now.0 - now.0 % every.0 + every.0);
        let at = (self.clock.offset() + i128::from(now.ns())) as u64;
        for (place, link) in self.links.iter().enumerate() {
            if let Some(bytes) = link.queue_bytes().filter(|_| self.samples.len() < MOST_SAMPLES) {
                self.samples.push((at, place, bytes));
            }
        }
    }

    /// Waits until a frame comes or something is due.
    fn sleep(&self) {
        let next = self.links.iter().filter_map(Link::due).min();
        let sample = self.plan_every.map(|_| self.next_sample);
        let next = [next, sample].into_iter().flatten().min();
        self.ready.wait(next.map(|at| at.saturating_sub(self.clock.now())));
    }

    fn report(&mut self) -> Value {
        // What the kernel still has for us is read, so that its count and ours are of the same frames.
        let mut batch = Batch::new();
        for place in 0..self.interfaces.len() {
            let _ = (0..MOST_LEFT).find(|_| self.read(place, &mut batch));
            self.interfaces[place].count();
        }
        let missed: u64 = self.interfaces.iter().map(|one| one.missed).sum();
        let ports: Map<String, Value> =
            self.links.iter_mut().map(|link| (link.entity.clone(), link.report())).collect();
        let names: Vec<&str> = self.links.iter().map(|link| link.entity.as_str()).collect();
        let lost: Vec<&str> =
            self.links.iter().filter(|link| !link.holds()).map(|link| link.entity.as_str()).collect();
        json!({
            "frames": self.frames,
            "matched": self.interfaces.iter().map(|one| one.matched).sum::<u64>(),
            "missed": missed,
            "refused": self.links.iter().map(|link| link.refused).sum::<u64>(),
            "late": self.late.counts(),
            "out_of_order": self.early.counts(),
            "unit_ns": UNIT_NS,
            "not_conserved": lost,
            "ports": ports,
            "entities": names,
            "samples": self.samples,
        })
    }
}
