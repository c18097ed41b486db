//! The load on the program under measurement, and its upstream.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use loadgen::{DemoUpstream, Load, LoadConfig, Plan, Template, Trust, UpstreamAddr};
use records::delta::LoadDelta;
use records::metrics::LoadCounter;

use crate::Result;

/// The time limit for a fixed number of requests.
const TIMEOUT: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(20);

/// What the program does with the bytes inside TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServeMode {
    /// It forwards them.
    Tcp,
    /// It forwards requests.
    Http {
        /// Its routes, which share the requests; one is that of `--upstream`.
        routes: u32,
    },
}

/// A load: the options of `tlsdash --load`, and its requests.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The plan without its length.
    pub plan: String,
    /// The requests that are repeated.
    pub requests: Vec<Template>,
    /// How the program serves it.
    pub mode: ServeMode,
}

impl Shape {
    /// Returns a load whose requests each get this many bytes.
    pub fn get(plan: &str, bytes: u64) -> Self {
        Self::get_in(ServeMode::Tcp, plan, bytes)
    }

    /// Returns the same for the program in this mode. The requests of several routes each get a few bytes more.
    pub fn get_in(mode: ServeMode, plan: &str, bytes: u64) -> Self {
        let routes = match mode {
            ServeMode::Tcp => 1,
            ServeMode::Http { routes } => u64::from(routes),
        };
        let request = |route| Template::get(format!("/bytes/{}", bytes + route));
        Self { plan: plan.to_owned(), requests: (0..routes).map(request).collect(), mode }
    }

    /// Returns the paths of its routes; none if there is but one.
    pub fn routes(&self) -> impl Iterator<Item = &str> {
        let has_many = matches!(self.mode, ServeMode::Http { routes: 2.. });
        self.requests.iter().filter(move |_| has_many).map(|request| &*request.path)
    }

    /// Starts the load against `addr`; `length` is one more option of the plan, or empty. The certificate is
    /// not checked, since only the server is measured.
    ///
    /// # Errors
    /// If it cannot start.
    pub fn start(&self, addr: SocketAddr, length: &str) -> Result<Load> {
        let plan: Plan = format!("{},{length}", self.plan).parse()?;
        let config = LoadConfig::new(format!("https://{addr}/").parse()?, plan, Trust::Insecure);
        let config = LoadConfig { requests: self.requests.clone(), request_timeout: TIMEOUT, ..config };
        Ok(Load::start(config)?)
    }

    /// Sends this many requests to `addr`.
    ///
    /// # Errors
    /// If it cannot start, takes too long, or a request fails.
    pub fn run(&self, addr: SocketAddr, requests: u64) -> Result<()> {
        let mut load = self.start(addr, &format!("requests={requests}"))?;
        let deadline = Instant::now() + TIMEOUT;
        while !load.is_finished() {
            if Instant::now() > deadline {
                return Err(format!("{requests} requests were not answered in {TIMEOUT:?}").into());
            }
            std::thread::sleep(POLL);
        }
        let counts = counted(&mut load);
        let ok = counts[LoadCounter::Ok];
        if ok != requests {
            return Err(format!("{ok} of {requests} requests were answered").into());
        }
        // Each address needs a first connection that gets a session.
        let plan: Plan = self.plan.parse()?;
        let first = u64::from(plan.sources.unwrap_or(1).max(plan.connections));
        let (wanted, resumed) =
            (counts[LoadCounter::ResumptionsWanted], counts[LoadCounter::HandshakesResumed]);
        if resumed + first < wanted {
            return Err(format!("only {resumed} of {wanted} handshakes were resumed").into());
        }
        Ok(())
    }
}

/// Returns the load's counters since the last call.
pub fn counted(load: &mut Load) -> records::metrics::Counters<LoadCounter> {
    let mut delta = LoadDelta::default();
    load.collect(&mut delta, Duration::from_secs(1));
    delta.counters
}

/// An upstream in this process, on its own socket.
#[derive(Debug)]
pub struct BenchmarkUpstream {
    socket: PathBuf,
    _server: DemoUpstream,
    folder: tempfile::TempDir,
}

impl BenchmarkUpstream {
    /// Starts the upstream.
    ///
    /// # Errors
    /// If it cannot listen.
    pub fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let socket = folder.path().join("app.sock");
        let server = DemoUpstream::start(UpstreamAddr::Unix(socket.clone()))?;
        Ok(Self { socket, _server: server, folder })
    }

    /// Returns the path of its socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns a folder for the measurement's files, which is removed with the upstream.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}
