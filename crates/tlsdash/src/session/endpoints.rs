//! The network endpoints of a run: figures and control.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, sync_channel};

use anyhow::Context;
use proxy_core::ListenAddr;
use proxy_http::RedirectServer;
use records::ids::RunId;
use tui::DashboardSender;

use super::config::SessionConfig;
use super::frontend::Frontend;
use crate::control::ControlCommand;
use crate::control::server::{ControlListener, ControlTarget, SocketFile};
use crate::service::accepting::AcceptStop;
use crate::service::metrics::{MetricsListener, MetricsSource};
use crate::upgrade::channel::PreparedProcess;

/// Capacity of a queue of commands; a person does not press keys faster.
pub(super) const COMMANDS_MAX: usize = 64;

pub(super) struct RunEndpoints {
    /// Set once the run ends.
    pub(super) is_ending: Arc<AtomicBool>,
    /// Commands of the control socket.
    pub(super) control: Receiver<ControlCommand>,
    /// Its sockets, for the process that replaces this one.
    pub(super) shared: SharedEndpoints,
    /// Removed when the run has ended.
    pub(super) _socket_file: Option<Arc<SocketFile>>,
}

/// A socket that is served, and may be left to another process.
#[derive(Debug)]
struct SharedEndpoint<T> {
    /// Its address, in the syntax of the options.
    at: T,
    socket: OwnedFd,
    stop: AcceptStop,
}

/// The redirect to https.
#[derive(Debug)]
pub(crate) struct RedirectEndpoint {
    pub(crate) at: ListenAddr,
    pub(crate) socket: OwnedFd,
    /// Kept until the run ends.
    pub(crate) server: RedirectServer,
}

/// The sockets for figures, control and redirects, which another process may take over.
#[derive(Debug, Default)]
pub(crate) struct SharedEndpoints {
    metrics: Option<SharedEndpoint<SocketAddr>>,
    control: Option<SharedEndpoint<PathBuf>>,
    pub(super) redirect: Option<RedirectEndpoint>,
    socket_file: Option<Arc<SocketFile>>,
}

impl SharedEndpoints {
    /// The socket for figures.
    ///
    /// # Errors
    /// If there is no descriptor for it.
    pub(crate) fn metrics(&self) -> std::io::Result<Option<(SocketAddr, OwnedFd)>> {
        self.metrics.as_ref().map(|metrics| Ok((metrics.at, metrics.socket.try_clone()?))).transpose()
    }

    /// The control socket.
    ///
    /// # Errors
    /// If there is no descriptor for it.
    pub(crate) fn control(&self) -> std::io::Result<Option<(PathBuf, OwnedFd)>> {
        self.control.as_ref().map(|control| Ok((control.at.clone(), control.socket.try_clone()?))).transpose()
    }

    /// The socket whose clients are redirected to https.
    ///
    /// # Errors
    /// If there is no descriptor for it.
    pub(crate) fn redirect(&self) -> std::io::Result<Option<(ListenAddr, OwnedFd)>> {
        self.redirect.as_ref().map(|redirect| Ok((redirect.at, redirect.socket.try_clone()?))).transpose()
    }

    /// Accepts no more on the sockets that another process has taken over.
    pub(crate) fn leave(&self, to: &PreparedProcess) {
        if let Some(metrics) = self.metrics.as_ref().filter(|_| to.has_metrics) {
            metrics.stop.stop();
        }
        if let Some(redirect) = self.redirect.as_ref().filter(|_| to.has_redirect) {
            redirect.server.leave();
        }
        if let Some(control) = self.control.as_ref().filter(|_| to.has_control) {
            control.stop.stop();
            if let Some(file) = &self.socket_file {
                file.leave();
            }
        }
    }
}

impl RunEndpoints {
    /// Serves figures and control, and prints their addresses if nothing else is shown.
    pub(super) fn serve(
        metrics: Option<MetricsListener>,
        control: Option<ControlListener>,
        run: RunId,
        events: &DashboardSender,
        config: &SessionConfig,
    ) -> anyhow::Result<Self> {
        let say = |text: String| {
            if config.frontend == Frontend::Headless {
                crate::say(text);
            }
        };
        let is_ending = Arc::new(AtomicBool::new(false));
        let mut shared = SharedEndpoints::default();
        if let Some((metrics, at)) = metrics.zip(config.metrics) {
            let addr = metrics.addr().context("cannot tell the address of --metrics")?;
            let (events, is_ending) = (events.clone(), Arc::clone(&is_ending));
            let (interval, clients_max) = (config.interval, config.metrics_clients);
            let (socket, stop) = (metrics.share()?, AcceptStop::new()?);
            shared.metrics = Some(SharedEndpoint { at, socket, stop: stop.clone() });
            metrics.serve(MetricsSource { run, clients_max, events, interval, is_ending }, stop)?;
            say(format!("metrics on http://{addr}/metrics"));
        }
        let (commands, orders) = sync_channel(COMMANDS_MAX);
        let target = ControlTarget { run, events: events.clone(), commands };
        if let Some((control, options)) = control.zip(config.control.as_ref()) {
            let (socket, stop) = (control.share()?, AcceptStop::new()?);
            shared.control = Some(SharedEndpoint { at: options.path.clone(), socket, stop: stop.clone() });
            let file = Arc::new(control.serve(target, stop)?);
            say(format!("control socket {}", file.path().display()));
            shared.socket_file = Some(file);
        }
        Ok(Self { is_ending, control: orders, _socket_file: shared.socket_file.clone(), shared })
    }
}
