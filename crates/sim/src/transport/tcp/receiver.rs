//! A receiver: puts the stream together and says what has come.
//!
//! Segments in order are acknowledged after every second one or a delay; anything else at once: a segment beyond a hole,
//! one that fills a hole, one that came before, and the last of the flow (whose FIN would be). So are the first segments
//! of a connection, and those after a pause or after one that came twice: a sender may have a window of one segment then,
//! and would wait for the delay (quick acknowledgements). An acknowledgement reports the block that changed last first,
//! then others by when they changed. The time that is echoed is that of the segment that moved the stream on first since
//! the last acknowledgement, or of a newer one that came again.
//!
//! Source: RFC 9293 §3.8, RFC 5681 §4.2 (delayed acknowledgements), RFC 2018 §4 (blocks), RFC 7323 §4.3 (the time echoed),
//! RFC 3168 §6.1.3 (echo until CWR), RFC 8257 §3.2 (echo of every mark), RFC 2883 §4 (what has come twice, in the first
//! block); Linux 6, tcp_event_data_recv and tcp_data_queue (quick acknowledgements; behaviour, no code).
//! Differs from the source: no reneging, no FIN of its own; the application reads at once, so that the window
//! is the buffer beyond the last byte in order.

use super::scoreboard::{BLOCKS, Block};
use crate::transport::tcp::config::{AckConfig, EcnEcho};
use crate::units::Time;

/// A segment as it comes.
#[derive(Debug, Clone, Copy)]
pub struct Incoming {
    pub first: u64,
    pub payload: u16,
    pub sent: Time,
    /// What it waited for the processor of its host, in ps.
    pub wait: u64,
    pub last: bool,
    pub marked: bool,
    /// The sender has reduced its window (CWR).
    pub reduced: bool,
}

impl Incoming {
    /// Above its last byte.
    pub fn end(&self) -> u64 {
        self.first + u64::from(self.payload)
    }
}

/// What the receiver answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// Nothing yet: at the latest when the delay is over.
    Later,
    Now,
}

/// The content of an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Every byte below has come.
    pub expected: u64,
    pub blocks: [Block; BLOCKS],
    pub echo: Time,
    /// What the segment whose time is echoed waited.
    pub wait: u64,
    /// ECN echo.
    pub marked: bool,
    /// What has come twice, to be reported once; empty: nothing.
    pub duplicate: Block,
}

impl Answer {
    /// Blocks that it has, the one of a duplicate first.
    pub fn blocks(&self) -> usize {
        let beyond = self.blocks.iter().filter(|block| block.0 < block.1).count();
        (beyond + usize::from(self.duplicate.0 < self.duplicate.1)).min(BLOCKS)
    }
}

#[derive(Debug)]
pub struct Receiver {
    expected: u64,
    /// What has come beyond the first hole, the block that changed last first.
    beyond: Vec<Block>,
    /// With a limited memory: the blocks that acknowledgements tell of, the newest first.
    reported: Vec<Block>,
    limited: bool,
    /// Where the first flow ends that has not arrived, as far as is known, and those behind it on a connection that stays open.
    end: Option<u64>,
    ends: Vec<u64>,
    /// Segments since the last acknowledgement.
    unanswered: u32,
    /// Acknowledgements that are still sent at once.
    quick: u32,
    /// When a segment came in order last.
    last_data: Time,
    /// What has come twice since the last acknowledgement.
    duplicate: Block,
    /// Of the segment to be echoed.
    echo: Time,
    wait: u64,
    /// The newest timestamp that has come, in ticks, if that matters.
    newest: u64,
    /// `expected` of the last acknowledgement.
    answered: u64,
    /// Classic: a mark came and no CWR since. Exact: the last packet was marked.
    congested: bool,
    echoing: EcnEcho,
}

impl Receiver {
    pub fn new(echoing: EcnEcho) -> Receiver {
        Receiver {
            expected: 0,
            beyond: Vec::new(),
            reported: Vec::new(),
            limited: false,
            end: None,
            ends: Vec::new(),
            unanswered: 0,
            quick: 0,
            last_data: Time::ZERO,
            duplicate: (0, 0),
            echo: Time::ZERO,
            wait: 0,
            newest: 0,
            answered: 0,
            congested: false,
            echoing,
        }
    }

    pub fn expected(&self) -> u64 {
        self.expected
    }

    pub fn is_complete(&self) -> bool {
        self.end.is_some_and(|end| end <= self.expected)
    }

    /// Whether a flow has arrived since this was asked last: the connection goes on to the next one.
    pub fn take_end(&mut self) -> bool {
        let arrived = self.is_complete();
        if arrived {
            self.end = (!self.ends.is_empty()).then(|| self.ends.remove(0));
        }
        arrived
    }

    /// The last byte of a flow has come, maybe not for the first time.
    fn note_end(&mut self, end: u64) {
        match self.end {
            _ if end <= self.expected => {}
            None => self.end = Some(end),
            Some(first) if end == first || self.ends.contains(&end) => {}
            Some(first) => {
                self.ends.push(first.max(end));
                self.ends.sort_unstable();
                self.end = Some(first.min(end));
            }
        }
    }

