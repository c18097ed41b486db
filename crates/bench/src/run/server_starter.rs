//! Starts a server of a target: writes its files, prepares it, and waits until it listens.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::{Duration, Instant};

use super::error::LoadFailure;
use super::setup::{BenchSetup, FILE_MODE, set_mode};
use crate::scenario::{
    BenchTarget, BenchTlsConfig, CommandServer, Endpoint, Launch, PlaceholderValues, core_count,
};
use crate::target::{ReadinessError, SupervisedCommand, Supervisor, wait_until_ready};

/// How long a target may take until it listens, by default; a JVM takes some seconds.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a command may take that prepares a target, such as a compiler.
const PREPARE_PATIENCE: Duration = Duration::from_secs(300);

/// How often progress is shown and an interruption is noticed.
pub(super) const POLL: Duration = Duration::from_millis(50);

pub(super) struct ServerStarter<'a> {
    pub(super) setup: &'a BenchSetup,
    pub(super) is_interrupted: &'a dyn Fn() -> bool,
    pub(super) tls: &'a BenchTlsConfig,
    pub(super) target: &'a BenchTarget,
    pub(super) listen: &'a Endpoint,
    pub(super) upstream: Option<&'a Endpoint>,
    pub(super) folder: &'a Path,
}

impl ServerStarter<'_> {
    /// Starts a server and waits until it listens.
    ///
    /// # Errors
    /// Why not, in words, with the last output of the server, or that it was interrupted.
    pub(super) fn start(&self, server: &CommandServer) -> Result<Supervisor, LoadFailure> {
        let build = self.setup.build_folder(self.fingerprint(server)?);
        let build = build.map_err(|error| format!("cannot make a folder: {error}"))?;
        let launch = self.launch(server, &build)?;
        for (path, text) in &launch.files {
            let written = fs::write(path, text).and_then(|()| set_mode(path, FILE_MODE));
            written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
        if !launch.prepare.is_empty() {
            self.prepare(&launch, &build)?;
        }
        let mut supervisor = self.supervise(launch.argv.clone(), &launch)?;
        let timeout = self.target.start_timeout.unwrap_or(START_TIMEOUT);
        match wait_until_ready(&mut supervisor, self.listen, timeout, self.is_interrupted) {
            Ok(()) => Ok(supervisor),
            Err(ReadinessError::Interrupted) => Err(LoadFailure::Interrupted),
            Err(error) => Err(LoadFailure::Failed(error.to_string())),
        }
    }

    fn launch(&self, server: &CommandServer, build: &Path) -> Result<Launch, String> {
        let Self { setup, tls, target, listen, upstream, folder, .. } = *self;
        let certificate = setup.certificate(target.certificate);
        let workers = match target.workers {
            0 => core_count(setup.placement.target.as_deref()),
            workers => workers,
        };
        let user = if rustix::process::geteuid().is_root() { "nobody".to_owned() } else { user_name() };
        let slots = PlaceholderValues {
            listen,
            upstream,
            cert: &certificate.chain,
            key: &certificate.key,
            pem: &certificate.both,
            tls,
            workers,
            dir: folder,
            build,
            www: &setup.www(),
            user: &user,
            tlsdash: &setup.tlsdash,
        };
        let mut launch = server.launch(&slots).map_err(|error| error.to_string())?;
        for (name, path) in server.needed_variables() {
            launch.environment.entry(name).or_insert(path);
        }
        Ok(launch)
    }

    /// Identifies commands that prepare a server alike. Its folders and addresses are replaced by fixed ones, because
    /// they differ between starts, and the fingerprint names the folder of `prepare`.
    fn fingerprint(&self, server: &CommandServer) -> Result<u64, String> {
        let fixed = |endpoint: &Endpoint| match endpoint {
            Endpoint::Unix(_) => Endpoint::Unix("/socket".into()),
            Endpoint::Tcp(_) => Endpoint::Tcp((Ipv4Addr::LOCALHOST, 1).into()),
        };
        let (listen, upstream) = (fixed(self.listen), self.upstream.map(fixed));
        let (upstream, folder) = (upstream.as_ref(), Path::new("/folder"));
        let starter = ServerStarter { listen: &listen, upstream, folder, ..*self };
        let Launch { argv, environment, files, prepare } = starter.launch(server, Path::new("/build"))?;
        let mut hasher = DefaultHasher::new();
        (argv.first(), environment, files, prepare).hash(&mut hasher);
        Ok(hasher.finish())
    }

    fn supervise(&self, argv: Vec<String>, launch: &Launch) -> Result<Supervisor, String> {
        let output = self.folder.join("output");
        let mut command = SupervisedCommand::new(argv, self.folder.to_owned(), output);
        command.environment.clone_from(&launch.environment);
        command.cpus.clone_from(&self.setup.placement.target);
        command.descriptors_max = self.target.descriptors;
        Supervisor::start(&self.setup.tlsdash, &command).map_err(|error| error.to_string())
    }

    /// Runs the command that builds the server, once per run; its output is in the folder `build`.
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
            Supervisor::start(&self.setup.tlsdash, &command).map_err(|error| failed(error.to_string()))?;
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
                let output_tail = supervisor.output_tail();
                Err(failed(format!("it ended with {exit}; it said: {output_tail}")).into())
            }
            None => Err(failed("its supervisor ended".to_owned()).into()),
        }
    }
}

/// The name of this program's user.
fn user_name() -> String {
    std::env::var("USER").unwrap_or_else(|_| "nobody".to_owned())
}
