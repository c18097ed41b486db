//! The panes by name, and which of them are shown, with their heights and the focus.

use crate::input::requirement::KeyRequirement;

/// A pane of the dashboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PaneId {
    Latency,
    Timeline,
    Handshakes,
    System,
    Http,
    Routes,
    Clients,
    Usage,
    Hosts,
    Services,
    Upstreams,
    Certificates,
    Findings,
    Log,
}

impl PaneId {
    /// All panes, in the order of the screen.
    pub(crate) const ALL: [Self; 14] = [
        Self::Hosts,
        Self::Services,
        Self::Timeline,
        Self::Latency,
        Self::Http,
        Self::Handshakes,
        Self::System,
        Self::Upstreams,
        Self::Routes,
        Self::Clients,
        Self::Usage,
        Self::Certificates,
        Self::Findings,
        Self::Log,
    ];

    /// Its name, what it shows, and what a run must have for it to show something.
    const fn properties(self) -> (&'static str, &'static str, KeyRequirement) {
        use KeyRequirement as Needs;
        match self {
            Self::Hosts => ("hosts", "hosts that are watched, in a line each, and their sum", Needs::Hosts),
            Self::Services => {
                ("services", "servers that packets tell apart, in a line each", Needs::Services)
            }
            Self::Timeline => {
                ("over time", "one latency class over time, with marks and changes", Needs::Nothing)
            }
            Self::Latency => ("latency", "percentiles of each latency class in the window", Needs::Nothing),
            Self::Http => {
                ("http", "statuses, protocols, requests in flight, upstream connections", Needs::Http)
            }
            Self::Handshakes => (
                "handshakes",
                "full, resumed and failed handshakes, and what they negotiated",
                Needs::Nothing,
            ),
            Self::System => ("system", "load, proxy, journal, CPU and each worker in detail", Needs::Nothing),
            Self::Upstreams => (
                "upstreams",
                "upstreams of the proxy: state, connections, failures, latencies",
                Needs::Upstreams,
            ),
            Self::Routes => {
                ("routes", "routes of HTTP mode, with rates, statuses and latencies", Needs::Http)
            }
            Self::Clients => ("clients", "source addresses, with rates and totals", Needs::Nothing),
            Self::Usage => (
                "usage",
                "who uses which version, group, cipher, name and so on, since the start",
                Needs::Nothing,
            ),
            Self::Certificates => (
                "certificates",
                "certificates that are served, and refusals of clients' certificates",
                Needs::Certificates,
            ),
            Self::Findings => ("findings", "what is about to break, and what to do about it", Needs::Nothing),
            Self::Log => ("log", "warnings, events, and the counts of an earlier moment", Needs::Nothing),
        }
    }

    /// The name on the screen and in the kept layout.
    pub(crate) fn name(self) -> &'static str {
        self.properties().0
    }

    /// What it shows, for the choice of panes.
    pub(crate) fn meaning(self) -> &'static str {
        self.properties().1
    }

    /// What a run must have for it to show something.
    pub(crate) const fn needs(self) -> KeyRequirement {
        self.properties().2
    }

    /// Returns whether it shows something in some runs only.
    fn is_occasional(self) -> bool {
        self.needs() != KeyRequirement::Nothing
    }
}

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
