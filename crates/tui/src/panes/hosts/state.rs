//! The list of watched hosts, and the notices about them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use model::runs::Level;
use records::ids::RunId;

use super::model::{HostRow, HostState, HostTable};
use crate::clock::ClockReading;
use crate::input::intent::{PaneAction, Preset};
use crate::panes::PaneId;
use crate::state::State;
use crate::table::{ListMove, Row as _, Rows, TableState};

/// How often a long list is rebuilt.
const REFRESH: Duration = Duration::from_secs(1);
/// The most hosts whose list is rebuilt with all other figures.
const FEW: usize = 16;
const NAMED_MAX: usize = 3;

#[derive(Clone, Debug)]
pub(crate) struct HostList {
    pub(crate) table: TableState<HostRow>,
    rows: Rows<HostRow>,
    /// The sum of the live hosts.
    pub(crate) sum: Option<HostRow>,
    pub(crate) live: usize,
    pub(crate) has_several: bool,
    refreshed: Option<Instant>,
    /// The last condition that was reported of each host.
    said: BTreeMap<RunId, HostCondition>,
}

impl Default for HostList {
    fn default() -> Self {
        Self {
            table: TableState::by(0),
            rows: Rows::default(),
            sum: None,
            live: 0,
            has_several: false,
            refreshed: None,
            said: BTreeMap::new(),
        }
    }
}

impl HostList {
    /// Returns whether the list costs little.
    pub(crate) fn are_few(&self) -> bool {
        self.rows.all().len() <= FEW
    }
}

/// What is worth a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum HostCondition {
    Usual,
    Silent,
    ClockAhead,
    Late,
}

impl HostCondition {
    fn of(state: HostState) -> Self {
        match state {
            HostState::Live | HostState::Ended => Self::Usual,
            HostState::Silent(_) => Self::Silent,
            HostState::ClockAhead(_) => Self::ClockAhead,
            HostState::Late(_) => Self::Late,
        }
    }

    fn words(self, hosts: &str) -> String {
        match self {
            Self::Usual => format!("{hosts}: records arrive as usual again"),
            Self::Silent => format!("{hosts}: no record arrives any more; not in the sum of hosts"),
            Self::ClockAhead => format!("{hosts}: the clock is ahead of this host's"),
            Self::Late => format!("{hosts}: records arrive late, or the clock is behind this host's"),
        }
    }
}

impl State {
    pub(crate) fn refresh_hosts(&mut self, now: ClockReading) {
        if !self.options.watches {
            return;
        }
        self.hosts.refreshed = Some(now.instant);
        let table = HostTable::of(&self.model.runs().collect::<Vec<_>>(), now);
        self.report_conditions(&table, now);
        let (live, has_several) = (table.live(), table.has_several());
        let HostTable { rows: listed, sum } = table;
        let hosts = &mut self.hosts;
        hosts.rows.change(|rows| *rows = listed);
        (hosts.sum, hosts.live, hosts.has_several) = (sum, live, has_several);
    }

    /// Returns whether the list of hosts is too old to be shown.
    pub(crate) fn are_hosts_due(&self, now: ClockReading) -> bool {
        let is_old = |then: Instant| now.instant.saturating_duration_since(then) >= REFRESH;
        self.options.watches && self.hosts.refreshed.is_none_or(is_old)
    }

    /// Reports hosts that fall silent or come back, and clocks that differ.
    fn report_conditions(&mut self, table: &HostTable, now: ClockReading) {
        if !self.caught_up || !table.has_several() {
            return;
        }
        let mut news: BTreeMap<HostCondition, Vec<&str>> = BTreeMap::new();
        let mut said = BTreeMap::new();
        for row in &table.rows {
            let Some(condition) = row.state.map(HostCondition::of) else { continue };
            let before = self.hosts.said.get(&row.id).copied().unwrap_or(HostCondition::Usual);
            if before != condition && row.state != Some(HostState::Ended) {
                let named = news.entry(condition).or_default();
                if !named.contains(&&*row.host) {
                    named.push(&row.host);
                }
            }
            said.insert(row.id, condition);
        }
        let notices: Vec<(Level, String)> = news
            .into_iter()
            .map(|(condition, hosts)| {
                let level = if condition == HostCondition::Usual { Level::Notice } else { Level::Warning };
                (level, condition.words(&named(&hosts)))
            })
            .collect();
        self.hosts.said = said;
        for (level, text) in notices {
            self.notice(level, text, now);
        }
    }

    /// Updates the hosts in sight.
    pub(crate) fn arrange_hosts(&mut self) {
        let sight = self.sight.hosts;
        let shown = self.shown;
        let HostList { table, rows, .. } = &mut self.hosts;
        table.arrange(rows, sight);
        if table.selected.is_none() && table.filter.is_empty() {
            table.selected = shown.filter(|&id| rows.place(id).is_some());
        }
    }

    /// Selects another host.
    pub(crate) fn scroll_hosts(&mut self, to: ListMove) {
        let sight = self.sight.hosts;
        let HostList { table, rows, .. } = &mut self.hosts;
        table.go(to, rows, sight);
    }

    /// Shows the selected host, or the first in sight, in all panes.
    pub(crate) fn open_host(&mut self) {
        let first = || self.hosts.table.page().first().map(HostRow::id);
        let Some(id) = self.hosts.table.selected.or_else(first) else { return };
        self.hosts.table.selected = Some(id);
        self.show_run(id);
        if self.panes.maximised == Some(PaneId::Hosts)
            || self.panes.hidden == Preset::Only(PaneId::Hosts).hidden()
        {
            self.arrange_panes(PaneAction::Preset(Preset::Overview));
        }
    }

    pub(crate) fn host_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.hosts.rows.all().iter().map(|row| row.host.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Names the first of some hosts, and counts the rest.
fn named(hosts: &[&str]) -> String {
    let (first, rest) = hosts.split_at(hosts.len().min(NAMED_MAX));
    let first = first.join(", ");
    if rest.is_empty() { first } else { format!("{first} and {} more hosts", rest.len()) }
}
