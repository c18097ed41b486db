//! Figures of one route of HTTP mode, such as `proxy.http.route."/api".request.p99`.

use std::sync::Arc;

use super::{FigureUnit, Statistic, Totals};
use crate::runs::Run;
use records::metrics::{KnownValue, Metric as _, RouteCounter, RouteLatency, TimeResolution};
use records::setting::{Setting, Value};

/// In front of the route's name, without the side.
const PREFIX: &str = "http.route.";

#[derive(Clone, Debug, PartialEq)]
pub struct RouteFigure {
    /// The route's name, such as `/api`.
    pub(crate) route: Arc<str>,
    pub(crate) metric: RouteMetric,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RouteMetric {
    Latency(RouteLatency, Statistic),
    Count(RouteCounter),
    /// Requests a second.
    Rate,
    /// The share of a counter in all its requests.
    Ratio(RouteCounter),
}

/// The metrics that no counter is, by the end of their names.
const QUOTIENTS: [(&str, RouteMetric); 3] = [
    ("requests.rate", RouteMetric::Rate),
    ("status.5xx.ratio", RouteMetric::Ratio(RouteCounter::Status5xx)),
    ("failed.ratio", RouteMetric::Ratio(RouteCounter::Failed)),
];

/// The metrics besides latencies, by the end of their names.
fn numbers() -> impl Iterator<Item = (&'static str, RouteMetric)> {
    let counts =
        RouteCounter::ALL.iter().map(|&counter| (counter.names().figure, RouteMetric::Count(counter)));
    counts.chain(QUOTIENTS)
}

impl RouteFigure {
    /// Reads a name without its side; `None` if it is not of a route.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (route, end) = split(name)?;
        let metric = RouteMetric::named(end)?;
        Some(Self { route: route.into(), metric })
    }

    /// The name without the side.
    pub(super) fn short_name(&self) -> String {
        format!("{PREFIX}\"{}\".{}", self.route, self.metric.name())
    }

    pub(super) fn unit(&self) -> FigureUnit {
        match self.metric {
            RouteMetric::Latency(_, Statistic::Count) => FigureUnit::Count,
            RouteMetric::Latency(..) => FigureUnit::Micros,
            RouteMetric::Count(RouteCounter::BodyIn | RouteCounter::BodyOut) => FigureUnit::Bytes,
            RouteMetric::Count(_) => FigureUnit::Count,
            RouteMetric::Rate => FigureUnit::PerSecond,
            RouteMetric::Ratio(_) => FigureUnit::Ratio,
        }
    }

    pub(super) fn definition(&self) -> &'static str {
        match self.metric {
            RouteMetric::Latency(class, _) => &class.field().meaning,
            RouteMetric::Count(counter) => &counter.field().meaning,
            RouteMetric::Rate => "Requests of this route that were over, a second.",
            RouteMetric::Ratio(RouteCounter::Failed) => "`failed` over `requests`.",
            RouteMetric::Ratio(_) => "`status.5xx` over `requests`.",
        }
    }

    /// Its value; `None` without samples or requests.
    pub(super) fn value(&self, run: &Run) -> Option<f64> {
        let route = run.routes().get(&self.route);
        let count = |counter| route.map_or(0, |route| route.totals()[counter]) as f64;
        let per = |amount: f64, all: f64| (all > 0.0).then(|| amount / all);
        match self.metric {
            RouteMetric::Latency(class, statistic) => statistic.of(&route?.series().whole()[class]),
            RouteMetric::Count(counter) => Some(count(counter)),
            RouteMetric::Rate => per(count(RouteCounter::Requests), Totals::of(run).seconds()),
            RouteMetric::Ratio(counter) => per(count(counter), count(RouteCounter::Requests)),
        }
    }

    /// What is known of a value at this resolution of times.
    pub(super) fn known(&self, value: f64, resolution: TimeResolution) -> KnownValue {
        match self.metric {
            RouteMetric::Latency(_, statistic) => statistic.known(value, resolution),
            RouteMetric::Count(_) | RouteMetric::Rate | RouteMetric::Ratio(_) => KnownValue::Exact(value),
        }
    }

    /// The ratio of a percentile.
    pub(super) fn percentile(&self) -> Option<f64> {
        match self.metric {
            RouteMetric::Latency(_, Statistic::Percentile(q)) => Some(q),
            RouteMetric::Latency(..) | RouteMetric::Count(_) | RouteMetric::Rate | RouteMetric::Ratio(_) => {
                None
            }
        }
    }

    /// The samples of a latency over the whole run.
    pub(super) fn samples(&self, run: &Run) -> Option<u64> {
        let RouteMetric::Latency(class, _) = self.metric else { return None };
        Some(run.routes().get(&self.route).map_or(0, |route| route.series().whole()[class].count()))
    }

    /// The samples of a latency in the intervals since a moment.
    pub(super) fn samples_since(&self, run: &Run, from_us: u64) -> Option<u64> {
        let RouteMetric::Latency(class, _) = self.metric else { return None };
        Some(super::since(run.routes().get(&self.route)?.series(), class, from_us))
    }
}

