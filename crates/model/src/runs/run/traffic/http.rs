//! HTTP counters of a run over all routes.

use crate::runs::run::aligned::AlignedRun;
use crate::runs::run::traffic::measured::{MeasuredPart, MeasuredRecord};
use records::kinds::HttpRecord;
use records::metrics::{Counters, HttpCounter, HttpLatency};
use records::values::Latencies;

impl MeasuredRecord for HttpRecord {
    type Counter = HttpCounter;
    type Latency = HttpLatency;

    fn measured(&self) -> (&Counters<HttpCounter>, &Latencies<HttpLatency>) {
        (&self.counters, &self.latencies)
    }

    fn without_latencies(self) -> Self {
        Self { latencies: Latencies::default(), ..self }
    }

    fn merged(members: &[(AlignedRun<'_>, &MeasuredPart<Self>)]) -> Option<Self> {
        let all = || members.iter().filter_map(|(run, part)| Some((run, part.record.as_ref()?)));
        all().next()?;
        let mut sum = Self::default();
        for (run, record) in all() {
            let Self {
                requests,
                queued,
                upstream_open,
                upstream_idle,
                routes_deferred,
                statuses,
                grpc_statuses,
                counters,
                latencies: _,
            } = record;
            if run.is_together {
                sum.requests += requests;
                sum.queued += queued;
                sum.upstream_open += upstream_open;
                sum.upstream_idle += upstream_idle;
                sum.routes_deferred += routes_deferred;
            }
            sum.statuses.add(statuses);
            sum.grpc_statuses.add(grpc_statuses);
            sum.counters.add(counters);
        }
        Some(sum)
    }
}
