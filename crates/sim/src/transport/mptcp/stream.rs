//! A connection's stream at its sender: what has been handed to which subflow, what is acknowledged, what is to be sent again.
//!
//! The stream is cut into pieces of one segment, anew with each flow that is appended to it; a piece travels whole, on any subflow, and on several if it must. Each has a
//! mask of the subflows that carry it, so that nobody carries it twice, and pieces whose subflow has timed out or is gone wait in
//! line for another. The shared window and the send buffer bound what is out at a time.
//!
//! Source: RFC 8684 §3.3.1 (data sequence numbers), §3.3.4 (the shared window), §3.3.6 (retransmission on other subflows);
//! Raiciu et al., "How hard can it be?", NSDI 2012, §4.2 (opportunistic retransmission); also where the send buffer is
//! what is full, and only for subflows that are slower, as in the scheduler of multipath-tcp.org
//! (`mptcp_rcv_buf_optimization`); ours: also for what is late.

use crate::transport::tcp::rto::RttEstimator;
use crate::units::Time;
use std::collections::VecDeque;

/// Subflows that a connection may have at a time: they have a bit each.
pub const MAX_SUBFLOWS: usize = 32;

/// A piece that is out.
#[derive(Debug, Clone, Copy, Default)]
struct Piece {
    /// Subflows that carry it.
    on: u32,
    /// When it left on the one that was given it last; none: it has not.
    left: Option<Time>,
    /// It has left the host.
    sent: bool,
    /// It waits to be sent again.
    waits: bool,
}

/// What a subflow is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Given {
    pub piece: u64,
    /// Its first byte in the stream.
    pub start: u64,
    pub length: u16,
    /// A flow ends with it.
    pub last: bool,
    /// It is what holds the shared window or the send buffer up, carried by these others.
    pub unblocks: u32,
}

/// The piece that holds the shared window or the send buffer up: the subflows that carry it, and when it left on the last
/// of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocking {
    pub on: u32,
    pub left: Option<Time>,
}

impl Blocking {
    /// A subflow that carries it does not get it across in good time: its answer is late, or comes later than that to a
    /// copy which a subflow with room sends. Of the one the round-trip time is `theirs`, of the other `own`.
    pub fn is_held_up(&self, theirs: &RttEstimator, own: &RttEstimator, now: Time) -> bool {
        let out = self.left.map(|left| now.saturating_sub(left));
        out.zip(theirs.late()).is_some_and(|(out, late)| out > late) || is_slower(theirs, own)
    }
}

/// A subflow takes longer than another one, by more than a copy takes on that (multipath-tcp.org: more than four times
/// as long).
pub fn is_slower(theirs: &RttEstimator, own: &RttEstimator) -> bool {
    theirs.smoothed().zip(own.smoothed()).is_some_and(|(theirs, own)| theirs.saturating_sub(own) > own)
}

/// A flow in the stream: the number of its first piece, its first byte, and the one behind its last.
#[derive(Debug, Clone, Copy)]
struct Run {
    piece: u64,
    start: u64,
    end: u64,
}

#[derive(Debug)]
pub struct Stream {
    /// Flows that are not acknowledged, at least the last one.
    runs: VecDeque<Run>,
    size: u64,
    segment: u64,
    /// Bytes that may be out beyond what is acknowledged.
    buffer: u64,
    acknowledged: u64,
    /// The receiver takes bytes below.
    receivable: u64,
    /// Number of the first piece that is out, and all from there to the next new one.
    first: u64,
    pieces: VecDeque<Piece>,
    /// Pieces to be sent again, in the order in which they came to be.
    again: VecDeque<u64>,
}

impl Stream {
    /// Of so many bytes, in pieces of `segment`, of which `buffer` may be out.
    pub fn new(size: u64, segment: u32, buffer: u64) -> Stream {
        Stream {
            runs: VecDeque::from([Run { piece: 0, start: 0, end: size }]),
            size,
            segment: u64::from(segment.max(1)),
            buffer: buffer.max(u64::from(segment)),
            acknowledged: 0,
            receivable: 0,
            first: 0,
            pieces: VecDeque::new(),
            again: VecDeque::new(),
        }
    }

    /// Appends a flow of so many bytes.
    pub fn append(&mut self, bytes: u64) {
        let last = self.run(u64::MAX);
        let piece = last.piece + (last.end - last.start).div_ceil(self.segment);
        self.runs.push_back(Run { piece, start: self.size, end: self.size + bytes });
        self.size += bytes;
    }

    /// The flow that a piece is of; those behind the end are of the last.
    fn run(&self, piece: u64) -> Run {
        let run = self.runs.iter().rev().find(|run| run.piece <= piece);
        *run.unwrap_or(&self.runs[0])
    }

    /// The send buffer has changed.
    pub fn set_buffer(&mut self, bytes: u64) {
        self.buffer = bytes.max(self.segment);
    }

