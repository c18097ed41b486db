//! `tlsdash --listen … --upstream …`: the proxy, with the dashboard and, if asked for, the load beside it.

use std::ffi::OsStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use anyhow::Context;
use loadgen::{KnownCertificates, Load, LoadConfig, Plan, Share, Target, Template, Trust};
use mix::TrafficMix;
use proxy_core::{
    AccessFiles, BoundProxy, Certificate, ListenAddr, ListenerSource, NameRoute, Proxy, ProxyConfig,
    ProxyStartError, Tls, Upstream, UpstreamListError, bind_one, upstream_bits,
};
use proxy_http::{HttpConfig, HttpStartError, RedirectAnswers, RedirectServer, Route};
use records::kinds::{Level, NoticeRecord, RunRecord};
use records::setting::{Setting, Value};
use records::text::quantity::counted;

use crate::cli::appearance::Appearance;
use crate::cli::options::http::OnOff;
use crate::cli::options::load::{BuiltInLoad, LikeOption};
use crate::cli::options::mode::ProxyMode;
use crate::cli::{Flags, ProxyArgs, ProxyOptions};
use crate::commands::scripted;
use crate::control::ControlOptions;
use crate::error::usage;
use crate::journals::writers::WriterArgs;
use crate::journals::{mixes, state_directory};
use crate::service::{self, environment, privileges};
use crate::session::acme::{AcmeOrder, OrderedCertificate};
use crate::session::controller::CERTIFICATE;
use crate::session::frontend::Frontend;
use crate::session::workload::Workload;
use crate::session::{
    Channels, RedirectEndpoint, RunConfiguration, Session, SessionConfig, console, start_check,
};
use crate::upgrade::predecessor::Predecessor;
use crate::upgrade::program::UpgradeProgram;
use crate::value::values;

/// Fewer connections at once than a proxy usually serves.
const CONNECTIONS_FEW: f64 = 100.0;

/// Runs the proxy until it must end.
pub(crate) fn run(args: ProxyArgs, flags: Flags) -> anyhow::Result<()> {
    let prints = args.print_config;
    let program = UpgradeProgram::at_start()?;
    let mut predecessor = if prints { None } else { Predecessor::find()? };
    let source = args.source(flags);
    let options = source.read()?;
    let inherited = if prints { Vec::new() } else { service::inherited()? };
    let is_inherited = !inherited.is_empty() || predecessor.as_ref().is_some_and(Predecessor::is_managed);
    if is_inherited && !options.listen.is_empty() {
        return Err(usage("--listen goes not together with sockets from the service manager (LISTEN_FDS)"));
    }
    let mut options = options.with_defaults()?;
    let http = options.http_config()?;
    if prints {
        return crate::summary::print_text(&options.to_toml()?);
    }
    if predecessor.is_some() {
        // The former recording is not complete yet.
        options.run.record = options.run.record.map(|path| state_directory::free_beside(&path));
    }
    let appearance = Appearance::resolve(&options.appearance, &options.tables)?;
    let duration = options.duration.as_ref().map(|duration| duration.0);
    let mut session = SessionConfig::resolve(&options.run, duration, appearance)?;
    // A process that has given up root starts one that never had it.
    let is_root = predecessor.is_none() || privileges::is_root();
    let user =
        options.user.as_deref().filter(|_| is_root).map(privileges::ServiceUser::resolve).transpose()?;
    privileges::forbid_dumps()?;
    let acme = AcmeOrder::of(&options, user.as_ref())?;
    let config = check_with(&options, acme.as_ref())?;
    let mut bound = BoundSession::bind(config, http, source_of(inherited, predecessor.as_mut()))?;
    bound.redirect_from = options
        .redirect_http
        .as_deref()
        .map(|&addr| {
            let former = predecessor.as_mut().and_then(|former| former.take_redirect(addr));
            former.map_or_else(|| bind_one(addr), Ok).map(|socket| (addr, socket))
        })
        .transpose()
        .context("cannot serve --redirect-http")?;
    let mut state_directory = None;
    if let Some(user) = &user {
        session.journal = session.journal.hand_to(user)?;
        acme.as_ref().map_or(Ok(()), AcmeOrder::hand_over)?;
        let of_acme = || acme.as_ref().map(AcmeOrder::state_directory);
        state_directory = session.journal.state_directory().or_else(of_acme);
        user.switch_to()?;
    }
    bound.acme = acme;
    if predecessor.is_some() {
        session.journal = session.journal.beside();
    }
    let program = program.with_state_directory(state_directory);
    let program = Some(program).filter(|_| session.frontend == Frontend::Headless);
    bound.notices.extend(privileges::warning_of_root());
    if options.tls_files.is_without_certificate() && !options.acme.is_used() {
        let text = "no --cert: made a certificate for localhost and this host's name, in memory";
        bound.notices.push(NoticeRecord::new(Level::Notice, CERTIFICATE, text));
    }
    session.control = ControlOptions::of(&options);
    let channels = Channels::taking_over(&session, predecessor.as_mut())?;
    let load = options.load.as_deref().map(PreparedLoad::read).transpose()?;
    let listen = if is_inherited { Vec::new() } else { options.listen.clone() };
    let options = ProxyOptions { listen, ..options };
    session.configuration = Some(Box::new(RunConfiguration { options, source: Some(source), program }));
    bound.start(load, session, channels, predecessor.as_ref())
}

