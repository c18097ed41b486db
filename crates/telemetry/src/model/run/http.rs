//! HTTP counters of a run over all routes.

use super::Run;
use super::measured::{MeasuredPart, MeasuredRecord};
use super::merged::AlignedRun;
use crate::metrics::{Counters, HttpCounter, HttpLatency};
use crate::record::{HttpRecord, Latencies};

impl MeasuredRecord for HttpRecord {
    type Counter = HttpCounter;
    type Latency = HttpLatency;

    fn measured(&self) -> (&Counters<HttpCounter>, &Latencies<HttpLatency>) {
        (&self.counters, &self.latencies)
    }

    fn without_latencies(self) -> Self {
        Self { latencies: Latencies::default(), ..self }
    }

    fn part(run: &Run) -> &MeasuredPart<Self> {
        &run.http
    }

    fn merged(members: &[AlignedRun<'_>]) -> Option<Self> {
        let all = || members.iter().filter_map(|member| Some((member, member.run.http.record.as_ref()?)));
        all().next()?;
        let mut sum = Self::default();
        for (member, record) in all() {
            let Self {
                requests,
                queued,
                upstream_open,
                upstream_idle,
                routes_deferred,
                statuses,
                counters,
                latencies: _,
            } = record;
            if member.is_together {
                sum.requests += requests;
                sum.queued += queued;
                sum.upstream_open += upstream_open;
                sum.upstream_idle += upstream_idle;
                sum.routes_deferred += routes_deferred;
            }
            sum.statuses.add(statuses);
            sum.counters.add(counters);
        }
        Some(sum)
    }
}

impl HttpRecord {
    /// Counts from an earlier record on.
    pub(crate) fn rebase(&mut self, before: &Self) {
        let Self {
            requests: _,
            queued: _,
            upstream_open: _,
            upstream_idle: _,
            routes_deferred: _,
            statuses,
            counters,
            latencies,
        } = self;
        *statuses = statuses.since(&before.statuses);
        *counters = counters.since(&before.counters);
        latencies.rebase(&before.latencies);
    }

    /// The same without the latencies of its interval.
    pub(crate) fn without_intervals(&self) -> Self {
        Self { latencies: self.latencies.without_intervals(), statuses: self.statuses.clone(), ..*self }
    }

    /// Merges the previous record, to cover the time of both: all but the latencies are totals or present values.
    pub(crate) fn downsample(&mut self, earlier: &Self) {
        self.latencies.downsample(&earlier.latencies);
    }
}
