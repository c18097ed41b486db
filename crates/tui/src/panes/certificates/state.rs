//! The list of certificates.

use records::ids::RunId;

use super::model::{CertificateRow, ClientRefusals};
use crate::panes::PaneId;
use crate::state::State;
use crate::state::screen::Screen;
use crate::table::{ListMove, NameId, Row as _, Rows, TableState};

#[derive(Clone, Debug)]
pub(crate) struct CertificateList {
    pub(crate) table: TableState<CertificateRow>,
    rows: Rows<CertificateRow>,
    /// The run and the moment of the rows.
    of: Option<(RunId, u64)>,
    pub(crate) refusals: ClientRefusals,
}

impl Default for CertificateList {
    fn default() -> Self {
        let mut table = TableState::by(CertificateRow::column("days"));
        // The one that ends first.
        table.order.is_descending = false;
        Self { table, rows: Rows::default(), of: None, refusals: ClientRefusals::default() }
    }
}

impl State {
    pub(crate) fn has_certificates(&self) -> bool {
        !self.certificates.rows.all().is_empty()
    }

    /// Returns whether certificates deserve a table: there are several, one needs care, clients' are refused, or somebody asks
    /// for them.
    pub(crate) fn lists_certificates(&self) -> bool {
        let rows = self.certificates.rows.all();
        let is_asked_for = self.has_certificates() && self.panes.in_focus() == Some(PaneId::Certificates);
        let needs_care = || rows.iter().any(CertificateRow::needs_care);
        rows.len() > 1 || self.certificates.refusals.total > 0 || is_asked_for || needs_care()
    }

    pub(crate) fn certificate(&self, id: NameId) -> Option<&CertificateRow> {
        self.certificates.rows.all().iter().find(|row| row.id == id)
    }

    /// Updates the certificates in sight.
    pub(crate) fn arrange_certificates(&mut self) {
        let Some(run) = self.snapshot_run() else { return };
        let of = Some((run.id(), run.last_us()));
        if of != self.certificates.of {
            let (listed, refusals) = (CertificateRow::all(run), ClientRefusals::of(run));
            self.certificates.rows.change(|rows| *rows = listed);
            self.certificates.refusals = refusals;
            self.certificates.of = of;
        }
        let sight = self.sight.certificates;
        let CertificateList { table, rows, .. } = &mut self.certificates;
        table.arrange(rows, sight);
    }

    /// Selects another certificate.
    pub(crate) fn scroll_certificates(&mut self, to: ListMove) {
        let sight = self.sight.certificates;
        let CertificateList { table, rows, .. } = &mut self.certificates;
        table.go(to, rows, sight);
        if let (Screen::Certificate(_), Some(id)) = (self.screen, self.certificates.table.selected) {
            self.screen = Screen::Certificate(id);
        }
    }

    /// Opens the selected certificate, or the first in sight.
    pub(crate) fn open_certificate(&mut self) {
        let first = || self.certificates.table.page().first().map(|row| row.id);
        if let Some(id) = self.certificates.table.selected.or_else(first) {
            self.certificates.table.selected = Some(id);
            let is_open = self.screen == Screen::Certificate(id);
            self.screen = if is_open { Screen::Dashboard } else { Screen::Certificate(id) };
        }
    }

    pub(crate) fn certificate_names(&self) -> Vec<String> {
        let names = self.certificates.rows.all().iter().flat_map(|row| row.record.names.split_whitespace());
        names.map(str::to_owned).collect()
    }
}
