//! The controller's handling of a reload: the configuration file, certificates and keys are read again, and changes
//! are applied.
//!
//! The threads `files` and `configuration` read the files, because a disk may hang: then the reload fails, and the other
//! files are still renewed. Replaced certificates and keys are applied separately, as without a reload. Of the
//! configuration, all changes that can act while the proxy runs are applied, or none if one is refused.

mod plan;

use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use proxy_core::{AccessFileError, AccessLists, FileChanges, Proxy, Resolver, TlsFiles};
use records::kinds::{Level, NoticeRecord};
use records::setting::Value;

use super::RunController;
use super::certificates::FileReloadOutcome;
use super::files::{FileWatch, FileWatchEvent};
use crate::cli::ProxyOptions;
use crate::cli::configuration::destinations::Destinations;
use crate::cli::configuration::source::{ConfigurationSource, SettingOrigin};
use crate::control::ControlAnswer;
use crate::service;
use crate::upgrade::program::UpgradeProgram;

const RELOAD: &str = "reload";
/// The end of the message about a reload.
const READ_AGAIN: &str = "certificates and keys were read again";
/// In front of the names that options have as settings.
const PROXY: &str = "proxy.";

/// The options of the proxy of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunConfiguration {
    /// The options in force, without live changes.
    pub(crate) options: ProxyOptions,
    /// Where they are read again; `None` in the demo.
    pub(crate) source: Option<ConfigurationSource>,
    /// The program that an upgrade starts; `None` in the demo, and with a dashboard, which needs the terminal.
    pub(crate) program: Option<UpgradeProgram>,
}

#[derive(Debug)]
pub(super) struct ProxyFiles {
    tls_files: TlsFiles,
    pub(super) tls: FileWatch<CheckedFiles>,
    /// The configuration file with its path; `None` without one.
    configuration: Option<(PathBuf, FileWatch<anyhow::Result<ReadOptions>>)>,
    reload: Option<PendingReload>,
}

/// What a check of the files has read.
#[derive(Debug, Default)]
pub(super) struct CheckedFiles {
    pub(super) tls: FileChanges,
    /// Only at a reload, and if there are any.
    pub(super) access: Option<Result<AccessLists, AccessFileError>>,
}

#[derive(Debug)]
struct PendingReload {
    waiting: Vec<ReloadWaiter>,
    /// A sentence about certificates and keys, or why they are not all used; `None` until they have been read.
    tls: Option<Result<String, String>>,
    /// `None` until they have been read, and without a configuration file.
    options: Option<anyhow::Result<ReadOptions>>,
}

/// What a reload has read of the configuration file.
#[derive(Debug)]
struct ReadOptions {
    options: ProxyOptions,
    /// Has looked up the names of new upstreams, on the same thread.
    resolver: Resolver,
}

/// A client that waits for the end of a reload or an upgrade.
#[derive(Debug)]
pub(super) struct ReloadWaiter {
    pub(super) by: String,
    pub(super) reply: SyncSender<Result<ControlAnswer, String>>,
}

impl RunConfiguration {
    /// The options of `source`, as they would be in force after a restart.
    fn complete(&self, options: ProxyOptions) -> anyhow::Result<ProxyOptions> {
        let mut options = options.with_defaults()?;
        if self.options.listen.is_empty() {
            // The sockets come from the service manager.
            options.listen.clear();
        }
        options.check()?;
        Ok(options)
    }

    /// The origin of a setting's value, if it was not changed live.
    pub(super) fn origin(&self, name: &str) -> Option<SettingOrigin> {
        let word = name.strip_prefix(PROXY)?;
        let word = if word.starts_with("certificate") { "cert" } else { word };
        Some(self.source.as_ref()?.origin(word, &self.options))
    }
}

impl ProxyFiles {
    /// Starts the threads that read the files.
    pub(super) fn watch(proxy: &Proxy, source: Option<ConfigurationSource>) -> std::io::Result<Self> {
        let tls_files = proxy.files();
        let checked = tls_files.clone();
        let access = proxy.access_files();
        let tls = FileWatch::start("files", move |at_once| CheckedFiles {
            tls: checked.check(at_once),
            access: (at_once && !access.is_empty()).then(|| access.read_again()),
        })?;
        let file = source.and_then(|source| Some((source.file()?.to_owned(), source)));
        let watch = |(path, source): (PathBuf, ConfigurationSource)| {
            let look_up = proxy.look_up();
            let read = move |_| {
                let options = source.read_again()?;
                Ok(ReadOptions {
                    resolver: look_up(&Destinations::of(&options)?.upstreams.concat()),
                    options,
                })
            };
            std::io::Result::Ok((path, FileWatch::on_request("configuration", read)?))
        };
        Ok(Self { tls_files, tls, configuration: file.map(watch).transpose()?, reload: None })
    }

