//! The text of a topology file: decoding, and line numbers.

use super::TopologyError;

/// Decodes bytes as UTF-8 without a byte-order mark; an error has its line number.
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

/// Line numbers of byte offsets, found by bisection.
pub(super) struct Lines {
    /// Offset of the first byte of each line.
    begins: Vec<usize>,
}

impl Lines {
    pub fn of(text: &str) -> Lines {
        let after_newlines = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1);
        Lines { begins: std::iter::once(0).chain(after_newlines).collect() }
    }

    /// Returns the line number, from 1, of a byte offset.
    pub fn at(&self, place: usize) -> usize {
        self.begins.partition_point(|&begin| begin <= place)
    }
}

/// An excerpt of a file for a message: one short line.
pub(super) fn shown(piece: &str) -> String {
    let short: String = piece.chars().take(40).collect();
    let dots = if piece.chars().nth(40).is_some() { "..." } else { "" };
    format!("{short:?}{dots}")
}
