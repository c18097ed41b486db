//! A metric with its samples, as text.

use std::fmt::{self, Write as _};
use std::io::{self, Write as _};

use super::native::NativeBuckets;

/// A label: its name and value.
pub(super) type Label = (&'static str, String);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetricKind {
    /// A total of the run; its samples are named with `_total`.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// Latencies in seconds, by cumulative buckets.
    Histogram,
}

/// A format of an answer. A greater one says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MetricsFormat {
    /// The text format of Prometheus, version 0.0.4.
    Prometheus,
    /// `OpenMetrics` 1.0.
    OpenMetrics,
    /// Prometheus' messages of protobuf, each behind its length: the only format with native histograms.
    Protobuf,
}

/// A metric with all its samples.
#[derive(Debug)]
pub(super) struct Family {
    name: &'static str,
    pub(super) kind: MetricKind,
    pub(super) help: String,
    pub(super) samples: Vec<(Vec<Label>, SampleValue)>,
}

#[derive(Debug)]
pub(super) enum SampleValue {
    Number(f64),
    Histogram(HistogramSample),
}

/// A histogram of latencies in seconds, by classic and by native buckets.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HistogramSample {
    /// The sum of all samples, in seconds.
    pub(super) sum: f64,
    pub(super) count: u64,
    /// The upper bound of each bucket with the samples of this bucket alone. The last bound is infinite.
    pub(super) buckets: Vec<(f64, u64)>,
    pub(super) native: NativeBuckets,
}

impl MetricKind {
    fn suffix(self) -> &'static str {
        match self {
            Self::Counter => "_total",
            Self::Gauge | Self::Histogram => "",
        }
    }
}

impl fmt::Display for MetricKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        })
    }
}

impl MetricsFormat {
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

impl Family {
    pub(super) fn counter(
        name: &'static str,
        help: &str,
        samples: impl IntoIterator<Item = (Vec<Label>, f64)>,
    ) -> Self {
        Self::new(name, MetricKind::Counter, help, numbers(samples))
    }

    pub(super) fn gauge(
        name: &'static str,
        help: &str,
        samples: impl IntoIterator<Item = (Vec<Label>, f64)>,
    ) -> Self {
        Self::new(name, MetricKind::Gauge, help, numbers(samples))
    }

    pub(super) fn histogram(
        name: &'static str,
        help: &str,
        samples: impl IntoIterator<Item = (Vec<Label>, HistogramSample)>,
    ) -> Self {
        let samples = samples.into_iter().map(|(labels, value)| (labels, SampleValue::Histogram(value)));
        Self::new(name, MetricKind::Histogram, help, samples.collect())
    }

    fn new(
        name: &'static str,
        kind: MetricKind,
        help: &str,
        samples: Vec<(Vec<Label>, SampleValue)>,
    ) -> Self {
        Self { name, kind, help: help.to_owned(), samples }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// The name. `OpenMetrics` names the metric without the suffix of its samples.
    pub(super) fn full_name(&self, prefix: &str, format: MetricsFormat) -> String {
        let suffix = match format {
            MetricsFormat::OpenMetrics => "",
            MetricsFormat::Protobuf | MetricsFormat::Prometheus => self.kind.suffix(),
        };
        format!("{prefix}{}{suffix}", self.name)
    }

    /// Writes the metric in one of the two text formats.
    pub(super) fn write_text(
        &self,
        text: &mut Vec<u8>,
        prefix: &str,
        format: MetricsFormat,
    ) -> io::Result<()> {
        let Self { name, kind, help, samples } = self;
        let full_name = self.full_name(prefix, format);
        writeln!(text, "# HELP {full_name} {}", Escaped(help))?;
        writeln!(text, "# TYPE {full_name} {kind}")?;
        for (labels, value) in samples {
            match value {
                SampleValue::Number(value) => {
                    writeln!(text, "{prefix}{name}{}{} {value}", kind.suffix(), Labels(labels, None))?;
                }
                SampleValue::Histogram(histogram) => {
                    for (bound, count) in histogram.cumulative_buckets() {
                        writeln!(text, "{prefix}{name}_bucket{} {count}", Labels(labels, Some(bound)))?;
                    }
                    let HistogramSample { sum, count, .. } = histogram;
                    let labels = Labels(labels, None);
                    writeln!(text, "{prefix}{name}_sum{labels} {sum}")?;
                    writeln!(text, "{prefix}{name}_count{labels} {count}")?;
                }
            }
        }
        Ok(())
    }
}

impl HistogramSample {
    /// The upper bound of each classic bucket, with the samples up to it.
    pub(super) fn cumulative_buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        self.buckets.iter().scan(0, |below, (bound, count)| {
            *below += count;
            Some((*bound, *below))
        })
    }
}

fn numbers(samples: impl IntoIterator<Item = (Vec<Label>, f64)>) -> Vec<(Vec<Label>, SampleValue)> {
    samples.into_iter().map(|(labels, value)| (labels, SampleValue::Number(value))).collect()
}

/// The labels of a sample in braces, with the bound of a bucket; nothing without any.
struct Labels<'a>(&'a [Label], Option<f64>);

