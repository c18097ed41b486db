//! From arguments to the configuration of a load.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use loadgen::{
    Destination, Expect, Identity, LoadConfig, Plan, Profile, Protocol, Rate, RequestBody, Share, Target,
    Template, TlsOptions, Trust, parse_targets, read_body,
};
use mix::TrafficMix;
use records::kinds::{Level, NoticeRecord};

use super::args::{LoadArgs, RequestArgs, TlsArgs};
use super::replay::{self, Replay, ReplayOptions};
use crate::commands::scripted;
use crate::error::usage;
use crate::journals::mixes;
use crate::journals::writers::WriterArgs;
use crate::session::check_experiment_ends;
use crate::value::{ParsedValue, PositiveDuration};

/// Streams of a connection in a replay, as browsers use them.
const REPLAYED_STREAMS: u32 = 100;
/// The default length of a load.
const DURATION: Duration = Duration::from_secs(10);
/// Largest file of `--targets`, in bytes.
const TARGETS_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Largest file of `--plan`: a day has up to 20 MB.
const PLAN_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// One of several loads that run in succession.
#[derive(Debug)]
pub(crate) struct LoadVariant {
    /// The part that distinguishes it; empty if it is the only one.
    pub(crate) name: String,
    /// What there is to say of it before it begins.
    pub(crate) notices: Vec<NoticeRecord>,
    pub(crate) config: LoadConfig,
}

/// The loads to run: one, or one for each size of `--body-bytes`.
pub(crate) fn variants(args: &LoadArgs) -> anyhow::Result<Vec<LoadVariant>> {
    let target: Target = (*args.url).clone();
    if !target.is_tls() {
        refuse_tls_options(&args.tls, &target)?;
    }
    let destination = destination(&args.request, &target)?;
    let base = LoadConfig {
        destination,
        tls: tls(&args.tls),
        request_timeout: args.plan.timeout,
        ..LoadConfig::new(target.clone(), plan(args)?, trust(&args.tls))
    };
    if let Some(path) = &args.request.replay {
        return Ok(vec![replayed(path, args, base)?]);
    }
    if let Some(mix) = mix(&args.request)? {
        return Ok(vec![alike(&mix, args, base)?]);
    }
    if let Some(path) = &args.request.targets {
        let requests = read_targets(path, &target)?;
        let config = LoadConfig { requests, ..base };
        return Ok(vec![LoadVariant { name: String::new(), notices: Vec::new(), config }]);
    }
    let body = args.request.body.as_deref().map(|path| read_body(path).map_err(usage)).transpose()?;
    let sizes = &args.request.body_bytes;
    let bodies: Vec<(String, Option<RequestBody>)> = match &sizes[..] {
        [] => vec![(String::new(), body)],
        [size] => vec![(String::new(), Some(RequestBody::Bytes(*size)))],
        sizes => {
            sizes.iter().map(|size| (format!("{size} bytes"), Some(RequestBody::Bytes(*size)))).collect()
        }
    };
    let variant = |(name, body)| {
        let requests = template(&args.request, &target, body).into_iter().collect();
        LoadVariant { name, notices: Vec::new(), config: LoadConfig { requests, ..base.clone() } }
    };
    Ok(bodies.into_iter().map(variant).collect())
}

/// The mix that the load is to be like, if it is to be like one.
pub(super) fn mix(args: &RequestArgs) -> anyhow::Result<Option<TrafficMix>> {
    if let Some(source) = &args.like {
        let (writers, run) = (WriterArgs::default(), args.run.as_deref());
        return mixes::read("load --like", source, &writers, run, args.with_paths).map(Some);
    }
    let Some(path) = &args.plan else { return Ok(None) };
    let fail = |reason: String| usage(format!("--plan {}: {reason}", path.display()));
    let text = read_text(path, PLAN_BYTES_MAX).map_err(|error| fail(format!("cannot read it: {error}")))?;
    TrafficMix::from_plan(&text).map(Some).map_err(|error| fail(error.to_string()))
}

/// Reads a file; `-` is standard input.
fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let mut text = String::new();
    if path == Path::new("-") {
        io::stdin().take(bytes_max).read_to_string(&mut text)?;
    } else {
        File::open(path)?.take(bytes_max).read_to_string(&mut text)?;
    }
    Ok(text)
}

/// Where connections go instead of the URL's host and port.
fn destination(args: &RequestArgs, target: &Target) -> anyhow::Result<Option<Destination>> {
    if let Some(path) = &args.unix_socket {
        return Ok(Some(Destination::Unix(path.clone())));
    }
    let found = args.connect_to.iter().find_map(|rule| rule.destination(target));
    if found.is_none() && !args.connect_to.is_empty() {
        // The real server must not be loaded by mistake.
        let (host, port) = (target.host(), target.port());
        return Err(usage(format!("no --connect-to is for {host} and port {port}, those of the URL")));
    }
    Ok(found)
}

