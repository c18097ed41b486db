//! The clients in the summary.

use serde::Serialize;

use super::{by_figure, micros};
use crate::runs::{ClientStats, Run};
use records::metrics::{ClientCounter, Counters, Percentile};

/// A client's figures. In JSON each counter has the key of its declaration, where a dot begins an object.
#[derive(Clone, Debug, Serialize)]
pub struct ClientSummary {
    /// Its address, or `other`.
    pub client: String,
    #[serde(flatten, serialize_with = "by_figure")]
    pub counters: Counters<ClientCounter>,
    /// Round-trip time to it at the end of its latest handshake, as the kernel estimated it, in microseconds; `null` if not
    /// known.
    pub rtt_us: Option<u64>,
    /// 99th percentile of its exchanges, to an eighth, in microseconds; `null` without samples.
    pub exchange_p99_us: Option<f64>,
}

impl ClientSummary {
    /// Every client of a run, those with the most bytes first.
    pub(super) fn all(run: &Run) -> Vec<Self> {
        let row = |(client, counters): (&ClientStats, Counters<ClientCounter>)| Self {
            client: client.id.to_string(),
            counters,
            rtt_us: (client.rtt_us > 0).then_some(client.rtt_us),
            exchange_p99_us: client.exchange().quantile_ns(Percentile::P99.q).map(micros),
        };
        run.clients_by_bytes().into_iter().map(row).collect()
    }
}
