//! The thread `journal`, which runs a session: it publishes intervals, executes commands, and shuts everything down in
//! order.
//!
//! A [`Command`] comes from the dashboard. A new one takes a variant in telemetry, an arm in [`RunController::execute`],
//! a method of the proxy or the load that does the work, and a key in tui.

mod alerts;
mod calibration;
mod certificates;
mod configuration;
mod control;
mod experiment;
mod files;
mod interval;
mod reload;
mod renewal;
mod upgrade;
mod upstreams;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::Context;
use journal::Timestamps;
use loadgen::Load;
use model::alerts::Alerts;
use proxy_core::Proxy;
use recorder::host::HostSampler;
use recorder::publish::Publisher;
use records::command::Command;
use records::delta::{LoadDelta, LoadState, ProxyDelta};
use records::ids::RunId;
use records::kinds::{Level, NoticeRecord, RunRecord, SettingRecord};
use records::setting::{Setting, SettingError, Value};

use crate::control::ControlCommand;
use crate::service::{self, Watchdog};
use crate::session::acme::OrderedCertificate;
use crate::session::config::RunConfiguration;
use crate::session::console::Console;
use crate::session::endpoints::SharedEndpoints;
use crate::session::experiments::{ExperimentRequest, ExperimentRunner};
use crate::session::record_sink::{CloseError, RecordSink};
use crate::session::signals::{self, Reload, UpgradeSignal};
use crate::session::upload::UploadMonitor;
use crate::session::workload::Workload;
use crate::upgrade::predecessor::HandoverState;
use calibration::Calibration;
use reload::proxy_files::{ProxyFiles, ReloadWaiter};
use upgrade::state::Upgrade;

pub(crate) use certificates::CERTIFICATE;

/// How long to wait for the counters of busy workers. Later ones count in the next interval.
const PATIENCE: Duration = Duration::from_millis(500);
/// The longest wait for a command in one turn of the loop. Every turn checks stage, watchdog, journal and certificates.
const POLL: Duration = Duration::from_millis(20);
/// The longest wait for the moment at which the load is to start: nothing else is done meanwhile.
const START_PATIENCE: Duration = Duration::from_secs(10);
/// How long the end of a run waits for the journal to accept the last records.
const END_PATIENCE: Duration = Duration::from_secs(2);
/// How often the last records are offered to the journal: the socket of a busy journald holds only a few.
const END_POLL: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(crate) struct RunSetup {
    pub(crate) run: RunId,
    pub(crate) header: RunRecord,
    /// Notices from before the journal was open.
    pub(crate) notices: Vec<NoticeRecord>,
    /// The time between two records of the counters.
    pub(crate) interval: Duration,
    /// The experiment that starts with the run.
    pub(crate) experiment: Option<ExperimentRequest>,
    pub(crate) alerts: Alerts,
    /// The options of the proxy; `None` without one.
    pub(crate) configuration: Option<Box<RunConfiguration>>,
    /// Commands of the control socket; none come without one.
    pub(crate) control: Receiver<ControlCommand>,
    pub(crate) endpoints: SharedEndpoints,
    /// State of the process that this one has replaced.
    pub(crate) handover: Option<HandoverState>,
    pub(crate) upload: Option<UploadMonitor>,
}

#[derive(Clone, Debug)]
pub(crate) struct RunSignals {
    pub(crate) reload: Reload,
    pub(crate) upgrade: UpgradeSignal,
}

/// Owns the workload, publishes its counters, and ends it.
pub(crate) struct RunController {
    workload: Workload,
    publisher: Publisher<RecordSink>,
    setup: RunSetup,
    console: Console,
    /// Messages of this process that journald reported as dropped.
    suppressed_total: Arc<AtomicU64>,
    signals: RunSignals,
    upgrade: Upgrade,
    /// Settings that will be restored.
    reverts: Vec<PendingRevert>,
    /// Clients of the control socket that wait for the end of a reload.
    reload_waiting: Vec<ReloadWaiter>,
    /// The watched files; `None` without a proxy, and before the run.
    files: Option<ProxyFiles>,
    host: HostSampler,
    proxy_delta: ProxyDelta,
    load_delta: LoadDelta,
    /// Records that the journal had refused by the last interval.
    refused_total: u64,
    /// True while the journal refuses records.
    is_refusing: bool,
    /// True once the failure of a worker has been reported.
    has_worker_failed: bool,
    is_ending: bool,
    experiments: ExperimentRunner,
    /// The values that changed settings had at the start.
    at_start: BTreeMap<String, Value>,
    calibration: Calibration,
}

/// A setting that is restored.
#[derive(Debug)]
struct PendingRevert {
    at: Instant,
    name: String,
    to: Value,
    /// Who set it for a time.
    by: String,
}

