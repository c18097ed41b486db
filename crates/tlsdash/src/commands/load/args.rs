//! The arguments of `tlsdash load`. Short flags are those of wrk and h2load where these agree.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use loadgen::{Arrivals, ConnectTo, KeepAlive, Profile, Share, Target, TlsVersion};
use records::text::Cpus;
use report::styles::ReportStyle;
use report::{Assertion, AssertionError};

use crate::cli::RunOptions;
use crate::cli::appearance::AppearanceOptions;
use crate::journals::reading::RunPrefix;
use crate::value::{InvalidValue, ParsedValue, PositiveDuration, factor, time, whole};

/// Options that do not go with requests that have times of their own.
const OTHER_REQUESTS: [&str; 10] = [
    "targets",
    "method",
    "body",
    "body_bytes",
    "expect_echo",
    "expect_bytes",
    "rate",
    "requests",
    "connections",
    "source_addresses",
];

/// Shown below the help.
const EXAMPLES: &str = "Examples:
  tlsdash load https://localhost:8443/ --insecure -c 64 -d 10s   # as wrk
  tlsdash load https://localhost:8443/ --insecure -r 500 -d 30s  # as wrk2
  tlsdash load https://localhost:8443/ --insecure --http2 -m 32  # as h2load
  tlsdash load https://localhost:8443/ --ca ca.pem -k 4 --resume 50%
  tlsdash load https://localhost:8443/ --ca ca.pem --assert 'response.p99 < 5ms'

Exit codes:
  0 done, 1 failed at run time, 2 wrong usage, 99 an assertion does not hold";

#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct LoadArgs {
    /// Server and path: https:// or http://, or tls:// or tcp:// for an echo server
    #[arg(value_name = "URL")]
    pub(crate) url: ParsedValue<Target>,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) request: RequestArgs,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) run: RunOptions,
    #[command(flatten)]
    pub(crate) appearance: AppearanceOptions,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "How much")]
pub(crate) struct PlanArgs {
    /// Connections [default: 64]
    #[arg(short, long, value_name = "N", value_parser = whole::<u32>(1..=100_000))]
    pub(crate) connections: Option<u32>,
    /// Requests a second on a fixed schedule; an open loop. Or stages such as 100..1000/30s+1000/60s. Without it each
    /// connection sends its next request after an answer (closed loop)
    #[arg(short, long, value_name = "RATE", short_alias = 'R')]
    pub(crate) rate: Option<Profile>,
    /// Spacing of the requests of an open loop: even or poisson [default: even]
    #[arg(long, value_name = "WHICH", requires = "rate")]
    pub(crate) arrivals: Option<Arrivals>,
    /// Start --requests evenly over this time; an open loop, like the threads of a JMeter plan
    #[arg(long, value_name = "TIME", requires = "requests", conflicts_with = "rate")]
    pub(crate) ramp_up: Option<ParsedValue<PositiveDuration>>,
    /// Length of the load, in seconds without a unit [default: 10s, unless --requests is given or the stages of --rate end]
    #[arg(short, long, value_name = "TIME", short_alias = 'D', value_parser = time)]
    pub(crate) duration: Option<Duration>,
    /// Time at the start that is not measured
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) warmup: Option<Duration>,
    /// Number of requests
    #[arg(short = 'n', long, value_name = "N", value_parser = whole::<u64>(1..=u64::MAX))]
    pub(crate) requests: Option<u64>,
    /// Requests a connection carries: on (no limit), off (one), or a number [default: on]
    #[arg(short, long, value_name = "WHICH")]
    pub(crate) keep_alive: Option<KeepAlive>,
    /// Close a connection after this time; at its next request
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) lifetime: Option<Duration>,
    /// Threads [default: 1]
    #[arg(short, long, value_name = "N", value_parser = whole::<u32>(1..=256))]
    pub(crate) threads: Option<u32>,
    /// Cores of the generator, such as 0 or 0-3,8 [default: any core]
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<Cpus>,
    /// Connect from N loopback addresses; 127.0.0.2 and up
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=65_533))]
    pub(crate) source_addresses: Option<u32>,
    /// Fail a request without an answer after this time
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub(crate) timeout: Duration,
    /// When the load begins, in microseconds of the monotonic clock; bench starts several loads together
    #[arg(long, value_name = "TIME", hide = true)]
    pub(crate) start_at_us: Option<u64>,
    /// Repeat the load N times; prints median and spread
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true, value_parser = whole::<u32>(1..=1_000))]
    pub(crate) repeat: u32,
}

/// The group of flags for requests that have times of their own.
const AGAIN: &str = "Traffic to send again";

