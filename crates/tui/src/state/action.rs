//! Events of the dashboard, and their effects.

use crossterm::event::{KeyEvent, MouseEvent};
use model::history::{HistoryReply, Update};
use model::runs::Level;
use records::command::Command;
use records::ids::{ClientId, RunId};

use crate::export::Export;
use crate::options::Exit;
use crate::table::ListMove;
use crate::terminal::SuspendTarget;
use crate::terminal::frame_scheduler::Urgency;
use crate::view_model::{RouteId, UsageId};

use super::choice::{Choice, ChoiceEdit};
use super::panes::PaneAction;
use super::quick_control::{Direction, QuickControl};
use super::replay::PlayControl;
use super::seek::SeekTarget;
use super::tuning::SettingEdit;

/// A request of the user, independent of the key.
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
    ZoomToFit,
    NextClass,
    ToggleTimeline,
    Window(Direction),
    SortNext,
    SortReverse,
    Filter,
    Open,
    Requests,
    Findings,
    NextDimension,
    Pane(PaneAction),
    Choose(Choice),
    EditChoice(ChoiceEdit),
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
    WriteConfiguration,
    Calibrate,
    Redraw,
    Suspend,
}

/// An input of the dashboard's state.
#[derive(Debug)]
pub(crate) enum Action {
    /// A person's request.
    Want(Intent),
    /// The arrangement that was kept.
    Restore(String),
    /// A key while a prompt is open.
    Type(KeyEvent),
    /// A mouse event.
    Point(MouseEvent),
    /// An update from the journal.
    Update(Update),
    /// A reply of the history reader.
    History(HistoryReply),
    /// Time has passed.
    Tick,
    /// The terminal's size changed: columns and rows.
    Resize(u16, u16),
    /// The result of an effect, as a sentence.
    Done(Level, String),
    /// Whether a run of another process can be changed.
    Access(RunId, Result<(), String>),
    /// The program accepts no commands now, or never again.
    NotSent(&'static str),
}

/// What the caller has to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// Redraw the screen.
    Draw(Urgency),
    /// Redraw every cell.
    Redraw,
    /// Send a command to the program.
    Send(Command),
    /// Copy a text to the clipboard.
    Copy(String),
    /// Tell a person who looks elsewhere that an alert fires.
    Notify(String),
    /// Write the view to files.
    Export(Box<Export>),
    /// Keep the arrangement for the next start.
    Keep(String),
    /// Suspend the process until it is continued.
    Suspend(SuspendTarget),
    /// Exit the dashboard.
    Leave(Exit),
}

/// The screen that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Screen {
    /// The panes.
    Dashboard,
    /// The help over the panes.
    Help {
        /// The lines scrolled away.
        offset: usize,
    },
    /// The settings over the panes.
    Tuning,
    /// The experiments over the panes.
    Experiments,
    /// The list of runs over the panes.
    Runs,
    /// A list of columns or panes over the panes, with the selected line.
    Choice(Choice, usize),
    /// The details of a client over the panes.
    Client(ClientId),
    /// The details of a route over the panes.
    Route(RouteId),
    /// Findings over the panes, with the place of the one whose figures are shown.
    Findings(usize),
    /// The details of a value of usage over the panes.
    Usage(UsageId),
    /// Single requests over the panes: the slowest first.
    Requests {
        /// Whether only those that failed are listed.
        failed_only: bool,
    },
}
