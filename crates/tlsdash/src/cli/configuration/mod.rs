//! The options of the proxy, and the configuration file.

pub(crate) mod destinations;
#[cfg(test)]
mod document;
pub(crate) mod effective_options;
mod error;
mod file;
mod http_config;
mod other_mode;
mod printed;
mod routes;
pub(crate) mod setting_infos;
pub(crate) mod source;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Command};
use proxy_core::proxy_protocol::ProxyProtocol;
use proxy_core::{Limits, ListenAddr, Networks, TlsSettings, Upstream};
use proxy_http::HttpLimits;
use records::text::Cpus;
use serde::{Deserialize, Serialize};

use crate::cli::appearance::{AppearanceOptions, AppearanceTables};
use crate::cli::help::{CERTIFICATES, EXPERIMENTS, PROCESS, RECORDS};
use crate::cli::options::acme::AcmeOptions;
use crate::cli::options::balancing::BalancingOptions;
use crate::cli::options::http::{ALPN, HttpOptions, OnOff};
use crate::cli::options::load::BuiltInLoad;
use crate::cli::options::mode::ProxyMode;
use crate::cli::options::route::RouteOption;
use crate::cli::options::tls::TlsFileOptions;
use crate::cli::options::upstream_tls::UpstreamTlsOptions;
use crate::cli::run_options::RunOptions;
use crate::value::options::OptionValues;
use crate::value::{ParsedValue, PositiveDuration, one_or_many, workers};
pub use error::ConfigurationError;
pub use file::read_configuration;
pub(crate) use file::read_file;

/// The default address of the proxy.
const LISTEN: &str = ":8443";

/// Groups of flags that only the proxy has.
const ADDRESSES: &str = "Listeners and upstreams";
const ACCESS: &str = "Who may connect";
const HTTP_MODE: &str = "HTTP mode";

