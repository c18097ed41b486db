//! The record of an upstream.

use crate::kinds::named::named_record;
use crate::metrics::{Counters, UpstreamCounter, UpstreamLatency};
use crate::text::keywords::keyword_enum;
use crate::values::Latencies;
use crate::wire::{FAMILY, field, wire};

keyword_enum! {
    /// Whether the proxy sends clients to an upstream.
    UpstreamState {
        /// It could be reached, or was not tried yet.
        #[default]
        Up = "up",
        /// It could not be reached, and rests.
        Down = "down",
        /// An operator has drained it: it gets no new clients.
        Drained = "drained",
        /// A reload has removed it from the configuration: it gets no new clients.
        Gone = "gone",
    }
}

wire! {
    /// One upstream: its state, cumulative counters, and the latencies since its last record.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct UpstreamRecord {
        /// As it was configured, such as `unix:/run/app.sock`.
        pub upstream: String = &field::UPSTREAM_NAME,
        /// True for its last record, at the end of the run: its latencies are those of the whole run.
        pub last: bool = &field::UPSTREAM_LAST,
        pub state: UpstreamState = &field::UPSTREAM_STATE,
        /// How long it has been in this state, in microseconds; 0 if that is not known.
        pub state_us: u64 = &field::UPSTREAM_STATE_TIME,
        /// Why it is not up; empty if it is.
        pub reason: String = &field::UPSTREAM_REASON,
        /// Connections at the end of the interval, idle ones included.
        pub open: u64 = &field::UPSTREAM_OPEN,
        /// The part of these that serves no request; 0 in TCP mode.
        pub idle: u64 = &field::UPSTREAM_IDLE,
        /// Totals of the run.
        pub counters: Counters<UpstreamCounter> = &FAMILY,
        /// Latencies of the time that the record covers.
        pub latencies: Latencies<UpstreamLatency> = &FAMILY,
    }
}

named_record! { UpstreamRecord { upstream, UpstreamCounter, UpstreamLatency } }

impl UpstreamRecord {
    /// Attempts to connect that failed, whatever the cause.
    pub fn failed(counters: &Counters<UpstreamCounter>) -> u64 {
        counters.sum(&UpstreamCounter::FAILED)
    }
}
