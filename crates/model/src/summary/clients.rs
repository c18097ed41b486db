//! The clients in the summary.

use std::cmp::Reverse;
use std::time::Duration;

use serde::Serialize;

use super::{by_figure, micros};
use crate::runs::{ClientStats, RecentUse, Run};
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
        run.clients_by_bytes().into_iter().map(|(client, counters)| Self::new(client, counters)).collect()
    }

    fn new(client: &ClientStats, counters: Counters<ClientCounter>) -> Self {
        Self {
            client: client.id.to_string(),
            counters,
            rtt_us: (client.rtt_us > 0).then_some(client.rtt_us),
            exchange_p99_us: client.exchange().quantile_ns(Percentile::P99.q).map(micros),
        }
    }
}

/// A client with what it used lately.
#[derive(Clone, Debug, Serialize)]
pub struct RecentClientSummary {
    #[serde(flatten)]
    pub client: ClientSummary,
    pub last: RecentRates,
}

/// What a client used in a time, each second.
#[derive(Clone, Copy, Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "units come last")]
pub struct RecentRates {
    /// Length of the time, in seconds.
    pub span_s: f64,
    pub connections_per_s: f64,
    pub bytes_in_per_s: f64,
    pub bytes_out_per_s: f64,
}

/// Which of its clients a run tells.
#[derive(Clone, Copy, Debug)]
pub struct RecentClients {
    /// How many at most.
    pub limit: usize,
    /// The time of the rates.
    pub last: Duration,
    /// Whether those are told that used most bytes in that time, and not since the start.
    pub is_by_last: bool,
}

impl RecentClients {
    /// The clients, those with the most bytes first.
    pub fn of(self, run: &Run) -> Vec<RecentClientSummary> {
        let clients = run.clients_by_bytes().into_iter();
        let mut clients: Vec<_> =
            clients.map(|(client, totals)| (client, totals, run.recent_use(client, self.last))).collect();
        if self.is_by_last {
            clients.sort_by_key(|(.., (used, _))| Reverse(used.bytes_in.saturating_add(used.bytes_out)));
        }
        clients.truncate(self.limit);
        let summary = |(client, totals, (used, span_s)): (&ClientStats, _, (RecentUse, f64))| {
            let per_s = |count: u64| if span_s > 0.0 { count as f64 / span_s } else { 0.0 };
            let last = RecentRates {
                span_s,
                connections_per_s: per_s(used.connections),
                bytes_in_per_s: per_s(used.bytes_in),
                bytes_out_per_s: per_s(used.bytes_out),
            };
            RecentClientSummary { client: ClientSummary::new(client, totals), last }
        };
        clients.into_iter().map(summary).collect()
    }
}
