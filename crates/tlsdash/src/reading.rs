//! Runs as journals hold them, for everything that needs no screen: one, a stretch of it, or several as one.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};

use anyhow::Context;
use journal::Timestamps;
use report::RunPart;
use telemetry::model::{self, Run};
use telemetry::{Model, Moment, MomentRange, RunFilter, RunId, TimeRange};

use crate::args::{RunsArgs, usage};
use crate::contents::Contents;
use crate::journal_choice;
use crate::source::Source;
use crate::writers::WriterArgs;

/// Which runs are meant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice<'a> {
    /// Who asks.
    pub(crate) mode: &'a str,
    /// The beginning of the run's id; otherwise the newest of each host.
    pub(crate) run: Option<&'a str>,
    /// Whose.
    pub(crate) writers: &'a WriterArgs,
}

/// What is to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) choice: Choice<'a>,
    /// Intervals that are kept of each series.
    pub(crate) history: usize,
    /// By the clock: what is earlier is left out.
    pub(crate) since: Option<&'a str>,
    /// And what is later.
    pub(crate) until: Option<&'a str>,
}

impl<'a> Wanted<'a> {
    pub(crate) fn of(mode: &'a str, runs: &'a RunsArgs, history: usize) -> Self {
        let (run, since, until) = (runs.run.as_deref(), runs.since.as_deref(), runs.until.as_deref());
        Self { choice: Choice { mode, run, writers: &runs.writers }, history, since, until }
    }
}

/// A journal, or a stretch of what it holds.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    pub(crate) place: Source,
    /// Which runs, and of when.
    pub(crate) filter: RunFilter,
    /// As a person would name it.
    pub(crate) name: String,
    writers: &'a WriterArgs,
}

impl<'a> Part<'a> {
    /// Understands a source with or without a window behind it. What a window is of is read once for that.
    ///
    /// # Errors
    /// If it means nothing, or a window of a run that cannot be read.
    pub(crate) fn parse(source: Option<&OsStr>, choice: Choice<'a>) -> anyhow::Result<Self> {
        let Choice { mode, run, writers } = choice;
        let (place, window) = place_and_window(mode, source, writers)?;
        let id_prefix = run.unwrap_or_default().to_owned();
        let filter = RunFilter { writers: writers.filter(&place)?, id_prefix, range: TimeRange::ALL };
        let mut part = Self { name: place.to_string(), place, filter, writers };
        if let Some(window) = window {
            let contents = part.read(1)?;
            let place = &part.place;
            let range =
                window.of_run(contents.run(run)?).map_err(|error| usage(format!("{place}: {error}")))?;
            part.filter.range = range;
            part.name = shown(source);
        }
        Ok(part)
    }

    /// Reads it to its present end. Keeps the latest `history` intervals of each series.
    pub(crate) fn read(&self, history: usize) -> anyhow::Result<Contents<'_>> {
        Contents::read(&self.place, &self.filter, self.writers, history)
    }
}

/// A run as a journal holds it, or several as one.
#[derive(Debug)]
pub(crate) struct Recorded {
    model: Model,
    run: RunId,
    /// Where it was read.
    pub(crate) source: String,
    /// What is to be known of runs that were taken together.
    pub(crate) parts: Vec<RunPart>,
    /// The stretch that was asked of every source; all of the run where they differ.
    pub(crate) stretch: TimeRange,
}

impl Recorded {
    /// Reads a run of one source, or of several sources as one.
    ///
    /// # Errors
    /// If a journal cannot be read, or holds no such run.
    pub(crate) fn read(sources: &[OsString], wanted: &Wanted<'_>) -> anyhow::Result<Self> {
        let Wanted { choice, history, .. } = *wanted;
        let run = choice.run.map(run_prefix).transpose()?;
        let clock = by_clock(wanted)?;
        let each: Vec<Option<&OsStr>> = match sources {
            [] => vec![None],
            sources => sources.iter().map(|source| Some(&**source)).collect(),
        };
        let (mut read, mut stretches) = (Vec::new(), Vec::new());
        for source in each {
            let mut part = Part::parse(source, choice)?;
            part.filter.range = within(clock, part.filter.range);
            stretches.push(part.filter.range);
            let contents = part.read(history)?;
            let runs = contents.chosen(run)?;
            contents.say_ignored();
            read.push((contents.model, runs, part.name));
        }
        stretches.dedup();
        let stretch = if let [one] = *stretches { one } else { TimeRange::ALL };
        Ok(Self { stretch, ..Self::of(read)? })
    }

