//! The words of `tlsdash load`. Short flags are those of wrk and h2load where these agree.

#![expect(clippy::doc_markdown, reason = "the documentation of an argument is its help text")]
#![allow(
    rustdoc::broken_intra_doc_links,
    rustdoc::invalid_html_tags,
    reason = "the same; only rustdoc sees it"
)]

use std::path::PathBuf;

use clap::Args;

use crate::args::RunWords;
use crate::look::LookWords;

/// Stands below the help.
const EXAMPLES: &str = "Examples:
  tlsdash load https://localhost:8443/ -c 64 -d 10s              closed loop, as wrk
  tlsdash load https://localhost:8443/ -r 500 -d 30s             open loop, as vegeta and wrk2 -R
  tlsdash load https://localhost:8443/ --http2 -c 16 -m 32 -n 100000      as h2load
  tlsdash load https://localhost:8443/ -k 4 --resume 50%         full, resumed and keep-alive side by side
Exit codes: 0 done, 1 failed at run time, 2 bad usage, 99 an assertion does not hold; docs/load.md tells more";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LoadArgs {
    /// Server and path: https:// or http://, or tls:// or tcp:// for a server that sends back what it gets
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) request: RequestArgs,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) run: RunWords,
    #[command(flatten)]
    pub(crate) look: LookWords,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "How much")]
pub(crate) struct PlanArgs {
    /// Connections [default: 64]
    #[arg(short, long, value_name = "N")]
    pub(crate) connections: Option<u32>,
    /// Requests a second on a fixed schedule (open loop), or stages such as 100..1000/30s+1000/60s; without it each
    /// connection sends as its answers come (closed loop)
    #[arg(short, long, value_name = "RATE", short_alias = 'R')]
    pub(crate) rate: Option<String>,
    /// How the requests of an open loop are spread: even or poisson [default: even]
    #[arg(long, value_name = "WHICH", requires = "rate")]
    pub(crate) arrivals: Option<String>,
    /// Begin --requests evenly over so long, as the threads of a JMeter plan: an open loop
    #[arg(long, value_name = "TIME", requires = "requests", conflicts_with = "rate")]
    pub(crate) ramp_up: Option<String>,
    /// Length of the load, in seconds without a unit [default: 10s, unless --requests is given or the stages of --rate end]
    #[arg(short, long, value_name = "TIME", short_alias = 'D')]
    pub(crate) duration: Option<String>,
    /// Time at its beginning that is not measured
    #[arg(long, value_name = "TIME")]
    pub(crate) warmup: Option<String>,
    /// Number of requests
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) requests: Option<u64>,
    /// Requests a connection carries: on (no limit), off (one), or a number [default: on]
    #[arg(short, long, value_name = "WHICH")]
    pub(crate) keep_alive: Option<String>,
    /// End a connection with the first request after so long
    #[arg(long, value_name = "TIME")]
    pub(crate) lifetime: Option<String>,
    /// Threads [default: 1]
    #[arg(short, long, value_name = "N")]
    pub(crate) threads: Option<u32>,
    /// Connect from so many loopback addresses, 127.0.0.2 and up
    #[arg(long, value_name = "N")]
    pub(crate) source_addresses: Option<u32>,
    /// Fail a request that is not answered after so long [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<String>,
    /// Run it so many times, and tell the median and the spread
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000), hide_default_value = true)]
    pub(crate) repeat: u32,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "What is asked")]
pub(crate) struct RequestArgs {
    /// The method [default: GET, or POST with a body]
    #[arg(short = 'X', long, value_name = "WORD", conflicts_with = "targets")]
    pub(crate) method: Option<String>,
    /// Header field to send along, such as 'Accept: text/html'; may be repeated
    #[arg(short = 'H', long, value_name = "FIELD", conflicts_with = "targets")]
    pub(crate) header: Vec<String>,
    /// File to send as the body
    #[arg(long, value_name = "FILE", conflicts_with_all = ["targets", "body_bytes"])]
    pub(crate) body: Option<PathBuf>,
    /// Size of the body to send, or several such as 10,100,1000: one run for each
    #[arg(long, value_name = "N,...", value_delimiter = ',', conflicts_with = "targets")]
    pub(crate) body_bytes: Vec<usize>,
    /// The answer's body must be the request's, byte for byte
    #[arg(long, conflicts_with_all = ["targets", "expect_bytes"])]
    pub(crate) expect_echo: bool,
    /// The answer's body must have so many bytes
    #[arg(long, value_name = "N", conflicts_with = "targets")]
    pub(crate) expect_bytes: Option<u64>,
    /// File of requests with weights, - for standard input: lines such as 3 GET /path, then header fields, @BODY and
    /// = EXPECTED, then a blank line (docs/load.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) targets: Option<PathBuf>,
    /// Speak HTTP/2
    #[arg(long)]
    pub(crate) http2: bool,
    /// Requests at a time on each connection, with HTTP/2 [default: 1]
    #[arg(short = 'm', long, value_name = "N", requires = "http2")]
    pub(crate) streams: Option<u32>,
    /// Connect to this unix socket in place of the URL's host
    #[arg(long, value_name = "PATH")]
    pub(crate) unix_socket: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "TLS")]
pub(crate) struct TlsArgs {
    /// Share of new connections that resume a session, such as 80%
    #[arg(long, value_name = "SHARE")]
    pub(crate) resume: Option<String>,
    /// Send the first request of connections that resume as early data (0-RTT), where the server's tickets allow it; only
    /// for requests that may come twice
    #[arg(long, requires = "resume")]
    pub(crate) early_data: bool,
    /// Trust the authorities in this PEM file instead of the system's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(crate) ca: Option<PathBuf>,
    /// Do not verify the server's certificate; every output says so
    #[arg(long)]
    pub(crate) insecure: bool,
    /// The only version: 1.2 or 1.3
    #[arg(long, value_name = "VERSION")]
    pub(crate) tls_version: Option<String>,
    /// The only cipher suites, such as TLS13_AES_128_GCM_SHA256
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) ciphers: Vec<String>,
    /// The only key exchange groups, such as X25519,secp256r1
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) groups: Vec<String>,
    /// Server name to ask for and to verify, in place of the URL's host
    #[arg(long, value_name = "NAME")]
    pub(crate) sni: Option<String>,
    /// The client's certificate chain in PEM
    #[arg(long, value_name = "FILE", requires = "client_key")]
    pub(crate) client_cert: Option<PathBuf>,
    /// Its private key in PEM
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    pub(crate) client_key: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Print the summary as vegeta, h2load, ab, wrk or jmeter do
    #[arg(long, value_name = "TOOL", conflicts_with = "format")]
    pub(crate) style: Option<String>,
    /// Print every figure by its name as CSV, a line a run
    #[arg(long, conflicts_with_all = ["format", "style"])]
    pub(crate) csv: bool,
    /// Fail with exit code 99 unless this holds, such as 'response.p99 < 5ms' or 'errors == 0' (docs/figures.md); may be
    /// repeated
    #[arg(long, value_name = "CONDITION")]
    pub(crate) assert: Vec<String>,
    /// Write the percentiles for HdrHistogram's plotter; - is standard output, after the summary
    #[arg(long, value_name = "FILE")]
    pub(crate) hgrm: Option<PathBuf>,
    /// Write an HdrHistogram log of all intervals; not with the dashboard
    #[arg(long, value_name = "FILE")]
    pub(crate) hlog: Option<PathBuf>,
    /// Observe CPU, threads and memory of this process and its descendants
    #[arg(long, value_name = "PID")]
    pub(crate) observe_pid: Option<u32>,
}
