//! From the words of the command line to what a load is started with.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loadgen::{
    Body, Expect, Identity, KeepAlive, LoadConfig, Plan, Profile, Protocol, Rate, Share, Target, Template,
    TlsOptions, TlsVersion, Trust, parse_targets, read_body,
};

use super::args::{LoadArgs, PlanArgs, RequestArgs, TlsArgs};
use crate::cli::{time, usage};

/// Length of a load that is given none.
const DURATION: Duration = Duration::from_secs(10);
/// Longest file of requests.
const TARGETS_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// One load of several that are run one after the other.
#[derive(Debug)]
pub(crate) struct Variant {
    /// What is special about it; empty if it is the only one.
    pub(crate) name: String,
    pub(crate) config: LoadConfig,
}

/// The loads to run: one, or one for each size of bodies.
pub(crate) fn variants(args: &LoadArgs) -> anyhow::Result<Vec<Variant>> {
    let target: Target = args.url.parse().map_err(usage)?;
    if !target.is_tls() {
        refuse_tls_words(&args.tls, &target)?;
    }
    let base = LoadConfig {
        unix_socket: args.request.unix_socket.clone(),
        protocol: if args.request.http2 {
            Protocol::Http2 { streams: args.request.streams.unwrap_or(1) }
        } else {
            Protocol::Http1
        },
        tls: tls(&args.tls)?,
        ..LoadConfig::new(target.clone(), plan(&args.plan, &args.tls)?, trust(&args.tls))
    };
    let base = match &args.plan.timeout {
        Some(text) => LoadConfig { request_timeout: time("timeout", text)?, ..base },
        None => base,
    };
    if let Some(path) = &args.request.targets {
        let requests = read_targets(path, &target)?;
        return Ok(vec![Variant { name: String::new(), config: LoadConfig { requests, ..base } }]);
    }
    let body = args.request.body.as_deref().map(|path| read_body(path).map_err(usage)).transpose()?;
    let sizes = &args.request.body_bytes;
    let bodies: Vec<(String, Option<Body>)> = match &sizes[..] {
        [] => vec![(String::new(), body)],
        [size] => vec![(String::new(), Some(Body::Bytes(*size)))],
        sizes => sizes.iter().map(|size| (format!("{size} bytes"), Some(Body::Bytes(*size)))).collect(),
    };
    let variant = |(name, body)| -> anyhow::Result<Variant> {
        let requests = template(&args.request, &target, body)?.into_iter().collect();
        Ok(Variant { name, config: LoadConfig { requests, ..base.clone() } })
    };
    bodies.into_iter().map(variant).collect()
}

/// The one request that the command line describes; `None` if it says nothing of one.
fn template(args: &RequestArgs, target: &Target, body: Option<Body>) -> anyhow::Result<Option<Template>> {
    let is_plain = args.method.is_none() && args.header.is_empty() && body.is_none();
    if is_plain && !args.expect_echo && args.expect_bytes.is_none() {
        return Ok(None);
    }
    let field = |text: &String| {
        let (name, value) = text.split_once(':').ok_or_else(|| {
            usage(format!("--header {}: expected NAME: VALUE", telemetry::clean::text(text)))
        })?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    };
    let method = match (&args.method, &body) {
        (Some(method), _) => method.clone(),
        (None, Some(_)) => "POST".to_owned(),
        (None, None) => "GET".to_owned(),
    };
    let expect = match args.expect_bytes {
        _ if args.expect_echo => Expect::Echo,
        Some(bytes) => Expect::Bytes(bytes),
        None => Expect::Announced,
    };
    Ok(Some(Template {
        method,
        headers: args.header.iter().map(field).collect::<anyhow::Result<_>>()?,
        body: body.unwrap_or(Body::Bytes(0)),
        expect,
        ..Template::get(target.path())
    }))
}

fn read_targets(path: &Path, target: &Target) -> anyhow::Result<Vec<Template>> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().take(TARGETS_BYTES_MAX).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(TARGETS_BYTES_MAX).read_to_string(&mut text))
    };
    read.map_err(|error| usage(format!("cannot read --targets {}: {error}", path.display())))?;
    let folder = path.parent().map_or_else(PathBuf::new, Path::to_owned);
    parse_targets(&text, target, &folder)
        .map_err(|error| usage(format!("--targets {} {error}", path.display())))
}

