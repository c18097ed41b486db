//! Compares two finished runs. The result is weaker than an experiment: nothing was alternated, so a difference may
//! come from anything else that differed between the runs. It says whether the runs differ, never which is better.
//!
//! The seconds of a run depend on each other: other tenants are busy for a while, a queue drains. So the unit is a
//! quarter of the run ("batch means"). The figures of four quarters of each run are compared by Student's t with three
//! degrees of freedom, which holds for quarters of unequal variance (R. Ibragimov and U. K. Müller, t-Statistic Based
//! Correlation and Heterogeneity Robust Inference, 2010; Inference with Few Heterogeneous Clusters, 2016). An effect
//! that lasts longer than a quarter counts as a difference.

use std::time::Duration;

use model::runs::{MetricSeries, Run};
use records::kinds::Estimate;
use records::metrics::{Counters, CpuGroup};

use crate::block::{Block, BlockValue, Observation, SideInterval};
use crate::comparable_figure::ComparableFigure;
use crate::estimate::{BATCHES, estimate_unpaired};
use crate::verdict::too_thin;

/// The fewest blocks of each run: one per quarter.
pub const BLOCKS_MIN: usize = BATCHES;
/// Error rate over all compared figures together.
const ALPHA: f64 = 0.05;
/// The highest error rate of one figure, however few are compared. Other load that lasts as long as a quarter makes
/// quarters alike, and then the true error rate is higher than the nominal one.
const ALPHA_OF_ONE: f64 = 0.01;

/// The error rate of one of this many figures (Bonferroni).
pub fn alpha_of(figures: usize) -> f64 {
    (ALPHA / figures.max(1) as f64).min(ALPHA_OF_ONE)
}

/// Whether a figure of two runs differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareOutcome {
    /// The figure differs by more than it varies within the runs.
    Differs,
    /// No difference is shown, which does not prove that there is none.
    NoDifference,
    /// Too few blocks or samples to say.
    Inconclusive,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FigureComparison {
    pub finding: CompareOutcome,
    /// The reason; empty if the estimate gives it.
    pub reason: String,
    /// The difference; `None` with too few samples.
    pub estimate: Option<Estimate>,
}

/// The blocks of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunBlocks {
    /// Each block's contribution to each figure.
    pub values: Vec<Vec<BlockValue>>,
    /// When each block ended, `CLOCK_MONOTONIC` in microseconds.
    pub ends_us: Vec<u64>,
}

/// Cuts a run's kept intervals into blocks, without the first `discard`. Incomplete blocks are left out, and so is the
/// rest at the end. With blocks of no length each interval is one.
pub fn blocks(run: &Run, metrics: &[ComparableFigure], block: Duration, discard: Duration) -> RunBlocks {
    let began_us = run.last_us().saturating_sub(run.duration_us());
    let from_us = began_us + discard.as_micros() as u64;
    let block_us = block.as_micros() as u64;
    let mut current = Block::new(metrics);
    let mut current_began_us = None;
    let mut done = RunBlocks::default();
    for moment in observations(run).into_iter().filter(|moment| moment.start_us >= from_us) {
        current.add(&moment, metrics);
        let began_us = *current_began_us.get_or_insert(moment.start_us);
        // Ticks jitter by milliseconds.
        if moment.end_us + moment.span_us() / 10 >= began_us + block_us {
            if let Some(values) = current.values(metrics) {
                done.values.push(values);
                done.ends_us.push(moment.end_us);
            }
            current.clear();
            current_began_us = None;
        }
    }
    done
}

/// Returns the contribution of each time range to each figure; `None` if the range is incomplete. Ranges are in
/// microseconds of `CLOCK_MONOTONIC`.
pub fn blocks_between(
    run: &Run,
    metrics: &[ComparableFigure],
    ranges: &[(u64, u64)],
) -> Vec<Option<Vec<BlockValue>>> {
    let observations = observations(run);
    let mut block = Block::new(metrics);
    let values = |&(from_us, until_us): &(u64, u64)| {
        block.clear();
        let first = observations.partition_point(|moment| moment.end_us <= from_us);
        for moment in observations[first..].iter().take_while(|moment| moment.start_us < until_us) {
            // Ticks jitter by milliseconds.
            let slack_us = moment.span_us() / 10;
            if moment.start_us + slack_us >= from_us && moment.end_us <= until_us + slack_us {
                block.add(moment, metrics);
            }
        }
        block.values(metrics)
    };
    ranges.iter().map(values).collect()
}

