//! `tlsdash --listen … --upstream …`: the proxy, with the dashboard and, if asked for, the load beside it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::num::NonZeroUsize;

use anyhow::Context;
use loadgen::{Known, Load, LoadConfig, Plan, Target, Template, Trust};
use proxy_core::{BoundProxy, Certificate, Cpus, ListenAddr, Proxy, ProxyConfig, Tls, Upstream};
use telemetry::RunRecord;

use crate::args::{ProxyArgs, ProxyWords, time, usage};
use crate::frontend::Frontend;
use crate::privileges;
use crate::recorder::Measured;
use crate::look::Look;
use crate::service;
use crate::session::{Session, Shape, Wiring, host_name};

/// Runs the proxy until it is told to end.
pub(crate) fn run(args: ProxyArgs) -> anyhow::Result<()> {
    let file = args.config.as_deref().map(ProxyWords::read).transpose()?.unwrap_or_default();
    let words = args.words.or(file);
    let inherited = if args.print_config { Vec::new() } else { service::inherited()? };
    if !inherited.is_empty() && !words.listen.is_empty() {
        return Err(usage("--listen goes not together with sockets from the service manager (LISTEN_FDS)"));
    }
    let words = words.or(ProxyWords::defaults());
    if args.print_config {
        return crate::summary::print_text(&words.to_toml()?);
    }
    let look = Look::resolve(&words.run.look, &words.tables)?;
    let mut shape = Shape::resolve(&words.run, words.duration.as_deref(), look)?;
    let plan = words.load.as_deref().map(|plan| plan.parse::<Plan>().map_err(usage)).transpose()?;
    let user = words.user.as_deref().map(privileges::Target::resolve).transpose()?;
    let config = proxy_config(&words)?;
    let absent: Vec<_> = config.upstreams.iter().filter_map(|upstream| upstream.probe().err()).collect();
    let what_then = if absent.len() == config.upstreams.len() {
        "clients will be turned away until it is there"
    } else {
        "clients go elsewhere until it is there"
    };
    for error in absent {
        crate::say(format_args!("warning: {error}; {what_then}"));
    }
    let bound = Bound::bind(config, inherited)?;
    if let Some(user) = &user {
        shape.journal = shape.journal.hand_to(user)?;
        user.become_it()?;
    }
    let wiring = Wiring::new(&shape)?;
    bound.start(plan, Vec::new(), shape, wiring)
}

/// A proxy that has its addresses, and what is told of it.
pub(crate) struct Bound {
    proxy: BoundProxy,
    header: RunRecord,
}

impl Bound {
    /// Asks for everything that the proxy can be refused, before the first connection is accepted. It listens on the
    /// `inherited` sockets, if there are any.
    pub(crate) fn bind(config: ProxyConfig, inherited: Vec<TcpListener>) -> anyhow::Result<Self> {
        let header = header(&config);
        let proxy = if inherited.is_empty() {
            Proxy::bind(config)?
        } else {
            Proxy::bind_inherited(config, inherited)?
        };
        Ok(Self { proxy, header })
    }

    /// Starts the proxy and what goes with it, and runs them to the end.
    pub(crate) fn start(
        self,
        plan: Option<Plan>,
        requests: Vec<Template>,
        shape: Shape,
        wiring: Wiring,
    ) -> anyhow::Result<()> {
        let Self { proxy: bound, mut header } = self;
        let journal = shape.journal.open()?;
        let proxy = bound.start()?;
        let addrs: Vec<String> = proxy.local_addrs().iter().map(ToString::to_string).collect();
        header.listen = addrs.join(" ");
        let load = match plan {
            Some(plan) => {
                let addr = proxy.local_addrs().first().copied().context("the proxy listens nowhere")?;
                let target = load_target(addr)?;
                let presented = proxy.presented();
                let trust = Trust::Known(Known::new(move |der| presented.contains(der)));
                let config = LoadConfig::new(target, plan, trust);
                // Paused: the recorder lets it go when everything stands.
                Some(Load::start(LoadConfig { requests, paused: true, ..config })?)
            }
            None => None,
        };
        service::ready();
        if shape.frontend == Frontend::Headless {
            let place = journal.source().map_or_else(|| "off".to_owned(), |source| source.to_string());
            crate::say(format_args!(
                "listening on {}, forwarding to {}, journal {place}",
                header.listen, header.upstream
            ));
        }
        let title = format!("{} > {}", header.listen, header.upstream);
        let measured = Measured { proxy: Some(proxy), load, observed: None, ends_with_load: false };
        Session { shape, wiring, title, header, measured, journal }.run()
    }
}

