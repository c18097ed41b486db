//! The control socket of a service.
//!
//! Each client has a thread for a bounded time, and there are a few at a time. Nothing here waits for the controller or for
//! the owner of the model longer than [`PATIENCE`].

use std::fs;
use std::io::{self, BufReader};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use model::runs::Model;
use model::summary::{CertificateSummary, RecentClients};
use proxy_core::UpstreamChange;
use records::ids::RunId;
use records::kinds::ExperimentRecord;
use records::text::quantity::counted;
use serde_json::json;
use tui::{DashboardSender, Event};

use super::access::{Access, AccessRules, ControlPeer};
use super::conversation::{IDLE, converse, line, send};
use super::protocol::{AccessData, ControlRequest, ControlResponse, RECENT, recent_time, revert_after};
use super::{ControlAction, ControlAnswer, ControlCommand, ServiceChange};
use crate::service;
use crate::service::accepting::AcceptStop;
use crate::service::clients::{ClientSemaphore, read_model};
use crate::service::thread::spawn;

/// Clients at a time; further ones get an error and are closed.
const CLIENTS_MAX: usize = 12;
/// Clients of [`CLIENTS_MAX`] that may only read: the others are for those who may change something.
const READERS_MAX: usize = 8;
/// Further clients of root and the service's own user, so that nobody can keep these out.
const OWNERS_MAX: usize = 4;
/// The longest time for an answer of the controller, or of the owner of the model.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest time for an upgrade. It exceeds the time that a new process may take to be ready.
const UPGRADE_PATIENCE: Duration = Duration::from_secs(13);
/// How often the server checks for the first record of the run.
const FIRST_RECORD_POLL: Duration = Duration::from_millis(20);

/// A listening control socket; its file is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct ControlListener {
    listener: UnixListener,
    file: SocketFile,
    rules: AccessRules,
}

/// The file of a socket that this process made.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and inode: another process may have replaced it.
    identity: (u64, u64),
    /// Whether another process now serves the socket.
    is_left: AtomicBool,
}

impl SocketFile {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the file to the process that serves the socket from now on.
    pub(crate) fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours = identity(&self.path).is_ok_and(|identity| identity == self.identity);
        if is_ours && !self.is_left.load(Ordering::Relaxed) {
            // If the file is already gone, nothing is left to do.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Where requests go.
#[derive(Clone, Debug)]
pub(crate) struct ControlTarget {
    pub(crate) run: RunId,
    /// The queue to the owner of the model.
    pub(crate) events: DashboardSender,
    /// The queue to the controller.
    pub(crate) commands: SyncSender<ControlCommand>,
}

impl ControlListener {
    /// Creates the socket at `path`. A socket without a listener is replaced.
    ///
    /// # Errors
    /// If there is a file that is not a socket, a socket that is served, or the kernel refuses.
    pub(crate) fn bind(path: &Path, rules: AccessRules) -> anyhow::Result<Self> {
        let name = path.display();
        match fs::symlink_metadata(path) {
            Ok(metadata) if !metadata.file_type().is_socket() => {
                bail!("--control {name}: there is a file that is no socket; name another path")
            }
            Ok(_) => match UnixStream::connect(path) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    fs::remove_file(path).with_context(|| format!("cannot replace --control {name}"))?;
                }
                Ok(_) => bail!("--control {name}: another process serves this socket; name another path"),
                Err(error) => {
                    bail!("--control {name}: cannot tell whether it is served: {error}; name another path")
                }
            },
            Err(_) => {}
        }
        let cannot = || format!("cannot make the socket --control {name}");
        service::make_socket_folder(path).with_context(cannot)?;
        // Created without permissions, so no client connects before its mode is set.
        let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o777));
        let listener = UnixListener::bind(path);
        rustix::process::umask(before);
        let listener = listener.with_context(cannot)?;
        Self::at(path, listener, rules, AtomicBool::new(false))
    }

    /// Serves the socket at `path` that another process served.
    ///
    /// # Errors
    /// If the file is gone, or the kernel refuses.
    pub(crate) fn take_over(path: &Path, listener: UnixListener, rules: AccessRules) -> anyhow::Result<Self> {
        // The file belongs to the other process until this one serves.
        Self::at(path, listener, rules, AtomicBool::new(true))
    }

    fn at(
        path: &Path,
        listener: UnixListener,
        rules: AccessRules,
        is_left: AtomicBool,
    ) -> anyhow::Result<Self> {
        let name = path.display();
        let cannot = || format!("cannot make the socket --control {name}");
        let identity = identity(path).with_context(cannot)?;
        let file = SocketFile { identity, path: path.to_owned(), is_left };
        if let Some(group) = &rules.writers {
            std::os::unix::fs::chown(path, None, Some(group.gid.as_raw()))
                .with_context(|| format!("cannot give --control {name} to its --control-group"))?;
        }
        fs::set_permissions(path, fs::Permissions::from_mode(rules.mode())).with_context(cannot)?;
        Ok(Self { listener, file, rules })
    }

    /// The socket, for the process that replaces this one.
    ///
    /// # Errors
    /// If there is no descriptor for it.
    pub(crate) fn share(&self) -> io::Result<OwnedFd> {
        self.listener.as_fd().try_clone_to_owned()
    }

    /// Serves clients until the process ends, or `stop` ends it. The socket's file goes with the returned value.
    ///
    /// # Errors
    /// If there can be no thread for it.
    pub(crate) fn serve(self, target: ControlTarget, stop: AcceptStop) -> anyhow::Result<SocketFile> {
        let Self { listener, file, rules } = self;
        file.is_left.store(false, Ordering::Relaxed);
        let owners = ClientSemaphore::new(OWNERS_MAX);
        let [places, readers] = [CLIENTS_MAX, READERS_MAX].map(ClientSemaphore::new);
        listener.set_nonblocking(true).context("cannot serve --control")?;
        // CPU time is accounted by the beginning of the name.
        spawn("dashboard-control", move || {
            let accept = |listener: &UnixListener| listener.accept().map(|(stream, _)| stream);
            stop.accept_until(&listener, accept, |stream| {
                let (target, rules, readers) = (target.clone(), rules.clone(), readers.clone());
                let reserve = rules.is_owner(&stream).then(|| owners.take()).flatten();
                let Some(place) = reserve.or_else(|| places.take()) else { return refuse_one_more(&stream) };
                // Without a thread the connection is closed.
                let _ = spawn("dashboard-control", move || {
                    // The client may leave at any time.
                    let _ = serve(&stream, &target, &rules, &readers);
                    drop(place);
                });
            });
        })?;
        Ok(file)
    }
}

