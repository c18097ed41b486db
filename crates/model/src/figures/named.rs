//! Figures of one named part of the traffic: of a route of HTTP mode, such as `proxy.http.route."/api".request.p99`, or of
//! an upstream, such as `proxy.upstream."unix:/run/app.sock".first_byte.p99`.

use std::sync::Arc;

use super::{Figure, FigureSide, FigureUnit, Statistic, Totals};
use crate::runs::{NamedPart, Run};
use records::kinds::{NamedRecord, RouteRecord, UpstreamRecord};
use records::metrics::{KnownValue, Metric, RouteCounter, TimeResolution, Unit, UpstreamCounter};
use records::setting::{Setting, Value};

/// A figure of a part of either kind.
#[derive(Clone, Debug, PartialEq)]
pub enum NamedFigure {
    Route(PartFigure<RouteRecord>),
    Upstream(PartFigure<UpstreamRecord>),
}

/// A figure of a part of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct PartFigure<R: FigurePart> {
    /// The part's name, such as `/api`.
    pub(crate) name: Arc<str>,
    metric: PartMetric<R::Counter, R::Latency>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PartMetric<C, L> {
    Latency(L, Statistic),
    Count(C),
    /// Requests or exchanges a second.
    Rate,
    /// The share of a counter in all requests or exchanges.
    Ratio(C),
}

/// A metric that no counter is: the end of its name, and its definition.
type PartQuotient<R> =
    (&'static str, PartMetric<<R as NamedRecord>::Counter, <R as NamedRecord>::Latency>, &'static str);

/// A kind of named parts that have figures.
pub trait FigurePart: NamedPart + PartialEq {
    /// In front of the name, without the side.
    const PREFIX: &'static str;
    const SIDE: FigureSide;
    /// The word for such a part.
    const NOUN: &'static str;
    /// A name for messages.
    const EXAMPLE: &'static str;
    /// What rates and ratios are of.
    const ALL: Self::Counter;

    /// The metrics that no counter is.
    fn quotients() -> Vec<PartQuotient<Self>>;

    /// The names in the configuration of a run.
    fn configured(run: &Run) -> Vec<String>;
}

impl FigurePart for RouteRecord {
    const PREFIX: &'static str = "http.route.";
    const SIDE: FigureSide = FigureSide::Http;
    const NOUN: &'static str = "route";
    const EXAMPLE: &'static str = "/PATH";
    const ALL: RouteCounter = RouteCounter::Requests;

    fn quotients() -> Vec<PartQuotient<Self>> {
        use PartMetric::{Rate, Ratio};
        vec![
            ("requests.rate", Rate, "Requests of this route that were over, a second."),
            ("status.5xx.ratio", Ratio(RouteCounter::Status5xx), "`status.5xx` over `requests`."),
            ("failed.ratio", Ratio(RouteCounter::Failed), "`failed` over `requests`."),
        ]
    }

    fn configured(run: &Run) -> Vec<String> {
        let Some(Setting { value: Value::Text(routes), .. }) = run.setting("proxy.route") else {
            return Vec::new();
        };
        // Each is `NAME=UPSTREAM,...`.
        routes.split(' ').filter_map(|route| Some(route.rsplit_once('=')?.0.to_owned())).collect()
    }
}

impl FigurePart for UpstreamRecord {
    const PREFIX: &'static str = "upstream.";
    const SIDE: FigureSide = FigureSide::Proxy;
    const NOUN: &'static str = "upstream";
    const EXAMPLE: &'static str = "unix:/PATH";
    const ALL: UpstreamCounter = UpstreamCounter::Exchanges;

    fn quotients() -> Vec<PartQuotient<Self>> {
        use PartMetric::{Rate, Ratio};
        vec![
            ("exchanges.rate", Rate, "`exchanges`, a second."),
            ("broken.ratio", Ratio(UpstreamCounter::Broken), "`broken` over `exchanges`."),
            ("status.5xx.ratio", Ratio(UpstreamCounter::Status5xx), "`status.5xx` over `exchanges`."),
        ]
    }

    /// Each has a record, also one that nothing was sent to.
    fn configured(_: &Run) -> Vec<String> {
        Vec::new()
    }
}

/// Delegates to the figure of the kind.
macro_rules! each {
    ($named:expr, $figure:ident => $value:expr) => {
        match $named {
            NamedFigure::Route($figure) => $value,
            NamedFigure::Upstream($figure) => $value,
        }
    };
}