fn header(config: &ProxyConfig) -> RunRecord {
    RunRecord {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: host_name(),
        upstream: config.upstreams.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        certificate: certificate_kinds(&config.tls),
        workers: config.workers.get() as u64,
        ..RunRecord::default()
    }
}

/// The built-in load comes in by the front door, over loopback if the proxy listens everywhere.
fn load_target(listening: SocketAddr) -> anyhow::Result<Target> {
    let ip = match listening.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        // A dual-stack listener also takes IPv4, which has many loopback addresses to come from.
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        ip => ip,
    };
    let target = format!("https://{}/", SocketAddr::new(ip, listening.port()));
    target.parse().with_context(|| format!("cannot aim the load at {target}"))
}

fn proxy_config(words: &ProxyWords) -> anyhow::Result<ProxyConfig> {
    let listen = words
        .listen
        .iter()
        .map(|addr| addr.parse::<ListenAddr>().map_err(|error| usage(format!("--listen {addr}: {error}"))))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let upstreams = words
        .upstream
        .iter()
        .map(|upstream| upstream.parse().map_err(|error| usage(format!("--upstream {upstream}: {error}"))))
        .collect::<anyhow::Result<Vec<Upstream>>>()?;
    let Some(first) = upstreams.first().cloned() else {
        return Err(usage(
            "--upstream is missing: where shall plaintext go? (unix:/path or host:port; `tlsdash demo` needs none)",
        ));
    };
    let tls = words.tls.resolve(words.load.is_some())?;
    let mut config = ProxyConfig::new(listen, first, tls);
    config.upstreams = upstreams;
    if let Some(cpus) = &words.cpus {
        let cpus: Cpus = cpus.parse().map_err(|error| usage(format!("--cpus {cpus}: {error}")))?;
        config.workers = NonZeroUsize::new(cpus.count()).unwrap_or(NonZeroUsize::MIN);
        config.cpus = Some(cpus);
    }
    config.workers = words.workers.unwrap_or(config.workers);
    if let Some(version) = &words.proxy_protocol {
        let version =
            version.parse().map_err(|error| usage(format!("--proxy-protocol {version}: {error}")))?;
        config.proxy_protocol = Some(version);
    }
    if let Some(peers) = &words.accept_proxy {
        config.accept_proxy =
            peers.parse().map_err(|error| usage(format!("--accept-proxy {peers}: {error}")))?;
    }
    let limits = &mut config.limits;
    limits.connections_max = words.connections_max.map(NonZeroUsize::get);
    limits.handshakes_max = words.handshakes_max.map(NonZeroUsize::get);
    limits.connections_per_client = words.connections_per_client.map(NonZeroUsize::get);
    for (flag, word, limit) in [
        ("handshake-timeout", &words.handshake_timeout, &mut limits.handshake_timeout),
        ("connect-timeout", &words.connect_timeout, &mut limits.connect_timeout),
        ("idle-timeout", &words.idle_timeout, &mut limits.idle_timeout),
        ("drain-timeout", &words.drain_timeout, &mut limits.drain_timeout),
    ] {
        if let Some(text) = word {
            *limit = time(flag, text)?;
        }
    }
    Ok(config)
}

/// The kinds of keys, each once.
fn certificate_kinds(tls: &Tls) -> String {
    let mut kinds: Vec<&str> = tls.certificates.iter().map(Certificate::kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.join(", ")
}

/// A certificate for this host, made in memory.
pub(crate) fn generated() -> anyhow::Result<Certificate> {
    Certificate::generate(&["localhost".to_owned(), host_name()]).context("cannot make a certificate")
}
