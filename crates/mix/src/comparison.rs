//! Two mixes, feature by feature.

use records::text::table::TextTable;
use records::values::ValueCounts;
use serde::Serialize;

use crate::traffic::{Second, Shares, Sizes, TENTHS, TrafficMix};

/// The difference up to which two features count as alike.
#[derive(Clone, Copy, Debug)]
struct Limit {
    /// In percent, or in points if the feature is a share.
    by: f64,
    /// What is too small to matter, in the unit of the feature.
    slack: f64,
    is_share: bool,
}

impl Limit {
    const fn percent(by: f64) -> Self {
        Self { by, slack: 0.0, is_share: false }
    }

    const fn points(by: f64) -> Self {
        Self { by, slack: 0.0, is_share: true }
    }

    const fn or(self, slack: f64) -> Self {
        Self { slack, ..self }
    }
}

const RATE: Limit = Limit::percent(2.0);
/// Even arrivals have nearly 0, by chance they have 1.
const DISPERSION: Limit = Limit::percent(20.0).or(0.25);
const REQUESTS: Limit = Limit::percent(5.0);
/// Which connection of those that are open has the next request is not recorded.
const GAP_US: Limit = Limit::percent(50.0).or(1_000.0);
/// The length of a head is not known.
const PLAINTEXT: Limit = Limit::percent(5.0).or(100.0);
const BODY: Limit = Limit::percent(5.0);
/// The load's first connection is a try.
const CLIENTS: Limit = Limit::percent(5.0).or(1.0);
const SHARE: Limit = Limit::points(1.0);
const INEQUALITY: Limit = Limit::points(5.0);

/// A feature of two mixes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FeaturePair {
    pub feature: String,
    /// `None` if a mix does not have it.
    pub a: Option<f64>,
    pub b: Option<f64>,
    /// Of B from A: in percent, or in points if the feature is a share in percent.
    pub difference: Option<f64>,
    /// The difference up to which they count as alike.
    pub limit: f64,
    pub is_share: bool,
    /// Whether they are alike; `None` if a mix does not have it.
    pub is_alike: Option<bool>,
}

/// All features of two mixes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MixComparison {
    /// Version of the shape; later versions only add to it.
    pub schema: u64,
    pub a: String,
    pub b: String,
    pub features: Vec<FeaturePair>,
}

impl MixComparison {
    pub fn new(a: &TrafficMix, b: &TrafficMix) -> Self {
        let mut features = Vec::new();
        let mut of = |feature: &str, limit, value: &dyn Fn(&TrafficMix) -> Option<f64>| {
            features.push(FeaturePair::new(feature.to_owned(), [value(a), value(b)], limit));
        };
        for (name, count) in KINDS {
            of(&format!("{name} a second"), RATE, &|mix| Some(mean(&mix.seconds, count)));
            for tenths in [1, TENTHS, 10 * TENTHS] {
                let seconds = tenths as f64 / TENTHS as f64;
                let feature = format!("{name}, dispersion at {seconds} s");
                of(&feature, DISPERSION, &|mix| dispersion(&mix.seconds, tenths, count));
            }
        }
        let size = if [a, b].iter().any(|mix| mix.sizes == Sizes::Plaintext) { PLAINTEXT } else { BODY };
        let distributions: [(&str, Limit, Part<ValueCounts>); 6] = [
            ("requests a connection", REQUESTS, |mix| &mix.distributions.requests_each),
            ("time between its requests, us", GAP_US, |mix| &mix.distributions.gaps_us),
            ("requests a connection of HTTP/2", REQUESTS, |mix| &mix.distributions.streams_each),
            ("time between its streams, us", GAP_US, |mix| &mix.distributions.stream_gaps_us),
            ("bytes of requests", size, |mix| &mix.distributions.bytes_in),
            ("bytes of responses", size, |mix| &mix.distributions.bytes_out),
        ];
        for (name, limit, counts) in distributions {
            for percent in [50.0, 90.0, 99.0] {
                of(&format!("{name}, p{percent}"), limit, &|mix| quantile(counts(mix), percent));
            }
        }
        of("clients", CLIENTS, &|mix| Some(mix.clients.total() as f64).filter(|n| *n > 0.0));
        features.push(each_second(a, b));
        let mut share = |feature: String, limit, of: &dyn Fn(&TrafficMix) -> Option<f64>| {
            let both = [a, b].map(|mix| of(mix).map(|share| share * 100.0));
            features.push(FeaturePair::new(feature, both, limit));
        };
        share("resumed".to_owned(), SHARE, &|mix| mix.resumed_share());
        share("connections of the busiest tenth of clients".to_owned(), INEQUALITY, &|mix| {
            busiest(&mix.clients)
        });
        for (what, shares) in SHARES {
            let mut names: Vec<&str> =
                shares(a).iter().chain(shares(b).iter()).map(|(name, _)| name).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                share(format!("{what} {name}"), SHARE, &|mix| {
                    Some(shares(mix)).filter(|shares| !shares.is_empty()).map(|shares| shares.share(name))
                });
            }
        }
        Self { schema: 1, a: a.source.clone(), b: b.source.clone(), features }
    }

    /// Features that are not alike.
    pub fn differing(&self) -> impl Iterator<Item = &FeaturePair> {
        self.features.iter().filter(|pair| pair.is_alike == Some(false))
    }

    pub fn text(&self) -> String {
        let shown: Vec<_> =
            self.features.iter().filter(|pair| pair.a.is_some() || pair.b.is_some()).collect();
        let unit = |pair: &FeaturePair| if pair.is_share { "points" } else { "%" };
        let row = |pair: &&FeaturePair| {
            let by = pair.difference.map(|by| format!("{by:+.1} {}", unit(pair)));
            let mark = if pair.is_alike == Some(false) {
                format!("more than {} {}", pair.limit, unit(pair))
            } else {
                String::new()
            };
            [
                pair.feature.clone(),
                number(pair.a, pair.is_share),
                number(pair.b, pair.is_share),
                by.unwrap_or_else(|| "-".to_owned()),
                mark,
            ]
        };
        let rows: Vec<_> = shown.iter().map(row).collect();
        let table = TextTable::of_rows(["feature", "A", "B", "B from A", "differs"], &(1..4), &rows);
        let differing = self.differing().count();
        let known = self.features.iter().filter(|pair| pair.is_alike.is_some()).count();
        format!(
            "A: {}\nB: {}\n\n{}\n{} of {known} features that both have differ by more than their limit\n",
            self.a,
            self.b,
            table.text(),
            differing
        )
    }
}

