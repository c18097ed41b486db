//! Control of a running service over a Unix socket: `--control` and `tlsdash ctl`. `docs/service.md` describes it.
//!
//! | module | purpose |
//! |---|---|
//! | [`protocol`] | requests and responses, as lines of JSON |
//! | [`access`] | who may read and who may write, by the peer's credentials |
//! | [`server`] | the socket of a service |
//! | [`conversation`] | the server's end of a connection |
//! | [`client`] | requests to a service |
//! | [`remote`] | requests of keys in `tlsdash watch` to the shown service |
//!
//! A request that changes something goes to the controller, as a key in the dashboard does. A query of figures reads the
//! model.

pub(crate) mod access;
pub(crate) mod client;
pub(crate) mod conversation;
pub(crate) mod protocol;
pub(crate) mod remote;
pub(crate) mod server;

use std::path::PathBuf;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use nix::unistd::Uid;
use proxy_core::UpstreamChange;

use crate::cli::ProxyOptions;
use access::{AccessRules, ControlGroup};
use client::SOCKET_NAME;
use server::ControlListener;

use crate::upgrade::predecessor::Predecessor;

/// The options of the control socket.
#[derive(Clone, Debug)]
pub(crate) struct ControlOptions {
    pub(crate) path: PathBuf,
    /// `--control-group`.
    pub(crate) group: Option<String>,
    /// `--control-readers`.
    pub(crate) readers: Option<String>,
}

impl ControlOptions {
    /// The control socket of a proxy; `None` without one.
    pub(crate) fn of(options: &ProxyOptions) -> Option<Self> {
        let of_unit = || {
            let folder = std::env::var_os("RUNTIME_DIRECTORY").filter(|_| options.run.headless)?;
            Some(PathBuf::from(folder).join(SOCKET_NAME))
        };
        let path = match &options.control {
            Some(path) if path.as_os_str() == "off" => return None,
            Some(path) => path.clone(),
            None => of_unit()?,
        };
        Some(Self { path, group: options.control_group.clone(), readers: options.control_readers.clone() })
    }

    /// The absolute path of the socket, for the run's record.
    pub(crate) fn recorded_path(&self) -> String {
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        records::text::clean::line(&path.to_string_lossy())
    }

    /// Makes the socket, as the user that the service runs as, or takes it over from the process that this one replaces.
    ///
    /// # Errors
    /// If a group does not exist, or the socket cannot be made.
    pub(crate) fn listen(&self, predecessor: Option<&mut Predecessor>) -> anyhow::Result<ControlListener> {
        let find = |option: &str, name: &Option<String>| {
            name.as_deref().map(|name| ControlGroup::find(option, name)).transpose()
        };
        let rules = AccessRules {
            owner: Uid::effective(),
            writers: find("--control-group", &self.group)?,
            readers: find("--control-readers", &self.readers)?,
        };
        match predecessor.and_then(|predecessor| predecessor.take_control(&self.path)) {
            Some(listener) => ControlListener::take_over(&self.path, listener, rules),
            None => ControlListener::bind(&self.path, rules),
        }
    }
}

/// An action for the controller of the run.
#[derive(Debug)]
pub(crate) struct ControlCommand {
    pub(crate) action: ControlAction,
    /// Who asks, such as `alice (uid 1000, pid 4711)`.
    pub(crate) by: String,
    /// Receives the result, or the reason of a refusal.
    pub(crate) reply: SyncSender<Result<ControlAnswer, String>>,
}

#[derive(Clone, Debug)]
pub(crate) struct ControlAnswer {
    pub(crate) text: String,
    /// The requested data, in the form of the protocol.
    pub(crate) data: Option<serde_json::Value>,
}

impl From<String> for ControlAnswer {
    fn from(text: String) -> Self {
        Self { text, data: None }
    }
}

/// A request to the controller.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ControlAction {
    Change(ServiceChange),
    /// Read the configuration file, certificates and keys again.
    Reload,
    Upgrade,
    Settings,
    /// List the changes of a reload with this text as the configuration file.
    CompareConfiguration(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ServiceChange {
    /// Change a setting, as a person types it, and restore it after a time.
    Set {
        name: String,
        value: String,
        revert_after: Option<Duration>,
    },
    /// Leave a note in the time line.
    Mark(String),
    /// Forget sessions and ticket keys: the next handshake of every client is full.
    ForgetSessions,
    /// Make a new ticket key; former ones still open tickets.
    RotateTickets,
    /// Drain the upstream of this name, or return it to service.
    Upstream(String, UpstreamChange),
    /// Begin an experiment, in the words of `--ab`.
    Experiment(String),
    EndExperiment,
    /// Measure the cost of handshakes on this machine.
    Calibrate,
}
