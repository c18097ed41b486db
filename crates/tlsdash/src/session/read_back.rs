//! Reads back a run's own records, the only source of the dashboard and the summary.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use model::history::{Batch, Follower, RunFilter, Update};
use records::ids::RunId;
use records::kinds::{Body, Phase, RunRecord};
use tui::{DashboardSender, Event};

use crate::journals::source::JournalSource;

/// How long to wait until the run's last record is read back. journald stores entries some time after it took them.
pub(super) const LAST_RECORD: Duration = Duration::from_secs(2);

/// Reads back a run's own records.
pub(super) struct ReadBack {
    follower: Follower,
    /// Signals that the run's last record was read.
    stopped: Receiver<()>,
}

/// True if the batch, of one run and its parts, holds the last record of the whole.
pub(super) fn stops(batch: &Batch) -> bool {
    let is_last = |run: &RunRecord| run.phase == Phase::Stop && run.service.is_empty();
    batch.records.iter().any(|record| matches!(&record.body, Body::Run(run) if is_last(run)))
}

impl ReadBack {
    /// Follows this process's records of the run.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(super) fn start(
        source: &JournalSource,
        run: RunId,
        filter: RunFilter,
        events: DashboardSender,
    ) -> anyhow::Result<Self> {
        let (tell, stopped) = sync_channel(1);
        let deliver = move |update| {
            let has_stopped = matches!(&update, Update::Batch(batch) if stops(batch));
            let is_wanted = events.send(Event::Update(update)).is_ok();
            if has_stopped {
                // After the record was delivered. A second one changes nothing.
                let _ = tell.try_send(());
            }
            is_wanted
        };
        let follower = Follower::start(source.opener_of_run(run), filter, deliver)?;
        Ok(Self { follower, stopped })
    }

    /// Messages of this process that journald reports as dropped.
    pub(super) fn suppressed_total(&self) -> Arc<AtomicU64> {
        self.follower.suppressed_total()
    }

    /// Waits for the run's last record, then stops. Returns whether the record was read.
    pub(super) fn finish(self) -> bool {
        let came = self.stopped.recv_timeout(LAST_RECORD).is_ok();
        // An error of its reading has been delivered as a notice.
        let _ = self.follower.finish();
        // The follower has read the journal to its end, so the record may have arrived meanwhile.
        came || self.stopped.try_recv().is_ok()
    }
}
