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

use super::ChoiceEdit;
use super::choice::Choice;
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
    Point(MouseEvent),
    Update(Update),
    History(HistoryReply),
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
    Draw(Urgency),
    /// Redraw every cell.
    Redraw,
    Send(Command),
    Copy(String),
    /// Tell a person who looks elsewhere that an alert fires.
    Notify(String),
    Export(Box<Export>),
    /// Keep the arrangement for the next start.
    Keep(String),
    Suspend(SuspendTarget),
    Leave(Exit),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Screen {
    Dashboard,
    Help {
        /// The lines scrolled away.
        offset: usize,
    },
    Tuning,
    Experiments,
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
        failed_only: bool,
    },
}
