//! The terminal dashboard: state to view, key to command.
//!
//! ```text
//! program --Event--> channel --+--> update(State, Action) --> Effects --> terminal, Commands
//! keyboard --------> input ----+            |
//!                                       Figures (taken from the Model) --> view(State, Frame)
//! ```
//!
//! The [`telemetry::Model`] is the single source of every figure. `figures` takes from it what is shown at one moment,
//! `view` only lays out and formats that, one file per pane, and `keymap` is the one table of keys from which footer
//! and help are made. Deliberately absent: any knowledge of the proxy or the load beyond their records and settings.

#![forbid(unsafe_code)]

mod channel;
mod clock;
mod export;
mod figures;
mod format;
mod input;
mod keymap;
mod offscreen;
mod options;
mod output;
mod pace;
mod plain;
mod run;
mod scheme;
mod state;
mod terminal;
mod theme;
mod view;

#[cfg(test)]
#[path = "../tests/support/synthetic.rs"]
#[expect(unreachable_pub, reason = "shared with the fixture of the terminal tests")]
mod synthetic;
#[cfg(test)]
mod testing;

pub use channel::{Gone, Inbox, Sender, channel};
pub use keymap::{Keymap, KeymapError};
pub use offscreen::Offscreen;
pub use options::{Ended, Event, Exit, Opening, Options, TuiError};
pub use plain::run_plain;
pub use run::run;
pub use scheme::Scheme;
pub use state::{NoSpeed, Speed};
pub use terminal::{has_terminal, restore};
pub use theme::{ColourError, Colours, Glyphs, Palette};
