//! The thread that owns what is measured: it ticks, publishes, carries out commands, and ends everything in order.

mod certificates;
mod experiment;
mod files;
mod measured;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::Context;
use journal::Timestamps;
use loadgen::Load;
use proxy_core::Proxy;
use telemetry::{
    Command, HostRecord, HostSampler, Level, LoadDelta, LoadState, NoticeRecord, ProxyDelta, Publisher,
    RunRecord, SettingError, SettingRecord, Value,
};

use crate::args::usage;
use crate::experiments::{Experiments, Wanted};
use crate::service::{self, Watchdog};
use crate::signals::Reload;
use crate::sink::RecordSink;
use crate::voice::Voice;
use files::FileWatch;

pub(crate) use certificates::CERTIFICATE;
pub(crate) use measured::Measured;

/// How often the recorder looks whether what it waits for has ended.
const POLL: Duration = Duration::from_millis(20);
/// How long it waits for busy workers' counters: they come with the next interval otherwise.
const PATIENCE: Duration = Duration::from_millis(500);
/// How late even a short interval may end without being a gap: a busy machine delays it by as much.
const LATE_MAX: Duration = Duration::from_millis(250);
/// How long the end of a run may wait for a journal that is busy or away.
const END_PATIENCE: Duration = Duration::from_secs(2);
/// How often the end is offered to it: the socket of a busy journald holds few records at a time.
const END_POLL: Duration = Duration::from_millis(1);

/// What a run begins with.
#[derive(Debug)]
pub(crate) struct Beginning {
    pub(crate) header: RunRecord,
    /// What was said before.
    pub(crate) notices: Vec<NoticeRecord>,
    /// How often counters become records.
    pub(crate) interval: Duration,
    /// What is compared, from the beginning on.
    pub(crate) experiment: Option<Wanted>,
}

/// Owns what is measured, and publishes it.
pub(crate) struct Recorder {
    measured: Measured,
    publisher: Publisher<RecordSink>,
    beginning: Beginning,
    voice: Voice,
    /// Messages of this process that journald says it dropped.
    suppressed_total: Arc<AtomicU64>,
    reload: Reload,
    /// `None` without a proxy, and before the run.
    files: Option<FileWatch>,
    host: HostSampler,
    proxy_delta: ProxyDelta,
    load_delta: LoadDelta,
    refused_total: u64,
    is_refusing: bool,
    has_worker_failed: bool,
    experiments: Experiments,
}

/// What became of the records of a run.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// Records that the journal has accepted.
    pub(crate) made: u64,
    /// Why the last of them may not be in it.
    pub(crate) closed: Result<(), String>,
}

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Running,
    /// The load ends its requests; the proxy still serves them.
    StoppingLoad,
    /// The proxy serves what it has.
    Draining,
    Ended,
}

impl Recorder {
    pub(crate) fn new(
        measured: Measured,
        publisher: Publisher<RecordSink>,
        mut beginning: Beginning,
        voice: Voice,
        suppressed_total: Arc<AtomicU64>,
        reload: Reload,
    ) -> Self {
        let experiments = Experiments::new(beginning.experiment.take());
        Self {
            measured,
            publisher,
            beginning,
            voice,
            suppressed_total,
            reload,
            files: None,
            host: HostSampler::default(),
            proxy_delta: ProxyDelta::default(),
            load_delta: LoadDelta::default(),
            refused_total: 0,
            is_refusing: false,
            has_worker_failed: false,
            experiments,
        }
    }

