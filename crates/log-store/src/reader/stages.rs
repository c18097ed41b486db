//! Reading a run in stages: hours and minutes as far as roll-ups go, then the rest record by record.
//!
//! A roll-up is the records of a time in one, by the writer's monotonic clock. So a stage goes on with each run where the one
//! before it has ended, and numbers its records from there: behind this module, a run's records have one sequence.

use std::collections::HashMap;
use std::fmt::Write as _;

use journal::Entry;
use records::codec::Resolution;

use super::{time, time_range};
use crate::answer::RunCount;
use crate::client::Reason;
use crate::sequence::key_and_number;

/// The records that are read one by one.
pub(super) const RECORDS_MAX: u64 = 250_000;
/// The runs of a store that is read in stages.
const RUNS_MAX: usize = 10_000;
/// Times of different runs that are so near, in seconds, are read together; so are the nearest if there are too many.
const GAP_S: u64 = 600;
const TIMES_MAX: usize = 32;

/// One stage of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stage {
    pub(super) resolution: Resolution,
    /// The second at which it ends at the latest.
    pub(super) until_s: u64,
}

/// Returns the finest resolution of which a range has few records, `within` being those of its runs; the coarsest that there
/// is if it has none.
pub(super) fn finest(within: &[RunCount], records_max: u64) -> Resolution {
    let sum = |count: fn(&RunCount) -> u64| within.iter().map(count).sum::<u64>();
    let (minutes, hours) = (sum(|run| run.minutes), sum(|run| run.hours));
    if minutes == 0 || sum(|run| run.intervals) <= records_max {
        Resolution::Interval
    } else if hours == 0 || minutes <= records_max {
        Resolution::Minute
    } else {
        Resolution::Hour
    }
}

/// Returns the name of roll-ups.
pub(super) fn name(resolution: Resolution) -> Option<&'static str> {
    match resolution {
        Resolution::Interval => None,
        Resolution::Minute => Some("minutes"),
        Resolution::Hour => Some("hours"),
    }
}

/// Returns the stages that read a range at this resolution. What is before `from_s` only matters by its totals.
pub(super) fn stages(finest: Resolution, from_s: u64, until_s: u64) -> Vec<Stage> {
    let is_used = |resolution| match (finest, resolution) {
        (_, Resolution::Interval) | (Resolution::Hour, _) => true,
        (finest, resolution) => finest == resolution,
    };
    let stage = |resolution| {
        let until_s = if is_used(resolution) { until_s } else { from_s };
        Stage { resolution, until_s }
    };
    let all = [Resolution::Hour, Resolution::Minute, Resolution::Interval].map(stage);
    all.into_iter().filter(|stage| stage.until_s > 0).collect()
}

/// What was read of each run, by run and writer.
#[derive(Debug, Default)]
pub(super) struct RunProgress {
    runs: HashMap<Box<str>, Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    run: Box<str>,
    /// `CLOCK_MONOTONIC` up to which former stages have its records, and this one, in microseconds.
    former_us: u64,
    now_us: u64,
    /// The time of its last record, in seconds since 1970.
    last_s: u64,
    /// The greatest number that was given to a record.
    given: u64,
    /// The last number at this resolution that former stages had already, or 0.
    skipped: u64,
    /// By how much given numbers are greater than those at this resolution; `None` before the first.
    offset: Option<u64>,
}

impl RunProgress {
    /// Whether former stages, or this one, have records of an entry's run.
    pub(super) fn knows(&self, entry: &Entry) -> bool {
        key_and_number(entry).is_some_and(|(key, _)| self.runs.contains_key(&key))
    }

    /// Begins the next stage.
    pub(super) fn next_stage(&mut self) {
        for run in self.runs.values_mut() {
            run.former_us = run.now_us;
            (run.skipped, run.offset) = (0, None);
        }
    }

