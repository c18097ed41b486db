//! A metric as a message of protobuf: the part of Prometheus' `io/prometheus/client/metrics.proto` that it takes.

use prost::{Enumeration, Message};

use super::family::{Family, HistogramSample, Label, MetricKind, MetricsFormat, SampleValue};
use super::native::{NativeBuckets, SCHEMA};

#[derive(Clone, PartialEq, Message)]
pub(super) struct MetricFamily {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) help: String,
    #[prost(enumeration = "MetricType", tag = "3")]
    pub(super) r#type: i32,
    #[prost(message, repeated, tag = "4")]
    pub(super) metric: Vec<MetricMessage>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(super) enum MetricType {
    Counter = 0,
    Gauge = 1,
    Histogram = 4,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct MetricMessage {
    #[prost(message, repeated, tag = "1")]
    pub(super) label: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    pub(super) gauge: Option<Number>,
    #[prost(message, optional, tag = "3")]
    pub(super) counter: Option<Number>,
    #[prost(message, optional, tag = "7")]
    pub(super) histogram: Option<HistogramMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LabelPair {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

/// A `Gauge` or a `Counter`.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Number {
    #[prost(double, tag = "1")]
    pub(super) value: f64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HistogramMessage {
    #[prost(uint64, tag = "1")]
    pub(super) sample_count: u64,
    #[prost(double, tag = "2")]
    pub(super) sample_sum: f64,
    /// The classic buckets.
    #[prost(message, repeated, tag = "3")]
    pub(super) bucket: Vec<Bucket>,
    #[prost(sint32, tag = "5")]
    pub(super) schema: i32,
    #[prost(double, tag = "6")]
    pub(super) zero_threshold: f64,
    #[prost(uint64, tag = "7")]
    pub(super) zero_count: u64,
    #[prost(message, repeated, tag = "12")]
    pub(super) positive_span: Vec<BucketSpan>,
    /// The count of each native bucket, less that of the one before.
    #[prost(sint64, repeated, tag = "13")]
    pub(super) positive_delta: Vec<i64>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Bucket {
    #[prost(uint64, tag = "1")]
    pub(super) cumulative_count: u64,
    #[prost(double, tag = "2")]
    pub(super) upper_bound: f64,
}

/// Native buckets in a row.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct BucketSpan {
    /// The index of the first bucket; in a later span, the number of buckets left out before it.
    #[prost(sint32, tag = "1")]
    pub(super) offset: i32,
    #[prost(uint32, tag = "2")]
    pub(super) length: u32,
}

/// Writes a metric behind its length.
pub(super) fn write(family: &Family, bytes: &mut Vec<u8>, prefix: &str) {
    let message = MetricFamily {
        name: family.full_name(prefix, MetricsFormat::Protobuf),
        help: family.help.clone(),
        r#type: MetricType::from(family.kind).into(),
        metric: family.samples.iter().map(|(labels, value)| metric(family.kind, labels, value)).collect(),
    };
    message.encode_length_delimited(bytes).expect("a vector has room for a message that fits in memory");
}

impl From<MetricKind> for MetricType {
    fn from(kind: MetricKind) -> Self {
        match kind {
            MetricKind::Counter => Self::Counter,
            MetricKind::Gauge => Self::Gauge,
            MetricKind::Histogram => Self::Histogram,
        }
    }
}

fn metric(kind: MetricKind, labels: &[Label], value: &SampleValue) -> MetricMessage {
    let label = |(name, value): &Label| LabelPair { name: (*name).to_owned(), value: value.clone() };
    let message = MetricMessage { label: labels.iter().map(label).collect(), ..MetricMessage::default() };
    match (kind, value) {
        (_, SampleValue::Histogram(sample)) => {
            MetricMessage { histogram: Some(histogram(sample)), ..message }
        }
        (MetricKind::Counter, SampleValue::Number(value)) => {
            MetricMessage { counter: Some(Number { value: *value }), ..message }
        }
        (_, SampleValue::Number(value)) => MetricMessage { gauge: Some(Number { value: *value }), ..message },
    }
}

fn histogram(sample: &HistogramSample) -> HistogramMessage {
    let NativeBuckets { zero_threshold, zero_count, positive } = &sample.native;
    let buckets = sample.cumulative_buckets();
    let mut message = HistogramMessage {
        sample_count: sample.count,
        sample_sum: sample.sum,
        bucket: buckets
            .map(|(upper_bound, cumulative_count)| Bucket { cumulative_count, upper_bound })
            .collect(),
        schema: SCHEMA,
        zero_threshold: *zero_threshold,
        zero_count: *zero_count,
        ..HistogramMessage::default()
    };
    let (mut next, mut before) = (0, 0);
    for (index, count) in positive {
        match message.positive_span.last_mut() {
            Some(span) if *index == next => span.length += 1,
            _ => message.positive_span.push(BucketSpan { offset: index - next, length: 1 }),
        }
        message.positive_delta.push(*count as i64 - before);
        (next, before) = (index + 1, *count as i64);
    }
    message
}
