//! All that is known of one client.

use telemetry::model::Run;
use telemetry::{ClientCounter, ClientId, ConnectionRecord};

use super::{ClientLatency, ClientRow, History, Span};

/// One client, for a screen of its own.
#[derive(Clone, Debug)]
pub(crate) struct ClientDetail {
    pub(crate) row: ClientRow,
    /// Full handshakes since the beginning.
    pub(crate) full: u64,
    /// Resumed handshakes since the beginning.
    pub(crate) resumed: u64,
    /// Latencies of its exchanges since the beginning; `None` where no record tells any.
    pub(crate) latency: Option<ClientLatency>,
    /// Since its last record, in microseconds.
    pub(crate) silent_us: u64,
    /// The latest connection of the sample that ended well.
    pub(crate) connection: Option<ConnectionRecord>,
    /// The latest connection that did not, of those with a record.
    pub(crate) failed: Option<ConnectionRecord>,
    pub(crate) history: History,
}

impl ClientDetail {
    /// What is known of the client of a row.
    pub(crate) fn of(run: &Run, row: &ClientRow, history: History) -> Option<Self> {
        let id: ClientId = row.id;
        let client = run.client(id)?;
        let totals = client.totals();
        Some(Self {
            row: *row,
            full: totals[ClientCounter::HandshakesFull],
            resumed: totals[ClientCounter::HandshakesResumed],
            latency: ClientLatency::until(client, u64::MAX, Span::WholeRun),
            silent_us: run.last_us().saturating_sub(client.last_us),
            connection: client.connection().cloned(),
            failed: client.failed_connection().cloned(),
            history,
        })
    }
}