    /// Lets the load go, and runs until nobody can send commands any more, or the load that it ends with has ended;
    /// then ends everything in order and closes the journal.
    ///
    /// # Errors
    /// When a part of the program panicked, a worker of the proxy failed, or what is to be compared cannot be.
    pub(crate) fn run(mut self, commands: &Receiver<Command>) -> anyhow::Result<Recorded> {
        self.experiments
            .check(&self.measured.settings(), self.beginning.interval)
            .map_err(|error| usage(format!("--ab {error}")))?;
        // So that it knows every thread, however soon it ends.
        self.host.sample();
        if let Some(load) = &self.measured.load {
            load.set("load.running", &Value::Flag(true)).context("cannot start the load")?;
        }
        if let Some(files) = self.measured.proxy.as_ref().map(Proxy::files) {
            let watch = FileWatch::start(move |at_once| files.look(at_once));
            self.files = Some(watch.context("cannot watch the files of certificates")?);
        }
        self.publisher.start(self.with_settings(), Timestamps::now());
        for notice in std::mem::take(&mut self.beginning.notices) {
            self.publisher.notice(notice, Timestamps::now());
        }
        let mut next_us = self.next_tick_us();
        let mut stage = Stage::Running;
        let mut watchdog = Watchdog::new();
        while stage != Stage::Ended {
            let to_tick = Duration::from_micros(next_us.saturating_sub(Timestamps::now().monotonic_us));
            match commands.recv_timeout(to_tick.min(POLL)) {
                Ok(command) => self.carry_out(command),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) if stage == Stage::Running => stage = self.stop_load(),
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(to_tick.min(POLL)),
            }
            self.tell_worker_failure();
            stage = self.advance(stage);
            watchdog.feed(|| self.measured.proxy.as_ref().is_none_or(Proxy::is_responsive));
            if self.publisher.pending() > 0 {
                self.publisher.retry();
            }
            self.look_at_certificates();
            if Timestamps::now().monotonic_us >= next_us {
                self.tick(next_us);
                next_us = self.next_tick_us();
            }
        }
        self.finish()
    }

    /// Says something to the person on the box, and records it.
    fn tell(&mut self, notice: NoticeRecord) {
        if self.is_refusing {
            self.voice.say(notice.level, &notice.text);
        } else {
            self.voice.echo(notice.level, &notice.text);
        }
        self.publisher.notice(notice, Timestamps::now());
    }

    /// Says once that a worker of the proxy has ended by itself, in whatever stage that happens.
    fn tell_worker_failure(&mut self) {
        let failure = self.measured.proxy.as_ref().and_then(Proxy::failure);
        if let Some(failure) = failure.filter(|_| !self.has_worker_failed) {
            self.has_worker_failed = true;
            let text = format!("{failure}; the proxy drains and ends");
            self.tell(NoticeRecord::new(Level::Warning, "worker", &text));
        }
    }

    fn stop_load(&mut self) -> Stage {
        service::stopping();
        self.end_experiment();
        if let Some(load) = &self.measured.load {
            load.stop();
        }
        Stage::StoppingLoad
    }

    /// Intervals end on whole multiples of the monotonic clock, so that several runs line up.
    fn next_tick_us(&self) -> u64 {
        let interval_us = self.beginning.interval.as_micros() as u64;
        (Timestamps::now().monotonic_us / interval_us + 1) * interval_us
    }

    fn advance(&mut self, stage: Stage) -> Stage {
        let load_ended = self.measured.load.as_ref().is_none_or(Load::is_finished);
        match stage {
            Stage::Running if self.measured.ends_with_load && load_ended => {
                self.end_experiment();
                Stage::StoppingLoad
            }
            Stage::Running if self.experiments.ends_the_run() => self.stop_load(),
            // Clients would wait for it in vain.
            Stage::Running if self.has_worker_failed => self.stop_load(),
            Stage::StoppingLoad if load_ended => {
                // The load's threads have ended and the proxy's have not: what they used last is the load's.
                self.host.sample();
                if let Some(proxy) = &self.measured.proxy {
                    proxy.drain();
                }
                Stage::Draining
            }
            Stage::Draining if self.measured.proxy.as_ref().is_none_or(Proxy::is_drained) => Stage::Ended,
            stage => stage,
        }
    }

    /// Gathers what was counted since the last time into the two deltas. Waits for both together until patience ends.
    fn gather(&mut self, patience: Duration) {
        telemetry::Delta::clear(&mut self.proxy_delta);
        telemetry::Delta::clear(&mut self.load_delta);
        let deadline = Instant::now() + patience;
        if let Some(proxy) = &mut self.measured.proxy {
            proxy.collect(&mut self.proxy_delta, patience);
        }
        if let Some(load) = &mut self.measured.load {
            load.collect(&mut self.load_delta, deadline.saturating_duration_since(Instant::now()));
        }
    }

    /// Ends the interval that was due to end at `due_us`, and publishes it.
    fn tick(&mut self, due_us: u64) {
        let interval = self.beginning.interval;
        // A busy worker alone never makes an interval late by half of it.
        self.gather(PATIENCE.min(interval / 4));
        let host = self.sample_host();
        let now = Timestamps::now();
        // The process was stopped (SIGSTOP) or starved: nobody knows what it would have measured.
        let late = Duration::from_micros(now.monotonic_us.saturating_sub(due_us));
        if late > LATE_MAX.max(interval / 2) {
            self.publisher.note_gap(now.monotonic_us.saturating_sub(interval.as_micros() as u64));
        }
        let cpu = host.cpu;
        let proxy = self.measured.proxy.is_some().then_some(&self.proxy_delta);
        let load = self.measured.load_state().map(|state| (&self.load_delta, state));
        self.publisher.note_suppressed(self.suppressed_total.load(Ordering::Relaxed));
        self.publisher.interval(proxy, load, Some(host), now);
        self.tell_refusals();
        self.tell_of_proxy();
        self.go_on_with_experiment(now, &cpu);
    }

    fn tell_of_proxy(&mut self) {
        for notice in self.measured.proxy.as_ref().map(Proxy::take_notices).unwrap_or_default() {
            self.tell(notice);
        }
    }

    fn sample_host(&mut self) -> HostRecord {
        let mut host = self.host.sample();
        if let Some(observed) = &mut self.measured.observed {
            observed.sample(&mut host);
        }
        host
    }

    /// Says once an episode that the journal refuses records: the journal itself cannot.
    fn tell_refusals(&mut self) {
        let health = self.publisher.health();
        let is_refusing = health.refused_total > self.refused_total || self.publisher.stalled().is_some();
        self.refused_total = health.refused_total;
        if is_refusing && !self.is_refusing {
            let text = format!("the journal takes no records: {}", health.error);
            self.voice.say(Level::Warning, &text);
        }
        if self.is_refusing && !is_refusing {
            self.voice.say(Level::Notice, "the journal takes records again");
        }
        self.is_refusing = is_refusing;
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            Command::Mark(text) => self.publisher.mark(&text, Timestamps::now()),
            Command::Set { name, value } => match self.change(&name, &value) {
                Ok(true) => self.experiments.disturb(&format!("{name} was changed")),
                Ok(false) => {}
                Err(error) => self.voice.say(Level::Warning, &error.to_string()),
            },
            Command::Experiment(words) => match words.parse() {
                Ok(plan) => self.experiments.want(plan),
                Err(error) => self.voice.say(Level::Warning, &format!("no experiment: {error}")),
            },
            Command::EndExperiment => self.end_experiment(),
            Command::Record => {
                let baseline = self.publisher.baseline();
                match self.publisher.sink_mut().toggle_recording(baseline) {
                    Ok(text) => self.voice.say(Level::Notice, &text),
                    Err(text) => self.voice.say(Level::Warning, &text),
                }
            }
            Command::Notice(notice) => self.tell(notice),
        }
    }

    /// Changes a setting and records it; false if it had that value already.
    fn change(&mut self, name: &str, value: &Value) -> Result<bool, SettingError> {
        let (before, after) = self.measured.set(name, value)?;
        if before.value == after.value {
            return Ok(false);
        }
        let before = before.value.to_string();
        let change = SettingRecord { name: name.to_owned(), before, after: Some(after) };
        self.publisher.setting(change, Timestamps::now());
        Ok(true)
    }

    fn with_settings(&self) -> RunRecord {
        RunRecord { settings: self.measured.settings(), ..self.beginning.header.clone() }
    }

    /// Offers the last records until the journal has taken them, or patience ends.
    fn await_the_end(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + END_PATIENCE;
        while self.publisher.pending() > 0 {
            if Instant::now() >= deadline {
                let reason = self.publisher.refusal().unwrap_or("it takes no records");
                return Err(format!("{} records are not in it: {reason}", self.publisher.pending()));
            }
            std::thread::sleep(END_POLL);
            self.publisher.retry();
        }
        Ok(())
    }

    fn finish(mut self) -> anyhow::Result<Recorded> {
        // All threads have ended and handed over their last counters: this gathers them, and waits for none.
        self.gather(PATIENCE);
        self.tell_of_proxy();
        self.tell_worker_failure();
        let host = self.sample_host();
        let stop = self.with_settings();
        let proxy = self.measured.proxy.is_some().then_some(&self.proxy_delta);
        let load =
            self.measured.load_state().map(|state| (&self.load_delta, LoadState { running: false, ..state }));
        self.publisher.stop(stop, proxy, load, Some(host), Timestamps::now());
        let missing = self.await_the_end();
        self.tell_refusals();
        let made = self.publisher.made();
        let closed = self.publisher.into_sink().close().and(missing);
        if let Some(proxy) = self.measured.proxy {
            proxy.join()?;
        }
        Ok(Recorded { made, closed })
    }
}