/// The load of a log.
fn replayed(path: &Path, args: &LoadArgs, base: LoadConfig) -> anyhow::Result<LoadVariant> {
    let LoadArgs { request: RequestArgs { speed, http2, streams, .. }, .. } = args;
    let headers = headers(&args.request);
    let protocol = if *http2 {
        Protocol::Http2 { streams: streams.unwrap_or(REPLAYED_STREAMS) }
    } else {
        Protocol::Http1
    };
    let options = ReplayOptions { target: &base.target, headers: &headers, speed: *speed, protocol };
    let Replay { templates, script, notes } = replay::read(path, &options)?;
    Ok(rounds_of(args, scripted::scripted(base, templates, script, notes)?))
}

/// A load that is like a recorded traffic.
fn alike(mix: &TrafficMix, args: &LoadArgs, base: LoadConfig) -> anyhow::Result<LoadVariant> {
    let RequestArgs { speed, scale, .. } = args.request;
    Ok(rounds_of(args, scripted::like(base, mix, &headers(&args.request), [scale, speed])?))
}

fn headers(args: &RequestArgs) -> Vec<(String, String)> {
    args.header.iter().map(|field| (field.name.clone(), field.value.clone())).collect()
}

/// So many rounds of a script.
fn rounds_of(args: &LoadArgs, (mut config, notes): (LoadConfig, Vec<String>)) -> LoadVariant {
    let round = config.script.as_ref().map_or(0, |script| script.requests.len() as u64);
    config.plan.requests = Some(round * args.request.loops);
    if config.target.is_tls() && args.tls.resume.is_none() {
        config.plan.resume = Share::ALL;
    }
    let notices = notes.iter().map(|note| NoticeRecord::new(Level::Notice, "replay", note)).collect();
    LoadVariant { name: String::new(), notices, config }
}

/// The request that the arguments describe; `None` for the default.
fn template(args: &RequestArgs, target: &Target, body: Option<RequestBody>) -> Option<Template> {
    let is_plain = args.method.is_none() && args.header.is_empty() && body.is_none();
    if is_plain && !args.expect_echo && args.expect_bytes.is_none() {
        return None;
    }
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
    let headers = args.header.iter().map(|field| (field.name.clone(), field.value.clone()));
    Some(Template {
        method,
        headers: headers.collect(),
        body: body.unwrap_or(RequestBody::Bytes(0)),
        expect,
        ..Template::get(target.path())
    })
}

fn read_targets(path: &Path, target: &Target) -> anyhow::Result<Vec<Template>> {
    let text = read_text(path, TARGETS_BYTES_MAX)
        .map_err(|error| usage(format!("cannot read --targets {}: {error}", path.display())))?;
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

fn tls(args: &TlsArgs) -> TlsOptions {
    let pair = args.client_cert.clone().zip(args.client_key.clone());
    TlsOptions {
        version: args.tls_version,
        ciphers: args.ciphers.clone(),
        groups: args.groups.clone(),
        alpn: Vec::new(),
        server_name: args.sni.clone(),
        identity: pair.map(|(certificates, key)| Identity { certificates, key }),
    }
}

/// Refuses options that need TLS. Options of trust are allowed, for scripts that load both kinds of servers.
fn refuse_tls_options(args: &TlsArgs, target: &Target) -> anyhow::Result<()> {
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

fn plan(args: &LoadArgs) -> anyhow::Result<Plan> {
    let LoadArgs { plan: args, request, tls, run, .. } = args;
    let defaults = Plan::default();
    let ramp_up = args.ramp_up.as_ref().zip(args.requests);
    let ramp_up = ramp_up.map(|(over, requests)| ramp_up_rate(over, requests)).transpose()?;
    let mut plan = Plan {
        rate: args.rate.clone().or(ramp_up),
        arrivals: args.arrivals.unwrap_or_default(),
        protocol: if request.http2 {
            Protocol::Http2 { streams: request.streams.unwrap_or(1) }
        } else {
            Protocol::Http1
        },
        connections: args.connections.unwrap_or(defaults.connections),
        resume: tls.resume.unwrap_or_default(),
        early_data: tls.early_data,
        keepalive: args.keep_alive.unwrap_or(defaults.keepalive),
        lifetime: args.lifetime,
        sources: args.source_addresses,
        duration: args.duration,
        warmup: args.warmup,
        requests: args.requests,
        threads: args.threads.unwrap_or(defaults.threads),
    };
    check_experiment_ends(run, plan.length())?;
    // A run without a dashboard ends with its experiment.
    let has_end =
        plan.length().is_some() || plan.requests.is_some() || request.has_script() || run.ab.is_some();
    plan.duration = plan.duration.or_else(|| (!has_end).then_some(DURATION));
    plan.check().map_err(usage)?;
    Ok(plan)
}

fn ramp_up_rate(over: &ParsedValue<PositiveDuration>, requests: u64) -> anyhow::Result<Profile> {
    let rate = Rate::per_second(requests as f64 / over.0.as_secs_f64());
    let out_of_range = || usage(format!("--ramp-up {}: {requests} requests in it are no rate", over.text()));
    rate.map(Profile::constant).ok_or_else(out_of_range)
}
