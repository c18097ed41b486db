//! The publisher's state of HTTP mode: totals, routes, and requests that wait for a record.

use std::collections::VecDeque;

use super::named::PublishedTable;
use super::run_totals::RunTotals;
use records::delta::{HttpDelta, RequestSamples, SampledRequest, counted_routes};
use records::kinds::{HttpGauges, HttpRecord, RequestRecord, RouteRecord};
use records::metrics::{HttpCounter, HttpLatency, Metric as _};
use records::values::{Latencies, StatusCounts};

/// Failed requests that wait for room in the budget.
const ERRORS_WAITING_MAX: usize = 256;
/// Records of requests that did not fail, of one interval: as many of the slowest, and as many others.
const SAMPLES_MAX: usize = 4;

/// HTTP counters of the run, and the part of them that no record has carried yet.
#[derive(Debug)]
pub(super) struct HttpTotals {
    pub(super) totals: RunTotals<HttpCounter, HttpLatency>,
    pub(super) routes: PublishedTable<RouteRecord>,
    pub(super) requests: PendingRequests,
    statuses: StatusCounts,
    grpc_statuses: StatusCounts,
    gauges: HttpGauges,
}

impl HttpTotals {
    pub(super) fn new(started_us: u64, route_names: &[String]) -> Self {
        Self {
            totals: RunTotals::new(started_us),
            routes: PublishedTable::new(&counted_routes(route_names.to_vec())),
            requests: PendingRequests::default(),
            statuses: StatusCounts::default(),
            grpc_statuses: StatusCounts::default(),
            gauges: HttpGauges::default(),
        }
    }

    /// Adds the counts of the interval that began at `start_us`. Returns the number of failed requests without room.
    pub(super) fn add(&mut self, delta: &HttpDelta, start_us: u64) -> u64 {
        self.totals.add(&delta.counters, &delta.latencies());
        self.statuses.add(&delta.statuses);
        self.grpc_statuses.add(&delta.grpc_statuses);
        self.gauges.add(delta.gauges);
        self.routes.add(&delta.routes, start_us);
        let routes = &self.routes;
        let named = |kept: &SampledRequest| RequestRecord {
            route: kept.route.map(|index| routes.name(index)).unwrap_or_default(),
            ..kept.record.clone()
        };
        self.requests.add(&delta.requests, named)
    }

    pub(super) fn record(&self, routes_deferred: u64) -> HttpRecord {
        self.record_with(self.totals.interval(HttpLatency::ALL), routes_deferred)
    }

    pub(super) fn final_record(&self) -> HttpRecord {
        self.record_with(self.totals.whole_run(), 0)
    }

    fn record_with(&self, latencies: Latencies<HttpLatency>, routes_deferred: u64) -> HttpRecord {
        HttpRecord {
            routes_deferred,
            statuses: self.statuses.clone(),
            grpc_statuses: self.grpc_statuses.clone(),
            counters: *self.totals.counters(),
            latencies,
            ..HttpRecord::of_gauges(self.gauges)
        }
    }
}

/// Requests that wait for a record: errors until there is room, others for one interval.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    errors: VecDeque<RequestRecord>,
    samples: Vec<RequestRecord>,
}

impl PendingRequests {
    /// Adds the workers' samples. Returns the number of errors without room.
    fn add(&mut self, kept: &RequestSamples, named: impl Fn(&SampledRequest) -> RequestRecord) -> u64 {
        let room = ERRORS_WAITING_MAX.saturating_sub(self.errors.len());
        self.errors.extend(kept.errors.iter().take(room).map(&named));
        let mut slowest: Vec<&SampledRequest> = kept.slowest.iter().collect();
        slowest.sort_by_key(|request| std::cmp::Reverse(request.record.duration_us));
        // Taken from all workers alike, not from the first ones.
        let step = kept.others.len().div_ceil(SAMPLES_MAX).max(1);
        let others = kept.others.iter().step_by(step);
        self.samples = slowest.into_iter().take(SAMPLES_MAX).chain(others).map(named).collect();
        kept.errors.len().saturating_sub(room) as u64
    }

    pub(super) fn errors(&self) -> usize {
        self.errors.len()
    }

    /// Removes the records for which there is room: errors, the slowest, the others. Returns the number of errors
    /// without room.
    pub(super) fn take(&mut self, room: usize) -> (Vec<RequestRecord>, u64) {
        let mut records: Vec<RequestRecord> = self.errors.drain(..room.min(self.errors.len())).collect();
        records.extend(std::mem::take(&mut self.samples).into_iter().take(room - records.len()));
        let without_room = self.errors.len() as u64;
        self.errors.clear();
        (records, without_room)
    }

    /// Returns a record that the journal did not accept in time to the queue.
    pub(super) fn put_back(&mut self, record: RequestRecord) {
        if record.is_error() {
            self.errors.push_back(record);
        }
    }
}
