//! Takes over the terminal, and restores it in every case.

pub(crate) mod frame_scheduler;
pub(crate) mod notify;
pub(crate) mod output;

use std::io::{self, IsTerminal, Write as _};
use std::os::fd::AsFd;
use std::panic::{self, PanicHookInfo};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, TryLockError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use crossterm::clipboard::CopyToClipboard;
use crossterm::cursor::{Hide, Show};
use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use crossterm::execute;
use crossterm::terminal::{
    EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Frame, Terminal as Drawing};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Signal, getpid, kill_current_process_group, kill_process};

use crate::options::channel::Message;
use crate::options::{AlertNotify, TuiError};
use output::{Output, Progress, TAKEN, lock_taken};

/// How long a thread that panics or ends the program waits for a frame in progress. A terminal that reads
/// nothing must not block it.
const RESTORE_PATIENCE: Duration = Duration::from_millis(200);

/// Returns whether standard input and output are a terminal on which a dashboard can be drawn.
pub fn has_terminal() -> bool {
    let draws = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    draws && io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Restores the terminal at once, for a program that exits without waiting for its dashboard. Does nothing
/// without one.
pub fn restore() {
    restore_soon(None);
}

/// The receiver of the stop signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SuspendTarget {
    /// This process: another process sent the signal.
    Process,
    /// Its process group, as a terminal does on Ctrl-Z: the shell then sees the whole job stop, even if
    /// another program such as cargo started this one.
    Group,
}

/// The terminal in raw mode on its alternate screen. It is restored on drop, and if any thread panics.
pub(crate) struct Terminal {
    drawing: Drawing<CrosstermBackend<Output>>,
    progress: Progress,
    previous_hook: Arc<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>,
    mouse: bool,
}

impl Terminal {
    /// Takes over the terminal. A panic sends an event to `messages` after the terminal is restored.
    ///
    /// # Errors
    /// If the terminal refuses.
    pub(crate) fn take(messages: SyncSender<Message>, mouse: bool) -> Result<Self, TuiError> {
        let setup = |error| TuiError::Setup { what: "set up the terminal", error };
        let progress = Progress::default();
        let output = Output::open(progress.clone(), messages.clone()).map_err(setup)?;
        let drawing = Drawing::new(CrosstermBackend::new(output)).map_err(setup)?;
        let previous_hook = Arc::from(panic::take_hook());
        let terminal = Self { drawing, progress, previous_hook, mouse };
        terminal.install_hook(messages);
        enter(mouse).map_err(setup)?;
        Ok(terminal)
    }

    fn install_hook(&self, messages: SyncSender<Message>) {
        let previous = Arc::clone(&self.previous_hook);
        let dashboard = thread::current().id();
        panic::set_hook(Box::new(move |info| {
            restore_soon(Some(dashboard));
            previous(info);
            // If the queue is full, the dashboard has events to process, and notices the restored terminal
            // itself.
            let _ = messages.try_send(Message::Panicked);
        }));
    }

    /// Takes over the terminal again after another program may have changed it, and redraws it completely.
    pub(crate) fn reenter(&mut self) -> io::Result<()> {
        leave();
        enter(self.mouse)?;
        self.clear()
    }

    /// Clears the screen, so that the next frame writes every cell. Ratatui's method of this name would query
    /// the cursor position and wait for the answer.
    fn clear(&mut self) -> io::Result<()> {
        let size = self.drawing.size()?;
        self.drawing.resize(Rect::new(0, 0, size.width, size.height))
    }

    /// Returns whether the last frame is still being written: another one would only wait.
    pub(crate) fn is_busy(&self) -> bool {
        self.progress.is_busy()
    }