/// The sockets of the service manager, else those of the process that this one replaces.
fn source_of(managed: Vec<TcpListener>, predecessor: Option<&mut Predecessor>) -> ListenerSource {
    match predecessor {
        Some(predecessor) if managed.is_empty() => predecessor.take_listeners(),
        _ => managed.into(),
    }
}

/// Finds what a start would refuse besides its addresses, and returns what it would warn of.
pub(super) fn check(options: &ProxyOptions) -> anyhow::Result<Vec<NoticeRecord>> {
    AcmeOrder::check(options)?;
    start_check::check_host(options)?;
    let mut config = check_with(options, None)?;
    // A start finds the rest when it binds, such as too few descriptors. Any free ports will do.
    config.listen.fill(ListenAddr::Addr((Ipv4Addr::LOCALHOST, 0).into()));
    Ok(BoundSession::bind(config, options.http_config()?, ListenerSource::Bind)?.notices)
}

/// Makes the configuration of the proxy, with everything that can be refused before it binds.
fn check_with(options: &ProxyOptions, acme: Option<&AcmeOrder>) -> anyhow::Result<ProxyConfig> {
    options.check()?;
    Appearance::resolve(&options.appearance, &options.tables)?;
    proxy_config(options, acme)
}

/// Warnings before the proxy starts serving.
fn warnings(config: &ProxyConfig, upstreams: &[Upstream], is_http: bool) -> Vec<NoticeRecord> {
    let warning = |topic, text: String| NoticeRecord::new(Level::Warning, topic, &text);
    let files = config.tls.warnings().map(|of_file| warning(CERTIFICATE, of_file.to_string()));
    let passed: Vec<_> = config.routes.iter().filter(|route| route.is_passed()).collect();
    let has_requests =
        |upstream: &Upstream| is_http && !passed.iter().any(|route| route.upstreams().contains(upstream));
    let probe = |upstream: &Upstream| {
        let header = config.proxy_protocol.filter(|_| !has_requests(upstream));
        Some((upstream.probe(header, &config.tls.upstream).err()?, has_requests(upstream)))
    };
    let absent: Vec<_> = upstreams.iter().filter_map(probe).collect();
    let are_all_absent = absent.len() == upstreams.len();
    let absent = absent.iter().map(|(error, has_requests)| {
        let what_then = if *has_requests {
            "its requests fail with 502 until it is there"
        } else if is_http || are_all_absent {
            "clients will be turned away until it is there"
        } else {
            "clients go elsewhere until it is there"
        };
        warning("upstream", format!("{error}; {what_then}"))
    });
    files.chain(absent).collect()
}

/// A warning if descriptors bound the connections, and leave few.
fn warning_of_descriptors(settings: &[Setting]) -> Option<NoticeRecord> {
    let setting = settings.iter().find(|setting| setting.name == "proxy.connections-max")?;
    let (_, possible) = setting.range?;
    let is_few = possible < CONNECTIONS_FEW && setting.value == Value::Number(possible);
    let text = format!(
        "the limit of {} descriptors is enough for {} at once; raise it (ulimit -n, LimitNOFILE=)",
        proxy_core::raise_descriptor_limit(),
        counted(possible as u64, "connection")
    );
    is_few.then(|| NoticeRecord::new(Level::Warning, "descriptors", &text))
}

/// A proxy that is bound to its addresses, and its first records.
pub(crate) struct BoundSession {
    proxy: BoundProxy,
    header: RunRecord,
    /// The names of the routes; `None` in TCP mode.
    routes: Option<Vec<String>>,
    /// The socket whose clients are redirected to https.
    redirect_from: Option<(ListenAddr, TcpListener)>,
    /// The certificate that is ordered by ACME.
    acme: Option<AcmeOrder>,
    /// To be printed once nothing can be refused any more, and recorded.
    notices: Vec<NoticeRecord>,
}

