//! Which panes are shown, their heights, and the focus.

use super::id::PaneId;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PaneLayout {
    /// The pane that was focused by hand.
    pub(crate) focus: Option<PaneId>,
    pub(crate) maximised: Option<PaneId>,
    pub(crate) hidden: Vec<PaneId>,
    /// The rows that a person gave to panes.
    pub(crate) rows: Vec<(PaneId, u16)>,
}

impl PaneLayout {
    /// Returns whether a pane may be drawn.
    pub(crate) fn shows(&self, id: PaneId) -> bool {
        match self.maximised {
            Some(maximised) => maximised == id,
            None => !self.hidden.contains(&id),
        }
    }

    /// Returns the pane that was maximised or focused by hand, if it may be drawn.
    pub(crate) fn in_focus(&self) -> Option<PaneId> {
        self.maximised.or(self.focus).filter(|id| self.shows(*id))
    }

    /// Returns the rows that a person gave to a pane.
    pub(crate) fn rows_of(&self, id: PaneId) -> Option<u16> {
        self.rows.iter().find(|(pane, _)| *pane == id).map(|(_, rows)| *rows)
    }

    pub(crate) fn resize(&mut self, id: PaneId, rows: u16) {
        self.rows.retain(|(pane, _)| *pane != id);
        self.rows.push((id, rows.max(ROWS_MIN)));
    }

    /// Shown panes that have something to show in every mode.
    fn always_shown(&self) -> usize {
        PaneId::ALL.iter().filter(|id| !id.is_occasional() && !self.hidden.contains(id)).count()
    }

    /// Hides a pane, or shows it again. One pane always stays.
    pub(crate) fn toggle(&mut self, id: PaneId) {
        if self.hidden.contains(&id) {
            self.hidden.retain(|&pane| pane != id);
        } else if id.is_occasional() || self.always_shown() > 1 {
            self.hidden.push(id);
        }
    }
}

/// The fewest rows of a pane that is resized: a heading and a line.
const ROWS_MIN: u16 = 2;
