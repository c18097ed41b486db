//! Reading files in stages: hours and minutes as far as roll-ups go, then the rest record by record.
//!
//! First the roll-ups are counted; they say how many records the runs have. A journal lists the entries with each value, so
//! this and the first stages read little else.

use std::collections::{HashMap, VecDeque};

use journal::{Entry, EntrySource, PollProgress, ReadError, Start, Tail, Timestamps};
use model::history::RunFilter;
use records::codec::Resolution;
use records::ids::RunId;
use records::rollups::{self, NO_END, RECORDS_MAX, RUNS_MAX, RunCount, RunProgress, Stage};
use records::wire::field;

use crate::journals::source::FIELDS;

/// The runs that are read together: the id of each is compared with that of an entry.
const RUNS_TOGETHER_MAX: usize = 64;
/// What was written so long before the files were opened may be found twice, in microseconds.
const UNSETTLED_US: u64 = 60_000_000;
/// The end of a run is read record by record: each client has its totals there, also one that no roll-up has. In
/// microseconds, more than a roll-up of a minute stands for.
const END_US: u64 = 90_000_000;
/// What is read behind a range, in microseconds: the next records show that runs went on.
const BEHIND_US: u64 = 120_000_000;
/// How far a clock may have been set back, in microseconds.
const CLOCK_STEP_US: u64 = 30_000_000;

/// Files that are read in stages if a range of them has many records.
pub(super) struct StagedFiles<F> {
    name: String,
    open: F,
    /// The end of the range, if every file continues the one before: nothing else is read behind it.
    stop_us: u64,
    opened_us: u64,
    tail: Tail,
    plan: Plan,
    /// What is read next.
    parts: VecDeque<Part>,
    /// Each part may meet the same damage.
    skipped_bytes: u64,
    skipped_bytes_of_part: u64,
}

enum Plan {
    Census(Census),
    /// All is read record by record.
    Whole,
    Staged(StagedReading),
}

/// Counts the roll-ups of the runs up to the end of a range.
struct Census {
    filter: RunFilter,
    /// By their ids.
    counted: HashMap<Box<str>, RunCount>,
    /// When runs ended, in microseconds since 1970. Anybody may write that one ended early: then more is read.
    ends: HashMap<Box<str>, u64>,
}

/// A range with many records.
struct StagedReading {
    counted: Vec<RunCount>,
    ends: HashMap<Box<str>, u64>,
    opened_us: u64,
    /// What a person should know of it.
    note: Option<String>,
    stage: Stage,
    stages: VecDeque<Stage>,
    progress: RunProgress,
}

/// Entries with one of these fields, from a time on.
struct Part {
    fields: Vec<String>,
    since_us: u64,
}

impl<F: Fn(Start) -> Result<Tail, ReadError>> StagedFiles<F> {
    /// Opens the files of this name for the runs and the range of a filter.
    pub(super) fn open(
        name: String,
        filter: RunFilter,
        is_of_one_writer: bool,
        open: F,
    ) -> Result<Self, ReadError> {
        let opened_us = Timestamps::now().realtime_us;
        let until_us = if is_of_one_writer { filter.range.until_us } else { u64::MAX };
        // What clients had before a range is not in roll-ups, which lack most of them.
        let is_whole = filter.range.from_us > 0;
        let tail = open(Start::Oldest)?;
        let (tail, plan) =
            if is_whole { (tail.only_with(&FIELDS), Plan::Whole) } else { Census::begin(tail, filter) };
        Ok(Self {
            name,
            open,
            stop_us: until_us.saturating_add(BEHIND_US + CLOCK_STEP_US),
            opened_us,
            tail,
            plan,
            parts: VecDeque::new(),
            skipped_bytes: 0,
            skipped_bytes_of_part: 0,
        })
    }

