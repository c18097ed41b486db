//! The controller's handling of an upgrade: it starts the new process, and leaves the clients to it once it is ready.
//!
//! A separate thread waits for the new process. Ticket keys and settings are sent at the last moment, and do not
//! change here afterwards.

pub(super) mod state;

use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use records::kinds::{Level, NoticeRecord};
use records::setting::Setting;
use serde_json::json;

use self::state::UpgradeStage;
use crate::control::ControlAnswer;
use crate::control::protocol::UpgradeData;
use crate::service::thread::spawn;
use crate::session::acme::OrderedCertificate;
use crate::session::controller::reload::proxy_files::ReloadWaiter;
use crate::session::controller::{PendingRevert, RunController, ShutdownStage};
use crate::upgrade::channel::{CarriedRevert, CarriedSetting};
use crate::upgrade::program::UpgradeProgram;
use crate::upgrade::successor::{OfferedSockets, PreparedSuccessor, Successor, prepare};

const UPGRADE: &str = "upgrade";
/// How long this process continues at least, so waiting clients get their answers.
const ANSWERING: Duration = Duration::from_millis(500);

/// The value that a thread has sent, once it has; an error if it sends no more.
fn taken<T>(from: &Receiver<anyhow::Result<T>>) -> Option<anyhow::Result<T>> {
    match from.try_recv() {
        Ok(result) => Some(result),
        Err(TryRecvError::Empty) => None,
        Err(TryRecvError::Disconnected) => Some(Err(anyhow::anyhow!("a thread of the program panicked"))),
    }
}

/// Runs `work` on a thread, whose result can be received.
fn in_thread<T: Send + 'static>(
    work: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<Receiver<anyhow::Result<T>>> {
    let (send, receive) = channel();
    spawn("upgrade", move || {
        // The controller waits for it.
        let _ = send.send(work());
    })?;
    Ok(receive)
}

impl RunController {
    /// Begins an upgrade that was asked for, and takes the next step of one.
    pub(super) fn check_upgrade(&mut self, stage: ShutdownStage) {
        let by_signal = self.signals.upgrade.take();
        match std::mem::take(&mut self.upgrade.stage) {
            UpgradeStage::Idle if by_signal || !self.upgrade.waiting.is_empty() => self.begin_upgrade(stage),
            UpgradeStage::Idle => {}
            UpgradeStage::Preparing(prepared) => match taken(&prepared) {
                None => self.upgrade.stage = UpgradeStage::Preparing(prepared),
                Some(Ok(successor)) if stage == ShutdownStage::Running => self.leave_tickets(successor),
                Some(Ok(_)) => self.end_upgrade(Err("it is ending by itself".to_owned())),
                Some(Err(error)) => self.end_upgrade(Err(format!("{error:#}"))),
            },
            UpgradeStage::Starting(started) => match taken(&started) {
                None => self.upgrade.stage = UpgradeStage::Starting(started),
                Some(Ok(successor)) => self.leave_clients(&successor),
                Some(Err(error)) => self.end_upgrade(Err(format!("{error:#}"))),
            },
            UpgradeStage::Left { run, end_at } => {
                let is_due = end_at.is_some_and(|at| at <= Instant::now());
                if is_due {
                    self.console.end_run();
                }
                self.upgrade.stage = UpgradeStage::Left { run, end_at: end_at.filter(|_| !is_due) };
                self.answer_upgrade(&Err("another process has taken over by now: ask it".to_owned()));
            }
        }
    }

    fn begin_upgrade(&mut self, stage: ShutdownStage) {
        let by = self.upgrade.waiting.first().map_or("SIGUSR2", |waiter| &waiter.by);
        let text = format!("upgrade: asked for by {by}");
        self.report(NoticeRecord::new(Level::Notice, UPGRADE, &text));
        let begun = self.check_upgradable(stage).and_then(|program| {
            let sockets = self.offered_sockets().map_err(|error| format!("{error:#}"))?;
            in_thread(move || prepare(&program, sockets)).map_err(|error| format!("{error:#}"))
        });
        match begun {
            Ok(prepared) => self.upgrade.stage = UpgradeStage::Preparing(prepared),
            Err(reason) => self.end_upgrade(Err(reason)),
        }
    }

    /// The program to start.
    fn check_upgradable(&self, stage: ShutdownStage) -> Result<UpgradeProgram, String> {
        if stage != ShutdownStage::Running {
            return Err("it is ending by itself".to_owned());
        }
        let program =
            self.setup.configuration.as_ref().and_then(|configuration| configuration.program.clone());
        let program = program.ok_or("only a proxy that was started with --headless can be upgraded")?;
        if self.experiments.is_wanted_or_under_way() {
            return Err("an experiment is under way; tlsdash ctl ab end ends it".to_owned());
        }
        Ok(program)
    }

