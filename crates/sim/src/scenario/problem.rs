//! What is wrong with a scenario: every problem with its place, all of them at once.

use std::collections::HashSet;
use std::fmt;

use super::document::Origin;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Problem {
    /// The file as the user named it.
    pub file: String,
    pub origin: Origin,
    /// The key, such as `transport.controller.kind`; empty where there is none.
    pub path: String,
    /// What was expected, and the nearest known name.
    pub message: String,
}

impl Problem {
    pub fn new(file: &str, origin: Origin, path: &str, message: String) -> Problem {
        Problem { file: file.to_string(), origin, path: path.to_string(), message }
    }

    /// Line of the file, counted from 1, if it has one.
    pub fn line(&self) -> Option<usize> {
        match self.origin {
            Origin::Line(line) => Some(line),
            _ => None,
        }
    }

    /// Problems of the file by line, then what is missing, then those of `--set`.
    fn rank(&self) -> (u8, usize) {
        match self.origin {
            Origin::Line(line) => (0, line),
            Origin::Nowhere => (1, 0),
            Origin::Set(_) => (2, 0),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut shown_path = false;
        match &self.origin {
            Origin::Line(line) => write!(f, "{}:{line}: ", self.file)?,
            Origin::Nowhere => write!(f, "{}: ", self.file)?,
            Origin::Set(text) => {
                // A control character in it is what may be wrong with it.
                let plain =
                    |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
                write!(f, "--set {}: ", text.chars().map(plain).collect::<String>())?;
                shown_path = text.split('=').next() == Some(self.path.as_str());
            }
        }
        if !shown_path && !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// Problems that are listed; of more, the number is reported.
pub const LISTED_PROBLEMS: usize = 100;

/// Everything that is wrong with a scenario, by line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioError {
    /// The first [`LISTED_PROBLEMS`] of them.
    pub problems: Vec<Problem>,
    /// Number of the others.
    pub more: usize,
}

impl ScenarioError {
    /// Sorts by place, drops repetitions, and keeps the first ones. `problems` must not be empty.
    pub fn new(mut problems: Vec<Problem>) -> ScenarioError {
        debug_assert!(!problems.is_empty());
        problems.sort_by_key(Problem::rank);
        let mut seen = HashSet::with_capacity(problems.len());
        let is_new: Vec<bool> = problems.iter().map(|problem| seen.insert(problem)).collect();
        let found = seen.len();
        let kept = problems.into_iter().zip(is_new).filter(|(_, is_new)| *is_new);
        let problems: Vec<Problem> = kept.map(|(problem, _)| problem).take(LISTED_PROBLEMS).collect();
        ScenarioError { more: found - problems.len(), problems }
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        match (self.more, self.problems.first()) {
            (0, _) | (_, None) => Ok(()),
            (1, Some(first)) => write!(f, "\n{}: 1 more problem is not listed", first.file),
            (more, Some(first)) => write!(f, "\n{}: {more} more problems are not listed", first.file),
        }
    }
}

impl std::error::Error for ScenarioError {}

#[cfg(test)]
mod tests;