impl fmt::Display for Labels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(labels, bound) = self;
        let mut before = '{';
        for (name, value) in *labels {
            write!(f, "{before}{name}=\"{}\"", Escaped(value))?;
            before = ',';
        }
        match bound {
            Some(bound) if bound.is_finite() => write!(f, "{before}le=\"{bound}\"}}"),
            Some(_) => write!(f, "{before}le=\"+Inf\"}}"),
            None if labels.is_empty() => Ok(()),
            None => f.write_str("}"),
        }
    }
}

/// Text in which backslashes, quotes and line ends are escaped.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '\\' => f.write_str("\\\\"),
            '"' => f.write_str("\\\""),
            '\n' => f.write_str("\\n"),
            c => f.write_char(c),
        })
    }
}

#[cfg(test)]
mod tests {
    use records::metrics::TimeResolution;

    use super::*;

    fn text(family: &Family, format: MetricsFormat) -> String {
        let mut text = Vec::new();
        family.write_text(&mut text, "x_", format).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn buckets_are_cumulative_and_end_at_infinity() {
        let buckets = vec![(0.1, 2), (f64::INFINITY, 1)];
        let native = NativeBuckets::new(TimeResolution::FINE);
        let histogram = HistogramSample { sum: 1.25, count: 3, buckets, native };
        let family =
            Family::histogram("a_seconds", "how long", [(vec![("kind", "full".to_owned())], histogram)]);
        assert_eq!(
            text(&family, MetricsFormat::Prometheus),
            "# HELP x_a_seconds how long\n# TYPE x_a_seconds histogram\n\
             x_a_seconds_bucket{kind=\"full\",le=\"0.1\"} 2\nx_a_seconds_bucket{kind=\"full\",le=\"+Inf\"} 3\n\
             x_a_seconds_sum{kind=\"full\"} 1.25\nx_a_seconds_count{kind=\"full\"} 3\n"
        );
    }

    #[test]
    fn only_the_older_format_names_a_counter_with_its_suffix() {
        let family = Family::counter("a", "how many", [(Vec::new(), 7.0)]);
        assert_eq!(
            text(&family, MetricsFormat::OpenMetrics),
            "# HELP x_a how many\n# TYPE x_a counter\nx_a_total 7\n"
        );
        assert_eq!(
            text(&family, MetricsFormat::Prometheus),
            "# HELP x_a_total how many\n# TYPE x_a_total counter\nx_a_total 7\n"
        );
    }

    #[test]
    fn hostile_label_values_stay_within_their_quotes() {
        let family = Family::gauge("a", "h", [(vec![("route", "/\\\"}\n# EOF".to_owned())], 1.0)]);
        assert!(text(&family, MetricsFormat::OpenMetrics).ends_with("x_a{route=\"/\\\\\\\"}\\n# EOF\"} 1\n"));
    }
}
