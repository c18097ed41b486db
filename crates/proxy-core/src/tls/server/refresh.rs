//! What a check of the files of TLS has found.

use records::kinds::SettingRecord;
use records::setting::{Applies, Setting};

use crate::config::options::fixed_setting;
use crate::tls::certificates::error::{TlsFileError, TlsFileWarning};
use crate::tls::clock::unix_now;
use crate::tls::{Certificate, TlsConfigError};

/// The changes found by a check of the files.
#[derive(Debug, Default)]
pub struct TlsRefresh {
    pub changes: Vec<SettingRecord>,
    /// Warnings for the operator about the new ones.
    pub warnings: Vec<TlsFileWarning>,
    /// Unusable files; the former content stays in use.
    pub refusals: Vec<RefreshError>,
    /// A file that could not be read because of a shortage of descriptors or memory, unless a person asked for the
    /// check. Reading is retried, and one notice covers the whole shortage.
    pub(crate) shortage: Option<TlsFileError>,
}

/// Why something stays as it was.
#[derive(Debug, thiserror::Error)]
pub enum RefreshError {
    #[error("{0}; what was read from there before stays in use")]
    File(#[from] TlsFileError),
    #[error("{0}; connections go on as before")]
    Config(#[from] TlsConfigError),
}

impl TlsRefresh {
    /// Returns usable content; otherwise notes why it is unusable.
    pub(in crate::tls) fn usable<T>(&mut self, read: Result<T, TlsFileError>, at_once: bool) -> Option<T> {
        match read {
            Ok(new) => return Some(new),
            Err(error) if !at_once && error.is_shortage() => self.shortage = Some(error),
            Err(error) => self.refusals.push(error.into()),
        }
        None
    }

    /// Staples OCSP responses no more that have ended, and warns of each; true if there are any.
    pub(in crate::tls) fn drop_ended_responses(&mut self, certificates: &mut [Certificate]) -> bool {
        let now = unix_now();
        let ended = certificates.iter_mut().filter_map(|one| one.drop_ended_response(now));
        let before = self.warnings.len();
        self.warnings.extend(ended);
        self.warnings.len() > before
    }

    pub(in crate::tls) fn note(&mut self, before: &Setting, after: Setting) {
        if before.value != after.value {
            let before = before.value.to_string();
            self.changes.push(SettingRecord {
                name: after.name.clone(),
                before,
                after: Some(after),
                ..SettingRecord::default()
            });
        }
    }

    pub(in crate::tls) fn note_some(&mut self, before: Option<Setting>, after: Option<Setting>) {
        if let (Some(before), Some(after)) = (before, after) {
            self.note(&before, after);
        }
    }
}

/// A setting that only changes with its files.
pub(in crate::tls) fn fixed(name: &str, value: String) -> Setting {
    Setting { applies: Applies::NewConnections, ..fixed_setting(name, value) }
}
