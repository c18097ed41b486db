//! The options of the proxy, and the configuration file.

mod error;
pub(crate) mod source;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use loadgen::Plan;
use proxy_core::proxy_protocol::ProxyProtocol;
use proxy_core::{Limits, ListenAddr, Networks, TlsSettings, Upstream};
use proxy_http::HttpLimits;
use records::text::Cpus;
use serde::{Deserialize, Serialize};

use crate::cli::acme::AcmeOptions;
use crate::cli::appearance::{AppearanceOptions, AppearanceTables};
use crate::cli::balancing::BalancingOptions;
use crate::cli::http::{ALPN, HttpOptions, OnOff};
use crate::cli::mode::ProxyMode;
use crate::cli::tls::TlsFileOptions;
use crate::cli::upstream_tls::UpstreamTlsOptions;
use crate::cli::value::options::OptionValues;
use crate::cli::value::route::RouteOption;
use crate::cli::value::{ParsedValue, PositiveDuration, one_or_many, workers};
use crate::cli::{Flags, RunOptions};
use crate::control::ControlOptions;
use crate::control::client::SOCKET_NAME;
use crate::error::usage;
pub use error::ConfigurationError;
use error::table_lines;
use source::ConfigurationSource;

/// Largest configuration file that is read, in bytes.
const CONFIGURATION_BYTES_MAX: u64 = 1 << 20;
/// The default address of the proxy.
const LISTEN: &str = ":8443";

/// The words of the routes.
pub(crate) const UPSTREAM: &str = "upstream";
pub(crate) const ROUTE: &str = "route";
pub(crate) const PASS: &str = "pass";

/// What the proxy takes, on the command line and in the configuration file.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct ProxyOptions {
    /// What the proxy does: tcp forwards bytes, http terminates HTTP/2 and HTTP/1.1 and routes requests (docs/http.md)
    #[arg(long, value_name = "MODE", default_value = "tcp")]
    pub(crate) mode: ProxyMode,
    /// Address to listen on, such as :8443 (dual stack), 127.0.0.1:8443 or [::1]:8443; may be repeated
    /// [default: :8443]
    #[arg(long, value_name = "ADDR")]
    #[serde(deserialize_with = "one_or_many")]
    pub(crate) listen: Vec<ParsedValue<ListenAddr>>,
    /// Address of HTTP without TLS, such as :80, that redirects every request to https on the same host, and the port of
    /// the first --listen
    #[arg(long, value_name = "ADDR")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) redirect_http: Option<ParsedValue<ListenAddr>>,
    /// Upstream that gets the plaintext: unix:/path or host:port, with tls:// in front over TLS, in HTTP mode with h2c:// or
    /// h2:// for HTTP/2 without or with TLS, and behind it ,weight=N (1 to 256) for a larger share and ,name=NAME for the
    /// name of its certificate; may be repeated
    #[arg(long, value_name = "TARGET")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_many")]
    pub(crate) upstream: Vec<ParsedValue<Upstream>>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) balancing: BalancingOptions,
    /// Send clients of a server name (TCP mode), or requests of a host and path (HTTP mode), to these upstreams, such as
    /// api.example=unix:/run/api.sock or shop.example/static=127.0.0.1:9000,127.0.0.1:9001; may be repeated: --upstream
    /// gets the rest
    #[arg(long, value_name = "[HOST][/PATH]=UPSTREAM,...")]
    #[serde(skip_serializing)]
    pub(crate) route: Vec<RouteOption>,
    /// Pass the TLS of clients of a server name to these upstreams unread, such as legacy.example=10.0.0.9:443: they
    /// terminate it; may be repeated
    #[arg(long, value_name = "HOST=UPSTREAM,...")]
    #[serde(skip_serializing)]
    pub(crate) pass: Vec<RouteOption>,
    /// Run as this user, NAME or NAME:GROUP, after binding addresses and reading keys as root
    #[arg(long, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    /// Socket through which `tlsdash ctl` controls the service, or off [default: control.sock in $RUNTIME_DIRECTORY, with
    /// --headless]
    #[arg(long, value_name = "PATH")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) control: Option<PathBuf>,
    /// Group whose members may control the service, besides root and the service's own user
    #[arg(long, value_name = "GROUP")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) control_group: Option<String>,
    /// Group whose members may ask for settings and figures, and change nothing
    #[arg(long, value_name = "GROUP")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) control_readers: Option<String>,
    /// Send the upstream a PROXY header that names the client: v1, or v2 with the TLS parameters [default: none]
    #[arg(long, value_name = "VERSION")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) proxy_protocol: Option<ParsedValue<ProxyProtocol>>,
    /// Trusted proxies, which must send a PROXY header, such as 10.0.0.0/8,2001:db8::1 [default: none]
    #[arg(long, value_name = "CIDR,...")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) accept_proxy: Option<ParsedValue<Networks>>,
    /// File with the networks and addresses that may connect, one a line [default: all]
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allow: Option<PathBuf>,
    /// File with those that may not, even if they are allowed; a reload reads both files again [default: none]
    #[arg(long, value_name = "FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deny: Option<PathBuf>,
    /// Whether records name the server names that clients ask for, and the fingerprints of their TLS libraries [default: on]
    #[arg(long, value_name = "SWITCH")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) log_names: Option<OnOff>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) tls_files: TlsFileOptions,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) acme: AcmeOptions,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) tls: OptionValues<TlsSettings>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) upstream_tls: UpstreamTlsOptions,
    /// Run the built-in load, such as rate=500,connections=64,resume=80%; other words: arrivals, http2, streams,
    /// keepalive, lifetime, sources, threads, duration, warmup, requests. Without rate the loop is closed; rate may have stages, such as
    /// 100..1000/30s+1000/60s
    #[arg(long, value_name = "PLAN")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) load: Option<ParsedValue<Plan>>,
    /// Worker threads, each with its own event loop [default: one per core]
    #[arg(long, value_name = "N", value_parser = workers)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) workers: Option<NonZeroUsize>,
    /// Cores for the workers, such as 0-3,8: one worker on each unless --workers says more [default: any core]
    #[arg(long, value_name = "LIST")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpus: Option<ParsedValue<Cpus>>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) limits: OptionValues<Limits>,
    /// End after this time and print a summary
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration: Option<ParsedValue<PositiveDuration>>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) run: RunOptions,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) appearance: AppearanceOptions,
    #[arg(skip)]
    #[serde(flatten, skip_serializing)]
    pub(crate) tables: AppearanceTables,
    // These are last: the heading holds for all flags that follow.
    #[command(flatten, next_help_heading = "HTTP mode")]
    #[serde(flatten)]
    pub(crate) http: HttpOptions,
    #[command(flatten, next_help_heading = "HTTP mode")]
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

    /// Where the options come from.
    pub(crate) fn source(self, flags: Flags) -> ConfigurationSource {
        ConfigurationSource { file: self.config, flags, flag_options: self.options }
    }
}