/// The intervals of proxy and load; intervals that end together are joined.
fn observations(run: &Run) -> Vec<Observation<'_>> {
    let mut proxy = run.proxy().into_iter().flat_map(MetricSeries::intervals).peekable();
    // These are of the same ticks as the proxy's.
    let mut tls = run.tls().into_iter().flat_map(MetricSeries::intervals).peekable();
    let mut http = run.http().into_iter().flat_map(MetricSeries::intervals).peekable();
    let mut load = run.load().into_iter().flat_map(MetricSeries::intervals).peekable();
    let (has_proxy, has_load) = (proxy.peek().is_some(), load.peek().is_some());
    let (has_tls, has_http) = (tls.peek().is_some(), http.peek().is_some());
    let mut all = Vec::new();
    loop {
        let end_us = match (proxy.peek(), load.peek()) {
            (Some(proxy), Some(load)) => proxy.end_us.min(load.end_us),
            (Some(proxy), None) => proxy.end_us,
            (None, Some(load)) => load.end_us,
            (None, None) => return all,
        };
        let proxy = proxy.next_if(|interval| interval.end_us == end_us);
        let load = load.next_if(|interval| interval.end_us == end_us);
        while tls.next_if(|interval| interval.end_us < end_us).is_some() {}
        let tls = tls.next_if(|interval| interval.end_us == end_us);
        while http.next_if(|interval| interval.end_us < end_us).is_some() {}
        let http = http.next_if(|interval| interval.end_us == end_us);
        let starts = [proxy.map(|interval| interval.start_us), load.map(|interval| interval.start_us)];
        let is_lossy = proxy.is_some_and(|interval| interval.after_loss)
            || tls.is_some_and(|interval| interval.after_loss)
            || http.is_some_and(|interval| interval.after_loss)
            || load.is_some_and(|interval| interval.after_loss);
        let is_complete = proxy.is_some() == has_proxy
            && (!has_tls || tls.is_some() == proxy.is_some())
            && (!has_http || http.is_some() == proxy.is_some())
            && load.is_some() == has_load;
        let start_us = starts.into_iter().flatten().min().unwrap_or(end_us);
        all.push(Observation {
            start_us,
            end_us,
            is_whole: !is_lossy && is_complete,
            proxy: proxy
                .map(|interval| SideInterval { counters: &interval.counters, latencies: &**interval }),
            tls: tls.map(|interval| SideInterval { counters: &interval.counters, latencies: &**interval }),
            http: http.map(|interval| SideInterval { counters: &interval.counters, latencies: &**interval }),
            load: load.map(|interval| SideInterval { counters: &interval.counters, latencies: &**interval }),
            cpu: cpu(run, start_us, end_us),
        });
    }
}

/// CPU time used between two moments; zero if unknown.
fn cpu(run: &Run, start_us: u64, end_us: u64) -> Counters<CpuGroup> {
    match (run.host_at(start_us), run.host_at(end_us)) {
        (Some(start), Some(end)) => end.cpu.since(&start.cpu),
        _ => Counters::default(),
    }
}

/// Compares the blocks of two runs by the figure at index `at` of each block, at the error rate `alpha`.
pub fn compare(
    metric: &ComparableFigure,
    at: usize,
    a: &[Vec<BlockValue>],
    b: &[Vec<BlockValue>],
    alpha: f64,
) -> FigureComparison {
    let of = |blocks: &'_ [Vec<BlockValue>]| -> Vec<BlockValue> {
        blocks.iter().filter_map(|values| values.get(at).cloned()).collect()
    };
    let fewest = a.len().min(b.len());
    if fewest < BLOCKS_MIN {
        let reason = format!("too few blocks: {fewest} of the {BLOCKS_MIN} that it takes of each run");
        return FigureComparison { finding: CompareOutcome::Inconclusive, reason, estimate: None };
    }
    let estimate = estimate_unpaired(metric, &of(a), &of(b), alpha);
    let (finding, reason) = match &estimate {
        None => (CompareOutcome::Inconclusive, format!("a quarter of a run has no samples of {metric}")),
        Some(sampled) if sampled.is_thin => (CompareOutcome::Inconclusive, too_thin(metric)),
        Some(sampled) if sampled.shows_difference(alpha) => (CompareOutcome::Differs, String::new()),
        Some(_) => (CompareOutcome::NoDifference, String::new()),
    };
    FigureComparison { finding, reason, estimate: estimate.map(|sampled| sampled.estimate) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_rate_is_shared_by_all_figures_that_are_looked_at() {
        assert_eq!([1, 5, 8].map(|figures| alpha_of(figures).to_string()), ["0.01", "0.01", "0.00625"]);
    }
}
