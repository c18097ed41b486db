//! `tlsdash bench-upstream`: the built-in upstream of a bench, as a separate process.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use loadgen::{DemoUpstream, UpstreamAddr};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

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
