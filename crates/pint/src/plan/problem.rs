//! What is wrong with a file of queries: every problem with its place, all of them at once.

use std::fmt;

use crate::nearest;

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
    nearest::unknown(what, found, known.iter().copied())
}