impl ProxyOptions {
    /// The control socket; `None` without one.
    pub(crate) fn control_options(&self) -> Option<ControlOptions> {
        let of_unit = || {
            let folder = std::env::var_os("RUNTIME_DIRECTORY").filter(|_| self.run.headless)?;
            Some(PathBuf::from(folder).join(SOCKET_NAME))
        };
        let path = match &self.control {
            Some(path) if path.as_os_str() == "off" => return None,
            Some(path) => path.clone(),
            None => of_unit()?,
        };
        Some(ControlOptions {
            path,
            group: self.control_group.clone(),
            readers: self.control_readers.clone(),
        })
    }

    /// Reads a configuration file.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        Self::read_opened(path, File::open(path))
    }

    /// Reads a configuration file again. Unlike at the start, it must be a regular file: nobody writes into a pipe a second
    /// time.
    pub(super) fn read_again(path: &Path) -> anyhow::Result<Self> {
        let file = journal::open_regular(path);
        let regular = |file: Option<_>| file.ok_or_else(|| io::Error::other("it is not a regular file"));
        Self::read_opened(path, file.and_then(regular))
    }

    fn read_opened(path: &Path, file: io::Result<File>) -> anyhow::Result<Self> {
        let text = read_text(path, file)?;
        Self::parse(&text).map_err(|error| usage(format!("configuration {} {error}", path.display())))
    }

    /// Reads the text of one.
    pub(super) fn parse(text: &str) -> Result<Self, ConfigurationError> {
        let table: toml::Table = text.parse().map_err(|error| ConfigurationError::syntax(text, &error))?;
        let mut options =
            Self::deserialize(table.clone()).map_err(|error| ConfigurationError::of_keys(text, &error))?;
        for (routes, word) in [(&mut options.route, ROUTE), (&mut options.pass, PASS)] {
            for (route, line) in routes.iter_mut().zip(table_lines(text, word)) {
                route.line = Some(line);
            }
        }
        options.words = table.keys().cloned().collect();
        Ok(options)
    }

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

/// Reads the text of a configuration file.
pub(crate) fn read_file(path: &Path) -> anyhow::Result<String> {
    read_text(path, File::open(path))
}

fn read_text(path: &Path, file: io::Result<File>) -> anyhow::Result<String> {
    let name = path.display();
    let cannot = |error: io::Error| usage(format!("cannot read configuration {name}: {error}"));
    let mut text = String::new();
    let file = file.map_err(cannot)?;
    file.take(CONFIGURATION_BYTES_MAX + 1).read_to_string(&mut text).map_err(cannot)?;
    if text.len() as u64 > CONFIGURATION_BYTES_MAX {
        return Err(usage(format!("configuration {name} has more than {CONFIGURATION_BYTES_MAX} bytes")));
    }
    Ok(text)
}

