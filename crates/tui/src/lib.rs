//! The terminal dashboard: state to view, key to command.
//!
//! ```text
//! program --Event--> options::channel --+--> app: update(State, Action) --> Effects --> terminal, Commands
//! keyboard --------> input -------------+            |
//!                             ViewModel (taken from the Model) --> frame: view(State, Frame)
//! ```
//!
//! The [`model::runs::Model`] is the single source of every figure. `view_model`, and the `model` of a pane, take from it what
//! one moment shows. Each pane and each screen has a folder in `panes` or `screens`: what it shows (`model`), what the state
//! keeps of it (`rows`), what a person does with it (`state`), how it is drawn (`view`); `frame` lays them out. `table` has
//! what all tables share. `input::keymap` is the one table of keys; footer and help are made from it. Models and rows know
//! no state, states no view, and nothing but `lib` knows `app`. The dashboard knows nothing of the proxy and the load
//! beyond their records and settings.

#![forbid(unsafe_code)]

mod app;
mod clock;
mod frame;
mod input;
mod options;
mod panes;
mod screens;
mod state;
mod table;
mod terminal;
mod theme;
mod view_model;
mod widgets;

#[cfg(test)]
#[path = "../tests/support/synthetic.rs"]
#[expect(unreachable_pub, reason = "shared with the fixture of the terminal tests")]
mod synthetic;

pub use app::offscreen::Offscreen;
pub use app::plain::run_plain;
pub use app::run::run;
pub use clock::zone::Zone;
pub use input::keymap::{Keymap, KeymapError};
pub use options::channel::{DashboardSender, Inbox, InboxClosed, channel};
pub use options::remote::{RecordingRequest, RemoteAction, RemoteControl, RemoteRequest};
pub use options::speed::{ParseSpeedError, Speed};
pub use options::{AlertNotify, DashboardResult, Event, Exit, ModelReader, Options, ReplayStart, TuiError};
pub use terminal::{has_terminal, restore, takes_output};
pub use theme::scheme::ColourScheme;
pub use theme::{ColourError, Colours, Glyphs, Palette};
