//! Reading runs from journals for everything but the dashboard: one run, a time range of it, or several merged.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::ops::Deref;
use std::str::FromStr;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::Context;
use journal::Timestamps;
use model::history::{Moment, MomentRange, RunFilter};
use model::runs::{Model, Run};
use records::ids::{FAMILY_DIGITS, RunId};
use records::kinds::Record;
use records::rollups::RECORDS_MAX;
use records::slice::TimeRange;
use report::RunPart;

use crate::error::usage;
use crate::journals::choice;
use crate::journals::contents::JournalContents;
use crate::journals::source::{JournalSource, shown};
use crate::journals::writers::WriterArgs;
use crate::value::{InvalidValue, ParsedValue};

#[derive(Clone, Copy, Debug)]
pub(crate) struct RunChoice<'a> {
    /// The command, for messages.
    pub(crate) mode: &'a str,
    /// A prefix of the run's id; `None` for the newest run of each host.
    pub(crate) run: Option<&'a str>,
    /// The name of the host; `None` for all hosts.
    pub(crate) host: Option<&'a str>,
    /// The writers whose runs are read.
    pub(crate) writers: &'a WriterArgs,
    /// The records that are read one by one.
    pub(crate) records: RecordLimit,
}

/// How many records are read one by one: of a place with more, roll-ups are read in their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordLimit(u64);

#[derive(Clone, Copy, Debug)]
pub(crate) struct RunQuery<'a> {
    pub(crate) choice: RunChoice<'a>,
    /// Intervals kept of each series.
    pub(crate) history: usize,
    /// The name of the service; `None` for all of them together.
    pub(crate) service: Option<&'a str>,
    /// Omit earlier records, by wall-clock time.
    pub(crate) since: Option<&'a ParsedValue<Moment>>,
    /// Omit later records.
    pub(crate) until: Option<&'a ParsedValue<Moment>>,
}

/// A journal, or a time range of it.
#[derive(Debug)]
pub(crate) struct SourcePart<'a> {
    pub(crate) place: JournalSource,
    /// Which runs, and which time range.
    pub(crate) filter: RunFilter,
    /// Its name for people.
    pub(crate) name: String,
    writers: &'a WriterArgs,
}

impl<'a> SourcePart<'a> {
    /// Parses a source with an optional `@FROM..TO`. To resolve that, the run is read once.
    ///
    /// # Errors
    /// When the source or the range cannot be parsed, or the run cannot be read.
    pub(crate) fn parse(source: Option<&OsStr>, choice: RunChoice<'a>) -> anyhow::Result<Self> {
        let RunChoice { mode, run, host, writers, records } = choice;
        let (place, window) = place_and_window(mode, source, writers)?;
        let place = place.limited_to(host, writers.named_unit().as_deref());
        // What parts of a run have in common with it.
        let id_prefix =
            run.map(|prefix| prefix[..prefix.len().min(FAMILY_DIGITS)].to_owned()).unwrap_or_default();
        let filter = RunFilter {
            writers: writers.filter(&place),
            id_prefix,
            range: TimeRange::ALL,
            records_max: records.0,
        };
        let mut part = Self { name: place.to_string(), place, filter, writers };
        if let Some(window) = window {
            let contents = part.read(1)?;
            let chosen = contents.run(run)?;
            let refuse = |error| usage(format!("{mode} {}: {error}", shown(source.unwrap_or_default())));
            let range = window.of_run(chosen).map_err(refuse)?;
            part.filter.range = overlapping(range, chosen).map_err(refuse)?;
            part.name = shown(source.unwrap_or_default());
        }
        Ok(part)
    }

    /// Reads it to its present end, and keeps the latest `history` intervals of each series.
    pub(crate) fn read(&self, history: usize) -> anyhow::Result<JournalContents<'_>> {
        self.read_into(Model::for_merging(history), |_| {})
    }

    /// As [`Self::read`] into this model, and passes each record to `inspect`, for data that the model does not keep.
    pub(crate) fn read_into(
        &self,
        model: Model,
        inspect: impl FnMut(&Record),
    ) -> anyhow::Result<JournalContents<'_>> {
        JournalContents::read_into(model, &self.place, &self.filter, self.writers, inspect)
    }
}

