//! How far an upgrade is, and who waits for it.

use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Instant;

use records::ids::RunId;

use crate::control::ControlAnswer;
use crate::session::controller::reload::proxy_files::ReloadWaiter;
use crate::upgrade::successor::{PreparedSuccessor, Successor};

/// An upgrade, from the request to the end of this process.
#[derive(Debug, Default)]
pub(crate) struct Upgrade {
    pub(super) stage: UpgradeStage,
    /// The waiting clients. Those that ask during an upgrade get its answer.
    pub(super) waiting: Vec<ReloadWaiter>,
}

#[derive(Debug, Default)]
pub(super) enum UpgradeStage {
    /// No upgrade is under way.
    #[default]
    Idle,
    /// The new process reads its configuration.
    Preparing(Receiver<anyhow::Result<PreparedSuccessor>>),
    /// It starts its workers. It has the ticket keys.
    Starting(Receiver<anyhow::Result<Successor>>),
    /// The new process serves. This run ends at `end_at`; `None` once it has been asked to end.
    Left { run: RunId, end_at: Option<Instant> },
}

impl Upgrade {
    pub(crate) fn ask(&mut self, by: String, reply: SyncSender<Result<ControlAnswer, String>>) {
        self.waiting.push(ReloadWaiter { by, reply });
    }

    /// The run of the process that has taken over.
    pub(crate) fn next_run(&self) -> Option<RunId> {
        match self.stage {
            UpgradeStage::Left { run, .. } => Some(run),
            UpgradeStage::Idle | UpgradeStage::Preparing(_) | UpgradeStage::Starting(_) => None,
        }
    }

    /// Whether the new process has received its state: a later change would be lost.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self.stage, UpgradeStage::Starting(_) | UpgradeStage::Left { .. })
    }
}
