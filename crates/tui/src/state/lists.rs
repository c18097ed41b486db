//! The lists: which of them keys act on, and the table of each.

use super::State;
use super::screen::Screen;
use crate::input::intent::List;
use crate::panes::PaneId;
use crate::table::Table;

impl List {
    /// The lists whose columns and order are kept.
    pub(crate) const KEPT: [Self; 9] = [
        Self::Clients,
        Self::Routes,
        Self::Requests,
        Self::Usage,
        Self::Hosts,
        Self::Services,
        Self::Upstreams,
        Self::Certificates,
        Self::Workers,
    ];

    /// The pane that shows it, or else the one that keys act on.
    pub(super) fn pane(self) -> PaneId {
        match self {
            Self::Routes => PaneId::Routes,
            Self::Usage => PaneId::Usage,
            Self::Hosts => PaneId::Hosts,
            Self::Services => PaneId::Services,
            Self::Upstreams => PaneId::Upstreams,
            Self::Certificates => PaneId::Certificates,
            Self::Workers => PaneId::System,
            Self::Clients | Self::Requests | Self::Runs => PaneId::Clients,
        }
    }

    /// Its name on the screen and in the kept arrangement.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Clients => "clients",
            Self::Routes => "routes",
            Self::Requests => "requests",
            Self::Usage => "usage",
            Self::Hosts => "hosts",
            Self::Services => "services",
            Self::Upstreams => "upstreams",
            Self::Certificates => "certificates",
            Self::Workers => "workers",
            Self::Runs => "runs",
        }
    }
}

impl State {
    pub(crate) fn table(&self, list: List) -> &dyn Table {
        match list {
            List::Clients => &self.clients,
            List::Routes => &self.routes,
            List::Requests => &self.requests.table,
            List::Usage => &self.usage.table,
            List::Hosts => &self.hosts.table,
            List::Services => &self.services.table,
            List::Upstreams => &self.upstreams.table,
            List::Certificates => &self.certificates.table,
            List::Workers => &self.workers.table,
            List::Runs => &self.runs.table,
        }
    }

    pub(crate) fn table_mut(&mut self, list: List) -> &mut dyn Table {
        match list {
            List::Clients => &mut self.clients,
            List::Routes => &mut self.routes,
            List::Requests => &mut self.requests.table,
            List::Usage => &mut self.usage.table,
            List::Hosts => &mut self.hosts.table,
            List::Services => &mut self.services.table,
            List::Upstreams => &mut self.upstreams.table,
            List::Certificates => &mut self.certificates.table,
            List::Workers => &mut self.workers.table,
            List::Runs => &mut self.runs.table,
        }
    }

    /// Returns the list that keys act on: the one that is open, else that of the focused pane, else the services where all
    /// of them are shown, else the clients, or the routes where the clients are not shown.
    pub(crate) fn list(&self) -> List {
        match self.screen {
            Screen::Requests { .. } => List::Requests,
            Screen::Runs => List::Runs,
            Screen::Route(_) => List::Routes,
            Screen::Client(_) => List::Clients,
            Screen::Usage(_) => List::Usage,
            Screen::Certificate(_) => List::Certificates,
            _ if self.panes.focus == Some(PaneId::Hosts)
                && self.has_hosts()
                && self.panes.shows(PaneId::Hosts) =>
            {
                List::Hosts
            }
            _ if self.has_services()
                && self.panes.shows(PaneId::Services)
                && (self.panes.focus == Some(PaneId::Services)
                    || (self.panes.focus.is_none() && !self.is_service_open())) =>
            {
                List::Services
            }
            _ if self.has_upstreams() && self.panes.in_focus() == Some(PaneId::Upstreams) => List::Upstreams,
            _ if self.has_certificates() && self.panes.in_focus() == Some(PaneId::Certificates) => {
                List::Certificates
            }
            _ if self.sight.workers > 0 && self.panes.in_focus() == Some(PaneId::System) => List::Workers,
            _ if self.panes.focus == Some(PaneId::Usage) && self.panes.shows(PaneId::Usage) => List::Usage,
            _ if !self.has_http() || !self.panes.shows(PaneId::Routes) => List::Clients,
            _ if self.panes.focus == Some(PaneId::Routes) || !self.panes.shows(PaneId::Clients) => {
                List::Routes
            }
            _ => List::Clients,
        }
    }
}
