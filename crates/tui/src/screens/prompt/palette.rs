//! Finding commands, settings and clients by a few of their letters.

use std::sync::Arc;

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use super::entry::PaletteEntry;
use crate::input::intent::List;
use crate::input::keymap::BINDINGS;
use crate::input::requirement::KeyRequirement;
use crate::panes::tables::clients::model::ClientRow;
use crate::panes::tables::routes::model::RouteRow;
use crate::state::State;
use crate::table::{Column, ColumnUnit, Row};

const FOUND_MAX: usize = 50;

/// Ordinary words for what comes first in an order, by the column's name.
const ORDER_SYNONYMS: &[(&str, &str)] = &[
    ("p99", "slowest slow latency"),
    ("failed", "errors worst"),
    ("out", "busiest largest"),
    ("5xx", "errors"),
];

/// The text that is searched: that of the line, and ordinary words for it.
fn searched(entry: &PaletteEntry, state: &State) -> String {
    let others = match entry {
        PaletteEntry::Command(binding) => return binding.searched(),
        PaletteEntry::Setting(name) => state.info(name).map_or_else(String::new, |info| info.about.clone()),
        PaletteEntry::SortBy { list, name, .. } => {
            let found = ORDER_SYNONYMS.iter().find(|(known, _)| known == name);
            let one = if *list == List::Clients { "client" } else { "route" };
            format!("order {} {one}", found.map_or("", |(_, words)| *words))
        }
        PaletteEntry::Pane(_) | PaletteEntry::Client(_) | PaletteEntry::Route(..) | PaletteEntry::Run(..) => {
            String::new()
        }
    };
    format!("{} {others}", entry.words())
}

/// Returns the orders of a list by its columns.
fn orders<R: Row>(list: List) -> impl Iterator<Item = PaletteEntry> {
    let columns = R::columns().iter().enumerate().filter(|(_, column)| column.unit != ColumnUnit::Graph);
    columns.map(move |(column, &Column { name, meaning, .. })| PaletteEntry::SortBy {
        list,
        column,
        name,
        meaning,
    })
}

/// Returns the matches, best first; all commands without a text.
pub(crate) fn find(state: &State, text: &str) -> Vec<PaletteEntry> {
    let commands = BINDINGS.iter().filter(|binding| state.can_run(binding)).map(PaletteEntry::Command);
    if text.trim().is_empty() {
        return commands.collect();
    }
    let clients = orders::<ClientRow>(List::Clients).filter(|_| state.can(KeyRequirement::Clients));
    let routes = orders::<RouteRow>(List::Routes).filter(|_| state.can(KeyRequirement::Http));
    let orders = clients.chain(routes);
    let routes = state.all_routes().iter().map(|row| PaletteEntry::Route(row.id, Arc::clone(&row.name)));
    let settings = state.settings().iter().map(|setting| PaletteEntry::Setting(setting.name.clone()));
    let panes = state.choosable_panes().into_iter().map(PaletteEntry::Pane);
    let clients = state.client_ids().map(PaletteEntry::Client);
    let runs = state.runs_to_choose().into_iter().map(|(id, words)| PaletteEntry::Run(id, words));
    let pattern = Pattern::parse(text, CaseMatching::Ignore, Normalization::Never);
    let mut matcher = Matcher::new(Config::DEFAULT);
    let mut buffer = Vec::new();
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    let has_words = |text: &str| words.iter().all(|word| text.to_lowercase().contains(word));
    let mut found: Vec<(_, PaletteEntry)> = commands
        .chain(panes)
        .chain(orders)
        .chain(settings)
        .chain(routes)
        .chain(clients)
        .chain(runs)
        .filter_map(|entry| {
            let searched = searched(&entry, state);
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
    use crate::app::testing::{TestDashboard, options, watching};
    use crate::panes::PaneId;
    use crate::state::screen::Screen;

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
            ("system", "pane system"),
            ("worker", "pane system"),
            ("keep-alive", "setting load.keep-alive"),
            ("go back", "go back"),
            ("escape", "go back"),
        ] {
            let found = find(&stage.state, text);
            let words: Vec<String> = found.iter().take(3).map(PaletteEntry::words).collect();
            assert!(words[0].starts_with(first), "{text}: {words:?}");
        }
    }

    #[test]
    fn a_pane_that_is_found_has_the_focus_and_is_shown() {
        let mut stage = TestDashboard::live(options(), 3);
        stage.press('2');
        ":pane system\n".chars().for_each(|key| drop(stage.press(key)));
        let screen = stage.screen(160, 48);
        assert!(
            screen.contains("workers 1-2/2") && stage.state.panes.focus == Some(PaneId::System),
            "{screen}"
        );
    }

    #[test]
    fn nothing_is_listed_that_cannot_run_here() {
        let listed = |stage: &TestDashboard| -> Vec<&'static str> {
            let command = |entry| match entry {
                PaletteEntry::Command(binding) => Some(binding.name),
                _ => None,
            };
            find(&stage.state, "").into_iter().filter_map(command).collect()
        };
        let mut stage = TestDashboard::live(options(), 3);
        let on_panes = listed(&stage);
        for name in ["step-up", "choose", "show-run", "end-experiment", "play-faster", "next-run", "suspend"]
        {
            assert!(!on_panes.contains(&name), "{name}");
        }
        for name in ["freeze", "tune", "mark", "back"] {
            assert!(on_panes.contains(&name), "{name}");
        }
        stage.press('t');
        let on_settings = listed(&stage);
        assert!(on_settings.contains(&"step-up") && !on_settings.contains(&"choose"), "{on_settings:?}");
        let watched = listed(&TestDashboard::live(watching(), 3));
        assert!(!watched.contains(&"mark") && watched.contains(&"suspend"), "{watched:?}");
    }

    #[test]
    fn a_command_that_is_found_from_the_help_is_seen_to_run() {
        let mut stage = TestDashboard::live(options(), 3);
        "?:settings of proxy\n".chars().for_each(|key| drop(stage.press(key)));
        assert_eq!(stage.state.screen, Screen::Tuning);
    }
}