#[derive(Args, Debug)]
#[command(next_help_heading = "What is asked")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct RequestArgs {
    /// The method [default: GET, or POST with a body]
    #[arg(short = 'X', long, value_name = "WORD", conflicts_with = "targets")]
    pub(crate) method: Option<String>,
    /// Header field to send along, such as Accept:text/html; may be repeated
    #[arg(short = 'H', long, value_name = "FIELD", conflicts_with = "targets")]
    pub(crate) header: Vec<Header>,
    /// File to send as the body
    #[arg(long, value_name = "FILE", conflicts_with_all = ["targets", "body_bytes"])]
    pub(crate) body: Option<PathBuf>,
    /// Size of the body to send; or several such as 10,100,1000: one run for each
    #[arg(long, value_name = "N,...", value_delimiter = ',', conflicts_with = "targets", value_parser = whole::<usize>(0..=67_108_864))]
    pub(crate) body_bytes: Vec<usize>,
    /// Require the answer's body to equal the request's
    #[arg(long, conflicts_with_all = ["targets", "expect_bytes"])]
    pub(crate) expect_echo: bool,
    /// Require the answer's body to have so many bytes
    #[arg(long, value_name = "N", conflicts_with = "targets", value_parser = whole::<u64>(0..=u64::MAX))]
    pub(crate) expect_bytes: Option<u64>,
    /// File of requests with weights; - for standard input: lines such as 3 GET /path, then header fields, @BODY and =
    /// EXPECTED, then a blank line (docs/load.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) targets: Option<PathBuf>,
    /// Speak HTTP/2
    #[arg(long)]
    pub(crate) http2: bool,
    /// Requests at a time on each connection, with HTTP/2 [default: 1]
    #[arg(short = 'm', long, value_name = "N", requires = "http2", value_parser = whole::<u32>(1..=10_000))]
    pub(crate) streams: Option<u32>,
    /// Send the requests of an access log; of nginx or HAProxy, or a list, at their own times, each client with its own
    /// connections, sessions and on loopback address; - for standard input (docs/load.md)
    #[arg(long, help_heading = AGAIN, value_name = "FILE", group = "script", conflicts_with_all = OTHER_REQUESTS)]
    pub(crate) replay: Option<PathBuf>,
    /// Send a load like the traffic of a recording; or of a journal of the proxy, of observe or of wire: its arrivals,
    /// connections, resumption, versions, sizes and clients; @FROM..TO behind it selects a time range (docs/load.md)
    #[arg(long, help_heading = AGAIN, value_name = "SOURCE", group = "script", group = "mix", conflicts_with_all = OTHER_REQUESTS, conflicts_with_all = ["plan", "replay"])]
    pub(crate) like: Option<OsString>,
    /// The run of --like, by its id; or the first characters of it [default: the newest]
    #[arg(long, help_heading = AGAIN, value_name = "ID", requires = "like")]
    pub(crate) run: Option<RunPrefix>,
    /// Print what --like has read as a plan; a file that can be changed. Nothing is sent
    #[arg(long, help_heading = AGAIN, requires = "like", conflicts_with_all = ["record", "journal"])]
    pub(crate) print_plan: bool,
    /// With --like, keep the routes: the path of each request is that of a route before that of the URL, and a plan names
    /// the routes
    #[arg(long, help_heading = AGAIN, requires = "like")]
    pub(crate) with_paths: bool,
    /// Send the load of such a plan; - for standard input
    #[arg(long, help_heading = AGAIN, value_name = "FILE", group = "script", group = "mix", conflicts_with_all = OTHER_REQUESTS, conflicts_with = "replay")]
    pub(crate) plan: Option<PathBuf>,
    /// With --like or --plan, so many times the load: connections, requests and clients, such as 2 or 0.5
    #[arg(long, help_heading = AGAIN, value_name = "FACTOR", requires = "mix", default_value = "1", value_parser = factor)]
    pub(crate) scale: f64,
    /// Send such a load so many times as fast, such as 4 or 0.5
    #[arg(long, help_heading = AGAIN, value_name = "FACTOR", requires = "script", default_value = "1", value_parser = factor)]
    pub(crate) speed: f64,
    /// Send such a load so often; one round after the other
    #[arg(long, help_heading = AGAIN, value_name = "N", requires = "script", default_value_t = 1, hide_default_value = true, value_parser = whole::<u64>(1..=1_000_000))]
    pub(crate) loops: u64,
    /// Connect to this Unix socket; not to the URL's host
    #[arg(long, value_name = "PATH", conflicts_with = "connect_to")]
    pub(crate) unix_socket: Option<PathBuf>,
    /// Connect elsewhere, as curl does: HOST:PORT:ADDR:PORT connects to ADDR:PORT if the URL has this host and port; an
    /// empty part matches or keeps the URL's. May be repeated, and the first that matches is taken
    #[arg(long, value_name = "RULE")]
    pub(crate) connect_to: Vec<ConnectTo>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "TLS")]