    /// Every byte below has been acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    pub fn is_done(&self) -> bool {
        self.acknowledged == self.size
    }

    /// The bytes of a piece, from the first to the one behind the last, and whether a flow ends with it.
    fn bounds(&self, piece: u64) -> (u64, u64, bool) {
        let run = self.run(piece);
        let start = (run.start + (piece - run.piece) * self.segment).min(run.end);
        let end = (start + self.segment).min(run.end);
        (start, end, end == run.end)
    }

    /// The next new piece.
    pub fn next(&self) -> u64 {
        self.first + self.pieces.len() as u64
    }

    /// Everything below `acknowledged` has come, and the receiver takes `window` bytes beyond.
    pub fn acknowledge(&mut self, acknowledged: u64, window: u64) {
        debug_assert!(acknowledged <= self.bounds(self.next()).0);
        self.acknowledged = self.acknowledged.max(acknowledged);
        self.receivable = self.receivable.max(acknowledged + window);
        while !self.pieces.is_empty() && self.bounds(self.first).1 <= self.acknowledged {
            self.pieces.pop_front();
            self.first += 1;
        }
        while self.runs.len() > 1 && self.runs[0].end <= self.acknowledged {
            self.runs.pop_front();
        }
    }

    fn piece_mut(&mut self, number: u64) -> Option<&mut Piece> {
        let at = number.checked_sub(self.first)?;
        self.pieces.get_mut(at as usize)
    }

    fn give(&mut self, number: u64, subflow: usize, unblocks: u32) -> Given {
        let (start, end, last) = self.bounds(number);
        if let Some(piece) = self.piece_mut(number) {
            piece.on |= 1 << subflow;
            piece.left = None;
        }
        Given { piece: number, start, length: (end - start) as u16, last, unblocks }
    }

    /// What a subflow with room gets: a piece that waits to be sent again and is not on it, or new data.
    pub fn next_for(&mut self, subflow: usize) -> Option<Given> {
        self.again_for(subflow).or_else(|| self.new_for(subflow))
    }

    /// A piece that waits to be sent again and is not on this subflow.
    pub fn again_for(&mut self, subflow: usize) -> Option<Given> {
        let number = self.take_again(subflow)?;
        Some(self.give(number, subflow, 0))
    }

    /// The same without what waits to be sent again.
    pub fn new_for(&mut self, subflow: usize) -> Option<Given> {
        let next = self.next();
        let (start, end, _) = self.bounds(next);
        if start >= self.size || end > self.room_ends() {
            return None;
        }
        self.pieces.push_back(Piece::default());
        Some(self.give(next, subflow, 0))
    }

    /// The shared window and the send buffer let bytes below out.
    fn room_ends(&self) -> u64 {
        self.receivable.min(self.acknowledged + self.buffer)
    }

    /// Where the shared window or the send buffer lets no new data out: what holds it up, unless this subflow carries
    /// it too.
    pub fn blocking(&self, subflow: usize) -> Option<Blocking> {
        let (start, end, _) = self.bounds(self.next());
        let full = start < self.size && end > self.room_ends();
        let front = self.pieces.front().filter(|piece| full && piece.on & 1 << subflow == 0)?;
        Some(Blocking { on: front.on, left: front.left })
    }

    /// Gives the piece that holds it up to this subflow too.
    pub fn unblock(&mut self, subflow: usize, blocking: Blocking) -> Given {
        self.give(self.first, subflow, blocking.on)
    }

    /// What a subflow that carries everything gets from piece `from` on.
    pub fn copy_for(&mut self, subflow: usize, from: u64) -> Option<Given> {
        let from = from.max(self.first);
        match from < self.next() {
            true => Some(self.give(from, subflow, 0)),
            false => self.next_for(subflow),
        }
    }

    /// The first piece that waits to be sent again and is not on this subflow.
    fn take_again(&mut self, subflow: usize) -> Option<u64> {
        while let Some(&number) = self.again.front().filter(|&&number| number < self.first) {
            debug_assert!(number < self.first);
            self.again.pop_front();
        }
        let (first, pieces) = (self.first, &self.pieces);
        let fits =
            |&number: &u64| number >= first && pieces[(number - first) as usize].on & 1 << subflow == 0;
        let at = self.again.iter().position(fits)?;
        let number = self.again.remove(at)?;
        self.piece_mut(number)?.waits = false;
        Some(number)
    }

    /// A piece is to be sent on another subflow too, unless it has come.
    pub fn send_again(&mut self, number: u64) {
        let Some(piece) = self.piece_mut(number) else { return };
        if !std::mem::replace(&mut piece.waits, true) {
            self.again.push_back(number);
        }
    }

    /// A piece leaves on a subflow for the first time; whether it had left on another before.
    pub fn leaves(&mut self, number: u64, now: Time) -> bool {
        self.piece_mut(number).is_none_or(|piece| {
            piece.left = Some(now);
            std::mem::replace(&mut piece.sent, true)
        })
    }

    /// A subflow is gone: what only it carried is to be sent again.
    pub fn lose(&mut self, subflow: usize) {
        for at in 0..self.pieces.len() {
            let piece = &mut self.pieces[at];
            let was = piece.on;
            piece.on &= !(1 << subflow);
            if was != 0 && piece.on == 0 {
                let number = self.first + at as u64;
                self.send_again(number);
            }
        }
    }

    /// Pieces that wait to be sent again.
    #[cfg(test)]
    fn waiting(&self) -> usize {
        self.again.len()
    }
}

#[cfg(test)]
mod tests;
