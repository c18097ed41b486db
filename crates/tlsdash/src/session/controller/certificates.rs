//! Applies changed files of certificates, keys, authorities and address lists during a run.

use std::time::Instant;

use journal::Timestamps;
use proxy_core::{AccessFileError, AccessLists, FileChanges, TlsRefresh};
use records::kinds::{Level, NoticeRecord};

use super::RunController;
use super::files::FileWatchEvent;
use crate::session::controller::reload::proxy_files::{CheckedFiles, FileReloadOutcome};

/// The topic of notices about certificates, keys and authorities.
pub(crate) const CERTIFICATE: &str = "certificate";
/// The topic of notices about address lists.
const ACCESS: &str = "access";

impl RunController {
    /// Polls the check of the files, and applies and reports changes.
    pub(super) fn check_certificates(&mut self) {
        let Some(files) = &mut self.files else { return };
        match files.tls.poll(Instant::now()) {
            None => {}
            Some(FileWatchEvent::Ended { checked: CheckedFiles { mut tls, access }, was_asked }) => {
                let skipped = std::mem::take(&mut tls.skipped);
                let outcome = self.apply_file_changes(tls);
                let access = access.map(|read| self.apply_access(read));
                if let Some(files) = self.files.as_mut().filter(|_| was_asked) {
                    files.note_tls(outcome, &skipped, access);
                }
            }
            // Generated ticket keys are still rotated, and OCSP responses that end are dropped: neither needs a file.
            Some(FileWatchEvent::StillStuck) => {
                self.apply_file_changes(FileChanges::default());
            }
            Some(FileWatchEvent::Stuck(waited)) => {
                let reason = files.tls_hang(waited);
                files.end_tls(Err(reason.clone()));
                let text = format!("{reason}; what was read from it before stays in use");
                self.report(NoticeRecord::new(Level::Warning, CERTIFICATE, &text));
            }
        }
    }

    /// Applies the results of a check, rotates generated ticket keys that are due, and drops OCSP responses that have ended.
    fn apply_file_changes(&mut self, files: FileChanges) -> FileReloadOutcome {
        let Some(proxy) = &self.workload.proxy else { return FileReloadOutcome::Same };
        let TlsRefresh { changes, warnings, refusals, .. } = proxy.take(files);
        let refusals: Vec<String> = refusals.iter().map(ToString::to_string).collect();
        let taken = match (&refusals[..], changes.is_empty()) {
            ([], true) => FileReloadOutcome::Same,
            ([], false) => FileReloadOutcome::Changed,
            (refusals, _) => FileReloadOutcome::Refused(refusals.join("; ")),
        };
        let warnings = warnings.iter().map(|warning| format!("warning: {warning}"));
        for text in refusals.into_iter().chain(warnings) {
            self.report(NoticeRecord::new(Level::Warning, CERTIFICATE, &text));
        }
        for change in changes {
            let after = change.after.as_ref().map_or_else(String::new, |after| after.value.to_string());
            let text = format!("{}: {after}; before: {}", change.name, change.before);
            self.console.echo(Level::Notice, &text);
            self.publisher.setting(change, Timestamps::now());
        }
        taken
    }

    /// Applies address lists that were read for a reload, which fails if they cannot be used. Returns a sentence about
    /// them.
    fn apply_access(&mut self, read: Result<AccessLists, AccessFileError>) -> Result<String, String> {
        let outcome = match read {
            Ok(lists) => {
                let text = format!("address lists were read again: {lists}");
                if let Some(proxy) = &self.workload.proxy {
                    proxy.set_access(lists);
                }
                Ok(text)
            }
            Err(error) => Err(format!("{error}; the former lists stay in use")),
        };
        let (level, text) = match &outcome {
            Ok(text) => (Level::Notice, text),
            Err(reason) => (Level::Warning, reason),
        };
        self.report(NoticeRecord::new(level, ACCESS, text));
        outcome
    }

    /// Records the certificates that the observed terminator has presented after the start.
    pub(super) fn record_late_certificates(&mut self) {
        let late = self.workload.late_certificates.as_ref().and_then(|late| late.try_recv().ok());
        let Some(after) = late else { return };
        let settings = &mut self.setup.header.settings;
        if let Some(setting) = settings.iter_mut().find(|setting| setting.name == after.name) {
            let before = std::mem::replace(setting, after.clone());
            self.console.echo(Level::Notice, &format!("{}: {}", after.name, after.value));
            self.record_change(before, after, "");
        }
    }
}
