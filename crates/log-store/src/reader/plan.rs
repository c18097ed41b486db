//! The plan by which a range with many records is read: its stages, and the parts of each.

use std::collections::VecDeque;

use journal::Entry;
use records::codec::Resolution;
use records::rollups::{self, NO_END, RUNS_MAX, RunCount, RunProgress, Stage};

use super::parts::{self, Part};
use super::{further, runs, time};
use crate::answer;
use crate::client::{Client, Reason};
use crate::now_s;
use crate::url::StoreUrl;

/// How a range is read.
#[derive(Debug)]
pub(super) enum Plan {
    /// All is read record by record.
    Whole,
    /// Its records are to be counted.
    Uncounted(StagedRange),
    Staged(Box<StagedReading>),
}

impl Plan {
    /// Whether nothing follows what is read now.
    pub(super) fn is_last(&self) -> bool {
        match self {
            Self::Whole | Self::Uncounted(_) => true,
            Self::Staged(staged) => staged.stages.is_empty() && staged.parts.is_empty(),
        }
    }

    /// Whether roll-ups of an entry's run were read.
    pub(super) fn knows(&self, entry: &Entry) -> bool {
        matches!(self, Self::Staged(staged) if staged.progress.knows(entry))
    }

    /// Passes an entry on, unless it was read in a former stage.
    pub(super) fn pass(&mut self, entry: &Entry, each: &mut dyn FnMut(&Entry)) {
        match self {
            Self::Whole | Self::Uncounted(_) => each(entry),
            Self::Staged(staged) => staged.progress.pass(entry, each),
        }
    }
}

/// A range of time that is read in stages if it has many records.
#[derive(Clone, Debug)]
pub(super) struct StagedRange {
    /// What the runs' ids and all entries must pass, in LogsQL.
    runs: String,
    further: String,
    /// In seconds; the greatest one for no end.
    from_s: u64,
    until_s: u64,
    records_max: u64,
}

/// A range with many records.
#[derive(Debug)]
pub(super) struct StagedReading {
    range: StagedRange,
    /// The finest resolution that is read within the range.
    finest: Resolution,
    /// The stages that follow, and the parts of the present one that follow.
    stages: VecDeque<Stage>,
    parts: VecDeque<Part>,
    progress: RunProgress,
    counted: Vec<RunCount>,
    /// When they were counted, in seconds since 1970.
    planned_s: u64,
}

impl StagedRange {
    /// A range in microseconds since 1970.
    pub(super) fn new(
        url: &StoreUrl,
        id_prefix: &str,
        (from_us, until_us): (u64, u64),
        records_max: u64,
    ) -> Self {
        Self {
            runs: runs(id_prefix),
            further: further(url),
            from_s: from_us / 1_000_000,
            until_s: (until_us / 1_000_000).saturating_add(1),
            records_max,
        }
    }

    /// Counts the records of the range, and plans the stages if they are many.
    pub(super) fn plan(&self, client: &Client) -> Result<Plan, Reason> {
        let Self { runs, further, from_s, until_s, records_max } = self;
        let planned_s = now_s();
        let ended = if *until_s == NO_END { String::new() } else { format!(" _time:<{}", time(*until_s)) };
        let counted = count_runs(client, &format!("{runs}{further}{ended}"))?;
        if intervals(&counted) <= *records_max {
            return Ok(Plan::Whole);
        }
        let begun = if *from_s == 0 { String::new() } else { format!(" _time:>={}", time(*from_s)) };
        let within = count_runs(client, &format!("{runs}{further}{begun}{ended}"))?;
        let span_s = if *from_s == 0 { NO_END } else { until_s.min(&now_s()).saturating_sub(*from_s) };
        let finest = rollups::finest(&within, *records_max, span_s);
        Ok(Plan::Staged(Box::new(StagedReading {
            range: self.clone(),
            finest,
            stages: rollups::stages(finest, *from_s, *until_s).into(),
            parts: VecDeque::new(),
            progress: RunProgress::new(&counted, planned_s * 1_000_000),
            counted,
            planned_s,
        })))
    }
}

impl StagedReading {
    /// Returns what is read next of the present stage, or of the stages behind it.
    pub(super) fn next_part(&mut self) -> Option<Part> {
        while self.parts.is_empty() {
            let stage = self.stages.pop_front()?;
            self.progress.next_stage(stage.resolution);
            let StagedRange { runs, further, .. } = &self.range;
            let counted = (&*self.counted, self.planned_s);
            self.parts = parts::parts(&self.progress, counted, stage, (runs, further)).into();
        }
        self.parts.pop_front()
    }

    /// Returns what is read in place of all records, if something is.
    pub(super) fn note(&self) -> Option<String> {
        rollups::note(self.finest, intervals(&self.counted), self.range.records_max)
    }
}

/// Counts the records of each run.
fn count_runs(client: &Client, more: &str) -> Result<Vec<RunCount>, Reason> {
    let [intervals, minutes, hours] = [Resolution::Interval, Resolution::Minute, Resolution::Hour]
        .map(|resolution| resolution.kind_field().name.clone());
    let query = format!(
        "({intervals}:* or {minutes}:* or {hours}:*){more} | stats by (TLSDASH_RUN) min(_time) from, max(_time) to, \
         min(TLSDASH_SEQ) if ({intervals}:*) first, max(TLSDASH_SEQ) if ({intervals}:*) last, \
         count() if ({intervals}:*) intervals, count() if ({minutes}:*) minutes, count() if ({hours}:*) hours"
    );
    let mut counted = Vec::new();
    client.ask(&query, &mut |line| {
        counted.push(answer::run_count(line)?);
        if counted.len() > RUNS_MAX {
            return Err(format!("it has more than {RUNS_MAX} runs: narrow them down with ?query=_time:1d"));
        }
        Ok(())
    })?;
    Ok(counted)
}

fn intervals(counted: &[RunCount]) -> u64 {
    counted.iter().map(|run| run.intervals).sum()
}
