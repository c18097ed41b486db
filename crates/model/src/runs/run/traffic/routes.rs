//! The routes of a run in HTTP mode.

use std::collections::BTreeMap;

use crate::runs::run::merged::AlignedRun;
use crate::runs::run::retention::SeriesStart;
use crate::runs::series::MetricSeries;
use crate::runs::series::window::Window;
use records::kinds::heap_size::HeapSize as _;
use records::kinds::{RouteRecord, Stamp};
use records::metrics::{Counters, RouteCounter, RouteLatency};

/// Routes that are kept of a run. The writer distinguishes fewer; further routes of a hostile journal are ignored.
const ROUTES_MAX: usize = 256;
/// Intervals kept of each route: five minutes with one a second, and longer where many routes take turns.
const HISTORY_MAX: usize = 300;

/// A route's counts in some seconds. Each latency class has its own samples.
pub type RouteWindow = Window<RouteCounter, RouteLatency>;

#[derive(Debug)]
pub struct RouteStats {
    name: String,
    series: MetricSeries<RouteCounter, RouteLatency>,
    /// Records of the run that were known to be lost when its last record was read.
    lost_before: u64,
}

impl RouteStats {
    /// Its host and path prefix, such as `shop.example/static`; `other` for all routes beyond the bound.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Totals of the run, up to its last record.
    pub fn totals(&self) -> &Counters<RouteCounter> {
        self.series.totals()
    }

    /// Its intervals and its latencies of the whole run. While it serves no request it has no intervals, so they do not
    /// touch each other; each covers only time that its own record does.
    pub fn series(&self) -> &MetricSeries<RouteCounter, RouteLatency> {
        &self.series
    }
}

/// The routes of a run, by their names.
#[derive(Debug, Default)]
pub struct Routes(BTreeMap<String, RouteStats>);

impl Routes {
    /// Adds a record; `lost` records of the run are known to be lost by then.
    pub(in crate::runs::run) fn apply(
        &mut self,
        stamp: &Stamp,
        record: RouteRecord,
        begun: SeriesStart,
        lost: u64,
    ) {
        if !self.0.contains_key(&record.route) && self.0.len() >= ROUTES_MAX {
            return;
        }
        let RouteRecord { route: name, last, counters, latencies } = record;
        let route = self.0.entry(name).or_insert_with_key(|name| RouteStats {
            name: name.clone(),
            series: SeriesStart { history: begun.history.min(HISTORY_MAX), ..begun }.series(),
            lost_before: 0,
        });
        if last {
            route.series.finish(&counters, &latencies);
        } else {
            // A lost record may have been of this route, so its counters may cover more time than the record.
            let after_loss = lost > std::mem::replace(&mut route.lost_before, lost);
            route.series.apply_alone(stamp, &counters, &latencies, after_loss);
        }
    }

    pub(in crate::runs::run) fn merged(members: &[AlignedRun<'_>]) -> Self {
        let mut merged = Self::default();
        let names = members.iter().flat_map(|member| member.run.routes.0.keys());
        for name in names {
            if merged.0.len() >= ROUTES_MAX || merged.0.contains_key(name) {
                continue;
            }
            let all = members.iter().map(|member| {
                let route = member.run.routes.get(name);
                (route.map(RouteStats::series), member.shift_us)
            });
            if let Some(series) = MetricSeries::merged(all) {
                merged.0.insert(name.clone(), RouteStats { name: name.clone(), series, lost_before: 0 });
            }
        }
        merged
    }

    /// The routes that were idle after a moment, with their totals; other routes are read again.
    pub(in crate::runs::run) fn idle_at(&self, us: u64, history: usize) -> Self {
        let idle = self.0.values().filter(|route| route.series.last_us() <= us);
        let resumed = |route: &RouteStats| {
            let series = route.series.resumed(history.min(HISTORY_MAX));
            (route.name.clone(), RouteStats { name: route.name.clone(), series, lost_before: 0 })
        };
        Self(idle.map(resumed).collect())
    }

    pub(in crate::runs::run) fn heap_bytes(&self) -> usize {
        let route = |(name, route): (&String, &RouteStats)| {
            size_of::<RouteStats>() + name.heap_bytes() + route.name.heap_bytes() + route.series.bytes()
        };
        self.0.iter().map(route).sum()
    }

    /// All routes, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &RouteStats> {
        self.0.values()
    }

    pub fn get(&self, name: &str) -> Option<&RouteStats> {
        self.0.get(name)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl crate::runs::run::Run {
    /// Moves a route's window to the `span_us` microseconds up to `end_us` (`CLOCK_MONOTONIC`), and sets the time that it
    /// covers: [`Window::rate`] is right also for a route that served nothing in parts of it. While its record may have
    /// been deferred or lost, the window ends with the route's last record, for up to 10 s.
    pub fn slide_route(&self, route: &RouteStats, window: &mut RouteWindow, end_us: u64, span_us: u64) {
        let last_us = route.series.last_us();
        // Intervals of several runs lie on a grid, which ends a little earlier.
        let newest = self.http().and_then(|series| series.timeline().next_back());
        let now_us = newest.map_or(last_us, |interval| interval.end_us);
        let may_be_missing = self.http.record.as_ref().is_some_and(|record| record.routes_deferred > 0)
            || self.clients.has_new_losses(self.reading.lost());
        let is_recent = now_us.saturating_sub(last_us) <= crate::runs::run::DEFERRED_US_MAX;
        let known_us = if may_be_missing && is_recent { last_us } else { now_us };
        let end_us = end_us.min(known_us);
        let from_us = end_us.saturating_sub(span_us);
        window.slide_sparse(&route.series, end_us, span_us);
        let began_us = self.http().and_then(|series| Some(series.timeline().next()?.start_us));
        let from_us = from_us.max(began_us.unwrap_or(from_us)).min(end_us);
        let covered_from_us = window.covered_from_us(&route.series, from_us);
        window.span_us = end_us.saturating_sub(covered_from_us);
    }

    /// A route over the `span_us` microseconds up to `end_us`; see [`Self::slide_route`].
    pub fn route_window(&self, route: &RouteStats, end_us: u64, span_us: u64) -> RouteWindow {
        let mut window = RouteWindow::default();
        self.slide_route(route, &mut window, end_us, span_us);
        window
    }
}
