//! Why results could not be written or read.

/// An error whose text names the file and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResultsError {
    /// The request is invalid: the folder exists, the file is not what it should be.
    #[error("{0}")]
    Input(String),
    /// The file is not what a run wrote: it was changed.
    #[error("{0}")]
    Damaged(String),
    /// The request was valid and failed: a full disk, a file that vanished.
    #[error("{0}")]
    Failed(String),
}

impl ResultsError {
    pub fn input(text: impl Into<String>) -> ResultsError {
        ResultsError::Input(text.into())
    }
    pub fn failed(text: impl Into<String>) -> ResultsError {
        ResultsError::Failed(text.into())
    }
}

impl From<ResultsError> for std::io::Error {
    fn from(error: ResultsError) -> std::io::Error {
        std::io::Error::other(error)
    }
}
