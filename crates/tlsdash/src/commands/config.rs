//! `tlsdash config`: checks a configuration file, or compares it with the running service.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::{ctl, proxy};
use crate::cli::{Format, ProxyOptions, read_file};
use crate::control::protocol::ControlRequest;
use crate::error::{line, usage};
use crate::summary;

/// Shown below the help.
const EXAMPLES: &str = "Examples:
  tlsdash config check tlsdash.toml  # before a start or reload
  tlsdash config diff tlsdash.toml   # what a reload would change";

#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) request: ConfigRequest,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigRequest {
    /// Check a file as the start of a proxy does: certificates and keys that it names, and whether upstreams answer
    Check {
        /// The configuration file
        file: PathBuf,
    },
    /// What a reload of a running service with this file would change
    Diff {
        /// The configuration file
        file: PathBuf,
        /// Socket of the service's --control [default: that of FILE, or control.sock in $RUNTIME_DIRECTORY or /run/tlsdash]
        #[arg(long, value_name = "PATH")]
        control: Option<PathBuf>,
        /// Format of the answer
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: Format,
    },
}

/// Checks or compares.
pub(crate) fn run(args: &ConfigArgs) -> anyhow::Result<()> {
    match &args.request {
        ConfigRequest::Check { file } => check(file),
        ConfigRequest::Diff { file, control, format } => {
            let request = ControlRequest::CompareConfiguration { text: read_file(file)? };
            // The service has the socket that its file names; what is wrong with the file is for the service to say.
            let named = || ProxyOptions::read(file).ok()?.control.filter(|path| path != Path::new("off"));
            ctl::send(control.clone().or_else(named).as_deref(), &request, *format)
        }
    }
}

/// Finds the errors and warnings of a start, except those of its addresses.
fn check(file: &Path) -> anyhow::Result<()> {
    let options = ProxyOptions::read(file)?.with_defaults()?;
    // Whatever a start would say of it, the file is wrong.
    let refused = |error| usage(format!("configuration {}: {}", file.display(), line(&error)));
    for warning in proxy::check(&options).map_err(refused)? {
        crate::say(format_args!("warning: {}", warning.text));
    }
    summary::print_text(&format!("{} can be used\n", file.display()))
}