/// A run read from a journal, or several merged.
#[derive(Debug)]
pub(crate) struct RecordedRun {
    model: Model,
    run: RunId,
    /// The journals it was read from.
    pub(crate) source: String,
    /// Notes on runs that were merged.
    pub(crate) parts: Vec<RunPart>,
    /// The time range asked of every source; all of the run where they differ.
    pub(crate) range: TimeRange,
}

impl RecordedRun {
    /// Reads a run from one source, or merges the runs of several.
    ///
    /// # Errors
    /// When a journal cannot be read, or holds no such run.
    pub(crate) fn read(sources: &[OsString], wanted: &RunQuery<'_>) -> anyhow::Result<Self> {
        let RunQuery { choice, history, .. } = *wanted;
        let clock = by_clock(wanted)?;
        let each: Vec<Option<&OsStr>> = match sources {
            [] => vec![None],
            sources => sources.iter().map(|source| Some(&**source)).collect(),
        };
        let (mut read, mut ranges) = (Vec::new(), Vec::new());
        for source in each {
            let mut part = SourcePart::parse(source, choice)?;
            part.filter.range = within(clock, part.filter.range);
            ranges.push(part.filter.range);
            let contents = part.read(history)?;
            let runs = contents.chosen(choice.run, choice.host, wanted.service)?;
            contents.report_ignored();
            read.push((contents.model, runs, part.name));
        }
        ranges.dedup();
        let range = if let [one] = *ranges { one } else { TimeRange::ALL };
        Ok(Self { range, ..Self::of(read)? })
    }

    fn of(mut read: Vec<(Model, Vec<RunId>, String)>) -> anyhow::Result<Self> {
        if let [(_, runs, _)] = &*read
            && let [run] = **runs
        {
            let (model, _, source) = read.remove(0);
            return Ok(Self { model, run, source, parts: Vec::new(), range: TimeRange::ALL });
        }
        let runs = read
            .iter()
            .flat_map(|(model, runs, _)| runs.iter().filter_map(move |id| Some((model, model.run(*id)?))));
        let runs: Vec<(&Model, &Run)> = runs.collect();
        let mut seen = HashSet::new();
        if let Some((_, twice)) = runs.iter().find(|(_, run)| !seen.insert(run.id())) {
            return Err(usage(format!(
                "run {} is in several sources, and would count twice",
                twice.id().short()
            )));
        }
        let names = names(&runs);
        let parts: Vec<model::runs::RunMember<'_>> = runs
            .iter()
            .zip(&names)
            .map(|((model, run), name)| model::runs::RunMember { name, run, model })
            .collect();
        let model = Model::merged(&parts);
        let run = model.current().context("there is nothing to take together")?.id();
        let source = read.iter().map(|(.., name)| &**name).collect::<Vec<_>>().join(", ");
        Ok(Self { parts: described(&parts), model, run, source, range: TimeRange::ALL })
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    pub(crate) fn run(&self) -> anyhow::Result<&Run> {
        self.model.run(self.run).context("the run was read, and is not there")
    }
}

/// Names that distinguish runs: host and unit, and the run's id if these are the same.
fn names(runs: &[(&Model, &Run)]) -> Vec<String> {
    let host = |run: &Run| {
        let unit = run.writer().service().unwrap_or_default();
        format!("{} {unit}", run.hostname()).trim().to_owned()
    };
    let name = |(_, run): &(&Model, &Run)| {
        let name = host(run);
        let is_only = !name.is_empty() && runs.iter().filter(|(_, other)| host(other) == name).count() == 1;
        if is_only { name } else { format!("{name} {}", run.id().short()).trim().to_owned() }
    };
    runs.iter().map(name).collect()
}

/// A run's id and account.
pub(crate) fn run_name(run: &Run) -> String {
    match &*run.writer().account() {
        "" => format!("run {}", run.id()),
        account => format!("run {} of {account}", run.id()),
    }
}

/// The merged runs, and the offsets of their beginnings by their clocks.
fn described(parts: &[model::runs::RunMember<'_>]) -> Vec<RunPart> {
    let first_us = parts.iter().map(|part| part.run.began_realtime_us()).min().unwrap_or(0);
    let part = |part: &model::runs::RunMember<'_>| {
        let run = part.run;
        let from_s = (run.began_realtime_us() - first_us) as f64 / 1e6;
        RunPart {
            name: part.name.to_owned(),
            run: run.id(),
            account: run.writer().account(),
            from_s,
            to_s: from_s + run.duration_us() as f64 / 1e6,
            clock_steps: run.health().clock_steps(),
        }
    };
    parts.iter().map(part).collect()
}

/// The time range of `--since` and `--until`.
fn by_clock(wanted: &RunQuery<'_>) -> anyhow::Result<TimeRange> {
    let now_us = Timestamps::now().realtime_us;
    let place = |flag: &str, moment: Option<&ParsedValue<Moment>>, open: u64| {
        let Some(moment) = moment else { return Ok(open) };
        moment.by_clock(now_us).map_err(|error| usage(format!("--{flag} {}: {error}", moment.text())))
    };
    let range = TimeRange {
        from_us: place("since", wanted.since, TimeRange::ALL.from_us)?,
        until_us: place("until", wanted.until, TimeRange::ALL.until_us)?,
    };
    if range.from_us >= range.until_us {
        return Err(usage("--until is not later than --since"));
    }
    Ok(range)
}

fn within(a: TimeRange, b: TimeRange) -> TimeRange {
    TimeRange { from_us: a.from_us.max(b.from_us), until_us: a.until_us.min(b.until_us) }
}

/// The range, if it overlaps the run.
fn overlapping(range: TimeRange, run: &Run) -> Result<TimeRange, String> {
    let (began_us, ended_us) = (run.began_realtime_us(), run.last_realtime_us());
    if range.from_us < ended_us && range.until_us > began_us {
        return Ok(range);
    }
    let clock = |us: u64| humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_micros(us));
    Err(format!(
        "this is not within the run, which lasted {:.1} s, from {} to {}; expected a range such as @0s..{:.0}s",
        run.duration_us() as f64 / 1e6,
        clock(began_us),
        clock(ended_us),
        (run.duration_us() as f64 / 1e6).ceil()
    ))
}

