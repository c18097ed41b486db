//! What is shown: the panes, and what is beside or over them.

use crate::input::intent::{Choice, List};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Screen {
    #[default]
    Dashboard,
    Help {
        /// The lines scrolled away.
        offset: usize,
    },
    Tuning,
    Experiments,
    Runs,
    /// A list of columns or panes over the panes, with the selected line.
    Choice(Choice, usize),
    /// Findings over the panes, with the place of the one whose figures are shown.
    Findings(usize),
    /// The details of the opened row of a list over the panes.
    Details(List),
    /// Single requests over the panes: the slowest first.
    Requests {
        failed_only: bool,
    },
}

/// What the help shows, and where it leads back to.
#[derive(Clone, Debug, Default)]
pub(crate) struct HelpState {
    /// The text that its lines must contain; empty for all.
    pub(crate) search: String,
    /// The screen that it was opened on.
    pub(crate) over: Screen,
}
