//! All that is known of one client at a moment.

use model::runs::{ClientStats, Run};
use records::kinds::ConnectionRecord;

use super::history::History;
use super::model::{ClientLatency, ClientRow};

/// The history of the client begins after this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfHistory;

/// One client at a moment, for a screen of its own.
#[derive(Clone, Debug)]
pub(crate) struct ClientDetail {
    pub(crate) row: ClientRow,
    /// Latencies of its exchanges since the beginning; `None` if no record has any.
    pub(crate) latency: Result<Option<ClientLatency>, OutOfHistory>,
    /// Time since its last record, in microseconds.
    pub(crate) silent_us: Result<u64, OutOfHistory>,
    /// The latest connection of the sample that ended well.
    pub(crate) connection: Result<Option<ConnectionRecord>, OutOfHistory>,
    /// The latest connection that did not, of those with a record.
    pub(crate) failed: Result<Option<ConnectionRecord>, OutOfHistory>,
    pub(crate) history: History,
}

impl ClientDetail {
    /// What is known of the client of a row, and of its history, at the moment of both.
    pub(crate) fn at(run: &Run, row: &ClientRow, us: u64, history: History) -> Option<Self> {
        let client = run.client(row.id)?;
        let until = |recorded: Option<(u64, &ConnectionRecord)>| match recorded {
            Some((recorded_us, _)) if recorded_us > us => Err(OutOfHistory),
            recorded => Ok(recorded.map(|(_, connection)| connection.clone())),
        };
        Some(Self {
            row: row.clone(),
            latency: client.exchange_until(us).map(ClientLatency::of).ok_or(OutOfHistory),
            silent_us: last_us(client, us).map(|last_us| us - last_us).ok_or(OutOfHistory),
            connection: until(client.connection()),
            failed: until(client.failed_connection()),
            history,
        })
    }
}

/// The client's last record up to a moment.
fn last_us(client: &ClientStats, us: u64) -> Option<u64> {
    let kept = client.history().map(|rate| rate.end_us);
    std::iter::once(client.last_us).chain(kept.rev()).find(|last_us| *last_us <= us)
}
