//! GOAL as text: `num_ranks N`, then for every rank `rank R { ... }` with lines
//!
//! ```text
//! [label:] send SIZEb to PEER [tag T] [cpu C] [nic K]
//! [label:] recv SIZEb from PEER [tag T] [cpu C] [nic K]     -1: any source, any tag
//! [label:] calc TIME [cpu C]                                nanoseconds
//! label1 requires label2                                    label1 starts after label2 has ended
//! label1 irequires label2                                   ... after label2 has started
//! ```
//!
//! Source: Hoefler, Siebert and Lumsdaine, "Group operation assembly language", ICPP 2009; the grammar is
//! that of LogGOPSim's txt2bin.re. Differs from it: ranks may come in any order.

use super::super::graph::Listed;
use super::super::graph::listed::{Op, RankList};
use super::{Choices, Imported, MAX_BYTES};
use crate::parameters::nearest;
use crate::units::Time;
use rustc_hash::FxHashMap;

const WORDS: [&str; 5] = ["send", "recv", "calc", "requires", "irequires"];
/// Characters of a message at most.
const LONGEST_MESSAGE: usize = 300;
/// Bytes of a rank without operations.
const SHORTEST_RANK: u64 = 10;

/// The operations of a rank so far.
#[derive(Default)]
struct Rank<'t> {
    ops: Vec<Op>,
    places: Vec<u64>,
    resources: Vec<(u8, u8)>,
    ends: Vec<(u32, u32)>,
    starts: Vec<(u32, u32)>,
    labels: FxHashMap<&'t str, u32>,
}

impl Rank<'_> {
    fn list(mut self) -> RankList {
        self.ops.shrink_to_fit();
        self.places.shrink_to_fit();
        RankList::new(self.ops, self.places, &self.ends, &self.starts).with_resources(self.resources)
    }
}

/// One line's words.
struct Line<'t, 'n> {
    name: &'n str,
    number: u64,
    words: std::iter::Peekable<std::str::SplitAsciiWhitespace<'t>>,
    ranks: u32,
}

impl<'t> Line<'t, '_> {
    fn error(&self, message: impl std::fmt::Display) -> String {
        let mut text = message.to_string();
        // A word may be a whole file.
        if let Some((at, _)) = text.char_indices().nth(LONGEST_MESSAGE) {
            text.truncate(at);
            text.push_str(" ...");
        }
        format!("{}:{}: {text}", self.name, self.number)
    }

    fn next(&mut self, expected: &str) -> Result<&'t str, String> {
        self.words.next().ok_or_else(|| self.error(format!("expected {expected}, found the end of the line")))
    }

    fn number(&mut self, what: &str) -> Result<u64, String> {
        let word = self.next(what)?;
        word.parse().map_err(|_| self.error(format!("expected {what}, found \"{word}\"")))
    }

    fn word(&mut self, wanted: &str) -> Result<(), String> {
        let word = self.next(&format!("\"{wanted}\""))?;
        if word == wanted {
            Ok(())
        } else {
            Err(self.error(format!("expected \"{wanted}\", found \"{word}\"")))
        }
    }

    /// `8b` or `8 b`.
    fn size(&mut self) -> Result<u64, String> {
        let word = self.next("a size such as 8b")?;
        let number = match word.strip_suffix('b') {
            Some(number) => number,
            None => {
                self.word("b")?;
                word
            }
        };
        let size = number
            .parse()
            .map_err(|_| self.error(format!("expected a size such as 8b, found \"{word}\"")))?;
        if size > MAX_BYTES {
            return Err(self.error(format!("{size} bytes are above the limit of 1 TB")));
        }
        Ok(size)
    }

    /// A rank; none: -1, any.
    fn peer(&mut self, any: bool) -> Result<Option<u32>, String> {
        let word = self.next("a rank")?;
        if any && word == "-1" {
            return Ok(None);
        }
        match word.parse::<u32>() {
            Ok(rank) if rank < self.ranks => Ok(Some(rank)),
            Ok(rank) => Err(self.error(format!("rank {rank} does not exist: the file has {}", self.ranks))),
            Err(_) => Err(self.error(format!("expected a rank, found \"{word}\""))),
        }
    }

    /// The value of an option, if it comes next.
    fn option(&mut self, key: &str) -> Result<Option<&'t str>, String> {
        if self.words.next_if_eq(&key).is_none() {
            return Ok(None);
        }
        self.next(&format!("the value of {key}")).map(Some)
    }

    fn tag(&mut self, any: bool) -> Result<Option<u32>, String> {
        match self.option("tag")? {
            None => Ok(Some(0)),
            Some("-1") if any => Ok(None),
            Some(word) => {
                let tag = word.parse().ok().filter(|&tag: &u32| tag < u32::MAX);
                tag.map(Some).ok_or_else(|| self.error(format!("expected a tag, found \"{word}\"")))
            }
        }
    }

    fn resource(&mut self, key: &str) -> Result<u8, String> {
        let Some(word) = self.option(key)? else { return Ok(0) };
        word.parse().map_err(|_| self.error(format!("{key}: expected 0 to 255, found \"{word}\"")))
    }

    fn end(&mut self) -> Result<(), String> {
        match self.words.next() {
            None => Ok(()),
            Some(word) => Err(self.error(format!(
                "expected the end of the line, found \"{word}\" (tag, cpu, nic: in this order)"
            ))),
        }
    }
}

