//! Reading a run in stages: hours and minutes as far as roll-ups go, then the rest record by record.
//!
//! Roll-ups that were written together say for which records they stand. A run is read from them as long as they follow each
//! other without a hole; the next stage goes on behind them, and numbers its records from there. So behind this module a
//! run's records have one sequence, whatever of its roll-ups is missing.

use std::collections::{BTreeMap, HashMap};

use journal::Entry;

use crate::codec::Resolution;
use crate::ids::RunId;
use crate::metrics::Field;
use crate::wire::field;

/// The records that are read one by one.
pub const RECORDS_MAX: u64 = 250_000;
/// The runs of a place that is read in stages.
pub const RUNS_MAX: usize = 10_000;
/// The second at which a range without an end ends.
pub const NO_END: u64 = u64::MAX / 1_000_000 + 1;
/// How much earlier than the last roll-up records are read, in seconds: a clock may have been set back.
const MARGIN_S: u64 = 30;
/// The roll-ups that a range must be long for.
const ROLLUPS_MIN: u64 = 20;
/// What is read behind a range, in seconds: the next records show that runs went on.
const BEHIND_S: u64 = 120;
/// The bytes of roll-ups that wait for the last one written with them, of all runs: whoever may write to a journal may
/// write roll-ups without a last one. A run that passes the bound is read without them.
const WAITING_BYTES_MAX: usize = 32 << 20;
/// The processes whose roll-ups are read: each may write under any run.
const WRITERS_MAX: usize = 2 * RUNS_MAX;
/// What a field takes besides its name and value.
const FIELD_BYTES: usize = 64;

/// The records of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunCount {
    pub run: String,
    /// The times of the first and the last one, in microseconds since 1970.
    pub from_us: u64,
    pub to_us: u64,
    /// The least and the greatest number of a record of an interval.
    pub first: u64,
    pub last: u64,
    /// By their resolution.
    pub intervals: u64,
    pub minutes: u64,
    pub hours: u64,
}

/// What of a run is to be read, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadRun<'a> {
    pub id: &'a str,
    pub from_s: u64,
    pub to_s: u64,
    /// About how many records.
    pub records: u64,
    /// The number of the last record that was read.
    pub through: u64,
}

impl RunCount {
    pub fn of(&self, resolution: Resolution) -> u64 {
        match resolution {
            Resolution::Interval => self.intervals,
            Resolution::Minute => self.minutes,
            Resolution::Hour => self.hours,
        }
    }
}

/// One stage of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    pub resolution: Resolution,
    /// The second at which it ends at the latest.
    pub until_s: u64,
}

/// Returns the finest resolution of which a range of `span_s` seconds has few records, `within` being those of its runs; else
/// the coarsest that there is. A range is whole roll-ups, so it must be many of them.
pub fn finest(within: &[RunCount], records_max: u64, span_s: u64) -> Resolution {
    let sum = |count: fn(&RunCount) -> u64| within.iter().map(count).sum::<u64>();
    let (minutes, hours) = (sum(|run| run.minutes), sum(|run| run.hours));
    let is_short = |resolution: Resolution| span_s < ROLLUPS_MIN * resolution.period().as_secs();
    if minutes == 0 || sum(|run| run.intervals) <= records_max || is_short(Resolution::Minute) {
        Resolution::Interval
    } else if hours == 0 || minutes <= records_max || is_short(Resolution::Hour) {
        Resolution::Minute
    } else {
        Resolution::Hour
    }
}

/// Returns the stages that read a range at this resolution. What is before `from_s` only matters by its totals.
pub fn stages(finest: Resolution, from_s: u64, until_s: u64) -> Vec<Stage> {
    let is_used = |resolution| match (finest, resolution) {
        (_, Resolution::Interval) | (Resolution::Hour, _) => true,
        (finest, resolution) => finest == resolution,
    };
    let stage = |resolution| {
        let until_s = match (is_used(resolution), resolution) {
            (false, _) => from_s,
            (true, Resolution::Interval) => until_s.saturating_add(BEHIND_S).min(NO_END),
            (true, _) => until_s,
        };
        Stage { resolution, until_s }
    };
    let all = [Resolution::Hour, Resolution::Minute, Resolution::Interval].map(stage);
    all.into_iter().filter(|stage| stage.until_s > 0).collect()
}

