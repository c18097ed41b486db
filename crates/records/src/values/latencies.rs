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

/// The field of a class with samples in the interval. One field, as each costs a journal a hundred bytes beside its value.
const LATENCY: &str = "LATENCY";
/// The field of a class that had samples before.
const SAMPLES_TOTAL: &str = "SAMPLES_TOTAL";

/// The fields of one class, by their suffix.
const SUFFIXES: [(&str, Unit, &str, &str); 2] = [
    (LATENCY, Unit::Histogram, "total=240 sum=901233012 max=19822301 hist=HISTFAAAAC…", ""),
    (
        SAMPLES_TOTAL,
        Unit::Count,
        "240",
        "In place of it, if the interval has no samples: those of the run so far.",
    ),
];

fn suffixed(prefix: &Field, suffix: &str) -> Cow<'static, str> {
    Cow::Owned(format!("{}_{suffix}", prefix.name))
}

/// The value of [`LATENCY`].
fn packed(latency: &Latency) -> String {
    let interval = &latency.interval;
    let saturated = match interval.saturated() {
        0 => String::new(),
        saturated => format!(" saturated={saturated}"),
    };
    format!(
        "total={} sum={} max={}{saturated} hist={}",
        latency.samples_total,
        interval.sum_ns(),
        interval.max_ns(),
        encoding::encode(interval)
    )
}

/// Reads the value of [`LATENCY`]; `None` if it is malformed. Later versions may add words.
fn unpacked(text: &str) -> Option<Latency> {
    let ([mut total, mut sum, mut max, mut saturated], mut hist) = ([0; 4], "");
    for (name, value) in text.split(' ').filter_map(|word| word.split_once('=')) {
        let into = match name {
            "total" => &mut total,
            "sum" => &mut sum,
            "max" => &mut max,
            "saturated" => &mut saturated,
            "hist" => {
                hist = value;
                continue;
            }
            _ => continue,
        };
        *into = value.parse().ok()?;
    }
    let interval = encoding::decode(hist).ok()?.with_exact(sum, max, saturated);
    Some(Latency { samples_total: total, interval })
}

/// Reads a class of an older recording, which has a field for each number.
fn of_several_fields(prefix: &Field, from: &dyn FieldSource) -> Result<Latency, DecodeError> {
    let samples_total = number(&suffixed(prefix, SAMPLES_TOTAL), from)?;
    let hist = suffixed(prefix, "HIST");
    let Some(text) = from.text(&hist) else {
        return Ok(Latency { samples_total, interval: SparseHistogram::default() });
    };
    let interval = encoding::decode(text).map_err(|_| malformed(hist))?.with_exact(
        number(&suffixed(prefix, "SUM_NS"), from)?,
        number(&suffixed(prefix, "MAX_NS"), from)?,
        number(&suffixed(prefix, "SATURATED"), from)?,
    );
    Ok(Latency { samples_total, interval })
}

impl<M: Metric> WireField for Latencies<M> {
    fn put(&self, _: &'static Field, out: &mut EntryBuf) {
        for (class, latency) in self.iter() {
            let prefix = class.field();
            if !latency.interval.is_empty() {
                out.push(&suffixed(prefix, LATENCY), packed(latency).as_bytes());
            } else if latency.samples_total > 0 {
                out.push_display(&suffixed(prefix, SAMPLES_TOTAL), latency.samples_total);
            }
        }
    }

    fn get(_: &'static Field, from: &dyn FieldSource) -> Result<Self, DecodeError> {
        let mut latencies = Self::default();
        for &class in M::ALL {
            let prefix = class.field();
            let name = suffixed(prefix, LATENCY);
            latencies[class] = match from.text(&name) {
                Some(text) => unpacked(text).ok_or_else(|| malformed(name))?,
                None => of_several_fields(prefix, from)?,
            };
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
                meaning: if meaning.is_empty() { prefix.meaning.clone() } else { Cow::Borrowed(meaning) },
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::ProxyLatency;
    use crate::wire::FAMILY;

    /// Two exchanges of this interval, one of them saturated, and a full handshake before it.
    fn latencies() -> Latencies<ProxyLatency> {
        let mut interval = Histograms::<ProxyLatency>::default();
        interval[ProxyLatency::Exchange].record_ns(250_000);
        interval[ProxyLatency::Exchange].record_ns(61_000_000_000);
        let mut totals = Counters::default();
        totals[ProxyLatency::Exchange] = 9;
        totals[ProxyLatency::HandshakeFull] = 4;
        Latencies::new(&interval, &totals)
    }

    fn read(entry: &EntryBuf) -> Result<Latencies<ProxyLatency>, DecodeError> {
        Latencies::get(&FAMILY, entry)
    }

    /// The entry with the value of the exchange changed.
    fn changed(change: impl Fn(&str) -> String) -> EntryBuf {
        let (mut entry, mut out) = (EntryBuf::new(), EntryBuf::new());
        latencies().put(&FAMILY, &mut entry);
        for (name, value) in entry.iter() {
            let text = str::from_utf8(value).unwrap();
            let is_packed = name == "TLSDASH_EXCHANGE_LATENCY";
            out.push(name, if is_packed { change(text) } else { text.to_owned() }.as_bytes());
        }
        out
    }

    #[test]
    fn a_class_is_one_field_whatever_later_versions_add() {
        let entry = changed(str::to_owned);
        assert_eq!(entry.iter().count(), 2, "one field for each of two classes");
        assert_eq!(read(&entry).as_ref(), Ok(&latencies()));
        assert_eq!(read(&changed(|text| format!("later=x {text} more"))), Ok(latencies()));
        for damaged in [
            changed(|text| text.replace("max=", "max=-")),
            changed(|text| text.replace("hist=HIST", "hist=LIST")),
            changed(|_| String::new()),
        ] {
            assert_eq!(read(&damaged), Err(malformed("TLSDASH_EXCHANGE_LATENCY")));
        }
    }

    #[test]
    fn older_recordings_have_a_field_for_each_number() {
        let expected = latencies();
        let Latency { samples_total, interval } = &expected[ProxyLatency::Exchange];
        let mut entry = EntryBuf::new();
        entry.push("TLSDASH_HANDSHAKE_FULL_SAMPLES_TOTAL", b"4");
        entry.push_display("TLSDASH_EXCHANGE_SAMPLES_TOTAL", samples_total);
        entry.push("TLSDASH_EXCHANGE_HIST", encoding::encode(interval).as_bytes());
        entry.push_display("TLSDASH_EXCHANGE_SUM_NS", interval.sum_ns());
        entry.push_display("TLSDASH_EXCHANGE_MAX_NS", interval.max_ns());
        entry.push_display("TLSDASH_EXCHANGE_SATURATED", interval.saturated());
        assert_eq!(read(&entry), Ok(expected));
    }
}
