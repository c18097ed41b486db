//! Reading the runs of a journal to its present end.

use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;

use anyhow::Context;
use journal::{EntrySource, ReadError};
use model::history::{Follower, RunFilter, Update};
use model::runs::{Level, Model, RUNS_KNOWN_MAX, RUNS_MERGED_BYTES_MAX, Run};
use records::ids::RunId;
use records::kinds::Record;
use records::slice::{RunSlice, TimeRange};

use crate::error::usage;
use crate::journals::bar::Bar;
use crate::journals::source::JournalSource;
use crate::journals::writers::{IgnoredRuns, WriterArgs};
use crate::service::thread::spawn;

#[derive(Debug)]
pub(crate) struct JournalContents<'a> {
    place: &'a JournalSource,
    writers: &'a WriterArgs,
    pub(crate) model: Model,
    ignored: IgnoredRuns,
    /// How it was read.
    notes: Vec<String>,
    range: TimeRange,
}

impl<'a> JournalContents<'a> {
    /// Reads the runs that pass the filter, and warns of unreadable parts. Keeps the latest `history` intervals of
    /// each series.
    pub(crate) fn read(
        place: &'a JournalSource,
        filter: &RunFilter,
        writers: &'a WriterArgs,
        history: usize,
    ) -> anyhow::Result<Self> {
        Self::read_into(Model::for_merging(history), place, filter, writers, |_| {})
    }

    /// As [`Self::read`] into this model, and passes each record to `inspect`, for data that the model does not keep.
    pub(crate) fn read_into(
        model: Model,
        place: &'a JournalSource,
        filter: &RunFilter,
        writers: &'a WriterArgs,
        mut inspect: impl FnMut(&Record),
    ) -> anyhow::Result<Self> {
        let (updates, read) = sync_channel(4);
        let warn = |text| crate::say(format_args!("warning: {text}"));
        let deliver = move |update| updates.send(update).is_ok();
        let follower = Follower::start(opener(place, filter, warn), filter.clone(), deliver)?;
        let walked = follower.bytes_read();
        let ending = spawn("ending", move || follower.finish())?;
        let (ignored, notes, range) = (IgnoredRuns::default(), Vec::new(), filter.range);
        let mut contents = Self { place, writers, model, ignored, notes, range };
        let mut slice = RunSlice::new(filter.range);
        let mut bar = Bar::new(|| place.size_bytes());
        let mut notices = Vec::new();
        for update in read {
            bar.show(walked.load(Ordering::Relaxed));
            match update {
                Update::Batch(batch) => {
                    let batch = batch.within(&mut slice);
                    batch.records.iter().for_each(&mut inspect);
                    contents.model.apply_batch(batch);
                }
                Update::Notice(Level::Notice, text) => contents.notes.push(text),
                Update::Notice(_, text) => notices.push(text),
                Update::Ignored(_, writer) => drop(contents.ignored.note(writer)),
                Update::CaughtUp | Update::Recording(_) => {}
            }
        }
        bar.clear();
        // The channel is closed, so everything was delivered. A panic there has been reported.
        let end = ending.join().unwrap_or(Ok(()));
        if place.is_all_or_nothing() {
            end?;
        }
        let unread = unread(&contents.model);
        if contents.model.current().is_none() && (!notices.is_empty() || !unread.is_empty()) {
            // To this version, the records of a newer tlsdash are all malformed.
            anyhow::bail!(no_run(place, if notices.is_empty() { &unread } else { &notices }));
        }
        for notice in notices {
            crate::say(format_args!("warning: {notice}"));
        }
        if !unread.is_empty() {
            crate::say(format_args!("warning: {place}: {}", unread.join(", ")));
        }
        Ok(contents)
    }

    /// Reports how it was read, and runs that were ignored because of their writer, unless `--uid` or `--unit` was given.
    pub(crate) fn report_ignored(&self) {
        self.notes.iter().for_each(|note| crate::say(format_args!("warning: {note}")));
        if self.writers.uid.is_none() && self.writers.unit.is_none() {
            self.ignored.lines().into_iter().for_each(crate::say);
        }
    }

    /// The run that began last.
    pub(crate) fn newest(&self) -> anyhow::Result<&Run> {
        self.model.current().with_context(|| match self.ignored.other_runs(self.writers) {
            Some(other_runs) => format!("{} holds {other_runs}", self.place),
            None if self.range != TimeRange::ALL => {
                no_run(self.place, &["in the time of --since and --until".to_owned()])
            }
            None => no_run(self.place, &[]),
        })
    }

    /// The only run whose id has this prefix, or the newest run.
    pub(crate) fn run(&self, prefix: Option<&str>) -> anyhow::Result<&Run> {
        let Some(prefix) = prefix else { return self.newest() };
        let place = self.place;
        let mut runs = self.model.runs().filter(|run| run.id().to_string().starts_with(prefix));
        match (runs.next(), runs.next()) {
            (Some(run), None) => Ok(run),
            (Some(_), Some(_)) => Err(usage(format!("--run {prefix}: several runs in {place} begin so"))),
            (None, _) => Err(match self.ignored.other_runs(self.writers) {
                Some(other_runs) => anyhow::anyhow!("{place} holds, by the id {prefix}, {other_runs}"),
                None => anyhow::anyhow!("{place} holds no records of run {prefix}"),
            }),
        }
    }

