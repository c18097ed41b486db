//! The usage pane: the values of one dimension since the start of the run.
//!
//! ```text
//! ─ usage by version 1-2/2, since the start ─ handshakes▼  share  full  resumed  failed  bytes MB  CPU share  only choice
//! ▶TLSv1.3                                          4,990  99.8%    98    98.0%       –     4,100      97.9%            0
//!  TLSv1.2                                             10   0.2%     2    80.0%       –      1.20       2.1%           10
//!
//!  group                handshakes  share  CPU share    cipher suite         handshakes  share  CPU share
//!  x25519                    4,000  80.0%      70.1%    TLS_AES_128_GCM_…         5,000 100.0%     100.0%
//! ```
//!
//! Below the chosen dimension are as many others as fit.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use records::metrics::Dimension;

use super::detail_view::details;
use super::grid as usage_grid;
use super::model::{UsageRow, name_of};
use super::state::arrange;
use crate::input::intent::{Intent, List};
use crate::input::keymap::hints::hint_if;
use crate::input::requirement::KeyRequirement as Needs;
use crate::panes::{Pane, PaneId, PaneRows};
use crate::state::State;
use crate::theme::format;
use crate::widgets::parts::put;
use crate::widgets::table::{self, Columns, extent, filter_title};

/// The fewest rows, with the heading.
const HEIGHT_MIN: u16 = 3;
/// The rows that it gets before less important panes.
const HEIGHT_ENOUGH: u16 = 6;

pub(crate) const PANE: Pane = Pane {
    rows: |state| {
        let values = state.shown_usage().map_or(0, |usage| usage.of(state.usage.dimension).count());
        let is_wanted = state.panes.focus == Some(PaneId::Usage);
        if !is_wanted && state.shown_usage().is_none_or(model::runs::Usage::is_empty) {
            return PaneRows::default();
        }
        PaneRows { grows: is_wanted, ..PaneRows::listed(values + 1, HEIGHT_MIN, HEIGHT_ENOUGH) }
    },
    ranks: [10, 10, 10],
    render,
    target: |state, area, at| table::target(List::Usage, &state.usage.rows.table, area, at),
    hints: &[
        hint_if(Needs::Clients, &[Intent::NextDimension], "next dimension"),
        hint_if(Needs::Clients, &[Intent::SortNext], "sort"),
        hint_if(Needs::Clients, &[Intent::Filter], "filter"),
        hint_if(Needs::Clients, &[Intent::Open], "details"),
    ],
    arrange,
    names: |state| {
        let values = state.shown_usage().into_iter().flat_map(|usage| usage.of(state.usage.dimension));
        values.map(|(value, _)| value.to_owned()).collect()
    },
    open: |state| state.open_details(List::Usage),
    details,
    ..Pane::PLAIN
};

fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let (theme, table) = (state.theme, &state.usage.rows.table);
    let mut lines = table::lines(state, table, area, titles, table::no_graph);
    if table.counts().1 == 0 {
        lines.push(Line::styled(
            format::cut(&none(state), usize::from(area.width), theme.glyphs),
            theme.quiet(),
        ));
    }
    if may_be_twice(table.page(), state.usage.dimension) {
        lines.push(Line::styled(format::cut(TWICE, usize::from(area.width), theme.glyphs), theme.quiet()));
    }
    put(frame, area, &lines);
    let used = u16::try_from(lines.len()).unwrap_or(u16::MAX).min(area.height);
    usage_grid::render(state, frame, Rect { y: area.y + used, height: area.height - used, ..area });
}

/// Said of fingerprints that were never full: rustls leaves out `session_ticket` when it offers to resume.
const TWICE: &str = " 100.0% resumed: probably the client of another row; it sends less when it resumes";

/// Returns whether some clients may have two fingerprints: one that is only resumed beside one that never is.
fn may_be_twice(rows: &[UsageRow], dimension: Dimension) -> bool {
    let has = |share| rows.iter().any(|row| row.resumed_share() == Some(share));
    dimension == Dimension::Fingerprint && has(1.0) && has(0.0)
}

/// Says why there are no values.
fn none(state: &State) -> String {
    match state.shown_usage() {
        None => " known of the present and of moments read from the journal, not of this one".to_owned(),
        Some(usage) if usage.is_empty() => " no handshake has a record of it yet".to_owned(),
        Some(_)
            if matches!(
                state.usage.dimension,
                Dimension::Name | Dimension::Fingerprint | Dimension::Issuer
            ) =>
        {
            " none, or left out by --log-names off".to_owned()
        }
        Some(_) => " none".to_owned(),
    }
}

/// Returns the titles, longest first: the dimension, the visible values, and their order if no column shows it.
fn titles(state: &State, columns: &Columns<UsageRow>, shown: usize) -> Vec<String> {
    let (table, dimension) = (&state.usage.rows.table, state.usage.dimension);
    let (by, word) = (name_of(dimension), dimension.word());
    if table.counts().1 == 0 {
        return vec![format!("usage by {by}"), format!("usage by {word}")];
    }
    let order = columns.hidden_order(state.theme, table);
    let sorted = order.map_or_else(String::new, |order| format!(", by {order}"));
    let extent = extent(table, shown);
    if !table.filter.is_empty() {
        let found = filter_title(table);
        return vec![format!("usage by {by} {extent}{sorted}"), format!("{word} {found}"), found];
    }
    vec![
        format!("usage by {by} {extent}{sorted}, since the start"),
        format!("usage by {word} {extent}{sorted}, since the start"),
        format!("usage by {word} {extent}{sorted}"),
        format!("usage by {word}"),
        word.to_owned(),
    ]
}
