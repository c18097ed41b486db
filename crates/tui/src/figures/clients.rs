//! The table of clients and its order.

use std::cmp::Ordering;

use telemetry::model::{Client, Run, Track};
use telemetry::{ClientCounter, ClientId};

use super::Span;
use super::sparkline::SLOTS;

/// One client. Rates are `None` where a client's record has been put off for so long that it says nothing about now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientRow {
    pub(crate) id: ClientId,
    /// Plaintext bytes a second from the client.
    pub(crate) in_per_second: Option<f64>,
    /// Plaintext bytes a second to the client.
    pub(crate) out_per_second: Option<f64>,
    /// Exchanges a second.
    pub(crate) exchanges_per_second: Option<f64>,
    /// Open connections.
    pub(crate) open: u64,
    /// Connections since the beginning.
    pub(crate) connections: u64,
    /// Share of full handshakes since the beginning; `None` without handshakes.
    pub(crate) full_share: Option<f64>,
    /// Errors since the beginning.
    pub(crate) errors: u64,
    /// Plaintext bytes both ways since the beginning.
    pub(crate) bytes: u64,
}

impl ClientRow {
    pub(super) fn of(run: &Run, client: &Client, span: Span) -> Self {
        let totals = client.totals();
        let [bytes_in, bytes_out, exchanges] = rates(run, client, span).map_or([None; 3], |r| r.map(Some));
        let full = totals[ClientCounter::HandshakesFull];
        let handshakes = full.saturating_add(totals[ClientCounter::HandshakesResumed]);
        Self {
            id: client.id,
            in_per_second: bytes_in,
            out_per_second: bytes_out,
            exchanges_per_second: exchanges,
            open: client.open,
            connections: totals[ClientCounter::Connections],
            full_share: (handshakes > 0).then(|| full as f64 / handshakes as f64),
            errors: totals[ClientCounter::Errors],
            bytes: totals[ClientCounter::BytesIn].saturating_add(totals[ClientCounter::BytesOut]),
        }
    }
}

/// The time over which clients' rates can be taken: their records are kept for so many intervals.
pub(super) fn span(wanted: Span, interval_us: u64) -> Span {
    match wanted {
        Span::Last(us) => Span::Last(us.min(interval_us.max(1) * SLOTS as u64)),
        Span::WholeRun => Span::WholeRun,
    }
}

/// Bytes in, bytes out and exchanges a second over the span, so that they add up to what the proxy's line says.
fn rates(run: &Run, client: &Client, span: Span) -> Option<[f64; 3]> {
    const COUNTERS: [ClientCounter; 3] =
        [ClientCounter::BytesIn, ClientCounter::BytesOut, ClientCounter::Exchanges];
    let Span::Last(span_us) = span else {
        let (totals, span_us) = (client.totals(), run.duration_us());
        return (span_us > 0).then(|| COUNTERS.map(|counter| totals[counter] as f64 * 1e6 / span_us as f64));
    };
    let now_us = run.proxy().map_or(0, Track::last_us);
    let span_us = span_us.min(run.duration_us()).max(1);
    let from_us = now_us.saturating_sub(span_us);
    // Until the record that was put off comes, the client is taken to go on as it did.
    let latest = run.client_rate(client)?;
    let since_us = now_us.saturating_sub(latest.end_us).min(span_us);
    let mut counted = COUNTERS.map(|counter| latest.per_second(counter) * since_us as f64 / 1e6);
    for rate in client.history().rev().take_while(|rate| rate.end_us > from_us) {
        let within_us =
            rate.end_us.min(now_us).saturating_sub(rate.end_us.saturating_sub(rate.span_us).max(from_us));
        for (sum, counter) in counted.iter_mut().zip(COUNTERS) {
            *sum += rate.per_second(counter) * within_us as f64 / 1e6;
        }
    }
    Some(counted.map(|sum| sum * 1e6 / span_us as f64))
}

/// What the clients are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SortKey {
    /// Bytes a second to the client.
    Out,
    /// Bytes a second from the client.
    In,
    /// Exchanges a second.
    Exchanges,
    /// Open connections.
    Open,
    /// Connections since the beginning.
    Connections,
    /// Share of full handshakes.
    Full,
    /// Errors.
    Errors,
    /// Bytes since the beginning.
    Total,
    /// The address.
    Client,
}

impl SortKey {
    /// All of them, in the order in which a key goes through them.
    pub(crate) const ALL: &'static [Self] = &[
        Self::Out,
        Self::In,
        Self::Exchanges,
        Self::Open,
        Self::Connections,
        Self::Full,
        Self::Errors,
        Self::Total,
        Self::Client,
    ];

    /// The next one.
    pub(crate) fn next(self) -> Self {
        let at = Self::ALL.iter().position(|&key| key == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }

    /// The heading of its column.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Out => "out",
            Self::In => "in",
            Self::Exchanges => "exch/s",
            Self::Open => "open",
            Self::Connections => "conns",
            Self::Full => "full",
            Self::Errors => "errors",
            Self::Total => "total",
            Self::Client => "client",
        }
    }

    /// True if a person wants the largest first.
    fn is_descending(self) -> bool {
        self != Self::Client
    }

    fn compare(self, a: &ClientRow, b: &ClientRow) -> Ordering {
        // What is unknown counts as less than nothing.
        let float = |value: Option<f64>| value.unwrap_or(-1.0);
        let floats = |of: fn(&ClientRow) -> Option<f64>| float(of(a)).total_cmp(&float(of(b)));
        match self {
            Self::Out => floats(|row| row.out_per_second),
            Self::In => floats(|row| row.in_per_second),
            Self::Exchanges => floats(|row| row.exchanges_per_second),
            Self::Open => a.open.cmp(&b.open),
            Self::Connections => a.connections.cmp(&b.connections),
            Self::Full => floats(|row| row.full_share),
            Self::Errors => a.errors.cmp(&b.errors),
            Self::Total => a.bytes.cmp(&b.bytes),
            Self::Client => a.id.cmp(&b.id),
        }
    }
}

/// The order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) key: SortKey,
    /// True if the order is the other way round than a person usually wants it.
    pub(crate) reversed: bool,
}

impl Order {
    /// True if the largest comes first.
    pub(crate) fn is_descending(self) -> bool {
        self.key.is_descending() != self.reversed
    }
}

/// Puts the rows in order; equal ones by address.
pub(crate) fn sort(rows: &mut [ClientRow], order: Order) {
    rows.sort_unstable_by(|a, b| {
        let by_key = order.key.compare(a, b);
        let by_key = if order.is_descending() { by_key.reverse() } else { by_key };
        by_key.then_with(|| a.id.cmp(&b.id))
    });
}
