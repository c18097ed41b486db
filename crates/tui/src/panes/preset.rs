//! Selections of panes, and what they need.

use super::model::PaneId;
use crate::input::intent::Preset;
use crate::input::requirement::KeyRequirement;

impl Preset {
    /// The panes that it shows; `None` for all.
    fn shown(self) -> Option<Vec<PaneId>> {
        match self {
            Self::Overview => None,
            Self::Latency | Self::Tuning => {
                Some(vec![PaneId::Latency, PaneId::Timeline, PaneId::Findings, PaneId::Log])
            }
            Self::Only(id) => Some(vec![id, PaneId::Findings, PaneId::Log]),
        }
    }

    /// What a run must have for it.
    pub(crate) const fn needs(self) -> KeyRequirement {
        match self {
            Self::Only(id) => id.needs(),
            Self::Overview | Self::Latency | Self::Tuning => KeyRequirement::Nothing,
        }
    }

    pub(crate) fn hidden(self) -> Vec<PaneId> {
        let shown = self.shown().unwrap_or_else(|| PaneId::ALL.to_vec());
        PaneId::ALL.into_iter().filter(|id| !shown.contains(id)).collect()
    }

    /// The pane that it focuses. Keys act on clients or routes anyway.
    pub(crate) fn focus(self) -> Option<PaneId> {
        match self {
            Self::Only(id) if !matches!(id, PaneId::Clients | PaneId::Routes) => Some(id),
            Self::Overview | Self::Latency | Self::Tuning | Self::Only(_) => None,
        }
    }
}
