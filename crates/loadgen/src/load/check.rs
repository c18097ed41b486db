//! Checks before a load starts: its configuration, and whether the server can be reached.

use std::io;
use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use records::values::TlsVersion;
use socket2::Socket;

use crate::config::{LoadConfig, LoadStartError};
use crate::plan::Plan;
use crate::protocol::{EncodedRequest, Protocol, RequestSource, sequence};
use crate::script::ClientProfile;
use crate::target::{Destination, RequestBody, Template};
use crate::tls::{Alpn, TlsOptions, TlsSetup, Trust};
use crate::worker::socket::Address;

/// Default size of an echo, in bytes.
const ECHO_BYTES: usize = 64;

/// A load's configuration, checked and resolved.
#[derive(Debug)]
pub(crate) struct ResolvedLoad {
    pub(crate) original: RequestSource,
    pub(crate) requests: Arc<[EncodedRequest]>,
    pub(crate) sequence: Box<[u16]>,
    pub(crate) addresses: Vec<Address>,
    /// One for each profile of the script, with its protocol, or one; empty without TLS.
    pub(crate) tls: Vec<(Protocol, TlsSetup)>,
}

impl ResolvedLoad {
    pub(crate) fn new(config: &LoadConfig) -> Result<Self, LoadStartError> {
        // A plan built by a program must follow the rules of a written one.
        let plan: Plan = config.plan.to_string().parse()?;
        if config.request_timeout.is_zero() {
            return Err(LoadStartError::Timeout);
        }
        let target = &config.target;
        let mut templates = config.requests.clone();
        if templates.is_empty() {
            let bytes = if target.scheme().is_raw() { ECHO_BYTES } else { 0 };
            templates.push(Template { body: RequestBody::Bytes(bytes), ..Template::get(target.path()) });
        }
        if plan.protocol != Protocol::Http1 && target.scheme().is_raw() {
            return Err(LoadStartError::Http2Echo);
        }
        if plan.early_data {
            early_data_is_possible(config)?;
        }
        let script = config.script.clone();
        let trust = target.is_tls().then(|| config.trust.to_string());
        let original =
            RequestSource { target: target.clone(), templates, protocol: plan.protocol, trust, script };
        let requests = original.prepare()?;
        let sequence = match &config.script {
            None => sequence(&original.templates)?,
            Some(script) => {
                script.check(original.templates.len(), plan.threads)?;
                Box::default()
            }
        };
        let setup = |profile: &ClientProfile| {
            let options = tls_options(config, profile);
            Ok((profile.protocol, TlsSetup::new(&config.trust, target.host(), &options)?))
        };
        let profiles = profiles(config).into_iter().filter(|_| target.is_tls());
        let tls = profiles.map(|profile| setup(&profile)).collect::<Result<_, LoadStartError>>()?;
        let addresses = resolve(config, plan.sources)?;
        Ok(Self { original, requests, sequence, addresses, tls })
    }
}

/// The profiles of a load's clients.
fn profiles(config: &LoadConfig) -> Vec<ClientProfile> {
    let alone = || vec![ClientProfile { protocol: config.plan.protocol, ..ClientProfile::default() }];
    config.script.as_ref().map_or_else(alone, |script| script.profiles.clone())
}

/// The TLS options of a profile's clients.
fn tls_options(config: &LoadConfig, profile: &ClientProfile) -> TlsOptions {
    let ClientProfile { version, ciphers, groups, protocol } = profile;
    let either =
        |own: &Vec<String>, all: &Vec<String>| if own.is_empty() { all.clone() } else { own.clone() };
    let mut options = TlsOptions {
        version: version.or(config.tls.version),
        ciphers: either(ciphers, &config.tls.ciphers),
        groups: either(groups, &config.tls.groups),
        ..config.tls.clone()
    };
    if options.alpn.is_empty() && !config.target.scheme().is_raw() {
        options.alpn.push(match protocol {
            Protocol::Http1 => Alpn::Http1,
            Protocol::Http2 { .. } => Alpn::Http2,
        });
    }
    options
}