/// Tells a client that it is one too many. It reads this, or its end of file.
fn refuse_one_more(stream: &UnixStream) {
    let text = "too many clients of the control socket; try again";
    let _ = send(stream, &line(&ControlResponse::refused(text)));
}

/// Serves a client until it leaves, or has done nothing for too long.
fn serve(
    stream: &UnixStream,
    target: &ControlTarget,
    rules: &AccessRules,
    readers: &ClientSemaphore,
) -> anyhow::Result<()> {
    stream.set_read_timeout(Some(IDLE))?;
    let peer = ControlPeer::of(stream)?;
    let (name, access) = (peer.name(), rules.of(&peer));
    let place = (access == Access::Read).then(|| readers.take());
    if matches!(place, Some(None)) {
        refuse_one_more(stream);
        return Ok(());
    }
    let answer = |request: &ControlRequest| target.answer(request, &name, access);
    Ok(converse(&mut BufReader::new(stream), (&name, access), answer, |line| send(stream, line))?)
}

impl ControlTarget {
    fn answer(&self, request: &ControlRequest, by: &str, access: Access) -> ControlResponse {
        let change = match request {
            ControlRequest::Access {} => return self.access(by, access),
            ControlRequest::Status {} => return self.status(),
            ControlRequest::Settings {} => return self.ask(ControlAction::Settings, by),
            ControlRequest::Reload {} => return self.ask(ControlAction::Reload, by),
            ControlRequest::Upgrade {} => return self.ask(ControlAction::Upgrade, by),
            ControlRequest::CompareConfiguration { text } => {
                return self.ask(ControlAction::CompareConfiguration(text.clone()), by);
            }
            ControlRequest::Clients { limit, last_s } => return self.clients(*limit, *last_s),
            ControlRequest::Certificates {} => return self.certificates(),
            ControlRequest::Drain {} => return self.drain(by),
            ControlRequest::Set { name, value, for_s } => match revert_after(*for_s) {
                Ok(revert_after) => {
                    ServiceChange::Set { name: name.clone(), value: value.clone(), revert_after }
                }
                Err(reason) => return ControlResponse::refused(reason),
            },
            ControlRequest::Load { running } => {
                let value = if *running { "on" } else { "off" };
                ServiceChange::Set { name: "load.running".into(), value: value.into(), revert_after: None }
            }
            ControlRequest::Upstream { name, drained } => {
                let change = if *drained { UpstreamChange::Drain } else { UpstreamChange::Return };
                ServiceChange::Upstream(name.clone(), change)
            }
            ControlRequest::Mark { text } => ServiceChange::Mark(text.clone()),
            ControlRequest::ForgetSessions {} => ServiceChange::ForgetSessions,
            ControlRequest::RotateTickets {} => ServiceChange::RotateTickets,
            ControlRequest::Experiment { words } => ServiceChange::Experiment(words.clone()),
            ControlRequest::EndExperiment {} => ServiceChange::EndExperiment,
            ControlRequest::Calibrate {} => ServiceChange::Calibrate,
        };
        self.ask(ControlAction::Change(change), by)
    }

    fn access(&self, client: &str, access: Access) -> ControlResponse {
        let (run, write) = (self.run.to_string(), access == Access::Write);
        let may = if write { "read and change" } else { "read" };
        let text = format!("{client} may {may} run {}", self.run.short());
        let data = json!(AccessData { run, write, client: client.to_owned() });
        ControlResponse::data(text, data)
    }