/// Parses the text of a configuration file, and checks its keys and values as far as possible without other files and
/// name resolution. Returns it as `--print-config` prints it.
///
/// # Errors
/// With the line and the problem.
pub fn read_configuration(text: &str) -> Result<String, ConfigurationError> {
    let options = ProxyOptions::parse(text)?;
    let refuse = |problem| ConfigurationError { line: None, problem };
    options.tls.values().check().map_err(|error| refuse(error.to_string()))?;
    let printed = options.with_defaults().and_then(|options| options.to_toml());
    printed.map_err(|error| refuse(crate::error::line(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::Cli;

    #[test]
    fn flags_win_over_the_file_and_the_file_over_the_defaults() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tlsdash.toml");
        let text = "upstream = \"unix:/a\"\nworkers = 3\ninterval = \"2s\"\nheadless = true\nidle-timeout = \"1m\"\n\
                    tls-max = \"1.2\"\ncert = \"a.pem\"\nkey = \"a.key\"";
        std::fs::write(&file, text).unwrap();
        let args =
            ["tlsdash", "--config", file.to_str().unwrap(), "--upstream", "unix:/b", "--tls-min", "1.2"];
        let (cli, flags) = Cli::read(args.into_iter().chain(["--cert", "b.pem"])).unwrap();
        let options = cli.proxy.source(flags).read().unwrap().with_defaults().unwrap();
        assert_eq!(options.upstream.iter().map(ParsedValue::text).collect::<Vec<_>>(), ["unix:/b"]);
        assert_eq!(options.workers.map(NonZeroUsize::get), Some(3));
        assert_eq!((options.run.interval.text(), options.run.journal.text()), ("2s", "auto"));
        assert!(options.run.headless && !options.run.append);
        assert_eq!(options.limits.values().idle_timeout.as_secs(), 60);
        assert!(options.tls.is_given("tls-min") && options.tls.is_given("tls-max"));
        assert_eq!(options.listen.iter().map(ParsedValue::text).collect::<Vec<_>>(), [":8443"]);
        assert_eq!((options.tls_files.cert.len(), options.tls_files.key.len()), (1, 0));
    }

    #[test]
    fn a_configuration_is_read_without_files_and_refused_in_one_line() {
        let printed = read_configuration("").unwrap();
        assert_eq!(read_configuration(&printed), Ok(printed.clone()));
        let all = printed.replace("# ", "");
        assert!(read_configuration(&all).is_ok(), "{all}");
        for (text, part) in [
            ("upstream = [", "line 1"),
            ("\n\nworkers = \"two\"", "line 3: workers"),
            ("idle-timeout = \"2days\"", "line 1: idle-timeout: 2days: expected a time from 1ms to 24h"),
            ("idle-timeout = 30", "idle-timeout: expected a text: write \"30s\""),
            ("idle-timeout = 100000", "idle-timeout: 100000s: expected a time from 1ms to 24h"),
            ("\nworkers = []", "line 2: workers: "),
            ("interval = 1", "interval: expected a text: write \"1s\""),
            ("tls-min = 1.2", "tls-min: expected a text: write \"1.2\""),
            ("tickets = \"2\"", "tickets: expected a number: write 2"),
            ("tickets = \"x\"", "tickets: x: expected a whole number from"),
            (
                "# idle_timeout\n\nidle_timeout = \"1s\"",
                "line 3: idle_timeout: unknown field `idle_timeout`; did you mean `idle-timeout`?",
            ),
            ("tickets = 2\nticket = 2", "line 2: ticket: unknown field `ticket`; did you mean"),
            (
                "tickets = 2\n[limits]\ntickets = 2",
                "line 2: limits: unknown field `limits`; the tables are [[route]], [[pass]]",
            ),
            ("[keys]\nquit = [\"q\"]\nhelp = \"h\"", "line 3: keys: "),
            ("[colors]\n\nkeys.quit = 1", "line 3: colors: "),
            ("groups = \"x448\"", "x448 is not known"),
            ("listen = [\"8443\"]", "line 1: listen: 8443"),
            ("listen = \"8443\"", "line 1: listen: 8443"),
            ("upstream = \"x\"", "line 1: upstream: x"),
            ("half-closed-timeout = \"1s\"", "unknown field"),
            ("ticket-send = \"\\nswer\"", "is not known"),
            ("tls-min = \"1.3\"\ntls-max = \"1.2\"", "tls-min is later than tls-max"),
        ] {
            let error = read_configuration(text).unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains('\n'), "{error}");
        }
    }
}
