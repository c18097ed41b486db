//! Arguments of `tlsdash wire`.

use std::path::PathBuf;

use clap::Args;

use crate::cli::options::http::OnOff;

use crate::commands::observed::session::ObservingOptions;

/// Shown below the help.
const EXAMPLES: &str = "Examples:
  sudo tlsdash wire                 # all TLS of this machine
  sudo tlsdash wire --port 443,8443 --process nginx
  sudo tlsdash wire --outgoing --headless --duration 1m
  tlsdash wire --file capture.pcap  # a capture, in its own time";

#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct WireArgs {
    /// Count this capture in its own time: pcap or pcapng, also compressed; `-` is standard input
    #[arg(long, value_name = "CAPTURE")]
    pub(crate) file: Option<PathBuf>,
    /// Count connections to these ports alone; separated by commas [default: every port on which TLS is spoken]
    #[arg(long, value_name = "PORT", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Vec<u16>,
    /// Count connections to this process alone, such as nginx; of this machine
    #[arg(long, value_name = "NAME", conflicts_with_all = ["file", "outgoing"])]
    pub(crate) process: Option<String>,
    /// Read packets of this network interface alone [default: of all]
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    pub(crate) interface: Option<String>,
    /// Count the connections that this machine opens; by peer, not those that it accepts
    #[arg(long)]
    pub(crate) outgoing: bool,
    /// Record server names that clients ask for; on or off
    #[arg(long, value_name = "ON|OFF", default_value = "on")]
    pub(crate) log_names: OnOff,
    #[command(flatten)]
    pub(crate) observing: ObservingOptions,
}