/// Refuses a moment where a range is wanted.
fn refuse_moment(mode: &str, source: &str, text: &str) -> anyhow::Error {
    usage(format!(
        "{mode} {source}@{text}: {text} is a moment, expected a range: @{text}.. from then on, or @..{text} up to then"
    ))
}

/// The named journal, or the journal that `--journal auto` writes to.
pub(crate) fn place(
    mode: &str,
    source: Option<&OsStr>,
    writers: &WriterArgs,
) -> anyhow::Result<JournalSource> {
    match source {
        Some(text) => JournalSource::parse(text).map_err(|error| usage(format!("{mode} {error}"))),
        None => choice::auto_source(writers),
    }
}

/// The journal, and the range behind an `@` that is not part of a file's name.
pub(crate) fn place_and_window(
    mode: &str,
    source: Option<&OsStr>,
    writers: &WriterArgs,
) -> anyhow::Result<(JournalSource, Option<MomentRange>)> {
    let parts = source.and_then(OsStr::to_str).and_then(|text| text.rsplit_once('@'));
    let is_file = source.is_some_and(|text| std::path::Path::new(text).exists());
    match parts.filter(|_| !is_file) {
        Some((source, window)) if window.contains("..") => {
            let parsed =
                window.parse().map_err(|error| usage(format!("{mode} {source}@{window}: {error}")))?;
            let source = Some(source).filter(|source| !source.is_empty()).map(OsStr::new);
            Ok((place(mode, source, writers)?, Some(parsed)))
        }
        Some((source, text)) if text.parse::<Moment>().is_ok() => Err(refuse_moment(mode, source, text)),
        Some(_) | None => Ok((place(mode, source, writers)?, None)),
    }
}

impl RecordLimit {
    pub(crate) const NONE: Self = Self(u64::MAX);
}

impl Default for RecordLimit {
    fn default() -> Self {
        Self(RECORDS_MAX)
    }
}

impl FromStr for RecordLimit {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        match text {
            "all" => Ok(Self::NONE),
            number => number.parse().map(Self).map_err(|_| InvalidValue("a number, or all")),
        }
    }
}

/// A prefix of a run's id, in hexadecimal digits.
#[derive(Clone, Debug)]
pub(crate) struct RunPrefix(String);

impl FromStr for RunPrefix {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let is_hex = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if is_hex && (1..=32).contains(&text.len()) {
            return Ok(Self(text.to_owned()));
        }
        Err(InvalidValue("a run's id, or the beginning of it: up to 32 hexadecimal digits"))
    }
}

impl Deref for RunPrefix {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}