/// Returns what a person should know of a place with so many records that is read at a resolution; `None` if all are read.
pub fn note(finest: Resolution, records: u64, records_max: u64) -> Option<String> {
    let rollups = match finest {
        Resolution::Interval => return None,
        Resolution::Minute => "minutes",
        Resolution::Hour => "hours",
    };
    Some(format!(
        "has more than {records_max} records ({records}): whole {rollups} are read, with the busiest clients only; \
         --records all reads them one by one"
    ))
}

/// What was read of each run, by run and writer.
#[derive(Debug, Default)]
pub struct RunProgress {
    /// Of the present stage.
    resolution: Resolution,
    runs: HashMap<Box<str>, Progress>,
    /// The first number that each run is known to have.
    firsts: HashMap<Box<str>, u64>,
    /// Clients have no latencies up to then, in microseconds since 1970: roll-ups lack some of each client.
    counted_us: u64,
    /// Of the roll-ups that wait.
    waiting_bytes: usize,
}

#[derive(Debug, Default)]
struct Progress {
    run: Box<str>,
    /// The number of the last record that was read, or that roll-ups stand for.
    through: u64,
    /// The number that was given to it.
    given: u64,
    /// The time of the last roll-up, in microseconds since 1970.
    last_us: u64,
    /// Roll-ups behind the last ones that stand for records, by their numbers.
    together: BTreeMap<u64, Entry>,
    waiting_bytes: usize,
    /// Roll-ups of this stage are missing: the rest is read in the next.
    is_cut: bool,
}

impl RunProgress {
    /// Begins to read runs that were counted at this time, in microseconds since 1970.
    pub fn new(counted: &[RunCount], counted_us: u64) -> Self {
        let firsts = counted.iter().map(|run| (run.run.as_str().into(), run.first)).collect();
        Self { firsts, counted_us, ..Self::default() }
    }

    /// Whether former stages, or this one, have records of an entry's run.
    pub fn knows(&self, entry: &Entry) -> bool {
        key_and_number(entry).is_some_and(|(key, _)| self.runs.contains_key(&key))
    }

    /// Begins the next stage.
    pub fn next_stage(&mut self, resolution: Resolution) {
        self.resolution = resolution;
        for run in self.runs.values_mut() {
            run.forget_waiting();
            run.is_cut = false;
        }
        self.waiting_bytes = 0;
        self.runs.retain(|_, run| run.through > 0);
    }

    /// Passes an entry on if former stages have not read what it stands for.
    pub fn pass(&mut self, entry: &Entry, each: &mut dyn FnMut(&Entry)) {
        let resolution = self.resolution;
        let Some((key, number)) = key_and_number(entry) else { return each(entry) };
        if resolution == Resolution::Interval {
            match self.runs.get(&key) {
                None => each(entry),
                Some(run) if number <= run.through => {}
                Some(run) => {
                    let given = run.given.saturating_add(number - run.through);
                    let mut record = renumbered(entry, given, resolution);
                    if entry.realtime_us() <= self.counted_us {
                        record.remove(&field::CLIENT_EXCHANGE_SKETCH.name);
                    }
                    each(&record);
                }
            }
            return;
        }
        let is_run = entry.text("TLSDASH_RUN").is_some_and(|run| run.parse::<RunId>().is_ok());
        if !is_run || (self.runs.len() >= WRITERS_MAX && !self.runs.contains_key(&key)) {
            return;
        }
        let run = self.runs.entry(key).or_default();
        if run.run.is_empty() {
            run.run = entry.text("TLSDASH_RUN").unwrap_or_default().into();
        }
        if !run.is_cut {
            let first = self.firsts.get(&run.run).copied().unwrap_or(u64::MAX);
            let before = run.waiting_bytes;
            run.take_rollup(entry, (number, first), resolution, each);
            self.waiting_bytes = self.waiting_bytes + run.waiting_bytes - before;
            if self.waiting_bytes > WAITING_BYTES_MAX {
                self.waiting_bytes -= run.waiting_bytes;
                run.forget_waiting();
                run.is_cut = true;
            }
        }
    }