    /// Draws a frame asynchronously; only changed cells are written.
    ///
    /// # Errors
    /// [`TuiError::Panicked`] if a panic has restored the terminal, [`TuiError::Draw`] if the former frame
    /// could not be written.
    pub(crate) fn draw(&mut self, view: impl FnOnce(&mut Frame<'_>)) -> Result<(), TuiError> {
        self.check()?;
        if !*lock_taken() {
            return Err(TuiError::Panicked);
        }
        self.drawing.draw(view).map(|_| ()).map_err(TuiError::Draw)
    }

    /// # Errors
    /// If a frame could not be written.
    pub(crate) fn check(&self) -> Result<(), TuiError> {
        self.progress.failure().map_or(Ok(()), |error| Err(TuiError::Draw(error)))
    }

    /// Makes the next frame write every cell.
    pub(crate) fn forget(&mut self) -> Result<(), TuiError> {
        self.clear().map_err(TuiError::Draw)
    }

    /// Asks the terminal to copy a text to its clipboard. Terminals do not answer, and ignore the request if
    /// they do not support it.
    ///
    /// # Errors
    /// Like [`Self::draw`].
    pub(crate) fn copy(&mut self, text: String) -> Result<(), TuiError> {
        self.check()?;
        execute!(self.drawing.backend_mut(), CopyToClipboard::to_clipboard_from(text)).map_err(TuiError::Draw)
    }

    /// Rings the bell, or asks the terminal for a desktop notification, with the next frame.
    ///
    /// # Errors
    /// Like [`Self::draw`].
    pub(crate) fn notify(&mut self, how: AlertNotify, text: &str) -> Result<(), TuiError> {
        let sequence = notify::sequence(how, text, std::env::var_os("TMUX").is_some());
        self.drawing.backend_mut().write_all(sequence.as_bytes()).map_err(TuiError::Draw)
    }

    /// Returns the size of the terminal: columns and rows.
    pub(crate) fn size(&self) -> (u16, u16) {
        self.drawing.size().map_or((0, 0), |size| (size.width, size.height))
    }

    /// Restores the terminal and asks the kernel to stop the process. With several threads, this may take
    /// effect shortly after the return, so take over the terminal only when the process is continued.
    pub(crate) fn suspend(whom: SuspendTarget) -> io::Result<()> {
        leave();
        // SIGSTOP, since the program handles SIGTSTP as an event.
        match whom {
            SuspendTarget::Process => kill_process(getpid(), Signal::STOP)?,
            SuspendTarget::Group => kill_current_process_group(Signal::STOP)?,
        }
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        leave();
        // Output that `drawing` writes on drop would follow the restoration, and panics without a terminal.
        self.progress.close();
        // A panicking thread may not change the hook; the hook stays, and finds nothing to restore.
        if !thread::panicking() {
            let previous = Arc::clone(&self.previous_hook);
            panic::set_hook(Box::new(move |info| previous(info)));
        }
    }
}

fn enter(mouse: bool) -> io::Result<()> {
    let mut taken = lock_taken();
    enable_raw_mode()?;
    *taken = true;
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, Hide)?;
    if mouse { execute!(io::stdout(), EnableMouseCapture) } else { Ok(()) }
}

/// A frame that is blocked must not delay the exit.
fn leave() {
    restore_soon(None);
}

/// Restores the terminal, and waits only briefly for a frame in progress. In a panic, the dashboard's thread
/// itself may be writing a frame, so it does not wait at all.
fn restore_soon(dashboard: Option<ThreadId>) {
    let deadline = Instant::now() + RESTORE_PATIENCE;
    loop {
        match TAKEN.try_lock() {
            Ok(mut taken) => return give_back(&mut taken),
            Err(TryLockError::Poisoned(poisoned)) => return give_back(&mut poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {}
        }
        if Some(thread::current().id()) == dashboard || Instant::now() >= deadline {
            return give_back(&mut true);
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Restores the terminal if it is taken. Errors are ignored: they mean that the terminal is gone.
fn give_back(taken: &mut bool) {
    if std::mem::take(taken) {
        let mut output = io::stdout();
        if takes_output(&output, RESTORE_PATIENCE) {
            let _ = execute!(
                output,
                EndSynchronizedUpdate,
                DisableMouseCapture,
                DisableBracketedPaste,
                LeaveAlternateScreen,
                Show
            );
        }
        let _ = disable_raw_mode();
    }
}

/// Returns whether a short write would not block within a time: a terminal that stopped reading must not delay the exit.
pub fn takes_output(output: &impl AsFd, patience: Duration) -> bool {
    let patience = Timespec::try_from(patience).unwrap_or_default();
    let mut fds = [PollFd::new(output, PollFlags::OUT)];
    let ready = retry_on_intr(|| poll(&mut fds, Some(&patience)));
    ready.is_ok_and(|ready| ready > 0) && fds[0].revents() == PollFlags::OUT
}
