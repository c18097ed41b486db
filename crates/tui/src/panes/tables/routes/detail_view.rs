//! Everything about one route.
//!
//! ```text
//! +- route /api ------------------------------------------------------------+
//! | now         4,998 requests/s  in 1.2 MB/s  out 41.2 MB/s                |
//! | upstream    p50 0.21  p99 0.77  max 3.13 ms  n 49,980 in 10 s           |
//! | first byte  p50 0.25  p99 0.90  max 3.20 ms  n 49,980 in 10 s           |
//! | request     p50 0.29  p99 1.10  max 5.01 ms  n 49,980 in 10 s           |
//! | statuses    2xx 49,900 (99.8%)  4xx 78 (0.2%)  5xx 2                    |
//! | failed      2, retried 4; connect 2, of those with a record             |
//! | total       requests 81,234  failed 3  retried 4  in 80.1 MB  out 4.1 GB|
//! | requests/s  ▁▁▂▁▁▁▃█▆▂▁▁▁▁▁ 4,100 to 5,002, last 60 s                   |
//! | p50 ms      ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁ 0.20 to 0.22                                |
//! | p99 ms      ▁▁▂▁▁▁▃█▆▂▁▁▁▁▁ 0.70 to 0.81                                |
//! | slowest     812 ms 200 GET /api/slow, upstream 810, 10.0.0.12           |
//! | errors      502 connect POST /api/orders, 3.10 ms, 10.0.0.31            |
//! +-------------------------------------------------------------------------+
//! ```

use model::runs::RecordedRequest;
use records::metrics::{RouteCounter, RouteLatency, TimeResolution};

use super::model::{RequestTimes, RouteDetail, RouteRow, RouteSlot};
use crate::screens::requests::model::RequestRow;
use crate::state::State;
use crate::theme::Theme;
use crate::theme::format;
use crate::widgets::detail::{Details, NamedLine};
use crate::widgets::parts::{byte_rate, quantile_text, rate};
use crate::widgets::sparkline::sparkline;

/// Requests of each kind that are listed at the most, and on a screen without room.
const LISTED: (usize, usize) = (8, 2);
/// The rows of the other lines, with the border and the keys.
const OTHER_ROWS: usize = 15;

pub(super) fn details(state: &State) -> Option<Details> {
    let id = state.routes.opened?;
    let name = state.all_routes().iter().find(|row| row.id == id).map_or("", |row| &*row.name);
    Some(Details {
        cells: 110,
        title: format!("route {name}{}", state.at_past_moment()),
        lines: state.route_detail(id).map_or_else(Vec::new, |detail| texts(state, &detail)),
        gone: "no requests of it by this moment",
    })
}

fn texts(state: &State, detail: &RouteDetail) -> Vec<NamedLine> {
    let (theme, row) = (state.theme, &detail.row);
    let span = state.figures().map(|figures| figures.span.words()).unwrap_or_default();
    let latency = |class| times(theme, row.times(class), &span);
    let mut texts = vec![
        (if state.past_us().is_some() { "then" } else { "now" }, rates(theme, row)),
        ("upstream", latency(RouteLatency::Upstream)),
        ("first byte", latency(RouteLatency::FirstByte)),
        ("request", latency(RouteLatency::Request)),
        ("statuses", statuses(theme, row)),
        ("failed", failures(theme, detail)),
        ("total", totals(row)),
    ];
    let us = state.figures().map_or(0, |figures| figures.interval_us) * detail.history.len() as u64;
    let graph = |of: fn(&RouteSlot) -> Option<f64>, shown: fn(f64) -> String| {
        graph(theme, &detail.history.iter().map(of).collect::<Vec<_>>(), shown)
    };
    texts.extend([
        (
            "requests/s",
            format!("{}, last {}", graph(|slot| slot.per_second, format::per_second), format::span(us)),
        ),
        ("p50 ms", format!("{} of upstream", graph(|slot| slot.p50, |ns| format::millis(ns as u64)))),
        ("p99 ms", format!("{} of upstream", graph(|slot| slot.p99, |ns| format::millis(ns as u64)))),
    ]);
    let room = usize::from(state.size().1).saturating_sub(OTHER_ROWS) / 2;
    let listed = room.clamp(LISTED.1, LISTED.0);
    for (name, requests) in [("slowest", &detail.slowest), ("errors", &detail.failed)] {
        let lines = requests.iter().take(listed).map(|recorded| request(state, recorded));
        let names = std::iter::once(name).chain(std::iter::repeat(""));
        texts.extend(names.zip(lines));
        if requests.is_empty() {
            texts.push((name, "none of the window has a record".to_owned()));
        }
    }
    texts
}

