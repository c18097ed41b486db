//! The proxy as a whole.

use records::metrics::{Counters, ProxyCounter};

use super::span::{Count, ProxySpanData};

/// What the proxy does over the span, and has done since the beginning.
#[derive(Clone, Debug)]
pub(crate) struct ProxyFigures {
    /// Connections open at the last record; `None` if they were counted from a log.
    pub(crate) open: Option<u64>,
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
    /// Connections closed without having carried a byte to an upstream.
    pub(crate) failed: Count,
    /// Upstream connections that could not be made, or broke.
    pub(crate) upstream_errors: Count,
}

impl ProxyFigures {
    pub(crate) fn of(totals: &Counters<ProxyCounter>, open: Option<u64>, taken: &ProxySpanData<'_>) -> Self {
        Self {
            open,
            accepted: totals[ProxyCounter::Accepted],
            accepted_per_second: taken.rate(ProxyCounter::Accepted),
            in_per_second: taken.rate(ProxyCounter::BytesIn),
            out_per_second: taken.rate(ProxyCounter::BytesOut),
            bytes_in: totals[ProxyCounter::BytesIn],
            bytes_out: totals[ProxyCounter::BytesOut],
            failed: Count::of(totals, taken, &[ProxyCounter::Failed]),
            upstream_errors: Count::of(
                totals,
                taken,
                &[ProxyCounter::UpstreamConnectsFailed, ProxyCounter::UpstreamBroken],
            ),
        }
    }
}
