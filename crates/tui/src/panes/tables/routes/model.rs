//! The routes of HTTP mode.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::runs::{Interval, MetricSeries, RecordedRequest, RouteStats, RouteWindow, Run};
use records::ids::RunId;
use records::metrics::{Counters, Metric, RouteCounter, RouteLatency, TimeResolution};

use crate::panes::tables::clients::history::SLOTS;
use crate::table::{NameId, Rows};
use crate::view_model::classes::Quantile;
use crate::view_model::span::{Samples, Span};

/// Times of requests over the span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestTimes {
    pub(crate) p50: Quantile,
    pub(crate) p99: Quantile,
    /// Exact maximum, in nanoseconds.
    pub(crate) max_ns: u64,
    /// Samples.
    pub(crate) n: u64,
}

impl RequestTimes {
    /// `None` without samples.
    pub(crate) fn of(samples: Samples<'_>, resolution: TimeResolution) -> Option<Self> {
        let n = samples.count();
        let at = |q| Quantile::of(n, q, samples.quantile_ns(q), resolution);
        Some(Self { p50: at(0.5)?, p99: at(0.99)?, max_ns: samples.max_ns(), n })
    }
}

/// One route at a moment. Figures are `None` where records do not tell them.
#[derive(Clone, Debug)]
pub(crate) struct RouteRow {
    pub(crate) id: NameId,
    pub(crate) name: Arc<str>,
    /// What was counted over the span.
    pub(crate) counted: Option<Counters<RouteCounter>>,
    /// The time that was counted in, in microseconds.
    pub(crate) span_us: u64,
    /// Latencies of each class, in the order of [`RouteLatency::ALL`].
    pub(crate) times: [Option<RequestTimes>; 3],
    /// What was counted since the beginning.
    pub(crate) totals: Counters<RouteCounter>,
}

impl RouteRow {
    fn new(route: &RouteStats, counted: (Option<Counters<RouteCounter>>, u64)) -> Self {
        Self {
            id: NameId::of(route.name()),
            name: route.name().into(),
            counted: counted.0,
            span_us: counted.1,
            times: [None; 3],
            totals: *route.totals(),
        }
    }

    /// Over a window; of a route of which no record reaches back to it, nothing is known.
    fn windowed(
        route: &RouteStats,
        totals: Counters<RouteCounter>,
        window: &RouteWindow,
        is_kept: bool,
    ) -> Self {
        let counted = (is_kept && window.span_us > 0).then_some(window.counters);
        let times = |at: usize| {
            let samples = Samples::WindowHistogram(window.latency(RouteLatency::ALL[at]));
            counted.and_then(|_| RequestTimes::of(samples, TimeResolution::FINE))
        };
        let times = [times(0), times(1), times(2)];
        Self { times, totals, ..Self::new(route, (counted, window.span_us)) }
    }

    fn whole(route: &RouteStats, duration_us: u64) -> Self {
        let times = |at: usize| {
            let samples = Samples::Whole(&route.series().whole()[RouteLatency::ALL[at]]);
            RequestTimes::of(samples, TimeResolution::FINE)
        };
        let counted = (duration_us > 0).then_some(*route.totals());
        Self { times: [times(0), times(1), times(2)], ..Self::new(route, (counted, duration_us)) }
    }

    pub(crate) fn count(&self, counter: RouteCounter) -> Option<u64> {
        self.counted.map(|counted| counted[counter])
    }

    pub(crate) fn per_second(&self, counter: RouteCounter) -> Option<f64> {
        self.count(counter).map(|n| n as f64 * 1e6 / self.span_us.max(1) as f64)
    }

    /// Requests of some counters among all; `None` without requests.
    pub(crate) fn share(&self, counters: &[RouteCounter]) -> Option<f64> {
        let all = self.count(RouteCounter::Requests).filter(|&n| n > 0)?;
        self.counted.map(|counted| counted.sum(counters) as f64 / all as f64)
    }

    pub(crate) fn times(&self, class: RouteLatency) -> Option<RequestTimes> {
        self.times[class.index()]
    }
}

/// All routes of a run at a moment, with the windows that their figures were taken over.
#[derive(Debug, Default)]
pub(crate) struct RouteRows {
    of: Option<RunId>,
    pub(crate) rows: Rows<RouteRow>,
    windows: BTreeMap<NameId, RouteWindow>,
}

impl RouteRows {
    /// A copy of the rows, to be moved to other moments.
    pub(crate) fn copy(&self) -> Self {
        Self { rows: self.rows.clone(), ..Self::default() }
    }

    /// Moves it to a moment of a run. A route that had served nothing by then is left out.
    pub(crate) fn refresh(&mut self, run: &Run, us: u64, span: Span) {
        if run.http().is_none() && self.rows.all().is_empty() {
            return;
        }
        if self.of != Some(run.id()) {
            (self.of, self.windows) = (Some(run.id()), BTreeMap::new());
        }
        let windows = &mut self.windows;
        let row = |route: &RouteStats| match span {
            Span::WholeRun => Some(RouteRow::whole(route, run.duration_us())),
            Span::Last(span_us) => {
                let totals = route.series().totals_at(us);
                if totals[RouteCounter::Requests] == 0 {
                    return None;
                }
                let window = windows.entry(NameId::of(route.name())).or_default();
                run.slide_named(route, window, us, span_us);
                let first = route.series().timeline().next();
                let is_kept = first.is_some_and(|first| first.start_us <= us);
                Some(RouteRow::windowed(route, totals, window, is_kept))
            }
        };
        let rows: Vec<RouteRow> = run.routes().iter().filter_map(row).collect();
        self.rows.change(|all| *all = rows);
    }

