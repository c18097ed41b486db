//! One run from beginning to end: journal, controller, follower, front end, summary.

pub(crate) mod acme;
mod config;
pub(crate) mod console;
pub(crate) mod controller;
mod endpoints;
mod experiments;
pub(crate) mod frontend;
pub(crate) mod progress;
mod read_back;
mod record_sink;
pub(crate) mod recording;
pub(crate) mod signals;
pub(crate) mod start_check;
mod upload;
pub(crate) mod workload;

use std::sync::atomic::Ordering;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use anyhow::Context;
use journal::Timestamps;
use log_store::UploadTarget;
use model::alerts::{ALERTS_SPARE, Alerts};
use model::history::RunFilter;
use model::runs::{Model, Run};
use recorder::publish::Publisher;
use records::ids::RunId;
use records::kinds::{NoticeRecord, RunRecord};
use records::metrics::{LoadCounter, TimeResolution};
use report::Figures;
use tui::{DashboardSender, Event, Inbox};

pub(crate) use self::config::{RunConfiguration, SessionConfig, check_experiment_ends};
pub(crate) use self::endpoints::RedirectEndpoint;
use self::endpoints::{COMMANDS_MAX, RunEndpoints};
use self::frontend::{Frontend, HeadlessOptions};
use self::read_back::{LAST_RECORD, ReadBack};
use self::upload::Upload;
use crate::cli::Format;
use crate::cli::configuration::setting_infos;
use crate::control::ControlOptions;
use crate::control::server::ControlListener;
use crate::error::usage;
use crate::journals::choice::OpenJournal;
use crate::service::metrics::{MetricsListener, warning_of_exposure};
use crate::service::thread::spawn;
use crate::session::console::Console;
use crate::session::controller::{JournalOutcome, RunController, RunSetup, RunSignals};
use crate::session::experiments::ExperimentRequest;
use crate::session::record_sink::RecordSink;
use crate::session::recording::ActiveRecording;
use crate::session::signals::{Reload, SighupAction, UpgradeSignal};
use crate::session::workload::Workload;
use crate::summary;
use crate::upgrade::predecessor::{HandoverState, Predecessor};

/// The longest interval of records that are rolled up by the minute.
const ROLLED_UP_MAX: Duration = Duration::from_secs(10);

/// The channels between the parts of the program, and the signals. Created before anything that needs an orderly
/// shutdown.
#[derive(Debug)]
pub(crate) struct Channels {
    pub(crate) run: RunId,
    upgrade: UpgradeSignal,
    events: DashboardSender,
    inbox: Inbox,
    reload: Reload,
    metrics: Option<MetricsListener>,
    control: Option<ControlListener>,
    /// Absent until it serves.
    pub(crate) redirect: Option<RedirectEndpoint>,
}

impl Channels {
    pub(crate) fn new(config: &SessionConfig) -> anyhow::Result<Self> {
        Self::taking_over(config, None)
    }

    /// Creates a session with the sockets of the process that this process replaces, if any.
    pub(crate) fn taking_over(
        config: &SessionConfig,
        mut predecessor: Option<&mut Predecessor>,
    ) -> anyhow::Result<Self> {
        let run = RunId::random().context("cannot draw a run id")?;
        config.frontend.report_if_forced(config.headless);
        let (events, inbox) = tui::channel();
        let reload = Reload::default();
        let sighup = if config.keep_running { SighupAction::Reload } else { SighupAction::Terminate };
        let upgrade = UpgradeSignal::listen()?;
        let take_metrics = |addr| match predecessor.as_mut().and_then(|other| other.take_metrics(addr)) {
            Some(listener) => Ok(MetricsListener::take_over(listener)),
            None => MetricsListener::bind(addr),
        };
        let metrics = config.metrics.map(take_metrics).transpose()?;
        let listen = |control: &ControlOptions| {
            control.listen(predecessor.and_then(|other| other.take_control(&control.path)))
        };
        let control = config.control.as_ref().map(listen).transpose()?;
        signals::listen(config.frontend, sighup, events.clone(), reload.clone())?;
        Ok(Self { run, upgrade, events, inbox, reload, metrics, control, redirect: None })
    }
}

/// Everything that a run consists of.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) config: SessionConfig,
    pub(crate) channels: Channels,
    pub(crate) title: String,
    pub(crate) header: RunRecord,
    /// Notices from before the journal was open; still to be recorded.
    pub(crate) notices: Vec<NoticeRecord>,
    pub(crate) workload: Workload,
    pub(crate) journal: OpenJournal,
    /// State of the process that this one has replaced.
    pub(crate) handover: Option<HandoverState>,
}

