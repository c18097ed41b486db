//! Gauges of HTTP mode.

/// Gauges; in a delta, their changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HttpGauges {
    /// Requests in flight.
    pub requests: i64,
    /// Requests that wait for an upstream connection.
    pub queued: i64,
    /// Upstream connections, idle ones included.
    pub upstream_open: i64,
    pub upstream_idle: i64,
}

impl HttpGauges {
    /// Adds how they have changed.
    pub fn add(&mut self, change: Self) {
        let Self { requests, queued, upstream_open, upstream_idle } = change;
        self.requests += requests;
        self.queued += queued;
        self.upstream_open += upstream_open;
        self.upstream_idle += upstream_idle;
    }

    pub fn since(self, earlier: Self) -> Self {
        Self {
            requests: self.requests - earlier.requests,
            queued: self.queued - earlier.queued,
            upstream_open: self.upstream_open - earlier.upstream_open,
            upstream_idle: self.upstream_idle - earlier.upstream_idle,
        }
    }
}
