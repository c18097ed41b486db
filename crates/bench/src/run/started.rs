//! A target that is started for a cell: its processes, its URL, and how clients reach it.

use std::io;
use std::process::Command;
use std::time::{Duration, Instant};

use recorder::host::{ProcessTree, TreeMemory};
use tempfile::TempDir;

use super::error::LoadFailure;
use super::server_starter::ServerStarter;
use super::setup::{BenchSetup, free_address};
use crate::scenario::{
    BenchTarget, BenchTlsConfig, CommandServer, Endpoint, ExternalServer, Server, UpstreamKind,
};
use crate::target::Supervisor;

/// How long a target that listens has until its memory at rest is read.
const SETTLE: Duration = Duration::from_millis(100);
/// How long a server's remaining processes may take to end: SIGTERM, SIGKILL, and the rest.
const END_PATIENCE: Duration = Duration::from_secs(15);

/// A target that clients can reach. Dropping it ends the started processes.
#[derive(Debug)]
pub(super) struct StartedTarget {
    /// Its URL without a path.
    pub(super) url: String,
    /// Flags of `load` with which it is reached: certificate, name, cipher, group.
    pub(super) flags: Vec<String>,
    /// Its processes, a tree for each server; empty if they are unknown.
    pub(super) trees: Vec<ProcessTree>,
    /// The memory of each tree before its first connection; of a server that ran already, before this cell.
    pub(super) at_rest: Vec<TreeMemory>,
    /// The main processes.
    pub(super) pids: Vec<u32>,
    /// The first serves the clients.
    supervisors: Vec<Supervisor>,
    _folders: Vec<TempDir>,
}

impl StartedTarget {
    /// Starts the servers of a target, the last of a chain first, or finds a running one.
    ///
    /// # Errors
    /// The reason, in words, with the last output of the server, or that it was interrupted.
    pub(super) fn start(
        setup: &BenchSetup,
        is_interrupted: &dyn Fn() -> bool,
        tls: &BenchTlsConfig,
        target: &BenchTarget,
    ) -> Result<Self, LoadFailure> {
        match &target.server {
            Server::Commands(servers) => Self::start_commands(setup, is_interrupted, tls, target, servers),
            Server::Address(server) => Ok(Self::find(tls, server)?),
        }
    }

    fn start_commands(
        setup: &BenchSetup,
        is_interrupted: &dyn Fn() -> bool,
        tls: &BenchTlsConfig,
        target: &BenchTarget,
        servers: &[CommandServer],
    ) -> Result<Self, LoadFailure> {
        let (mut supervisors, mut folders) = (Vec::new(), Vec::new());
        let mut behind: Option<Endpoint> = None;
        for (index, server) in servers.iter().enumerate().rev() {
            let folder = setup.new_folder("t").map_err(|error| format!("cannot make a folder: {error}"))?;
            let upstream = match (&behind, server.upstream) {
                (Some(behind), _) => Some(behind.clone()),
                (None, UpstreamKind::Unix) => Some(setup.upstream.unix.clone()),
                (None, UpstreamKind::Tcp) => Some(setup.upstream.tcp.clone()),
                (None, UpstreamKind::None) => None,
            };
            // The previous server in the chain says how it reaches this one.
            let is_unix = index > 0 && servers[index - 1].upstream == UpstreamKind::Unix;
            let listen = if is_unix {
                Endpoint::Unix(folder.path().join("listen.sock"))
            } else {
                Endpoint::Tcp(free_address().map_err(|error| format!("cannot find a free port: {error}"))?)
            };
            let starter = ServerStarter {
                setup,
                is_interrupted,
                tls,
                target,
                listen: &listen,
                upstream: upstream.as_ref(),
                folder: folder.path(),
            };
            supervisors.push(starter.start(server).map_err(|failure| of_server(server, failure))?);
            folders.push(folder);
            behind = Some(listen);
        }
        supervisors.reverse();
        let Some(Endpoint::Tcp(address)) = behind else { return Err("it has no servers".to_owned().into()) };
        let mut flags = Vec::new();
        if target.has_tls() {
            flags.extend(setup.trust_flags(target.certificate));
            flags.extend(tls.load_flags());
        }
        let pids: Vec<u32> = supervisors.iter().map(Supervisor::pid).collect();
        let trees: io::Result<Vec<_>> = supervisors.iter().map(Supervisor::tree).collect();
        let trees = trees.map_err(|error| format!("cannot observe its processes: {error}"))?;
        // A server may listen before it has started its workers.
        std::thread::sleep(SETTLE);
        let scheme = if target.has_tls() { "https" } else { "http" };
        Ok(Self {
            url: format!("{scheme}://{address}"),
            flags,
            at_rest: memory(&trees),
            trees,
            pids,
            supervisors,
            _folders: folders,
        })
    }

