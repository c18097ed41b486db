//! Journals read to their present end, for everything that needs no screen.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;

use anyhow::Context;
use journal::{ReadError, Start, Tail, Timestamps};
use telemetry::model::{self, RUNS_MAX, Run};
use telemetry::{Excerpt, Follower, Model, Moment, RunId, Stretch, Update, Window};

use crate::args::{RunsArgs, usage};
use crate::journal_choice;
use crate::progress::Bar;
use crate::session::spawn;
use crate::source::Source;

/// What is to be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// Who asks.
    pub(crate) mode: &'a str,
    /// The beginning of the run's id; otherwise the newest of each host.
    pub(crate) run: Option<&'a str>,
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
        Self { mode, run, history, since, until }
    }
}

/// A journal, or a stretch of what it holds.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) place: Source,
    pub(crate) stretch: Stretch,
    /// As a person would name it.
    pub(crate) name: String,
}

impl Part {
    /// Understands a source with or without a window behind it. What a window is of is read once for that.
    ///
    /// # Errors
    /// If it means nothing, or a window of a run that cannot be read.
    pub(crate) fn parse(mode: &str, source: Option<&OsStr>, prefix: Option<&str>) -> anyhow::Result<Self> {
        let (place, window) = place_and_window(mode, source)?;
        match window {
            None => Ok(Self { stretch: Stretch::ALL, name: place.to_string(), place }),
            Some(window) => {
                let stretch = of_run(&window, &place, prefix)?;
                Ok(Self { stretch, name: shown(source), place })
            }
        }
    }

    /// Reads it to its present end, or only the runs whose id begins so.
    pub(crate) fn read(&self, prefix: Option<&str>) -> anyhow::Result<Model> {
        read_stretch(&self.place, 1, self.stretch, prefix)
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
    pub(crate) parts: Vec<String>,
}

impl Recorded {
    /// Reads a run of one source, or of several sources as one.
    ///
    /// # Errors
    /// If a journal cannot be read, or holds no such run.
    pub(crate) fn read(sources: &[OsString], wanted: &Wanted<'_>) -> anyhow::Result<Self> {
        let prefix = wanted.run.map(run_prefix).transpose()?;
        let clock = by_clock(wanted)?;
        let each: Vec<Option<&OsStr>> = match sources {
            [] => vec![None],
            sources => sources.iter().map(|source| Some(&**source)).collect(),
        };
        let mut read = Vec::new();
        for source in each {
            let Part { place, stretch, name } = Part::parse(wanted.mode, source, prefix)?;
            let model = read_stretch(&place, wanted.history, within(clock, stretch), prefix)?;
            let runs = chosen(&model, prefix, &place)?;
            read.push((model, runs, name));
        }
        Self::of(read)
    }

