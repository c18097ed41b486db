//! Reading a run in stages: hours and minutes as far as roll-ups go, then the rest record by record.
//!
//! A roll-up is the records of a time in one, by the writer's monotonic clock. So a stage goes on with each run where the one
//! before it has ended, and numbers its records from there: behind this module, a run's records have one sequence.

use std::collections::HashMap;

use journal::Entry;
use records::codec::Resolution;
use records::ids::RunId;

use super::{NO_END, now_s, time, time_range};
use crate::answer::RunCount;
use crate::client::Reason;
use crate::sequence::key_and_number;

/// The records that are read one by one.
pub(super) const RECORDS_MAX: u64 = 250_000;
/// The runs of a store that is read in stages.
const RUNS_MAX: usize = 10_000;
/// The ids of one query: VictoriaLogs takes 16 KiB.
const IDS_MAX: usize = 300;
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
    /// The time of its last record, in microseconds since 1970.
    last_us: u64,
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
        known.last_us = known.last_us.max(entry.realtime_us());
        each(&renumbered(entry, given, resolution));
    }

    /// Returns the filters, in LogsQL, that find what runs have at this resolution and former stages have not; of `more` is
    /// what records must pass besides. The last one finds what follows, too, if the stage has no end.
    pub(super) fn filters(&self, counted: &[RunCount], stage: Stage, more: &str) -> Vec<String> {
        let field = &stage.resolution.kind_field().name;
        let end =
            if stage.until_s == NO_END { String::new() } else { format!(" _time:<{}", time(stage.until_s)) };
        if self.runs.is_empty() {
            return vec![format!("{field}:*{more}{end}")];
        }
        let (mut unread, mut newest_s) = (Vec::new(), 0);
        let read_us = self.read_us();
        for run in counted {
            let known_us = read_us.get(&*run.run).copied();
            let from_s = known_us.unwrap_or(run.from_us) / 1_000_000;
            newest_s = newest_s.max(known_us.map_or(0, |_| from_s));
            let to_s = (run.to_us / 1_000_000 + 1).min(stage.until_s);
            let is_whole = known_us.is_some_and(|us| us >= run.to_us);
            if !is_whole && from_s < to_s && run.of(stage.resolution) > 0 && run.run.parse::<RunId>().is_ok()
            {
                unread.push((&*run.run, known_us.is_some(), from_s, to_s));
            }
        }
        // Most runs go on, and lack the same time; the others are asked for by their ids.
        let oldest_s = newest_s.saturating_sub(2 * stage.resolution.next().period().as_secs());
        let (on, others): (Vec<_>, Vec<_>) =
            unread.into_iter().partition(|(_, is_known, from_s, _)| *is_known && *from_s >= oldest_s);
        let of_others = others.chunks(IDS_MAX).map(|runs| {
            let ids: Vec<&str> = runs.iter().map(|(id, ..)| *id).collect();
            let times = times(runs.iter().map(|(.., from_s, to_s)| (*from_s, *to_s)).collect());
            let times: Vec<String> = times.into_iter().map(|(from, to)| time_range(from, to)).collect();
            format!("{field}:*{more} TLSDASH_RUN:in({}) ({})", ids.join(","), times.join(" or "))
        });
        let since_s = on.iter().map(|(_, _, from_s, _)| *from_s).min();
        let since_s = since_s.or_else(|| (stage.until_s == NO_END).then(now_s));
        let of_those = since_s.map(|since_s| format!("{field}:*{more} _time:>={}{end}", time(since_s)));
        of_others.chain(of_those).collect()
    }

    /// Returns the time up to which each run was read, in microseconds since 1970. Of several writers under one id, the first.
    fn read_us(&self) -> HashMap<&str, u64> {
        let mut read_us: HashMap<&str, u64> = HashMap::new();
        for progress in self.runs.values() {
            let last = read_us.entry(&progress.run).or_insert(u64::MAX);
            *last = progress.last_us.min(*last);
        }
        read_us
    }
}

