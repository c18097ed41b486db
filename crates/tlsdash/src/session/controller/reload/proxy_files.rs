//! The files of a proxy while it runs, and the reading of them for a reload.

use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use anyhow::Context;
use proxy_core::{AccessFileError, AccessLists, FileChanges, Proxy, Resolver, TlsFiles};

use crate::cli::ProxyOptions;
use crate::cli::configuration::destinations::Destinations;
use crate::cli::configuration::source::ConfigurationSource;
use crate::control::ControlAnswer;
use crate::session::controller::files::{FileWatch, FileWatchEvent};
use crate::session::{RunConfiguration, start_check};

/// The end of the message about a reload.
const READ_AGAIN: &str = "certificates and keys were read again";

#[derive(Debug)]
pub(crate) struct ProxyFiles {
    tls_files: TlsFiles,
    pub(crate) tls: FileWatch<CheckedFiles>,
    /// The configuration file with its path; `None` without one.
    configuration: Option<(PathBuf, FileWatch<anyhow::Result<ReadOptions>>)>,
    pub(super) reload: Option<PendingReload>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileReloadOutcome {
    /// Nothing is different.
    Same,
    /// Something is, and is used.
    Changed,
    /// One cannot be used, for this reason.
    Refused(String),
}

/// What a check of the files has read.
#[derive(Debug, Default)]
pub(crate) struct CheckedFiles {
    pub(crate) tls: FileChanges,
    /// Only at a reload, and if there are any.
    pub(crate) access: Option<Result<AccessLists, AccessFileError>>,
}

#[derive(Debug)]
pub(super) struct PendingReload {
    pub(super) waiting: Vec<ReloadWaiter>,
    /// A sentence about certificates and keys, or why they are not all used; `None` until they have been read.
    pub(super) tls: Option<Result<String, String>>,
    /// `None` until they have been read, and without a configuration file.
    pub(super) options: Option<anyhow::Result<ReadOptions>>,
}

/// What a reload has read of the configuration file.
#[derive(Debug)]
pub(super) struct ReadOptions {
    pub(super) options: ProxyOptions,
    /// Has looked up the names of new upstreams, on the same thread.
    pub(super) resolver: Resolver,
}

/// A client that waits for the end of a reload or an upgrade.
#[derive(Debug)]
pub(crate) struct ReloadWaiter {
    pub(crate) by: String,
    pub(crate) reply: SyncSender<Result<ControlAnswer, String>>,
}

impl ProxyFiles {
    /// Starts the threads that read the files.
    pub(crate) fn watch(proxy: &Proxy, configuration: Option<&RunConfiguration>) -> std::io::Result<Self> {
        let tls_files = proxy.files();
        let checked = tls_files.clone();
        let access = proxy.access_files();
        let tls = FileWatch::start("files", move |at_once| CheckedFiles {
            tls: checked.check(at_once),
            access: (at_once && !access.is_empty()).then(|| access.read_again()),
        })?;
        let file = configuration.and_then(|configuration| {
            let source = configuration.source.clone()?;
            Some((source.file()?.to_owned(), source, configuration.options.clone()))
        });
        // The names of files change with a restart only: those of the start stay in use.
        let watch = |(path, source, in_use): (PathBuf, ConfigurationSource, ProxyOptions)| {
            let look_up = proxy.look_up();
            let of_file = format!("configuration {}", path.display());
            let read = move |_| {
                let options = source.read_again()?;
                check(&options, &in_use).with_context(|| of_file.clone())?;
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
    pub(super) fn begin_reload(&mut self, waiting: Vec<ReloadWaiter>, now: Instant) {
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

    /// Notes what a requested check of certificates and keys has led to, and one of address lists.
    pub(crate) fn note_tls(
        &mut self,
        outcome: FileReloadOutcome,
        skipped: &[PathBuf],
        access: Option<Result<String, String>>,
    ) {
        let lacks = match skipped {
            [] => String::new(),
            pipes => format!(", without {}: only a regular file can be read again", joined(pipes)),
        };
        let tls = match outcome {
            FileReloadOutcome::Same => Ok(format!("{READ_AGAIN} and are the same{lacks}")),
            FileReloadOutcome::Changed => Ok(format!("{READ_AGAIN}{lacks}")),
            FileReloadOutcome::Refused(reason) => Err(reason),
        };
        self.end_tls(match (tls, access) {
            (tls, None) => tls,
            (Ok(tls), Some(Ok(access))) => Ok(format!("{tls}; {access}")),
            (Err(tls), Some(Err(access))) => Err(format!("{tls}; {access}")),
            (Err(reason), Some(Ok(_))) | (Ok(_), Some(Err(reason))) => Err(reason),
        });
    }

    /// Ends the reading of certificates and keys for a reload in progress.
    pub(crate) fn end_tls(&mut self, read: Result<String, String>) {
        if let Some(reload) = &mut self.reload {
            reload.tls.get_or_insert(read);
        }
    }

    /// Says which certificates and keys hang.
    pub(crate) fn tls_hang(&self, waited: Duration) -> String {
        hang(&self.tls_files.reading(), waited)
    }

    /// Polls the configuration, and returns the reload if it has ended.
    pub(super) fn poll_reload(&mut self, now: Instant) -> Option<PendingReload> {
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

/// Finds what a start with these options would refuse, besides addresses.
fn check(options: &ProxyOptions, in_use: &ProxyOptions) -> anyhow::Result<()> {
    let options = options.clone().with_defaults()?;
    options.check()?;
    start_check::check_host(&options)?;
    start_check::check_files(&options, in_use)
}

fn hang(files: &[impl AsRef<Path>], waited: Duration) -> String {
    format!("reading {} has not ended for {} s", joined(files), waited.as_secs())
}

fn joined(files: &[impl AsRef<Path>]) -> String {
    files.iter().map(|path| path.as_ref().display().to_string()).collect::<Vec<_>>().join(" and ")
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
                    files.note_tls(FileReloadOutcome::Same, &["/dev/fd/3".into()], None);
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