    /// The runs that are chosen, or the parts of them that are of the service of this name.
    pub(crate) fn chosen(
        &self,
        prefix: Option<&str>,
        host: Option<&str>,
        service: Option<&str>,
    ) -> anyhow::Result<Vec<RunId>> {
        let chosen = self.chosen_runs(prefix, host)?;
        match service {
            // Not every host has each service.
            Some(name) => {
                let (parts, mut missing): (Vec<_>, Vec<_>) =
                    chosen.into_iter().map(|id| self.part(id, name)).partition(Result::is_ok);
                match missing.pop() {
                    Some(Err(error)) if parts.is_empty() => Err(error),
                    _ => parts.into_iter().collect(),
                }
            }
            None => Ok(chosen),
        }
    }

    /// The run with this prefix, or the newest run of each host, or of the host with this name. For a remote host,
    /// whose users and units differ, the newest run of each service.
    fn chosen_runs(&self, prefix: Option<&str>, host: Option<&str>) -> anyhow::Result<Vec<RunId>> {
        let newest = self.run(prefix);
        let newest = match host {
            Some(host) => newest.with_context(|| format!("--host {host}"))?,
            None => newest?,
        };
        if prefix.is_some() {
            return Ok(vec![newest.id()]);
        }
        let runs: Vec<&Run> = self.model.runs().collect();
        if let Some(host) = host.filter(|host| !runs.iter().any(|run| run.hostname() == *host)) {
            anyhow::bail!("--host {host}: {} holds no run of it, but of {}", self.place, self.hosts());
        }
        let is_chosen = |run: &&Run| {
            host.is_none_or(|host| run.hostname() == host)
                && !runs.iter().any(|other| run.is_replaced_by(other))
        };
        let chosen: Vec<&Run> = runs.iter().copied().filter(is_chosen).collect();
        anyhow::ensure!(
            self.model.forgotten() == 0 && !chosen.iter().any(|run| run.is_brief()),
            "{} holds {} runs to take together, and at most {RUNS_KNOWN_MAX} of {} MiB in all are read at once: choose \
             with --host or --run",
            self.place,
            chosen.len() as u64 + self.model.forgotten(),
            RUNS_MERGED_BYTES_MAX >> 20
        );
        Ok(chosen.into_iter().map(Run::id).collect())
    }
}

impl JournalContents<'_> {
    /// The part of a run that is of the service of this name, or has it as a word of its name.
    fn part(&self, id: RunId, name: &str) -> anyhow::Result<RunId> {
        let is_it = |service: &str| service == name || service.split(' ').any(|word| word == name);
        let mut parts = self.model.services(id).filter(|run| is_it(run.service()));
        match (parts.next(), parts.next()) {
            (Some(run), None) => Ok(run.id()),
            (found, _) => {
                let names: Vec<&str> = self.model.services(id).map(Run::service).collect();
                let what = if found.is_some() { "several services" } else { "no service" };
                anyhow::bail!(
                    "--service {name}: {what} of run {} by this name; it has {}",
                    id.short(),
                    if names.is_empty() {
                        "none: only packets tell services apart".to_owned()
                    } else {
                        names.join(", ")
                    }
                )
            }
        }
    }

    /// The names of the first hosts, and how many more there are.
    fn hosts(&self) -> String {
        const NAMED_MAX: usize = 8;
        let mut names: Vec<&str> = self.model.runs().map(Run::hostname).collect();
        names.sort_unstable();
        names.dedup();
        let more = names.len().saturating_sub(NAMED_MAX);
        names.truncate(NAMED_MAX);
        let listed = names.join(", ");
        if more == 0 { listed } else { format!("{listed} and {more} more") }
    }
}

/// A message that there is no run, with possible reasons.
fn no_run(place: &JournalSource, reasons: &[String]) -> String {
    let because = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join(", ")) };
    format!("{place} holds no records of a run of tlsdash{because}")
}

/// The unreadable parts of the journal, in words.
fn unread(model: &Model) -> Vec<String> {
    let bytes = (model.skipped_bytes() > 0)
        .then(|| format!("{} bytes are missing or cannot be read", model.skipped_bytes()));
    let records =
        (model.malformed() > 0).then(|| format!("{} records are malformed or unknown", model.malformed()));
    bytes.into_iter().chain(records).collect()
}

/// Returns a function that opens the journal and warns of unreadable parts. On many systems a user may read only their
/// own records in the system's journal, and needs to know why no others are found.
pub(crate) fn opener(
    source: &JournalSource,
    filter: &RunFilter,
    warn: impl FnOnce(String) + Send + 'static,
) -> impl FnOnce() -> Result<Box<dyn EntrySource>, ReadError> + Send + 'static {
    let open = source.opener_of_range(filter);
    move || {
        let opened = open()?;
        if let Some(why) = opened.refusal() {
            warn(why.to_string());
        }
        Ok(opened)
    }
}
