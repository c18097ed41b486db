//! Reads and follows a store.
//!
//! A census counts the entries of each hour, and those of each second of the hours that have changed; seconds that lack
//! some are read. The first reading takes all. Later, the recent minutes are counted once a second, and a second is read once
//! its count stands still; a census of all hours finds what was uploaded late. The records of a run are passed on in the
//! order of their numbers.

mod parts;
mod plan;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

use journal::{Entry, EntrySource, FileState, PollProgress, ReadError, Start};
use records::ids::RunId;

use crate::answer;
use crate::census::{Counts, HOUR, ReadCounts, Window, windows};
use crate::client::{Client, Reason};
use crate::now_s;
use crate::sequence::RunSequences;
use crate::url::StoreUrl;
use plan::{Plan, StagedRange};

/// The latest seconds, which are counted often, and those of clocks that are ahead.
const RECENT_S: u64 = 60;
const AHEAD_S: u64 = 300;
/// The hours whose seconds are counted with one query.
const HOURS_MAX: u64 = 12;
/// The lines of a census: ten years of hours.
const CENSUS_LINES_MAX: usize = 100_000;
/// journald's messages about what it dropped, in LogsQL.
const DROPPED: &str = "N_DROPPED:* _TRANSPORT:=driver";
/// How often a window is read that has fewer entries than were counted.
const TRIES_MAX: u32 = 3;

/// How often a store is asked.
#[derive(Clone, Copy, Debug)]
struct Pace {
    recent: Duration,
    all: Duration,
    /// After an error.
    retry: Duration,
    /// How long a record waits for one before it.
    hole: Duration,
}

const PACE: Pace = Pace {
    recent: Duration::from_secs(1),
    all: Duration::from_secs(30),
    retry: Duration::from_secs(1),
    // Longer than between two censuses of all hours.
    hole: Duration::from_secs(40),
};

/// The entries of a store that are records, or journald's messages about dropped ones.
#[derive(Debug)]
pub struct StoreReader {
    place: String,
    client: Client,
    /// What is read, in LogsQL.
    filter: String,
    plan: Plan,
    pace: Pace,
    read: ReadCounts,
    /// The latest seconds by the census before.
    recent: Counts,
    queue: VecDeque<Query>,
    sequences: RunSequences,
    next_recent: Instant,
    next_all: Instant,
    /// Until all that was there at first has been read.
    is_first: bool,
    failed: Option<(Instant, Reason)>,
}

#[derive(Debug)]
enum Query {
    /// Counts the seconds from one to before another, and reads those that lack entries.
    Seconds {
        from: u64,
        to: u64,
        tries: u32,
    },
    Window(Window, u32),
}

impl Query {
    /// The first second that it is about, and that behind the last.
    fn seconds(&self) -> (u64, u64) {
        match self {
            Self::Seconds { from, to, .. } | Self::Window(Window { from, to, .. }, _) => (*from, *to),
        }
    }
}

impl StoreReader {
    /// Opens a store for the records of the runs whose ids begin with `id_prefix`. Does not connect.
    ///
    /// # Errors
    /// If a file that the URL names cannot be read or used.
    pub fn open(url: &StoreUrl, start: Start, id_prefix: &str) -> Result<Self, ReadError> {
        let place = url.to_string();
        let client = Client::new(url, "/select/logsql/query")
            .map_err(|reason| ReadError::Store { place: place.clone(), reason })?;
        let now = Instant::now();
        Ok(Self {
            place,
            client,
            filter: filter(url, start, id_prefix),
            plan: Plan::Whole,
            pace: PACE,
            read: ReadCounts::default(),
            recent: Counts::new(),
            queue: VecDeque::new(),
            sequences: RunSequences::default(),
            next_recent: now,
            next_all: now,
            is_first: true,
            failed: None,
        })
    }

