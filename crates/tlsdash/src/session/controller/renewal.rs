//! Reports how the renewal by ACME stands.

use acme::{RenewalOutcome, RenewalReport};
use records::kinds::{Level, NoticeRecord};

use super::RunController;
use crate::session::acme::OrderedCertificate;

/// The topic of its notices.
const ACME: &str = "acme";

impl RunController {
    /// Reports a change, if there is one.
    pub(super) fn check_renewal(&mut self) {
        let report = self.workload.acme.as_mut().and_then(OrderedCertificate::poll);
        let Some(RenewalReport { outcome, next, failure, .. }) = report.cloned() else { return };
        let next = humantime::format_rfc3339_seconds(next);
        let (level, text) = match outcome {
            RenewalOutcome::Waiting => (Level::Notice, format!("ACME: the next order is after {next}")),
            RenewalOutcome::Locked => {
                (Level::Notice, "ACME: another process orders the certificate".to_owned())
            }
            RenewalOutcome::Renewed { remark: None } => {
                (Level::Notice, format!("ACME: got a certificate, which is renewed after {next}"))
            }
            RenewalOutcome::Renewed { remark: Some(remark) } => (
                Level::Warning,
                format!("ACME: got a certificate, which is renewed after {next}; but {remark}"),
            ),
            RenewalOutcome::Failed { failures } => (
                Level::Warning,
                format!(
                    "ACME: cannot get a certificate (attempt {failures}): {}; tried again after {next}",
                    failure.unwrap_or_default()
                ),
            ),
        };
        self.report(NoticeRecord::new(level, ACME, &text));
    }
}
