//! What happens to the dashboard, and what follows from it.

use crossterm::event::{KeyEvent, MouseEvent};
use telemetry::model::Level;
use telemetry::{ClientId, Command, HistoryReply, Update};

use crate::export::Export;
use crate::options::Exit;
use crate::terminal::Suspend;
use crate::terminal::pace::Urgency;

use super::client_list::ListMove;
use super::quick_control::{Direction, QuickControl};
use super::replay::PlayControl;
use super::seek::SeekTarget;
use super::tuning::SettingEdit;

/// What a person wants, whatever key says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    Quit,
    Help,
    Palette,
    Back,
    Freeze,
    Seek(SeekTarget),
    GoTo,
    Play(PlayControl),
    ZoomOut,
    ZoomIn,
    NextClass,
    ToggleTimeline,
    Window(Direction),
    SortNext,
    SortReverse,
    Filter,
    Open,
    Log,
    Copy,
    Export,
    NextRun,
    Runs,
    RunFilter,
    RunOpen,
    Tune,
    Experiments,
    Compare,
    EndExperiment,
    Setting(SettingEdit),
    Scroll(ListMove),
    Adjust(QuickControl, Direction),
    Mark,
    Record,
    Redraw,
    Suspend,
}

/// What happens to the dashboard.
#[derive(Debug)]
pub(crate) enum Action {
    /// A person wants something.
    Want(Intent),
    /// A person types.
    Type(KeyEvent),
    /// The mouse did something.
    Point(MouseEvent),
    /// There is news of the journal.
    Update(Update),
    /// Something was read again.
    History(HistoryReply),
    /// Time has passed.
    Tick,
    /// The terminal has so many columns and rows.
    Resize(u16, u16),
    /// What was to be done outside was done, or not: a sentence.
    Done(Level, String),
    /// The program takes no commands at this moment, or none any more.
    NotSent(&'static str),
}

/// What is to be done outside.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// The screen is no longer right.
    Draw(Urgency),
    /// Every cell is to be written anew.
    Redraw,
    /// The program is to be told.
    Send(Command),
    /// A text is to go to the clipboard.
    Copy(String),
    /// The view is to be written to files.
    Export(Box<Export>),
    /// Back to the shell until the process is continued.
    Suspend(Suspend),
    /// The dashboard ends.
    Leave(Exit),
}

/// What fills the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Screen {
    /// The panes.
    Dashboard,
    /// The keys over them, from this line on.
    Help {
        /// Lines scrolled away.
        offset: usize,
    },
    /// The panes, with a long log in the place of clients and timeline.
    Log,
    /// The settings over them.
    Tuning,
    /// Experiments over them.
    Experiments,
    /// The runs that are watched over them.
    Runs,
    /// All about a client over them.
    Client(ClientId),
}
