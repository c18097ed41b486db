//! Two runs that are over, block against block. Weaker than an experiment: nothing was switched in turn, so that what
//! differed between the runs for other reasons is in the difference too.

use std::time::Duration;

use telemetry::experiment::Stage;
use telemetry::model::{Run, Track};
use telemetry::{Counters, CpuGroup};

use crate::block::{Block, Observation, Reading, Side};
use crate::estimate::{Estimate, Method, estimate_unpaired};
use crate::metric::Metric;
use crate::verdict::{Judged, judge_by};

/// The fewest blocks of each run with which the permutation test can come to `alpha`.
pub fn blocks_min(alpha: f64) -> usize {
    let ways = |n: usize| (1..=n).fold(1.0, |ways, i| ways * (n + i) as f64 / i as f64);
    (1..64).find(|&n| 2.0 / ways(n) <= alpha).unwrap_or(64)
}

/// Cuts what is kept of a run's intervals into blocks, but for the first `discard`, and gives what each came to for each
/// metric. Blocks of which something is missing are left out, and what is left at the end.
pub fn blocks(run: &Run, metrics: &[Metric], block: Duration, discard: Duration) -> Vec<Vec<Reading>> {
    let began_us = run.last_us().saturating_sub(run.duration_us());
    let from_us = began_us + discard.as_micros() as u64;
    let block_us = block.as_micros() as u64;
    let mut current = Block::new(metrics);
    let mut current_began_us = None;
    let mut done = Vec::new();
    for moment in moments(run).into_iter().filter(|moment| moment.start_us >= from_us) {
        current.add(&moment, metrics);
        let began_us = *current_began_us.get_or_insert(moment.start_us);
        // Ticks wander by milliseconds.
        if moment.end_us + moment.span_us() / 10 >= began_us + block_us {
            done.extend(current.readings(metrics));
            current.clear();
            current_began_us = None;
        }
    }
    done
}

/// The intervals of both sides, those that end together taken together.
fn moments(run: &Run) -> Vec<Observation<'_>> {
    let mut proxy = run.proxy().into_iter().flat_map(Track::intervals).peekable();
    let mut load = run.load().into_iter().flat_map(Track::intervals).peekable();
    let (has_proxy, has_load) = (proxy.peek().is_some(), load.peek().is_some());
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
        let starts = [proxy.map(|interval| interval.start_us), load.map(|interval| interval.start_us)];
        let is_lossy = proxy.is_some_and(|interval| interval.after_loss)
            || load.is_some_and(|interval| interval.after_loss);
        let start_us = starts.into_iter().flatten().min().unwrap_or(end_us);
        all.push(Observation {
            start_us,
            end_us,
            is_whole: !is_lossy && proxy.is_some() == has_proxy && load.is_some() == has_load,
            proxy: proxy.map(|interval| Side { counters: &interval.counters, latencies: &**interval }),
            load: load.map(|interval| Side { counters: &interval.counters, latencies: &**interval }),
            cpu: cpu(run, start_us, end_us),
        });
    }
}

/// CPU time that was used between two moments; nothing if that is not known.
fn cpu(run: &Run, start_us: u64, end_us: u64) -> Counters<CpuGroup> {
    match (run.host_at(start_us), run.host_at(end_us)) {
        (Some(start), Some(end)) => end.cpu.since(&start.cpu),
        _ => Counters::default(),
    }
}

/// How the blocks of one run compare with those of another, for the metric in this place of each.
pub fn compare(
    metric: &Metric,
    at: usize,
    a: &[Vec<Reading>],
    b: &[Vec<Reading>],
    method: &Method,
) -> Judged {
    let of = |blocks: &'_ [Vec<Reading>]| -> Vec<Reading> {
        blocks.iter().filter_map(|readings| readings.get(at).cloned()).collect()
    };
    let estimate: Option<Estimate> = estimate_unpaired(metric, &of(a), &of(b), method);
    let (fewest, min) = (a.len().min(b.len()), blocks_min(method.alpha));
    let too_few =
        (fewest < min).then(|| format!("too few blocks: {fewest} of the {min} that it takes of each run"));
    judge_by(metric, Stage::Comparison, estimate, min as u32, too_few.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_blocks_of_each_are_the_fewest_for_one_figure_at_five_percent() {
        // 2 of 20 ways with three of each, 2 of 70 with four.
        assert_eq!([0.05, 0.025, 0.00625].map(blocks_min), [4, 5, 6]);
    }
}
