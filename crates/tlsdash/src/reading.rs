//! A journal read to its present end, for everything that needs no screen.

use std::ffi::OsStr;
use std::sync::mpsc::sync_channel;

use anyhow::Context;
use journal::{ReadError, Start, Tail};
use telemetry::model::Run;
use telemetry::{Follower, Model, Update};

use crate::args::usage;
use crate::journal_choice;
use crate::session::spawn;
use crate::source::Source;

/// A run as a journal holds it.
#[derive(Debug)]
pub(crate) struct Recorded {
    model: Model,
    run: telemetry::RunId,
    /// Where it was read.
    pub(crate) source: String,
}

impl Recorded {
    /// Reads the run whose id begins with `prefix`, or the newest. `mode` names who asks. Keeps the latest `history`
    /// intervals of each series.
    ///
    /// # Errors
    /// If the journal cannot be read, or holds no such run.
    pub(crate) fn read(
        mode: &str,
        source: Option<&OsStr>,
        prefix: Option<&str>,
        history: usize,
    ) -> anyhow::Result<Self> {
        let prefix = prefix.map(run_prefix).transpose()?;
        let place = place(mode, source)?;
        let model = read_all(&place, history)?;
        let run = match prefix {
            Some(prefix) => run_named(&model, prefix, &place)?,
            None => newest(&model, &place)?,
        };
        let run = run.id();
        Ok(Self { model, run, source: place.to_string() })
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    pub(crate) fn run(&self) -> anyhow::Result<&Run> {
        self.model.run(self.run).context("the run was read, and is not there")
    }
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

/// The run that began last.
pub(crate) fn newest<'a>(model: &'a Model, place: &Source) -> anyhow::Result<&'a Run> {
    model.current().with_context(|| format!("{place} holds no records of a run of tlsdash"))
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
    let (updates, read) = sync_channel(4);
    let warn = |text| crate::say(format_args!("warning: {text}"));
    let follower = Follower::start(opener(source, warn), move |update| updates.send(update).is_ok())?;
    let ending = spawn("ending", move || follower.finish())?;
    let mut model = Model::new(history);
    for update in read {
        match update {
            Update::Batch(batch) => model.apply_batch(batch),
            Update::Notice(_, text) => crate::say(format_args!("warning: {text}")),
            Update::CaughtUp => {}
        }
    }
    // It has delivered all there is: its end of the channel is closed.
    let _ = ending.join();
    if model.skipped_bytes() > 0 {
        crate::say(format_args!("warning: {} bytes of {source} cannot be read", model.skipped_bytes()));
    }
    if model.malformed() > 0 {
        crate::say(format_args!("warning: {} records of {source} are malformed", model.malformed()));
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
