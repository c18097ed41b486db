//! The lists that keys act on: their names, and the panes that show them.

use super::model::PaneId;
use crate::input::intent::List;

impl List {
    pub(crate) const ALL: [Self; 10] = [
        Self::Clients,
        Self::Routes,
        Self::Requests,
        Self::Usage,
        Self::Hosts,
        Self::Services,
        Self::Upstreams,
        Self::Certificates,
        Self::Workers,
        Self::Runs,
    ];

    /// The lists whose columns and order are kept.
    pub(crate) fn kept() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|list| *list != Self::Runs)
    }

    /// The pane that shows it; `None` for a screen of its own.
    pub(crate) fn pane(self) -> Option<PaneId> {
        match self {
            Self::Clients => Some(PaneId::Clients),
            Self::Routes => Some(PaneId::Routes),
            Self::Usage => Some(PaneId::Usage),
            Self::Hosts => Some(PaneId::Hosts),
            Self::Services => Some(PaneId::Services),
            Self::Upstreams => Some(PaneId::Upstreams),
            Self::Certificates => Some(PaneId::Certificates),
            Self::Workers => Some(PaneId::System),
            Self::Requests | Self::Runs => None,
        }
    }

    /// Its name on the screen and in the kept arrangement.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Runs => "runs",
            Self::Workers => "workers",
            list => list.pane().map_or("", PaneId::name),
        }
    }
}
