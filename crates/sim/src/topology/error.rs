//! Errors of topologies, with what is needed to correct them.

use std::fmt;

/// Displayed as `file:line: message`, `file: message`, `key: message` or `message`, depending on what is
/// known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopologyError {
    /// The file, as the user named it.
    pub file: Option<String>,
    /// Line of the file, from 1.
    pub line: Option<usize>,
    /// The key of `[topology]` that must be changed.
    pub key: Option<&'static str>,
    pub message: String,
}

impl TopologyError {
    pub fn new(message: impl Into<String>) -> TopologyError {
        TopologyError { message: message.into(), ..TopologyError::default() }
    }
    /// Wrong value of a key of `[topology]`.
    pub fn key(key: &'static str, message: impl Into<String>) -> TopologyError {
        TopologyError { key: Some(key), ..TopologyError::new(message) }
    }
    pub fn line(line: usize, message: impl Into<String>) -> TopologyError {
        TopologyError { line: Some(line), ..TopologyError::new(message) }
    }
    /// Adds the name of the file to the error.
    pub fn in_file(self, file: &str) -> TopologyError {
        TopologyError { file: Some(file.to_string()), ..self }
    }
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{file}:{line}: ")?,
            (Some(file), None) => write!(f, "{file}: ")?,
            (None, Some(line)) => write!(f, "line {line}: ")?,
            (None, None) => {}
        }
        if let Some(key) = self.key {
            write!(f, "{key}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for TopologyError {}