    fn of(mut read: Vec<(Model, Vec<RunId>, String)>) -> anyhow::Result<Self> {
        if let [(_, runs, _)] = &*read
            && let [run] = **runs
        {
            let (model, _, source) = read.remove(0);
            return Ok(Self { model, run, source, parts: Vec::new() });
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
        Ok(Self { parts: described(&parts), model, run, source })
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    pub(crate) fn run(&self) -> anyhow::Result<&Run> {
        self.model.run(self.run).context("the run was read, and is not there")
    }
}

/// What tells them apart: hosts, and runs where several are of one host.
fn names(runs: &[(&Model, &Run)]) -> Vec<String> {
    let name = |(_, run): &(&Model, &Run)| {
        let host = run.hostname();
        let is_only =
            !host.is_empty() && runs.iter().filter(|(_, other)| other.hostname() == host).count() == 1;
        if is_only { host.to_owned() } else { format!("{host} {}", run.id().short()).trim().to_owned() }
    };
    runs.iter().map(name).collect()
}

/// Which runs they are, and how far apart their clocks say that they began.
fn described(parts: &[model::Part<'_>]) -> Vec<String> {
    let first_us = parts.iter().map(|part| part.run.began_realtime_us()).min().unwrap_or(0);
    let part = |part: &model::Part<'_>| {
        let run = part.run;
        let late_s = (run.began_realtime_us() - first_us) as f64 / 1e6;
        let step_s = run.health().clock_step_us as f64 / 1e6;
        let stepped = if step_s == 0.0 {
            String::new()
        } else {
            format!("; its wall clock was set by {step_s:+.3} s meanwhile")
        };
        format!(
            "{}: run {}, from {late_s:.3} s to {:.3} s{stepped}",
            part.name,
            run.id(),
            late_s + run.duration_us() as f64 / 1e6
        )
    };
    parts.iter().map(part).collect()
}

/// What `--since` and `--until` leave.
fn by_clock(wanted: &Wanted<'_>) -> anyhow::Result<Stretch> {
    let now_us = Timestamps::now().realtime_us;
    let place = |flag: &str, text: Option<&str>, open: u64| {
        let Some(text) = text else { return Ok(open) };
        let moment = text.parse::<Moment>().map_err(|error| error.to_string());
        moment
            .and_then(|moment| moment.by_clock(now_us))
            .map_err(|error| usage(format!("--{flag} {text}: {error}")))
    };
    let stretch = Stretch {
        from_us: place("since", wanted.since, Stretch::ALL.from_us)?,
        until_us: place("until", wanted.until, Stretch::ALL.until_us)?,
    };
    if stretch.from_us >= stretch.until_us {
        return Err(usage("--until is not later than --since"));
    }
    Ok(stretch)
}

fn within(a: Stretch, b: Stretch) -> Stretch {
    Stretch { from_us: a.from_us.max(b.from_us), until_us: a.until_us.min(b.until_us) }
}

/// Where a window lies: what it is of is read once before.
fn of_run(window: &Window, place: &Source, prefix: Option<&str>) -> anyhow::Result<Stretch> {
    let model = read_stretch(place, 1, Stretch::ALL, prefix)?;
    let run = match prefix {
        Some(prefix) => run_named(&model, prefix, place)?,
        None => newest(&model, place)?,
    };
    window.of_run(run).map_err(|error| usage(format!("{place}: {error}")))
}

fn shown(source: Option<&OsStr>) -> String {
    telemetry::clean::text(&source.unwrap_or_default().to_string_lossy())
}

/// The journal that is named, or where `--journal auto` writes.
pub(crate) fn place(mode: &str, source: Option<&OsStr>) -> anyhow::Result<Source> {
    match source {
        Some(text) => {
            Source::parse(text).map_err(|error| usage(format!("{mode} {}: {error}", text.display())))
        }
        None => journal_choice::auto_source(),
    }
}

/// The same with the window that stands behind an @, if that is not a part of a file's name.
fn place_and_window(mode: &str, source: Option<&OsStr>) -> anyhow::Result<(Source, Option<Window>)> {
    let parts = source.and_then(OsStr::to_str).and_then(|text| text.rsplit_once('@'));
    match parts.filter(|(_, window)| {
        window.contains("..") && !source.is_some_and(|text| std::path::Path::new(text).exists())
    }) {
        None => Ok((place(mode, source)?, None)),
        Some((source, window)) => {
            let parsed =
                window.parse().map_err(|error| usage(format!("{mode} {source}@{window}: {error}")))?;
            let source = Some(source).filter(|source| !source.is_empty()).map(OsStr::new);
            Ok((place(mode, source)?, Some(parsed)))
        }
    }
}

/// The run of this id, or of each host the one that began last.
fn chosen(model: &Model, prefix: Option<&str>, place: &Source) -> anyhow::Result<Vec<RunId>> {
    if let Some(prefix) = prefix {
        return Ok(vec![run_named(model, prefix, place)?.id()]);
    }
    newest(model, place)?;
    let is_newest = |run: &&Run| {
        let is_later = |other: &Run| {
            let is_same_host = other.writer().origin.machine == run.writer().origin.machine
                && other.hostname() == run.hostname();
            is_same_host && other.began_realtime_us() > run.began_realtime_us()
        };
        !model.runs().iter().any(is_later)
    };
    let runs: Vec<&Run> = model.runs().iter().filter(is_newest).collect();
    anyhow::ensure!(
        !runs.iter().any(|run| run.is_brief()),
        "{place} holds runs of {} hosts, and at most {RUNS_MAX} are read at once: choose one with --run",
        runs.len()
    );
    Ok(runs.into_iter().map(Run::id).collect())
}

/// The run that began last.
pub(crate) fn newest<'a>(model: &'a Model, place: &Source) -> anyhow::Result<&'a Run> {
    model.current().with_context(|| no_run(place, &[]))
}

/// That there is nothing to tell of, and what may be the reason.
fn no_run(place: &Source, reasons: &[String]) -> String {
    let because = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join(", ")) };
    format!("{place} holds no records of a run of tlsdash{because}")
}

