//! One client of the table.

use std::borrow::Cow;

use model::runs::{ClientRate, ClientStats, DEFERRED_US_MAX, MetricSeries, Run};
use records::histogram::Sketch;
use records::ids::ClientId;
use records::metrics::{ClientCounter, Counters, ProxyCounter, TimeResolution, TlsCounter, labels};

use super::history::SLOTS;
use crate::view_model::classes::Quantile;
use crate::view_model::span::Span;

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
    /// `None` without samples: logs of other terminators have no exchanges.
    pub(crate) fn of(sketch: &Sketch) -> Option<Self> {
        let n = sketch.count();
        let at = |q| Quantile::of(n, q, sketch.quantile_ns(q), TimeResolution::FINE);
        Some(Self { p50: at(0.5)?, p99: at(0.99)?, max_ns: sketch.max_ns(), n })
    }

    /// Over the [`latency_span`] up to a moment.
    pub(crate) fn until(client: &ClientStats, until_us: u64, rates: Span) -> Option<Self> {
        match latency_span(rates) {
            Span::Last(us) => Self::of(&client.exchange_between(until_us.saturating_sub(us), until_us)),
            Span::WholeRun => Self::of(client.exchange()),
        }
    }
}

/// One client. Rates are `None` if its records say nothing of the time.
#[derive(Clone, Debug)]
pub(crate) struct ClientRow {
    pub(crate) id: ClientId,
    /// Plaintext bytes a second from the client.
    pub(crate) in_per_second: Option<f64>,
    /// Plaintext bytes a second to the client.
    pub(crate) out_per_second: Option<f64>,
    /// Exchanges a second.
    pub(crate) exchanges_per_second: Option<f64>,
    /// Latencies of its exchanges over the same time; `None` if no record has any.
    pub(crate) latency: Option<ClientLatency>,
    /// Round-trip time to it at the end of its latest handshake, in nanoseconds; `None` if not known, as at an earlier moment.
    pub(crate) rtt_ns: Option<f64>,
    /// Open connections; `None` at an earlier moment: they are known of the latest record only.
    pub(crate) open: Option<u64>,
    /// Connections over the same time as the rates.
    pub(crate) connections: Option<u64>,
    /// Share of full handshakes over that time; `None` also without handshakes.
    pub(crate) full_share: Option<f64>,
    /// Errors over that time.
    pub(crate) errors: Option<u64>,
    /// Since the beginning; `None` at an earlier moment to which its records do not reach back.
    pub(crate) totals: Option<Counters<ClientCounter>>,
    /// TLS version of its handshakes, or of its latest recorded connection if they differ; empty if unknown.
    pub(crate) tls: &'static str,
    /// Cipher suite of that connection; empty if unknown.
    pub(crate) cipher: &'static str,
    /// Server name of that connection; empty if unknown, and without one.
    pub(crate) sni: Box<str>,
    /// Why its latest failed connection failed that has a record; empty if none has.
    pub(crate) failure: Cow<'static, str>,
}

impl ClientRow {
    /// What it had done by a moment; of its rates and latencies nothing is known. At an earlier moment than the latest,
    /// open connections are not known.
    pub(crate) fn at(client: &ClientStats, us: u64) -> Self {
        let connection = client.connection().filter(|(recorded_us, _)| *recorded_us <= us);
        let connection = connection.map(|(_, connection)| connection);
        let failed = client.failed_connection().filter(|(recorded_us, _)| *recorded_us <= us);
        Self {
            rtt_ns: (client.last_us <= us && client.rtt_us > 0).then_some(client.rtt_us as f64 * 1e3),
            open: (client.last_us <= us).then_some(client.open),
            totals: client.totals_at(us),
            tls: connection.map_or("", |connection| tls_version(&connection.tls_version)),
            cipher: connection.map_or("", |connection| cipher(&connection.cipher)),
            sni: connection.map_or_else(Box::default, |connection| connection.sni.as_str().into()),
            failure: failed.map_or(Cow::Borrowed(""), |(_, connection)| connection.reason()),
            ..Self::unknown(client.id)
        }
    }