impl BoundSession {
    /// Acquires everything that can be refused to the proxy, before it accepts a connection.
    pub(crate) fn bind(
        config: ProxyConfig,
        http: Option<HttpConfig>,
        listeners: ListenerSource,
    ) -> anyhow::Result<Self> {
        let (routes, upstreams) = destinations(&config, http.as_ref());
        let notices = warnings(&config, &upstreams, http.is_some());
        let header = header(&config, &upstreams);
        let routes = http.is_some().then(|| routes.iter().map(Route::name).collect());
        let bound = match http {
            Some(http) => proxy_http::bind(config, http, listeners),
            None => Proxy::bind_on(config, listeners).map_err(HttpStartError::Start),
        };
        let refused = |error: ProxyStartError| match error {
            ProxyStartError::Upstreams(UpstreamListError::Resolve(_)) => error.into(),
            ProxyStartError::Config(_)
            | ProxyStartError::Http2(_)
            | ProxyStartError::Upstreams(_)
            | ProxyStartError::Routes(_)
            | ProxyStartError::Descriptors(_)
            | ProxyStartError::Cpus(_) => usage(error),
            error => error.into(),
        };
        let proxy = bound.map_err(|error| match error {
            HttpStartError::Start(error) => refused(error),
            error @ (HttpStartError::DuplicateRoute(_) | HttpStartError::MixedProtocols(_)) => usage(error),
        })?;
        Ok(Self { proxy, header, routes, redirect_from: None, acme: None, notices })
    }

    /// Starts proxy, load and journal, and runs them to the end.
    pub(crate) fn start(
        self,
        load: Option<PreparedLoad>,
        session: SessionConfig,
        mut channels: Channels,
        predecessor: Option<&Predecessor>,
    ) -> anyhow::Result<()> {
        let Self { proxy: mut bound, mut header, routes, redirect_from, acme, mut notices } = self;
        let journal = session.journal.open()?;
        let challenge = AcmeOrder::http_challenges(acme.as_ref());
        let acme = acme.map(AcmeOrder::start).transpose()?;
        // Until then the new process may refuse, and the old one continues.
        let await_handover = |other: &Predecessor| other.await_handover(channels.run, bound.local_addrs());
        let handover = predecessor.map(await_handover).transpose()?;
        if let Some(handover) = &handover {
            bound.restore_ticket_keys(&handover.keys)?;
        }
        let proxy = bound.start()?;
        notices.extend(warning_of_descriptors(&proxy.settings()));
        let addrs: Vec<String> = proxy.local_addrs().iter().map(ToString::to_string).collect();
        header.listen = addrs.join(" ");
        let https_port = proxy.local_addrs().first().map_or(443, SocketAddr::port);
        let answers = RedirectAnswers { https_port, challenge };
        let redirect = |(at, from): (ListenAddr, TcpListener)| {
            let socket = from.try_clone()?.into();
            Ok(RedirectEndpoint { at, socket, server: RedirectServer::start(from, answers)? })
        };
        let redirect: io::Result<_> = redirect_from.map(redirect).transpose();
        channels.redirect = redirect.context("cannot serve --redirect-http")?;
        let load = match load {
            Some(load) => {
                let addr = proxy.local_addrs().first().copied().context("the proxy listens nowhere")?;
                let presented = proxy.presented();
                let trust = Trust::Known(KnownCertificates::new(move |der| presented.contains(der)));
                let (config, notes) = load.config(addr, trust)?;
                notices.extend(notes.iter().map(|note| NoticeRecord::new(Level::Notice, "replay", note)));
                // Paused: the controller starts it when everything is ready.
                Some(Load::start(LoadConfig { paused: true, ..config })?)
            }
            None => None,
        };
        let workload = Workload {
            proxy: Some(proxy),
            acme: acme.map(OrderedCertificate::begun),
            routes,
            load,
            ..Workload::default()
        };
        // The dashboard takes it from the records, as a reload may change the upstreams.
        let title = String::new();
        let session =
            Session { config: session, channels, title, header, notices, workload, journal, handover };
        session.check()?;
        session.notices.iter().for_each(console::report_early);
        match predecessor {
            // The old process tells the service manager, which does not know this process until then.
            Some(predecessor) => predecessor.tell_serving(),
            None => service::ready(),
        }
        let RunRecord { listen, upstream, .. } = &session.header;
        session.say_what(&format!("listening on {listen}, forwarding to {upstream}"));
        session.run()
    }
}