    pub(crate) fn get(&self, id: NameId) -> Option<&RouteRow> {
        self.rows.all().iter().find(|row| row.id == id)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RouteSlot {
    /// Requests a second; `None` where records are missing or are still to come.
    pub(crate) per_second: Option<f64>,
    /// Median and 99th percentile of `upstream` in nanoseconds; `None` also without samples.
    pub(crate) p50: Option<f64>,
    pub(crate) p99: Option<f64>,
}

/// One route at a moment, for a screen of its own.
#[derive(Clone, Debug)]
pub(crate) struct RouteDetail {
    pub(crate) row: RouteRow,
    /// The latest intervals, oldest first.
    pub(crate) history: Vec<RouteSlot>,
    /// Failures in the window by cause, of the requests that have a record.
    pub(crate) causes: Vec<(String, u64)>,
    /// Requests of the window, slowest first.
    pub(crate) slowest: Vec<RecordedRequest>,
    /// Failed requests of the window, latest first.
    pub(crate) failed: Vec<RecordedRequest>,
}

/// Requests that the details list.
const LISTED_MAX: usize = 20;

impl RouteDetail {
    /// What is known of the route of a row at a moment.
    pub(crate) fn at(run: &Run, row: &RouteRow, us: u64, (span, interval_us): (Span, u64)) -> Self {
        let is_own = |recorded: &&RecordedRequest| *recorded.request.route == *row.name;
        let within: Vec<&RecordedRequest> = requests(run, us, span).into_iter().filter(is_own).collect();
        let mut failed: Vec<RecordedRequest> =
            within.iter().filter(|recorded| recorded.request.is_error()).map(|r| (*r).clone()).collect();
        failed.sort_by_key(|recorded| std::cmp::Reverse(recorded.mono_us));
        let mut causes: Vec<(String, u64)> = Vec::new();
        for cause in failed.iter().map(cause) {
            match causes.iter_mut().find(|(known, _)| *known == cause) {
                Some((_, n)) => *n += 1,
                None => causes.push((cause, 1)),
            }
        }
        causes.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        failed.truncate(LISTED_MAX);
        let history = run.routes().get(&row.name);
        Self {
            row: row.clone(),
            history: history.map_or_else(Vec::new, |route| self::history(run, route, us, interval_us)),
            causes,
            slowest: within.into_iter().take(LISTED_MAX).cloned().collect(),
            failed,
        }
    }
}

/// Returns why a request failed, or the status that makes it an error; empty for others.
pub(crate) fn cause(recorded: &RecordedRequest) -> String {
    let request = &recorded.request;
    match request.failure {
        Some(failure) => failure.to_string(),
        None if request.is_error() => format!("status-{}", request.status),
        None => String::new(),
    }
}

/// The requests of a span up to a moment that have a record, the slowest first.
pub(crate) fn requests(run: &Run, us: u64, span: Span) -> Vec<&RecordedRequest> {
    let from_us = match span {
        Span::Last(span_us) => us.saturating_sub(span_us),
        Span::WholeRun => 0,
    };
    run.requests().slowest(from_us, us)
}

/// What a route did on the time line of the run's HTTP records up to a moment.
fn history(run: &Run, route: &RouteStats, us: u64, interval_us: u64) -> Vec<RouteSlot> {
    let Some(http) = run.http() else { return Vec::new() };
    let (slot_us, end_us) = (interval_us.max(1), us.min(http.last_us()));
    let is_put_off = run.http_record().is_some_and(|record| record.routes_deferred > 0);
    let known_until_us = if is_put_off { route.series().last_us() } else { end_us };
    let slot = |slot: u64| {
        let middle_us = end_us.checked_sub(slot * slot_us + slot_us / 2)?;
        let of_run = at(http, middle_us)?;
        if of_run.after_loss || middle_us >= known_until_us {
            return Some(RouteSlot::default());
        }
        Some(match at(route.series(), middle_us) {
            Some(interval) if interval.after_loss => RouteSlot::default(),
            Some(interval) => {
                let latency = interval.latency(RouteLatency::Upstream);
                let quantile = |q| latency.quantile_ns(q).map(|ns| ns as f64);
                RouteSlot {
                    per_second: interval.rate(RouteCounter::Requests),
                    p50: quantile(0.5),
                    p99: quantile(0.99),
                }
            }
            // A silent route has no record.
            None => RouteSlot { per_second: Some(0.0), ..RouteSlot::default() },
        })
    };
    let mut slots: Vec<RouteSlot> = (0..SLOTS as u64).map_while(slot).collect();
    slots.reverse();
    slots
}

/// The interval that holds a moment.
fn at<C: Metric, L: Metric>(series: &MetricSeries<C, L>, us: u64) -> Option<&Interval<C, L>> {
    let newest_first = series.timeline().rev();
    let found = newest_first.skip_while(|interval| interval.start_us > us).map(|interval| &**interval).next();
    found.filter(|interval| interval.end_us > us)
}
