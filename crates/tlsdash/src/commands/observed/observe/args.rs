//! Arguments of `tlsdash observe`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use observe::{LogKind, SocketAddress};

use crate::commands::observed::session::ObservingOptions;

/// Shown below the help.
const EXAMPLES: &str = "Examples:
  tlsdash observe setup nginx              # the lines to paste
  tlsdash observe nginx --syslog unix:/run/tlsdash/observe.sock
  tlsdash observe haproxy --journal-unit haproxy.service
  tlsdash observe nginx --file access.log  # a log that is whole";

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ObserveArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ObserveCommand>,
    /// Whose log it is: haproxy, nginx, nginx-stream or stunnel
    #[arg(value_name = "TERMINATOR", required = true)]
    pub(crate) kind: Option<LogKind>,
    /// Receive the log at this socket: unix:PATH or udp:ADDRESS:PORT
    #[arg(long, value_name = "SOCKET", conflicts_with_all = ["file", "journal_unit"])]
    pub(crate) syslog: Option<SocketAddress>,
    /// Mode of the Unix socket's file, in octal
    #[arg(long, value_name = "MODE", default_value = "660", value_parser = mode, requires = "syslog")]
    pub(crate) socket_mode: u32,
    /// Owner of the Unix socket's file: USER, USER:GROUP or :GROUP
    #[arg(long, value_name = "OWNER", requires = "syslog")]
    pub(crate) socket_owner: Option<String>,
    /// Count this log in its own time, and show the run; `-` is standard input. Without --interval, intervals are as long as
    /// the time that it spans asks for
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Option<PathBuf>,
    /// Follow what this unit writes to the journal, such as haproxy.service
    #[arg(long, value_name = "UNIT", conflicts_with = "file")]
    pub(crate) journal_unit: Option<String>,
    /// Follow the file from its end; over rotations, as it grows
    #[arg(long, requires = "file")]
    pub(crate) follow: bool,
    /// Observe this process and its descendants: CPU time, memory, threads of the terminator; may be repeated
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Vec<u32>,
    /// Observe the processes of this systemd unit; as --pid does
    #[arg(long, value_name = "UNIT")]
    pub(crate) unit: Option<String>,
    #[command(flatten)]
    pub(crate) observing: ObservingOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ObserveCommand {
    /// Print the lines to paste into a terminator's configuration; or check one
    Setup(SetupArgs),
}

#[derive(Args, Debug)]
pub(crate) struct SetupArgs {
    /// The terminator: haproxy, nginx, nginx-stream or stunnel
    #[arg(value_name = "TERMINATOR")]
    pub(crate) kind: LogKind,
    /// The socket that the log goes to
    #[arg(long, value_name = "SOCKET", default_value = "unix:/run/tlsdash/observe.sock")]
    pub(crate) syslog: SocketAddress,
    /// Print the lines for this version [default: that of the installed program]
    #[arg(long = "for", value_name = "VERSION")]
    pub(crate) version: Option<observe::setup::Version>,
    /// Say what of it this configuration lacks; - is standard input; exit code 1 if something is missing
    #[arg(long, value_name = "CONFIG")]
    pub(crate) check: Option<PathBuf>,
}

fn mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| "expected an octal mode, such as 660".to_owned())
}
