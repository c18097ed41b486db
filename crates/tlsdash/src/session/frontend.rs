//! Front ends: the dashboard, plain sentences, or nothing until the summary.

use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use model::history::{HistoryReader, Update};
use model::runs::Model;
use records::command::Command;
use records::ids::RunId;
use records::kinds::{Level, NoticeRecord};
use report::Report;
use tui::{Event, Exit, Inbox, RemoteControl, ReplayStart};

use crate::cli::appearance::Appearance;
use crate::cli::configuration::setting_infos;
use crate::service::environment::command;
use crate::session::progress::HeadlessProgress;

/// How often an ended front end polls for the end of the program.
const POLL: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frontend {
    Dashboard,
    /// Sentences on standard output.
    Plain,
    /// Nothing until the summary.
    Headless,
}

impl Frontend {
    /// Headless if asked for, or without a terminal; sentences with `--plain`; otherwise the dashboard.
    pub(crate) fn choose(headless: bool, appearance: &Appearance) -> Self {
        match (headless, appearance.plain) {
            (false, true) => Self::Plain,
            (false, false) if tui::has_terminal() => Self::Dashboard,
            (false, false) | (true, _) => Self::Headless,
        }
    }

    /// Prints a message if there is no terminal for the dashboard.
    pub(crate) fn report_if_forced(self, headless: bool) {
        if self == Self::Headless && !headless {
            crate::say("no terminal to draw on: running as with --headless");
        }
    }
}

#[derive(Debug)]
pub(crate) struct FrontendOptions {
    pub(crate) title: String,
    pub(crate) source: String,
    /// Whether the runs are those of other processes.
    pub(crate) watches: bool,
    /// Who changes and records these.
    pub(crate) remote: Option<RemoteControl>,
    pub(crate) run: Option<RunId>,
    pub(crate) appearance: Appearance,
    /// Whether connections may outlast the front end.
    pub(crate) drains: bool,
    /// Whether the run continues when the terminal closes.
    pub(crate) keep_running: bool,
    pub(crate) headless: HeadlessOptions,
    pub(crate) replay: Replay,
}

/// Reading earlier moments again, and playing them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replay {
    pub(crate) history: Option<HistoryReader>,
    pub(crate) opening: Option<ReplayStart>,
}

/// The output of a headless run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeadlessOptions {
    /// Intervals kept in memory.
    pub(crate) history: usize,
    /// Whether a line on the terminal shows the load's progress.
    pub(crate) shows_progress: bool,
}

/// A front end that has ended, while the rest of the program shuts down.
#[derive(Debug)]
pub(crate) struct EndedFrontend {
    inbox: Inbox,
    /// `None` if the dashboard panicked.
    model: Option<Model>,
    failure: Option<anyhow::Error>,
}

impl EndedFrontend {
    /// Adds further records until `ending` is done. The model then holds the whole run.
    pub(crate) fn until_ended<T>(mut self, ending: &JoinHandle<T>) -> (Option<Model>, Option<anyhow::Error>) {
        let mut unseen = Model::new(1);
        loop {
            // Checked first, so everything sent before the end is still processed.
            let ended = ending.is_finished();
            match self.inbox.recv_timeout(POLL) {
                Some(event) => apply_event(self.model.as_mut().unwrap_or(&mut unseen), event),
                None if ended => return (self.model, self.failure),
                None => {}
            }
        }
    }
}