/// What the proxy takes, on the command line and in the configuration file.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct ProxyOptions {
    /// What the proxy does: tcp forwards bytes, http terminates HTTP/2 and HTTP/1.1 and routes requests (docs/http.md)
    #[arg(long, help_heading = ADDRESSES, value_name = "MODE", default_value = "tcp")]
    pub(crate) mode: ProxyMode,
    /// Address to listen on, such as :8443 (dual stack), 127.0.0.1:8443 or [::1]:8443; may be repeated
    /// [default: :8443]
    #[arg(long, help_heading = ADDRESSES, value_name = "ADDR")]
    #[serde(deserialize_with = "one_or_many")]
    pub(crate) listen: Vec<ParsedValue<ListenAddr>>,
    /// Address of HTTP without TLS, such as :80, that redirects every request to https on the same host, and the port of
    /// the first --listen
    #[arg(long, help_heading = ADDRESSES, value_name = "ADDR")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) redirect_http: Option<ParsedValue<ListenAddr>>,
    /// Upstream that gets the plaintext: unix:/path or host:port, with tls:// in front over TLS, in HTTP mode with h2c:// or
    /// h2:// for HTTP/2 without or with TLS, and behind it ,weight=N (1 to 256) for a larger share and ,name=NAME for the
    /// name of its certificate; may be repeated
    #[arg(long, help_heading = ADDRESSES, value_name = "TARGET")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_many")]
    pub(crate) upstream: Vec<ParsedValue<Upstream>>,
    #[command(flatten, next_help_heading = ADDRESSES)]
    #[serde(flatten)]
    pub(crate) balancing: BalancingOptions,
    /// Upstreams of a server name, or a host and path: clients of the name go there (TCP mode), or requests (HTTP
    /// mode), such as api.example=unix:/run/api.sock or shop.example/static=127.0.0.1:9000,127.0.0.1:9001; may be
    /// repeated, and --upstream gets the rest
    #[arg(long, help_heading = ADDRESSES, value_name = "ROUTE")]
    #[serde(skip_serializing)]
    pub(crate) route: Vec<RouteOption>,
    /// Pass the TLS of clients of a server name unread: to these upstreams, such as legacy.example=10.0.0.9:443, which
    /// terminate it; may be repeated
    #[arg(long, help_heading = ADDRESSES, value_name = "ROUTE")]
    #[serde(skip_serializing)]
    pub(crate) pass: Vec<RouteOption>,
    /// Run as this user, NAME or NAME:GROUP; root is given up after binding addresses and reading keys
    #[arg(long, help_heading = PROCESS, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    /// Socket of `tlsdash ctl`, or off [default: control.sock in $RUNTIME_DIRECTORY, with --headless]
    #[arg(long, help_heading = PROCESS, value_name = "PATH")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) control: Option<PathBuf>,
    /// Group that may control the service; root and the service's own user may, too
    #[arg(long, help_heading = PROCESS, value_name = "GROUP")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) control_group: Option<String>,
    /// Group that may only read settings and figures
    #[arg(long, help_heading = PROCESS, value_name = "GROUP")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) control_readers: Option<String>,
    /// PROXY header for the upstream: v1, or v2 with the TLS parameters; it names the client [default: none]
    #[arg(long, help_heading = ACCESS, value_name = "VERSION")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) proxy_protocol: Option<ParsedValue<ProxyProtocol>>,
    /// Trusted proxies: they must send a PROXY header, such as 10.0.0.0/8,2001:db8::1 [default: none]
    #[arg(long, help_heading = ACCESS, value_name = "CIDR,...")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) accept_proxy: Option<ParsedValue<Networks>>,
    /// File of networks that may connect; a network or address a line [default: all]
    #[arg(long, help_heading = ACCESS, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allow: Option<PathBuf>,
    /// File of networks that may not, even if allowed; a reload reads both files again [default: none]
    #[arg(long, help_heading = ACCESS, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deny: Option<PathBuf>,
    #[command(flatten, next_help_heading = CERTIFICATES)]
    #[serde(flatten)]
    pub(crate) tls_files: TlsFileOptions,
    #[command(flatten, next_help_heading = CERTIFICATES)]
    #[serde(flatten)]
    pub(crate) acme: AcmeOptions,
    #[command(flatten, next_help_heading = "TLS to clients")]
    #[serde(flatten)]
    pub(crate) tls: OptionValues<TlsSettings>,
    #[command(flatten, next_help_heading = "TLS to upstreams")]
    #[serde(flatten)]
    pub(crate) upstream_tls: UpstreamTlsOptions,
    /// Run the built-in load, such as rate=500,connections=64,resume=80%; other words: arrivals, http2, streams,
    /// keep-alive, lifetime, source-addresses, threads, duration, warmup, requests. Without rate the loop is closed;
    /// rate may have stages, such as 100..1000/30s+1000/60s. Or like=SOURCE, the traffic of a recording again and again,
    /// with path=/bytes/{bytes}, scale=FACTOR, speed=FACTOR (docs/load.md)
    #[arg(long, help_heading = EXPERIMENTS, value_name = "PLAN")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) load: Option<ParsedValue<BuiltInLoad>>,
    /// Worker threads, each with its own event loop [1 to 256] [default: one per core]
    #[arg(long, help_heading = PROCESS, value_name = "N", value_parser = workers)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workers: Option<NonZeroUsize>,
    /// Cores for the workers, such as 0-3,8: one worker on each unless --workers says more [default: any core]
    #[arg(long, help_heading = PROCESS, value_name = "LIST")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpus: Option<ParsedValue<Cpus>>,
    #[command(flatten, next_help_heading = "Limits and timeouts")]
    #[serde(flatten)]
    pub(crate) limits: OptionValues<Limits>,
    /// End after this time and print a summary
    #[arg(long, help_heading = PROCESS, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration: Option<ParsedValue<PositiveDuration>>,
    /// Record server names and client fingerprints: on or off [default: on]
    #[arg(long, help_heading = RECORDS, value_name = "SWITCH")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) log_names: Option<OnOff>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) run: RunOptions,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) appearance: AppearanceOptions,
    #[arg(skip)]
    #[serde(flatten, skip_serializing)]
    pub(crate) tables: AppearanceTables,
    #[command(flatten, next_help_heading = HTTP_MODE)]
    #[serde(flatten)]
    pub(crate) http: HttpOptions,
    #[command(flatten, next_help_heading = HTTP_MODE)]
    #[serde(flatten)]
    pub(crate) http_limits: OptionValues<HttpLimits>,
    /// The words that the configuration file has.
    #[arg(skip)]
    #[serde(skip)]
    pub(crate) words: BTreeSet<String>,
}

/// What the command line of the proxy has besides.
#[derive(Args, Debug)]
pub(crate) struct ProxyArgs {
    /// Configuration file in TOML with the same options; flags win
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the configuration in force, with defaults, and exit
    #[arg(long)]
    pub(crate) print_config: bool,
    #[command(flatten)]
    options: ProxyOptions,
}

impl ProxyArgs {
    /// The flags of the proxy.
    pub(crate) fn command() -> Command {
        Self::augment_args(Command::new("tlsdash"))
    }
}

impl ProxyOptions {
    /// The same, with an address to listen on if there is none, and the defaults of the mode.
    pub(crate) fn with_defaults(mut self) -> anyhow::Result<Self> {
        if self.listen.is_empty() {
            self.listen.push(LISTEN.parse()?);
        }
        if self.mode == ProxyMode::Http {
            self.tls.set_default("alpn", ALPN)?;
        }
        Ok(self)
    }
}
