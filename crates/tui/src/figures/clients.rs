//! One client of the table.

use telemetry::model::{Client, DEFERRED_US_MAX, Run, Track};
use telemetry::{ClientCounter, ClientId, Sketch, quantile_is_thin};

use super::Span;
use super::classes::Quantile;
use super::sparkline::SLOTS;

/// Latencies of a client's exchanges, each percentile an eighth above the exact one at the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientLatency {
    pub(crate) p50: Quantile,
    pub(crate) p99: Quantile,
    /// Exact maximum, in nanoseconds.
    pub(crate) max_ns: u64,
    /// Samples.
    pub(crate) n: u64,
}

impl ClientLatency {
    /// `None` without samples.
    fn of(sketch: &Sketch) -> Option<Self> {
        let n = sketch.count();
        let at = |q| Some(Quantile { ns: sketch.quantile_ns(q)?, thin: quantile_is_thin(n, q) });
        Some(Self { p50: at(0.5)?, p99: at(0.99)?, max_ns: sketch.max_ns(), n })
    }

    /// Over the [`latency_span`] up to a moment.
    pub(super) fn until(client: &Client, until_us: u64, rates: Span) -> Option<Self> {
        match latency_span(rates) {
            Span::Last(us) => Self::of(&client.exchange_between(until_us.saturating_sub(us), until_us)),
            Span::WholeRun => Self::of(client.exchange()),
        }
    }
}

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
    /// Latencies of its exchanges over the same time; `None` where no record tells any.
    pub(crate) latency: Option<ClientLatency>,
    /// Open connections.
    pub(crate) open: u64,
    /// Connections since the beginning.
    pub(crate) connections: u64,
    /// Share of full handshakes since the beginning; `None` without handshakes.
    pub(crate) full_share: Option<f64>,
    /// Errors since the beginning.
    pub(crate) errors: u64,
    /// Plaintext bytes from the client since the beginning.
    pub(crate) bytes_in: u64,
    /// Plaintext bytes to the client since the beginning.
    pub(crate) bytes_out: u64,
    /// Exchanges since the beginning.
    pub(crate) exchanges: u64,
}

impl ClientRow {
    /// What it has done since the beginning; of its rates and latencies nothing is known.
    pub(super) fn of(client: &Client) -> Self {
        let totals = client.totals();
        let full = totals[ClientCounter::HandshakesFull];
        let handshakes = full.saturating_add(totals[ClientCounter::HandshakesResumed]);
        Self {
            id: client.id,
            in_per_second: None,
            out_per_second: None,
            exchanges_per_second: None,
            latency: None,
            open: client.open,
            connections: totals[ClientCounter::Connections],
            full_share: (handshakes > 0).then(|| full as f64 / handshakes as f64),
            errors: totals[ClientCounter::Errors],
            bytes_in: totals[ClientCounter::BytesIn],
            bytes_out: totals[ClientCounter::BytesOut],
            exchanges: totals[ClientCounter::Exchanges],
        }
    }

    /// Plaintext bytes both ways since the beginning.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes_in.saturating_add(self.bytes_out)
    }

    /// Sets what it does now: bytes in, bytes out and exchanges a second.
    pub(super) fn set_rates(&mut self, rates: Option<[f64; 3]>) {
        [self.in_per_second, self.out_per_second, self.exchanges_per_second] =
            rates.map_or([None; 3], |rates| rates.map(Some));
    }

    /// Its averages over a run that took so long.
    pub(super) fn averages(&self, duration_us: u64) -> Option<[f64; 3]> {
        let totals = [self.bytes_in, self.bytes_out, self.exchanges];
        (duration_us > 0).then(|| totals.map(|total| total as f64 * 1e6 / duration_us as f64))
    }
}

/// The time over which clients' rates can be taken: their records are kept for so many intervals.
pub(crate) fn span(wanted: Span, interval_us: u64) -> Span {
    match wanted {
        Span::Last(us) => Span::Last(us.min(interval_us.max(1) * SLOTS as u64)),
        Span::WholeRun => Span::WholeRun,
    }
}

/// The time over which clients' latencies are taken where their rates are taken over this one: a client's records tell
/// latencies every five seconds only.
pub(crate) fn latency_span(rates: Span) -> Span {
    match rates {
        Span::Last(us) => Span::Last(us.max(DEFERRED_US_MAX)),
        Span::WholeRun => Span::WholeRun,
    }
}

/// Bytes in, bytes out and exchanges a second over so many microseconds, so that they add up to what the proxy's line
/// says; `None` if a record has been put off for so long that nothing is known.
pub(super) fn rates(run: &Run, client: &Client, span_us: u64) -> Option<[f64; 3]> {
    const COUNTERS: [ClientCounter; 3] =
        [ClientCounter::BytesIn, ClientCounter::BytesOut, ClientCounter::Exchanges];
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

/// The same up to an earlier moment, from the records that are still kept; `None` where they do not reach back so far.
pub(super) fn rates_until(client: &Client, until_us: u64, span_us: u64) -> Option<[f64; 3]> {
    const COUNTERS: [ClientCounter; 3] =
        [ClientCounter::BytesIn, ClientCounter::BytesOut, ClientCounter::Exchanges];
    let from_us = until_us.saturating_sub(span_us.max(1));
    let oldest = client.history().next()?;
    (oldest.end_us.saturating_sub(oldest.span_us) <= from_us).then_some(())?;
    let mut counted = [0.0; 3];
    for rate in client.history() {
        let begins_us = rate.end_us.saturating_sub(rate.span_us).max(from_us);
        let within_us = rate.end_us.min(until_us).saturating_sub(begins_us);
        for (sum, counter) in counted.iter_mut().zip(COUNTERS) {
            *sum += rate.per_second(counter) * within_us as f64 / 1e6;
        }
    }
    Some(counted.map(|sum| sum * 1e6 / span_us.max(1) as f64))
}