impl NamedFigure {
    /// Reads a name without its side; `None` if it is not of a named part.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let route = PartFigure::parse(name).map(Self::Route);
        route.or_else(|| PartFigure::parse(name).map(Self::Upstream))
    }

    /// The name without the side.
    pub(super) fn short_name(&self) -> String {
        each!(self, figure => figure.short_name())
    }

    pub(super) fn side(&self) -> FigureSide {
        match self {
            Self::Route(_) => RouteRecord::SIDE,
            Self::Upstream(_) => UpstreamRecord::SIDE,
        }
    }

    pub(super) fn unit(&self) -> FigureUnit {
        each!(self, figure => figure.unit())
    }

    pub(super) fn definition(&self) -> &'static str {
        each!(self, figure => figure.definition())
    }

    /// Its value; `None` without samples or requests.
    pub(super) fn value(&self, run: &Run) -> Option<f64> {
        each!(self, figure => figure.value(run))
    }

    /// What is known of a value at this resolution of times.
    pub(super) fn known(&self, value: f64, resolution: TimeResolution) -> KnownValue {
        each!(self, figure => match figure.metric {
            PartMetric::Latency(_, statistic) => statistic.known(value, resolution),
            PartMetric::Count(_) | PartMetric::Rate | PartMetric::Ratio(_) => KnownValue::Exact(value),
        })
    }

    /// The ratio of a percentile.
    pub(super) fn percentile(&self) -> Option<f64> {
        each!(self, figure => match figure.metric {
            PartMetric::Latency(_, Statistic::Percentile(q)) => Some(q),
            _ => None,
        })
    }

    /// The samples of a latency over the whole run.
    pub(super) fn samples(&self, run: &Run) -> Option<u64> {
        each!(self, figure => figure.samples(run))
    }

    /// The samples of a latency in the intervals since a moment.
    pub(super) fn samples_since(&self, run: &Run, from_us: u64) -> Option<u64> {
        each!(self, figure => figure.samples_since(run, from_us))
    }
}

impl<R: FigurePart> PartFigure<R> {
    fn parse(name: &str) -> Option<Self> {
        let (part, end) = split::<R>(name)?;
        Some(Self { name: part.into(), metric: metric_named::<R>(end)? })
    }

    /// The class of a latency.
    pub(crate) fn class(&self) -> Option<R::Latency> {
        match self.metric {
            PartMetric::Latency(class, _) => Some(class),
            PartMetric::Count(_) | PartMetric::Rate | PartMetric::Ratio(_) => None,
        }
    }

    fn short_name(&self) -> String {
        format!("{}\"{}\".{}", R::PREFIX, self.name, metric_name::<R>(self.metric))
    }

    fn unit(&self) -> FigureUnit {
        match self.metric {
            PartMetric::Latency(_, Statistic::Count) => FigureUnit::Count,
            PartMetric::Latency(..) => FigureUnit::Micros,
            PartMetric::Count(counter) if counter.field().unit == Unit::Bytes => FigureUnit::Bytes,
            PartMetric::Count(_) => FigureUnit::Count,
            PartMetric::Rate => FigureUnit::PerSecond,
            PartMetric::Ratio(_) => FigureUnit::Ratio,
        }
    }

    fn definition(&self) -> &'static str {
        match self.metric {
            PartMetric::Latency(class, _) => &class.field().meaning,
            PartMetric::Count(counter) => &counter.field().meaning,
            PartMetric::Rate | PartMetric::Ratio(_) => {
                let quotients = R::quotients();
                quotients
                    .iter()
                    .find(|(_, metric, _)| *metric == self.metric)
                    .map_or("", |(.., meaning)| meaning)
            }
        }
    }

    fn value(&self, run: &Run) -> Option<f64> {
        let part = R::table(run).get(&self.name);
        let count = |counter| part.map_or(0, |part| part.totals()[counter]) as f64;
        let per = |amount: f64, all: f64| (all > 0.0).then(|| amount / all);
        match self.metric {
            PartMetric::Latency(class, statistic) => statistic.of(&part?.series().whole()[class]),
            PartMetric::Count(counter) => Some(count(counter)),
            PartMetric::Rate => per(count(R::ALL), Totals::of(run).seconds()),
            PartMetric::Ratio(counter) => per(count(counter), count(R::ALL)),
        }
    }

    fn samples(&self, run: &Run) -> Option<u64> {
        let class = self.class()?;
        Some(R::table(run).get(&self.name).map_or(0, |part| part.series().whole()[class].count()))
    }

    fn samples_since(&self, run: &Run, from_us: u64) -> Option<u64> {
        let class = self.class()?;
        Some(super::since(R::table(run).get(&self.name)?.series(), class, from_us))
    }
}