/// The journal's acceptance of a run's records.
#[derive(Debug)]
pub(crate) struct JournalOutcome {
    /// The number of accepted records.
    pub(crate) made: u64,
    /// Why the last records may be missing.
    pub(crate) closed: Result<(), CloseError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShutdownStage {
    Running,
    /// The load finishes its requests; the proxy still serves them.
    StoppingLoad,
    /// The proxy serves its open connections to their end.
    Draining,
    Ended,
}

impl RunController {
    pub(crate) fn new(
        workload: Workload,
        publisher: Publisher<RecordSink>,
        mut setup: RunSetup,
        console: Console,
        suppressed_total: Arc<AtomicU64>,
        signals: RunSignals,
    ) -> Self {
        let experiments = ExperimentRunner::new(setup.experiment.take());
        Self {
            workload,
            publisher,
            setup,
            console,
            suppressed_total,
            signals,
            upgrade: Upgrade::default(),
            reverts: Vec::new(),
            reload_waiting: Vec::new(),
            files: None,
            host: HostSampler::default(),
            proxy_delta: ProxyDelta::default(),
            load_delta: LoadDelta::default(),
            refused_total: 0,
            is_refusing: false,
            has_worker_failed: false,
            is_ending: false,
            experiments,
            at_start: BTreeMap::new(),
            calibration: Calibration::default(),
        }
    }

    /// Starts the load, and runs until the command channel is closed, a worker of the proxy fails, or the load or the
    /// experiment that the run ends with has ended. Then shuts everything down in order and closes the journal.
    ///
    /// # Errors
    /// When a part of the program panicked, or a worker of the proxy failed.
    pub(crate) fn run(mut self, commands: &Receiver<Command>) -> anyhow::Result<JournalOutcome> {
        if let Some(outlook) = self.experiments.outlook() {
            self.console.say(Level::Info, &format!("experiment: {outlook}"));
        }
        if let Some(proxy) = &self.workload.proxy {
            self.host.listen_at(proxy.local_addrs());
        }
        // Finds every thread before the first of them can end.
        self.host.sample();
        let wait = self.workload.load_start.after(Timestamps::now().monotonic_us);
        std::thread::sleep(wait.min(START_PATIENCE));
        if let Some(load) = &self.workload.load {
            load.set("load.running", &Value::Flag(true)).context("cannot start the load")?;
        }
        if let Some(proxy) = &self.workload.proxy {
            let files = ProxyFiles::watch(proxy, self.setup.configuration.as_deref());
            self.files = Some(files.context("cannot watch the files of certificates")?);
        }
        self.publisher.start(self.run_record(), Timestamps::now());
        for notice in std::mem::take(&mut self.setup.notices) {
            self.publisher.notice(notice, Timestamps::now());
        }
        self.apply_handover();
        let (mut began_us, mut next_us) = (Timestamps::now().monotonic_us, self.next_tick_us());
        let mut stage = ShutdownStage::Running;
        let mut watchdog = Watchdog::new();
        while stage != ShutdownStage::Ended {
            let to_tick = Duration::from_micros(next_us.saturating_sub(Timestamps::now().monotonic_us));
            match commands.recv_timeout(to_tick.min(POLL)) {
                Ok(command) => self.execute(command),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) if stage == ShutdownStage::Running => {
                    stage = self.stop_load();
                }
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(to_tick.min(POLL)),
            }
            self.serve_control();
            self.report_worker_failure();
            stage = self.advance(stage);
            watchdog.feed(|| self.workload.proxy.as_ref().is_none_or(Proxy::is_responsive));
            if self.publisher.pending() + self.publisher.pending_rollups() > 0 {
                self.publisher.retry();
            }
            self.check_certificates();
            self.record_late_certificates();
            self.check_renewal();
            self.check_reload();
            self.record_calibration();
            self.check_upgrade(stage);
            if Timestamps::now().monotonic_us >= next_us {
                began_us = self.tick(began_us, stage);
                next_us = self.next_tick_us();
            }
        }
        self.finish()
    }

    /// Shows a notice and records it.
    fn report(&mut self, notice: NoticeRecord) {
        self.show(notice.level, &notice.text);
        self.publisher.notice(notice, Timestamps::now());
    }

    /// Shows the text of a record. A dashboard shows it when it reads the record back, unless the journal refuses
    /// records: then it is shown at once.
    fn show(&self, level: Level, text: &str) {
        if self.is_refusing {
            self.console.say(level, text);
        } else {
            self.console.echo(level, text);
        }
    }

    /// Records the costs of handshakes once they are measured.
    fn record_calibration(&mut self) {
        match self.calibration.poll() {
            Some(Ok(costs)) => self.publisher.calibration(costs, Timestamps::now()),
            Some(Err(error)) => self.console.say(Level::Warning, &error),
            None => {}
        }
    }

    /// Reports the failure of a proxy worker, once.
    fn report_worker_failure(&mut self) {
        let failure = self.workload.proxy.as_ref().and_then(Proxy::failure);
        if let Some(failure) = failure.filter(|_| !self.has_worker_failed) {
            self.has_worker_failed = true;
            let text = format!("{failure}; the proxy drains and ends");
            self.report(NoticeRecord::new(Level::Warning, "worker", &text));
        }
    }

