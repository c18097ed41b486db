//! Events of the dashboard, and their effects.

use crate::input::intent::Intent;
use crossterm::event::{KeyEvent, MouseEvent};
use model::history::{HistoryReply, Update};
use model::runs::Level;
use records::command::Command;
use records::ids::RunId;

use super::export::Export;
use crate::options::Exit;
use crate::terminal::SuspendTarget;
use crate::terminal::frame_scheduler::Urgency;

/// An input of the dashboard's state.
#[derive(Debug)]
pub(crate) enum Action {
    /// A person's request.
    Want(Intent),
    /// The arrangement that was kept.
    Restore(String),
    /// A key while a prompt is open.
    Type(KeyEvent),
    Paste(String),
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
