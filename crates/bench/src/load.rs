//! The load and the upstream that the program under measurement is put under.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use loadgen::{DemoUpstream, Load, LoadConfig, Plan, Template, Trust, UpstreamAddr};
use telemetry::{LoadCounter, LoadDelta};

use crate::Result;

/// Longest time that a fixed number of requests may take.
const PATIENCE: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(20);

/// What is asked, and how: the words of `tlsdash --load`, and one request.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The plan without its length.
    pub plan: String,
    /// What is asked, every time.
    pub request: Template,
}

impl Shape {
    /// So many bytes at each request.
    pub fn get(plan: &str, bytes: u64) -> Self {
        Self { plan: plan.to_owned(), request: Template::get(format!("/bytes/{bytes}")) }
    }

    /// Starts it against `addr`; `length` is one more word of the plan, or none. The certificate is not checked: it is
    /// the server that is measured.
    ///
    /// # Errors
    /// When it cannot start.
    pub fn start(&self, addr: SocketAddr, length: &str) -> Result<Load> {
        let plan: Plan = format!("{},{length}", self.plan).parse()?;
        let config = LoadConfig::new(format!("https://{addr}/").parse()?, plan, Trust::Insecure);
        let config = LoadConfig { requests: vec![self.request.clone()], request_timeout: PATIENCE, ..config };
        Ok(Load::start(config)?)
    }

    /// Has so many requests answered by `addr`.
    ///
    /// # Errors
    /// When it cannot start, takes too long, or a request fails.
    pub fn run(&self, addr: SocketAddr, requests: u64) -> Result<()> {
        let mut load = self.start(addr, &format!("requests={requests}"))?;
        let deadline = Instant::now() + PATIENCE;
        while !load.is_finished() {
            if Instant::now() > deadline {
                return Err(format!("{requests} requests were not answered in {PATIENCE:?}").into());
            }
            std::thread::sleep(POLL);
        }
        let counts = counted(&mut load);
        let ok = counts[LoadCounter::Ok];
        if ok != requests {
            return Err(format!("{ok} of {requests} requests were answered").into());
        }
        // Each address needs a first connection that gives it a session.
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

/// What a load counted since it was last asked.
pub fn counted(load: &mut Load) -> telemetry::Counters<LoadCounter> {
    let mut delta = LoadDelta::default();
    load.collect(&mut delta, Duration::from_secs(1));
    delta.counters
}

/// An upstream in this process, on a socket of its own.
#[derive(Debug)]
pub struct Upstream {
    socket: PathBuf,
    _server: DemoUpstream,
    folder: tempfile::TempDir,
}

impl Upstream {
    /// Starts it.
    ///
    /// # Errors
    /// When it cannot listen.
    pub fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let socket = folder.path().join("app.sock");
        let server = DemoUpstream::start(UpstreamAddr::Unix(socket.clone()))?;
        Ok(Self { socket, _server: server, folder })
    }

    /// Where it listens.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// A folder that lives as long, for what a measurement leaves behind.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}
