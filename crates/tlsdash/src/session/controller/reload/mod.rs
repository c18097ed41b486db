//! The controller's handling of a reload: the configuration file, certificates and keys are read again, and changes
//! are applied.
//!
//! The threads `files` and `configuration` read the files, because a disk may hang: then the reload fails, and the other
//! files are still renewed. Replaced certificates and keys are applied separately, as without a reload. Of the
//! configuration, all changes that can act while the proxy runs are applied, or none if one is refused.

mod plan;
pub(super) mod proxy_files;

use std::sync::mpsc::SyncSender;
use std::time::Instant;

use proxy_core::Proxy;
use records::kinds::{Level, NoticeRecord};
use records::setting::Value;

use self::proxy_files::{PendingReload, ReadOptions, ReloadWaiter};
use super::RunController;
use crate::control::ControlAnswer;
use crate::service;

const RELOAD: &str = "reload";

impl RunController {
    /// Begins a reload for a client of the control socket, who is answered at its end.
    pub(super) fn begin_reload(&mut self, by: String, reply: SyncSender<Result<ControlAnswer, String>>) {
        if self.files.is_none() {
            let _ = reply.try_send(Err("only a proxy has files to read again".to_owned()));
            return;
        }
        self.report(NoticeRecord::new(Level::Notice, "control", &format!("reload: asked for by {by}")));
        self.reload_waiting.push(ReloadWaiter { by, reply });
        self.signals.reload.ask();
    }

    /// Begins a reload that was asked for, and ends one whose files have been read.
    pub(super) fn check_reload(&mut self) {
        let Some(files) = &mut self.files else { return };
        let now = Instant::now();
        if files.reload.is_none() && self.signals.reload.take() {
            service::reloading();
            files.begin_reload(std::mem::take(&mut self.reload_waiting), now);
            self.workload.proxy.iter().for_each(Proxy::resolve_upstreams);
        }
        if let Some(reload) = files.poll_reload(now) {
            self.finish_reload(reload);
        }
    }

    /// Applies the result of reading, and answers waiting clients.
    fn finish_reload(&mut self, reload: PendingReload) {
        let PendingReload { waiting, tls: Some(read), options } = reload else { return };
        let by = waiting.first().map_or("SIGHUP", |waiter| &waiter.by);
        let stays = if options.is_some() { "; the configuration stays as it was" } else { "" };
        let outcome = read.and_then(|read_again| match options {
            None => Ok(ControlAnswer::from(read_again)),
            Some(options) => {
                let read = options.map_err(|error| format!("{error:#}"))?;
                let ControlAnswer { text, data } = self.apply_options(read, by)?;
                Ok(ControlAnswer { text: format!("{text}; {read_again}"), data })
            }
        });
        let outcome = outcome.map_err(|reason| reason + stays);
        let (level, text) = match &outcome {
            Ok(answer) => (Level::Notice, &answer.text),
            Err(reason) => (Level::Warning, reason),
        };
        self.report(NoticeRecord::new(level, RELOAD, &format!("reload: {text}")));
        service::ready();
        for ReloadWaiter { reply, .. } in waiting {
            // The client may have given up.
            let _ = reply.try_send(outcome.clone());
        }
    }

    /// Lists the changes of a reload with this text as the configuration file.
    pub(super) fn compare_configuration(&self, text: &str) -> Result<ControlAnswer, String> {
        let configuration = self.setup.configuration.as_deref();
        let source = configuration.and_then(|configuration| configuration.source.as_ref());
        let source = source.ok_or("only a proxy with options of its own reads a configuration file")?;
        let options = source.over_text(text).map_err(|error| format!("{error:#}"))?;
        let (_, plan) = self.plan_reload(options)?;
        Ok(self.describe(&plan, "a reload changes"))
    }

    /// Applies all changes, or none.
    fn apply_options(&mut self, read: ReadOptions, by: &str) -> Result<ControlAnswer, String> {
        let (options, plan) = self.plan_reload(read.options)?;
        let answer = self.describe(&plan, "changed");
        let by = format!("a reload by {by}");
        self.check_upstreams(plan.upstreams.as_ref(), &read.resolver)?;
        let applied = self
            .apply_changes(&plan.changes, &by)
            .and_then(|()| self.replace_upstreams(plan.upstreams.as_ref(), &read.resolver, &by));
        self.name_upstreams();
        applied?;
        let settings = self.run_record().settings;
        for (name, value) in plan.all_changes() {
            self.cancel_revert(name);
            self.at_start.insert(name.clone(), value.clone());
        }
        if let Some(configuration) = &mut self.setup.configuration {
            let effective_options = &mut configuration.options;
            for setting in settings.iter().filter(|setting| plan.has_change(&setting.name)) {
                // A value of the proxy is always valid for its option.
                let _ = effective_options.take(setting);
            }
            if plan.upstreams.is_some() {
                (effective_options.upstream, effective_options.route, effective_options.pass) =
                    (options.upstream, options.route, options.pass);
            }
            if !plan.needs_restart(plan::ALERT) {
                effective_options.run.alert = options.run.alert;
            }
            // An option that needs a restart still has its former origin.
            let is_pending = |word: &String| plan.needs_restart(word);
            effective_options.words.retain(is_pending);
            effective_options.words.extend(options.words.into_iter().filter(|word| !is_pending(word)));
        }
        Ok(answer)
    }

    /// Gives settings new values. If one is refused, all have their former values again.
    fn apply_changes(&mut self, changes: &[(String, Value)], by: &str) -> Result<(), String> {
        let before = self.run_record().settings;
        let mut waiting: Vec<_> = changes.iter().collect();
        let mut refusal = None;
        while !waiting.is_empty() {
            let count = waiting.len();
            // A refused change may be accepted after others, such as the oldest and the newest version of TLS.
            waiting.retain(|(name, value)| match self.change_for(name, value, by) {
                Ok(_) => false,
                Err(reason) => {
                    refusal = Some(reason);
                    true
                }
            });
            if waiting.len() == count {
                break;
            }
        }
        let (false, Some(reason)) = (waiting.is_empty(), refusal) else { return Ok(()) };
        for (name, _) in changes.iter().rev() {
            if let Some(setting) = before.iter().find(|setting| setting.name == *name) {
                // It had this value, so it may have it again.
                let _ = self.change_for(name, &setting.value, by);
            }
        }
        Err(reason)
    }
}
