//! The publisher's table of routes: totals, their recorded parts, and the due records.

use records::delta::{ROUTES_MAX, RouteDelta};
use records::histogram::SparseHistogram;
use records::kinds::RouteRecord;
use records::metrics::{Counters, Metric as _, RouteCounter, RouteLatency};
use records::text::clean;
use records::values::Latencies;

/// Most route records of one interval: beyond it routes take turns, since each record carries histograms. Fifty busy
/// routes then get one every five intervals.
const ROUTES_EACH_INTERVAL: usize = 10;

/// The routes, by index. The route at [`ROUTES_MAX`] sums all further ones.
#[derive(Debug)]
pub(super) struct PublishedRoutes {
    names: Vec<String>,
    rows: Vec<RouteTotals>,
}

#[derive(Clone, Debug, Default)]
struct RouteTotals {
    counters: Counters<RouteCounter>,
    /// Samples of the run, and the histograms that no record has carried yet.
    unsent: Latencies<RouteLatency>,
    /// The histograms that records have carried.
    sent: Latencies<RouteLatency>,
    /// Beginning of the first interval with changes that no record has carried yet.
    unsent_since_us: Option<u64>,
}

impl PublishedRoutes {
    pub(super) fn new(names: &[String]) -> Self {
        Self { names: names.iter().map(|name| clean::text(name)).collect(), rows: Vec::new() }
    }

    pub(super) fn name(&self, index: usize) -> String {
        match self.names.get(index) {
            _ if index >= ROUTES_MAX => RouteRecord::OTHER.to_owned(),
            Some(name) => name.clone(),
            None => format!("route {index}"),
        }
    }

    /// Adds the counts of the interval that began at `start_us`.
    pub(super) fn add(&mut self, deltas: &[RouteDelta], start_us: u64) {
        if self.rows.len() < deltas.len() {
            self.rows.resize(deltas.len(), RouteTotals::default());
        }
        let changed = self.rows.iter_mut().zip(deltas).filter(|(_, delta)| !delta.counters.is_zero());
        for (row, delta) in changed {
            row.counters.add(&delta.counters);
            row.unsent_since_us.get_or_insert(start_us);
            let timed = RouteLatency::ALL.iter().map(|&class| (class, delta.latency(class)));
            for (class, interval) in timed.filter(|(_, interval)| !interval.is_empty()) {
                let latency = &mut row.unsent[class];
                latency.samples_total += interval.count();
                latency.interval = SparseHistogram::merged([&latency.interval, &interval]);
            }
        }
    }

    /// The routes whose record is due, at most `budget` of them: those that have waited longest first, then the
    /// busiest.
    pub(super) fn due(&self, budget: usize) -> Vec<usize> {
        let changed = self.rows.iter().enumerate();
        let mut due: Vec<(u64, u64, usize)> = changed
            .filter_map(|(index, row)| {
                Some((
                    row.unsent_since_us?,
                    u64::MAX - row.unsent[RouteLatency::Request].interval.count(),
                    index,
                ))
            })
            .collect();
        due.sort_unstable();
        due.truncate(budget.min(ROUTES_EACH_INTERVAL));
        due.into_iter().map(|(.., index)| index).collect()
    }

    /// Routes with changes that no record has carried yet.
    pub(super) fn changed(&self) -> Vec<usize> {
        (0..self.rows.len()).filter(|&index| self.rows[index].unsent_since_us.is_some()).collect()
    }

    /// Routes that served requests in the run.
    pub(super) fn known(&self) -> Vec<usize> {
        (0..self.rows.len()).filter(|&index| !self.rows[index].counters.is_zero()).collect()
    }

    /// The record of a route, and the beginning of the time that it covers; `None` if there is nothing new.
    pub(super) fn record(&self, index: usize) -> Option<(RouteRecord, u64)> {
        let row = self.rows.get(index)?;
        let record = RouteRecord {
            route: self.name(index),
            last: false,
            counters: row.counters,
            latencies: row.unsent.clone(),
        };
        Some((record, row.unsent_since_us?))
    }

    /// The last record of a route, with the latencies of the whole run.
    pub(super) fn final_record(&self, index: usize) -> Option<RouteRecord> {
        let row = self.rows.get(index)?;
        let mut latencies = row.unsent.clone();
        for &class in RouteLatency::ALL {
            latencies[class].interval =
                SparseHistogram::merged([&row.sent[class].interval, &row.unsent[class].interval]);
        }
        Some(RouteRecord { route: self.name(index), last: true, counters: row.counters, latencies })
    }

    /// Notes that a record of this route has been written.
    pub(super) fn sent(&mut self, index: usize) {
        if let Some(row) = self.rows.get_mut(index) {
            row.unsent_since_us = None;
            for &class in RouteLatency::ALL {
                let interval = std::mem::take(&mut row.unsent[class].interval);
                let sent = &mut row.sent[class].interval;
                *sent = SparseHistogram::merged([&*sent, &interval]);
            }
        }
    }
}