/// Reads a file. The error begins with `name` and the line.
pub fn read(name: &str, text: &str, choices: &Choices) -> Result<Imported, String> {
    let mut count: Option<u32> = None;
    let mut lists: Vec<Option<RankList>> = Vec::new();
    let mut open: Option<(u32, Rank)> = None;
    let (mut comment, mut last) = (false, 0);
    for (at, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let number = at as u64 + 1;
        last = number;
        let (left, torn) = without_comments(line, &mut comment);
        let words = left.split_ascii_whitespace().peekable();
        let mut line = Line { name, number, words, ranks: count.unwrap_or(0) };
        if torn {
            return Err(line.error("a comment stands between words: put it on a line of its own"));
        }
        if left.is_empty() || left.starts_with("//") {
            continue;
        }
        let Some(known) = count else {
            line.word("num_ranks")?;
            let ranks = line.number("the number of ranks")?;
            let room = (text.len() as u64 / SHORTEST_RANK + 1).min(u64::from(u32::MAX));
            if ranks == 0 || ranks > room {
                return Err(line.error(format!("num_ranks {ranks}: the file has room for 1 to {room}")));
            }
            line.end()?;
            count = Some(ranks as u32);
            lists.resize(ranks as usize, None);
            continue;
        };
        match &mut open {
            None => {
                line.word("rank")?;
                let word = line.next("a rank")?;
                // The bracket may follow the number directly.
                let (word, bracket) = word.strip_suffix('{').map_or((word, false), |word| (word, true));
                let rank: u32 =
                    word.parse().map_err(|_| line.error(format!("expected a rank, found \"{word}\"")))?;
                if rank >= known {
                    return Err(line.error(format!("rank {rank} does not exist: the file has {known}")));
                }
                if lists[rank as usize].is_some() {
                    return Err(line.error(format!("rank {rank} comes twice")));
                }
                if !bracket {
                    line.word("{")?;
                }
                line.end()?;
                open = Some((rank, Rank::default()));
            }
            Some((rank, operations)) => {
                if line.words.peek() == Some(&"}") {
                    line.words.next();
                    line.end()?;
                    let rank = *rank as usize;
                    lists[rank] = open.take().map(|(_, operations)| operations.list());
                } else {
                    operation(&mut line, operations)?;
                }
            }
        }
    }
    if let Some((rank, _)) = open {
        return Err(format!("{name}:{last}: rank {rank} does not end: expected }}"));
    }
    if count.is_none() {
        return Err(format!("{name}:{}: expected \"num_ranks\", found the end of the file", last.max(1)));
    }
    let missing = lists.iter().position(Option::is_none);
    if let Some(rank) = missing {
        return Err(format!("{name}:{last}: rank {rank} is missing: the file has {} ranks", lists.len()));
    }
    finished((name, "line"), lists.into_iter().flatten().collect(), choices)
}

/// What a line has outside of comments, and whether a comment is between words of it. `inside`: whether the line is within a comment.
fn without_comments<'t>(line: &'t str, inside: &mut bool) -> (&'t str, bool) {
    let (mut left, mut rest) = ("", line);
    loop {
        let piece = if *inside {
            let Some(end) = rest.find("*/") else { return (left, false) };
            rest = &rest[end + 2..];
            *inside = false;
            continue;
        } else if rest.trim_start().starts_with("//") {
            // Nothing begins or ends in such a line.
            std::mem::take(&mut rest)
        } else if let Some(begin) = rest.find("/*") {
            *inside = true;
            let piece = &rest[..begin];
            rest = &rest[begin + 2..];
            piece
        } else {
            std::mem::take(&mut rest)
        };
        let piece = piece.trim();
        if !piece.is_empty() && !left.is_empty() {
            return (left, true);
        }
        if left.is_empty() {
            left = piece;
        }
        if rest.is_empty() && !*inside {
            return (left, false);
        }
    }
}

