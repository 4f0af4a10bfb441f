//! What is wrong with a file of queries: every problem with its place, all of them at once.

use std::fmt;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file as the user named it.
    pub file: String,
    /// Line, from 1; none where something is missing from the whole file.
    pub line: Option<usize>,
    /// The key, such as `query.latency.bits`; empty where there is none.
    pub key: String,
    /// What was expected, and the nearest known name.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: ", self.file)?,
            None => write!(f, "{}: ", self.file)?,
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// Everything that is wrong with a file, by line; never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n"))]
pub struct FileError {
    pub problems: Vec<Problem>,
}

impl FileError {
    /// Sorts by line, those without one last.
    pub(super) fn new(mut problems: Vec<Problem>) -> FileError {
        problems.sort_by_key(|problem| problem.line.unwrap_or(usize::MAX));
        FileError { problems }
    }
}

/// `unknown value "hop-latancy": did you mean "hop-latency"? (known: ...)`
pub(crate) fn unknown(what: &str, found: &str, known: &[&str]) -> String {
    let list = known.join(", ");
    match nearest(found, known) {
        Some(near) => format!("unknown {what} \"{found}\": did you mean \"{near}\"? (known: {list})"),
        None => format!("unknown {what} \"{found}\" (known: {list})"),
    }
}

/// The known name with the fewest edits from `found`, if it is near enough to be meant.
fn nearest<'n>(found: &str, known: &[&'n str]) -> Option<&'n str> {
    let limit = (found.chars().count() / 3).max(2);
    let near =
        known.iter().map(|&name| (edits(found, name), name)).filter(|(distance, _)| *distance <= limit);
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// Edit distance (insert, delete, replace) of the first 64 characters, case ignored.
fn edits(a: &str, b: &str) -> usize {
    let letters = |text: &str| text.to_lowercase().chars().take(64).collect::<Vec<_>>();
    let (a, b) = (letters(a), letters(b));
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_offered_and_a_far_one_is_not() {
        assert_eq!(nearest("hop-latancy", &["switch-id", "hop-latency"]), Some("hop-latency"));
        assert_eq!(nearest("Bits", &["bits", "seed"]), Some("bits"));
        assert_eq!(nearest("temperature", &["bits", "seed"]), None);
    }
}