/// The routes of HTTP mode, and each upstream of the proxy and its routes, once.
fn destinations(config: &ProxyConfig, http: Option<&HttpConfig>) -> (Vec<Route>, Vec<Upstream>) {
    let routes = http.map(|http| http.all_routes(&config.upstreams)).unwrap_or_default();
    let mut all = config.upstreams.clone();
    let of_names = config.routes.iter().map(NameRoute::upstreams);
    for upstreams in of_names.chain(routes.iter().map(|route| &*route.upstreams)) {
        upstream_bits(&mut all, upstreams);
    }
    (routes, all)
}

fn header(config: &ProxyConfig, upstreams: &[Upstream]) -> RunRecord {
    RunRecord {
        upstream: upstreams.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        certificate: certificate_kinds(&config.tls),
        workers: config.workers.get() as u64,
        ..environment::header()
    }
}

/// The load beside the proxy, with everything that can be refused before the proxy serves. Its recording is read by the user
/// that serves.
#[derive(Debug)]
pub(crate) enum PreparedLoad {
    Plan(Box<Plan>, Vec<Template>),
    Like(Box<TrafficMix>, LikeOption),
}

impl PreparedLoad {
    pub(crate) fn read(load: &BuiltInLoad) -> anyhow::Result<Self> {
        match load {
            BuiltInLoad::Plan(plan) => Ok(Self::Plan(plan.clone(), Vec::new())),
            BuiltInLoad::Like(like) => {
                let source = OsStr::new(&like.source);
                let mix = mixes::read("--load like", source, &WriterArgs::default(), None, like.with_paths)?;
                Ok(Self::Like(Box::new(mix), like.clone()))
            }
        }
    }

    /// The load of a proxy that listens there, and what is to be said of it.
    fn config(self, listening: SocketAddr, trust: Trust) -> anyhow::Result<(LoadConfig, Vec<String>)> {
        match self {
            Self::Plan(plan, requests) => {
                let base = LoadConfig::new(load_target(listening, "/")?, *plan, trust);
                Ok((LoadConfig { requests, ..base }, Vec::new()))
            }
            Self::Like(mix, like) => {
                let plan = Plan { resume: Share::ALL, ..Plan::default() };
                let base = LoadConfig::new(
                    load_target(listening, like.path.as_deref().unwrap_or("/"))?,
                    plan,
                    trust,
                );
                scripted::like(base, &mix, &[], [like.scale, like.speed])
            }
        }
    }
}

/// The address of the proxy for the built-in load: loopback if the proxy listens everywhere.
fn load_target(listening: SocketAddr, path: &str) -> anyhow::Result<Target> {
    let ip = match listening.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        // A dual-stack listener also accepts IPv4, which has many loopback source addresses.
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        ip => ip,
    };
    let target = format!("https://{}{path}", SocketAddr::new(ip, listening.port()));
    target.parse().with_context(|| format!("cannot aim the load at {target}"))
}

fn proxy_config(options: &ProxyOptions, acme: Option<&AcmeOrder>) -> anyhow::Result<ProxyConfig> {
    let first = options.first_upstream()?;
    let is_tls_used = options.is_tls_used();
    let upstream = options.upstream_tls.load(is_tls_used)?;
    let mut tls = Tls { upstream, ..options.tls_files.load(&options.tls, options.load.is_some())? };
    if let Some(acme) = acme {
        if options.tls_files.is_without_certificate() {
            tls.certificates.clear();
        }
        acme.serve(&mut tls)?;
    }
    let config = ProxyConfig::new(values(&options.listen), first, tls);
    let routes = match options.mode {
        ProxyMode::Tcp => options.name_routes()?,
        ProxyMode::Http => options.request_routes()?.1,
    };
    let access = AccessFiles { allow: options.allow.clone(), deny: options.deny.clone() };
    let config = ProxyConfig {
        upstreams: values(&options.upstream),
        upstream_check: options.balancing.check(is_tls_used)?,
        balance: options.balancing.balance(options.mode)?,
        slow_start: options.balancing.slow_start(),
        routes,
        access: Arc::new(access.load().map_err(usage)?),
        workers: options.worker_count(),
        cpus: options.cpus.as_deref().cloned(),
        proxy_protocol: options.proxy_protocol.as_deref().copied(),
        accept_proxy: options.accept_proxy.as_deref().cloned().unwrap_or_default(),
        records_names: options.log_names != Some(OnOff::Off),
        limits: options.limits.values().clone(),
        ..config
    };
    config.check().map_err(|error| usage(format!("--{error}")))?;
    Ok(config)
}

/// The kinds of keys, each once.
fn certificate_kinds(tls: &Tls) -> String {
    let mut kinds: Vec<&str> = tls.certificates.iter().map(Certificate::kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.join(", ")
}
