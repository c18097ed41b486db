//! A target that is started for a cell: its processes, its URL, and how clients reach it.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use telemetry::{ProcessTree, TreeMemory};
use tempfile::TempDir;

use super::certificate::SERVER_NAME;
use super::load::{LoadFailure, LoadRunner, POLL};
use super::stage::{RunStage, free_address};
use crate::scenario::{
    BenchTarget, BenchTlsConfig, CommandServer, Endpoint, Launch, LaunchSlots, RunningServer, Server,
    UpstreamKind,
};
use crate::target::{NotReady, SupervisedCommand, Supervisor, wait_until_ready};

/// How long a target may take until it listens; a JVM takes some seconds.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// How long a target that listens has until its memory at rest is read.
const SETTLE: Duration = Duration::from_millis(100);
/// How long what a server leaves behind may take to end: SIGTERM, SIGKILL, and the rest.
const END_PATIENCE: Duration = Duration::from_secs(15);
/// How long a command may take that prepares a target, such as a compiler.
const PREPARE_PATIENCE: Duration = Duration::from_secs(300);

/// A target that clients can reach. Dropping it ends what was started.
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

/// Programs that are missing, with the Debian package that has each.
pub(super) fn missing_program(target: &BenchTarget, tlsdash: &Path) -> Option<String> {
    let Server::Commands(servers) = &target.server else { return None };
    let missing = servers.iter().find(|server| {
        let program = server.command[0].replace("{tlsdash}", &tlsdash.display().to_string());
        // What is built first is there later.
        let program =
            if program.contains('{') { server.prepare.first().cloned().unwrap_or_default() } else { program };
        !program.is_empty() && !is_program(&program)
    })?;
    let program = &missing.command[0];
    let program = if program.contains('{') { &missing.prepare[0] } else { program };
    let package = missing.package.as_deref();
    let package = package.map_or_else(String::new, |package| format!("; Debian's package {package} has it"));
    Some(format!("{}: there is no program {program}{package}", target.name))
}

/// True if the program is an executable file, of a path or in one of the folders of `PATH`.
fn is_program(program: &str) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let is_executable = |path: PathBuf| {
        fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return is_executable(program.into());
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| is_executable(folder.join(program)))
}

impl StartedTarget {
    /// Starts the servers of a target, the last of a chain first, or finds one that runs.
    ///
    /// # Errors
    /// Why not, in words, with the last words of the server, or that it was interrupted.
    pub(super) fn start(
        generator: &LoadRunner<'_>,
        tls: &BenchTlsConfig,
        target: &BenchTarget,
    ) -> Result<Self, LoadFailure> {
        match &target.server {
            Server::Commands(servers) => Self::start_commands(generator, tls, target, servers),
            Server::Address(server) => Ok(Self::find(tls, server)?),
        }
    }

