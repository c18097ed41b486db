//! The proxy as a whole.

use telemetry::model::Run;
use telemetry::{Counters, ProxyCounter};

use super::span::ProxyTaken;

/// What the proxy does over the span, and has done since the beginning.
#[derive(Clone, Debug)]
pub(crate) struct ProxyFigures {
    /// Connections open at the last record.
    pub(crate) open: u64,
    /// Connections accepted since the beginning.
    pub(crate) accepted: u64,
    /// Connections accepted a second; `None` while no time has passed.
    pub(crate) accepted_per_second: Option<f64>,
    /// Plaintext bytes a second from clients.
    pub(crate) in_per_second: Option<f64>,
    /// Plaintext bytes a second to clients.
    pub(crate) out_per_second: Option<f64>,
    /// Plaintext bytes from clients since the beginning.
    pub(crate) bytes_in: u64,
    /// Plaintext bytes to clients since the beginning.
    pub(crate) bytes_out: u64,
    /// Connections closed without having carried a byte to an upstream, since the beginning.
    pub(crate) failed: u64,
    /// Upstream connections that could not be made, or broke, since the beginning.
    pub(crate) upstream_errors: u64,
}

impl ProxyFigures {
    pub(super) fn of(run: &Run, taken: &ProxyTaken<'_>) -> Option<Self> {
        let totals = run.proxy()?.totals();
        let mut figures = Self {
            open: run.proxy_open(),
            accepted: 0,
            accepted_per_second: None,
            in_per_second: None,
            out_per_second: None,
            bytes_in: 0,
            bytes_out: 0,
            failed: 0,
            upstream_errors: 0,
        };
        figures.take_rates(taken);
        figures.take_totals(totals);
        Some(figures)
    }

    pub(super) fn take_rates(&mut self, taken: &ProxyTaken<'_>) {
        self.accepted_per_second = taken.rate(ProxyCounter::Accepted);
        self.in_per_second = taken.rate(ProxyCounter::BytesIn);
        self.out_per_second = taken.rate(ProxyCounter::BytesOut);
    }

    pub(super) fn take_totals(&mut self, totals: &Counters<ProxyCounter>) {
        self.accepted = totals[ProxyCounter::Accepted];
        self.bytes_in = totals[ProxyCounter::BytesIn];
        self.bytes_out = totals[ProxyCounter::BytesOut];
        self.failed = totals[ProxyCounter::Failed];
        self.upstream_errors =
            totals.sum(&[ProxyCounter::UpstreamConnectsFailed, ProxyCounter::UpstreamBroken]);
    }
}
