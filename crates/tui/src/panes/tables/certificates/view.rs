//! The table of certificates, and refusals of clients' certificates.
//!
//! ```text
//! ─ certificates 1-2/2 ──────── days left▲ key         issuer        handshakes  chain served for  stapled
//! ▶www.example.org example.org          5 ECDSA P-256 Example CA E1      1,204      2 12m 3s      yes
//!  legacy.example.org                   83 RSA-2048    Example CA R3          7      2 12m 3s
//!  client certificates refused 12: certificate revoked 10, certificate expired 2; issuers: Staff CA 12
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::detail_view::details;
use super::model::CertificateRow;
use crate::input::intent::{Intent, List, PaneAction, Preset};
use crate::input::keymap::hints::hint_if;
use crate::input::requirement::KeyRequirement as Needs;
use crate::panes::{Pane, PaneId, PaneRows};
use crate::state::State;
use crate::theme::format;
use crate::widgets::parts::put;
use crate::widgets::table::{self, Columns, extent, filter_title};

/// The fewest rows: heading and one certificate.
const HEIGHT_MIN: u16 = 2;
/// The rows that certificates get before less important panes.
const HEIGHT_ENOUGH: u16 = 4;

pub(crate) const PANE: Pane = Pane {
    rows: |state| {
        if !is_listed(state) {
            return PaneRows::default();
        }
        let rows = state.certificates.rows.table.counts().1 + usize::from(refusal_rows(state));
        PaneRows::listed(rows + 1, HEIGHT_MIN, HEIGHT_ENOUGH)
    },
    ranks: [5, 7, 9],
    render,
    target: |state, area, at| table::target(List::Certificates, &state.certificates.rows.table, area, at),
    hints: &[
        hint_if(Needs::Certificates, &[Intent::Open], "details"),
        hint_if(Needs::Certificates, &[Intent::SortNext], "sort"),
        hint_if(Needs::Certificates, &[Intent::Filter], "filter"),
        hint_if(
            Needs::Certificates,
            &[Intent::Pane(PaneAction::Preset(Preset::Only(PaneId::Certificates)))],
            "only certificates",
        ),
    ],
    arrange: |state| {
        let mut list = std::mem::take(&mut state.certificates);
        if let Some(run) = state.snapshot_run() {
            list.refresh(run, &state.watched_runs());
        }
        state.certificates = list;
    },
    sight: rows,
    names: |state| {
        let rows = state.certificates.rows.all().iter();
        rows.flat_map(|row| row.record.names.split_whitespace()).map(str::to_owned).collect()
    },
    open: |state| state.open_details(List::Certificates),
    details,
};

/// Returns whether certificates have a table: they are notable, or somebody asks for them.
fn is_listed(state: &State) -> bool {
    let is_asked_for = state.has_certificates() && state.panes.in_focus() == Some(PaneId::Certificates);
    state.certificates.are_notable() || is_asked_for
}

fn refusal_rows(state: &State) -> u16 {
    u16::from(state.certificates.refusals.total > 0)
}

/// Returns how many certificates fit: the refusals take the last row where there is one to spare.
fn rows(state: &State, area: Rect) -> usize {
    let spare = if area.height > HEIGHT_MIN { refusal_rows(state) } else { 0 };
    table::rows(area).saturating_sub(usize::from(spare))
}

fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let mut lines = table::lines(state, &state.certificates.rows.table, area, titles, table::no_graph);
    if refusal_rows(state) > 0 {
        lines.truncate(rows(state, area) + 1);
        let text = format!(" {}", refusals(state));
        let cut = format::cut(&text, usize::from(area.width), state.theme.glyphs);
        lines.push(Line::styled(cut, state.theme.warning()));
    }
    put(frame, area, &lines);
}

/// Says why certificates of clients were refused since the start, and who has issued them.
fn refusals(state: &State) -> String {
    let refusals = &state.certificates.refusals;
    let list = |counts: Vec<String>| counts.join(", ");
    let causes =
        list(refusals.causes.iter().map(|(cause, n)| format!("{cause} {}", format::count(*n))).collect());
    let issuers =
        list(refusals.issuers.iter().map(|(name, n)| format!("{name} {}", format::count(*n))).collect());
    let by = if issuers.is_empty() { String::new() } else { format!("; issuers: {issuers}") };
    format!("client certificates refused {}: {causes}{by}", format::count(refusals.total))
}

fn titles(state: &State, columns: &Columns<CertificateRow>, shown: usize) -> Vec<String> {
    let table = &state.certificates.rows.table;
    let extent = extent(table, shown);
    if !table.filter.is_empty() {
        return vec![format!("certificates {extent}"), filter_title(table)];
    }
    let order = columns.hidden_order(state.theme, table);
    let sorted = order.map_or_else(String::new, |by| format!(", by {by}"));
    vec![
        format!("certificates {extent}{sorted}"),
        format!("certificates {extent}"),
        "certificates".to_owned(),
    ]
}
