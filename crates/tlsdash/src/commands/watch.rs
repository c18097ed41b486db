//! `tlsdash watch`: the dashboard, or the summary, of a journal.

use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

use anyhow::Context;
use model::history::{Follower, HistoryReader, Update, WriterFilter};
use model::runs::Level;
use records::slice::RunSlice;
use tui::{DashboardSender, Event, RemoteControl, ReplayStart};

use crate::cli::appearance::Appearance;
use crate::cli::{Flags, WatchArgs};
use crate::control::remote;
use crate::error::usage;
use crate::journals::contents::opener;
use crate::journals::reading::{RunChoice, SourcePart};
use crate::journals::writers::IgnoredRuns;
use crate::service::environment::host_name;
use crate::service::signals::{self, Reload, SighupAction};
use crate::service::thread::spawn;
use crate::session::frontend::{self, Frontend, HeadlessOptions, Replay};
use crate::session::recording::run_recorder::RunRecorder;
use crate::summary;

/// Shows the dashboard until the person quits, or prints the summary.
pub(crate) fn run(args: &WatchArgs, flags: &Flags) -> anyhow::Result<()> {
    let prefix = args.run.as_deref();
    let appearance = Appearance::with_file(args.config.as_deref(), flags)?;
    let frontend = Frontend::choose(args.headless, &appearance);
    if frontend == Frontend::Plain && (args.play.is_some() || args.from.is_some()) {
        return Err(usage("--play and --from need the dashboard, and --plain has none"));
    }
    let choice = RunChoice { mode: "watch", run: prefix, writers: &args.writers };
    let part = SourcePart::parse(args.source.as_deref(), choice)?;
    frontend.report_if_forced(args.headless);
    match frontend {
        Frontend::Headless => {
            let contents = part.read(1)?;
            let run = contents.run(prefix)?;
            contents.report_ignored();
            let summary = contents.model.summary(run, Some(&part.name));
            summary::print(&summary, args.format)
        }
        Frontend::Dashboard | Frontend::Plain => show(args, prefix, part, appearance, frontend),
    }
}

fn show(
    args: &WatchArgs,
    prefix: Option<&str>,
    mut part: SourcePart<'_>,
    appearance: Appearance,
    frontend: Frontend,
) -> anyhow::Result<()> {
    let run = match prefix {
        Some(_) => Some(part.read(1)?.run(prefix)?.id()),
        None => None,
    };
    // The user can switch to the other runs.
    part.filter.id_prefix.clear();
    let (events, inbox) = tui::channel();
    let opening = ReplayStart { from: args.from.clone(), speed: args.play };
    let replay = Replay {
        history: Some(history_reader(&part, events.clone())?),
        opening: (args.from.is_some() || args.play.is_some()).then_some(opening),
    };
    let follower = follow(&part, events.clone())?;
    let (remote, recorder) = remote_control(&part, &events)?;
    signals::listen(frontend, SighupAction::Terminate, events, Reload::default())?;
    let options = frontend::FrontendOptions {
        title: String::new(),
        source: part.name,
        watches: true,
        // Sentences take no keys.
        remote: (frontend == Frontend::Dashboard).then_some(remote),
        run,
        appearance,
        drains: false,
        keep_running: false,
        headless: HeadlessOptions::default(),
        replay,
    };
    // No run of this process takes commands.
    let (commands, _) = sync_channel(1);
    let shown = frontend::show(frontend, options, inbox, commands)?;
    let ending = spawn("ending", move || {
        follower.finish();
        // The recorder ends a recording in order once the dashboard is gone. A panic there has been reported.
        let _ = recorder.join();
    })?;
    let (_, failure) = shown.until_ended(&ending);
    failure.map_or(Ok(()), Err)
}

/// Who changes and records the runs that are shown.
fn remote_control(
    part: &SourcePart<'_>,
    events: &DashboardSender,
) -> anyhow::Result<(RemoteControl, JoinHandle<()>)> {
    let (place, writers) = (part.place.clone(), part.filter.writers.clone());
    let (recorder, recording) = RunRecorder { place, writers, events: events.clone() }.start()?;
    let requests = remote::start(events.clone())?;
    Ok((RemoteControl { host: host_name(), requests, recorder }, recording))
}

fn follow(part: &SourcePart<'_>, events: DashboardSender) -> anyhow::Result<Follower> {
    let warned = events.clone();
    let warn = move |text| {
        // Only fails once the front end has ended.
        let _ = warned.send(Event::Update(Update::Notice(Level::Warning, text)));
    };
    let mut slice = RunSlice::new(part.filter.range);
    let mut ignored = IgnoredRuns::default();
    let is_default = matches!(part.filter.writers, WriterFilter::Trusted(_));
    let deliver = move |update| {
        let update = match update {
            Update::Batch(batch) => Update::Batch(batch.within(&mut slice)),
            Update::Ignored(_, writer) => match ignored.note_first(writer).filter(|_| is_default) {
                Some(line) => Update::Notice(Level::Notice, line),
                None => return true,
            },
            other => other,
        };
        events.send(Event::Update(update)).is_ok()
    };
    Ok(Follower::start(opener(&part.place, warn), part.filter.clone(), deliver)?)
}

/// Starts the reader of moments that the dashboard no longer holds.
fn history_reader(part: &SourcePart<'_>, events: DashboardSender) -> anyhow::Result<HistoryReader> {
    let place = part.place.clone();
    let open = move |start| place.opener(start)();
    let deliver = move |news| events.history(news).is_ok();
    HistoryReader::start(open, part.filter.range, deliver).context("cannot start the thread dashboard-read")
}