/// Shows the run until the user quits or the program must end. Drops `commands` then.
pub(crate) fn show(
    frontend: Frontend,
    options: FrontendOptions,
    mut inbox: Inbox,
    commands: SyncSender<Command>,
) -> anyhow::Result<EndedFrontend> {
    match frontend {
        Frontend::Headless => Ok(headless(&options, inbox, commands)),
        Frontend::Dashboard | Frontend::Plain => {
            // Lent, since a receiver cannot be shared; it comes back even if the dashboard panics.
            let lent = &mut inbox;
            let kept = options.keep_running.then(|| commands.clone());
            let drawn = std::thread::scope(|scope| {
                // CPU time is accounted by the beginning of the name.
                let thread = std::thread::Builder::new().name("dashboard".to_owned());
                let thread =
                    thread.spawn_scoped(scope, move || dashboard(frontend, options, lent, commands))?;
                Ok::<_, std::io::Error>(thread.join())
            })
            .context("cannot start the thread dashboard")?;
            // After a panic too, the rest of the program shuts down in order.
            let DashboardExit { model, failure, terminal_lost } = drawn.unwrap_or_else(|_| DashboardExit {
                model: None,
                failure: Some(anyhow::anyhow!("the dashboard panicked")),
                terminal_lost: false,
            });
            match (model, kept) {
                (Some(model), Some(commands)) if terminal_lost => Ok(go_on(model, inbox, commands)),
                (model, _) => Ok(EndedFrontend { inbox, model, failure }),
            }
        }
    }
}

struct DashboardExit {
    model: Option<Model>,
    failure: Option<anyhow::Error>,
    terminal_lost: bool,
}

fn dashboard(
    frontend: Frontend,
    options: FrontendOptions,
    inbox: &Inbox,
    commands: SyncSender<Command>,
) -> DashboardExit {
    let mut tui_options = tui::Options::new(options.title, options.source);
    tui_options.watches = options.watches;
    tui_options.remote = options.remote;
    tui_options.run = options.run;
    (tui_options.history, tui_options.opening) = (options.replay.history, options.replay.opening);
    tui_options.settings = setting_infos::all().to_vec();
    tui_options.check_plan = super::experiments::check_plan;
    tui_options.page = |model, run, source| {
        Report::new(model, run, source, command()).with_setting_infos(setting_infos::all()).html()
    };
    tui_options.layout_file = crate::journals::state_directory::dashboard_file();
    options.appearance.apply_to(&mut tui_options);
    let ended = if frontend == Frontend::Plain {
        let ended = tui::run_plain(tui_options, inbox, &mut std::io::stdout().lock());
        drop(commands);
        ended
    } else {
        tui::run(tui_options, inbox, commands)
    };
    let terminal_lost = matches!(ended.exit, Ok(Exit::TerminalLost));
    let failure = match ended.exit {
        Ok(Exit::Quit | Exit::Terminated) => {
            if options.drains {
                crate::say("ending: open connections may finish; Ctrl-C cuts them");
            }
            None
        }
        Ok(Exit::TerminalLost) => None,
        Err(error) => Some(error.into()),
    };
    DashboardExit { model: Some(ended.model), failure, terminal_lost }
}

/// Continues without a terminal, and records that.
fn go_on(mut model: Model, inbox: Inbox, commands: SyncSender<Command>) -> EndedFrontend {
    let text = "the terminal is gone: going on without a dashboard until SIGTERM";
    let lost = NoticeRecord::new(Level::Warning, "terminal", text);
    // Fails only if the run is ending.
    let _ = commands.send(Command::Notice(lost));
    loop {
        match inbox.recv() {
            Event::Terminate => break,
            event => apply_event(&mut model, event),
        }
    }
    drop(commands);
    EndedFrontend { inbox, model: Some(model), failure: None }
}

fn headless(options: &FrontendOptions, inbox: Inbox, commands: SyncSender<Command>) -> EndedFrontend {
    let mut model = Model::new(options.headless.history);
    let mut progress = HeadlessProgress::new(options.headless.shows_progress);
    loop {
        match inbox.recv() {
            Event::Terminate => break,
            event => {
                apply_event(&mut model, event);
                progress.show(options.run.and_then(|run| model.run(run)));
            }
        }
    }
    progress.clear();
    drop(commands);
    EndedFrontend { inbox, model: Some(model), failure: None }
}

fn apply_event(model: &mut Model, event: Event) {
    match event {
        Event::Update(Update::Batch(batch)) => model.apply_batch(batch),
        Event::Update(Update::Notice(_, text)) => crate::say(text),
        Event::Read(reader) => reader.read(model),
        Event::Update(Update::CaughtUp | Update::Recording(_) | Update::Ignored(..))
        | Event::Terminate
        | Event::Suspend
        | Event::Access(..) => {}
    }
}