    /// Something waits to be acknowledged.
    pub fn owes(&self) -> bool {
        self.unanswered > 0
    }

    /// Before a segment is taken in: whether what came before must be acknowledged without it, because it says otherwise
    /// about congestion (RFC 8257 §3.2).
    pub fn must_answer_before(&mut self, segment: &Incoming) -> bool {
        self.echoing == EcnEcho::Exact && segment.marked != self.congested && self.owes()
    }

    /// Takes in a segment that comes now.
    pub fn take(&mut self, segment: &Incoming, config: &AckConfig, now: Time) -> Reply {
        match self.echoing {
            EcnEcho::Off => {}
            EcnEcho::Exact => self.congested = segment.marked,
            EcnEcho::Classic => self.congested = segment.marked || self.congested && !segment.reduced,
        }
        let end = segment.end();
        if segment.last {
            self.note_end(end);
        }
        let stale = config.stamp_clock > Time::ZERO && segment.sent.0 / config.stamp_clock.0 < self.newest;
        // What lies behind the stream altogether is answered without a look at its time.
        if !stale && config.stamp_clock > Time::ZERO && end >= self.expected {
            self.newest = segment.sent.0 / config.stamp_clock.0;
        }
        // RFC 7323 §4.3: also of what came before, if it was sent again; ns-3 follows RFC 1323, which leaves that out.
        let again = config.stamp_clock == Time::ZERO && segment.sent > self.echo;
        if segment.first <= self.answered && (self.answered < end || again) && !stale {
            (self.echo, self.wait) = (segment.sent, segment.wait);
        }
        self.unanswered += 1;
        if config.duplicates && self.has((segment.first, end)) {
            self.duplicate = (segment.first, end);
        }
        if segment.first > self.expected {
            let block = (segment.first, end);
            self.limited = config.remembers > 0;
            if self.limited && !self.beyond.iter().any(|b| b.0 <= block.0 && block.1 <= b.1) {
                self.tell(block, config.remembers as usize);
            }
            self.keep(block);
            return Reply::Now;
        }
        if end <= self.expected {
            self.quick = config.quick;
            return Reply::Now;
        }
        if self.expected == 0 || now.saturating_sub(self.last_data) > config.idle {
            self.quick = config.quick;
        }
        self.last_data = now;
        self.expected = end;
        let filled = !self.beyond.is_empty();
        if filled {
            self.join();
            self.reported.retain(|block| block.1 > self.expected);
        }
        let first = segment.first == 0 && config.first_at_once;
        let at_once = filled || first || self.quick > 0 || self.is_complete();
        if at_once || self.unanswered >= config.every { Reply::Now } else { Reply::Later }
    }

    /// All of a block has come.
    pub fn has(&self, (from, to): Block) -> bool {
        to <= self.expected || self.beyond.iter().any(|block| block.0 <= from && to <= block.1)
    }

    /// Keeps a block beyond a hole, in front of all others.
    fn keep(&mut self, (mut from, mut to): Block) {
        let mut touched = false;
        if let Some(first) = self.beyond.first_mut() {
            if first.1 == from && !self.beyond[1..].iter().any(|block| block.0 <= to && from < block.1) {
                self.beyond[0].1 = to;
                return;
            }
        }
        self.beyond.retain(|&(start, end)| {
            let touches = start <= to && from <= end;
            if touches {
                (from, to) = (from.min(start), to.max(end));
                touched = true;
            }
            !touches
        });
        self.beyond.insert(0, (from, to));
    }

    /// Stores a new block before at most `max` others, merged with those that it touches.
    fn tell(&mut self, (mut from, mut to): Block, max: usize) {
        self.reported.retain(|&(start, end)| {
            let touches = end == from || start == to;
            if touches {
                (from, to) = (from.min(start), to.max(end));
            }
            !touches
        });
        self.reported.insert(0, (from, to));
        self.reported.truncate(max);
    }

    /// The hole was filled up to `expected`: moves on over what lies behind it.
    fn join(&mut self) {
        while let Some(at) = self.beyond.iter().position(|block| block.0 <= self.expected) {
            let (_, end) = self.beyond.remove(at);
            self.expected = self.expected.max(end);
        }
    }

    /// The acknowledgement of everything that has come.
    pub fn answer(&mut self) -> Answer {
        let mut blocks = [(0, 0); BLOCKS];
        let reported = if self.limited { &self.reported } else { &self.beyond };
        for (place, block) in blocks.iter_mut().zip(reported) {
            *place = *block;
        }
        if self.owes() {
            self.quick = self.quick.saturating_sub(1);
        }
        self.unanswered = 0;
        self.answered = self.expected;
        let duplicate = std::mem::take(&mut self.duplicate);
        Answer {
            expected: self.expected,
            blocks,
            echo: self.echo,
            wait: self.wait,
            marked: self.congested,
            duplicate,
        }
    }
}
