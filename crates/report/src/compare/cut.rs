//! Cuts runs into blocks, and estimates what longer runs would show.

use std::time::Duration;

use experiment::{BLOCKS_MIN, ComparableFigure, RunBlocks, blocks};
use model::runs::Run;

use super::CompareOptions;
use crate::report::Report;

/// Time at the start of each run that is left out, unless the run is shorter than four times this.
const DISCARD: Duration = Duration::from_secs(5);
/// The lengths of a block to choose from, in seconds.
const LENGTHS_S: [u64; 6] = [1, 2, 5, 10, 20, 60];
/// The number of blocks that a run should have, so a block with missing data costs little.
const BLOCKS_WANTED: f64 = 16.0;
/// The shortest quarter of a run that gives a verdict unless the user chose the blocks, in seconds.
const QUARTER_S_MIN: f64 = 10.0;
/// The shortest quarter that outlasts other load on the machine. Anything that varies for longer than a quarter counts
/// as a difference (docs/measurements.md has the rates).
const QUARTER_S_GOOD: f64 = 30.0;
/// The share of a quarter that may be missing.
const MISSING_MAX: f64 = 0.1;

/// How both runs are cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) block: Duration,
    pub(super) discard: Duration,
    /// The user gave the length of the blocks.
    is_given: bool,
    /// Length of the shorter run, in seconds.
    shortest_s: f64,
}

impl Cut {
    pub(super) fn of(runs: [&Report<'_>; 2], how: &CompareOptions) -> Self {
        let shortest_s = runs.map(|run| run.summary.duration_s).into_iter().fold(f64::INFINITY, f64::min);
        let shortest = Duration::try_from_secs_f64(shortest_s).unwrap_or_default();
        let discard = how.discard.unwrap_or_else(|| DISCARD.min(shortest / 4));
        let chosen = || {
            let wanted_s = shortest.saturating_sub(discard).as_secs_f64() / BLOCKS_WANTED;
            let fits = LENGTHS_S.into_iter().rfind(|length_s| *length_s as f64 <= wanted_s);
            let interval = runs.into_iter().map(|run| first_interval(run.run)).max().unwrap_or_default();
            Duration::from_secs(fits.unwrap_or(LENGTHS_S[0])).max(interval)
        };
        let block = how.block.unwrap_or_else(chosen);
        Self { block, discard, is_given: how.block.is_some(), shortest_s }
    }

    /// The blocks of a run; its intervals if not even one block fits.
    pub(super) fn blocks(&self, run: &Run, metrics: &[ComparableFigure]) -> RunBlocks {
        blocks(run, metrics, self.block, self.discard)
    }

    /// Why an interval of the difference is not a verdict yet.
    pub(super) fn too_short(&self, fewest: usize) -> Option<String> {
        let is_short = !self.is_given && self.quarter_s(fewest) < QUARTER_S_MIN * (1.0 - MISSING_MAX);
        is_short.then(|| format!("too short: a verdict takes runs of {:.0} s", self.run_s(QUARTER_S_MIN)))
    }

    /// How to get an interval, a verdict or a better one.
    pub(super) fn advice(&self, fewest: usize) -> Option<String> {
        let block_s = self.block.as_secs_f64();
        if fewest < BLOCKS_MIN {
            return Some(self.advice_for_interval(block_s));
        }
        let quarter_s = self.quarter_s(fewest);
        let (verdict_s, better_s) = (self.run_s(QUARTER_S_MIN), self.run_s(QUARTER_S_GOOD));
        if self.too_short(fewest).is_some() {
            return Some(format!(
                "the intervals are of what varied within {quarter_s:.1} s, a quarter of a run; runs of {verdict_s:.0} s give \
                 a verdict, of {better_s:.0} s a better one; --block {block_s:.0}s gives one of these, which errs more often"
            ));
        }
        (quarter_s < QUARTER_S_GOOD).then(|| {
            format!(
                "a quarter of a run is {quarter_s:.1} s long, and what a neighbour does for longer counts as a \
                 difference; runs of {better_s:.0} s or more tell better"
            )
        })
    }

    fn advice_for_interval(&self, block_s: f64) -> String {
        let long_s = self.run_s(block_s);
        if self.shortest_s >= long_s {
            return "blocks of which an interval is missing do not count; longer runs have more".to_owned();
        }
        if !self.is_given {
            let verdict_s = self.run_s(QUARTER_S_MIN);
            return format!("runs of {long_s:.0} s would have an interval, of {verdict_s:.0} s a verdict");
        }
        let longer = format!("runs of {long_s:.0} s would have enough blocks");
        // A block has at least some intervals, which are a second long by default.
        match ((self.shortest_s - self.discard.as_secs_f64()) / BLOCKS_MIN as f64).floor() {
            seconds @ 2.0.. if seconds < block_s => {
                format!("{longer}, and so would these with --block {seconds:.0}s")
            }
            _ => longer,
        }
    }

    /// The length of a quarter of the blocks, in seconds.
    fn quarter_s(&self, fewest: usize) -> f64 {
        fewest as f64 / BLOCKS_MIN as f64 * self.block.as_secs_f64()
    }

    /// The length of a run with such quarters, in seconds.
    fn run_s(&self, quarter_s: f64) -> f64 {
        let discard_s = if self.is_given { self.discard } else { self.discard.max(DISCARD) }.as_secs_f64();
        discard_s + BLOCKS_MIN as f64 * quarter_s
    }
}

/// The length of a run's first interval that is kept.
fn first_interval(run: &Run) -> Duration {
    let of_proxy =
        run.proxy().and_then(|proxy| proxy.intervals().next().map(|interval| interval.length_us()));
    let of_load = run.load().and_then(|load| load.intervals().next().map(|interval| interval.length_us()));
    // Intervals of a second last a few microseconds more or less.
    Duration::from_millis((of_proxy.or(of_load).unwrap_or(0) as f64 / 1e5).round() as u64 * 100)
}