fn trust(args: &TlsArgs) -> Trust {
    match &args.ca {
        Some(file) => Trust::CaFile(file.clone()),
        None if args.insecure => Trust::Insecure,
        None => Trust::Roots,
    }
}

fn tls(args: &TlsArgs) -> anyhow::Result<TlsOptions> {
    let version = match args.tls_version.as_deref() {
        None => None,
        Some("1.2") => Some(TlsVersion::V12),
        Some("1.3") => Some(TlsVersion::V13),
        Some(other) => return Err(usage(format!("--tls-version {other}: expected 1.2 or 1.3"))),
    };
    let pair = args.client_cert.clone().zip(args.client_key.clone());
    Ok(TlsOptions {
        version,
        ciphers: args.ciphers.clone(),
        groups: args.groups.clone(),
        alpn: Vec::new(),
        server_name: args.sni.clone(),
        identity: pair.map(|(certificates, key)| Identity { certificates, key }),
    })
}

/// Words that would say nothing without TLS are a mistake; those about trust may stand in a script for both.
fn refuse_tls_words(args: &TlsArgs, target: &Target) -> anyhow::Result<()> {
    let words = [
        ("resume", args.resume.is_some()),
        ("tls-version", args.tls_version.is_some()),
        ("ciphers", !args.ciphers.is_empty()),
        ("groups", !args.groups.is_empty()),
        ("sni", args.sni.is_some()),
        ("client-cert", args.client_cert.is_some()),
    ];
    match words.iter().find(|(_, is_given)| *is_given) {
        Some((word, _)) => Err(usage(format!("--{word} needs TLS: {target} is not https:// or tls://"))),
        None => Ok(()),
    }
}

/// As wrk and h2load read it: seconds, where there is no unit.
fn length(text: &str) -> anyhow::Result<Duration> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    time("duration", &if is_number { format!("{text}s") } else { text.to_owned() })
}

fn plan(args: &PlanArgs, tls: &TlsArgs) -> anyhow::Result<Plan> {
    let mut plan = Plan::default();
    if let Some(rate) = &args.rate {
        let profile = rate.parse::<Profile>();
        plan.rate = Some(profile.map_err(|error| usage(format!("--rate {rate}: {error}")))?);
    }
    if let Some(which) = args.arrivals.as_deref() {
        plan.arrivals = match which {
            "even" => loadgen::Arrivals::Even,
            "poisson" => loadgen::Arrivals::Poisson,
            _ => return Err(usage(format!("--arrivals {which}: expected even or poisson"))),
        };
    }
    if let (Some(text), Some(requests)) = (&args.ramp_up, args.requests) {
        let rate = Rate::per_second(requests as f64 / time("ramp-up", text)?.as_secs_f64());
        let out_of_range = || usage(format!("--ramp-up {text}: {requests} requests in it are no rate"));
        plan.rate = Some(rate.map(Profile::constant).ok_or_else(out_of_range)?);
    }
    if let Some(share) = &tls.resume {
        let number = share.strip_suffix('%').unwrap_or(share).parse::<f64>().ok();
        let expected = || usage(format!("--resume {share}: expected a share from 0% to 100%"));
        plan.resume = number.and_then(Share::percent).ok_or_else(expected)?;
    }
    plan.early_data = tls.early_data;
    if let Some(which) = args.keep_alive.as_deref() {
        let keepalive = which.parse::<KeepAlive>();
        plan.keepalive = keepalive.map_err(|error| usage(format!("--keep-alive {which}: {error}")))?;
    }
    let optional = |flag, text: &Option<String>| text.as_deref().map(|text| time(flag, text)).transpose();
    plan.connections = args.connections.unwrap_or(plan.connections);
    plan.threads = args.threads.unwrap_or(plan.threads);
    plan.sources = args.source_addresses;
    plan.requests = args.requests;
    plan.lifetime = optional("lifetime", &args.lifetime)?;
    plan.warmup = optional("warmup", &args.warmup)?;
    plan.duration = args.duration.as_deref().map(length).transpose()?;
    let has_end = plan.length().is_some() || plan.requests.is_some();
    plan.duration = plan.duration.or_else(|| (!has_end).then_some(DURATION));
    // Read back from its own words: the plan's rules stand in one place.
    plan.to_string().parse().map_err(usage)
}
