//! Changing and recording the runs of other processes: what the dashboard asks of the program.

use std::path::PathBuf;
use std::sync::mpsc::SyncSender;

use records::command::Command;
use records::ids::RunId;

/// Where the dashboard sends what concerns the runs of other processes.
#[derive(Clone, Debug)]
pub struct RemoteControl {
    /// The name of this host: control sockets of others cannot be reached.
    pub host: String,
    /// Receives requests for a control socket.
    pub requests: SyncSender<RemoteRequest>,
    /// Receives requests about recordings.
    pub recorder: SyncSender<RecordingRequest>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordingRequest {
    /// To begin a recording of a run, in this new file.
    Begin(RunId, PathBuf),
    End,
}

/// Something to be asked of a run's process.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteRequest {
    pub run: RunId,
    /// Its control socket, by the run's own record.
    pub socket: PathBuf,
    pub action: RemoteAction,
}

#[derive(Clone, Debug, PartialEq)]
pub enum RemoteAction {
    /// Whether this user may change the run; the answer is an [`Event::Access`](crate::Event::Access).
    CheckAccess,
    /// A command. A notice reports results that the run's records do not show.
    Command(Command),
}
