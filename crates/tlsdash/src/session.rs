//! One run from beginning to end: journal, recorder, follower, front end, summary.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use journal::Timestamps;
use telemetry::{Body, Follower, Phase, Publisher, Record, RunId, RunRecord, Update};
use tui::{Event, Inbox, Sender};

use crate::args::{Format, RunWords, usage};
use crate::frontend::{self, Frontend};
use crate::journal_choice::{Journal, JournalChoice};
use crate::recorder::{Measured, Recorded, Recorder};
use crate::signals::{self, Reload};
use crate::sink::RecordSink;
use crate::source::Source;
use crate::summary;

/// Commands that wait to be carried out; a person does not press keys faster.
const COMMANDS_MAX: usize = 64;
/// So long is waited for the last record to be read back: journald stores entries some time after it took them.
const LAST_RECORD: Duration = Duration::from_secs(2);

/// How a run is shown and recorded.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) journal: JournalChoice,
    pub(crate) interval: Duration,
    pub(crate) frontend: Frontend,
    /// Whether no dashboard was wanted.
    pub(crate) headless: bool,
    pub(crate) format: Format,
    pub(crate) ascii: bool,
    pub(crate) duration: Option<Duration>,
}

impl Shape {
    /// Resolves the words that shape a run, before anything is started.
    pub(crate) fn resolve(words: &RunWords, duration: Option<&str>) -> anyhow::Result<Self> {
        let journal = JournalChoice::parse(words.journal.as_deref().unwrap_or("auto"))?;
        let frontend = Frontend::choose(words.headless);
        if journal == JournalChoice::Off && frontend == Frontend::Dashboard {
            return Err(usage(
                "--journal off goes with --headless only: the dashboard shows what the journal holds",
            ));
        }
        Ok(Self {
            journal,
            interval: words.interval()?,
            frontend,
            headless: words.headless,
            format: words.format.unwrap_or_default(),
            ascii: words.ascii,
            duration: duration.map(|text| crate::args::time("duration", text)).transpose()?,
        })
    }
}

/// How the parts of the program hear of each other, and of signals. Comes before anything that would have to be
/// ended in order.
#[derive(Debug)]
pub(crate) struct Wiring {
    events: Sender,
    inbox: Inbox,
    reload: Reload,
}

impl Wiring {
    pub(crate) fn new(shape: &Shape) -> anyhow::Result<Self> {
        shape.frontend.say_if_forced(shape.headless);
        let (events, inbox) = tui::channel();
        let reload = Reload::default();
        signals::listen(shape.frontend, events.clone(), reload.clone())?;
        Ok(Self { events, inbox, reload })
    }
}

/// What a run is made of.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) shape: Shape,
    pub(crate) wiring: Wiring,
    pub(crate) title: String,
    pub(crate) header: RunRecord,
    pub(crate) measured: Measured,
    pub(crate) journal: Journal,
}

impl Session {
    /// Runs it to its end and prints the summary.
    ///
    /// # Errors
    /// When a part of it failed.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let Self { shape, wiring: Wiring { events, inbox, reload }, title, header, measured, journal } = self;
        let ends_with_load = measured.ends_with_load;
        let run = RunId::random().context("cannot draw a run id")?;
        let place = journal.source();
        let source = place.as_ref().map(ToString::to_string);
        let following = place.as_ref().map(|place| follow(place, run, events.clone())).transpose()?;
        let options = frontend::Options {
            title,
            source: source.clone().unwrap_or_else(|| "none".to_owned()),
            read_only: false,
            run: Some(run),
            ascii: shape.ascii,
            drains: measured.proxy.is_some(),
        };
        let records_per_second = journal.records_per_second();
        let sink = RecordSink::new(journal, events.clone());
        let publisher = Publisher::new(run, sink, records_per_second, Timestamps::now());
        let suppressed = following.as_ref().map(Following::suppressed_total).unwrap_or_default();
        let recorder =
            Recorder::new(measured, publisher, header, shape.interval, events.clone(), suppressed, reload);
        let (commands, orders) = sync_channel(COMMANDS_MAX);
        let told = events.clone();
        let recording = spawn("journal", move || {
            let result = recorder.run(&orders);
            // A run that ended by itself ends the front end too.
            let _ = told.send(Event::Terminate);
            result
        })?;
        if let Some(duration) = shape.duration {
            spawn("timer", move || {
                std::thread::sleep(duration);
                let _ = events.send(Event::Terminate);
            })?;
        }
        // The commands go with the front end: once nobody can send any, the recorder ends the run.
        let shown = frontend::show(shape.frontend, options, inbox, commands)?;
        let ending = spawn("ending", move || {
            let result = recording.join();
            following.into_iter().for_each(Following::finish);
            result
        })?;
        let (model, failure) = shown.until_ended(&ending);
        let outcome = ending.join().ok().and_then(Result::ok);
        let mut nothing_answered = false;
        let made = outcome.as_ref().and_then(|recorded| recorded.as_ref().ok()).map_or(0, |r| r.made);
        let summary =
            model.as_ref().and_then(|model| Some(model.summary(model.run(run)?, source.as_deref())));
        if let Some(mut summary) = summary {
            // Records after the last one that was read are lost too.
            if let Some(journal) = &mut summary.journal {
                journal.made = journal.made.max(made);
                journal.lost = journal.made - journal.read;
            }
            summary::print(&summary, shape.format)?;
            nothing_answered = ends_with_load && summary.load.is_some_and(|load| load.requests.ok == 0);
        }
        let Recorded { closed, .. } = outcome.context("a thread of the program panicked")??;
        closed.map_err(|error| anyhow::anyhow!("the journal lacks the end of the run: {error}"))?;
        anyhow::ensure!(!nothing_answered, "no request was answered");
        failure.map_or(Ok(()), Err)
    }
}

/// Reads back what a run writes.
struct Following {
    follower: Follower,
    /// Hears when the run's last record was read.
    stopped: Receiver<()>,
}

fn follow(source: &Source, run: RunId, events: Sender) -> anyhow::Result<Following> {
    let (tell, stopped) = sync_channel(1);
    let is_stop = move |record: &Record| {
        record.stamp.run == run && matches!(&record.body, Body::Run(run) if run.phase == Phase::Stop)
    };
    let deliver = move |update| {
        let has_stopped = matches!(&update, Update::Batch(batch) if batch.records.iter().any(is_stop));
        let is_wanted = events.send(Event::Update(update)).is_ok();
        if has_stopped {
            // Said after what was read is delivered, and once is enough.
            let _ = tell.try_send(());
        }
        is_wanted
    };
    let follower = Follower::start(source.opener(source.start_of_run()), deliver)?;
    Ok(Following { follower, stopped })
}

impl Following {
    /// Messages of this process that journald says it dropped.
    fn suppressed_total(&self) -> Arc<AtomicU64> {
        self.follower.suppressed_total()
    }

    /// Ends it once the run's last record was read, or does not come.
    fn finish(self) {
        let _ = self.stopped.recv_timeout(LAST_RECORD);
        self.follower.finish();
    }
}

/// Starts a named thread: CPU time is accounted by the beginning of the name.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> anyhow::Result<JoinHandle<T>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .with_context(|| format!("cannot start the thread {name}"))
}

/// The name of this host.
pub(crate) fn host_name() -> String {
    telemetry::clean::bytes(rustix::system::uname().nodename().to_bytes())
}