    /// The row of a client without records.
    pub(crate) fn unknown(id: ClientId) -> Self {
        Self {
            id,
            in_per_second: None,
            out_per_second: None,
            exchanges_per_second: None,
            latency: None,
            rtt_ns: None,
            open: None,
            connections: None,
            full_share: None,
            errors: None,
            totals: None,
            tls: "",
            cipher: "",
            sni: Box::default(),
            failure: Cow::Borrowed(""),
        }
    }

    /// The TLS version of all its handshakes, if they have the same one and the counts prove it.
    pub(crate) fn sole_version(&self, run: &Run) -> Option<&'static str> {
        let of_proxy = run.proxy()?.totals();
        let of_12 = of_proxy.sum(&[ProxyCounter::Tls12Full, ProxyCounter::Tls12Resumed]);
        if of_12 != run.tls()?.totals()[TlsCounter::Tls12Only] {
            // Clients that offered TLS 1.3 were given TLS 1.2.
            return None;
        }
        let totals = self.totals?;
        let handshakes = totals.sum(&[ClientCounter::HandshakesFull, ClientCounter::HandshakesResumed]);
        match totals[ClientCounter::Tls12Only] {
            _ if handshakes == 0 => None,
            0 => Some("1.3"),
            n if n == handshakes => Some("1.2"),
            _ => None,
        }
    }

    /// What was counted since the beginning.
    pub(crate) fn counted(&self, counter: ClientCounter) -> Option<u64> {
        self.totals.map(|totals| totals[counter])
    }

    /// The most frequent reason of its full handshakes since the beginning; empty without any.
    pub(crate) fn reason(&self) -> &'static str {
        let counted =
            labels::client_full_reasons().map(|(name, counter)| (self.counted(counter).unwrap_or(0), name));
        let most = counted.filter(|(n, _)| *n > 0).max_by_key(|(n, _)| *n);
        most.map_or("", |(_, name)| name)
    }

    /// Plaintext bytes both ways since the beginning.
    pub(crate) fn bytes(&self) -> Option<u64> {
        self.totals.map(|totals| totals.sum(&[ClientCounter::BytesIn, ClientCounter::BytesOut]))
    }

    /// Sets what it did over some time; `None` where that is not known, or not told by a log.
    pub(crate) fn set_recent(&mut self, run: &Run, recent: Option<RecentActivity>) {
        let totals = self.totals.unwrap_or_default();
        let recent_of =
            |at: usize| recent.filter(|_| run.client_count(COUNTED[at], totals[COUNTED[at]]).is_some());
        let rate = |at: usize| recent_of(at).map(|it| it.counted[at] * 1e6 / it.span_us.max(1) as f64);
        let rates = [rate(0), rate(1), rate(2)];
        let count = |at: usize| recent_of(at).map(|it| it.counted[at].round() as u64);
        [self.in_per_second, self.out_per_second, self.exchanges_per_second] = rates;
        (self.connections, self.errors) = (count(3), count(6));
        // A share of whole handshakes: the window may begin within an interval.
        self.full_share = recent.and_then(|RecentActivity { counted, .. }| {
            let (full, resumed) = (counted[4].round(), counted[5].round());
            (full + resumed > 0.0).then(|| full / (full + resumed))
        });
    }
}

fn tls_version(name: &str) -> &'static str {
    match name {
        "TLSv1.3" => "1.3",
        "TLSv1.2" => "1.2",
        "" => "",
        _ => "other",
    }
}

/// Returns the name of a cipher suite as the totals have it.
fn cipher(iana_name: &str) -> &'static str {
    let parts =
        [("AES_256_GCM", "AES-256-GCM"), ("AES_128_GCM", "AES-128-GCM"), ("CHACHA20", "ChaCha20-Poly1305")];
    let found = parts.iter().find(|(part, _)| iana_name.contains(part)).map(|(_, name)| *name);
    found.unwrap_or(if iana_name.is_empty() { "" } else { "other" })
}