    /// Passes an entry on if it is not part of what former stages had.
    pub(super) fn pass(&mut self, entry: &Entry, resolution: Resolution, each: &mut dyn FnMut(&Entry)) {
        let is_rollup = resolution != Resolution::Interval;
        let Some((key, number)) = key_and_number(entry) else { return each(entry) };
        if !is_rollup && !self.runs.contains_key(&key) {
            return each(entry);
        }
        let run = entry.text("TLSDASH_RUN").unwrap_or_default();
        let known =
            self.runs.entry(key).or_insert_with(|| Progress { run: run.into(), ..Progress::default() });
        let mono_us = entry.text("TLSDASH_MONO_US").and_then(|us| us.parse().ok()).unwrap_or(0);
        if mono_us <= known.former_us {
            known.skipped = known.skipped.max(number);
            return;
        }
        let offset = *known.offset.get_or_insert_with(|| {
            // A hole between the stages is known if the record before it is.
            let missing = if known.skipped == 0 { 0 } else { number.saturating_sub(known.skipped + 1) };
            (known.given + 1 + missing).wrapping_sub(number)
        });
        let given = number.wrapping_add(offset);
        known.given = known.given.max(given);
        known.now_us = known.now_us.max(mono_us);
        known.last_s = known.last_s.max(entry.realtime_us() / 1_000_000);
        each(&renumbered(entry, given, resolution));
    }

    /// Returns the times, in seconds, in which the runs have records that were not read yet.
    pub(super) fn unread(&self, counted: &[RunCount], until_s: u64) -> Vec<(u64, u64)> {
        let mut last_s: HashMap<&str, u64> = HashMap::new();
        for progress in self.runs.values() {
            let last = last_s.entry(&progress.run).or_insert(u64::MAX);
            // Of two writers under one id, the first.
            *last = progress.last_s.min(*last);
        }
        let of_run = |run: &RunCount| {
            let from = last_s.get(&*run.run).copied().unwrap_or(run.from_s);
            let to = run.to_s.saturating_add(1).min(until_s);
            (from < to).then_some((from, to))
        };
        let mut times: Vec<(u64, u64)> = counted.iter().filter_map(of_run).collect();
        times.sort_unstable();
        let mut gap_s = GAP_S;
        loop {
            let mut merged: Vec<(u64, u64)> = Vec::new();
            for (from, to) in &times {
                match merged.last_mut() {
                    Some((_, end)) if *from <= end.saturating_add(gap_s) => *end = *to.max(end),
                    _ => merged.push((*from, *to)),
                }
            }
            if merged.len() <= TIMES_MAX {
                return merged;
            }
            gap_s *= 2;
        }
    }
}

/// Returns the filter of a stage, in LogsQL. The last time has no end if records may follow.
pub(super) fn filter(resolution: Resolution, more: &str, times: &[(u64, u64)], is_live: bool) -> String {
    let field = &resolution.kind_field().name;
    let mut text = format!("{field}:*{more} (");
    for (at, (from, to)) in times.iter().enumerate() {
        let or = if at == 0 { "" } else { " or " };
        let last = at + 1 == times.len() && is_live;
        let range = if last { format!("_time:>={}", time(*from)) } else { time_range(*from, *to) };
        let _ = write!(text, "{or}{range}");
    }
    text + ")"
}

/// Checks that no more runs were counted than are kept.
pub(super) fn check(counted: &[RunCount]) -> Result<(), Reason> {
    if counted.len() > RUNS_MAX {
        return Err(format!("it has more than {RUNS_MAX} runs: narrow them down with ?query=_time:1d"));
    }
    Ok(())
}

/// The record of an interval that a roll-up stands for, with another number.
fn renumbered(entry: &Entry, number: u64, resolution: Resolution) -> Entry {
    let number = number.to_string();
    let kind_field = &*resolution.kind_field().name;
    let fields = entry.iter().filter_map(|(name, value)| {
        let value = str::from_utf8(value).ok()?;
        Some(match name {
            "TLSDASH_SEQ" => (name, &*number),
            name if name == kind_field => ("TLSDASH_KIND", value),
            name => (name, value),
        })
    });
    Entry::from_fields(entry.realtime_us(), fields)
}
