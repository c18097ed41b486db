//! The certificates of a moment, and what is known of those of clients.

use model::runs::{Certificates, Run};

use super::model::{CertificateRow, ClientRefusals};
use crate::table::{Row as _, RowList, RowMoment};
use crate::view_model::span::Span;

#[derive(Clone, Debug)]
pub(crate) struct CertificateList {
    pub(crate) rows: RowList<CertificateRow>,
    pub(crate) refusals: ClientRefusals,
}

impl Default for CertificateList {
    /// The one that ends first is the first.
    fn default() -> Self {
        let rows = RowList::ascending_by(CertificateRow::column("days"));
        Self { rows, refusals: ClientRefusals::default() }
    }
}

impl CertificateList {
    /// Takes the certificates of all watched hosts, or else of the shown run, once a second of their clocks.
    pub(crate) fn refresh(&mut self, shown: &Run, hosts: &[&Run]) {
        let all = if hosts.is_empty() { &[shown] } else { hosts };
        let now = all.iter().map(|run| run.last_realtime_us()).max().unwrap_or(0) / 1_000_000;
        let moment = RowMoment { run: shown.id(), us: now, is_past: false, span: Span::WholeRun };
        let certificates = || match hosts {
            [] => CertificateRow::all(shown.certificates(), now),
            hosts => {
                let named = hosts.iter().map(|run| (run.hostname(), run.certificates()));
                CertificateRow::all(&Certificates::merged(named), now)
            }
        };
        if self.rows.renew(moment, certificates) {
            self.refusals = ClientRefusals::of(shown);
        }
        self.rows.arrange();
    }

    /// Returns whether they deserve a table: there are several, one needs care, or clients' are refused.
    pub(crate) fn are_notable(&self) -> bool {
        let rows = self.rows.all();
        rows.len() > 1 || self.refusals.total > 0 || rows.iter().any(CertificateRow::needs_care)
    }
}