impl FeaturePair {
    fn new(feature: String, [a, b]: [Option<f64>; 2], limit: Limit) -> Self {
        let Limit { by, slack, is_share } = limit;
        let both = a.zip(b);
        let difference = both.and_then(|(a, b)| match is_share {
            true => Some(b - a),
            // Also 0 from 0.
            false if (b - a).abs() <= f64::EPSILON => Some(0.0),
            false => Some((b - a) / a * 100.0).filter(|by| by.is_finite()),
        });
        let is_alike = both.map(|(a, b)| {
            (b - a).abs() <= slack || difference.is_some_and(|difference| difference.abs() <= by)
        });
        Self { feature, a, b, difference, limit: by, is_share, is_alike }
    }
}

/// A part of a mix.
type Part<T> = fn(&TrafficMix) -> &T;
type CountOf = fn(&Second) -> &[u64; TENTHS];

const KINDS: [(&str, CountOf); 2] =
    [("connections", |second| &second.connections), ("requests", |second| &second.requests)];

const SHARES: [(&str, Part<Shares>); 5] = [
    ("version", |mix| &mix.versions),
    ("group", |mix| &mix.groups),
    ("cipher", |mix| &mix.ciphers),
    ("protocol", |mix| &mix.protocols),
    ("method", |mix| &mix.methods),
];

/// The counts of each tenth of a second, from the first one with a request to the last: a recording begins before its
/// traffic, and ends after it.
fn active(seconds: &[Second], count: CountOf) -> Vec<u64> {
    let requests = || seconds.iter().flat_map(|second| &second.requests);
    let (Some(first), Some(last)) =
        (requests().position(|n| *n > 0), requests().enumerate().filter(|(_, n)| **n > 0).last())
    else {
        return Vec::new();
    };
    seconds.iter().flat_map(count).copied().take(last.0 + 1).skip(first).collect()
}

fn mean(seconds: &[Second], count: CountOf) -> f64 {
    let active = active(seconds, count);
    active.iter().sum::<u64>() as f64 / active.len().max(1) as f64 * TENTHS as f64
}

/// The index of dispersion, variance over mean, of counts in parts of so many tenths; `None` with fewer than three parts.
fn dispersion(seconds: &[Second], tenths: usize, count: CountOf) -> Option<f64> {
    let parts = parts(&active(seconds, count), tenths);
    let mean = parts.iter().sum::<f64>() / parts.len().max(1) as f64;
    let variance = parts.iter().map(|part| (part - mean).powi(2)).sum::<f64>() / (parts.len() as f64 - 1.0);
    (parts.len() > 2 && mean > 0.0).then(|| variance / mean)
}

/// The sums of whole parts of so many tenths.
fn parts(active: &[u64], tenths: usize) -> Vec<f64> {
    active.chunks_exact(tenths).map(|part| part.iter().sum::<u64>() as f64).collect()
}

