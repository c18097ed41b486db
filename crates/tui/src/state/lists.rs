//! The lists: which of them keys act on, and the table of each.

use model::runs::Run;

use super::State;
use super::screen::Screen;
use crate::input::intent::List;
use crate::panes::PaneId;
use crate::table::{ListMove, Table};

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
    pub(super) fn kept() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|list| *list != Self::Runs)
    }

    /// The pane that shows it, or else the one that keys act on.
    pub(crate) fn pane(self) -> PaneId {
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
            Self::Requests => "requests",
            Self::Workers => "workers",
            Self::Runs => "runs",
            list => list.pane().name(),
        }
    }
}

impl State {
    pub(crate) fn table(&self, list: List) -> &dyn Table {
        match list {
            List::Clients => &self.clients,
            List::Routes => &self.routes,
            List::Requests => &self.requests.table,
            List::Usage => &self.usage.rows.table,
            List::Hosts => &self.hosts.rows.table,
            List::Services => &self.services.table,
            List::Upstreams => &self.upstreams.table,
            List::Certificates => &self.certificates.rows.table,
            List::Workers => &self.workers.table,
            List::Runs => &self.runs.table,
        }
    }

    pub(crate) fn table_mut(&mut self, list: List) -> &mut dyn Table {
        match list {
            List::Clients => &mut self.clients,
            List::Routes => &mut self.routes,
            List::Requests => &mut self.requests.table,
            List::Usage => &mut self.usage.rows.table,
            List::Hosts => &mut self.hosts.rows.table,
            List::Services => &mut self.services.table,
            List::Upstreams => &mut self.upstreams.table,
            List::Certificates => &mut self.certificates.rows.table,
            List::Workers => &mut self.workers.table,
            List::Runs => &mut self.runs.table,
        }
    }

    /// Selects another row of a list, and opens it.
    pub(crate) fn go(&mut self, list: List, to: ListMove) {
        match list {
            List::Clients => {
                let (clients, rows) = self.clients_and_rows();
                clients.go(to, rows);
            }
            List::Routes => {
                let (routes, rows) = self.routes_and_rows();
                routes.go(to, rows);
            }
            List::Requests => self.requests.go(to),
            List::Usage => self.usage.rows.go(to),
            List::Hosts => self.hosts.rows.go(to),
            List::Services => self.services.go(to),
            List::Upstreams => self.upstreams.go(to),
            List::Certificates => self.certificates.rows.go(to),
            List::Workers => self.workers.go(to),
            List::Runs => self.runs.go(to),
        }
    }

    /// Returns whether the shown run is in HTTP mode.
    pub(crate) fn has_http(&self) -> bool {
        self.figures().is_some_and(|figures| figures.http.is_some())
    }

    /// Returns whether several hosts are watched.
    pub(crate) fn has_hosts(&self) -> bool {
        self.hosts.has_several
    }

    /// Returns whether the shown run tells several services apart.
    pub(crate) fn has_services(&self) -> bool {
        self.services.all().len() > 1
    }

    /// Returns whether one service is open in all panes.
    pub(crate) fn is_service_open(&self) -> bool {
        self.run().is_some_and(Run::is_service)
    }

    /// Returns whether upstreams deserve a table: there are several, or one is not up.
    pub(crate) fn has_upstreams(&self) -> bool {
        let rows = self.upstreams.all();
        rows.len() > 1 || rows.iter().any(|row| !row.is_up())
    }

    pub(crate) fn has_certificates(&self) -> bool {
        !self.certificates.rows.all().is_empty()
    }

    /// Returns the list that keys act on: the one that is open, else that of the focused pane, else the services where all
    /// of them are shown, else the clients, or the routes where the clients are not shown.
    pub(crate) fn list(&self) -> List {
        match self.screen {
            Screen::Requests { .. } => List::Requests,
            Screen::Runs => List::Runs,
            Screen::Details(list) => list,
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
            _ if self.workers.table.sight > 0 && self.panes.in_focus() == Some(PaneId::System) => {
                List::Workers
            }
            _ if self.panes.focus == Some(PaneId::Usage) && self.panes.shows(PaneId::Usage) => List::Usage,
            _ if !self.has_http() || !self.panes.shows(PaneId::Routes) => List::Clients,
            _ if self.panes.focus == Some(PaneId::Routes) || !self.panes.shows(PaneId::Clients) => {
                List::Routes
            }
            _ => List::Clients,
        }
    }
}