    /// Begins the next part; returns false if there is none.
    fn go_on(&mut self) -> Result<bool, ReadError> {
        if let Plan::Census(census) = &mut self.plan {
            self.plan = census.plan(self.opened_us);
            if matches!(self.plan, Plan::Whole) {
                self.parts.push_back(Part::of(&FIELDS, 0));
            }
        }
        if let Plan::Staged(staged) = &mut self.plan {
            while self.parts.is_empty() && staged.next_stage() {
                self.parts = staged.parts();
            }
        }
        let Some(part) = self.parts.front() else { return Ok(false) };
        let start = if part.since_us == 0 { Start::Oldest } else { Start::Since(part.since_us) };
        let fields: Vec<&str> = part.fields.iter().map(String::as_str).collect();
        self.tail = (self.open)(start)?.only_with(&fields);
        self.parts.pop_front();
        self.skipped_bytes_of_part = 0;
        Ok(true)
    }

    /// Returns how many of the damaged bytes no other part has met.
    fn newly_skipped(&mut self, bytes: u64) -> u64 {
        self.skipped_bytes_of_part += bytes;
        let more = self.skipped_bytes_of_part.saturating_sub(self.skipped_bytes);
        self.skipped_bytes += more;
        more
    }
}

impl<F: Fn(Start) -> Result<Tail, ReadError>> EntrySource for StagedFiles<F> {
    fn poll(&mut self, each: &mut dyn FnMut(&Entry)) -> Result<PollProgress, ReadError> {
        let Self { tail, plan, stop_us, .. } = self;
        let mut is_past = false;
        let mut progress = tail.poll(|entry| {
            is_past |= entry.realtime_us() > *stop_us;
            match plan {
                Plan::Census(census) => census.take(entry),
                Plan::Whole => each(entry),
                Plan::Staged(staged) => staged.pass(entry, each),
            }
        })?;
        progress.skipped_bytes = self.newly_skipped(progress.skipped_bytes);
        if !progress.more || is_past {
            progress.more = self.go_on()?;
        }
        Ok(progress)
    }

    fn note(&self) -> Option<String> {
        let Plan::Staged(staged) = &self.plan else { return None };
        Some(format!("{} {}", self.name, staged.note.as_ref()?))
    }

    fn refusal(&self) -> Option<&ReadError> {
        self.tail.refusal()
    }
}

impl Census {
    fn begin(tail: Tail, filter: RunFilter) -> (Tail, Plan) {
        let [minutes, hours] = [Resolution::Minute, Resolution::Hour].map(|one| &*one.kind_field().name);
        let run_records = format!("{}=run", field::KIND.name);
        let tail = tail.only_with_or_first_of(&[minutes, hours, &run_records], &field::RUN.name);
        (tail, Plan::Census(Self { filter, counted: HashMap::new(), ends: HashMap::new() }))
    }

    /// Adds what an entry says of its run.
    fn take(&mut self, entry: &Entry) {
        let Self { filter, counted, ends } = self;
        let is_wanted = |run: &&str| run.starts_with(&*filter.id_prefix) && run.parse::<RunId>().is_ok();
        let Some(run) = entry.text(&field::RUN.name).filter(is_wanted) else { return };
        // With one more, all is read record by record.
        if counted.len() > RUNS_MAX && !counted.contains_key(run) {
            return;
        }
        let new = || RunCount {
            run: run.to_owned(),
            from_us: u64::MAX,
            // Each run may go on.
            to_us: u64::MAX,
            first: u64::MAX,
            last: u64::MAX,
            ..RunCount::default()
        };
        let of_run = counted.entry(run.into()).or_insert_with(new);
        let (at_us, number) = (entry.realtime_us(), |name| entry.text(name)?.parse::<u64>().ok());
        of_run.from_us = of_run.from_us.min(at_us);
        if let Some(kind) = entry.text(&field::KIND.name) {
            let seq = number(&field::SEQ.name).unwrap_or(u64::MAX);
            of_run.first = of_run.first.min(seq);
            if kind == "run" && entry.text(&field::PHASE.name) == Some("stop") {
                let end_us = ends.entry(run.into()).or_insert(at_us);
                *end_us = at_us.min(*end_us);
            }
        }
        let is_minute = entry.text(&field::MINUTE.name).is_some();
        let is_hour = entry.text(&field::HOUR.name).is_some();
        let batch = number(&field::AFTER.name).zip(number(&field::THROUGH.name)).filter(|_| is_minute);
        let records = batch.map_or(0, |(after, through)| through.saturating_sub(after));
        if at_us < filter.range.until_us {
            of_run.minutes += u64::from(is_minute);
            of_run.hours += u64::from(is_hour);
            of_run.intervals = of_run.intervals.saturating_add(records);
        }
    }

