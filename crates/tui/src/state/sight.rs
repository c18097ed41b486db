//! What the screen had room for when it was laid out last.

use super::PaneId;

/// The rows and columns in sight. Keys page through lists and go through time by them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sight {
    /// The panes that have rows, in the order of the screen, with these.
    pub(crate) panes: Vec<(PaneId, u16)>,
    /// The columns of the timeline; of a hidden one, those that it would have, so that keys go through time in steps
    /// as long as if it was shown.
    pub(crate) timeline_columns: usize,
    pub(crate) clients: usize,
    pub(crate) routes: usize,
    pub(crate) usage: usize,
    pub(crate) hosts: usize,
    pub(crate) requests: usize,
    pub(crate) runs: usize,
}