    /// Requests that all files are read again. What hangs already fails at once.
    fn begin_reload(&mut self, waiting: Vec<ReloadWaiter>, now: Instant) {
        let mut reload = PendingReload { waiting, tls: None, options: None };
        match self.tls.stuck(now) {
            Some(waited) => reload.tls = Some(Err(self.tls_hang(waited))),
            None => self.tls.reload(),
        }
        if let Some((path, watch)) = &mut self.configuration {
            match watch.stuck(now) {
                Some(waited) => reload.options = Some(Err(anyhow::Error::msg(hang(&[path], waited)))),
                None => watch.reload(),
            }
        }
        self.reload = Some(reload);
    }

    /// Notes what a requested check of certificates and keys has led to.
    pub(super) fn note_tls(&mut self, outcome: FileReloadOutcome, skipped: &[PathBuf]) {
        let lacks = match skipped {
            [] => String::new(),
            pipes => format!(", without {}: only a regular file can be read again", joined(pipes)),
        };
        self.end_tls(match outcome {
            FileReloadOutcome::Same => Ok(format!("{READ_AGAIN} and are the same{lacks}")),
            FileReloadOutcome::Changed => Ok(format!("{READ_AGAIN}{lacks}")),
            FileReloadOutcome::Refused => Err("a certificate or key cannot be used".to_owned()),
        });
    }

    /// Ends the reading of certificates and keys for a reload in progress.
    pub(super) fn end_tls(&mut self, read: Result<String, String>) {
        if let Some(reload) = &mut self.reload {
            reload.tls.get_or_insert(read);
        }
    }

    /// Says which certificates and keys hang.
    pub(super) fn tls_hang(&self, waited: Duration) -> String {
        hang(&self.tls_files.reading(), waited)
    }

    /// Polls the configuration, and returns the reload if it has ended.
    fn poll_reload(&mut self, now: Instant) -> Option<PendingReload> {
        let read = self.configuration.as_mut().and_then(|(path, watch)| match watch.poll(now)? {
            FileWatchEvent::Ended { checked, .. } => Some(checked),
            FileWatchEvent::Stuck(waited) => Some(Err(anyhow::Error::msg(hang(&[path], waited)))),
            FileWatchEvent::StillStuck => None,
        });
        let reload = self.reload.as_mut()?;
        if let Some(read) = read {
            reload.options.get_or_insert(read);
        }
        let has_options = reload.options.is_some() || self.configuration.is_none();
        self.reload.take_if(|reload| reload.tls.is_some() && has_options)
    }
}

fn hang(files: &[impl AsRef<Path>], waited: Duration) -> String {
    format!("reading {} has not ended for {} s", joined(files), waited.as_secs())
}

fn joined(files: &[impl AsRef<Path>]) -> String {
    files.iter().map(|path| path.as_ref().display().to_string()).collect::<Vec<_>>().join(" and ")
}

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
            let is_pending = |word: &String| plan.restart.contains(word);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_that_hangs_fails_the_reload_and_stops_nothing_else() {
        let (go_on, wait_here) = std::sync::mpsc::channel::<()>();
        let configuration = FileWatch::on_request("configuration", move |_| {
            wait_here.recv().unwrap();
            anyhow::bail!("it was read")
        });
        let mut files = ProxyFiles {
            tls_files: TlsFiles::default(),
            tls: FileWatch::start("files", |_| CheckedFiles::default()).unwrap(),
            configuration: Some(("/mnt/a.toml".into(), configuration.unwrap())),
            reload: None,
        };
        let begun = Instant::now();
        let end_reload = |files: &mut ProxyFiles, now| {
            loop {
                if let Some(FileWatchEvent::Ended { was_asked: true, .. }) = files.tls.poll(now) {
                    files.note_tls(FileReloadOutcome::Same, &["/dev/fd/3".into()]);
                }
                if let Some(PendingReload { tls, options, .. }) = files.poll_reload(now) {
                    let read = tls.unwrap().unwrap();
                    assert!(
                        read.ends_with("the same, without /dev/fd/3: only a regular file can be read again")
                    );
                    return options.unwrap().unwrap_err().to_string();
                }
                std::thread::yield_now();
            }
        };
        files.begin_reload(Vec::new(), begun);
        assert!(files.poll_reload(begun).is_none(), "it has just begun");
        let later = begun + Duration::from_secs(12);
        assert_eq!(end_reload(&mut files, later), "reading /mnt/a.toml has not ended for 12 s");
        files.begin_reload(Vec::new(), later);
        assert_eq!(end_reload(&mut files, later), "reading /mnt/a.toml has not ended for 12 s", "at once");
        go_on.send(()).unwrap();
        while files.configuration.as_ref().unwrap().1.stuck(later).is_some() {
            assert!(files.poll_reload(later).is_none(), "nobody waits for it any more");
        }
        go_on.send(()).unwrap();
        files.begin_reload(Vec::new(), later);
        assert_eq!(end_reload(&mut files, later), "it was read");
    }
}
