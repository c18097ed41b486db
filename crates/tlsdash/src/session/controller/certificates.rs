//! Applies changed files of certificates, keys and authorities during a run.

use std::time::Instant;

use journal::Timestamps;
use proxy_core::{FileChanges, TlsRefresh};
use telemetry::{Level, NoticeRecord};

use super::RunController;
use super::files::FileWatchEvent;
use crate::service;

/// The topic of notices about certificates, keys and authorities.
pub(crate) const CERTIFICATE: &str = "certificate";

impl RunController {
    /// Polls the check of the files, and applies and reports changes. Starts a reload if SIGHUP asked for one.
    pub(super) fn check_certificates(&mut self) {
        let Some(files) = &mut self.files else { return };
        if self.reload.take() {
            service::reloading();
            files.reload();
        }
        match files.poll(Instant::now()) {
            None => {}
            Some(FileWatchEvent::Ended { looked, was_asked }) => self.apply_file_changes(looked, was_asked),
            // Generated ticket keys need no file, and are still rotated.
            Some(FileWatchEvent::StillStuck) => self.apply_file_changes(FileChanges::default(), false),
            Some(FileWatchEvent::Stuck(waited)) => {
                let text = format!(
                    "looking at the files of certificates and keys has not ended for {} s; what was read from them \
                     before stays in use",
                    waited.as_secs()
                );
                self.report(NoticeRecord::new(Level::Warning, CERTIFICATE, &text));
            }
        }
    }

    /// Applies what a check found, and rotates generated ticket keys that are due.
    fn apply_file_changes(&mut self, files: FileChanges, was_asked: bool) {
        let Some(proxy) = &self.workload.proxy else { return };
        let TlsRefresh { changes, warnings, refusals, .. } = proxy.take(files);
        if was_asked {
            service::ready();
        }
        if was_asked && changes.is_empty() && refusals.is_empty() {
            let text = "reload: certificates and keys were read again and are the same";
            self.report(NoticeRecord::new(Level::Notice, CERTIFICATE, text));
        }
        let refusals = refusals.iter().map(ToString::to_string);
        let warnings = warnings.iter().map(|warning| format!("warning: {warning}"));
        for text in refusals.chain(warnings) {
            self.report(NoticeRecord::new(Level::Warning, CERTIFICATE, &text));
        }
        for change in changes {
            let after = change.after.as_ref().map_or_else(String::new, |after| after.value.to_string());
            let text = format!("{}: {after}; before: {}", change.name, change.before);
            self.console.echo(Level::Notice, &text);
            self.publisher.setting(change, Timestamps::now());
        }
    }
}
