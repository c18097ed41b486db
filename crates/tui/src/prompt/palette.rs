//! Finding commands, settings and clients by a few of their letters.

use std::sync::Arc;

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use records::ids::{ClientId, RunId};

use crate::input::intent::List;
use crate::input::keymap::{BINDINGS, Binding, KeyRequirement};
use crate::panes::clients::model::ClientRow;
use crate::panes::routes::model::{RouteId, RouteRow};
use crate::state::State;
use crate::table::{Column, ColumnUnit, Row};

const FOUND_MAX: usize = 50;

#[derive(Clone, Debug)]
pub(crate) enum PaletteEntry {
    /// A command, by its line in the keymap.
    Command(&'static Binding),
    /// The order of the clients or the routes by a column.
    SortBy(List, usize),
    /// A setting, by its name.
    Setting(String),
    Client(ClientId),
    Route(RouteId, Arc<str>),
    /// A run, with the text of its host and id.
    Run(RunId, String),
}

/// Ordinary words for commands whose meaning has others, by the command's name in the configuration.
const SYNONYMS: &[(&str, &str)] = &[
    ("quit", "exit leave stop"),
    ("help", "keys shortcuts manual glossary"),
    ("freeze", "pause hold stop resume"),
    ("play", "pause replay"),
    ("go-to", "jump seek time"),
    ("worst", "spike peak slowest"),
    ("beginning", "start rewind"),
    ("end", "now live"),
    ("zoom-out", "zoom scale resolution"),
    ("zoom-in", "zoom scale resolution"),
    ("class", "metric series"),
    ("course", "histogram heatmap plot graph percentiles"),
    ("shorter-window", "interval range"),
    ("longer-window", "interval range"),
    ("filter", "search grep find"),
    ("sort", "order"),
    ("overview", "layout preset reset"),
    ("only-clients", "layout preset"),
    ("only-latency", "layout preset"),
    ("tuning", "layout preset"),
    ("reverse", "order sort"),
    ("open", "drill down details"),
    ("requests", "slowest requests failed errors http"),
    ("findings", "advice tickets resumption explain problems"),
    ("only-routes", "layout preset http"),
    ("usage", "sni ja4 alpn tls12 mlkem post-quantum legacy"),
    ("copy", "clipboard yank"),
    ("export", "export save file screenshot json html page report"),
    ("log", "events messages"),
    ("tune", "configure options parameters limits"),
    ("experiments", "compare ab test"),
    ("load", "pause traffic generator"),
    ("slower", "rate rps throttle"),
    ("faster", "rate rps"),
    ("mark", "annotate note bookmark"),
    ("record", "capture save"),
    ("write-configuration", "print-config save toml options"),
    ("rise", "last increase regression jump when"),
    ("undo", "revert back"),
    ("redraw", "refresh repaint"),
    ("suspend", "background shell"),
];

/// Ordinary words for what comes first in an order, by the column's name.
const ORDER_SYNONYMS: &[(&str, &str)] = &[
    ("p99", "slowest slow latency"),
    ("failed", "errors worst"),
    ("out", "busiest largest"),
    ("5xx", "errors"),
];

impl PaletteEntry {
    /// The text that is searched: that of the line, and ordinary words for it.
    fn searched(&self, state: &State) -> String {
        let others = match self {
            Self::Command(binding) => {
                let found = SYNONYMS.iter().find(|(name, _)| *name == binding.name);
                found.map_or_else(String::new, |(_, words)| (*words).to_owned())
            }
            Self::Setting(name) => state.info(name).map_or_else(String::new, |info| info.about.clone()),
            Self::SortBy(list, column) => {
                let name = match list {
                    List::Clients => ClientRow::columns()[*column].name,
                    _ => RouteRow::columns()[*column].name,
                };
                let found = ORDER_SYNONYMS.iter().find(|(known, _)| *known == name);
                let one = if *list == List::Clients { "client" } else { "route" };
                format!("order {} {one}", found.map_or("", |(_, words)| *words))
            }
            Self::Client(_) | Self::Route(..) | Self::Run(..) => String::new(),
        };
        format!("{} {others}", self.words())
    }

    pub(crate) fn words(&self) -> String {
        match self {
            Self::Command(binding) => binding.meaning.to_owned(),
            Self::SortBy(List::Clients, column) => {
                let Column { name, meaning, .. } = &ClientRow::columns()[*column];
                format!("sort by {name}: {meaning}")
            }
            Self::SortBy(_, column) => {
                let Column { name, meaning, .. } = &RouteRow::columns()[*column];
                format!("sort the routes by {name}: {meaning}")
            }
            Self::Setting(name) => format!("setting {name}"),
            Self::Client(id) => format!("client {id}"),
            Self::Route(_, name) => format!("route {name}"),
            Self::Run(_, words) => format!("run {words}"),
        }
    }
}

/// Returns the matches, best first; all commands without a text.
pub(crate) fn find(state: &State, text: &str) -> Vec<PaletteEntry> {
    let commands = BINDINGS.iter().filter(|binding| state.can(binding.needs)).map(PaletteEntry::Command);
    if text.trim().is_empty() {
        return commands.collect();
    }
    let columns =
        ClientRow::columns().iter().enumerate().filter(|(_, column)| column.unit != ColumnUnit::Graph);
    let orders = columns.map(|(at, _)| PaletteEntry::SortBy(List::Clients, at));
    let orders = orders.filter(|_| state.can(KeyRequirement::Clients));
    let columns = (0..RouteRow::columns().len()).filter(|_| state.can(KeyRequirement::Http));
    let orders = orders.chain(columns.map(|at| PaletteEntry::SortBy(List::Routes, at)));
    let routes = state.all_routes().iter().map(|row| PaletteEntry::Route(row.id, Arc::clone(&row.name)));
    let settings = state.settings().iter().map(|setting| PaletteEntry::Setting(setting.name.clone()));
    let clients = state.client_ids().map(PaletteEntry::Client);
    let runs = state.runs_to_choose().into_iter().map(|(id, words)| PaletteEntry::Run(id, words));
    let pattern = Pattern::parse(text, CaseMatching::Ignore, Normalization::Never);
    let mut matcher = Matcher::new(Config::DEFAULT);
    let mut buffer = Vec::new();
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    let has_words = |text: &str| words.iter().all(|word| text.to_lowercase().contains(word));
    let mut found: Vec<(_, PaletteEntry)> = commands
        .chain(orders)
        .chain(settings)
        .chain(routes)
        .chain(clients)
        .chain(runs)
        .filter_map(|entry| {
            let searched = entry.searched(state);
            let score = pattern.score(Utf32Str::new(&searched, &mut buffer), &mut matcher)?;
            // Whole words count for more than letters that occur in this order.
            Some(((has_words(&entry.words()), has_words(&searched), score), entry))
        })
        .collect();
    found.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
    found.truncate(FOUND_MAX);
    found.into_iter().map(|(_, entry)| entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestDashboard, options};

    #[test]
    fn ordinary_words_find_what_they_name_first() {
        let mut stage = TestDashboard::live(options(), 3);
        stage.screen(160, 48);
        for (text, first) in [
            ("export", "write the view to new files"),
            ("tickets", "what is about to break"),
            ("slowest client", "sort by p99"),
            ("errors client", "sort by failed"),
            ("rise", "to the last rise of p99"),
            ("keepalive", "setting load.keepalive"),
        ] {
            let found = find(&stage.state, text);
            let words: Vec<String> = found.iter().take(3).map(PaletteEntry::words).collect();
            assert!(words[0].starts_with(first), "{text}: {words:?}");
        }
    }
}