    fn stop_load(&mut self) -> ShutdownStage {
        self.is_ending = true;
        if self.upgrade.next_run().is_none() {
            service::stopping();
        }
        self.workload.acme.iter_mut().for_each(OrderedCertificate::stop);
        self.end_experiment();
        if let Some(load) = &self.workload.load {
            load.stop();
        }
        ShutdownStage::StoppingLoad
    }

    /// Returns the end of the current interval. Intervals end at multiples of their length on the monotonic clock, so
    /// those of several runs on one host line up.
    fn next_tick_us(&self) -> u64 {
        let interval_us = self.setup.interval.as_micros() as u64;
        (Timestamps::now().monotonic_us / interval_us + 1) * interval_us
    }

    /// Returns the next stage if this one has ended.
    fn advance(&mut self, stage: ShutdownStage) -> ShutdownStage {
        let load_ended = self.workload.load.as_ref().is_none_or(Load::is_finished);
        match stage {
            ShutdownStage::Running if self.workload.ends_with_load && load_ended => self.stop_load(),
            ShutdownStage::Running if self.experiments.ends_the_run() => self.stop_load(),
            // The failed worker no longer serves its clients.
            ShutdownStage::Running if self.has_worker_failed => self.stop_load(),
            ShutdownStage::StoppingLoad if load_ended => {
                // The last CPU time of the load's threads is sampled while the proxy's threads still run.
                self.host.sample();
                self.workload.drain();
                if self.workload.proxy.is_some() {
                    signals::begin_drain();
                }
                ShutdownStage::Draining
            }
            ShutdownStage::Draining if self.workload.is_drained() => ShutdownStage::Ended,
            ShutdownStage::Draining if signals::asked_to_hurry() => {
                self.workload.cut();
                stage
            }
            stage => stage,
        }
    }

    /// Changes a setting and records it, with who asked for it over the control socket. Returns false if it already had
    /// this value. A value that does not go with the files of TLS is refused, as at a start.
    fn change_setting(&mut self, name: &str, value: &Value, by: &str) -> Result<bool, SettingError> {
        self.check_setting(name, value)?;
        let (before, after) = self.workload.set(name, value)?;
        Ok(self.record_change(before, after, by))
    }

    /// Records a change of a setting. Returns false if there is none.
    fn record_change(&mut self, before: Setting, after: Setting, by: &str) -> bool {
        if before.value == after.value {
            return false;
        }
        let Setting { name, value, .. } = before;
        let before = value.to_string();
        self.at_start.entry(name.clone()).or_insert(value);
        self.publisher.setting(
            SettingRecord { name, before, after: Some(after), by: by.to_owned() },
            Timestamps::now(),
        );
        true
    }

    /// The header of the run with the current settings.
    fn run_record(&self) -> RunRecord {
        // The header of an observed run has the other terminator's certificates, which are not in the workload.
        let given = self.setup.header.settings.iter().cloned();
        let settings = given.chain(self.workload.settings()).chain(self.setup.alerts.settings()).collect();
        RunRecord { settings, ..self.setup.header.clone() }
    }

    /// Offers the last records until the journal has accepted them, for at most [`END_PATIENCE`].
    fn await_last_records(&mut self) -> Result<(), CloseError> {
        let deadline = Instant::now() + END_PATIENCE;
        while self.publisher.pending() + self.publisher.pending_rollups() > 0 && Instant::now() < deadline {
            std::thread::sleep(END_POLL);
            self.publisher.retry();
        }
        let records = self.publisher.pending();
        if records > 0 {
            let reason = self.publisher.refusal().unwrap_or("it takes no records").to_owned();
            return Err(CloseError::Missing { records, reason });
        }
        Ok(())
    }

    fn finish(mut self) -> anyhow::Result<JournalOutcome> {
        // The workers have ended, so this gathers their last counters.
        self.gather(PATIENCE);
        self.report_proxy_notices();
        self.report_worker_failure();
        let host = self.sample_host();
        let next_run = self.upgrade.next_run().map(|run| run.to_string()).unwrap_or_default();
        let stop = RunRecord { next_run, ..self.run_record() };
        let proxy = self.workload.counts_traffic().then_some(&self.proxy_delta);
        let load =
            self.workload.load_state().map(|state| (&self.load_delta, LoadState { running: false, ..state }));
        self.publisher.stop(stop, proxy, load, Some(host), Timestamps::now());
        let missing = self.await_last_records();
        self.report_refusals();
        let made = self.publisher.made();
        let closed = self.publisher.into_sink().close().and(missing);
        if let Some(proxy) = self.workload.proxy {
            proxy.join()?;
        }
        Ok(JournalOutcome { made, closed })
    }
}