/// Returns the times, in seconds, joined where they are near.
fn times(mut times: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    times.sort_unstable();
    let mut gap_s = GAP_S;
    loop {
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (from, to) in &times {
            match joined.last_mut() {
                Some((_, end)) if *from <= end.saturating_add(gap_s) => *end = *to.max(end),
                _ => joined.push((*from, *to)),
            }
        }
        if joined.len() <= TIMES_MAX {
            return joined;
        }
        gap_s *= 2;
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: [&str; 4] = [
        "00000000000000000000000000000001",
        "00000000000000000000000000000002",
        "00000000000000000000000000000003",
        "00000000000000000000000000000004",
    ];

    fn record(run: &str, field: &str, number: u64, second: u64) -> Entry {
        let (number, mono_us) = (number.to_string(), (second * 1_000_000).to_string());
        let fields =
            [("TLSDASH_RUN", run), ("TLSDASH_SEQ", &number), ("TLSDASH_MONO_US", &mono_us), (field, "x")];
        Entry::from_fields((1_000_000 + second) * 1_000_000, fields)
    }

    fn pass(progress: &mut RunProgress, resolution: Resolution, records: &[(u64, u64)]) -> Vec<u64> {
        let mut given = Vec::new();
        for (number, second) in records {
            let entry = record(RUN[0], &resolution.kind_field().name, *number, *second);
            progress.pass(&entry, resolution, &mut |entry| {
                assert_eq!(entry.text("TLSDASH_KIND"), Some("x"));
                given.push(entry.text("TLSDASH_SEQ").unwrap().parse().unwrap());
            });
        }
        given
    }

    #[test]
    fn each_stage_goes_on_where_the_one_before_has_ended_and_holes_stay() {
        let mut progress = RunProgress::default();
        assert_eq!(pass(&mut progress, Resolution::Hour, &[(1, 10), (2, 3_600), (2, 3_600)]), [1, 2, 2]);
        progress.next_stage();
        // Minutes 61 and 63 to 65 of which the first two are part of the hour, and one was lost.
        assert_eq!(pass(&mut progress, Resolution::Minute, &[(60, 3_590), (61, 3_600), (63, 3_660)]), [4]);
        assert_eq!(
            pass(&mut progress, Resolution::Minute, &[(64, 3_720), (64, 3_720)]),
            [5, 5],
            "a copy is one"
        );
        progress.next_stage();
        let intervals = [(901, 3_720), (902, 3_721), (904, 3_722), (903, 3_721)];
        assert_eq!(pass(&mut progress, Resolution::Interval, &intervals), [6, 8, 7], "one that comes late");
        let other = record(RUN[1], "TLSDASH_KIND", 7, 5);
        progress.pass(&other, Resolution::Interval, &mut |entry| {
            assert_eq!(entry.text("TLSDASH_SEQ"), Some("7"))
        });
    }

    #[test]
    fn runs_that_go_on_are_found_by_time_and_the_others_by_their_ids() {
        let mut progress = RunProgress::default();
        let count = |run: &str, to_s: u64, minutes| RunCount {
            run: run.to_owned(),
            from_us: 1_000_000_000_000,
            to_us: (1_000_000 + to_s) * 1_000_000,
            intervals: 9,
            minutes,
            hours: 1,
        };
        // One goes on, one was killed hours ago, one has ended in order, and one has no roll-ups.
        let counted = [
            count(RUN[0], 20_000, 9),
            count(RUN[1], 7_000, 9),
            count(RUN[2], 3_000, 9),
            count(RUN[3], 20_000, 0),
        ];
        let stage = |resolution, until_s| Stage { resolution, until_s };
        let hours = progress.filters(&counted, stage(Resolution::Hour, 2_000_000), " more");
        assert_eq!(hours, ["TLSDASH_HOUR:* more _time:<1970-01-24T03:33:20Z"]);
        for (run, second) in [(RUN[0], 18_000), (RUN[1], 3_600), (RUN[2], 3_000)] {
            progress.pass(&record(run, "TLSDASH_HOUR", 1, second), Resolution::Hour, &mut |_| {});
        }
        progress.next_stage();
        let minutes = progress.filters(&counted, stage(Resolution::Minute, 2_000_000), "");
        let of_killed = format!(
            "TLSDASH_MINUTE:* TLSDASH_RUN:in({}) (_time:[1970-01-12T14:46:40Z,1970-01-12T15:43:21Z))",
            RUN[1]
        );
        let going_on = "TLSDASH_MINUTE:* _time:>=1970-01-12T18:46:40Z _time:<1970-01-24T03:33:20Z";
        assert_eq!(minutes, [&*of_killed, going_on]);
        for (run, second) in [(RUN[0], 19_980), (RUN[1], 6_960)] {
            progress.pass(&record(run, "TLSDASH_MINUTE", 1, second), Resolution::Minute, &mut |_| {});
        }
        progress.next_stage();
        let intervals = progress.filters(&counted, stage(Resolution::Interval, NO_END), "");
        let of_others = format!(
            "TLSDASH_KIND:* TLSDASH_RUN:in({},{}) (_time:[1970-01-12T13:46:40Z,1970-01-12T19:20:01Z))",
            RUN[1], RUN[3]
        );
        assert_eq!(intervals, [&*of_others, "TLSDASH_KIND:* _time:>=1970-01-12T19:19:40Z"]);
        let many = (0..1_000).map(|id| count(&format!("{id:032x}"), 20_000, 0)).collect::<Vec<_>>();
        let filters = progress.filters(&many, stage(Resolution::Interval, NO_END), "");
        assert_eq!(filters.len(), 5);
        assert!(filters.iter().all(|filter| filter.len() < 12_000));
    }

    #[test]
    fn as_little_is_read_as_answers_a_range() {
        let within =
            |intervals, minutes, hours| RunCount { intervals, minutes, hours, ..RunCount::default() };
        for (counted, expected) in [
            (within(100, 10, 1), Resolution::Interval),
            (within(101, 10, 1), Resolution::Minute),
            (within(101, 0, 0), Resolution::Interval),
            (within(9_000, 101, 0), Resolution::Minute),
            (within(9_000, 101, 3), Resolution::Hour),
        ] {
            assert_eq!(finest(&[counted], 100), expected);
        }
        let resolutions = |finest, from_s| {
            let all = stages(finest, from_s, 500).into_iter();
            all.map(|stage| (stage.resolution, stage.until_s)).collect::<Vec<_>>()
        };
        let [interval, minute, hour] = [Resolution::Interval, Resolution::Minute, Resolution::Hour];
        assert_eq!(resolutions(hour, 0), [(hour, 500), (minute, 500), (interval, 500)]);
        assert_eq!(resolutions(minute, 70), [(hour, 70), (minute, 500), (interval, 500)]);
        assert_eq!(resolutions(interval, 70), [(hour, 70), (minute, 70), (interval, 500)]);
        assert_eq!(resolutions(minute, 0), [(minute, 500), (interval, 500)]);
    }
}