    /// Returns the runs that have more at a resolution than former stages have read, by their beginnings.
    pub fn unread<'a>(&self, counted: &'a [RunCount], stage: Stage) -> Vec<UnreadRun<'a>> {
        // Roll-ups are of the end of what they stand for.
        let margin_s = MARGIN_S.max(2 * stage.resolution.period().as_secs());
        let read = self.read();
        let of_run = |run: &'a RunCount| {
            let known = read.get(&*run.run);
            let begin_us = match known {
                // Set back: its records are at times that were read.
                Some((_, last_us)) if *last_us > run.to_us => run.from_us,
                Some((_, last_us)) => last_us.saturating_sub(margin_s * 1_000_000),
                None => run.from_us,
            };
            let last_s = run.to_us / 1_000_000 + 1;
            // Of one that may go on behind the range, too.
            let is_near_end = last_s + 2 * BEHIND_S > stage.until_s;
            let to_s = if is_near_end { stage.until_s } else { last_s };
            let from_s = begin_us / 1_000_000;
            let is_whole = known.is_some_and(|(through, _)| *through >= run.last);
            // Its id is part of a query, and anybody may have written it.
            let has_id = run.run.parse::<RunId>().is_ok();
            let is_unread = !is_whole && from_s < to_s && run.of(stage.resolution) > 0 && has_id;
            let span_s = run.to_us.saturating_sub(run.from_us) / 1_000_000 + 1;
            let records =
                run.of(stage.resolution).saturating_mul(to_s.min(last_s).saturating_sub(from_s)) / span_s;
            let through = known.map_or(0, |(through, _)| *through);
            is_unread.then_some(UnreadRun { id: &run.run, from_s, to_s, records, through })
        };
        let mut unread: Vec<_> = counted.iter().filter_map(of_run).collect();
        unread.sort_by_key(|run| run.from_s);
        unread
    }

    /// Returns how far each run was read: its number, and the time of its last roll-up. Of several writers under one id, the
    /// one of which least was read.
    fn read(&self) -> HashMap<&str, (u64, u64)> {
        let mut read: HashMap<&str, (u64, u64)> = HashMap::new();
        for progress in self.runs.values() {
            let least = read.entry(&progress.run).or_insert((u64::MAX, u64::MAX));
            *least = (progress.through.min(least.0), progress.last_us.min(least.1));
        }
        read
    }
}

impl Progress {
    fn forget_waiting(&mut self) {
        self.together = BTreeMap::new();
        self.waiting_bytes = 0;
    }

    /// Passes roll-ups on once all that belong together are there.
    fn take_rollup(
        &mut self,
        entry: &Entry,
        (number, first_known): (u64, u64),
        resolution: Resolution,
        each: &mut dyn FnMut(&Entry),
    ) {
        let copy = self.together.insert(number, entry.clone());
        self.waiting_bytes = self.waiting_bytes + entry_bytes(entry) - copy.as_ref().map_or(0, entry_bytes);
        let field = |field: &Field| entry.text(&field.name).and_then(|text| text.parse::<u64>().ok());
        let batch = field(&field::AFTER).zip(field(&field::THROUGH)).zip(field(&field::BATCH));
        let Some(((after, through), rollups)) = batch else {
            return;
        };
        let mut together = std::mem::take(&mut self.together);
        self.waiting_bytes = 0;
        if through <= self.through {
            return;
        }
        let first = (number + 1).saturating_sub(rollups);
        let batch = together.split_off(&first);
        // Without its beginning, a run begins with what is left of it.
        let follows = after == self.through || (self.through == 0 && after < first_known);
        if batch.len() as u64 != rollups || !follows {
            self.is_cut = true;
            return;
        }
        if self.through == 0 {
            self.given = after;
        }
        for rollup in batch.values() {
            self.given = self.given.saturating_add(1);
            self.last_us = self.last_us.max(rollup.realtime_us());
            each(&renumbered(rollup, self.given, resolution));
        }
        self.through = through;
    }
}

