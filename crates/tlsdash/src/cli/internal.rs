//! Commands that the program starts itself. Help, completions and manual do not list them.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "tlsdash")]
pub(crate) enum InternalCommand {
    /// Runs a command of a bench, and ends all that descends from it
    BenchSupervisor,
    /// Serves the answers behind the targets of a bench
    BenchUpstream(BenchUpstreamArgs),
}

#[derive(Args, Debug)]
pub(crate) struct BenchUpstreamArgs {
    /// Path of its Unix socket
    #[arg(long, value_name = "PATH")]
    pub(crate) unix: PathBuf,
    /// Its port of 127.0.0.1; 0 takes a free one
    #[arg(long, value_name = "PORT")]
    pub(crate) tcp: u16,
    /// Threads for each of the two sockets
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) threads: NonZeroUsize,
}

impl InternalCommand {
    /// Parses a command line that starts with the program's name; `None` if it names none of these commands.
    pub(crate) fn read(args: &[OsString]) -> Option<Result<Self, clap::Error>> {
        let is_internal = Self::has_subcommand(args.get(1)?.to_str()?);
        is_internal.then(|| Self::try_parse_from(args))
    }
}
