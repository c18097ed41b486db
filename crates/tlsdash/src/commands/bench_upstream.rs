//! `tlsdash bench-upstream`: the built-in upstream of a bench, as a separate process.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Context;
use loadgen::{DemoUpstream, UpstreamAddr};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::cli::BenchUpstreamArgs;

/// Serves on both sockets until a signal ends the process.
pub(crate) fn run(args: &BenchUpstreamArgs) -> anyhow::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
        .context("cannot raise the limit on descriptors")?;
    let tcp = SocketAddr::from((Ipv4Addr::LOCALHOST, args.tcp));
    let unix = DemoUpstream::start_threads(UpstreamAddr::Unix(args.unix.clone()), args.threads)?;
    let tcp = DemoUpstream::start_threads(UpstreamAddr::Tcp(tcp), args.threads)?;
    writeln!(std::io::stdout(), "listening on {} and {}", unix.address(), tcp.address())?;
    loop {
        std::thread::park();
    }
}
