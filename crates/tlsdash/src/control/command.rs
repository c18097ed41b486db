//! What the control socket asks of the controller of the run.

use std::sync::mpsc::SyncSender;
use std::time::Duration;

use proxy_core::UpstreamChange;

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
