//! The certificates of a moment, and what is known of those of clients.

use model::runs::Run;

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
    /// Takes the certificates of a run.
    pub(crate) fn refresh(&mut self, run: &Run) {
        let moment = RowMoment { run: run.id(), us: run.last_us(), is_past: false, span: Span::WholeRun };
        if self.rows.renew(moment, || CertificateRow::all(run)) {
            self.refusals = ClientRefusals::of(run);
        }
        self.rows.arrange();
    }

    /// Returns whether they deserve a table: there are several, one needs care, or clients' are refused.
    pub(crate) fn are_notable(&self) -> bool {
        let rows = self.rows.all();
        rows.len() > 1 || self.refusals.total > 0 || rows.iter().any(CertificateRow::needs_care)
    }
}
