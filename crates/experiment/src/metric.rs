//! The figures that can be compared, by their names.

use std::fmt;
use std::str::FromStr;

use telemetry::{
    Counters, CpuGroup, LatencyClass, LoadCounter, LoadLatency, Metric as _, ProxyCounter, ProxyLatency,
};

/// What was counted in some time.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Length of the time, in microseconds.
    pub span_us: u64,
    /// What the proxy counted.
    pub proxy: Counters<ProxyCounter>,
    /// What the load counted.
    pub load: Counters<LoadCounter>,
    /// CPU time that was used, in microseconds.
    pub cpu: Counters<CpuGroup>,
}

/// A class of latencies of either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// One of the proxy's.
    Proxy(ProxyLatency),
    /// One of the load's.
    Load(LoadLatency),
}

/// Which way a figure should go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
}

/// In what a difference is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// In percent of the first figure; both must be above nothing.
    Relative,
    /// In percentage points: the figure is a share, and may be nothing.
    Points,
}

/// One figure that can be compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    name: String,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// The latency that this share of the samples does not exceed.
    Quantile(Class, f64),
    Mean(Class),
    Quotient(&'static Quotient),
}

/// A figure that is one amount divided by another; over several blocks, sum by sum.
#[derive(Debug)]
pub(crate) struct Quotient {
    name: &'static str,
    unit: &'static str,
    better: Better,
    scale: Scale,
    pub(crate) of: fn(&Totals) -> f64,
    pub(crate) per: fn(&Totals) -> f64,
}

impl PartialEq for Quotient {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

const HANDSHAKES: [ProxyCounter; 2] = [ProxyCounter::HandshakesFull, ProxyCounter::HandshakesResumed];

fn seconds(totals: &Totals) -> f64 {
    totals.span_us as f64 / 1e6
}

fn proxy(totals: &Totals, counter: ProxyCounter) -> f64 {
    totals.proxy[counter] as f64
}

fn cpu_us(totals: &Totals) -> f64 {
    totals.cpu[CpuGroup::Proxy] as f64
}

const fn rate(name: &'static str, of: fn(&Totals) -> f64) -> Quotient {
    Quotient { name, unit: "1/s", better: Better::Higher, scale: Scale::Relative, of, per: seconds }
}

const fn cpu(name: &'static str, per: fn(&Totals) -> f64) -> Quotient {
    Quotient { name, unit: "µs", better: Better::Lower, scale: Scale::Relative, of: cpu_us, per }
}

const fn ratio(
    name: &'static str,
    better: Better,
    of: fn(&Totals) -> f64,
    per: fn(&Totals) -> f64,
) -> Quotient {
    Quotient { name, unit: "", better, scale: Scale::Points, of, per }
}

static QUOTIENTS: [Quotient; 8] = [
    rate("exchanges.rate", |t| proxy(t, ProxyCounter::Exchanges)),
    rate("handshakes.rate", |t| t.proxy.sum(&HANDSHAKES) as f64),
    rate("requests.rate", |t| t.load[LoadCounter::Ok] as f64),
    rate("bytes.rate", |t| t.proxy.sum(&[ProxyCounter::BytesIn, ProxyCounter::BytesOut]) as f64),
    cpu("cpu.per_exchange", |t| proxy(t, ProxyCounter::Exchanges)),
    cpu("cpu.per_handshake", |t| t.proxy.sum(&HANDSHAKES) as f64),
    ratio(
        "resumed.ratio",
        Better::Higher,
        |t| proxy(t, ProxyCounter::HandshakesResumed),
        |t| t.proxy.sum(&HANDSHAKES) as f64,
    ),
    ratio(
        "failed.ratio",
        Better::Lower,
        |t| t.load[LoadCounter::Failed] as f64,
        |t| t.load.sum(&[LoadCounter::Ok, LoadCounter::Failed]) as f64,
    ),
];

/// The text names no figure that can be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no figure {0} to compare; there are {known}", known = Metric::known())]
pub struct UnknownMetric(pub String);

impl Metric {
    /// The names that there are, those of latencies folded.
    pub fn known() -> String {
        let quotients: Vec<&str> = QUOTIENTS.iter().map(|quotient| quotient.name).collect();
        let classes = |prefix: &str, labels: Vec<&'static str>| -> Vec<String> {
            labels.into_iter().map(|label| format!("{prefix}.{label}")).collect()
        };
        let mut all = classes(
            "proxy",
            ProxyLatency::ALL.iter().map(|class| LatencyClass::Proxy(*class).key()).collect(),
        );
        all.extend(classes(
            "load",
            LoadLatency::ALL.iter().map(|class| LatencyClass::Load(*class).key()).collect(),
        ));
        format!(
            "{}; and mean, p50, p99 or any other percentile of {} (the side may be left out)",
            quotients.join(", "),
            all.join(", ")
        )
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its unit; empty for a share.
    pub fn unit(&self) -> &'static str {
        match self.kind {
            Kind::Quantile(..) | Kind::Mean(_) => "µs",
            Kind::Quotient(quotient) => quotient.unit,
        }
    }

