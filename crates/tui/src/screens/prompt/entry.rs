//! What the palette finds.

use std::sync::Arc;

use records::ids::{ClientId, RunId};

use crate::input::intent::List;
use crate::input::keymap::Binding;
use crate::panes::PaneId;
use crate::table::NameId;
use crate::theme::format;

#[derive(Clone, Debug)]
pub(crate) enum PaletteEntry {
    /// A command, by its line in the keymap.
    Command(&'static Binding),
    /// The order of a list by a column, with its name and meaning.
    SortBy {
        list: List,
        column: usize,
        name: &'static str,
        meaning: &'static str,
    },
    /// A setting, by its name.
    Setting(String),
    Pane(PaneId),
    Client(ClientId),
    Route(NameId, Arc<str>),
    /// A run, with the text of its host and id.
    Run(RunId, String),
}

impl PaletteEntry {
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Command(binding) => binding.meaning.to_owned(),
            Self::SortBy { list: List::Clients, name, meaning, .. } => {
                format!("sort by {name}: {}", format::phrase(meaning))
            }
            Self::SortBy { list, name, meaning, .. } => {
                format!("sort the {} by {name}: {}", list.name(), format::phrase(meaning))
            }
            Self::Setting(name) => format!("setting {name}"),
            Self::Pane(id) => format!("pane {}: {}", id.name(), id.meaning()),
            Self::Client(id) => format!("client {id}"),
            Self::Route(_, name) => format!("route {name}"),
            Self::Run(_, words) => format!("run {words}"),
        }
    }
}