    /// Opens a store for a range of time, in microseconds since 1970: what is before it has only its totals. If there are
    /// more than `records_max` records, roll-ups are read in their place as far as they go, the finest that are fewer.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_range(
        url: &StoreUrl,
        id_prefix: &str,
        range_us: (u64, u64),
        records_max: u64,
    ) -> Result<Self, ReadError> {
        let plan = Plan::Uncounted(StagedRange::new(url, id_prefix, range_us, records_max));
        Ok(Self { plan, ..Self::open(url, Start::Oldest, id_prefix)? })
    }

    /// Begins with what the plan has next; false if that is nothing.
    fn next_part(&mut self) -> bool {
        let Plan::Staged(staged) = &mut self.plan else { return false };
        let Some(part) = staged.next_part() else { return false };
        self.filter = part.filter;
        self.read = ReadCounts::default();
        self.sequences = RunSequences::default();
        self.recent.clear();
        self.next_all = Instant::now();
        // Of a short time no hours need be counted first.
        let short = part.within_s.filter(|(from, to)| to - from <= HOURS_MAX * HOUR);
        self.queue.extend(short.map(|(from, to)| Query::Seconds { from, to, tries: 0 }));
        true
    }

    /// Sends the next query that is due, if there is one.
    fn step(&mut self, each: &mut dyn FnMut(&Entry)) -> Result<PollProgress, Reason> {
        let mut progress = PollProgress {
            entries: 0,
            more: false,
            rotations: 0,
            skipped_bytes: 0,
            walked_bytes: 0,
            writer: FileState::Online,
        };
        if let Plan::Uncounted(range) = &self.plan {
            self.plan = range.plan(&self.client)?;
            self.next_part();
        }
        let now = Instant::now();
        match self.queue.pop_front() {
            Some(query) => {
                let (from, to) = query.seconds();
                let sent = match query {
                    Query::Window(window, tries) => self.read_window(&window, tries, (&mut progress, each)),
                    Query::Seconds { tries, .. } => self.count_seconds(from, to, tries),
                };
                sent.inspect_err(|_| self.read.forget_census(from, to))?;
            }
            None if now >= self.next_all => {
                self.count_hours()?;
                self.next_all = Instant::now() + self.pace.all;
            }
            None if now >= self.next_recent => {
                self.count_recent()?;
                if self.queue.is_empty() {
                    let plan = &mut self.plan;
                    self.sequences.release_older(self.pace.hole, now, &mut |entry| plan.pass(entry, each));
                }
                self.next_recent = Instant::now() + self.pace.recent;
            }
            None => {}
        }
        progress.more = !self.queue.is_empty();
        if self.is_first && !progress.more {
            let is_last = self.plan.is_last();
            let each = &mut |entry: &Entry| self.plan.pass(entry, each);
            if is_last {
                self.sequences.release_without_beginning(each);
            } else {
                // A hole in roll-ups stays one.
                self.sequences.release(each);
                progress.more = self.next_part();
            }
            self.is_first = progress.more;
        }
        Ok(progress)
    }

    /// Queues a count of the seconds of all hours that have changed, several hours together.
    fn count_hours(&mut self) -> Result<(), Reason> {
        let mut groups: Vec<(u64, u64)> = Vec::new();
        for (hour, count) in self.census("", "1h")? {
            if !self.read.has_changed(hour, count) {
                continue;
            }
            match groups.last_mut().filter(|(from, to)| *to == hour && hour - *from < HOURS_MAX * HOUR) {
                Some((_, to)) => *to = hour + HOUR,
                None => groups.push((hour, hour + HOUR)),
            }
        }
        self.queue.extend(groups.into_iter().map(|(from, to)| Query::Seconds { from, to, tries: 0 }));
        Ok(())
    }

    /// Queues the seconds that lack entries. The recent ones are left to [`Self::count_recent`] once all was read, unless
    /// they are read again.
    fn count_seconds(&mut self, from: u64, to: u64, tries: u32) -> Result<(), Reason> {
        let counted = self.census(&time_range(from, to), "1s")?;
        self.read.lower(from, to, &counted);
        let left_out = if self.is_first || tries > 0 { 0..0 } else { self.recent_range() };
        let is_wanted = |second, count| !left_out.contains(&second) && self.read.lacks_second(second, count);
        let is_left = |(second, count): (&u64, &u64)| {
            left_out.contains(second) && self.read.lacks_second(*second, *count)
        };
        let is_for_later = counted.iter().any(is_left);
        let found = windows(&counted, is_wanted);
        if is_for_later {
            // The recent seconds may have moved on before they are read.
            self.read.forget_census(from, to);
        }
        for window in found.into_iter().rev() {
            self.queue.push_front(Query::Window(window, tries));
        }
        Ok(())
    }

    /// Queues the recent seconds that lack entries and have the count of a census before.
    fn count_recent(&mut self) -> Result<(), Reason> {
        let recent = self.recent_range();
        let counted = self.census(&time_range(recent.start, recent.end), "1s")?;
        let is_settled =
            |second, count| self.read.lacks_second(second, count) && self.recent.get(&second) == Some(&count);
        let found = windows(&counted, is_settled);
        self.queue.extend(found.into_iter().map(|window| Query::Window(window, 0)));
        self.recent = counted;
        Ok(())
    }

    /// The recent seconds. If all writers' clocks are behind this one, theirs counts.
    fn recent_range(&self) -> Range<u64> {
        let now = now_s();
        let from = self.read.newest().map_or(now, |newest| newest.min(now)).saturating_sub(RECENT_S);
        from..from + RECENT_S + AHEAD_S
    }

    /// Counts entries by buckets of time.
    fn census(&self, range: &str, bucket: &str) -> Result<Counts, Reason> {
        let query = format!("{} {range} | stats by (_time:{bucket}) count() n", self.filter);
        let mut counts = Counts::new();
        self.client.ask(&query, &mut |line| {
            counts.extend(answer::bucket(line)?);
            if counts.len() > CENSUS_LINES_MAX {
                return Err("it has more than can be counted: narrow it down with ?query=_time:1h".to_owned());
            }
            Ok(())
        })?;
        Ok(counts)
    }

    /// Passes the entries of a window to `each`, in order. If they are fewer than were counted, they are counted again.
    fn read_window(
        &mut self,
        window: &Window,
        tries: u32,
        (progress, each): (&mut PollProgress, &mut dyn FnMut(&Entry)),
    ) -> Result<(), Reason> {
        let Window { from, to, entries: counted } = *window;
        let mut entries = Vec::new();
        let query = format!("{} {}", self.filter, time_range(from, to));
        progress.walked_bytes = self.client.ask(&query, &mut |line| {
            entries.push(answer::entry(line)?);
            Ok(())
        })?;
        entries.sort_by_cached_key(order);
        progress.entries = entries.len() as u64;
        let (mut read, now) = (Counts::new(), Instant::now());
        let Self { plan, sequences, is_first, .. } = self;
        for entry in entries {
            *read.entry(entry.realtime_us() / 1_000_000).or_default() += 1;
            let is_from_start = *is_first && !plan.knows(&entry);
            sequences.take(entry, (is_from_start, now), &mut |entry| plan.pass(entry, each));
        }
        self.read.insert(read, now_s() + AHEAD_S);
        if progress.entries < counted {
            if tries + 1 == TRIES_MAX {
                return Err(format!(
                    "it counts {counted} entries from {} on, and returns {}",
                    time(from),
                    progress.entries
                ));
            }
            self.queue.push_front(Query::Seconds { from, to, tries: tries + 1 });
        }
        Ok(())
    }
}