fn rates(theme: Theme, row: &RouteRow) -> String {
    format!(
        "requests {}  in {}  out {}",
        rate(theme, row.per_second(RouteCounter::Requests)),
        byte_rate(theme, row.per_second(RouteCounter::BodyIn)),
        byte_rate(theme, row.per_second(RouteCounter::BodyOut)),
    )
}

/// Returns percentiles of a class. A percentile in brackets has fewer than ten samples above it.
fn times(theme: Theme, times: Option<RequestTimes>, span: &str) -> String {
    let Some(RequestTimes { p50, p99, max_ns, n }) = times else {
        return format!("{} in {span}", theme.glyphs.none());
    };
    let (p50, p99) = (quantile_text(theme, p50), quantile_text(theme, p99));
    format!("p50 {p50}  p99 {p99}  max {} ms  n {} in {span}", format::millis(max_ns), format::count(n))
}

/// The classes of statuses that a route counts.
const STATUSES: [(&str, RouteCounter); 4] = [
    ("2xx", RouteCounter::Status2xx),
    ("3xx", RouteCounter::Status3xx),
    ("4xx", RouteCounter::Status4xx),
    ("5xx", RouteCounter::Status5xx),
];

fn statuses(theme: Theme, row: &RouteRow) -> String {
    let status = |(name, counter): (&str, RouteCounter)| {
        let share = row.share(&[counter]).filter(|&share| share > 0.0);
        let share = share.map_or_else(String::new, |share| format!(" ({})", format::percent(share)));
        row.count(counter).map(|n| format!("{name} {}{share}", format::count(n)))
    };
    let all: Option<Vec<String>> = STATUSES.map(status).into_iter().collect();
    all.map_or_else(|| theme.glyphs.none().to_string(), |all| all.join("  "))
}

fn failures(theme: Theme, detail: &RouteDetail) -> String {
    let count =
        |counter| detail.row.count(counter).map_or_else(|| theme.glyphs.none().to_string(), format::count);
    let causes: Vec<String> =
        detail.causes.iter().map(|(cause, n)| format!("{cause} {}", format::count(*n))).collect();
    let causes = match &*causes {
        [] => String::new(),
        causes => format!("; with a record: {}", causes.join(", ")),
    };
    format!("{}  retried {}{causes}", count(RouteCounter::Failed), count(RouteCounter::Retried))
}

fn totals(row: &RouteRow) -> String {
    let count = |counter| format::count(row.totals[counter]);
    let bytes = |counter| format::bytes(row.totals[counter] as f64);
    let statuses = STATUSES.map(|(name, counter)| format!("{name} {}", count(counter))).join("  ");
    format!(
        "requests {}  {statuses}  failed {}  in {}  out {}",
        count(RouteCounter::Requests),
        count(RouteCounter::Failed),
        bytes(RouteCounter::BodyIn),
        bytes(RouteCounter::BodyOut),
    )
}

/// Returns a sparkline with its range.
fn graph(theme: Theme, slots: &[Option<f64>], shown: fn(f64) -> String) -> String {
    let known = || slots.iter().flatten().copied();
    let line = sparkline(theme, slots, slots.len());
    match (known().reduce(f64::min), known().reduce(f64::max)) {
        (Some(low), Some(high)) if shown(low) == shown(high) => format!("{line} {}", shown(low)),
        (Some(low), Some(high)) => format!("{line} {} to {}", shown(low), shown(high)),
        _ => theme.glyphs.none().to_string(),
    }
}

/// Returns a request in a line, what matters most first.
fn request(state: &State, recorded: &RecordedRequest) -> String {
    let row = RequestRow::of(recorded.clone(), state.time_of_day(recorded.realtime_us), TimeResolution::FINE);
    let request = &row.recorded.request;
    let ms = |us: u64| format::millis(us * 1_000);
    let status = if request.status == 0 { "no status".to_owned() } else { request.status.to_string() };
    let cause = if row.cause.is_empty() { String::new() } else { format!(" {}", row.cause) };
    let part = |name: &str, us: u64| if us > 0 { format!(", {name} {}", ms(us)) } else { String::new() };
    format!(
        "{} ms {status}{cause} {}{}{}, {} {}",
        ms(request.duration_us),
        row.target,
        part("queue", request.queue_us),
        part("upstream", request.upstream_us),
        request.client,
        row.time,
    )
}