#[derive(Debug)]
pub(crate) struct FinishedRun {
    id: RunId,
    source: Option<String>,
    model: Option<Model>,
    /// The journal's acceptance; `None` if a thread panicked.
    recorded: Option<anyhow::Result<JournalOutcome>>,
    /// Whether the last record was read back; true without a journal.
    end_was_read: bool,
    failure: Option<anyhow::Error>,
    ends_with_load: bool,
}

impl FinishedRun {
    /// The run, as far as it was read.
    pub(crate) fn run(&self) -> Option<&Run> {
        self.model.as_ref()?.run(self.id)
    }

    /// Its figures by their names, as far as they were read.
    pub(crate) fn figures(&self) -> Option<Figures<'_>> {
        let model = self.model.as_ref()?;
        Some(Figures::of(model, model.run(self.id)?, self.source.as_deref()))
    }

    pub(crate) fn print(&self, format: Format) -> anyhow::Result<()> {
        let Some((model, run)) = self.model.as_ref().zip(self.run()) else { return Ok(()) };
        let mut summary = model.summary(run, self.source.as_deref());
        let made = self.recorded.as_ref().and_then(|recorded| recorded.as_ref().ok()).map_or(0, |r| r.made);
        // Records after the last one read are lost too.
        if let Some(journal) = &mut summary.journal {
            journal.made = journal.made.max(made);
            journal.lost = journal.made - journal.read;
            journal.before = 0;
        }
        summary::print(&summary, format)
    }

    /// # Errors
    /// When a part of the run failed, or no request of its load succeeded.
    pub(crate) fn check(self) -> anyhow::Result<()> {
        let counts = |run: &Run| run.load().map(|load| *load.totals()).unwrap_or_default();
        let counts = self.run().filter(|_| self.ends_with_load).map(counts);
        let JournalOutcome { closed, .. } = self.recorded.context("a thread of the program panicked")??;
        closed?;
        anyhow::ensure!(
            self.end_was_read,
            "the figures lack the end of the run: its last record could not be read back from {} within {} s",
            self.source.as_deref().unwrap_or_default(),
            LAST_RECORD.as_secs()
        );
        if let Some(counts) = counts {
            let [scheduled, warmup] = [LoadCounter::Scheduled, LoadCounter::Warmup].map(|one| counts[one]);
            let is_measured = scheduled == 0 || scheduled > warmup;
            anyhow::ensure!(is_measured, "the warm-up took all {warmup} requests: nothing was measured");
            anyhow::ensure!(counts[LoadCounter::Ok] > 0, "no request succeeded");
        }
        self.failure.map_or(Ok(()), Err)
    }
}

impl Session {
    /// Says what a program without a dashboard does now, and where its records are.
    pub(crate) fn say_what(&self, does: &str) {
        if self.config.frontend != Frontend::Headless {
            return;
        }
        let place = self.journal.source().map_or_else(|| "off".to_owned(), |source| source.to_string());
        crate::say(format_args!("{does}, journal {place}"));
        if let Some(redirect) = &self.channels.redirect {
            crate::say(format_args!("redirecting http://{} to https", redirect.server.addr()));
        }
    }

