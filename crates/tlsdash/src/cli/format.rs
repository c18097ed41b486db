//! The format of what is printed.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// How a summary is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// A table for people.
    #[default]
    Text,
    /// The documented JSON summary.
    Json,
}
