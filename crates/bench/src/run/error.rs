//! Why a run cannot go on, and why a load has failed.

use std::io;

use crate::results::FolderError;
use crate::scenario::Endpoint;

/// Why a run cannot begin or continue.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A file that all targets share.
    #[error("cannot make {what}: {error}")]
    Files { what: &'static str, error: io::Error },
    /// The upstream of all targets.
    #[error("cannot start the upstream: {0}")]
    Upstream(String),
    /// The user's upstream.
    #[error("cannot connect to the upstream {endpoint}: {error}")]
    Unreachable { endpoint: Endpoint, error: io::Error },
    /// A list of cores.
    #[error("cpus: {0}")]
    Cpus(String),
    /// Programs are missing, and all are required.
    #[error("{}", .0.join("; "))]
    Missing(Vec<String>),
    #[error("no target can be run: {}", .0.join("; "))]
    NoTarget(Vec<String>),
}

impl RunError {
    pub(super) fn files(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Files { what, error }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LoadFailure {
    /// The run is to end.
    Interrupted,
    /// It failed, for the reason in words.
    Failed(String),
}

impl From<String> for LoadFailure {
    fn from(reason: String) -> Self {
        Self::Failed(reason)
    }
}