impl RouteMetric {
    fn named(name: &str) -> Option<Self> {
        if let Some((_, metric)) = numbers().find(|(known, _)| *known == name) {
            return Some(metric);
        }
        let (class, statistic) = super::name::split_statistic(name)?;
        let class = if class == "ttfb" { "first_byte" } else { class };
        let class = RouteLatency::ALL.iter().find(|known| known.names().figure == class)?;
        Some(Self::Latency(*class, statistic))
    }

    fn name(self) -> String {
        if let Self::Latency(class, statistic) = self {
            return format!("{}.{statistic}", class.names().figure);
        }
        numbers().find(|(_, metric)| *metric == self).map_or("", |(name, _)| name).to_owned()
    }
}

/// The route's name, and the rest of the name after it.
fn split(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix(PREFIX)?.strip_prefix('"')?.rsplit_once("\".").filter(|(route, _)| !route.is_empty())
}

/// The metrics that there are of the route in a name, without the side; none if the name is not of a route.
pub(super) fn candidates(name: &str) -> Vec<String> {
    if !name.starts_with(PREFIX.trim_end_matches('.')) {
        return Vec::new();
    }
    let route = split(name).map_or("/PATH", |(route, _)| route);
    let latencies = RouteLatency::ALL.iter().map(|class| format!("{}.p99", class.names().figure));
    let numbers = numbers().map(|(number, _)| number.to_owned());
    latencies.chain(numbers).map(|metric| format!("{PREFIX}\"{route}\".{metric}")).collect()
}

/// One figure of each metric of a route, for lists; of latencies the 99th percentile.
pub(super) fn examples(route: &str) -> impl Iterator<Item = RouteFigure> + use<> {
    let route: Arc<str> = route.into();
    let p99 = |class: &RouteLatency| RouteMetric::Latency(*class, Statistic::Percentile(0.99));
    let metrics = RouteLatency::ALL.iter().map(p99).chain(numbers().map(|(_, metric)| metric));
    metrics.map(move |metric| RouteFigure { route: Arc::clone(&route), metric })
}

/// The names of a run's routes: the configured ones, and those that served requests.
pub(super) fn names(run: &Run) -> Vec<String> {
    let mut names: Vec<String> = run.routes().iter().map(|route| route.name().to_owned()).collect();
    if let Some(Setting { value: Value::Text(routes), .. }) = run.setting("proxy.route") {
        // Each is `NAME=UPSTREAM,...`.
        let told = routes.split(' ').filter_map(|route| Some(route.rsplit_once('=')?.0.to_owned()));
        names.extend(told.filter(|name| !names.contains(name)).collect::<Vec<_>>());
    }
    names
}