impl EntrySource for StoreReader {
    fn note(&self) -> Option<String> {
        let Plan::Staged(staged) = &self.plan else { return None };
        Some(format!("{} {}", self.place, staged.note()?))
    }

    fn finish(&mut self, each: &mut dyn FnMut(&Entry)) {
        let plan = &mut self.plan;
        self.sequences.release(&mut |entry| plan.pass(entry, each));
    }

    fn poll(&mut self, each: &mut dyn FnMut(&Entry)) -> Result<PollProgress, ReadError> {
        let now = Instant::now();
        if let Some((_, reason)) = self.failed.as_ref().filter(|(until, _)| now < *until) {
            return Err(ReadError::Store { place: self.place.clone(), reason: reason.clone() });
        }
        match self.step(each) {
            Ok(progress) => {
                self.failed = None;
                Ok(progress)
            }
            Err(reason) => {
                let error = ReadError::Store { place: self.place.clone(), reason: reason.clone() };
                // What was read is known. The rest is found by counting again.
                for query in self.queue.drain(..) {
                    let (from, to) = query.seconds();
                    self.read.forget_census(from, to);
                }
                self.recent.clear();
                self.sequences.wait_from(Instant::now());
                self.next_all = now;
                self.failed = Some((Instant::now() + self.pace.retry, reason));
                Err(error)
            }
        }
    }
}

/// The order of time; within a microsecond, that of runs and of their numbers.
fn order(entry: &Entry) -> (u64, Option<RunId>, u64) {
    let run = entry.text("TLSDASH_RUN").and_then(|run| run.parse().ok());
    let seq = entry.text("TLSDASH_SEQ").and_then(|seq| seq.parse().ok()).unwrap_or_default();
    (entry.realtime_us(), run, seq)
}

fn filter(url: &StoreUrl, start: Start, id_prefix: &str) -> String {
    let (runs, further) = (runs(id_prefix), further(url));
    let since = match start {
        Start::Oldest | Start::File => None,
        Start::Since(realtime_us) => Some(realtime_us / 1_000_000),
        Start::End => Some(now_s()),
    };
    let since = since.map_or_else(String::new, |second| format!(" _time:>={}", time(second)));
    format!("(TLSDASH_KIND:*{runs} or {DROPPED}){since}{further}")
}

/// What the ids of runs must be like.
fn runs(id_prefix: &str) -> String {
    if id_prefix.is_empty() { String::new() } else { format!(" TLSDASH_RUN:=\"{id_prefix}\"*") }
}

/// The filter of the URL.
fn further(url: &StoreUrl) -> String {
    url.parameters.query.as_ref().map_or_else(String::new, |query| format!(" ({query})"))
}

fn time_range(from: u64, to: u64) -> String {
    format!("_time:[{},{})", time(from), time(to))
}

/// A second as LogsQL has it.
fn time(second: u64) -> String {
    let second = i64::try_from(second).ok().and_then(|second| jiff::Timestamp::from_second(second).ok());
    second.unwrap_or(jiff::Timestamp::MAX).to_string()
}