/// The metrics besides latencies, by the end of their names.
fn numbers<R: FigurePart>() -> impl Iterator<Item = (&'static str, PartMetric<R::Counter, R::Latency>)> {
    let counts = R::Counter::ALL.iter().map(|&counter| (counter.names().figure, PartMetric::Count(counter)));
    counts.chain(R::quotients().into_iter().map(|(name, metric, _)| (name, metric)))
}

fn metric_named<R: FigurePart>(name: &str) -> Option<PartMetric<R::Counter, R::Latency>> {
    if let Some((_, metric)) = numbers::<R>().find(|(known, _)| *known == name) {
        return Some(metric);
    }
    let (class, statistic) = super::name::split_statistic(name)?;
    let class = if class == "ttfb" { "first_byte" } else { class };
    let class = R::Latency::ALL.iter().find(|known| known.names().figure == class)?;
    Some(PartMetric::Latency(*class, statistic))
}

fn metric_name<R: FigurePart>(metric: PartMetric<R::Counter, R::Latency>) -> String {
    if let PartMetric::Latency(class, statistic) = metric {
        return format!("{}.{statistic}", class.names().figure);
    }
    numbers::<R>().find(|(_, known)| *known == metric).map_or("", |(name, _)| name).to_owned()
}

/// The part's name, and the rest of the name after it.
fn split<R: FigurePart>(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix(R::PREFIX)?.strip_prefix('"')?.rsplit_once("\".").filter(|(part, _)| !part.is_empty())
}

/// The metrics that there are of the part in a name, without the side; none if the name is not of a named part.
pub(super) fn candidates(name: &str) -> Vec<String> {
    let mut all = candidates_of::<RouteRecord>(name);
    all.extend(candidates_of::<UpstreamRecord>(name));
    all
}

fn candidates_of<R: FigurePart>(name: &str) -> Vec<String> {
    if !name.starts_with(R::PREFIX.trim_end_matches('.')) {
        return Vec::new();
    }
    let part = split::<R>(name).map_or(R::EXAMPLE, |(part, _)| part);
    let latencies = R::Latency::ALL.iter().map(|class| format!("{}.p99", class.names().figure));
    let numbers = numbers::<R>().map(|(number, _)| number.to_owned());
    latencies.chain(numbers).map(|metric| format!("{}\"{part}\".{metric}", R::PREFIX)).collect()
}

/// One figure of each metric of a part, for lists; of latencies the 99th percentile.
fn examples<R: FigurePart>(name: &str) -> impl Iterator<Item = PartFigure<R>> {
    let name: Arc<str> = name.into();
    let p99 = |class: &R::Latency| PartMetric::Latency(*class, Statistic::Percentile(0.99));
    let metrics = R::Latency::ALL.iter().map(p99).chain(numbers::<R>().map(|(_, metric)| metric));
    metrics.map(move |metric| PartFigure { name: Arc::clone(&name), metric })
}

impl Figure {
    /// The figures of a route of this name, of latencies the 99th percentile.
    pub fn of_route(name: &str) -> impl Iterator<Item = Self> {
        examples(name).map(NamedFigure::Route).map(Self::Named)
    }

    /// The figures of an upstream of this name, of latencies the 99th percentile.
    pub fn of_upstream(name: &str) -> impl Iterator<Item = Self> {
        examples(name).map(NamedFigure::Upstream).map(Self::Named)
    }
}

/// The names of a run's parts: those with records, and the configured ones.
pub(super) fn names<R: FigurePart>(run: &Run) -> Vec<String> {
    let mut names: Vec<String> = R::table(run).iter().map(|part| part.name().to_owned()).collect();
    let configured = R::configured(run);
    names.extend(configured.into_iter().filter(|name| !names.contains(name)).collect::<Vec<_>>());
    names
}
