//! Latencies as records carry them.

use crate::histogram::{Histograms, SparseHistogram, encoding};
use crate::metrics::{Counters, Field, Metric, Unit};
use crate::wire::{DecodeError, FieldSource, WireField, malformed, number};
use journal::EntryBuf;
use std::borrow::Cow;

/// The latencies of one class in a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Samples of the run. If it grew by more than the number in `interval` since the last record read, a histogram
    /// was lost.
    pub samples_total: u64,
    /// The samples of this record's interval.
    pub interval: SparseHistogram,
}

/// The latencies of all classes of a family in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latencies<M: Metric> {
    classes: Vec<Latency>,
    family: std::marker::PhantomData<M>,
}

impl<M: Metric> Default for Latencies<M> {
    fn default() -> Self {
        Self { classes: vec![Latency::default(); M::ALL.len()], family: std::marker::PhantomData }
    }
}

impl<M: Metric> Latencies<M> {
    /// Creates them from an interval's histograms and the run's sample counts at its end.
    pub fn new(interval: &Histograms<M>, samples_total: &Counters<M>) -> Self {
        let class = |(class, histogram): (M, &crate::histogram::Histogram)| Latency {
            samples_total: samples_total[class],
            interval: histogram.to_sparse(),
        };
        Self { classes: interval.iter().map(class).collect(), family: std::marker::PhantomData }
    }

    /// Counts samples from an earlier record on.
    pub(crate) fn rebase(&mut self, before: &Self) {
        for (latency, before) in self.classes.iter_mut().zip(&before.classes) {
            latency.samples_total = latency.samples_total.saturating_sub(before.samples_total);
        }
    }

    /// Adds the samples of the record before.
    pub(crate) fn downsample(&mut self, earlier: &Self) {
        for (latency, earlier) in self.classes.iter_mut().zip(&earlier.classes) {
            latency.interval = SparseHistogram::merged([&latency.interval, &earlier.interval]);
        }
    }

    /// Keeps only the sample counts, without histograms.
    pub(crate) fn without_intervals(&self) -> Self {
        let counted =
            |latency: &Latency| Latency { samples_total: latency.samples_total, ..Latency::default() };
        Self { classes: self.classes.iter().map(counted).collect(), family: self.family }
    }

    pub fn iter(&self) -> impl Iterator<Item = (M, &Latency)> {
        M::ALL.iter().copied().zip(&self.classes)
    }
}

impl<M: Metric> std::ops::Index<M> for Latencies<M> {
    type Output = Latency;

    fn index(&self, class: M) -> &Latency {
        &self.classes[class.index()]
    }
}

impl<M: Metric> std::ops::IndexMut<M> for Latencies<M> {
    fn index_mut(&mut self, class: M) -> &mut Latency {
        &mut self.classes[class.index()]
    }
}

/// The fields of one class, by their suffix.
const SUFFIXES: [(&str, Unit, &str, &str); 5] = [
    ("SAMPLES_TOTAL", Unit::Count, "240", "Samples of the run so far:"),
    ("HIST", Unit::Histogram, "HISTFAAAAC…", "Samples of the interval (absent if none):"),
    ("SUM_NS", Unit::Nanos, "901233012", "Exact sum over the interval:"),
    ("MAX_NS", Unit::Nanos, "19822301", "Exact maximum of the interval:"),
    ("SATURATED", Unit::Count, "1", "Samples of the interval above 60 s (absent if none):"),
];

fn suffixed(prefix: &Field, suffix: &str) -> Cow<'static, str> {
    Cow::Owned(format!("{}_{suffix}", prefix.name))
}

impl<M: Metric> WireField for Latencies<M> {
    fn put(&self, _: &'static Field, out: &mut EntryBuf) {
        for (class, latency) in self.iter() {
            let prefix = class.field();
            let interval = &latency.interval;
            if latency.samples_total > 0 {
                out.push_display(&suffixed(prefix, "SAMPLES_TOTAL"), latency.samples_total);
            }
            if interval.is_empty() {
                continue;
            }
            out.push(&suffixed(prefix, "HIST"), encoding::encode(interval).as_bytes());
            out.push_display(&suffixed(prefix, "SUM_NS"), interval.sum_ns());
            out.push_display(&suffixed(prefix, "MAX_NS"), interval.max_ns());
            if interval.saturated() > 0 {
                out.push_display(&suffixed(prefix, "SATURATED"), interval.saturated());
            }
        }
    }

    fn get(_: &'static Field, from: &dyn FieldSource) -> Result<Self, DecodeError> {
        let mut latencies = Self::default();
        for &class in M::ALL {
            let prefix = class.field();
            let samples_total = number(&suffixed(prefix, "SAMPLES_TOTAL"), from)?;
            let hist = suffixed(prefix, "HIST");
            let interval = match from.text(&hist) {
                None => SparseHistogram::default(),
                Some(text) => encoding::decode(text).map_err(|_| malformed(hist))?.with_exact(
                    number(&suffixed(prefix, "SUM_NS"), from)?,
                    number(&suffixed(prefix, "MAX_NS"), from)?,
                    number(&suffixed(prefix, "SATURATED"), from)?,
                ),
            };
            latencies[class] = Latency { samples_total, interval };
        }
        Ok(latencies)
    }

    fn describe(_: &'static Field, into: &mut Vec<Field>) {
        for class in M::ALL {
            let prefix = class.field();
            into.extend(SUFFIXES.iter().map(|&(suffix, unit, example, meaning)| Field {
                name: suffixed(prefix, suffix),
                unit,
                example,
                meaning: Cow::Owned(format!("{meaning} {}", prefix.meaning)),
            }));
        }
    }
}
