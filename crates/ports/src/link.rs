//! One direction between two interfaces: a port with its link, or the link alone where a kernel has the port.

use std::collections::VecDeque;

use serde_json::{Value, json};
use weftline_sim::units::Time;

use crate::frame::Names;
use crate::plan::Direction;
use crate::port::EnginePort;
use crate::transmitter::Transmitter;

/// Frames that may wait and be on the link: more are refused and counted, so that no plan fills the memory.
const MOST_FRAMES: usize = 1 << 17;

pub struct Link {
    pub entity: String,
    /// The interface by which frames go out, by its place in the process.
    pub to: usize,
    delay: Time,
    port: Option<EnginePort>,
    /// Of a link without a port.
    transmitter: Option<Transmitter>,
    /// Frames of a link without a port, by the time at which they are due.
    wire: VecDeque<(Time, Vec<u8>)>,
    last: Time,
    received: u64,
    delivered: u64,
    /// The kernel did not take them; they were too long; there was no room.
    pub refused: u64,
}

impl Link {
    pub fn new(direction: Direction, to: usize) -> Link {
        Link {
            entity: direction.entity,
            to,
            delay: direction.delay,
            port: direction.port,
            transmitter: direction.transmitter,
            wire: VecDeque::new(),
            last: Time::ZERO,
            received: 0,
            delivered: 0,
            refused: 0,
        }
    }

    /// A frame came at this time; how much earlier than what was done already.
    pub fn take(&mut self, at: Time, frame: Option<&[u8]>, names: &mut Names) -> Time {
        let late = self.last.saturating_sub(at);
        self.last = self.last.max(at);
        self.received += 1;
        let Some(frame) = frame.filter(|_| self.waiting() < MOST_FRAMES) else {
            self.refused += 1;
            return late;
        };
        match &mut self.port {
            Some(port) => port.offer(self.last, names.packet(frame, self.last), frame),
            None => {
                let last = self.last;
                let ends = self.transmitter.as_mut().map_or(last, |one| one.ends(last, frame.len()));
                self.wire.push_back((ends + self.delay, frame.to_vec()));
            }
        }
        late
    }

    fn waiting(&self) -> usize {
        match &self.port {
            Some(port) => port.on_link() + port.account().queued as usize,
            None => self.wire.len(),
        }
    }

    /// Advances time; all earlier frames must have been taken.
    pub fn advance(&mut self, to: Time) {
        if let Some(port) = &mut self.port {
            self.last = self.last.max(to);
            port.advance(self.last);
        }
    }

    /// When there is something to do: a frame is due at the far end, or a packet must leave in time to be
    /// there.
    pub fn due(&self) -> Option<Time> {
        let Some(port) = &self.port else { return self.wire.front().map(|(at, _)| *at) };
        let leaves = port.departs_at().map(|at| at + self.delay);
        [leaves, port.arrives_at()].into_iter().flatten().min()
    }

    /// The next frame that is due, and since when.
    pub fn next(&mut self, now: Time) -> Option<(Time, Vec<u8>)> {
        match &mut self.port {
            Some(port) => port.arrived(now),
            None => {
                self.wire.front().filter(|(at, _)| *at <= now)?;
                self.wire.pop_front()
            }
        }
    }

    /// A frame that was due was sent or refused.
    pub fn done(&mut self, frame: Vec<u8>, sent: bool) {
        self.delivered += u64::from(sent);
        self.refused += u64::from(!sent);
        if let Some(port) = &mut self.port {
            port.give_back(frame);
        }
    }

    /// Bytes in the queue, where it has one.
    pub fn queue_bytes(&self) -> Option<u64> {
        self.port.as_ref().map(EnginePort::queue_bytes)
    }

    /// Whether received = delivered + refused + dropped + queued + on the link.
    pub fn holds(&self) -> bool {
        let port = self.port.as_ref().map(EnginePort::account);
        let here = self.port.as_ref().map_or(self.wire.len(), EnginePort::on_link) as u64;
        let (dropped, queued) = port.map_or((0, 0), |one| (one.dropped, one.queued));
        port.is_none_or(|one| one.holds())
            && self.received == self.delivered + self.refused + dropped + queued + here
    }

    pub fn report(&mut self) -> Value {
        let holds = self.holds();
        let mut report = json!({
            "received": self.received, "delivered": self.delivered, "refused": self.refused, "conserved": holds,
        });
        let Some(port) = &mut self.port else {
            report["on_link"] = self.wire.len().into();
            return report;
        };
        let account = port.account();
        let own = json!({
            "on_link": port.on_link(), "sent": account.sent, "bytes_sent": account.bytes_sent,
            "dropped": account.dropped, "bytes_dropped": account.bytes_dropped, "queued": account.queued,
            "bytes_queued": account.bytes_queued, "marked": account.marked, "rate_bps": port.rate().0,
        });
        let counters = port.counters();
        let groups = weftline_sim::queue::counters();
        let keys = groups.iter().flat_map(|group| group.counters).map(|counter| counter.key);
        let counted: serde_json::Map<String, Value> =
            keys.filter_map(|key| Some((key.to_string(), counters.get(key)?.into()))).collect();
        if let (Some(to), Value::Object(from)) = (report.as_object_mut(), own) {
            to.extend(from);
            to.insert("counters".to_string(), counted.into());
        }
        report
    }
}
