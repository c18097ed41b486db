//! `tlsdash watch`: the dashboard, or the summary, over a journal that is or was written elsewhere.

use std::sync::mpsc::sync_channel;

use anyhow::Context;
use journal::{ReadError, Start, Tail};
use telemetry::model::{Level, Run};
use telemetry::{Follower, Model, Update};
use tui::Event;

use crate::args::{WatchArgs, usage};
use crate::frontend::{self, Frontend, Unattended};
use crate::journal_choice;
use crate::look::Look;
use crate::session::spawn;
use crate::signals::{self, Reload};
use crate::source::Source;
use crate::summary;

/// Watches until a person leaves, or prints the summary.
pub(crate) fn run(args: &WatchArgs) -> anyhow::Result<()> {
    let prefix = args.run.as_deref().map(run_prefix).transpose()?;
    let place = match &args.source {
        Some(text) => {
            Source::parse(text).map_err(|error| usage(format!("watch {}: {error}", text.display())))?
        }
        None => journal_choice::auto_source()?,
    };
    let source = place.to_string();
    let look = Look::with_file(&args.look, args.config.as_deref())?;
    let frontend = Frontend::choose(args.headless, &look);
    frontend.say_if_forced(args.headless);
    let (events, inbox) = tui::channel();
    match frontend {
        Frontend::Headless => {
            let model = read_all(&place)?;
            let none = || format!("{place} holds no records of a run of tlsdash");
            let run = match prefix {
                Some(prefix) => run_named(&model, prefix, &place)?,
                None => model.current().with_context(none)?,
            };
            summary::print(&model.summary(run, Some(&source)), args.format.unwrap_or_default())
        }
        Frontend::Dashboard | Frontend::Plain => {
            let run = match prefix {
                Some(prefix) => Some(run_named(&read_all(&place)?, prefix, &place)?.id()),
                None => None,
            };
            let told = events.clone();
            let deliver = move |update| told.send(Event::Update(update)).is_ok();
            let warned = events.clone();
            let warn = move |text| {
                // Only fails once nobody watches any more.
                let _ = warned.send(Event::Update(Update::Notice(Level::Warning, text)));
            };
            let follower = Follower::start(opener(&place, warn), deliver)?;
            signals::listen(frontend, events, Reload::default())?;
            let options = frontend::Options {
                title: String::new(),
                source,
                read_only: true,
                run,
                look,
                drains: false,
                unattended: Unattended::default(),
            };
            // Nobody takes commands: the dashboard is read-only.
            let (commands, _) = sync_channel(1);
            let shown = frontend::show(frontend, options, inbox, commands)?;
            let ending = spawn("ending", move || follower.finish())?;
            let (_, failure) = shown.until_ended(&ending);
            failure.map_or(Ok(()), Err)
        }
    }
}

/// What opens the journal, and warns of a part of it that cannot be read: on many systems a user may read the own
/// records in the system's journal, and needs to hear why nothing else is found.
fn opener(
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

/// Reads the journal to its present end.
fn read_all(source: &Source) -> anyhow::Result<Model> {
    let (updates, read) = sync_channel(4);
    let warn = |text| crate::say(format_args!("warning: {text}"));
    let follower = Follower::start(opener(source, warn), move |update| updates.send(update).is_ok())?;
    let ending = spawn("ending", move || follower.finish())?;
    let mut model = Model::new(1);
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
fn run_prefix(text: &str) -> anyhow::Result<&str> {
    let is_hex = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if is_hex && (1..=32).contains(&text.len()) {
        return Ok(text);
    }
    Err(usage(format!(
        "--run {text}: expected a run's id, or the beginning of it: up to 32 hexadecimal digits"
    )))
}

/// The one run whose id begins so.
fn run_named<'a>(model: &'a Model, prefix: &str, source: &Source) -> anyhow::Result<&'a Run> {
    let mut runs = model.runs().iter().filter(|run| run.id().to_string().starts_with(prefix));
    match (runs.next(), runs.next()) {
        (Some(run), None) => Ok(run),
        (None, _) => anyhow::bail!("{source} holds no records of run {prefix}"),
        (Some(_), Some(_)) => Err(usage(format!("--run {prefix}: several runs in {source} begin so"))),
    }
}
