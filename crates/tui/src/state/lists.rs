//! The lists: which of them keys act on, and the table of each.

use model::runs::Run;

use super::State;
use super::screen::Screen;
use crate::input::intent::List;
use crate::panes::PaneId;
use crate::table::{ListMove, Table};

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

    /// Shows the details of the selected row of a list, or of the first in sight; closes them if they are open.
    pub(crate) fn open_details(&mut self, list: List) {
        let Some(was_open) = self.table_mut(list).open() else { return };
        let is_open = was_open && self.screen == Screen::Details(list);
        self.screen = if is_open { Screen::Dashboard } else { Screen::Details(list) };
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