/// The memory of an entry's fields, in bytes.
pub fn entry_bytes(entry: &Entry) -> usize {
    entry.iter().map(|(name, value)| name.len() + value.len() + FIELD_BYTES).sum()
}

/// The run and its writer, and the number of a record; `None` if it has none.
pub fn key_and_number(entry: &Entry) -> Option<(Box<str>, u64)> {
    let number = entry.text("TLSDASH_SEQ")?.parse().ok().filter(|number| (1..u64::MAX).contains(number))?;
    let text = |name| entry.text(name).unwrap_or_default();
    let key = [entry.text("TLSDASH_RUN")?, text("_BOOT_ID"), text("_PID")].join(" ");
    Some((key.into(), number))
}

/// The record of an interval that a roll-up stands for, with another number.
fn renumbered(entry: &Entry, number: u64, resolution: Resolution) -> Entry {
    let mut record = entry.clone();
    record.replace("TLSDASH_SEQ", ("TLSDASH_SEQ", &number.to_string()));
    let kind_field = &*resolution.kind_field().name;
    if resolution != Resolution::Interval
        && let Some(kind) = entry.text(kind_field)
    {
        record.replace(kind_field, ("TLSDASH_KIND", kind));
        record.remove(&field::CLIENT_EXCHANGE_SKETCH.name);
        // It was written once its minute or hour was over.
        if let Some(at_us) = entry.text(&field::MONO.name).and_then(|text| text.parse().ok()) {
            record.move_back_to(at_us);
        }
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "00000000000000000000000000000001";

    /// A record or a roll-up; the last of those that were written together says what they stand for.
    fn record(run: &str, kind: &str, number: u64, second: u64, batch: Option<[u64; 3]>) -> Entry {
        let number = number.to_string();
        let batch = batch.map(|batch| batch.map(|n| n.to_string()));
        let names = ["TLSDASH_AFTER", "TLSDASH_THROUGH", "TLSDASH_BATCH"];
        let batch = names.iter().zip(batch.iter().flatten()).map(|(name, value)| (*name, &**value));
        let fields = [("TLSDASH_RUN", run), ("TLSDASH_SEQ", &number), (kind, "x")];
        Entry::from_fields((1_000_000 + second) * 1_000_000, fields.into_iter().chain(batch))
    }

    fn at(resolution: Resolution) -> RunProgress {
        RunProgress { resolution, ..RunProgress::default() }
    }

    fn pass(progress: &mut RunProgress, records: &[(u64, Option<[u64; 3]>)]) -> Vec<u64> {
        let kind_field = progress.resolution.kind_field();
        let mut given = Vec::new();
        for (number, batch) in records {
            let entry = record(RUN, &kind_field.name, *number, 10, *batch);
            progress.pass(&entry, &mut |entry| {
                assert_eq!(entry.text("TLSDASH_KIND"), Some("x"));
                given.push(entry.text("TLSDASH_SEQ").unwrap().parse().unwrap());
            });
        }
        given
    }

    #[test]
    fn each_stage_goes_on_behind_what_whole_roll_ups_stand_for() {
        let [interval, minute, hour] = [Resolution::Interval, Resolution::Minute, Resolution::Hour];
        let mut progress = at(hour);
        let hours =
            [(1, Some([0, 1, 1])), (2, None), (3, Some([1, 900, 2])), (3, Some([1, 900, 2])), (4, None)];
        assert_eq!(pass(&mut progress, &hours), [1, 2, 3], "the fourth stands for nothing by itself");
        progress.next_stage(minute);
        let minutes = [
            (70, Some([880, 900, 1])),
            (71, None),
            (72, Some([900, 920, 2])),
            // One of these is missing, so what follows is read record by record.
            (74, Some([920, 940, 2])),
            (75, Some([940, 960, 1])),
        ];
        assert_eq!(pass(&mut progress, &minutes), [4, 5]);
        progress.next_stage(interval);
        let intervals = [(900, None), (920, None), (921, None), (923, None), (922, None), (923, None)];
        assert_eq!(pass(&mut progress, &intervals), [6, 8, 7, 8], "one that comes late, and a copy");
        let other = record("b", "TLSDASH_KIND", 7, 5, None);
        progress.pass(&other, &mut |entry| assert_eq!(entry.text("TLSDASH_SEQ"), Some("7")));
        // Numbers that nobody means.
        let most = u64::MAX - 1;
        let mut progress = at(hour);
        assert_eq!(pass(&mut progress, &[(most, Some([most, u64::MAX, 1]))]), [u64::MAX]);
        assert_eq!(pass(&mut progress, &[(most, Some([u64::MAX, 1, u64::MAX]))]), [0; 0]);
        // A hole between two roll-ups, and a run whose beginning is gone.
        let mut progress = at(hour);
        assert_eq!(pass(&mut progress, &[(9, Some([500, 600, 1])), (10, Some([610, 700, 1]))]), [501]);
        progress.next_stage(interval);
        assert_eq!(pass(&mut progress, &[(601, None)]), [502]);
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
            assert_eq!(finest(&[counted], 100, 100_000), expected);
        }
        let much = || [within(9_000, 101, 3)];
        assert_eq!(finest(&much(), 100, 3_600), Resolution::Minute);
        assert_eq!(finest(&much(), 100, 600), Resolution::Interval);
        let resolutions = |finest, from_s| {
            let all = stages(finest, from_s, 500).into_iter();
            all.map(|stage| (stage.resolution, stage.until_s)).collect::<Vec<_>>()
        };
        let [interval, minute, hour] = [Resolution::Interval, Resolution::Minute, Resolution::Hour];
        assert_eq!(resolutions(hour, 0), [(hour, 500), (minute, 500), (interval, 620)]);
        assert_eq!(resolutions(minute, 70), [(hour, 70), (minute, 500), (interval, 620)]);
        assert_eq!(resolutions(interval, 70), [(hour, 70), (minute, 70), (interval, 620)]);
        assert_eq!(resolutions(minute, 0), [(minute, 500), (interval, 620)]);
    }

    #[test]
    fn roll_ups_that_nobody_ends_need_bounded_memory() {
        let mut progress = at(Resolution::Minute);
        let long = "x".repeat(1 << 20);
        let unended = |number: u64| {
            let number = number.to_string();
            let fields = [("TLSDASH_RUN", RUN), ("TLSDASH_SEQ", &number), ("TLSDASH_MINUTE", &long)];
            Entry::from_fields(0, fields)
        };
        for number in 1..=100 {
            progress.pass(&unended(number), &mut |_| panic!("it has no end"));
            assert!(progress.waiting_bytes <= WAITING_BYTES_MAX);
        }
        assert!(progress.runs.values().all(|run| run.is_cut && run.together.is_empty()));
        for writer in 0..WRITERS_MAX + 100 {
            let fields = [("TLSDASH_RUN", RUN), ("TLSDASH_SEQ", "1"), ("_PID", &*writer.to_string())];
            progress.pass(&Entry::from_fields(0, fields), &mut |_| panic!("it has no end"));
        }
        assert_eq!(progress.runs.len(), WRITERS_MAX);
    }
}
