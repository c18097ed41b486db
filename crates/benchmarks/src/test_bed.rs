//! A terminator of the templates of `tlsdash bench`, with an RSA-2048 certificate and an upstream of this process behind it.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use bench::scenario::{BenchTlsConfig, CommandServer, Endpoint, PlaceholderValues};
use bench::target::{SupervisedCommand, Supervisor, wait_until_ready};
use loadgen::{DemoUpstream, UpstreamAddr};
use rcgen::{CertificateParams, KeyPair};
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use tempfile::TempDir;

use crate::Result;

/// The time limit until it listens.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// A running terminator with one worker. Dropping it ends all its processes.
#[derive(Debug)]
pub struct TestBed {
    /// Where it listens.
    pub addr: SocketAddr,
    _supervisor: Supervisor,
    _upstream: DemoUpstream,
    _folder: TempDir,
}

impl TestBed {
    /// Starts a server on a core; `program` is the tlsdash that supervises it, and that is measured itself.
    ///
    /// # Errors
    /// If it does not listen in time; the message quotes its last output.
    pub fn start(server: &CommandServer, program: &Path, core: usize) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = |name: &str| folder.path().join(name);
        let (cert, key, pem) = (path("cert.pem"), path("key.pem"), path("both.pem"));
        let pair = KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256)?;
        let certificate = CertificateParams::new(["localhost".to_owned()])?.self_signed(&pair)?.pem();
        fs::write(&cert, &certificate)?;
        fs::write(&key, pair.serialize_pem())?;
        fs::write(&pem, certificate + &pair.serialize_pem())?;
        let socket = path("upstream.sock");
        let upstream = DemoUpstream::start(UpstreamAddr::Unix(socket.clone()))?;
        let addr = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let (listen, tls) = (Endpoint::Tcp(addr), BenchTlsConfig::default());
        let slots = PlaceholderValues {
            listen: &listen,
            upstream: Some(&Endpoint::Unix(socket)),
            cert: &cert,
            key: &key,
            pem: &pem,
            tls: &tls,
            workers: 1,
            dir: folder.path(),
            build: folder.path(),
            www: folder.path(),
            user: "nobody",
            tlsdash: program,
        };
        let launch = server.launch(&slots)?;
        for (path, text) in &launch.files {
            fs::write(path, text)?;
        }
        let mut command = SupervisedCommand::new(launch.argv, folder.path().to_owned(), path("output"));
        command.environment = launch.environment;
        command.cpus = Some(core.to_string());
        let mut supervisor = start_beside(core, program, &command)?;
        wait_until_ready(&mut supervisor, &listen, START_TIMEOUT, &|| false)?;
        Ok(Self { addr, _supervisor: supervisor, _upstream: upstream, _folder: folder })
    }
}

/// Starts a command from a thread that may use its core too: this process keeps to another one.
fn start_beside(core: usize, program: &Path, command: &SupervisedCommand) -> Result<Supervisor> {
    let start = || {
        let mut cores = sched_getaffinity(None).map_err(|error| error.to_string())?;
        cores.set(core);
        sched_setaffinity(None, &cores).map_err(|error| error.to_string())?;
        Supervisor::start(program, command).map_err(|error| error.to_string())
    };
    let started = std::thread::scope(|scope| scope.spawn(start).join());
    Ok(started.map_err(|_| "the thread that starts it panicked")??)
}
