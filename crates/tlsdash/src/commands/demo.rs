//! `tlsdash demo`: certificate, upstream, proxy, load and dashboard in one, without set-up.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use loadgen::{DemoUpstream, Plan, PlanError, Template, UpstreamAddr};
use proxy_core::{ListenAddr, ListenerSource, ProxyConfig, TlsSettings, Upstream};
use proxy_http::{HttpConfig, Route};

use crate::cli::appearance::{Appearance, AppearanceOptions};
use crate::cli::help::CERTIFICATES;
use crate::cli::options::http::ALPN;
use crate::cli::options::load::{BuiltInLoad, LoadOptionError};
use crate::cli::options::mode::ProxyMode;
use crate::cli::options::tls::TlsFileOptions;
use crate::cli::{Flags, ProxyOptions, RunOptions};
use crate::commands::proxy::{self, PreparedLoad};
use crate::error::usage;
use crate::service::privileges;
use crate::session::{Channels, RunConfiguration, SessionConfig};
use crate::value::options::OptionValues;
use crate::value::{self, ParsedValue, PositiveDuration};

/// Shown below the help.
const EXAMPLES: &str = "Examples:
  tlsdash demo                            # with the dashboard; q ends it
  tlsdash demo --mode http                # HTTP/2, with two routes
  tlsdash demo --load rate=300,resume=0%  # every handshake is full
  tlsdash demo --headless --duration 10s  # a summary, without a screen
  tlsdash demo --record demo.journal      # keep it for watch and report";

#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Address of the proxy [default: a free port of 127.0.0.1]
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", hide_default_value = true)]
    pub(crate) listen: ListenAddr,
    /// What the proxy does: tcp forwards bytes, http speaks HTTP/2 and shows two routes
    #[arg(long, value_name = "MODE", default_value = "tcp")]
    pub(crate) mode: ProxyMode,
    /// Changes to the demo's load plan, such as rate=300; it is
    /// rate=1000,connections=32,source-addresses=16,keep-alive=10,resume=80%, in HTTP mode also http2=on,streams=4. Or
    /// like=RECORDING: a load like recorded traffic
    #[arg(long, value_name = "PLAN", default_value = "", hide_default_value = true)]
    pub(crate) load: String,
    /// Worker threads of the proxy [default: half the cores]
    #[arg(long, value_name = "N", value_parser = value::workers)]
    pub(crate) workers: Option<NonZeroUsize>,
    /// End after this time and print a summary
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<ParsedValue<PositiveDuration>>,
    /// Configuration file in TOML; for the dashboard's colours and keys
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten, next_help_heading = CERTIFICATES)]
    pub(crate) tls_files: TlsFileOptions,
    #[command(flatten, next_help_heading = "TLS")]
    pub(crate) tls: OptionValues<TlsSettings>,
    #[command(flatten)]
    pub(crate) run: RunOptions,
    #[command(flatten)]
    pub(crate) appearance: AppearanceOptions,
}

/// The demo's load: an open loop from many addresses, most connections resumed.
const PLAN: &str = "rate=1000,connections=32,source-addresses=16,keep-alive=10,resume=80%";
/// Additional options in HTTP mode.
const HTTP_PLAN: &str = "http2=on,streams=4";
/// The routes of HTTP mode. The demo's upstream knows them.
const ROUTES: [&str; 2] = ["/api", "/files"];

/// The demo's plan, with the given words in place of its own.
fn plan(mode: ProxyMode, words: &str) -> Result<Plan, PlanError> {
    let given: Vec<&str> = words.split(',').map(str::trim).collect();
    let name = |word: &str| word.split('=').next().unwrap_or_default().trim().to_owned();
    // Without HTTP/2 there are no streams.
    let replaces =
        |word: &str, own: &str| name(word) == name(own) || (word == "http2=off" && name(own) == "streams");
    let of_http = HTTP_PLAN.split(',').filter(|_| mode == ProxyMode::Http);
    let own = PLAN.split(',').chain(of_http);
    let kept = own.filter(|own| !given.iter().any(|word| replaces(word, own)));
    let merged: Vec<&str> = kept.chain(given.iter().copied()).collect();
    merged.join(",").parse()
}

/// The demo's load, or one like recorded traffic, with bodies of the recorded sizes.
fn load(mode: ProxyMode, words: &str) -> Result<BuiltInLoad, LoadOptionError> {
    if !words.starts_with("like=") {
        return Ok(BuiltInLoad::Plan(Box::new(plan(mode, words)?)));
    }
    let mut load = words.parse()?;
    if let BuiltInLoad::Like(like) = &mut load {
        let route = if mode == ProxyMode::Http { ROUTES[0] } else { "" };
        like.path.get_or_insert_with(|| format!("{route}/bytes/{{bytes}}"));
    }
    Ok(load)
}

