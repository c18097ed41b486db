//! Finding commands, settings and clients by a few of their letters.

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use telemetry::{ClientId, RunId};

use super::State;
use crate::input::keymap::{BINDINGS, Binding};

/// The maximum number of matches.
const FOUND_MAX: usize = 50;

/// An entry that can be found.
#[derive(Clone, Debug)]
pub(crate) enum PaletteEntry {
    /// A command, by its line in the keymap.
    Command(&'static Binding),
    /// A setting, by its name.
    Setting(String),
    /// A client.
    Client(ClientId),
    /// A run, with the text of its host and id.
    Run(RunId, String),
}

impl PaletteEntry {
    /// The text that is searched.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Command(binding) => binding.meaning.to_owned(),
            Self::Setting(name) => format!("setting {name}"),
            Self::Client(id) => format!("client {id}"),
            Self::Run(_, words) => format!("run {words}"),
        }
    }
}

/// Returns the matches, best first; all commands without a text.
pub(super) fn find(state: &State, text: &str) -> Vec<PaletteEntry> {
    let commands = BINDINGS.iter().filter(|binding| state.can(binding.needs)).map(PaletteEntry::Command);
    if text.trim().is_empty() {
        return commands.collect();
    }
    let settings = state.settings().iter().map(|setting| PaletteEntry::Setting(setting.name.clone()));
    let clients = state.client_ids().map(PaletteEntry::Client);
    let runs = state.runs_to_choose().into_iter().map(|(id, words)| PaletteEntry::Run(id, words));
    let pattern = Pattern::parse(text, CaseMatching::Ignore, Normalization::Never);
    let mut matcher = Matcher::new(Config::DEFAULT);
    let mut buffer = Vec::new();
    let mut found: Vec<(u32, PaletteEntry)> = commands
        .chain(settings)
        .chain(clients)
        .chain(runs)
        .filter_map(|entry| {
            let score = pattern.score(Utf32Str::new(&entry.words(), &mut buffer), &mut matcher)?;
            Some((score, entry))
        })
        .collect();
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    found.truncate(FOUND_MAX);
    found.into_iter().map(|(_, entry)| entry).collect()
}
