//! The list of watched hosts, and the notices about them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use model::runs::Level;
use records::ids::RunId;

use super::model::{HostRow, HostState, HostTable};
use crate::clock::ClockReading;
use crate::table::RowList;

/// How often a long list is rebuilt.
const REFRESH: Duration = Duration::from_secs(1);
/// The most hosts whose list is rebuilt with all other figures.
const FEW: usize = 16;
const NAMED_MAX: usize = 3;

#[derive(Clone, Debug, Default)]
pub(crate) struct HostList {
    pub(crate) rows: RowList<HostRow>,
    /// The sum of the live hosts.
    pub(crate) sum: Option<HostRow>,
    pub(crate) live: usize,
    pub(crate) has_several: bool,
    refreshed: Option<Instant>,
    /// The last condition that was reported of each host.
    said: BTreeMap<RunId, HostCondition>,
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

impl HostList {
    /// Returns whether the list costs little.
    pub(crate) fn are_few(&self) -> bool {
        self.rows.all().len() <= FEW
    }

    /// Returns whether the list is too old to be shown.
    pub(crate) fn is_due(&self, now: ClockReading) -> bool {
        let is_old = |then: Instant| now.instant.saturating_duration_since(then) >= REFRESH;
        self.refreshed.is_none_or(is_old)
    }

    pub(crate) fn refresh(&mut self, table: HostTable, now: ClockReading) {
        self.refreshed = Some(now.instant);
        (self.live, self.has_several) = (table.live(), table.has_several());
        self.sum = table.sum;
        self.rows.set(table.rows);
    }

    /// Returns the notices about hosts that fall silent or come back, and clocks that differ.
    pub(crate) fn notices(&mut self, table: &HostTable) -> Vec<(Level, String)> {
        if !table.has_several() {
            return Vec::new();
        }
        let mut news: BTreeMap<HostCondition, Vec<&str>> = BTreeMap::new();
        let mut said = BTreeMap::new();
        for row in &table.rows {
            let Some(condition) = row.state.map(HostCondition::of) else { continue };
            let before = self.said.get(&row.id).copied().unwrap_or(HostCondition::Usual);
            if before != condition && row.state != Some(HostState::Ended) {
                let named = news.entry(condition).or_default();
                if !named.contains(&&*row.host) {
                    named.push(&row.host);
                }
            }
            said.insert(row.id, condition);
        }
        self.said = said;
        let notice = |(condition, hosts): (HostCondition, Vec<&str>)| {
            let level = if condition == HostCondition::Usual { Level::Notice } else { Level::Warning };
            (level, condition.words(&named(&hosts)))
        };
        news.into_iter().map(notice).collect()
    }

    /// Sorts the hosts in sight. The one that is shown is selected unless another is.
    pub(crate) fn arrange(&mut self, shown: Option<RunId>) {
        self.rows.arrange();
        if self.rows.table.filter.is_empty() {
            self.rows.preselect(shown);
        }
    }
}

/// Names the first of some hosts, and counts the rest.
fn named(hosts: &[&str]) -> String {
    let (first, rest) = hosts.split_at(hosts.len().min(NAMED_MAX));
    let first = first.join(", ");
    if rest.is_empty() { first } else { format!("{first} and {} more hosts", rest.len()) }
}