    /// Passes an action to the controller, and answers with the result.
    fn ask(&self, action: ControlAction, by: &str) -> ControlResponse {
        match self.act(action, by.to_owned()) {
            Ok(ControlAnswer { text, data }) => ControlResponse { data, ..ControlResponse::done(text) },
            Err(reason) => ControlResponse::refused(reason),
        }
    }

    /// Passes an action to the controller, and waits for the result.
    fn act(&self, action: ControlAction, by: String) -> Result<ControlAnswer, String> {
        let (reply, replied) = sync_channel(1);
        let patience = if action == ControlAction::Upgrade { UPGRADE_PATIENCE } else { PATIENCE };
        self.commands.try_send(ControlCommand { action, by, reply }).map_err(|error| match error {
            TrySendError::Full(_) => "too many requests wait; try again".to_owned(),
            TrySendError::Disconnected(_) => "the service is ending".to_owned(),
        })?;
        let answer = replied.recv_timeout(patience);
        answer
            .map_err(|_| "the service did not answer in time; whether it was done is not known".to_owned())?
    }

    /// Ends the service as SIGTERM does.
    fn drain(&self, by: &str) -> ControlResponse {
        // Recorded before the controller ends.
        let mark = ServiceChange::Mark("draining".to_owned());
        if let Err(reason) = self.act(ControlAction::Change(mark), by.to_owned()) {
            return ControlResponse::refused(reason);
        }
        match self.events.send(Event::Terminate) {
            Ok(()) => ControlResponse::done(format!("draining: asked for by {by}")),
            Err(_) => ControlResponse::refused("the service is ending"),
        }
    }

    fn status(&self) -> ControlResponse {
        self.read(|model, run| {
            let run = model.run(run)?;
            let summary = model.summary(run, None);
            let began = run.began();
            let experiment = run.experiments().next_back().filter(|_| run.compared_setting().is_some());
            let data = json!({
                "run": summary.run,
                "version": env!("CARGO_PKG_VERSION"),
                "host": run.hostname(),
                "pid": std::process::id(),
                "duration_s": summary.duration_s,
                "listen": began.map(|began| began.listen.clone()),
                "upstream": began.map(|began| began.upstream.clone()),
                "connections": summary.proxy.as_ref().map(|proxy| &proxy.connections),
                "handshakes": summary.proxy.as_ref().map(|proxy| &proxy.handshakes),
                "requests": summary.proxy.as_ref().and_then(|proxy| proxy.http.as_ref()).map(|http| &http.requests),
                "load": summary.load.as_ref().map(|load| &load.requests),
                "clients": summary.clients.len(),
                "experiment": experiment.map(|it| {
                    let ExperimentRecord { setting, a, b, .. } = &it.state;
                    format!("{setting} {b} against {a}, {}", it.progress())
                }),
                "findings": summary.findings.iter().filter(|finding| finding.closed_s.is_none()).map(|finding| finding.id).collect::<Vec<_>>(),
            });
            let addresses = began.map_or_else(String::new, |began| format!(", {} > {}", began.listen, began.upstream));
            Some(ControlResponse::data(format!("run {} for {:.0} s{addresses}", run.id().short(), summary.duration_s), data))
        })
    }

    fn certificates(&self) -> ControlResponse {
        self.read(|model, run| {
            let certificates = CertificateSummary::all(model.run(run)?);
            let text = counted(certificates.len() as u64, "certificate");
            Some(ControlResponse::data(text, serde_json::to_value(certificates).ok()?))
        })
    }

    fn clients(&self, limit: usize, last_s: Option<f64>) -> ControlResponse {
        let last = match last_s.map(recent_time).transpose() {
            Ok(last) => last.unwrap_or(RECENT),
            Err(reason) => return ControlResponse::refused(format!("last_s: {reason}")),
        };
        let chosen = RecentClients { limit, last, is_by_last: last_s.is_some() };
        self.read(move |model, run| {
            let run = model.run(run)?;
            let (clients, all) = (chosen.of(run), run.clients().len());
            let by = if chosen.is_by_last { ", by their last bytes" } else { "" };
            let text = format!("{} of {all} clients{by}", clients.len());
            Some(ControlResponse::data(text, serde_json::to_value(clients).ok()?))
        })
    }

    fn read(
        &self,
        read: impl Fn(&Model, RunId) -> Option<ControlResponse> + Clone + Send + 'static,
    ) -> ControlResponse {
        let run = self.run;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let read = read.clone();
            match read_model(&self.events, PATIENCE, move |model| read(model, run)) {
                Some(Some(response)) => return response,
                // A service that has just started reads its first record soon.
                Some(None) if Instant::now() < deadline => std::thread::sleep(FIRST_RECORD_POLL),
                Some(None) => return ControlResponse::refused("no record of the run was read yet"),
                None => return ControlResponse::refused("the service ends, or did not answer within 5 s"),
            }
        }
    }
}