    fn find(tls: &BenchTlsConfig, server: &ExternalServer) -> Result<Self, String> {
        let pid = match (server.pid, &server.unit) {
            (Some(pid), _) => Some(pid),
            (None, Some(unit)) => Some(main_pid(unit)?),
            (None, None) => None,
        };
        let tree = pid.map(|pid| {
            ProcessTree::new(&[pid]).map_err(|error| format!("cannot observe process {pid}: {error}"))
        });
        let mut flags = match &server.ca {
            Some(ca) => vec![format!("--ca={}", ca.display())],
            None => vec!["--insecure".to_owned()],
        };
        if server.url.starts_with("https://") {
            flags.extend(tls.load_flags());
        } else {
            flags.clear();
        }
        let trees: Vec<ProcessTree> = tree.transpose()?.into_iter().collect();
        Ok(Self {
            url: server.url.clone(),
            flags,
            at_rest: memory(&trees),
            trees,
            pids: pid.into_iter().collect(),
            supervisors: Vec::new(),
            _folders: Vec::new(),
        })
    }

    /// The last output of the servers, and how the ended ones exited.
    pub(super) fn output_tail(&mut self) -> String {
        let words = self.supervisors.iter_mut().filter_map(|supervisor| {
            let ended = supervisor.exit().map(|exit| format!("the target ended with {exit}"));
            let said = Some(supervisor.output_tail()).filter(|said| !said.is_empty());
            let said = said.map(|said| format!("the target said: {said}"));
            let words: Vec<String> = ended.into_iter().chain(said).collect();
            (!words.is_empty()).then(|| words.join("; "))
        });
        words.collect::<Vec<_>>().join("; ")
    }

    /// Stops the target. Describes its processes that did not end as they should.
    pub(super) fn stop(self) -> Vec<String> {
        let words = self.supervisors.into_iter().filter_map(|supervisor| supervisor.stop().unclean_exit());
        words.map(|words| format!("when the target was stopped, {words}")).collect()
    }

    /// Describes the processes that outlived their server, for servers that have ended.
    pub(super) fn unclean_exit(&mut self) -> Vec<String> {
        let words = self.supervisors.iter_mut().filter_map(|supervisor| {
            supervisor.exit()?;
            supervisor.wait_until(Instant::now() + END_PATIENCE)?.unclean_exit()
        });
        words.collect()
    }

    /// True if one of its servers has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        self.supervisors.iter_mut().any(|supervisor| supervisor.exit().is_some())
    }
}

fn memory(trees: &[ProcessTree]) -> Vec<TreeMemory> {
    trees.iter().map(|tree| tree.read().memory()).collect()
}

fn main_pid(unit: &str) -> Result<u32, String> {
    let failed = |reason: String| format!("cannot find the main process of unit {unit}: {reason}");
    let output =
        Command::new("systemctl").args(["show", "--property=MainPID", "--value", "--"]).arg(unit).output();
    let output = output.map_err(|error| failed(format!("systemctl: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let pid = text.trim().parse().ok().filter(|pid| *pid > 0);
    pid.ok_or_else(|| failed("systemctl knows none; is it running?".to_owned()))
}

fn of_server(server: &CommandServer, failure: LoadFailure) -> LoadFailure {
    match failure {
        LoadFailure::Failed(reason) if !server.template.is_empty() => {
            LoadFailure::Failed(format!("{}: {reason}", server.template))
        }
        failure => failure,
    }
}