/// What is counted of a client over some time.
const COUNTED: [ClientCounter; 7] = [
    ClientCounter::BytesIn,
    ClientCounter::BytesOut,
    ClientCounter::Exchanges,
    ClientCounter::Connections,
    ClientCounter::HandshakesFull,
    ClientCounter::HandshakesResumed,
    ClientCounter::Errors,
];

/// The activity of a client over a time window. An interval that is partly inside the window counts in proportion.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RecentActivity {
    /// A count for each of [`COUNTED`].
    counted: [f64; COUNTED.len()],
    span_us: u64,
}

impl RecentActivity {
    fn over(span_us: u64) -> Self {
        Self { span_us, ..Self::default() }
    }

    /// Counts of the whole run, which lasted `span_us`; `None` if that is 0.
    pub(crate) fn whole(client: &ClientStats, span_us: u64) -> Option<Self> {
        let totals = client.totals();
        (span_us > 0).then(|| Self { counted: COUNTED.map(|counter| totals[counter] as f64), span_us })
    }

    /// Adds the counts of a client at a rate over `us`.
    fn add(&mut self, rate: &ClientRate, us: u64) {
        for (sum, counter) in self.counted.iter_mut().zip(COUNTED) {
            *sum += rate.per_second(counter) * us as f64 / 1e6;
        }
    }
}

/// How far back the records of a client that has one in each interval are kept, in microseconds.
pub(crate) fn kept_us(interval_us: u64) -> u64 {
    interval_us.max(1) * SLOTS as u64
}

/// The time over which clients' rates can be taken.
pub(crate) fn span(wanted: Span, interval_us: u64) -> Span {
    match wanted {
        Span::Last(us) => Span::Last(us.min(kept_us(interval_us))),
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

/// What its records say of a client's last `span_us` microseconds; `None` if they say nothing of them. Deferred records are
/// missing, so the rates of all clients add up to at most the proxy's.
///
/// The records of a steady client follow each other without a gap. While the next one is deferred, for up to 10 s or the
/// span if that is longer, its time ends with the last record.
pub(crate) fn recent(run: &Run, client: &ClientStats, span_us: u64) -> Option<RecentActivity> {
    let now_us = run.proxy().map_or(0, MetricSeries::last_us);
    let known_us = run.client_known_until_us(client)?.min(now_us);
    let may_continue = known_us <= client.last_us && is_steady(client);
    let (end_us, unknown_us_max) =
        if may_continue { (known_us, span_us.max(DEFERRED_US_MAX)) } else { (now_us, span_us) };
    if now_us - known_us >= unknown_us_max.max(1) {
        return None;
    }
    let began_us = now_us.saturating_sub(run.duration_us());
    let from_us = end_us.saturating_sub(span_us).max(began_us).min(end_us);
    let mut recent = RecentActivity::over((end_us - from_us).max(1));
    for rate in client.history().rev().take_while(|rate| rate.end_us > from_us) {
        let begins_us = rate.end_us.saturating_sub(rate.span_us).max(from_us);
        recent.add(rate, rate.end_us.min(now_us).saturating_sub(begins_us));
    }
    Some(recent)
}

/// True if a client's last record continues the one before.
fn is_steady(client: &ClientStats) -> bool {
    let mut latest = client.history().rev();
    let last_two = latest.next().zip(latest.next());
    last_two.is_some_and(|(last, before)| last.end_us.saturating_sub(last.span_us) <= before.end_us)
}

/// Such activity up to an earlier moment, from the records still kept; `None` if they do not reach back so far.
pub(crate) fn recent_until(client: &ClientStats, until_us: u64, span_us: u64) -> Option<RecentActivity> {
    let from_us = until_us.saturating_sub(span_us.max(1));
    client.totals_at(from_us)?;
    let mut recent = RecentActivity::over(span_us.max(1));
    for rate in client.history() {
        let begins_us = rate.end_us.saturating_sub(rate.span_us).max(from_us);
        recent.add(rate, rate.end_us.min(until_us).saturating_sub(begins_us));
    }
    Some(recent)
}