/// A line within a rank.
fn operation<'t>(line: &mut Line<'t, '_>, rank: &mut Rank<'t>) -> Result<(), String> {
    let first = line.next("an operation")?;
    let (label, word) = match first.strip_suffix(':') {
        Some(label) => (Some(label), line.next("send, recv or calc")?),
        None => (None, first),
    };
    if let Some(label) = label {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !label.starts_with(|c: char| c.is_ascii_alphabetic()) || !label.chars().all(plain) {
            return Err(
                line.error(format!("label \"{label}\": expected a letter, then letters, digits or _"))
            );
        }
    }
    let op = match word {
        "send" => {
            let bytes = line.size()?;
            line.word("to")?;
            let to = line.peer(false)?.unwrap_or(0);
            let tag = line.tag(false)?.unwrap_or(0);
            Op::Send { to, bytes, tag }
        }
        "recv" => {
            let bytes = line.size()?;
            line.word("from")?;
            let from = line.peer(true)?;
            Op::Receive { from, bytes, tag: line.tag(true)? }
        }
        "calc" => {
            let ns = line.number("a time in nanoseconds")?;
            let time = ns.checked_mul(1000).map(Time).filter(|&time| time < super::super::spec::LAST_START);
            let time = time.ok_or_else(|| line.error(format!("calc {ns}: longer than 46 days")))?;
            Op::Compute { time, stream: 0 }
        }
        _ if label.is_none() => return dependency(line, word, rank),
        _ => return Err(line.error(unknown(word))),
    };
    let cpu = line.resource("cpu")?;
    let nic = if matches!(op, Op::Compute { .. }) { 0 } else { line.resource("nic")? };
    line.end()?;
    let number = rank.ops.len() as u32;
    if let Some(label) = label
        && let Some(before) = rank.labels.insert(label, number)
    {
        let place = rank.places[before as usize];
        return Err(line.error(format!("label \"{label}\" is in line {place} already")));
    }
    rank.ops.push(match op {
        Op::Compute { time, .. } => Op::Compute { time, stream: u16::from(cpu) },
        other => other,
    });
    rank.places.push(line.number);
    rank.resources.push((cpu, nic));
    Ok(())
}

/// `label requires label`.
fn dependency<'t>(line: &mut Line<'t, '_>, later: &'t str, rank: &mut Rank<'t>) -> Result<(), String> {
    let Some(word) = line.words.next() else { return Err(line.error(unknown(later))) };
    if word != "requires" && word != "irequires" {
        // The first word was to be an operation.
        return Err(line.error(unknown(if rank.labels.contains_key(later) { word } else { later })));
    }
    let earlier = line.next("a label")?;
    line.end()?;
    let place = |label: &str| {
        rank.labels.get(label).copied().ok_or_else(|| {
            let near = nearest(label, rank.labels.keys().copied());
            let near = near.map_or(String::new(), |near| format!(": did you mean \"{near}\"?"));
            format!(
                "{}:{}: no operation before this line has the label \"{label}\"{near}",
                line.name, line.number
            )
        })
    };
    let pair = (place(earlier)?, place(later)?);
    if word == "requires" {
        rank.ends.push(pair)
    } else {
        rank.starts.push(pair)
    }
    Ok(())
}

fn unknown(word: &str) -> String {
    let near = nearest(word, WORDS.into_iter());
    let near = near.map_or(String::new(), |near| format!(": did you mean \"{near}\"?"));
    format!("unknown operation \"{word}\"{near} (known: {})", WORDS.join(", "))
}

/// The graph of all ranks, none of whose operations waits for itself. `place`: what their places are.
pub(super) fn finished(
    (name, place): (&str, &'static str),
    mut ranks: Vec<RankList>,
    choices: &Choices,
) -> Result<Imported, String> {
    for (rank, list) in ranks.iter().enumerate() {
        if let Some(cycle) = super::cycle(list, place) {
            return Err(format!("{name}: rank {rank}: {cycle}"));
        }
    }
    if ranks.iter().all(|list| list.ops.is_empty()) {
        return Err(format!("{name}: no rank has an operation"));
    }
    let mut assumed = Vec::new();
    let nics = ranks.iter().flat_map(|list| list.resources.iter()).map(|one| one.1).max().unwrap_or(0);
    if nics > 0 {
        assumed.push(format!("operations name NICs 0 to {nics}: every rank is one host, with one"));
    }
    assumed.extend(super::with_a_byte_each(&mut ranks));
    assumed.extend(super::matches::problem(&ranks, place));
    let graph = Listed::new(ranks, Vec::new(), Vec::new(), choices.send_ends, "goal");
    let graph = graph.map_err(|message| format!("{name}: {message}"))?;
    Ok(Imported { graph: graph.with_places(place), assumed })
}
