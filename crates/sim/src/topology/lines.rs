//! Text of a topology file: bytes to text, and places in it to line numbers.

use super::TopologyError;

/// The bytes as text, without a byte-order mark; not UTF-8 or binary is an error with its line.
pub(super) fn text(bytes: &[u8]) -> Result<&str, TopologyError> {
    let line_of = |place: usize| bytes[..place].iter().filter(|&&b| b == b'\n').count() + 1;
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let message = "not UTF-8 text: is this a binary or compressed file, or another encoding?";
            return Err(TopologyError::line(line_of(error.valid_up_to()), message));
        }
    };
    if let Some(place) = bytes.iter().position(|&b| b == 0) {
        return Err(TopologyError::line(line_of(place), "a zero byte: this is a binary file, expected text"));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(TopologyError::new("the file is empty"));
    }
    Ok(text)
}

/// Line numbers of places in a text, found by bisection.
pub(super) struct Lines {
    /// Where each line begins.
    begins: Vec<usize>,
}

impl Lines {
    pub fn of(text: &str) -> Lines {
        let after_newlines = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1);
        Lines { begins: std::iter::once(0).chain(after_newlines).collect() }
    }

    /// Line, from 1, of a byte's place.
    pub fn at(&self, place: usize) -> usize {
        self.begins.partition_point(|&begin| begin <= place)
    }
}

/// A piece of a file as it is shown in a message: one short line.
pub(super) fn shown(piece: &str) -> String {
    let short: String = piece.chars().take(40).collect();
    let dots = if piece.chars().nth(40).is_some() { "..." } else { "" };
    format!("{short:?}{dots}")
}
