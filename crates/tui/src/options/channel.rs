//! The one queue into the dashboard: the program's events and the terminal's input in the order in which they come.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use crossterm::event::{KeyEvent, MouseEvent};
use model::history::HistoryReply;

use crate::options::Event;

/// Messages that wait for the dashboard at the most. A batch holds up to 256 records, and a key waits behind what
/// came before it, so this is small.
const MESSAGES_MAX: usize = 16;

#[derive(Debug)]
pub(crate) enum Message {
    Program(Event),
    History(HistoryReply),
    Key(KeyEvent),
    Mouse(MouseEvent),
    /// Text that was pasted.
    Pasted(String),
    Resized,
    /// The process was stopped and continues; the terminal's contents and modes may have changed.
    Continued,
    /// A frame could not be written.
    NotWritten,
    TerminalLost,
    /// A thread panicked, and its hook has restored the terminal.
    Panicked,
}

/// The program's end of the queue.
#[derive(Clone, Debug)]
pub struct DashboardSender {
    messages: SyncSender<Message>,
}

/// The inbox was dropped, so events have no receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nobody takes events any more")]
pub struct InboxClosed;

impl DashboardSender {
    /// Sends an event; waits while the queue is full.
    ///
    /// # Errors
    /// If the inbox was dropped.
    pub fn send(&self, event: Event) -> Result<(), InboxClosed> {
        self.messages.send(Message::Program(event)).map_err(|_| InboxClosed)
    }

    /// Sends a reply of the history reader; waits while the queue is full.
    ///
    /// # Errors
    /// If the inbox was dropped.
    pub fn history(&self, news: HistoryReply) -> Result<(), InboxClosed> {
        self.messages.send(Message::History(news)).map_err(|_| InboxClosed)
    }
}

/// The dashboard's end, for [`run`](crate::run()); it outlives the dashboard, so that a program can take in what comes while it
/// ends.
#[derive(Debug)]
pub struct Inbox {
    pub(crate) messages: Receiver<Message>,
    /// For the input thread and the panic hook.
    pub(crate) sender: SyncSender<Message>,
}

impl Inbox {
    /// Waits for an event, for a program without a dashboard, or after it.
    pub fn recv(&self) -> Event {
        loop {
            // The inbox itself holds a sender, so the queue is never disconnected.
            if let Ok(Message::Program(event)) = self.messages.recv() {
                return event;
            }
        }
    }

    /// Waits for an event, at most for `patience`.
    pub fn recv_timeout(&self, patience: Duration) -> Option<Event> {
        let deadline = Instant::now() + patience;
        loop {
            match self.messages.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Message::Program(event)) => return Some(event),
                // What the terminal sent last.
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }
}

pub fn channel() -> (DashboardSender, Inbox) {
    let (sender, messages) = sync_channel(MESSAGES_MAX);
    (DashboardSender { messages: sender.clone() }, Inbox { messages, sender })
}