/// What of a journal could not be read.
fn unread(model: &Model) -> Vec<String> {
    let bytes =
        (model.skipped_bytes() > 0).then(|| format!("{} bytes cannot be read", model.skipped_bytes()));
    let records = (model.malformed() > 0).then(|| format!("{} records are malformed", model.malformed()));
    bytes.into_iter().chain(records).collect()
}

/// What opens the journal, and warns of a part of it that cannot be read: on many systems a user may read the own
/// records in the system's journal, and needs to hear why nothing else is found.
pub(crate) fn opener(
    source: &Source,
    warn: impl FnOnce(String) + Send + 'static,
) -> impl FnOnce() -> Result<Tail, ReadError> + Send + 'static {
    let open = source.opener(Start::Oldest);
    move || {
        let tail = open()?;
        if let Some(why) = tail.refusal() {
            warn(why.to_string());
        }
        Ok(tail)
    }
}

/// Reads the journal to its present end. Keeps the latest `history` intervals of each series.
pub(crate) fn read_all(source: &Source, history: usize) -> anyhow::Result<Model> {
    read_stretch(source, history, Stretch::ALL, None)
}

/// Reads a stretch of the journal up to its present end, of all runs or of those whose id begins so. Keeps the latest
/// `history` intervals of each series.
fn read_stretch(
    source: &Source,
    history: usize,
    stretch: Stretch,
    prefix: Option<&str>,
) -> anyhow::Result<Model> {
    let (updates, read) = sync_channel(4);
    let warn = |text| crate::say(format_args!("warning: {text}"));
    let follower = Follower::start(opener(source, warn), move |update| updates.send(update).is_ok())?;
    let walked = follower.walked_bytes();
    let ending = spawn("ending", move || follower.finish())?;
    let mut model = Model::new(history);
    let mut excerpt = Excerpt::new(stretch);
    let mut bar = Bar::new(|| source.size_bytes());
    let mut notices = Vec::new();
    for update in read {
        bar.show(walked.load(Ordering::Relaxed));
        match update {
            Update::Batch(mut batch) => {
                let is_wanted = |run: RunId| prefix.is_none_or(|prefix| run.to_string().starts_with(prefix));
                batch.records.retain(|record| is_wanted(record.stamp.run));
                model.apply_batch(excerpt.cut(batch));
            }
            Update::Notice(_, text) => notices.push(text),
            Update::CaughtUp | Update::Recording(_) => {}
        }
    }
    bar.clear();
    // It has delivered all there is: its end of the channel is closed.
    let _ = ending.join();
    let unread = unread(&model);
    if model.current().is_none() && (!notices.is_empty() || !unread.is_empty()) {
        // A journal of a newer tlsdash says so, and is nothing but malformed to this one.
        anyhow::bail!(no_run(source, if notices.is_empty() { &unread } else { &notices }));
    }
    for notice in notices {
        crate::say(format_args!("warning: {notice}"));
    }
    if !unread.is_empty() {
        crate::say(format_args!("warning: {source}: {}", unread.join(", ")));
    }
    Ok(model)
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

/// The one run whose id begins so.
pub(crate) fn run_named<'a>(model: &'a Model, prefix: &str, source: &Source) -> anyhow::Result<&'a Run> {
    let mut runs = model.runs().iter().filter(|run| run.id().to_string().starts_with(prefix));
    match (runs.next(), runs.next()) {
        (Some(run), None) => Ok(run),
        (None, _) => anyhow::bail!("{source} holds no records of run {prefix}"),
        (Some(_), Some(_)) => Err(usage(format!("--run {prefix}: several runs in {source} begin so"))),
    }
}
