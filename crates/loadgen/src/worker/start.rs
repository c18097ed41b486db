//! The configuration of a thread.

use std::sync::Arc;

use records::delta::{LoadDelta, Reporter};

use crate::control::{LoadControl, LoadSpan};
use crate::schedule::{ThreadLoadState, ThreadPart};
use crate::script::ScriptPart;
use crate::stats::WorkerStats;
use crate::worker::client::LoadClient;
use crate::worker::socket::Address;

#[derive(Debug)]
pub(crate) struct SharedSetup {
    /// The server's addresses, at least one.
    pub(crate) addresses: Vec<Address>,
    /// The order in which the requests are sent, by their numbers.
    pub(crate) sequence: Box<[u16]>,
    pub(crate) timeout_ns: u64,
    /// How long a connection is used.
    pub(crate) lifetime_ns: Option<u64>,
    /// Connections that resume send their first request as early data.
    pub(crate) early_data: bool,
    pub(crate) control: LoadControl,
}

impl SharedSetup {
    /// Sends a thread's last counts.
    pub(crate) fn finish(
        &self,
        clients: &[LoadClient],
        load: &ThreadLoadState,
        stats: WorkerStats,
        reporter: Reporter<LoadDelta>,
    ) {
        for client in clients {
            if let Some(address) = client.address {
                self.control.account(address, client.totals);
            }
        }
        self.record_span(load, stats.span);
        self.control.thread_ended();
        reporter.finish(stats.delta, |_| {});
    }

    /// Records how long a thread has measured.
    pub(super) fn record_span(&self, load: &ThreadLoadState, span: LoadSpan) {
        self.control.record_span(LoadSpan { ran: load.ran(), ..span });
    }
}

#[derive(Debug)]
pub(crate) struct WorkerConfig {
    pub(crate) setup: Arc<SharedSetup>,
    /// What is sent instead of the sequence at a rate.
    pub(crate) script: Option<Arc<ScriptPart>>,
    pub(crate) load: ThreadLoadState,
    pub(crate) clients: Vec<LoadClient>,
    pub(crate) part: ThreadPart,
    pub(crate) reporter: Reporter<LoadDelta>,
}
