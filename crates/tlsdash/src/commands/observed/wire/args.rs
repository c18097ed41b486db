//! Arguments of `tlsdash wire`.

use std::path::PathBuf;

use clap::Args;

use crate::cli::options::http::OnOff;

use crate::commands::observed::session::ObservingOptions;

#[derive(Args, Debug)]
pub(crate) struct WireArgs {
    /// Count this capture in its own time, and show the run: pcap or pcapng, also compressed; `-` is standard input
    #[arg(long, value_name = "CAPTURE")]
    pub(crate) file: Option<PathBuf>,
    /// Count connections to these ports alone, separated by commas [default: every port on which TLS is spoken]
    #[arg(long, value_name = "PORT", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Vec<u16>,
    /// Count connections to this process of this machine alone, such as nginx
    #[arg(long, value_name = "NAME", conflicts_with_all = ["file", "outgoing"])]
    pub(crate) process: Option<String>,
    /// Read packets of this network interface alone [default: of all]
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    pub(crate) interface: Option<String>,
    /// Count the connections that this machine opens, by peer, instead of those that it accepts
    #[arg(long)]
    pub(crate) outgoing: bool,
    /// Record server names that clients ask for: on or off
    #[arg(long, value_name = "ON|OFF", default_value = "on")]
    pub(crate) log_names: OnOff,
    #[command(flatten)]
    pub(crate) observing: ObservingOptions,
}
