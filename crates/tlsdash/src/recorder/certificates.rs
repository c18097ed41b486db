//! The files of certificates, keys and authorities while a run lasts.

use std::time::Instant;

use journal::Timestamps;
use proxy_core::{FileChanges, TlsRefresh};
use telemetry::{Level, NoticeRecord};

use super::Recorder;
use super::files::Watching;
use crate::service;

/// The topic of notices about certificates, keys and authorities.
pub(crate) const CERTIFICATE: &str = "certificate";

impl Recorder {
    /// Follows the files of certificates and keys, and tells what came of it.
    pub(super) fn look_at_certificates(&mut self) {
        let Some(files) = &mut self.files else { return };
        if self.reload.take() {
            service::reloading();
            files.reload();
        }
        match files.poll(Instant::now()) {
            None => {}
            Some(Watching::Ended { looked, was_asked }) => self.take_certificates(looked, was_asked),
            // A new key for tickets needs no file.
            Some(Watching::StillStuck) => self.take_certificates(FileChanges::default(), false),
            Some(Watching::Stuck(waited)) => {
                let text = format!(
                    "looking at the files of certificates and keys has not ended for {} s; what was read from them \
                     before stays in use",
                    waited.as_secs()
                );
                self.tell(NoticeRecord::new(Level::Warning, CERTIFICATE, &text));
            }
        }
    }

    fn take_certificates(&mut self, looked: FileChanges, was_asked: bool) {
        let Some(proxy) = &self.measured.proxy else { return };
        let TlsRefresh { changes, warnings, refusals, .. } = proxy.take(looked);
        if was_asked {
            service::ready();
        }
        if was_asked && changes.is_empty() && refusals.is_empty() {
            let text = "SIGHUP: certificates and keys were read again and are the same";
            self.tell(NoticeRecord::new(Level::Notice, CERTIFICATE, text));
        }
        let refusals = refusals.iter().map(ToString::to_string);
        let warnings = warnings.iter().map(|warning| format!("warning: {warning}"));
        for text in refusals.chain(warnings) {
            self.tell(NoticeRecord::new(Level::Warning, CERTIFICATE, &text));
        }
        for change in changes {
            let after = change.after.as_ref().map_or_else(String::new, |after| after.value.to_string());
            let text = format!("{}: {after}; before: {}", change.name, change.before);
            self.voice.echo(Level::Notice, &text);
            self.publisher.setting(change, Timestamps::now());
        }
    }
}
