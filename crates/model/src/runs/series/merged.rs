//! Series of several runs as one.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::sync::Arc;

use super::{Interval, MetricSeries, Rollup};
use records::metrics::Metric;

impl<C: Metric, L: Metric> MetricSeries<C, L> {
    /// Several series as one, each with the shift of its clock to the common one; `None` if there are none.
    pub(in crate::runs) fn merged<'a>(all: impl Iterator<Item = (Option<&'a Self>, i64)>) -> Option<Self>
    where
        C: 'a,
        L: 'a,
    {
        let parts: &[(&Self, i64)] =
            &all.filter_map(|(series, shift_us)| Some((series?, shift_us))).collect::<Vec<_>>();
        if parts.is_empty() {
            return None;
        }
        let mut merged = Self::new(None, 1);
        for (series, shift_us) in parts {
            merged.totals.add(&series.totals);
            merged.samples_total.add(&series.samples_total);
            merged.whole.add(&series.whole);
            merged.last_us = merged.last_us.max(series.last_us.saturating_add_signed(*shift_us));
        }
        merged.begun = true;
        merged.intervals = intervals(parts);
        merged.history = merged.intervals.len().max(1);
        merged.buckets = merged.intervals.iter().map(|interval| interval.buckets()).sum();
        Some(merged)
    }

    /// The usual length of its intervals, in microseconds; of the rolled-up ones, if there are any.
    fn width_us(&self) -> u64 {
        let rolled_up = self.rollup.iter().flat_map(Rollup::iter);
        let mut lengths: Vec<u64> = rolled_up.map(|interval| interval.length_us()).collect();
        if lengths.is_empty() {
            lengths.extend(self.intervals.iter().map(|interval| interval.length_us()));
        }
        lengths.sort_unstable();
        lengths.get(lengths.len() / 2).copied().unwrap_or(0)
    }
}

/// An interval, with the shift of its clock to the common one.
type Shifted<'a, C, L> = (&'a Interval<C, L>, i64);

/// The intervals of all series on a common grid. Ticks wander by milliseconds, so the intervals of each series are
/// counted from its first one: then no series has two in one period and none in the next.
fn intervals<C: Metric, L: Metric>(parts: &[(&MetricSeries<C, L>, i64)]) -> VecDeque<Arc<Interval<C, L>>> {
    let width_us = parts.iter().map(|(series, _)| series.width_us()).max().unwrap_or(0).max(1);
    let beginning = |(series, shift_us): &(&MetricSeries<C, L>, i64)| {
        let first = series.timeline().next()?;
        Some((
            first.start_us.saturating_add_signed(*shift_us),
            moment_us(first).saturating_add_signed(*shift_us),
        ))
    };
    let Some(began_us) = parts.iter().filter_map(beginning).map(|(start_us, _)| start_us).min() else {
        return VecDeque::new();
    };
    let mut periods: BTreeMap<u64, Vec<Shifted<'_, C, L>>> = BTreeMap::new();
    for part @ (series, shift_us) in parts {
        let Some((_, first_us)) = beginning(part) else { continue };
        let first_at = (first_us - began_us.min(first_us)) / width_us;
        for interval in series.timeline() {
            let since_us = moment_us(interval).saturating_add_signed(*shift_us).saturating_sub(first_us);
            let at = first_at + (since_us + width_us / 2) / width_us;
            periods.entry(at).or_default().push((interval, *shift_us));
        }
    }
    let together = |(at, all): (u64, Vec<Shifted<'_, C, L>>)| {
        if let ([(interval, shift_us)], [_]) = (&*all, parts) {
            return Arc::new(Interval {
                start_us: interval.start_us.saturating_add_signed(*shift_us),
                end_us: interval.end_us.saturating_add_signed(*shift_us),
                ..(*interval).clone()
            });
        }
        let start_us = began_us + at * width_us;
        let intervals: Vec<_> = all.into_iter().map(|(interval, _)| interval).collect();
        Arc::new(Interval::merged((start_us, start_us + width_us), &intervals, |units| units))
    };
    periods.into_iter().map(together).collect()
}

/// The moment that decides the period of an interval. The last one of a run may have no length: it belongs to the
/// period that ends with it.
fn moment_us<C: Metric, L: Metric>(interval: &Interval<C, L>) -> u64 {
    interval.place_us().min(interval.end_us.saturating_sub(1))
}
