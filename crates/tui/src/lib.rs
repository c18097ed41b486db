//! The terminal dashboard: state to view, key to command.
//!
//! ```text
//! program --Event--> channel --+--> update(State, Action) --> Effects --> terminal, Commands
//! keyboard --------> input ----+            |
//!                                   ViewModel (taken from the Model) --> view(State, Frame)
//! ```
//!
//! The [`model::runs::Model`] is the single source of every figure. `view_model` takes from it what one moment shows. `view`
//! lays that out, one file per pane. `table` has what all tables share. `input::keymap` is the one table of keys; footer and help are made from it. The
//! dashboard knows nothing of the proxy and the load beyond their records and settings.

#![forbid(unsafe_code)]

mod arrangement;
mod channel;
mod clock;
mod export;
mod format;
mod input;
mod options;
mod plain;
mod remote;
mod run;
mod state;
mod table;
mod terminal;
mod theme;
mod view;
mod view_model;
mod zone;

#[cfg(test)]
#[path = "../tests/support/synthetic.rs"]
#[expect(unreachable_pub, reason = "shared with the fixture of the terminal tests")]
mod synthetic;
#[cfg(test)]
mod testing;

pub use channel::{DashboardSender, Inbox, InboxClosed, channel};
pub use input::keymap::{Keymap, KeymapError};
pub use options::{AlertNotify, DashboardResult, Event, Exit, ModelReader, Options, ReplayStart, TuiError};
pub use plain::run_plain;
pub use remote::{RecordingRequest, RemoteAction, RemoteControl, RemoteRequest};
pub use run::run;
pub use state::{ParseSpeedError, Speed};
pub use terminal::offscreen::Offscreen;
pub use terminal::{has_terminal, restore};
pub use theme::scheme::ColourScheme;
pub use theme::{ColourError, Colours, Glyphs, Palette};
pub use zone::Zone;