/// Runs the demo until it must end.
pub(crate) fn run(args: &DemoArgs, flags: &Flags) -> anyhow::Result<()> {
    let load = load(args.mode, &args.load)
        .map_err(|error| usage(format!("--load {}: {error}", records::text::clean::text(&args.load))))?;
    let appearance = Appearance::with_file(args.config.as_deref(), flags)?;
    let mut session =
        SessionConfig::resolve(&args.run, args.duration.as_ref().map(|duration| duration.0), appearance)?;
    privileges::forbid_dumps()?;
    let mut settings = args.tls.clone();
    if args.mode == ProxyMode::Http {
        settings.set_default("alpn", ALPN)?;
    }
    let tls = args.tls_files.load(&settings, true)?;
    load.check(&tls.settings)?;
    let (load, words) = match load {
        BuiltInLoad::Plan(plan) => {
            let words = plan.to_string();
            (PreparedLoad::Plan(plan, requests(args.mode)), words)
        }
        BuiltInLoad::Like(_) => (PreparedLoad::read(&load)?, args.load.clone()),
    };
    // Before the folder exists, which a signal would leave behind.
    let channels = Channels::new(&session)?;
    let folder = tempfile::Builder::new()
        .prefix("tlsdash-")
        .tempdir()
        .context("cannot make a folder for the demo upstream's socket")?;
    let socket = folder.path().join("app.sock");
    let _upstream = DemoUpstream::start(UpstreamAddr::Unix(socket.clone()))?;
    let http = (args.mode == ProxyMode::Http).then(|| http(&socket)).transpose()?;
    let mut config = ProxyConfig::new(vec![args.listen], Upstream::unix(socket), tls);
    if http.is_some() {
        // The routes have it.
        config.upstreams.clear();
    }
    config.workers = args.workers.unwrap_or_else(half_the_cores);
    let options = ProxyOptions {
        mode: args.mode,
        listen: vec![args.listen.to_string().parse()?],
        tls_files: args.tls_files.clone(),
        tls: settings,
        load: Some(words.parse()?),
        workers: Some(config.workers),
        duration: args.duration.clone(),
        run: args.run.clone(),
        appearance: args.appearance.clone(),
        ..ProxyOptions::default()
    };
    session.configuration = Some(Box::new(RunConfiguration { options, source: None, program: None }));
    let bound = proxy::BoundSession::bind(config, http, ListenerSource::Bind)?;
    bound.start(Some(load), session, channels, None)
}

fn http(socket: &Path) -> anyhow::Result<HttpConfig> {
    let route = |path| Route::new("", path, vec![Upstream::unix(socket.to_owned())]);
    let routes = ROUTES.into_iter().map(route).collect::<Result<_, _>>()?;
    Ok(HttpConfig { routes, records_paths: true, ..HttpConfig::default() })
}

/// Small and large answers, and an upload now and then.
fn requests(mode: ProxyMode) -> Vec<Template> {
    let [api, files] = if mode == ProxyMode::Http { ROUTES } else { [""; 2] };
    vec![
        Template::get(format!("{api}/bytes/100")),
        Template::get(format!("{api}/bytes/1000")),
        Template::get(format!("{files}/bytes/10000")),
        Template::get(format!("{api}/bytes/100")),
        Template::get(format!("{files}/bytes/100000")),
        Template::get(format!("{api}/bytes/1000")),
        Template::post(format!("{api}/echo"), 2_000),
    ]
}

fn half_the_cores() -> NonZeroUsize {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    NonZeroUsize::new(cores / 2).unwrap_or(NonZeroUsize::MIN)
}

#[cfg(test)]
mod tests {
    use loadgen::Protocol;

    use super::*;

    #[test]
    fn words_of_the_demos_plan_can_be_replaced_one_by_one() {
        let changed = plan(ProxyMode::Tcp, "rate=50,keep-alive=off").unwrap();
        let own: Plan = PLAN.parse().unwrap();
        assert_eq!(changed.rate.map(|rate| rate.at(0)), Some(50.0));
        assert_eq!((changed.connections, changed.sources), (own.connections, own.sources));
        assert_ne!(changed.keepalive, own.keepalive);
    }

    #[test]
    fn in_http_mode_the_demo_speaks_http2_unless_told_otherwise() {
        let protocol = |words| plan(ProxyMode::Http, words).unwrap().protocol;
        assert_eq!(protocol(""), Protocol::Http2 { streams: 4 });
        assert_eq!(protocol("streams=32"), Protocol::Http2 { streams: 32 });
        assert_eq!(protocol("http2=off"), Protocol::Http1);
        assert_eq!(plan(ProxyMode::Tcp, "").unwrap().protocol, Protocol::Http1);
    }
}
