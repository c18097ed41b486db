//! The data of a run for estimates: handshakes and their CPU time by kind.

use super::{STANDARD_ERRORS, UncertainValue};
use crate::runs::Run;
use records::histogram::SparseHistogram;
use records::kinds::{FULL, HYBRID, HandshakeCosts};
use records::metrics::{
    Counters, Dimension, HttpCounter, ProxyCounter, ProxyLatency, TlsLatency, UsageCounter,
};

/// The proxy's groups, by IANA name.
const GROUPS: [(ProxyCounter, &str); 4] = [
    (ProxyCounter::GroupX25519, super::CLASSICAL),
    (ProxyCounter::GroupP256, "secp256r1"),
    (ProxyCounter::GroupP384, "secp384r1"),
    (ProxyCounter::GroupMlkem, HYBRID),
];

/// Handshakes over a span of time, and the CPU time that they took.
#[derive(Clone, Debug, Default)]
pub struct HandshakeMix {
    /// The time that it covers, in seconds.
    pub seconds: f64,
    /// CPU time of full handshakes.
    pub full: DurationStats,
    /// CPU time of resumed handshakes.
    pub resumed: DurationStats,
    /// Key exchanges of full and resumed handshakes; empty in recordings of an older version.
    pub key_exchange: DurationStats,
    /// Signatures of full handshakes; empty in recordings of an older version.
    pub signature: DurationStats,
    /// Requests: of HTTP in HTTP mode, else exchanges.
    pub requests: u64,
    /// Key exchanges by group: handshakes that had one.
    pub exchanges_by_group: Vec<(&'static str, u64)>,
    /// Signatures of the whole run: those with RSA, and all.
    pub signatures: (u64, u64),
    /// Whether more handshakes are of TLS 1.3 than of TLS 1.2.
    pub is_mostly_tls13: bool,
}

/// Number, sum and spread of times.
#[derive(Clone, Copy, Debug, Default)]
pub struct DurationStats {
    /// The number of times.
    pub n: u64,
    sum_ns: f64,
    sum_squares: f64,
}

impl HandshakeMix {
    /// The last `span_us` microseconds of a run, as far as its series are kept; `None` without a proxy.
    pub fn of(run: &Run, span_us: u64) -> Option<Self> {
        let proxy = run.proxy()?;
        let from_us = proxy.last_us().saturating_sub(span_us);
        let mut mix = Self { signatures: signatures(run), ..Self::default() };
        let mut counters = Counters::default();
        // After a loss counters cover more time than latencies do.
        let is_covered = |start_us: u64, after_loss: bool| start_us >= from_us && !after_loss;
        for interval in proxy.intervals().filter(|it| is_covered(it.start_us, it.after_loss)) {
            mix.seconds += interval.seconds();
            mix.full.add(interval.latency(ProxyLatency::ComputeFull));
            mix.resumed.add(interval.latency(ProxyLatency::ComputeResumed));
            counters.add(&interval.counters);
        }
        if let Some(tls) = run.tls() {
            for interval in tls.intervals().filter(|it| is_covered(it.start_us, it.after_loss)) {
                mix.key_exchange.add(interval.latency(TlsLatency::KeyExchange));
                mix.signature.add(interval.latency(TlsLatency::Signature));
            }
        }
        if let Some(http) = run.http() {
            let intervals = http.intervals().filter(|it| is_covered(it.start_us, it.after_loss));
            mix.requests =
                intervals.fold(0, |sum: u64, it| sum.saturating_add(it.counters[HttpCounter::Requests]));
        } else {
            mix.requests = counters[ProxyCounter::Exchanges];
        }
        mix.exchanges_by_group = GROUPS.iter().map(|(counter, name)| (*name, counters[*counter])).collect();
        let tls13 = counters.sum(&[ProxyCounter::Tls13Full, ProxyCounter::Tls13Resumed]);
        mix.is_mostly_tls13 = tls13 > mix.handshakes() / 2;
        (mix.seconds > 0.0).then_some(mix)
    }

    /// Handshakes completed.
    pub fn handshakes(&self) -> u64 {
        self.full.n.saturating_add(self.resumed.n)
    }

    /// The version that most are of.
    pub(super) fn version(&self) -> &'static str {
        if self.is_mostly_tls13 { "TLSv1.3" } else { "TLSv1.2" }
    }

    /// RSA's share of the signatures; `None` if unknown.
    pub(super) fn rsa_share(&self) -> Option<f64> {
        let (rsa, all) = self.signatures;
        (all > 0).then(|| rsa as f64 / all as f64)
    }

    /// How much more the key exchanges took than these costs of each group; 1 if that is not known.
    pub(super) fn key_exchange_scale(&self, cost_ns: impl Fn(&str) -> Option<f64>) -> f64 {
        let expected = self.exchanges_by_group.iter().filter(|(_, n)| *n > 0);
        let expected: Option<f64> = expected.map(|(group, n)| Some(cost_ns(group)? * *n as f64)).sum();
        let exchanges: f64 = self.exchanges_by_group.iter().map(|(_, n)| *n as f64).sum();
        match expected {
            Some(expected_ns) if expected_ns > 0.0 && self.key_exchange.n > 0 => {
                self.key_exchange.mean().mid / (expected_ns / exchanges)
            }
            _ => 1.0,
        }
    }

    /// How much more full handshakes took, less key exchange and signature, than their calibrated rest; `None` if one of these
    /// is not known.
    pub(super) fn rest_scale(&self, costs: &HandshakeCosts) -> Option<f64> {
        let measured = [self.full, self.key_exchange, self.signature];
        let [full, exchange, signature] = measured.map(|times| times.mean().mid);
        let full_name = format!("{} {FULL}", self.version());
        let group = self.exchanges_by_group.iter().max_by_key(|(_, n)| *n).map_or("", |(group, _)| *group);
        let of_group = costs.rest.of(&format!("{full_name} {group}"));
        let rest = of_group.or_else(|| costs.rest.of(&full_name))?.median_ns as f64;
        let is_known = measured.iter().all(|times| times.n > 0) && rest > 0.0;
        is_known.then(|| (full - exchange - signature).max(0.0) / rest)
    }
}

/// Signatures with RSA, and all, of a whole run.
fn signatures(run: &Run) -> (u64, u64) {
    run.usage().of(Dimension::Signature).fold((0, 0), |(rsa, all), (scheme, counters)| {
        let n = counters[UsageCounter::HandshakesFull];
        (rsa.saturating_add(if scheme.starts_with("rsa_") { n } else { 0 }), all.saturating_add(n))
    })
}

impl DurationStats {
    fn add(&mut self, times: &SparseHistogram) {
        self.n = self.n.saturating_add(times.count());
        self.sum_ns += times.sum_ns() as f64;
        self.sum_squares += times.buckets().map(|(ns, n)| (ns as f64).powi(2) * n as f64).sum::<f64>();
    }

    pub fn sum_ns(&self) -> f64 {
        self.sum_ns
    }

    /// The sum with the interval that the spread of a sample of this size gives.
    pub(super) fn sum(&self) -> UncertainValue {
        self.mean() * self.n as f64
    }

    /// The mean in nanoseconds, with the interval in which it is expected.
    pub(super) fn mean(&self) -> UncertainValue {
        let n = self.n.max(1) as f64;
        let mid = self.sum_ns / n;
        let variance = (self.sum_squares / n - mid.powi(2)).max(0.0);
        let error = STANDARD_ERRORS * (variance / n).sqrt();
        UncertainValue { low: (mid - error).max(0.0), mid, high: mid + error }
    }
}