pub(crate) struct TlsArgs {
    /// Share of new connections that resume a session, such as 80%
    #[arg(long, value_name = "SHARE")]
    pub(crate) resume: Option<Share>,
    /// Send first requests as early data (0-RTT); on resuming connections, where the server's tickets allow it. Only
    /// for requests that may be repeated
    #[arg(long, requires = "resume")]
    pub(crate) early_data: bool,
    /// Trust the authorities of this PEM file; not the system's. --cacert is the same
    #[arg(long, alias = "cacert", value_name = "FILE", conflicts_with = "insecure")]
    pub(crate) ca: Option<PathBuf>,
    /// Do not verify the server's certificate; every output says so
    #[arg(long)]
    pub(crate) insecure: bool,
    /// The only version: 1.2 or 1.3
    #[arg(long, value_name = "VERSION", value_parser = tls_version)]
    pub(crate) tls_version: Option<TlsVersion>,
    /// The only cipher suites, such as TLS_AES_128_GCM_SHA256
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) ciphers: Vec<String>,
    /// The only key exchange groups, such as x25519,secp256r1; --curves is the same
    #[arg(long, alias = "curves", value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) groups: Vec<String>,
    /// Server name to request and verify; not the URL's host
    #[arg(long, value_name = "NAME")]
    pub(crate) sni: Option<String>,
    /// The client's certificate chain in PEM; --cert is the same
    #[arg(long, alias = "cert", value_name = "FILE", requires = "client_key")]
    pub(crate) client_cert: Option<PathBuf>,
    /// Its private key in PEM; --key is the same
    #[arg(long, alias = "key", value_name = "FILE", requires = "client_cert")]
    pub(crate) client_key: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Print the summary as another tool does: vegeta, h2load, ab, wrk or jmeter
    #[arg(long, value_name = "TOOL", conflicts_with = "format")]
    pub(crate) style: Option<ReportStyle>,
    /// Print every figure by its name as CSV; one line per run
    #[arg(long, conflicts_with_all = ["format", "style"])]
    pub(crate) csv: bool,
    /// Fail with exit code 99 unless this holds, such as 'response.p99 < 5ms' or 'errors == 0' (docs/figures.md); may be
    /// repeated
    #[arg(long, value_name = "CONDITION", value_parser = load_assertion)]
    pub(crate) assert: Vec<Assertion>,
    /// Write the percentiles for HdrHistogram's plotter; - is standard output, after the summary
    #[arg(long, value_name = "FILE")]
    pub(crate) hgrm: Option<PathBuf>,
    /// Write an HdrHistogram log of all intervals; not with the dashboard
    #[arg(long, value_name = "FILE")]
    pub(crate) hlog: Option<PathBuf>,
    /// Observe CPU, threads and memory of this process; with its descendants. May be repeated, and the figures add up
    #[arg(long, value_name = "PID", value_parser = whole::<u32>(1..=u64::from(u32::MAX)))]
    pub(crate) observe_pid: Vec<u32>,
}

impl RequestArgs {
    /// Whether requests have times of their own.
    pub(super) fn has_script(&self) -> bool {
        self.replay.is_some() || self.is_like_another()
    }

    /// Whether the load is to be like a recorded traffic.
    pub(super) fn is_like_another(&self) -> bool {
        self.like.is_some() || self.plan.is_some()
    }
}

/// A header field, such as `Accept: text/html`.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) name: String,
    pub(crate) value: String,
}

impl FromStr for Header {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let (name, value) = text.split_once(':').ok_or(InvalidValue("NAME: VALUE"))?;
        Ok(Self { name: name.trim().to_owned(), value: value.trim().to_owned() })
    }
}

fn tls_version(text: &str) -> Result<TlsVersion, InvalidValue> {
    match text {
        "1.2" => Ok(TlsVersion::V12),
        "1.3" => Ok(TlsVersion::V13),
        _ => Err(InvalidValue("1.2 or 1.3")),
    }
}

/// Parses an assertion on a figure that every load has.
fn load_assertion(text: &str) -> Result<Assertion, AssertionError> {
    let assertion: Assertion = text.parse()?;
    assertion.is_known_of_load().map(|()| assertion)
}
