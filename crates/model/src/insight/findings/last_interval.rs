//! The last interval of a run, for the sums of the last minutes.

use crate::runs::findings::{HostCounts, RecentSums, RunCounts};
use crate::runs::{MetricSeries, Run};
use records::metrics::{Counters, Dimension, Metric, UsageCounter};

/// Adds the last interval of each part, and gives its end; `None` if there is none that is new.
pub(super) fn add(sums: &mut RecentSums, run: &Run) -> Option<u64> {
    let [proxy, tls, http, load] = &mut sums.seen_us;
    let before = [*proxy, *load];
    // A refused record is carried by the next one, and a record that journald dropped is missing among those read.
    let lost = run.reading().lost().saturating_add(run.health().dropped_total);
    let host = run.host().map_or_else(HostCounts::default, HostCounts::so_far);
    let not_covered = run.usage().of(Dimension::Name).map(|(_, counters)| counters[UsageCounter::NotCovered]);
    let not_covered = not_covered.fold(0, u64::saturating_add);
    let counted = RunCounts {
        proxy: latest(run.proxy(), proxy),
        tls: latest(run.tls(), tls),
        http: latest(run.http(), http),
        load: latest(run.load(), load),
        host: host.since(&sums.host_before.unwrap_or(host)),
        not_covered: not_covered.saturating_sub(sums.not_covered),
        records_lost: lost.saturating_sub(sums.lost),
        span_us: length_us(run.proxy()).or_else(|| length_us(run.load())).unwrap_or(0),
    };
    if before == [*proxy, *load] {
        return None;
    }
    let now_us = (*proxy).max(*load);
    (sums.lost, sums.not_covered, sums.host_before) = (lost, not_covered, Some(host));
    sums.push(now_us, &counted);
    Some(now_us)
}

/// The length of the last interval of a series.
fn length_us<C: Metric, L: Metric>(series: Option<&MetricSeries<C, L>>) -> Option<u64> {
    Some(series?.intervals().next_back()?.length_us())
}

/// The counts of the last interval of a series, unless they were read before.
fn latest<C: Metric, L: Metric>(series: Option<&MetricSeries<C, L>>, seen_us: &mut u64) -> Counters<C> {
    let last = series.and_then(|series| series.intervals().next_back());
    let new = last.filter(|interval| interval.end_us > *seen_us);
    new.map_or_else(Counters::default, |interval| {
        *seen_us = interval.end_us;
        interval.counters
    })
}