/// The seconds in which B had as many requests as A, by the limit of rates or one, as a share in percent of all.
fn each_second(a: &TrafficMix, b: &TrafficMix) -> FeaturePair {
    let [a, b] = [a, b].map(|mix| parts(&active(&mix.seconds, |second| &second.requests), TENTHS));
    let is_alike = |(a, b): &(&f64, &f64)| (**a - **b).abs() <= (**a * RATE.by / 100.0).max(1.0);
    let alike = a.iter().zip(&b).filter(is_alike).count() as f64;
    let share = (!a.is_empty()).then(|| alike / a.len().max(b.len()) as f64 * 100.0);
    let feature = format!("seconds with as many requests, to {} %", RATE.by);
    FeaturePair::new(feature, [share.map(|_| 100.0), share], SHARE)
}

/// A percentile; `None` if fewer than ten samples lie above it.
fn quantile(counts: &ValueCounts, percent: f64) -> Option<f64> {
    let above = counts.total() as f64 * (100.0 - percent) / 100.0;
    counts.quantile(percent / 100.0).filter(|_| above >= 10.0).map(|value| value as f64)
}

/// The share of the connections that the tenth of the clients with the most have.
fn busiest(clients: &ValueCounts) -> Option<f64> {
    let all: f64 = clients.mean() * clients.total() as f64;
    let mut left = clients.total() as f64 / 10.0;
    let mut sum = 0.0;
    let mut counts: Vec<_> = clients.iter().collect();
    counts.reverse();
    for (connections, n) in counts {
        let taken = (n as f64).min(left);
        sum += taken * connections as f64;
        left -= taken;
    }
    (all > 0.0).then(|| sum / all)
}

fn number(value: Option<f64>, is_share: bool) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if is_share => format!("{value:.1} %"),
        Some(value) if value < 100.0 => format!("{value:.2}"),
        Some(value) => records::text::quantity::grouped(value.round()),
    }
}

#[cfg(test)]
mod tests {
    use records::values::MixDistributions;

    use super::*;

    fn sizes(of_responses: &str) -> MixDistributions {
        MixDistributions { bytes_out: of_responses.parse().unwrap(), ..MixDistributions::default() }
    }

    fn mix(tenth: impl Fn(usize) -> u64) -> TrafficMix {
        let second = |at: usize| Second {
            full: 1,
            resumed: 4,
            requests: std::array::from_fn(|of| tenth(at * TENTHS + of)),
            ..Second::default()
        };
        TrafficMix {
            seconds: (0..60).map(second).collect(),
            distributions: sizes("13:90 10112:10"),
            clients: "1:90 91:10".parse().unwrap(),
            ..TrafficMix::default()
        }
    }

    fn difference(comparison: &MixComparison, feature: &str) -> (Option<f64>, Option<bool>) {
        let pair = comparison.features.iter().find(|pair| pair.feature == feature);
        let pair = pair.unwrap_or_else(|| panic!("no {feature}"));
        (pair.difference, pair.is_alike)
    }

    #[test]
    fn the_same_mix_is_alike_although_it_begins_later() {
        let a = mix(|at| (at % 7) as u64);
        let mut b = a.clone();
        b.seconds.insert(0, Second::default());
        let comparison = MixComparison::new(&a, &b);
        assert_eq!(comparison.differing().count(), 0, "{}", comparison.text());
        assert_eq!(difference(&comparison, "resumed").1, None.or(Some(true)));
    }

    #[test]
    fn bursts_show_in_the_dispersion_although_the_rate_is_the_same() {
        let even = mix(|_| 2);
        let bursts = mix(|at| if at % TENTHS == 0 { 20 } else { 0 });
        let comparison = MixComparison::new(&even, &bursts);
        assert_eq!(difference(&comparison, "requests a second").1, Some(true));
        assert_eq!(difference(&comparison, "requests, dispersion at 0.1 s").1, Some(false));
        assert_eq!(difference(&comparison, "requests, dispersion at 1 s").1, Some(true));
        assert!(comparison.text().contains("more than 20 %"));
    }

    #[test]
    fn other_sizes_and_other_clients_differ() {
        let a = mix(|_| 2);
        let b = TrafficMix {
            distributions: sizes("13:50 10112:50"),
            clients: "10:100".parse().unwrap(),
            ..a.clone()
        };
        let comparison = MixComparison::new(&a, &b);
        let named: Vec<_> = comparison.differing().map(|pair| &*pair.feature).collect();
        assert_eq!(named, ["bytes of responses, p90", "connections of the busiest tenth of clients"]);
    }
}
