//! Upstreams in a summary.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Percentiles, by_figure};
use crate::runs::{Run, UpstreamStats};
use records::kinds::{UpstreamRecord, UpstreamState};
use records::metrics::{Counters, Metric as _, TimeResolution, UpstreamCounter, UpstreamLatency};

/// An upstream's figures. In JSON each counter has the key of its declaration, where a dot begins an object.
#[derive(Clone, Debug, Serialize)]
pub struct UpstreamSummary {
    /// As it was configured.
    pub upstream: String,
    /// Its state when its last record was made.
    pub state: UpstreamState,
    /// How long it had been in this state by then.
    pub state_s: f64,
    /// Why it was not up; absent if it was.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Connections at the end, idle ones included.
    pub open: u64,
    pub idle: u64,
    #[serde(flatten, serialize_with = "by_figure")]
    pub counters: Counters<UpstreamCounter>,
    /// Latencies by class, in microseconds.
    pub latency_us: BTreeMap<&'static str, Percentiles>,
}

impl UpstreamSummary {
    /// All upstreams of a run, by name.
    pub(super) fn all(run: &Run) -> Vec<Self> {
        run.upstreams().iter().map(|upstream| Self::of(upstream, run.log_resolution())).collect()
    }

    fn of(upstream: &UpstreamStats, resolution: TimeResolution) -> Self {
        let UpstreamRecord { state, state_us, reason, open, idle, .. } = upstream.record();
        let whole = upstream.series().whole();
        let latency =
            |&class: &UpstreamLatency| (class.names().figure, Percentiles::known(&whole[class], resolution));
        Self {
            upstream: upstream.name().to_owned(),
            state: *state,
            state_s: *state_us as f64 / 1e6,
            reason: reason.clone(),
            open: *open,
            idle: *idle,
            counters: *upstream.totals(),
            latency_us: UpstreamLatency::ALL.iter().map(latency).collect(),
        }
    }

    /// Attempts to connect that failed, whatever the cause.
    pub fn failed(&self) -> u64 {
        UpstreamRecord::failed(&self.counters)
    }
}