    fn of(mut read: Vec<(Model, Vec<RunId>, String)>) -> anyhow::Result<Self> {
        if let [(_, runs, _)] = &*read
            && let [run] = **runs
        {
            let (model, _, source) = read.remove(0);
            return Ok(Self { model, run, source, parts: Vec::new(), stretch: TimeRange::ALL });
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
        let parts: Vec<model::Part<'_>> =
            runs.iter().zip(&names).map(|((model, run), name)| model::Part { name, run, model }).collect();
        let model = Model::merged(&parts);
        let run = model.current().context("there is nothing to take together")?.id();
        let source = read.iter().map(|(.., name)| &**name).collect::<Vec<_>>().join(", ");
        Ok(Self { parts: described(&parts), model, run, source, stretch: TimeRange::ALL })
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    pub(crate) fn run(&self) -> anyhow::Result<&Run> {
        self.model.run(self.run).context("the run was read, and is not there")
    }
}

/// What tells them apart: hosts with their units, and runs where several are of one.
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

/// A run in words: its id, and whose it is.
pub(crate) fn run_name(run: &Run) -> String {
    match &*run.writer().account() {
        "" => format!("run {}", run.id()),
        account => format!("run {} of {account}", run.id()),
    }
}

/// Which runs they are, and how far apart their clocks say that they began.
fn described(parts: &[model::Part<'_>]) -> Vec<RunPart> {
    let first_us = parts.iter().map(|part| part.run.began_realtime_us()).min().unwrap_or(0);
    let part = |part: &model::Part<'_>| {
        let run = part.run;
        let from_s = (run.began_realtime_us() - first_us) as f64 / 1e6;
        RunPart {
            name: part.name.to_owned(),
            run: run.id(),
            account: run.writer().account(),
            from_s,
            to_s: from_s + run.duration_us() as f64 / 1e6,
            clock_step_s: run.health().clock_step_us as f64 / 1e6,
        }
    };
    parts.iter().map(part).collect()
}

/// What `--since` and `--until` leave.
fn by_clock(wanted: &Wanted<'_>) -> anyhow::Result<TimeRange> {
    let now_us = Timestamps::now().realtime_us;
    let place = |flag: &str, text: Option<&str>, open: u64| {
        let Some(text) = text else { return Ok(open) };
        let moment = text.parse::<Moment>().map_err(|error| error.to_string());
        moment
            .and_then(|moment| moment.by_clock(now_us))
            .map_err(|error| usage(format!("--{flag} {text}: {error}")))
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

fn shown(source: Option<&OsStr>) -> String {
    telemetry::clean::text(&source.unwrap_or_default().to_string_lossy())
}

/// The journal that is named, or where `--journal auto` writes.
pub(crate) fn place(mode: &str, source: Option<&OsStr>, writers: &WriterArgs) -> anyhow::Result<Source> {
    match source {
        Some(text) => {
            Source::parse(text).map_err(|error| usage(format!("{mode} {}: {error}", text.display())))
        }
        None => journal_choice::auto_source(writers),
    }
}

/// The same with the window that stands behind an @, if that is not a part of a file's name.
fn place_and_window(
    mode: &str,
    source: Option<&OsStr>,
    writers: &WriterArgs,
) -> anyhow::Result<(Source, Option<MomentRange>)> {
    let parts = source.and_then(OsStr::to_str).and_then(|text| text.rsplit_once('@'));
    match parts.filter(|(_, window)| {
        window.contains("..") && !source.is_some_and(|text| std::path::Path::new(text).exists())
    }) {
        None => Ok((place(mode, source, writers)?, None)),
        Some((source, window)) => {
            let parsed =
                window.parse().map_err(|error| usage(format!("{mode} {source}@{window}: {error}")))?;
            let source = Some(source).filter(|source| !source.is_empty()).map(OsStr::new);
            Ok((place(mode, source, writers)?, Some(parsed)))
        }
    }
}

/// The beginning of a run's id.
pub(crate) fn run_prefix(text: &str) -> anyhow::Result<&str> {
    let is_hex = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if is_hex && (1..=32).contains(&text.len()) {
        return Ok(text);
    }
    Err(usage(format!(
        "--run {text}: expected a run's id, or the beginning of it: up to 32 hexadecimal digits"
    )))
}