    fn plan(&mut self, opened_us: u64) -> Plan {
        let Self { filter: RunFilter { range, records_max, .. }, counted, ends } = self;
        let records = counted.values().fold(0_u64, |sum, run| sum.saturating_add(run.intervals));
        if counted.len() > RUNS_MAX || records <= *records_max {
            return Plan::Whole;
        }
        // Also what has no roll-ups has a record that made it known.
        let counted: Vec<RunCount> = std::mem::take(counted)
            .into_values()
            .map(|run| RunCount { intervals: run.intervals.saturating_add(1), ..run })
            .collect();
        let finest = rollups::finest(&counted, *records_max, NO_END);
        let until_s = (range.until_us / 1_000_000).saturating_add(1);
        Plan::Staged(StagedReading {
            note: rollups::note(finest, records, *records_max),
            stage: Stage { resolution: Resolution::Interval, until_s: 0 },
            stages: rollups::stages(finest, 0, until_s).into(),
            progress: RunProgress::new(&counted, opened_us),
            ends: std::mem::take(ends),
            opened_us,
            counted,
        })
    }
}

impl StagedReading {
    fn next_stage(&mut self) -> bool {
        let Some(stage) = self.stages.pop_front() else { return false };
        self.stage = stage;
        self.progress.next_stage(stage.resolution);
        true
    }

    /// Returns the parts of the present stage. The last one finds what follows, if the stage has no end.
    fn parts(&self) -> VecDeque<Part> {
        let Stage { resolution, until_s } = self.stage;
        if resolution != Resolution::Interval {
            return [Part::of(&[&resolution.kind_field().name], 0)].into();
        }
        let [_, dropped] = FIELDS;
        let mut parts = VecDeque::from([Part::of(&[dropped], 0)]);
        // What former stages have read of the runs is unpacked once more if an earlier one is read with them.
        let mut again = u64::MAX;
        for run in self.progress.unread(&self.counted, self.stage) {
            let id = format!("{}={}", field::RUN.name, run.id);
            again = again.saturating_add(run.through);
            let part = parts.back_mut().filter(|part| part.fields.len() < RUNS_TOGETHER_MAX);
            if let Some(part) = part.filter(|_| again <= RECORDS_MAX) {
                part.fields.push(id);
            } else {
                parts.push_back(Part::of(&[&id], run.from_s.saturating_mul(1_000_000)));
                again = run.through;
            }
        }
        if until_s == NO_END {
            parts.push_back(Part::of(&FIELDS, self.opened_us.saturating_sub(UNSETTLED_US)));
        }
        parts
    }

    /// Passes an entry on if it is of this stage, and former ones have not read it.
    fn pass(&mut self, entry: &Entry, each: &mut dyn FnMut(&Entry)) {
        let kind = &self.stage.resolution.kind_field().name;
        let (at_us, run) = (entry.realtime_us(), entry.text(&field::RUN.name));
        let is_of_stage = run.is_none() || entry.text(kind).is_some();
        let is_of_end = || {
            let end_us = run.and_then(|run| self.ends.get(run)).copied().unwrap_or(u64::MAX);
            self.stage.resolution != Resolution::Interval && at_us.saturating_add(END_US) > end_us
        };
        if !is_of_stage || at_us / 1_000_000 >= self.stage.until_s || is_of_end() {
            return;
        }
        self.progress.pass(entry, each);
    }
}

impl Part {
    fn of(fields: &[&str], since_us: u64) -> Self {
        Self { fields: fields.iter().map(|field| (*field).to_owned()).collect(), since_us }
    }
}