    /// Runs it to its end and prints the summary.
    ///
    /// # Errors
    /// When a part of it failed.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let format = self.config.format;
        let finished = self.finish()?;
        finished.print(format)?;
        finished.check()
    }

    /// The alerts of the run.
    ///
    /// # Errors
    /// When the run has no such figure, or cannot make the experiment of `--ab`.
    pub(crate) fn check(&self) -> anyhow::Result<Alerts> {
        let Self { config, header, workload, .. } = self;
        if let Some(plan) = &config.experiment {
            plan.resolve(&workload.settings(), setting_infos::all(), config.interval)
                .map_err(|error| usage(format!("--ab {error}")))?;
        }
        // Alerts cannot be added to a run without a dashboard and without a control socket.
        let takes_settings = config.frontend == Frontend::Dashboard || config.control.is_some();
        let spare = if takes_settings { ALERTS_SPARE } else { 0 };
        let resolution = TimeResolution::from_us(header.log_resolution_us);
        Alerts::new(&config.alerts, spare, workload.figure_subjects().with_resolution(resolution))
            .map_err(|error| usage(format!("--alert {error}")))
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// When it could not be started.
    #[expect(clippy::too_many_lines, reason = "it connects the parts of a run, one after the other")]
    pub(crate) fn finish(self) -> anyhow::Result<FinishedRun> {
        let alerts = self.check()?;
        let Self { config, channels, title, mut header, mut notices, workload, journal, handover } = self;
        let Channels { run, upgrade, events, inbox, reload, metrics, control, redirect } = channels;
        let ends_with_load = workload.ends_with_load;
        header.control_socket =
            config.control.as_ref().map(ControlOptions::recorded_path).unwrap_or_default();
        let recording = config.record.as_ref().map(|place| ActiveRecording::create(place, events.clone()));
        let recording = recording.transpose()?;
        let place = journal.source();
        let source = place.as_ref().map(ToString::to_string);
        let filter = RunFilter::own(run, journal.origin());
        let read_back =
            place.as_ref().map(|place| ReadBack::start(place, run, filter, events.clone())).transpose()?;
        if let Some(warning) = config.metrics.and_then(warning_of_exposure) {
            console::report_early(&warning);
            notices.push(warning);
        }
        let endpoints = RunEndpoints::serve(metrics, control, run, &events, &config)?;
        let RunEndpoints { is_ending, control, shared, _socket_file } = endpoints;
        let shown = frontend::FrontendOptions {
            title,
            source: source.clone().unwrap_or_else(|| "none".to_owned()),
            watches: false,
            remote: None,
            run: Some(run),
            appearance: config.appearance,
            drains: workload.proxy.is_some(),
            keep_running: config.keep_running,
            headless: HeadlessOptions { history: config.history, shows_progress: ends_with_load },
            replay: frontend::Replay::default(),
        };
        let upload = |target: UploadTarget| match &journal {
            OpenJournal::File(writer) => Upload::start(target, writer.path()).map(Some),
            OpenJournal::Daemon(..) | OpenJournal::Off => Ok(None),
        };
        let upload = config.upload.map(upload).transpose()?.flatten();
        let records_per_second = journal.records_per_second();
        let record_sink = RecordSink::new(journal, recording, events.clone());
        let publisher = Publisher::new(run, record_sink, records_per_second, Timestamps::now());
        let is_short = config.interval <= ROLLED_UP_MAX;
        let mut publisher = if is_short { publisher.with_rollups() } else { publisher };
        publisher.name_routes(workload.routes.clone().unwrap_or_default());
        publisher.name_upstreams(&workload.upstream_names());
        let suppressed = read_back.as_ref().map(ReadBack::suppressed_total).unwrap_or_default();
        let console = Console::new(events.clone(), config.frontend);
        let experiment = config.experiment.map(|plan| match config.frontend {
            Frontend::Headless => ExperimentRequest { plan, ends_the_run: true },
            Frontend::Dashboard | Frontend::Plain => ExperimentRequest { plan, ends_the_run: false },
        });
        let (interval, configuration) = (config.interval, config.configuration);
        let mut endpoints = shared;
        endpoints.redirect = redirect;
        let setup = RunSetup {
            run,
            header,
            notices,
            interval,
            experiment,
            alerts,
            configuration,
            control,
            endpoints,
            handover,
            upload: upload.as_ref().map(Upload::monitor),
        };
        let signals = RunSignals { reload, upgrade };
        let controller = RunController::new(workload, publisher, setup, console, suppressed, signals);
        let (commands, orders) = sync_channel(COMMANDS_MAX);
        let told = events.clone();
        let recording = spawn("journal", move || {
            let result = controller.run(&orders);
            // The end of a run ends the front end too.
            let _ = told.send(Event::Terminate);
            result
        })?;
        if let Some(duration) = config.duration {
            spawn("timer", move || {
                std::thread::sleep(duration);
                let _ = events.send(Event::Terminate);
            })?;
        }
        // The commands end with the front end: once no sender is left, the controller ends the run.
        let shown = frontend::show(config.frontend, shown, inbox, commands)?;
        is_ending.store(true, Ordering::Relaxed);
        let ending = spawn("ending", move || {
            let result = recording.join();
            let end_was_read = read_back.is_none_or(ReadBack::finish);
            upload.into_iter().for_each(Upload::finish);
            (result, end_was_read)
        })?;
        let (model, failure) = shown.until_ended(&ending);
        // Nothing if a thread panicked.
        let (outcome, end_was_read) = match ending.join() {
            Ok((result, end_was_read)) => (result.ok(), end_was_read),
            Err(_) => (None, false),
        };
        Ok(FinishedRun { id: run, source, model, recorded: outcome, end_was_read, failure, ends_with_load })
    }
}
