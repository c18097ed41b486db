//! `tlsdash watch`: the dashboard, or the summary, of a journal.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

use anyhow::Context;
use clap::Args;
use model::history::{Follower, HistoryReader, Moment, Update, WriterFilter};
use model::runs::Level;
use records::ids::RunId;
use records::slice::RunSlice;
use tui::{DashboardSender, Event, RemoteControl, ReplayStart, Speed};

use crate::cli::appearance::{Appearance, AppearanceOptions};
use crate::cli::help::{DASHBOARD, RUNS};
use crate::cli::{Flags, Format, RecordsArg};
use crate::control::remote;
use crate::error::usage;
use crate::journals::contents::opener;
use crate::journals::reading::{RunChoice, RunPrefix, SourcePart};
use crate::journals::writers::{IgnoredRuns, WriterArgs};
use crate::service::environment::host_name;
use crate::service::thread::spawn;
use crate::session::frontend::{self, Frontend, HeadlessOptions, Replay};
use crate::session::recording::run_recorder::RunRecorder;
use crate::session::signals::{self, Reload, SighupAction};
use crate::summary;

/// Shown below the help.
const EXAMPLES: &str = "Examples:
  tlsdash watch                                # the service of this machine
  tlsdash watch run.journal                    # a recording, at its end
  tlsdash watch run.journal --play=4           # played, four times as fast
  tlsdash watch run.journal@-10m.. --headless  # the summary of ten minutes";

#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct WatchArgs {
    /// Journal to watch: a file with its archives, a folder of files, `system`, `namespace:NAME`, or a log store as
    /// logs+http://HOST:PORT; @FROM..TO behind it selects a time range, such as @13:05..13:10, @-10m.. or
    /// @mark:2..mark:3 [default: where `--journal auto` writes]
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<OsString>,
    /// Play the recording at this speed: 1/4, 1/2, 1, 2, 4, 8, 16, 32 or 64; from its start, or from --from [default:
    /// 1]
    #[arg(long, value_name = "SPEED", num_args = 0..=1, require_equals = true, default_missing_value = "1")]
    #[arg(conflicts_with = "headless")]
    pub(crate) play: Option<Speed>,
    /// Start at this time of the run, not at its end: 13:05 or 2026-01-31T13:05:00Z (UTC), 5m after its start, -10m before
    /// its end, or mark:2
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, conflicts_with = "headless")]
    pub(crate) from: Option<Moment>,
    /// The run to show, by its id (TLSDASH_RUN); or the first characters of it [default: the newest]
    #[arg(long, help_heading = RUNS, value_name = "ID")]
    pub(crate) run: Option<RunPrefix>,
    #[command(flatten, next_help_heading = RUNS)]
    pub(crate) writers: WriterArgs,
    #[command(flatten)]
    pub(crate) records: RecordsArg,
    /// Print the summary of the journal, without a screen
    #[arg(long, help_heading = DASHBOARD)]
    pub(crate) headless: bool,
    /// Format of the summary
    #[arg(long, help_heading = DASHBOARD, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,
    /// Configuration file in TOML; for the dashboard's colours and keys
    #[arg(long, help_heading = DASHBOARD, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) appearance: AppearanceOptions,
}

/// Shows the dashboard until the person quits, or prints the summary.
pub(crate) fn run(args: &WatchArgs, flags: &Flags) -> anyhow::Result<()> {
    let prefix = args.run.as_deref();
    let appearance = Appearance::with_file(args.config.as_deref(), flags)?;
    let frontend = Frontend::choose(args.headless, &appearance);
    if frontend == Frontend::Plain && (args.play.is_some() || args.from.is_some()) {
        return Err(usage("--play and --from need the dashboard, and --plain has none"));
    }
    let records = args.records.limit();
    let choice = RunChoice { mode: "watch", run: prefix, host: None, writers: &args.writers, records };
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
    let is_slow = part.place.is_all_or_nothing();
    let ending = spawn("ending", move || {
        // A store may take minutes for what nobody will see. An error has been shown as a notice.
        if !is_slow {
            let _ = follower.finish();
        }
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
    Ok(Follower::start(opener(&part.place, &part.filter, warn), part.filter.clone(), deliver)?)
}

/// Starts the reader of moments that the dashboard no longer holds.
fn history_reader(part: &SourcePart<'_>, events: DashboardSender) -> anyhow::Result<HistoryReader> {
    let place = part.place.clone();
    let open = move |start, run: RunId| place.opener(start, &run.to_string())();
    let deliver = move |news| events.history(news).is_ok();
    HistoryReader::start(open, part.filter.range, deliver).context("cannot start the thread dashboard-read")
}