/// Only TLS 1.3 has early data, and only the client for HTTP/1.1 and echoes sends it.
fn early_data_is_possible(config: &LoadConfig) -> Result<(), LoadStartError> {
    if !config.target.is_tls() {
        return Err(LoadStartError::EarlyData("it goes with https:// or tls:// only"));
    }
    if config.plan.protocol != Protocol::Http1 {
        return Err(LoadStartError::EarlyData("it goes with HTTP/1.1 only"));
    }
    if config.tls.version == Some(TlsVersion::V12) {
        return Err(LoadStartError::EarlyData("TLS 1.2 has none"));
    }
    Ok(())
}

/// Connects to the server once for each profile, with TLS up to the end of the handshake. Waits up to `patience` for each
/// step.
///
/// # Errors
/// If the load could not start, or the server does not answer, or its certificate is not accepted.
pub fn probe(config: &LoadConfig, patience: Duration) -> Result<(), LoadStartError> {
    let checked = ResolvedLoad::new(config)?;
    let server = config.destination.as_ref().map_or_else(
        || config.target.to_string(),
        |destination| format!("{} at {destination}", config.target),
    );
    let connected = || {
        connect(&checked.addresses, patience).map_err(|error| {
            let is_refused = error.kind() == io::ErrorKind::ConnectionRefused;
            let advice = if is_refused { "; does a server run there?" } else { "" };
            let reason = format!("{error}{advice}");
            LoadStartError::Unreachable { server: server.clone(), reason }
        })
    };
    if checked.tls.is_empty() {
        connected()?;
    }
    for (protocol, tls) in &checked.tls {
        probe_profile(config, *protocol, tls, connected()?, &server, patience)?;
    }
    Ok(())
}

fn probe_profile(
    config: &LoadConfig,
    protocol: Protocol,
    tls: &TlsSetup,
    socket: Socket,
    server: &str,
    patience: Duration,
) -> Result<(), LoadStartError> {
    let agreed = tls.probe_handshake(socket, patience).map_err(|error| {
        let reason =
            if error.timed_out() { format!("no answer within {patience:?}") } else { error.to_string() };
        let advice = match &config.trust {
            Trust::Roots | Trust::CaFile(_) | Trust::Authorities(_) => error.advice(),
            Trust::Certificate(_) | Trust::Known(_) | Trust::Insecure => String::new(),
        };
        LoadStartError::Handshake { server: server.to_owned(), reason, advice }
    })?;
    match protocol {
        Protocol::Http2 { .. } if agreed.alpn != Some(Alpn::Http2) => {
            Err(LoadStartError::NotHttp2(server.to_owned()))
        }
        Protocol::Http1 | Protocol::Http2 { .. } => Ok(()),
    }
}

/// Connects to the first address that accepts.
fn connect(addresses: &[Address], patience: Duration) -> io::Result<Socket> {
    let mut last = None;
    for address in addresses {
        let connected = match address {
            Address::Tcp(address) => TcpStream::connect_timeout(address, patience).map(Socket::from),
            Address::Unix(path) => UnixStream::connect(path).map(Socket::from),
        };
        match connected {
            Ok(stream) => return Ok(stream),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::Error::new(io::ErrorKind::NotFound, "it has no address")))
}

pub(crate) fn resolve(config: &LoadConfig, sources: Option<u32>) -> Result<Vec<Address>, LoadStartError> {
    let (host, port) = match &config.destination {
        None => (config.target.host(), config.target.port()),
        Some(Destination::Tcp { host, port }) => (host.as_str(), *port),
        Some(Destination::Unix(path)) => {
            let address = || vec![Address::Unix(path.clone())];
            let host = config.target.host().to_owned();
            return sources
                .map_or_else(|| Ok(address()), |sources| Err(LoadStartError::Sources { sources, host }));
        }
    };
    let unresolved = |error| LoadStartError::Resolve { host: host.to_owned(), error };
    let mut addresses: Vec<_> = (host, port).to_socket_addrs().map_err(unresolved)?.collect();
    if let Some(sources) = sources {
        addresses.retain(|address| matches!(address.ip(), IpAddr::V4(v4) if v4.is_loopback()));
        if addresses.is_empty() {
            return Err(LoadStartError::Sources { sources, host: host.to_owned() });
        }
    }
    if addresses.is_empty() {
        return Err(unresolved(io::Error::new(io::ErrorKind::NotFound, "it has no address")));
    }
    Ok(addresses.into_iter().map(Address::Tcp).collect())
}
