//! `tlsdash --listen … --upstream …`: the proxy, with the dashboard and, if asked for, the load beside it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::Context;
use loadgen::{Load, LoadConfig, Plan, Target, Template, Trust};
use proxy_core::{Certificate, ListenAddr, Proxy, ProxyConfig, Upstream};
use telemetry::RunRecord;

use crate::args::{ProxyArgs, ProxyWords, time, usage};
use crate::frontend::Frontend;
use crate::recorder::Measured;
use crate::session::{Session, Shape, Wiring, host_name};

/// Runs the proxy until it is told to end.
pub(crate) fn run(args: ProxyArgs) -> anyhow::Result<()> {
    let file = args.config.as_deref().map(ProxyWords::read).transpose()?.unwrap_or_default();
    let words = args.words.or(file).or(ProxyWords::defaults());
    if args.print_config {
        return crate::summary::print_text(&words.to_toml()?);
    }
    let shape = Shape::resolve(&words.run, words.duration.as_deref())?;
    let plan = words.load.as_deref().map(|plan| plan.parse::<Plan>().map_err(usage)).transpose()?;
    let config = proxy_config(&words)?;
    if let Err(error) = config.upstream.probe() {
        crate::say(format_args!("warning: {error}; clients will be turned away until it is there"));
    }
    let wiring = Wiring::new(&shape)?;
    start(config, plan, Vec::new(), shape, wiring)
}

/// Starts the proxy and what goes with it, and runs them to the end.
pub(crate) fn start(
    config: ProxyConfig,
    plan: Option<Plan>,
    requests: Vec<Template>,
    shape: Shape,
    wiring: Wiring,
) -> anyhow::Result<()> {
    let mut header = RunRecord {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: host_name(),
        upstream: config.upstream.to_string(),
        certificate: config.certificate.kind().to_owned(),
        workers: config.workers.get() as u64,
        ..RunRecord::default()
    };
    let leaf = config.certificate.leaf_der().to_vec();
    // Everything that can be refused is asked for before the first connection is accepted.
    let bound = Proxy::bind(config)?;
    let writer = shape.journal.open()?;
    let proxy = bound.start()?;
    let addrs: Vec<String> = proxy.local_addrs().iter().map(ToString::to_string).collect();
    header.listen = addrs.join(" ");
    let load = match plan {
        Some(plan) => {
            let addr = proxy.local_addrs().first().copied().context("the proxy listens nowhere")?;
            let target = load_target(addr)?;
            let config = LoadConfig::new(target, plan, Trust::Certificate(leaf));
            // Paused: the recorder lets it go when everything stands.
            Some(Load::start(LoadConfig { requests, paused: true, ..config })?)
        }
        None => None,
    };
    if shape.frontend == Frontend::Headless {
        let journal = writer
            .as_ref()
            .map_or_else(|| "off".into(), |writer| format!("file:{}", writer.path().display()));
        crate::say(format_args!(
            "listening on {}, forwarding to {}, journal {journal}",
            header.listen, header.upstream
        ));
    }
    let title = format!("{} > {}", header.listen, header.upstream);
    let measured = Measured { proxy: Some(proxy), load, observed: None, ends_with_load: false };
    Session { shape, wiring, title, header, measured, writer }.run()
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
    let upstream = words.upstream.as_deref().ok_or_else(|| {
        usage("--upstream is missing: where shall plaintext go? (unix:/path or host:port; `tlsdash demo` needs none)")
    })?;
    let upstream: Upstream =
        upstream.parse().map_err(|error| usage(format!("--upstream {upstream}: {error}")))?;
    let certificate = certificate(words.cert.as_deref(), words.key.as_deref())?;
    let mut config = ProxyConfig::new(listen, upstream, certificate);
    if let Some(workers) = words.workers {
        config.workers = workers;
    }
    let limits = &mut config.limits;
    limits.connections_max = words.connections_max.map(std::num::NonZeroUsize::get);
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

fn certificate(cert: Option<&Path>, key: Option<&Path>) -> anyhow::Result<Certificate> {
    let certificate = match (cert, key) {
        (Some(cert), Some(key)) => Certificate::load(cert, key).map_err(usage)?,
        (None, None) => {
            crate::say("no --cert: made a certificate for localhost and this host's name, in memory");
            generated()?
        }
        (Some(_), None) => return Err(usage("--cert needs --key: the file with its private key")),
        (None, Some(_)) => return Err(usage("--key needs --cert: the file with its certificate")),
    };
    for warning in certificate.warnings() {
        crate::say(format_args!("warning: {warning}"));
    }
    Ok(certificate)
}

/// A certificate for this host, made in memory.
pub(crate) fn generated() -> anyhow::Result<Certificate> {
    Certificate::generate(&["localhost".to_owned(), host_name()]).context("cannot make a certificate")
}
