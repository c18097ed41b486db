//! Counters of a run's proxy.

use crate::runs::run::aligned::AlignedRun;
use crate::runs::run::retention::SeriesStart;
use crate::runs::series::MetricSeries;
use records::kinds::{ProxyRecord, Stamp};
use records::metrics::{ProxyCounter, ProxyLatency};

#[derive(Debug, Default)]
pub(in crate::runs) struct ProxyPart {
    /// `None` in a run without a proxy.
    pub(in crate::runs) series: Option<MetricSeries<ProxyCounter, ProxyLatency>>,
    pub(in crate::runs) open: u64,
    pub(in crate::runs) clients_deferred: u64,
    pub(in crate::runs) upstreams_deferred: u64,
}

impl ProxyPart {
    /// Adds the record of an interval. If there is a gap after the previous interval, returns that interval's end.
    pub(in crate::runs) fn apply(
        &mut self,
        stamp: &Stamp,
        record: &ProxyRecord,
        begun: SeriesStart,
    ) -> Option<u64> {
        let ProxyRecord { open, clients_deferred, upstreams_deferred, counters, latencies, mix: _ } = record;
        self.open = *open;
        (self.clients_deferred, self.upstreams_deferred) = (*clients_deferred, *upstreams_deferred);
        self.series.get_or_insert_with(|| begun.series()).apply(stamp, counters, latencies)
    }

    pub(in crate::runs) fn finish(&mut self, record: &ProxyRecord, begun: SeriesStart) {
        let ProxyRecord { open, counters, latencies, .. } = record;
        self.open = *open;
        self.series.get_or_insert_with(|| begun.series()).finish(counters, latencies);
    }

    pub(in crate::runs) fn merged(members: &[(AlignedRun<'_>, &Self)]) -> Self {
        let together = || members.iter().filter(|(run, _)| run.is_together).map(|(_, proxy)| proxy);
        let series = members.iter().map(|(run, proxy)| (proxy.series.as_ref(), run.shift_us));
        Self {
            series: MetricSeries::merged(series),
            open: together().map(|proxy| proxy.open).sum(),
            clients_deferred: together().map(|proxy| proxy.clients_deferred).sum(),
            upstreams_deferred: together().map(|proxy| proxy.upstreams_deferred).sum(),
        }
    }

    /// The part for reading on from the middle of the run: earlier counts are read again.
    pub(in crate::runs) fn resumed(&self, history: usize) -> Self {
        let Self { series, open: _, clients_deferred: _, upstreams_deferred: _ } = self;
        Self { series: series.as_ref().map(|_| MetricSeries::new(None, history)), ..Self::default() }
    }

    pub(in crate::runs) fn condense(&mut self, period_us: u64) {
        let Self { series, open: _, clients_deferred: _, upstreams_deferred: _ } = self;
        if let Some(series) = series {
            series.condense(period_us);
        }
    }

    /// Keeps the totals and the last ten seconds only.
    pub(in crate::runs) fn abridge(&mut self) {
        let Self { series, open: _, clients_deferred: _, upstreams_deferred: _ } = self;
        series.iter_mut().for_each(MetricSeries::abridge);
    }

    pub(in crate::runs) fn heap_bytes(&self) -> usize {
        self.series.as_ref().map_or(0, MetricSeries::bytes)
    }
}