    fn start_commands(
        generator: &LoadRunner<'_>,
        tls: &BenchTlsConfig,
        target: &BenchTarget,
        servers: &[CommandServer],
    ) -> Result<Self, LoadFailure> {
        let stage = generator.stage;
        let (mut supervisors, mut folders) = (Vec::new(), Vec::new());
        let mut behind: Option<Endpoint> = None;
        for (index, server) in servers.iter().enumerate().rev() {
            let folder = stage.new_folder("t").map_err(|error| format!("cannot make a folder: {error}"))?;
            let upstream = match (&behind, server.upstream) {
                (Some(behind), _) => Some(behind.clone()),
                (None, UpstreamKind::Unix) => Some(Endpoint::Unix(stage.upstream.socket.clone())),
                (None, UpstreamKind::Tcp) => Some(Endpoint::Tcp(stage.upstream.tcp)),
                (None, UpstreamKind::None) => None,
            };
            // The server before it says how it reaches what is behind it.
            let is_unix = index > 0 && servers[index - 1].upstream == UpstreamKind::Unix;
            let listen = if is_unix {
                Endpoint::Unix(folder.path().join("listen.sock"))
            } else {
                Endpoint::Tcp(free_address().map_err(|error| format!("cannot find a free port: {error}"))?)
            };
            let place = ServerPlace {
                stage,
                is_interrupted: generator.is_interrupted,
                tls,
                target,
                listen: &listen,
                upstream: upstream.as_ref(),
                folder: folder.path(),
            };
            supervisors.push(place.start(server).map_err(|failure| of_server(server, failure))?);
            folders.push(folder);
            behind = Some(listen);
        }
        supervisors.reverse();
        let Some(Endpoint::Tcp(address)) = behind else { return Err("it has no servers".to_owned().into()) };
        let flags = if target.has_tls() {
            let mut flags = vec![
                format!("--ca={}", stage.certificate(target.certificate).chain.display()),
                format!("--sni={SERVER_NAME}"),
            ];
            flags.extend(tls.load_flags());
            flags
        } else {
            Vec::new()
        };
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

    fn find(tls: &BenchTlsConfig, server: &RunningServer) -> Result<Self, String> {
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

    /// What the servers said last, and how those ended that did.
    pub(super) fn last_words(&mut self) -> String {
        let words = self.supervisors.iter_mut().filter_map(|supervisor| {
            let ended = supervisor.exit().map(|exit| format!("the target ended with {exit}"));
            let said = Some(supervisor.last_words()).filter(|said| !said.is_empty());
            let said = said.map(|said| format!("the target said: {said}"));
            let words: Vec<String> = ended.into_iter().chain(said).collect();
            (!words.is_empty()).then(|| words.join("; "))
        });
        words.collect::<Vec<_>>().join("; ")
    }

    /// Stops it. Returns which of its processes did not end as they should, in words.
    pub(super) fn stop(self) -> Vec<String> {
        let words = self.supervisors.into_iter().filter_map(|supervisor| supervisor.stop().disorder());
        words.map(|words| format!("when the target was stopped, {words}")).collect()
    }

    /// Of the servers that have ended, which processes did not end with them, in words.
    pub(super) fn disorder(&mut self) -> Vec<String> {
        let words = self.supervisors.iter_mut().filter_map(|supervisor| {
            supervisor.exit()?;
            supervisor.wait_until(Instant::now() + END_PATIENCE)?.disorder()
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

/// Where a server of a target is started.
struct ServerPlace<'a> {
    stage: &'a RunStage,
    is_interrupted: &'a dyn Fn() -> bool,
    tls: &'a BenchTlsConfig,
    target: &'a BenchTarget,
    listen: &'a Endpoint,
    upstream: Option<&'a Endpoint>,
    folder: &'a Path,
}

impl ServerPlace<'_> {
    fn start(&self, server: &CommandServer) -> Result<Supervisor, LoadFailure> {
        let build = self.stage.build_folder(self.fingerprint(server)?);
        let build = build.map_err(|error| format!("cannot make a folder: {error}"))?;
        let launch = self.launch(server, &build)?;
        for (path, text) in &launch.files {
            fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
        if !launch.prepare.is_empty() {
            self.prepare(&launch, &build)?;
        }
        let mut supervisor = self.supervise(launch.argv.clone(), &launch)?;
        match wait_until_ready(&mut supervisor, self.listen, START_PATIENCE, self.is_interrupted) {
            Ok(()) => Ok(supervisor),
            Err(NotReady::Interrupted) => Err(LoadFailure::Interrupted),
            Err(error) => Err(LoadFailure::Failed(error.to_string())),
        }
    }

    fn launch(&self, server: &CommandServer, build: &Path) -> Result<Launch, String> {
        let Self { stage, tls, target, listen, upstream, folder, .. } = *self;
        let certificate = stage.certificate(target.certificate);
        let workers = match target.workers {
            0 => super::cores(stage.placement.target.as_deref()),
            workers => workers,
        };
        let user = if rustix::process::geteuid().is_root() { "nobody".to_owned() } else { user_name() };
        let slots = LaunchSlots {
            listen,
            upstream,
            cert: &certificate.chain,
            key: &certificate.key,
            pem: &certificate.both,
            tls,
            workers,
            dir: folder,
            build,
            www: &stage.www(),
            user: &user,
            tlsdash: &stage.tlsdash,
        };
        server.launch(&slots).map_err(|error| error.to_string())
    }

    /// Tells commands apart that prepare a server. Its folders and addresses are replaced by fixed ones: those of a start
    /// differ from those of the next, and the folder of what `prepare` makes is named by the fingerprint.
    fn fingerprint(&self, server: &CommandServer) -> Result<u64, String> {
        let fixed = |endpoint: &Endpoint| match endpoint {
            Endpoint::Unix(_) => Endpoint::Unix("/socket".into()),
            Endpoint::Tcp(_) => Endpoint::Tcp((Ipv4Addr::LOCALHOST, 1).into()),
        };
        let (listen, upstream) = (fixed(self.listen), self.upstream.map(fixed));
        let (upstream, folder) = (upstream.as_ref(), Path::new("/folder"));
        let place = ServerPlace { listen: &listen, upstream, folder, ..*self };
        let Launch { argv, environment, files, prepare } = place.launch(server, Path::new("/build"))?;
        let mut hasher = DefaultHasher::new();
        (argv.first(), environment, files, prepare).hash(&mut hasher);
        Ok(hasher.finish())
    }

    fn supervise(&self, argv: Vec<String>, launch: &Launch) -> Result<Supervisor, String> {
        let output = self.folder.join("output");
        let mut command = SupervisedCommand::new(argv, self.folder.to_owned(), output);
        command.environment.clone_from(&launch.environment);
        command.cpus.clone_from(&self.stage.placement.target);
        command.descriptors_max = self.target.descriptors;
        Supervisor::start(&self.stage.tlsdash, &command).map_err(|error| error.to_string())
    }

    /// Runs the command that makes the server, once in a run: what it made is in the folder `build`.
    fn prepare(&self, launch: &Launch, build: &Path) -> Result<(), LoadFailure> {
        let done = build.join(".done");
        if done.exists() {
            return Ok(());
        }
        let mut command = SupervisedCommand::new(
            launch.prepare.clone(),
            self.folder.to_owned(),
            self.folder.join("prepare"),
        );
        command.environment.clone_from(&launch.environment);
        let failed = |reason: String| format!("cannot prepare it with {}: {reason}", launch.prepare[0]);
        let mut supervisor =
            Supervisor::start(&self.stage.tlsdash, &command).map_err(|error| failed(error.to_string()))?;
        let deadline = Instant::now() + PREPARE_PATIENCE;
        let info = loop {
            if let Some(info) = supervisor.wait_until(Instant::now() + POLL) {
                break info;
            }
            if (self.is_interrupted)() {
                return Err(LoadFailure::Interrupted);
            }
            if Instant::now() > deadline {
                return Err(failed(format!("it is not done after {} s", PREPARE_PATIENCE.as_secs())).into());
            }
        };
        match info.exit {
            Some(exit) if exit.is_success() => {
                fs::write(done, "").map_err(|error| failed(error.to_string()).into())
            }
            Some(exit) => {
                let words = supervisor.last_words();
                Err(failed(format!("it ended with {exit}; it said: {words}")).into())
            }
            None => Err(failed("its supervisor ended".to_owned()).into()),
        }
    }
}

/// The main process of a unit.
fn main_pid(unit: &str) -> Result<u32, String> {
    let failed = |reason: String| format!("cannot find the main process of unit {unit}: {reason}");
    let output =
        Command::new("systemctl").args(["show", "--property=MainPID", "--value", "--"]).arg(unit).output();
    let output = output.map_err(|error| failed(format!("systemctl: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let pid = text.trim().parse().ok().filter(|pid| *pid > 0);
    pid.ok_or_else(|| failed("systemctl knows none; is it running?".to_owned()))
}

/// The name of this program's user.
fn user_name() -> String {
    std::env::var("USER").unwrap_or_else(|_| "nobody".to_owned())
}

fn of_server(server: &CommandServer, failure: LoadFailure) -> LoadFailure {
    match failure {
        LoadFailure::Failed(reason) if !server.template.is_empty() => {
            LoadFailure::Failed(format!("{}: {reason}", server.template))
        }
        failure => failure,
    }
}
