//! The words of `tlsdash config`.

#![expect(clippy::doc_markdown, reason = "the documentation of an argument is its help text")]

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Format;

#[derive(Args, Debug)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) request: ConfigRequest,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigRequest {
    /// Check a file as the start of a proxy does, with the certificates and keys that it names
    Check {
        /// The configuration file
        file: PathBuf,
    },
    /// What a reload of a running service with this file would change
    Diff {
        /// The configuration file
        file: PathBuf,
        /// Socket of the service's --control [default: control.sock in $RUNTIME_DIRECTORY or /run/tlsdash]
        #[arg(long, value_name = "PATH")]
        control: Option<PathBuf>,
        /// Format of the answer
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: Format,
    },
}
