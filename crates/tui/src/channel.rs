//! The one queue into the dashboard: the program's events and the terminal's input in the order in which they come.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crossterm::event::KeyEvent;

use crate::options::Event;

/// Messages that wait for the dashboard at the most. A batch holds up to 256 records, and a key waits behind what
/// came before it, so this is small.
const MESSAGES_MAX: usize = 16;

/// What comes through the queue.
#[derive(Debug)]
pub(crate) enum Message {
    /// The program has news.
    Program(Event),
    /// A key was pressed.
    Key(KeyEvent),
    /// The terminal has another size.
    Resized,
    /// The process was stopped and goes on; what the terminal shows and how it is set may have changed.
    Continued,
    /// The terminal went away.
    TerminalLost,
    /// A thread panicked, and its hook has restored the terminal.
    Panicked,
}

/// The program's end: tells the dashboard what happens.
#[derive(Clone, Debug)]
pub struct Sender {
    messages: SyncSender<Message>,
}

/// The dashboard has ended and takes no more events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the dashboard has ended")]
pub struct Gone;

impl Sender {
    /// Hands over an event; waits while the dashboard has more to do than it can.
    ///
    /// # Errors
    /// When the dashboard has ended.
    pub fn send(&self, event: Event) -> Result<(), Gone> {
        self.messages.send(Message::Program(event)).map_err(|_| Gone)
    }
}

/// The dashboard's end, for [`crate::run`].
#[derive(Debug)]
pub struct Inbox {
    pub(crate) messages: Receiver<Message>,
    /// For the input thread and the panic hook.
    pub(crate) sender: SyncSender<Message>,
}

/// Opens the queue.
pub fn channel() -> (Sender, Inbox) {
    let (sender, messages) = sync_channel(MESSAGES_MAX);
    (Sender { messages: sender.clone() }, Inbox { messages, sender })
}
