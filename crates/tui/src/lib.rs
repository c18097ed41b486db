//! The terminal dashboard: state to view, key to command.

#![forbid(unsafe_code)]

mod channel;
mod options;
mod run;
mod terminal;
mod theme;

pub use channel::{Gone, Inbox, Sender, channel};
pub use options::{Event, Exit, Options, TuiError};
pub use run::run;
pub use terminal::has_terminal;
pub use theme::{Glyphs, Palette};