    /// Which way it should go.
    pub fn better(&self) -> Better {
        match self.kind {
            Kind::Quantile(..) | Kind::Mean(_) => Better::Lower,
            Kind::Quotient(quotient) => quotient.better,
        }
    }

    /// In what its differences are told.
    pub fn scale(&self) -> Scale {
        match self.kind {
            Kind::Quantile(..) | Kind::Mean(_) => Scale::Relative,
            Kind::Quotient(quotient) => quotient.scale,
        }
    }

    /// True if a load generator at its limit would measure, or bound, something else than was meant. What the proxy
    /// times and uses for each request is so whoever sends it.
    pub fn is_of_generator(&self) -> bool {
        match self.kind {
            Kind::Quantile(class, _) | Kind::Mean(class) => matches!(class, Class::Load(_)),
            Kind::Quotient(quotient) => quotient.unit == "1/s" || quotient.name == "failed.ratio",
        }
    }

    /// True if a run has what it is made of, and enough of it.
    pub fn has_samples(&self, run: &telemetry::model::Run) -> bool {
        let count = |class| match class {
            Class::Proxy(class) => run.proxy().map_or(0, |track| track.whole()[class].count()),
            Class::Load(class) => run.load().map_or(0, |track| track.whole()[class].count()),
        };
        match self.kind {
            Kind::Quantile(class, q) => !telemetry::quantile_is_thin(count(class), q),
            Kind::Mean(class) => count(class) > 0,
            Kind::Quotient(quotient) => {
                let totals = Totals {
                    span_us: run.duration_us(),
                    proxy: run.proxy().map(|track| *track.totals()).unwrap_or_default(),
                    load: run.load().map(|track| *track.totals()).unwrap_or_default(),
                    cpu: run.host().map(|host| host.cpu).unwrap_or_default(),
                };
                (quotient.of)(&totals) > 0.0 && (quotient.per)(&totals) > 0.0
            }
        }
    }

    /// The class of latencies that it is made of, if it is.
    pub fn class(&self) -> Option<Class> {
        match self.kind {
            Kind::Quantile(class, _) | Kind::Mean(class) => Some(class),
            Kind::Quotient(_) => None,
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

impl FromStr for Metric {
    type Err = UnknownMetric;

    fn from_str(text: &str) -> Result<Self, UnknownMetric> {
        let text = text.trim();
        let quotient = QUOTIENTS.iter().find(|quotient| quotient.name == text).map(Kind::Quotient);
        let kind = quotient.or_else(|| latency(text));
        let unknown = || UnknownMetric(telemetry::clean::text(text));
        Ok(Self { name: text.to_owned(), kind: kind.ok_or_else(unknown)? })
    }
}

/// A figure of a class of latencies, such as `exchange.p99` or `load.handshake_full.mean`.
fn latency(text: &str) -> Option<Kind> {
    let (side, rest) = match text.split_once('.') {
        Some((side @ ("proxy" | "load"), rest)) => (side, rest),
        _ => ("", text),
    };
    let (label, what) = rest.split_once('.')?;
    let class = class(side, label)?;
    if what == "mean" {
        return Some(Kind::Mean(class));
    }
    telemetry::parse_percentile(what).map(|q| Kind::Quantile(class, q))
}

/// Where both sides have a class of this name, the proxy's is meant unless the side is told.
fn class(side: &str, label: &str) -> Option<Class> {
    let proxy = || {
        ProxyLatency::ALL
            .iter()
            .find(|class| LatencyClass::Proxy(**class).key() == label)
            .copied()
            .map(Class::Proxy)
    };
    let load = || {
        LoadLatency::ALL
            .iter()
            .find(|class| LatencyClass::Load(**class).key() == label)
            .copied()
            .map(Class::Load)
    };
    match side {
        "proxy" => proxy(),
        "load" => load(),
        _ => proxy().or_else(load),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_what_they_say() {
        let kind = |text: &str| text.parse::<Metric>().map(|metric| metric.kind);
        assert_eq!(kind("exchange.p99"), Ok(Kind::Quantile(Class::Proxy(ProxyLatency::Exchange), 0.99)));
        assert_eq!(kind("response.p99.9"), Ok(Kind::Quantile(Class::Load(LoadLatency::Response), 0.999)));
        assert_eq!(kind("connect.mean"), Ok(Kind::Mean(Class::Proxy(ProxyLatency::Connect))));
        assert_eq!(kind("load.connect.p50"), Ok(Kind::Quantile(Class::Load(LoadLatency::Connect), 0.5)));
        for quotient in &QUOTIENTS {
            assert_eq!(kind(quotient.name), Ok(Kind::Quotient(quotient)));
        }
    }

    #[test]
    fn an_unknown_figure_is_refused_with_those_that_there_are() {
        for text in [
            "",
            "p99",
            "exchange",
            "exchange.p",
            "exchange.p100",
            "exchange.p0",
            "exchange.max",
            "proxy.response.p50",
            "load.exchange.p50",
            "exchange.pp9",
            "cpu",
            "exchange.p-1",
            "exchange.pNaN",
        ] {
            let error = text.parse::<Metric>().unwrap_err().to_string();
            assert!(error.contains("cpu.per_exchange") && error.contains("load.response"), "{error}");
        }
    }
}
