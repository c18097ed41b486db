//! The words of `tlsdash ctl`.

#![expect(clippy::doc_markdown, reason = "the documentation of an argument is its help text")]

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::Format;
use super::value::{ParsedValue, PositiveDuration, whole};

#[derive(Args, Debug)]
pub(crate) struct CtlArgs {
    /// Socket of the service's --control [default: control.sock in $RUNTIME_DIRECTORY or /run/tlsdash]
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) control: Option<PathBuf>,
    /// Format of the answer
    #[arg(long, value_name = "FORMAT", default_value = "text", global = true)]
    pub(crate) format: Format,
    #[command(subcommand)]
    pub(crate) request: CtlRequest,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CtlRequest {
    /// What runs, and its headline figures
    Status,
    /// Every setting with its value and when a change acts
    Settings,
    /// Change a setting, such as load.rate 200 or proxy.idle-timeout 30s
    Set {
        /// Its dotted name
        name: String,
        /// Its new value, with or without the unit
        value: String,
        /// Put the former value back after this time, even if this program is gone
        #[arg(long, value_name = "TIME")]
        r#for: Option<ParsedValue<PositiveDuration>>,
    },
    /// Leave a note in the time line
    Mark {
        /// The note
        #[arg(value_name = "TEXT")]
        text: Vec<String>,
    },
    /// Read the configuration file, certificates and keys again, as SIGHUP does
    Reload,
    /// Start the program anew and leave the clients to it, as SIGUSR2 does
    Upgrade,
    /// Serve open connections to their end, then end, as SIGTERM does
    Drain,
    /// Forget sessions and ticket keys: the next handshake of every client is full
    ForgetSessions,
    /// Make a new ticket key; tickets of the former keys are still accepted
    RotateTickets,
    /// Start or stop the built-in load of a service that was started with one
    Load {
        /// What it shall do
        switch: LoadSwitch,
    },
    /// Drain an upstream, or return it to service, such as upstream app:80 drain
    Upstream {
        /// The upstream, as it was configured
        #[arg(value_name = "UPSTREAM")]
        name: String,
        /// What it shall do
        action: UpstreamAction,
    },
    /// Compare two values of a setting, in the words of --ab, such as workers=1..2,pairs=12
    Ab {
        /// The plan; `end` ends the experiment that is under way
        #[arg(value_name = "WORDS")]
        words: String,
    },
    /// The clients, the one with the most bytes first
    Clients {
        /// How many at most
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole::<usize>(1..=1_000_000))]
        limit: usize,
    },
    /// The certificates, the one that ends first at the top
    Certificates,
    /// Measure what handshakes cost on this machine
    Calibrate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoadSwitch {
    /// Send requests.
    Start,
    /// Send no more.
    Stop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum UpstreamAction {
    /// Get no new connections.
    Drain,
    /// Get new connections again.
    Return,
}