    fn offered_sockets(&self) -> anyhow::Result<OfferedSockets> {
        let proxy = self.workload.proxy.as_ref();
        let listeners = proxy.map(proxy_core::Proxy::listeners).transpose()?;
        let listeners = listeners.ok_or_else(|| anyhow::anyhow!("there is no proxy"))?;
        let endpoints = &self.setup.endpoints;
        let (metrics, control, redirect) =
            (endpoints.metrics()?, endpoints.control()?, endpoints.redirect()?);
        Ok(OfferedSockets { run: self.setup.run, listeners, metrics, control, redirect })
    }

    /// Leaves ticket keys and settings to the new process, which then serves.
    fn leave_tickets(&mut self, successor: PreparedSuccessor) {
        if self.experiments.is_wanted_or_under_way() {
            return self.end_upgrade(Err("an experiment has begun; end it first".to_owned()));
        }
        let Some(keys) = self.workload.proxy.as_ref().map(proxy_core::Proxy::hold_ticket_keys) else {
            return;
        };
        let settings = self.carried_settings();
        match in_thread(move || successor.serve(&keys, settings)) {
            Ok(started) => self.upgrade.stage = UpgradeStage::Starting(started),
            Err(error) => self.end_upgrade(Err(format!("{error:#}"))),
        }
    }

    /// The settings that were changed live.
    fn carried_settings(&self) -> Vec<CarriedSetting> {
        let settings = self.run_record().settings;
        let is_changed = |setting: &Setting| {
            self.at_start.get(&setting.name).is_some_and(|before| *before != setting.value)
        };
        let now = Instant::now();
        let changed = settings.into_iter().filter(is_changed);
        let carried = changed.map(|setting| {
            let revert = self.reverts.iter().find(|revert| revert.name == setting.name);
            let revert = revert.map(|PendingRevert { at, to, by, .. }| CarriedRevert {
                after_ms: at.saturating_duration_since(now).as_millis() as u64,
                to: to.clone(),
                by: by.clone(),
            });
            CarriedSetting { name: setting.name, value: setting.value, revert }
        });
        carried.collect()
    }

    /// Serves the clients that are connected to their end; others find the new process.
    fn leave_clients(&mut self, successor: &Successor) {
        let Successor { run, pid, prepared } = successor;
        if let Some(proxy) = &self.workload.proxy {
            proxy.hand_over(prepared.listen.clone());
        }
        self.setup.endpoints.leave(prepared);
        // The new process answers the authority, so it renews.
        self.workload.acme.iter_mut().for_each(OrderedCertificate::stop);
        self.upgrade.stage = UpgradeStage::Left { run: *run, end_at: Some(Instant::now() + ANSWERING) };
        let text = format!("run {} (pid {pid}) serves; this process drains", run.short());
        let data = json!(UpgradeData { run: run.to_string(), pid: *pid });
        self.tell_upgrade(&Ok(ControlAnswer { text, data: Some(data) }));
    }

    /// Ends an upgrade that did not happen; the run continues.
    fn end_upgrade(&mut self, outcome: Result<ControlAnswer, String>) {
        self.upgrade.stage = UpgradeStage::Idle;
        if let Some(proxy) = &self.workload.proxy {
            proxy.release_ticket_keys();
        }
        self.tell_upgrade(&outcome.map_err(|reason| format!("this process goes on: {reason}")));
    }

    fn tell_upgrade(&mut self, outcome: &Result<ControlAnswer, String>) {
        let (level, text) = match outcome {
            Ok(answer) => (Level::Notice, &answer.text),
            Err(reason) => (Level::Warning, reason),
        };
        self.report(NoticeRecord::new(level, UPGRADE, &format!("upgrade: {text}")));
        self.answer_upgrade(outcome);
    }

    fn answer_upgrade(&mut self, outcome: &Result<ControlAnswer, String>) {
        for ReloadWaiter { reply, .. } in self.upgrade.waiting.drain(..) {
            // The client may have given up.
            let _ = reply.try_send(outcome.clone());
        }
    }

    /// Restores the settings' values from the process that this one has replaced.
    pub(super) fn apply_handover(&mut self) {
        let Some(handover) = self.setup.handover.take() else { return };
        let text = format!("upgrade: took over from run {}", handover.run.short());
        self.report(NoticeRecord::new(Level::Notice, UPGRADE, &text));
        let by = format!("run {}", handover.run.short());
        for CarriedSetting { name, value, revert } in handover.settings {
            match self.change_for(&name, &value, &by) {
                Ok(_) => {
                    let revert = revert.map(|CarriedRevert { after_ms, to, by }| PendingRevert {
                        at: Instant::now() + Duration::from_millis(after_ms),
                        name,
                        to,
                        by,
                    });
                    self.reverts.extend(revert);
                }
                Err(reason) => {
                    let text = format!("upgrade: {name} has not the value that it had: {reason}");
                    self.report(NoticeRecord::new(Level::Warning, UPGRADE, &text));
                }
            }
        }
    }
}
