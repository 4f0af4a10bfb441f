//! Captures as points of observation: in which order they are read, and which of them continue each other.
//!
//! A capture continues an earlier one if it begins when that one has ended, as the files of `tcpdump -C` do,
//! and describes the same interfaces. Of several that it could continue, it continues the one whose name
//! begins most like its own, then the one that ended last. Captures whose times overlap are different points.
//! They are read in the order in which they begin, so that the order in which they are given changes nothing.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use crate::capture::{CaptureError, First, MAX_CAPTURES, Problem, Reader};

/// Which captures are one point of observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Points {
    /// Those that continue each other.
    #[default]
    ByTime,
    /// Each alone.
    Each,
    /// All.
    One,
}

impl Points {
    pub const NAMES: [(&str, Points); 3] =
        [("by-time", Points::ByTime), ("each", Points::Each), ("one", Points::One)];

    pub fn named(name: &str) -> Option<Points> {
        Points::NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, points)| points)
    }
}

/// A capture that was read.
struct Ended {
    path: PathBuf,
    first: First,
    /// The latest time of its packets.
    last_ns: u64,
}

struct Waiting {
    path: PathBuf,
    /// None if it has no packets.
    first: Option<First>,
    /// Kept if it is a stream, which cannot be opened again.
    reader: Option<Reader>,
}

/// A capture whose turn it is.
pub struct Turn {
    pub path: PathBuf,
    pub reader: Reader,
    pub point: u16,
    first: Option<First>,
}

/// Captures that are read one after the other.
pub struct Series {
    law: Points,
    /// The next one at the end.
    waiting: Vec<Waiting>,
    /// By point: the last capture that was read.
    points: Vec<Option<Ended>>,
}

impl Series {
    /// Error: a capture of which nothing can be read, or too many of them.
    pub fn open(paths: Vec<PathBuf>, law: Points) -> Result<Series, CaptureError> {
        if let Some(path) = paths.get(MAX_CAPTURES) {
            let problem = Problem::TooMany(MAX_CAPTURES + 1);
            return Err(CaptureError { name: path.display().to_string(), record: 1, byte: 0, problem });
        }
        let begin = |path: PathBuf| {
            let mut reader = Reader::open(&path)?;
            let first = reader.first()?;
            let reader = (!is_file(&path)).then_some(reader);
            Ok(Waiting { path, first, reader })
        };
        let mut waiting = paths.into_iter().map(begin).collect::<Result<Vec<_>, CaptureError>>()?;
        waiting.sort_by_cached_key(|capture| {
            Reverse((capture.first.as_ref().map(|first| first.time_ns), capture.path.clone()))
        });
        Ok(Series { law, waiting, points: Vec::new() })
    }

    /// The next capture, which is read to its end before the one after it; None after the last one.
    pub fn next_turn(&mut self) -> Result<Option<Turn>, CaptureError> {
        let Some(Waiting { path, first, reader }) = self.waiting.pop() else { return Ok(None) };
        let reader = reader.map_or_else(|| Reader::open(&path), Ok)?;
        let point = self.point(&path, first.as_ref());
        if point == self.points.len() {
            self.points.push(None);
        }
        Ok(Some(Turn { path, reader, point: point as u16, first }))
    }

    /// Tells that a capture was read, whose latest packet was of this time.
    pub fn end(&mut self, turn: Turn, last_ns: u64) {
        let ended = turn.first.map(|first| Ended { path: turn.path, first, last_ns });
        self.points[usize::from(turn.point)] = ended;
    }

    fn point(&self, path: &Path, first: Option<&First>) -> usize {
        let new = self.points.len();
        match self.law {
            Points::Each => new,
            Points::One => 0,
            Points::ByTime => {
                let Some(first) = first else { return new };
                let ended = self.points.iter().enumerate();
                let continued = ended
                    .filter_map(|(point, ended)| ended.as_ref().map(|ended| (point, ended)))
                    .filter(|(_, ended)| ended.is_continued_by(first))
                    .max_by_key(|(_, ended)| (alike(&ended.path, path), ended.last_ns, &ended.path));
                continued.map_or(new, |(point, _)| point)
            }
        }
    }
}

impl Ended {
    fn is_continued_by(&self, next: &First) -> bool {
        let in_time = self.last_ns <= next.time_ns && self.first.time_ns < next.time_ns;
        in_time && self.first.interfaces == next.interfaces
    }
}

/// With how many equal bytes two names begin.
fn alike(one: &Path, other: &Path) -> usize {
    let bytes = |path: &Path| path.as_os_str().as_encoded_bytes().to_vec();
    bytes(one).into_iter().zip(bytes(other)).take_while(|(a, b)| a == b).count()
}

fn is_file(path: &Path) -> bool {
    path.as_os_str() != "-" && path.metadata().is_ok_and(|about| about.is_file())
}
