//! The panes. A new pane has a folder, an entry in [`PaneId`] and in [`pane()`]. One whose rows keys act on is a
//! `List` too: its name in `list`, its rows in the `State`, and its table in `state::lists`.

pub(crate) mod findings;
pub(crate) mod handshakes;
pub(crate) mod http;
pub(crate) mod latency;
mod list;
pub(crate) mod log;
pub(crate) mod model;
mod pane;
mod preset;
mod registry;
pub(crate) mod system;
pub(crate) mod tables;
pub(crate) mod timeline;

pub(crate) use model::{PaneId, PaneLayout};
pub(crate) use pane::{Pane, PaneRows};
pub(crate) use registry::{arrange, details, open, pane};
